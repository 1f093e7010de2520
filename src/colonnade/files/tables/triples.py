"""Triples: row, column and value of every known entry, in any order, in one file or several."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..._support.arguments import printable, shown
from ..._support.numbers import first_rounded, rounded_words
from ...data.frame_numbers import texts_of, whole_numbers
from ...data.observations import Observations
from .csv import MISSING, Beginning, plain
from .csv_cells import NotNumbers, place_in_words, read_columns
from .dialects import FOUND_OUT, DialectOptions, with_encoding
from .kinds import TIMES_TEXT, FileForm, kind_of, needed_module, refuse_beyond_memory
from .parquet import is_text, opened, table_with_text
from .styles import first_look, may_be_grouped, settled

BYTES_IN_MEMORY = 100  # Bytes of an entry while triples are read and sorted in memory.
DEFAULT_FIELDS = "row", "column", "value"


def read_triples(
    paths: list[Path], fields, shape, duplicates: str, header, dialect: DialectOptions, limit: float | None = None
) -> Observations:
    """Entries from files with three columns of these names.

    Rows and columns are the different labels that occur, in increasing order: names by code point, whole numbers by
    size. With `shape` the labels are positions, whole numbers from 0.
    """
    kinds = {kind_of(path) for path in paths}
    if not kinds <= {"csv", "parquet"} or len(kinds) > 1:
        raise ValueError(f"triples are read from csv or from Parquet files; got {', '.join(sorted(kinds))}")
    (kind,) = kinds
    parts, begun = [], []
    for path in paths:
        if kind == "csv":
            found, columns = _fields_of_csv(path, fields, header, dialect, limit)
            begun.append(found)
        else:
            columns = _fields_of_parquet(path, fields, limit)
        parts.append(columns)
    rows, row_names, whole_rows = _codes([part[0] for part in parts], fields[0], kind, shape and shape[0])
    columns, column_names, whole_columns = _codes([part[1] for part in parts], fields[1], kind, shape and shape[1])
    for part in parts:
        refuse_rounded_values(*part)
    values = _values([part[2] for part in parts])
    form = FileForm(kind, fields=tuple(fields), whole_labels=(whole_rows, whole_columns))
    if begun:
        written = begun[0]
        form = replace(form, delimiter=written.delimiter, decimal=_decimal(begun), encoding=written.encoding)
    return Observations.from_triplets(
        rows,
        columns,
        values,
        shape or (len(row_names), len(column_names)),
        duplicates=duplicates,
        row_names=_unless_counting(row_names),
        column_names=_unless_counting(column_names),
        origin=form,
    )


def _decimal(begun: list[Beginning]) -> str:
    """The decimal sign of several files: a comma if any of them has one."""
    return "," if any(one.numerals.decimal == "," for one in begun) else "."


def read_fields(path: Path, kind: str, fields) -> list:
    """Columns of a file as chunked Arrow arrays, in the order of `fields`; of a text table labels are text.

    All but the third are labels. The text of a Parquet file comes as dictionaries.
    """
    if kind == "csv":
        return _fields_of_csv(path, fields, "auto", FOUND_OUT)[1]
    return _fields_of_parquet(path, fields)


def _fields_of_parquet(path: Path, fields, limit: float | None = None) -> list:
    with opened(path) as file:
        refuse_unknown(path, fields, file.schema_arrow.names)
        refuse_other_types(file.schema_arrow, fields)
        n_lines = file.metadata.num_rows
    refuse_beyond_memory(path, 8.0 * len(fields) * n_lines, times=BYTES_IN_MEMORY / 24, limit=limit)
    table = table_with_text(path, fields, limit)
    return [table.column(name) for name in fields]


def refuse_other_types(schema, fields) -> None:
    """Refuse labels and values of a kind that none may have, before they are read."""
    import pyarrow.types as kinds

    types = [schema.field(name).type for name in fields]
    types = [kind.value_type if kinds.is_dictionary(kind) else kind for kind in types]
    for kind, name in zip(types[:2], fields):
        usual = is_text(kind) or kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_null(kind)
        if not (usual or kinds.is_temporal(kind) or kinds.is_decimal(kind)):
            raise TypeError(f"the column {shown(name)} must hold names or whole numbers; it holds {kind}")
    for kind, name in zip(types[2:], fields[2:]):
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind) or kinds.is_null(kind)):
            raise TypeError(f"the column {shown(name)} must hold numbers; it holds {kind}")


def _fields_of_csv(path: Path, fields, header, dialect: DialectOptions, limit: float | None = None) -> tuple:
    """The beginning of the file, and the columns."""
    refuse_beyond_memory(path, path.stat().st_size, times=TIMES_TEXT, limit=limit)
    return with_encoding(path, dialect, lambda begun: _read_fields(path, *places_in_csv(path, begun, fields, header)))


def _read_fields(path: Path, begun: Beginning, header, only: list[str]) -> tuple[Beginning, list]:
    text, failure = [name for name in only if name not in only[2:]], None
    if begun.is_settled or not only[2:]:
        try:
            table = read_columns(path, begun, header, text, only)
            if not _may_be_grouped(begun, table, only[2:]):
                return begun, [table.column(name) for name in only]
        except NotNumbers as error:
            failure = error
    cells = read_columns(path, begun, header, only, only)

    def place(row: int, name: str) -> str:
        return place_in_words(path, begun, header, cells, row, name, text)

    found = settled(path, begun, cells.select(only[2:]), MISSING, place)
    if failure is not None and (found.numerals, found.loose) == (begun.numerals, begun.loose):
        raise failure
    table = read_columns(path, found, header, text, only)
    return found, [table.column(name) for name in only]


def _may_be_grouped(begun: Beginning, table, values: list[str]) -> bool:
    """Whether points in a file with semicolons may stand between groups of digits."""
    if not begun.may_have_grouped_points:
        return False
    return all(may_be_grouped(table.column(name).to_numpy()[:, None]) for name in values)


def places_in_csv(path: Path, begun: Beginning, fields, header) -> tuple:
    """The beginning, whether it is a header, and the columns f0, f1, ... that hold the fields.

    They go by the names of the header; fields that are numbers are positions in a file without one. The beginning
    knows how the values are written, as far as its lines tell.
    """
    first = plain(begun.lines[0])
    positions = [str(j) for j in range(len(first))]
    if header == "auto":
        header = first == positions or not all(name.isdigit() for name in fields)
    refuse_unknown(path, fields, first if header else positions)
    if len(begun.lines) <= header:
        raise ValueError(f"{printable(path)} has a line of names and no row")
    at = [(first if header else positions).index(name) for name in fields]
    values = [[line[k] for k in at[2:] if k < len(line)] for line in begun.lines]
    seen = first_look(replace(begun, lines=values), begun.styles, frozenset(MISSING))
    loose = frozenset(f"f{at[2 + int(name[1:])]}" for name in seen.loose)
    return replace(seen, lines=begun.lines, loose=loose), header, [f"f{k}" for k in at]


def refuse_unknown(path: Path, fields, found) -> None:
    absent = [name for name in fields if name not in found]
    if absent:
        listed = ", ".join(shown(name) for name in found[:8]) + (", ..." if len(found) > 8 else "")
        raise ValueError(f"{printable(path)} has no column {', '.join(map(shown, absent))}; it has {listed}")
    twice = next((name for name in fields if found.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{printable(path)} has several columns {shown(twice)}; give them different names")


def refuse_rounded_values(rows, columns, values) -> None:
    """Refuse whole numbers that float64 would change; Arrow arrays with an element for every entry."""
    whole = whole_numbers(values.type, values)
    at = None if whole is None else first_rounded(whole)
    if at is not None:
        row, column = (
            label if isinstance(label, int) else shown(label) for label in (rows[at].as_py(), columns[at].as_py())
        )
        where = f"the entry at row {row}, column {column}"
        raise ValueError(rounded_words(where, whole[at]))


def _values(parts: list) -> np.ndarray:
    import pyarrow.types as kinds

    dtype = "float32" if all(kinds.is_float32(part.type) for part in parts) else "float64"
    return np.concatenate([part.cast(dtype, safe=False).to_numpy() for part in parts])


def _codes(parts: list, field: str, kind: str, length: int | None) -> tuple:
    """Positions of labels, shape (nnz,); the labels by position, or None if the length is given; whether whole."""
    pyarrow = needed_module("pyarrow", "cli")
    labels = [as_labels(part, field, kind) for part in parts]
    if kind == "csv":
        labels = whole_if_all_are(labels, field)
    if len({part.type for part in labels}) > 1:  # One file has numbers and another has names.
        labels = [part.cast(pyarrow.large_string()).dictionary_encode() for part in labels]
    joined = pyarrow.chunked_array([chunk for part in labels for chunk in part.chunks], labels[0].type)
    if len(joined) == 0:
        raise ValueError(f"the column {shown(field)} has no entry")
    whole = pyarrow.types.is_integer(joined.type)
    if length is not None:
        if not whole:
            raise ValueError(f"with a shape, the column {shown(field)} must hold whole numbers from 0; it holds names")
        return joined.to_numpy(), None, True
    codes, found = _codes_of_numbers(joined.to_numpy()) if whole else _codes_of_names(joined, kind)
    return codes, found, whole


def as_labels(column, field: str, kind: str):
    """Labels as chunked int64 or text; missing, negative and broken ones are refused with their count.

    Text in dictionaries stays in them.
    """
    import pyarrow
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    in_dictionary = kinds.is_dictionary(column.type) and is_text(column.type.value_type)
    if kinds.is_dictionary(column.type) and not in_dictionary:
        column = column.cast(column.type.value_type)
    missing = column.null_count
    if in_dictionary and any(chunk.dictionary.null_count for chunk in column.chunks):
        missing = sum(label is None for label in texts_of(column))
    if kind == "csv":
        missing += pc.sum(pc.is_in(column, pyarrow.array(MISSING))).as_py() or 0
    if kinds.is_floating(column.type):
        missing += pc.sum(pc.is_nan(column)).as_py() or 0
    if missing:
        raise ValueError(f"{missing:,} cells of the column {shown(field)} are empty; every entry needs its place")
    if kinds.is_floating(column.type):
        _refuse_some(pc.not_equal(column, pc.floor(column)), column, field, "not whole; turn names into text")
        _refuse_some(pc.greater(pc.abs(column), 2.0**53), column, field, "too large for a whole number")
        column = column.cast(pyarrow.int64())
    if kinds.is_integer(column.type):
        if kinds.is_uint64(column.type):
            _refuse_some(pc.greater(column, 2**63 - 1), column, field, "larger than 2^63 - 1")
        column = column.cast(pyarrow.int64())
        _refuse_some(pc.less(column, 0), column, field, "negative")
        return column
    if in_dictionary:
        return column.cast(pyarrow.dictionary(pyarrow.int32(), column.type.value_type))
    if is_text(column.type):
        return column.cast(pyarrow.large_string())
    if kinds.is_temporal(column.type) or kinds.is_decimal(column.type):
        return column.cast(pyarrow.string()).cast(pyarrow.large_string())
    raise TypeError(f"the column {shown(field)} must hold names or whole numbers; it holds {column.type}")


def _refuse_some(wrong, column, field: str, why: str) -> None:
    import pyarrow.compute as pc

    at = pc.indices_nonzero(wrong)
    if len(at):
        raise ValueError(
            f"{len(at):,} labels of the column {shown(field)} are {why}, the first is {column[at[0].as_py()]}"
        )


def whole_if_all_are(labels: list, field: str) -> list:
    """Text of digits only, without leading zeros, is whole numbers; other numbers are refused, as they are no names."""
    import pyarrow
    import pyarrow.compute as pc

    def all_match(pattern):
        return all(pc.all(pc.match_substring_regex(part, pattern)).as_py() is not False for part in labels)

    if all_match("^(0|[1-9][0-9]{0,17})$"):
        return [part.cast(pyarrow.int64()) for part in labels]
    if not all_match("^[0-9]+$") and all_match(r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"):
        for part in labels:
            broken = pc.invert(pc.match_substring_regex(part, "^[0-9]+$"))
            _refuse_some(broken, part, field, "negative or not whole; write a letter before them if they are names")
    return labels


def _codes_of_numbers(labels: np.ndarray) -> tuple[np.ndarray, list | range]:
    top = int(labels.max()) + 1
    if top > 4 * labels.size + 1_000_000:  # The labels are too scattered for a table.
        found, codes = np.unique(labels, return_inverse=True)
        return codes, found.tolist()
    occurs = np.zeros(top, bool)
    occurs[labels] = True
    found = np.flatnonzero(occurs)
    if found.size == top:
        return labels, range(top)  # Positions: there are no names.
    position = np.cumsum(occurs) - 1
    return position[labels], found.tolist()


def _codes_of_names(labels, kind: str) -> tuple[np.ndarray, list]:
    numbers: dict[str, int] = {}
    codes = np.concatenate([numbered_names(chunk, numbers) for chunk in labels.chunks])
    names, position = in_order(list(numbers), kind)
    return position[codes], names


def numbered_names(labels, numbers: dict[str, int]) -> np.ndarray:
    """The number of every label, shape (k,); names that `numbers` does not have yet are added to it."""
    coded = labels if hasattr(labels, "dictionary") else labels.dictionary_encode()
    used, codes = np.unique(coded.indices.to_numpy(), return_inverse=True)  # A dictionary may have unused entries.
    names = coded.dictionary.take(used).to_pylist()
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)[codes]


def in_order(names: list[str], kind: str) -> tuple[list[str], np.ndarray]:
    """Names by code point, without the marks that guard them in csv, and the position of each of `names`."""
    names = plain(names) if kind == "csv" else names
    order = sorted(range(len(names)), key=names.__getitem__)
    position = np.empty(len(names), np.int64)
    position[order] = np.arange(len(names))
    return [names[k] for k in order], position


def _unless_counting(labels) -> list[str] | None:
    """Labels as names; None if they only count from 0."""
    if labels is None or isinstance(labels, range):
        return None
    return [str(label) for label in labels]
