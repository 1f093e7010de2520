"""Triples in Parquet files, as many as the disk holds, in the order of their columns and rows.

Files that are in this order already are read as they are; others are sorted by DuckDB, within a limit of memory and
with the help of the disk. Nothing here holds more than a few batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ._arguments import shown
from ._threads import default_threads
from .files._kinds import needed_module, one_line
from .files._parquet import by_pieces, checked, opened
from .observations import index_dtype

BATCH = 1 << 20  # entries that are read at a time


class NotOrdered(Exception):
    """The files are not in the order of columns and rows."""


@dataclass(frozen=True)
class Batch:
    """Some entries with positions in place of labels; NaN is left out.

    Attributes
    ----------
    columns, rows : integer arrays of shape (k,)
    values : float array of shape (k,)
    """

    columns: np.ndarray
    rows: np.ndarray
    values: np.ndarray


class Labels:
    """Which labels occur in the files, in increasing order; the position of a label is its place among them.

    Attributes
    ----------
    values : int64 array of shape (k,)
    """

    def __init__(self, values: np.ndarray):
        self.values = values
        self._table = None
        if values[-1] < 4 * values.size + 1_000_000:  # not too scattered for a table
            self._table = np.zeros(values[-1] + 1, index_dtype(values.size))
            self._table[values] = np.arange(values.size)

    @property
    def only_counts(self) -> bool:
        """Whether they are 0, 1, 2, ..., so that labels are positions."""
        return self.values[0] == 0 and self.values[-1] == self.values.size - 1

    def positions(self, labels: np.ndarray) -> np.ndarray:
        """Of labels that occur."""
        if self._table is not None:
            return self._table[labels]
        return np.searchsorted(self.values, labels).astype(index_dtype(self.values.size))


@dataclass(frozen=True)
class Triples:
    """Parquet files of entries, whose labels are whole numbers.

    Attributes
    ----------
    files : tuple of paths
    fields : (str, str, str)
        The names of row, column and value.
    shape : (int, int)
    dtype : float32 or float64
        Of the values.
    n_lines : int
        Of the files, those without a value included.
    labels : (Labels or None, Labels or None)
        Of rows and columns; None if labels are positions.
    keep_order : bool
        Whether entries of the same place must stay in the order in which they are given.
    """

    files: tuple[Path, ...]
    fields: tuple[str, str, str]
    shape: tuple[int, int]
    dtype: np.dtype
    n_lines: int
    labels: tuple[Labels | None, Labels | None] = (None, None)
    keep_order: bool = False

    @property
    def source(self) -> str:
        """The files as a table of DuckDB."""
        return f"read_parquet([{', '.join(map(literal, self.files))}])"


def label_range(files, field: str) -> tuple[int, int] | None:
    """The least and the largest label in a column, as the footers tell; None if they do not."""
    ranges = [found for path in files for found in _group_ranges(path, field)]
    if not ranges or None in ranges:
        return None
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _group_ranges(path: Path, field: str) -> list[tuple[int, int] | None]:
    """Least and largest value of a column in every row group; None where the footer does not tell."""
    metadata = opened(path).metadata
    at = metadata.schema.names.index(field)
    found = [metadata.row_group(k).column(at).statistics for k in range(metadata.num_row_groups)]
    return [(one.min, one.max) if one is not None and one.has_min_max else None for one in found]


def n_labels(triples: Triples, side: int) -> int:
    """How many different positions occur among the rows (0) or columns (1)."""
    name, occurs = triples.fields[side], np.zeros(triples.shape[side], bool)
    for path in triples.files:
        reader = by_pieces(path).iter_batches(BATCH, columns=[name])
        while (read := checked(path, next, reader, None)) is not None:
            occurs[_positions(triples, read.column(0), side)] = True
    return int(occurs.sum())


def may_be_ordered(triples: Triples) -> bool:
    """Whether the footers allow that the files are in the order of their columns."""
    ranges = [found for path in triples.files for found in _group_ranges(path, triples.fields[1]) if found is not None]
    return all(after[0] >= before[1] for before, after in pairwise(ranges))


def batches_as_they_are(triples: Triples, first_column: int) -> Iterator[Batch]:
    """Entries from `first_column` on, read in the order of the files; raises NotOrdered where that is another one."""
    row, column, value = triples.fields
    start, last = _label_at(triples, first_column), None
    for path in triples.files:
        ranges = enumerate(_group_ranges(path, column))
        groups = [k for k, found in ranges if found is None or found[1] >= start]
        reader = by_pieces(path).iter_batches(BATCH, row_groups=groups, columns=[column, row, value])
        while (read := checked(path, next, reader, None)) is not None:
            batch = _positions_of(triples, read.column(column), read.column(row), read.column(value))
            if batch.columns.size:
                last = _refuse_disorder(batch, last)
                yield _from_column(batch, first_column)


def _refuse_disorder(batch: Batch, last: tuple | None) -> tuple:
    """The last place of a batch whose places do not fall, also after those of the batch before."""
    columns, rows = batch.columns, batch.rows
    falls = (columns[1:] < columns[:-1]) | ((columns[1:] == columns[:-1]) & (rows[1:] < rows[:-1]))
    if falls.any() or (last is not None and last > (columns[0], rows[0])):
        raise NotOrdered
    return columns[-1], rows[-1]


def sorted_batches(
    triples: Triples, first_column: int, memory: int, scratch: Path, told: Callable = lambda database: None
) -> Iterator[Batch]:
    """Entries from `first_column` on, sorted by DuckDB; `told` hears the connection, so that others can stop it."""
    row, column, value = map(quoted, triples.fields)
    number = ", row_number() OVER () AS k" if triples.keep_order else ""
    table = f"SELECT {column} AS c, {row} AS r, {value} AS v{number} FROM {triples.source}"
    wanted = f"c IS NULL OR c >= {_label_at(triples, first_column)}"
    query = f"SELECT c, r, v FROM ({table}) WHERE {wanted} ORDER BY c, r{', k' if number else ''}"
    with connection(memory, scratch) as database:
        database.execute(f"SET preserve_insertion_order = {str(triples.keep_order).lower()}")
        told(database)
        for read in arrow_batches(database, query):
            yield _positions_of(triples, *read.columns)


@contextmanager
def connection(memory: int, scratch: Path):
    """A DuckDB that keeps within `memory` bytes and spills into the folder `scratch`; its errors become ours."""
    duckdb = needed_module("duckdb", "cli")
    database = duckdb.connect()
    try:
        database.execute(f"SET memory_limit = '{max(memory // 1_000_000, 50)}MB'")
        database.execute(f"SET temp_directory = {literal(scratch)}")
        database.execute(f"SET threads = {default_threads()}")
        yield database
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        raise OSError(
            f"DuckDB failed: {one_line(error)}; free space beside the result, or raise --memory-limit"
        ) from error
    finally:
        database.close()


def interrupt(connections: list) -> None:
    """Stop what they do, if they are still open; their thread gets an error."""
    from duckdb import Error

    for database in connections:
        with suppress(Error):
            database.interrupt()


def arrow_batches(database, query: str) -> Iterator:
    """The result of a query as Arrow record batches."""
    result = database.sql(query)
    read = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader  # its name in older versions
    yield from read(BATCH)


def literal(text) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _label_at(triples: Triples, column: int) -> int:
    labels = triples.labels[1]
    return column if labels is None else int(labels.values[column])


def _positions_of(triples: Triples, columns, rows, values) -> Batch:
    """Arrow arrays of labels and values, checked, as positions; NaN is left out."""
    columns, rows = _positions(triples, columns, 1), _positions(triples, rows, 0)
    values = values.to_numpy(zero_copy_only=False).astype(triples.dtype, copy=False)
    seen = ~np.isnan(values)
    return Batch(columns, rows, values) if seen.all() else Batch(columns[seen], rows[seen], values[seen])


def _from_column(batch: Batch, first_column: int) -> Batch:
    """The entries of a batch in order from this column on."""
    at = np.searchsorted(batch.columns, first_column)
    return Batch(batch.columns[at:], batch.rows[at:], batch.values[at:])


def _positions(triples: Triples, labels, side: int) -> np.ndarray:
    name, length, known = triples.fields[side], triples.shape[side], triples.labels[side]
    if labels.null_count:
        raise ValueError(f"some cells of the column {shown(name)} are empty; every entry needs its place")
    found = labels.to_numpy(zero_copy_only=False)
    if known is not None:
        return known.positions(found)
    low, high = int(found.min(initial=0)), int(found.max(initial=0))
    if low < 0 or high >= length:
        raise IndexError(
            f"the column {shown(name)} must hold whole numbers in 0..{length - 1:,};"
            f" it holds {low if low < 0 else high}"
        )
    return found.astype(index_dtype(length), copy=False)
