"""Filled matrices as text and as Parquet, wide or as triples."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import count, groupby
from pathlib import Path

import numpy as np

from ...data.frames import array_of_column, titles_with
from .csv import guarded, guarded_cell
from .kinds import FileForm, blocks_of, kind_of_name, needed_module
from .parquet import pandas_metadata
from .text_writing import Cells, lines_at_a_time, longest_text, write_lines, write_text, write_titles


def write_csv(M, row_names, column_names, form: FileForm, path: Path) -> None:
    """A wide text table with the columns that were set aside; what is not known is empty."""
    pyarrow = needed_module("pyarrow", "cli")
    parts, titles = _parts(M, form), None
    if column_names is not None or (row_names is not None and form.header):
        titles = titles_of(M.shape[1], column_names, form)
    if row_names is not None:
        parts.insert(0, Cells(pyarrow.array([guarded(name) for name in row_names], pyarrow.large_string())))
        titles = titles if titles is None or form.corner is None else [form.corner, *titles]
    write_text(parts, titles, form, path)


def _parts(M, form: FileForm) -> list[Cells]:
    """The columns of a text table: runs of numbers of one kind and unit, and those that were set aside."""
    n, aside = M.shape[1], form.aside
    places = range(n) if aside is None else aside.matrix_places(n)
    found = {}
    if aside is not None:  # Cells of a text table have no types.
        as_cells = partial(_as_cells, guard=guarded if aside.types else guarded_cell)
        found = {place: Cells(as_cells(column)) for place, column in zip(aside.places, aside.columns.columns)}
    alike = [(form.whole.get(k), form.units.get(k, ("", "")), place - k) for k, place in enumerate(places)]
    for (kind, unit, shift), group in groupby(range(n), alike.__getitem__):
        run = list(group)
        found[run[0] + shift] = Cells(M[:, run[0] : run[-1] + 1], kind, unit)
    return [found[place] for place in sorted(found)]


def with_aside(M, form: FileForm) -> list:
    """The columns of a file as Arrow arrays: numbers, whole ones where they were, and those that were set aside."""
    columns = [array_of_column(column) for column in M.T]
    for k, kind in form.whole.items():
        columns[k] = columns[k].cast(kind, safe=False)
    if form.aside is None:
        return columns
    places = form.aside.matrix_places(len(columns))
    found = dict(zip(places, columns)) | dict(zip(form.aside.places, form.aside.columns.columns))
    return [found[k] for k in range(len(found))]


def titles_of(count: int, names, form: FileForm) -> list[str]:
    """Names of all columns of a file with `count` columns of numbers; positions where they have none."""
    if form.aside is not None:
        return titles_with(form.aside, names, count)
    return [str(j) for j in range(count)] if names is None else list(names)


def _as_cells(column, guard):
    """A column for a text table: numbers and Booleans as they are, all else as guarded text in dictionaries."""
    import pyarrow
    import pyarrow.types as kinds

    kind = column.type
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind) or kinds.is_null(kind):
        return column
    if not kinds.is_dictionary(kind):
        try:
            column = column.cast(pyarrow.large_string())
        except (pyarrow.ArrowException, NotImplementedError):
            column = pyarrow.array([None if x is None else str(x) for x in column.to_pylist()], pyarrow.large_string())
        column = column.dictionary_encode()
    chunks = column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]
    cells = [
        pyarrow.DictionaryArray.from_arrays(
            chunk.indices, _guarded(chunk.dictionary.cast(pyarrow.large_string()), guard)
        )
        for chunk in chunks
    ]
    return pyarrow.chunked_array(cells)


def write_parquet(M, row_names, column_names, form: FileForm, path: Path) -> None:
    """A wide table with the columns that were set aside; row names are the columns that they were, or the first."""
    pyarrow = needed_module("pyarrow", "cli")
    from pyarrow import parquet

    names = titles_of(M.shape[1], column_names, form)
    columns = with_aside(M, form)
    table = pyarrow.Table.from_arrays(columns, names=names)
    if form.index is not None:
        for k in reversed(range(form.index.num_columns)):
            table = table.add_column(0, form.index.field(k), form.index.column(k))
    elif row_names is not None:
        title = next(title for title in ("_" * k + "name" for k in count()) if title not in names)
        table = table.add_column(0, title, pyarrow.array(list(row_names)))
    aside = [] if form.aside is None else form.aside.places
    numbers = [name for k, name in enumerate(names) if k not in aside]
    floats = [name for k, name in enumerate(numbers) if k not in form.whole]
    table = table.replace_schema_metadata(_pandas_note(form.metadata, floats, M.dtype))
    schema, first = table.schema, table.num_columns - len(columns)
    kinds = dict(enumerate(form.index_types))
    if form.aside is not None:
        kinds |= {first + k: kind for k, kind in zip(form.aside.places, form.aside.types)}
    for k, kind in kinds.items():
        schema = schema.set(k, schema.field(k).with_type(kind))
    length = 0 if row_names is None else mean_length(row_names)
    lines = lines_at_a_time(length + sum(longest_text(table.column(first + k)) for k in aside))
    with open(path, "wb") as file, parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer:
        for lo in range(0, table.num_rows, lines):
            writer.write_table(table.slice(lo, lines).cast(schema))


def mean_length(names) -> float:
    """Characters of a name on average."""
    return sum(map(len, names)) / max(1, len(names))


def _pandas_note(metadata, names, dtype) -> dict | None:
    """What pandas noted of the input, so that it finds its index again; the numbers are floats now."""
    note = pandas_metadata(metadata)
    if not note:
        return None
    known = set(names)
    for column in note.get("columns", []):
        if column.get("field_name", column.get("name")) in known:
            column.update(pandas_type=str(dtype), numpy_type=str(dtype), metadata=None)
    return {"pandas": json.dumps(note)}


def write_triples(completion, form: FileForm, path: Path, finish=None) -> None:
    """All entries as row, column and value, by columns; those that are not known are left out.

    `finish` is called with some columns and the position of the first of them, and returns what is written of them.
    """
    pyarrow = needed_module("pyarrow", "cli")
    from pyarrow import parquet

    o = completion.observations
    kinds = [pyarrow.int64() if whole else pyarrow.string() for whole in form.whole_labels]
    names, sizes = form.oriented((o.row_names, o.column_names)), form.oriented(o.shape)
    labels = [_labels(*side) for side in zip(names, sizes, kinds)]
    value = pyarrow.from_numpy_dtype(o.values.dtype)
    assert form.fields is not None, "the form is of triples"
    schema = pyarrow.schema(list(zip(form.fields, [*kinds, value])))
    if form.kind == "csv":
        labels = [label if whole else _guarded(label) for label, whole in zip(labels, form.whole_labels)]
    with open(path, "wb") as file:
        if form.kind == "csv":
            write_titles(file, form.fields, form, path)
            writer, write = nullcontext(), partial(write_lines, file, form=form, path=path)
        else:
            writer = parquet.ParquetWriter(file, schema, write_page_checksum=True)
            write = writer.write_table
        with writer:
            lines = lines_at_a_time(sum(mean_length(one) for one in names if one is not None))
            for lo, block in blocks_of(completion):
                block = block if finish is None else finish(block, lo)
                columns, rows = np.nonzero(~np.isnan(block.T))
                for begin in range(0, rows.size, lines):
                    at = rows[begin : begin + lines], columns[begin : begin + lines]
                    write(_triples_of(block[at], at[0], at[1] + lo, labels, form.transposed, schema))


def _labels(names, size: int, kind):
    """Labels of rows or columns by position, in the type that they had."""
    import pyarrow

    counted = np.arange(size) if names is None else None
    return pyarrow.array(counted if names is None else list(names)).cast(kind)


def _guarded(labels, guard=guarded):
    import pyarrow

    return pyarrow.array([guard(label) for label in labels.to_pylist()], pyarrow.large_string())


def _triples_of(values, rows, columns, labels, transposed: bool, schema):
    """An Arrow table of some filled entries."""
    import pyarrow

    places = (columns, rows) if transposed else (rows, columns)
    return pyarrow.Table.from_arrays([*(label.take(at) for label, at in zip(labels, places)), values], schema=schema)


def write_labelled(labels, numbers, titles, path: Path, working: Path, like: FileForm | None = None) -> None:
    """Columns of labels, then of numbers, as the kind of file that `path` names, to `working`; NaN is empty.

    A text table has the delimiter, the decimal sign and the encoding of the form `like`.
    """
    pyarrow = needed_module("pyarrow", "cli")
    from pyarrow import parquet

    numbers = [pyarrow.array(x, from_pandas=True) for x in numbers]
    if kind_of_name(path) == "parquet":
        with open(working, "wb") as file:
            parquet.write_table(pyarrow.table([*labels, *numbers], names=titles), file, write_page_checksum=True)
    else:
        labels = [each_name(part, guarded) for part in labels]
        like = like if like is not None and like.kind == "csv" else FileForm("csv")
        write_text([Cells(column) for column in (*labels, *numbers)], titles, with_delimiter_for(path, like), working)


def with_delimiter_for(path: Path, form: FileForm) -> FileForm:
    """The form with the delimiter that the ending of a text table asks for."""
    if path.suffix.lower() in (".tsv", ".tab"):
        return replace(form, delimiter="\t")
    if path.suffix.lower() == ".csv" and form.delimiter == "\t":
        return replace(form, delimiter="," if form.decimal == "." else ";")
    return form


def each_name(labels, change):
    """Names changed one by one; whole numbers stay."""
    import pyarrow

    if pyarrow.types.is_integer(labels.type):
        return labels
    return pyarrow.chunked_array([[change(text) for text in labels.to_pylist()]], pyarrow.large_string())
