"""Triples in Parquet files, as many as the disk holds, in the order of their columns and rows.

Files that are in this order already are read as they are; others are sorted by DuckDB, within a limit of memory and
with the help of the disk. Nothing here holds more than a few batches.

DuckDB is given batches of Arrow with columns that are named here. It opens no file and sees no name of the user: it
would expand ``*`` and ``[1]`` in paths, read folders such as ``value=3`` as columns, and ignore the case of columns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import numpy as np

from ..._support.arguments import printable, shown
from ..._support.storage import Url
from ..._support.threads import default_threads
from ...data.observations import index_dtype
from ...files.tables.kinds import needed_module, one_line
from ...files.tables.parquet import by_pieces, checked, opened
from ...files.tables.partitions import partition_of
from ...files.tables.triples import refuse_rounded_values

BATCH = 1 << 20  # entries that are read at a time
_SORTED_BATCH = 1 << 17  # Entries that DuckDB is given at a time; each of its threads holds some of these batches.


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


def label_range(files, field: str) -> tuple[int, int] | None:
    """The least and the largest label in a column, as the footers tell; None if they do not."""
    ranges = [found for path in files for found in _group_ranges(path, field)]
    if not ranges or None in ranges:
        return None
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _group_ranges(path: Path, field: str) -> list[tuple[int, int] | None]:
    """Least and largest value of a column in every row group; None where the footer does not tell."""
    metadata, partition = opened(path).metadata, partition_of(path)
    if partition is not None and field in partition.values:
        value = partition.values[field]
        return [None if value is None else (value, value)] * metadata.num_row_groups
    leaves = [j for j in range(metadata.num_columns) if metadata.schema.column(j).path == field]
    if len(leaves) != 1:  # A column "a.b" and the field b of a structure a have the same path.
        return [None] * metadata.num_row_groups
    found = [metadata.row_group(k).column(leaves[0]).statistics for k in range(metadata.num_row_groups)]
    return [(one.min, one.max) if one is not None and one.has_min_max else None for one in found]


def n_labels(triples: Triples, side: int) -> int:
    """How many different positions occur among the rows (0) or columns (1)."""
    name, occurs = triples.fields[side], np.zeros(triples.shape[side], bool)
    for path in triples.files:
        for read in pieces(path, [name]):
            occurs[_positions(triples, read.column(0), side)] = True
    return int(occurs.sum())


def may_be_ordered(triples: Triples) -> bool:
    """Whether the footers allow that the files are in the order of their columns."""
    ranges = [found for path in triples.files for found in _group_ranges(path, triples.fields[1]) if found is not None]
    return all(after[0] >= before[1] for before, after in pairwise(ranges))


def batches_as_they_are(triples: Triples, first_column: int) -> Iterator[Batch]:
    """Entries from `first_column` on, read in the order of the files; raises NotOrdered where that is another one."""
    last = None
    for batch in _batches(triples, first_column, BATCH):
        if batch.columns.size:
            last = _refuse_disorder(batch, last)
            yield _from_column(batch, first_column)


def _batches(triples: Triples, first_column: int, size: int) -> Iterator[Batch]:
    """Entries in the order of the files, without row groups that have no column from `first_column` on."""
    row, column, value = triples.fields
    start = _label_at(triples, first_column)
    for path in triples.files:
        ranges = enumerate(_group_ranges(path, column))
        groups = [k for k, found in ranges if found is None or found[1] >= start]
        for read in pieces(path, (column, row, value), groups, size):
            yield _positions_of(triples, *read.columns)


def pieces(path: Path, fields, groups: list[int] | None = None, size: int = BATCH) -> Iterator:
    """Arrow record batches of some columns of a Parquet file, in the order of `fields`."""
    reader = by_pieces(path).iter_batches(size, row_groups=groups, columns=list(fields))
    while (read := checked(path, next, reader, None)) is not None:
        yield read.select(list(fields))


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
    import pyarrow

    sides = [pyarrow.from_numpy_dtype(index_dtype(triples.shape[side])) for side in (1, 0)]
    schema = [("c", sides[0]), ("r", sides[1]), ("v", pyarrow.from_numpy_dtype(triples.dtype)), ("k", pyarrow.int64())]
    schema = pyarrow.schema(schema if triples.keep_order else schema[:3])

    def given() -> Iterator:
        done = 0
        for batch in _batches(triples, first_column, _SORTED_BATCH):
            arrays = [batch.columns, batch.rows, batch.values]
            if first_column:
                wanted = batch.columns >= first_column
                arrays = [part[wanted] for part in arrays]
            if triples.keep_order:
                arrays.append(np.arange(done, done + arrays[0].size))
            done += arrays[0].size
            yield pyarrow.record_batch(arrays, schema=schema)

    query = f"SELECT c, r, v FROM given ORDER BY c, r{', k' if triples.keep_order else ''}"
    for read in asked_of_duckdb(query, schema, given(), memory, scratch, told):
        yield Batch(*(part.to_numpy() for part in read.columns))


def different_values(files, field: str, kind, memory: int, scratch: Path):
    """All different values of a column of Parquet files, as an Arrow array of type `kind` in increasing order.

    Null is the first, if it occurs.
    """
    import pyarrow

    schema = pyarrow.schema([("x", kind)])
    read = (part for path in files for part in pieces(path, [field], size=_SORTED_BATCH))
    given = (pyarrow.record_batch([part.column(0).cast(kind)], schema=schema) for part in read)
    query = "SELECT DISTINCT x FROM given ORDER BY x NULLS FIRST"
    found = [part.column(0).cast(kind) for part in asked_of_duckdb(query, schema, given, memory, scratch)]
    return pyarrow.concat_arrays(found) if found else pyarrow.array([], kind)


def asked_of_duckdb(
    query: str, schema, batches: Iterable, memory: int, scratch: Path, told: Callable = lambda database: None
) -> Iterator:
    """Record batches that answer a query of the table ``given``, whose record batches have this schema."""
    import pyarrow

    failed = []

    def watched() -> Iterator:
        try:
            yield from batches
        except BaseException as error:  # DuckDB would make a text of it
            failed.append(error)
            raise

    with _connection(memory, scratch) as database:
        told(database)
        database.register("given", pyarrow.RecordBatchReader.from_batches(schema, watched()))
        try:
            result = database.sql(query)
            read = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader  # its name in older versions
            yield from read(BATCH)
        except Exception:
            if failed:
                raise failed[0] from None
            raise


@contextmanager
def _connection(memory: int, scratch: Path):
    """A DuckDB that keeps within `memory` bytes and spills into the folder `scratch`; its errors become ours.

    It can open no other file.
    """
    duckdb = needed_module("duckdb", "cli")
    config = {
        "memory_limit": f"{max(memory // 1_000_000, 50)}MB",
        "threads": default_threads(),
        "preserve_insertion_order": False,
    }
    database = duckdb.connect(config={**config, "temp_directory": _as_text(scratch)})
    try:
        database.execute("SET enable_external_access = false")
        yield database
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        raise OSError(
            f"DuckDB failed in {printable(scratch)}: {one_line(error)};"
            " free space beside the result, or raise --memory-limit"
        ) from error
    finally:
        database.close()


def _as_text(scratch: Path) -> str:
    """The folder as DuckDB takes it; an address, or a name that is not UTF-8, is replaced by a temporary folder."""
    try:
        str(scratch).encode()
        is_here = not isinstance(scratch, Url)
    except UnicodeEncodeError:
        is_here = False
    if not is_here:
        return str(Path(tempfile.gettempdir()) / f"colonnade.{uuid4().hex}")
    return str(scratch.absolute())


def interrupt(connections: list) -> None:
    """Stop what they do, if they are still open; their thread gets an error."""
    from duckdb import Error

    for database in connections:
        with suppress(Error):
            database.interrupt()


def _label_at(triples: Triples, column: int) -> int:
    labels = triples.labels[1]
    return column if labels is None else int(labels.values[column])


def _positions_of(triples: Triples, columns, rows, values) -> Batch:
    """Arrow arrays of labels and values, checked, as positions; NaN is left out."""
    refuse_rounded_values(rows, columns, values)
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
