"""Labels of triples: names and text tables become whole numbers in Parquet, which are sorted quickly.

Rows and columns are the different labels that occur, in increasing order: names by code point, whole numbers by size.
With a shape the labels are positions. It is the rule of `colonnade.read`, within a limit of memory; only the names
themselves must fit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from ..._support.arguments import printable, shown
from ..._support.atomic_writing import publishing
from ..._support.numbers import rounded_words
from ..._support.storage import Url, read_ends
from ...files.results.checkpoints import publish_json, read_json
from ...files.tables.csv import MISSING
from ...files.tables.csv_cells import first_rounded_text, reaches_exact
from ...files.tables.dialects import FOUND_OUT as DIALECT_FOUND_OUT
from ...files.tables.dialects import DialectOptions
from ...files.tables.encodings import NotUtf8, opened_text
from ...files.tables.kinds import kind_of, needed_module, one_line, refuse_beyond_memory
from ...files.tables.numerals import TWO_READINGS
from ...files.tables.parquet import batches, opened
from ...files.tables.styles import may_be_grouped, two_readings
from ...files.tables.triples import (
    as_labels,
    in_order,
    numbered_names,
    places_in_csv,
    refuse_other_types,
    refuse_rounded_values,
    refuse_unknown,
)
from .grouping import BATCH, Labels, Triples, different_values, label_range, pieces

COPY_FIELDS = "row", "column", "value"
COPY, _CODED, COPY_RECORD = "triples.parquet", "coded.parquet", "copied.json"
_WHOLE, _DIGITS = "^(0|[1-9][0-9]{0,17})$", "^[0-9]+$"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"
_CSV_BLOCK = 1 << 24  # bytes of text that are parsed at a time
_BYTES_OF_A_NAME = 130  # that a name needs besides its text: its places in a dictionary, a list and an array
_TIMES_NAMES = 3.0  # How often names are in memory while they are put in order and written, measured.


@dataclass(frozen=True)
class TripleFiles:
    """What the user named: files with three columns.

    Attributes
    ----------
    paths : tuple of paths
        All csv or all Parquet.
    fields : (str, str, str)
        Names of the columns with row, column and value; positions in a csv file without a header.
    shape : (int, int) or None
        Given, if labels are positions.
    header : bool or "auto"
        Of csv files, as in `colonnade.read`.
    dialect : DialectOptions
        How csv files are written, as far as the user says it.
    """

    paths: tuple[Path, ...]
    fields: tuple[str, str, str] = COPY_FIELDS
    shape: tuple[int, int] | None = None
    header: object = "auto"
    dialect: DialectOptions = DIALECT_FOUND_OUT


@dataclass(frozen=True)
class Names:
    """Names of rows and columns, lists of str; None where labels only count from 0."""

    rows: list[str] | None = None
    columns: list[str] | None = None


def numbered(given: TripleFiles, folder: Path, memory: int) -> tuple[Triples, Names]:
    """The triples with whole numbers for labels: the files themselves, or a copy of them in `folder`.

    Where the footers allow it labels are taken for positions, without a look at all of them; `recounted` looks.
    """
    needed_module("pyarrow", "cli")
    kinds = {kind_of(path) for path in given.paths}
    if not kinds <= {"csv", "parquet"} or len(kinds) > 1:
        raise ValueError(f"triples are read from csv or from Parquet files; got {', '.join(sorted(kinds))}")
    (kind,) = kinds
    if kind == "parquet":
        read_ends(given.paths)
        for path in given.paths:
            schema = opened(path).schema_arrow
            refuse_unknown(path, given.fields, schema.names)
            refuse_other_types(schema, given.fields)
        if _are_plain(given):
            return _opened(given.paths, given.fields, given.shape, Names(), folder, memory)
    names = _copied(given, kind, folder, memory)
    return _opened((folder / COPY,), COPY_FIELDS, given.shape, names, folder, memory)


def recounted(triples: Triples, names: Names, folder: Path, memory: int) -> tuple[Triples, Names]:
    """The same triples with the labels that really occur; positions change if some below the largest do not."""
    sides = zip(triples.labels, (names.rows, names.columns), triples.fields)
    labels = [
        known if known is not None or listed is not None else _labels_in(triples, field, folder, memory)
        for known, listed, field in sides
    ]
    return _with_labels(triples, labels, names)


def _opened(files, fields, shape, names: Names, folder: Path, memory: int) -> tuple[Triples, Names]:
    import pyarrow

    n_lines = sum(opened(path).metadata.num_rows for path in files)
    if n_lines == 0:
        raise ValueError(f"{printable(files[0])} has no entry")
    single = opened(files[0]).schema_arrow.field(fields[2]).type == pyarrow.float32()
    triples = Triples(tuple(files), tuple(fields), (0, 0), np.dtype("f4" if single else "f8"), n_lines)
    if shape is not None:
        return replace(triples, shape=tuple(shape)), names
    lengths = [len(one) if one is not None else None for one in (names.rows, names.columns)]
    labels = [None, None]
    for side in (0, 1):
        if lengths[side] is None:
            found = label_range(files, fields[side])
            if found is None or found[0] != 0:
                labels[side] = _labels_in(triples, fields[side], folder, memory)
            lengths[side] = found[1] + 1 if labels[side] is None else labels[side].values.size
    return _with_labels(replace(triples, shape=tuple(lengths)), labels, names)


def _with_labels(triples: Triples, labels, names: Names) -> tuple[Triples, Names]:
    lengths = [length if found is None else found.values.size for length, found in zip(triples.shape, labels)]
    listed = [
        known if found is None or found.only_counts else [str(label) for label in found.values]
        for known, found in zip((names.rows, names.columns), labels)
    ]
    needed = [None if found is None or found.only_counts else found for found in labels]
    return replace(triples, shape=tuple(lengths), labels=tuple(needed)), Names(*listed)


def _labels_in(triples: Triples, field: str, folder: Path, memory: int) -> Labels:
    """All different labels of a column."""
    import pyarrow

    found = different_values(triples.files, field, pyarrow.int64(), memory, folder / "sorting")
    if found.null_count:
        raise ValueError(f"some cells of the column {shown(field)} are empty; every entry needs its place")
    labels = found.to_numpy()
    if labels[0] < 0:
        raise ValueError(f"some labels of the column {shown(field)} are negative, the least is {labels[0]}")
    return Labels(labels)


def _are_plain(given: TripleFiles) -> bool:
    """Whether all files have the same types of columns, those that can be sorted as they are."""
    import pyarrow.types as kinds

    types = {tuple(opened(path).schema_arrow.field(name).type for name in given.fields) for path in given.paths}
    if len(types) > 1:
        return False
    (row, column, value), *_ = types
    whole = all(kinds.is_integer(kind) and not kinds.is_uint64(kind) for kind in (row, column))
    return whole and (kinds.is_float32(value) or kinds.is_float64(value) or kinds.is_integer(value))


def _copied(given: TripleFiles, kind: str, folder: Path, memory: int) -> Names:
    """Write the copy, if it is not there yet: names get numbers as they come, then positions in their order."""
    if (folder / COPY_RECORD).exists():
        return Names(**read_json(folder / COPY_RECORD))
    numbers = _write_coded(given, kind, folder, memory)
    orders = [None if one is None else in_order(list(one), kind) for one in numbers]
    del numbers
    _write_positions(folder, [None if order is None else order[1] for order in orders])
    names = Names(*(None if order is None else order[0] for order in orders))
    publish_json(folder / COPY_RECORD, {"rows": names.rows, "columns": names.columns})
    return names


def _write_coded(given: TripleFiles, kind: str, folder: Path, memory: int) -> list[dict | None]:
    """Write the triples with numbers in place of names; the numbers of names, None of a side with whole numbers.

    A text table may hold whole numbers at first and names later on; then it is read once more.
    """
    named = [kind == "parquet" and _holds_names(given, field) for field in given.fields[:2]]
    while True:
        sides = [
            _NamesOfSide(given, field, kind, memory) if is_named else _WholeLabels(field, kind)
            for field, is_named in zip(given.fields, named)
        ]
        try:
            _write_sides(given, kind, folder / _CODED, sides)
        except _NotWhole as found:
            named[given.fields.index(found.field)] = True
        else:
            return [side.numbers for side in sides]


def _write_sides(given: TripleFiles, kind: str, path: Path, sides: list) -> None:
    import pyarrow
    from pyarrow import parquet

    number = _kind_of_values(given, kind)
    schema = pyarrow.schema(list(zip(COPY_FIELDS, [pyarrow.int64(), pyarrow.int64(), number])))
    with publishing(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for arrays in _arrays(given, kind):
            refuse_rounded_values(*arrays)
            labels = [side.codes(part) for side, part in zip(sides, arrays)]
            values = arrays[2].cast(number, safe=False)
            writer.write_table(pyarrow.table([*labels, values], schema=schema), row_group_size=BATCH)
    for side in sides:
        side.refuse_numbers()
        if given.shape is not None and side.numbers is not None:
            raise ValueError(
                f"with a shape, the column {shown(side.field)} must hold whole numbers from 0; it holds names"
            )


class _NotWhole(Exception):
    """A text table has a label that is no whole number."""

    def __init__(self, field: str):
        self.field = field


class _WholeLabels:
    """Labels that are whole numbers, as far as they have been seen."""

    numbers = None

    def __init__(self, field: str, kind: str):
        self.field, self._kind = field, kind

    def codes(self, labels) -> np.ndarray:
        import pyarrow
        import pyarrow.compute as pc

        labels = as_labels(labels, self.field, self._kind)
        if self._kind == "csv" and pc.all(pc.match_substring_regex(labels, _WHOLE)).as_py() is False:
            raise _NotWhole(self.field)
        return labels.cast(pyarrow.int64())

    def refuse_numbers(self) -> None:
        pass


class _NamesOfSide:
    """The names of rows or columns, numbered as they come; they must fit into memory."""

    def __init__(self, given: TripleFiles, field: str, kind: str, memory: int):
        self.field, self.numbers = field, {}
        self._kind, self._path, self._memory = kind, given.paths[0], memory
        self._text, self._size, self._counted = _TextOfLabels(field, kind), 0, 0

    def codes(self, labels) -> np.ndarray:
        import pyarrow

        labels = as_labels(labels, self.field, self._kind)
        if pyarrow.types.is_integer(labels.type):  # beside files with names
            labels = labels.cast(pyarrow.large_string())
        self._text.see(labels)
        codes = [numbered_names(chunk, self.numbers) for chunk in labels.chunks]
        self._refuse_many()
        return np.concatenate([np.zeros(0, np.int64), *codes])

    def _refuse_many(self) -> None:
        new = list(islice(reversed(self.numbers), len(self.numbers) - self._counted))
        self._size += sum(map(sys.getsizeof, new)) + _BYTES_OF_A_NAME * len(new)
        self._counted = len(self.numbers)
        remedy = "shorten the names, or put whole numbers in their place"
        what = f", the names in column {shown(self.field)},"
        refuse_beyond_memory(self._path, self._size, what, times=_TIMES_NAMES, limit=self._memory, remedy=remedy)

    def refuse_numbers(self) -> None:
        self._text.refuse_numbers()


class _TextOfLabels:
    """What the text of all labels of a column looks like, as far as they have been seen."""

    def __init__(self, field: str, kind: str):
        self._field = field
        self._may_be = dict.fromkeys((_DIGITS, _NUMBER), kind == "csv")

    def see(self, labels) -> None:
        import pyarrow.compute as pc

        for pattern in [pattern for pattern, may_be in self._may_be.items() if may_be]:
            self._may_be[pattern] = pc.all(pc.match_substring_regex(labels, pattern)).as_py() is not False

    def refuse_numbers(self) -> None:
        """Numbers that are not whole are no names."""
        if self._may_be[_NUMBER] and not self._may_be[_DIGITS]:
            raise ValueError(
                f"some labels of the column {shown(self._field)} are negative or not whole; write a letter before them"
                " if they are names"
            )


def _holds_names(given: TripleFiles, field: str) -> bool:
    """Whether the labels of some file are not numbers."""
    import pyarrow.types as kinds

    types = [opened(path).schema_arrow.field(field).type for path in given.paths]
    types = [one.value_type if kinds.is_dictionary(one) else one for one in types]
    return not all(kinds.is_integer(one) or kinds.is_floating(one) for one in types)


def _kind_of_values(given: TripleFiles, kind: str):
    import pyarrow
    import pyarrow.types as kinds

    if kind == "csv":
        return pyarrow.float64()
    types = [opened(path).schema_arrow.field(given.fields[2]).type for path in given.paths]
    return pyarrow.float32() if all(kinds.is_float32(one) for one in types) else pyarrow.float64()


def _arrays(given: TripleFiles, kind: str) -> Iterator[list]:
    """Row, column and value of some lines at a time, as chunked Arrow arrays."""
    import pyarrow

    for path in given.paths:
        read = _csv_batches(path, given) if kind == "csv" else batches(path, given.fields, BATCH)
        for batch in read:
            yield [pyarrow.chunked_array([batch.column(k)]) for k in range(3)]


def _csv_batches(path: Path, given: TripleFiles) -> Iterator:
    import pyarrow
    from pyarrow import csv

    begun, header, only = places_in_csv(path, given.dialect.begin(path), given.fields, given.header)
    if begun.loose or not begun.is_settled:
        raise ValueError(
            f"{printable(path)} holds numbers with units or groups of digits, which are read only in memory: write"
            " plain numbers, or say --engine memory if the table fits"
        )

    def read(number) -> Iterator:
        types = dict(zip(only, (pyarrow.string(), pyarrow.string(), number)))
        options = (
            csv.ReadOptions(column_names=[f"f{j}" for j in range(len(begun.lines[header]))], block_size=_CSV_BLOCK),
            csv.ParseOptions(delimiter=begun.delimiter, newlines_in_values=True),
            csv.ConvertOptions(
                column_types=types, null_values=MISSING, include_columns=only, decimal_point=begun.numerals.decimal
            ),
        )
        with opened_text(path, begun.encoding, begun.starts[header]) as file:
            yield from csv.open_csv(file, *options)

    looked, is_open = False, begun.may_have_grouped_points
    try:
        for batch in read(pyarrow.float64()):
            if not looked and reaches_exact(batch.column(2)):
                looked = True
                _refuse_rounded_text(read(pyarrow.string()))
            is_open = is_open and may_be_grouped(batch.column(2).to_numpy(zero_copy_only=False)[:, None])
            yield batch
        if is_open:
            _refuse_two_readings(path, read(pyarrow.string()))
    except pyarrow.ArrowInvalid as error:
        if "UTF8" in str(error):
            raise NotUtf8(path) from None
        raise ValueError(f"{printable(path)} cannot be read as a table of triples: {one_line(error)}") from None


def _refuse_two_readings(path: Path, batches) -> None:
    """Refuse values such as 1.234 in a file with semicolons, if nothing says that the point is decimal."""
    import pyarrow.compute as pc

    for batch in batches:
        at = pc.index(pc.match_substring_regex(batch.column(2), TWO_READINGS), True).as_py()
        if at >= 0:
            row, column, value = (str(batch.column(k)[at]) for k in range(3))
            raise ValueError(two_readings(path, value, f"the entry at row {shown(row)}, column {shown(column)}"))


def _refuse_rounded_text(batches) -> None:
    """Refuse whole numbers that float64 would change; record batches of row, column and value as text."""
    for batch in batches:
        at = first_rounded_text(batch.column(2))
        if at is not None:
            row, column, value = (str(batch.column(k)[at]) for k in range(3))
            raise ValueError(rounded_words(f"the entry at row {shown(row)}, column {shown(column)}", int(value)))


def _write_positions(folder: Path, positions: list[np.ndarray | None]) -> None:
    """The copy: positions in place of the numbers of names; None of a side whose labels stay."""
    import pyarrow
    from pyarrow import parquet

    coded, copy = folder / _CODED, folder / COPY
    if all(at is None for at in positions):
        if isinstance(folder, Url):
            copy.write_bytes(coded.read_bytes())
            coded.unlink()
        else:
            coded.replace(copy)
        return
    with publishing(copy) as file, parquet.ParquetWriter(file, opened(coded).schema_arrow) as writer:
        for batch in pieces(coded, COPY_FIELDS):
            labels = [
                batch.column(side) if at is None else pyarrow.array(at[batch.column(side).to_numpy()])
                for side, at in enumerate(positions)
            ]
            writer.write_batch(pyarrow.record_batch([*labels, batch.column(2)], schema=batch.schema))
    coded.unlink()
