"""Labels of triples: names and text tables become whole numbers in Parquet, which are sorted quickly.

Rows and columns are the different labels that occur, in increasing order: names by code point, whole numbers by size.
With a shape the labels are positions. It is the rule of `colonnade.read`, within a limit of memory; only the names
themselves must fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ._arguments import printable, shown
from ._numbers import rounded_words
from .checkpoints import publish_json, publishing, read_json
from .files._csv import MISSING, first_rounded_text, plain, reaches_exact
from .files._kinds import kind_of, needed_module, one_line
from .files._parquet import opened
from .files._triples import as_labels, places_in_csv, refuse_rounded_values, refuse_unknown
from .grouping import BATCH, Labels, Triples, different_values, label_range, pieces

_FIELDS = "row", "column", "value"
_COPY, _RECORD = "triples.parquet", "copied.json"
_WHOLE, _DIGITS = "^(0|[1-9][0-9]{0,17})$", "^[0-9]+$"
_NUMBER = r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"
_CSV_BLOCK = 1 << 24  # bytes of text that are parsed at a time


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
    header, delimiter
        Of csv files, as in `colonnade.read`.
    """

    paths: tuple[Path, ...]
    fields: tuple[str, str, str] = _FIELDS
    shape: tuple[int, int] | None = None
    header: object = "auto"
    delimiter: str | None = None


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
        for path in given.paths:
            refuse_unknown(path, given.fields, opened(path).schema_arrow.names)
        if _are_plain(given):
            return _opened(given.paths, given.fields, given.shape, Names(), folder, memory)
    names = _copied(given, kind, folder, memory)
    return _opened((folder / _COPY,), _FIELDS, given.shape, names, folder, memory)


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
    """Write the copy, if it is not there yet: labels as text at first, then numbers in place of names."""
    import pyarrow

    if (folder / _RECORD).exists():
        return Names(**read_json(folder / _RECORD))
    text, copy = folder / "text.parquet", folder / _COPY
    are_whole = _write_text(given, kind, text)
    if given.shape is not None and not all(are_whole):
        field = given.fields[are_whole.index(False)]
        raise ValueError(f"with a shape, the column {shown(field)} must hold whole numbers from 0; it holds names")
    sorting = pyarrow.large_string(), memory, folder / "sorting"
    raw = [None if whole else different_values([text], field, *sorting) for whole, field in zip(are_whole, _FIELDS)]
    orders = [None if one is None else _in_order(one, kind) for one in raw]
    _write_numbers(text, copy, raw, orders)
    text.unlink()
    names = Names(*(None if order is None else order[0] for order in orders))
    publish_json(folder / _RECORD, {"rows": names.rows, "columns": names.columns})
    return names


def _write_text(given: TripleFiles, kind: str, path: Path) -> list[bool]:
    """A Parquet file of the triples with labels as text or whole numbers; which sides are, or can be, whole numbers."""
    import pyarrow
    from pyarrow import parquet

    is_text = [kind == "csv" or _holds_names(given, field) for field in given.fields[:2]]
    kinds = [pyarrow.large_string() if text else pyarrow.int64() for text in is_text]
    number = _kind_of_values(given, kind)
    schema = pyarrow.schema(list(zip(_FIELDS, [*kinds, number])))
    texts = [_TextOfLabels(field, kind) for field in given.fields[:2]]
    with publishing(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for arrays in _arrays(given, kind):
            labels = [as_labels(part, field, kind).cast(to) for part, field, to in zip(arrays, given.fields, kinds)]
            for one, part, text in zip(texts, labels, is_text):
                if text:
                    one.see(part)
            refuse_rounded_values(*arrays)
            values = arrays[2].cast(number, safe=False)
            writer.write_table(pyarrow.table([*labels, values], schema=schema), row_group_size=BATCH)
    return [not text or one.is_whole() for text, one in zip(is_text, texts)]


class _TextOfLabels:
    """What the text of all labels of a column looks like, as far as they have been seen."""

    def __init__(self, field: str, kind: str):
        self._field = field
        self._may_be = dict.fromkeys((_WHOLE, _DIGITS, _NUMBER), kind == "csv")

    def see(self, labels) -> None:
        import pyarrow.compute as pc

        for pattern in [pattern for pattern, may_be in self._may_be.items() if may_be]:
            self._may_be[pattern] = pc.all(pc.match_substring_regex(labels, pattern)).as_py() is not False

    def is_whole(self) -> bool:
        if self._may_be[_NUMBER] and not self._may_be[_DIGITS]:
            raise ValueError(
                f"some labels of the column {shown(self._field)} are negative or not whole; write a letter before them"
                " if they are names"
            )
        return self._may_be[_WHOLE]


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
    for one in types:
        if not (kinds.is_integer(one) or kinds.is_floating(one) or kinds.is_boolean(one) or kinds.is_null(one)):
            raise TypeError(f"the column {shown(given.fields[2])} must hold numbers; it holds {one}")
    return pyarrow.float32() if all(kinds.is_float32(one) for one in types) else pyarrow.float64()


def _arrays(given: TripleFiles, kind: str) -> Iterator[list]:
    """Row, column and value of some lines at a time, as chunked Arrow arrays."""
    import pyarrow

    for path in given.paths:
        read = _csv_batches(path, given) if kind == "csv" else pieces(path, given.fields)
        for batch in read:
            yield [pyarrow.chunked_array([batch.column(k)]) for k in range(3)]


def _csv_batches(path: Path, given: TripleFiles) -> Iterator:
    import pyarrow
    from pyarrow import csv

    begun, header, only = places_in_csv(path, given.fields, given.header, given.delimiter)

    def read(number) -> Iterator:
        types = dict(zip(only, (pyarrow.string(), pyarrow.string(), number)))
        options = (
            csv.ReadOptions(column_names=[f"f{j}" for j in range(len(begun.lines[header]))], block_size=_CSV_BLOCK),
            csv.ParseOptions(delimiter=begun.delimiter, newlines_in_values=True),
            csv.ConvertOptions(column_types=types, null_values=MISSING, include_columns=only),
        )
        with open(path, "rb") as file:
            file.seek(begun.starts[header])
            yield from csv.open_csv(file, *options)

    looked = False
    try:
        for batch in read(pyarrow.float64()):
            if not looked and reaches_exact(batch.column(2)):
                looked = True
                _refuse_rounded_text(read(pyarrow.string()))
            yield batch
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{printable(path)} cannot be read as a table of triples: {one_line(error)}") from None


def _refuse_rounded_text(batches) -> None:
    """Refuse whole numbers that float64 would change; record batches of row, column and value as text."""
    for batch in batches:
        at = first_rounded_text(batch.column(2))
        if at is not None:
            row, column, value = (str(batch.column(k)[at]) for k in range(3))
            raise ValueError(rounded_words(f"the entry at row {shown(row)}, column {shown(column)}", int(value)))


def _in_order(raw, kind: str) -> tuple[list[str], np.ndarray]:
    """Names by code point, without the marks that guard them in csv, and the position of each raw one."""
    names = plain(raw.to_pylist()) if kind == "csv" else raw.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    position = np.empty(len(names), np.int64)
    position[order] = np.arange(len(names))
    return [names[k] for k in order], position


def _write_numbers(text: Path, copy: Path, raw, orders) -> None:
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import parquet

    number = opened(text).schema_arrow.field("value").type
    schema = pyarrow.schema(list(zip(_FIELDS, [pyarrow.int64(), pyarrow.int64(), number])))
    with publishing(copy) as file, parquet.ParquetWriter(file, schema) as writer:
        for batch in pieces(text, _FIELDS):
            labels = [
                batch.column(side).cast(pyarrow.int64())
                if raw[side] is None
                else pyarrow.array(orders[side][1][pc.index_in(batch.column(side), raw[side]).to_numpy()])
                for side in (0, 1)
            ]
            writer.write_batch(pyarrow.record_batch([*labels, batch.column(2)], schema=schema))
