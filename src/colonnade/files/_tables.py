"""Filled matrices as text and as Parquet, wide or as triples."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import numpy as np

from ..frames import table_of
from ._csv import guarded
from ._kinds import FileForm, blocks_of, kind_of_name, needed_module
from ._parquet import TEXT_BYTES, pandas_metadata


def write_csv(M, row_names, column_names, form: FileForm, path: Path) -> None:
    """A wide text table; what is not known is empty."""
    pyarrow = needed_module("pyarrow", "cli")
    table = table_of(M, map(str, range(M.shape[1])))
    titles = None if column_names is None else list(column_names)
    if titles is None and row_names is not None and form.header:
        titles = [str(j) for j in range(M.shape[1])]
    if row_names is not None:
        table = table.add_column(0, "", pyarrow.array([guarded(name) for name in row_names]))
        titles = titles if titles is None or form.corner is None else [form.corner, *titles]
    write_text(table, titles, form.delimiter, path)


def write_text(table, titles, delimiter: str, path: Path) -> None:
    """An Arrow table with a line of titles, all of which may be anything."""
    from pyarrow import csv

    options = csv.WriteOptions(include_header=False, delimiter=delimiter)
    with open(path, "wb") as file:
        if titles is not None:
            file.write((delimiter.join(_quoted(guarded(title)) for title in titles) + "\n").encode())
        csv.write_csv(table, file, options)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def write_parquet(M, row_names, column_names, form: FileForm, path: Path) -> None:
    """A wide table; row names are again the columns that they were, or the first."""
    pyarrow = needed_module("pyarrow", "cli")
    from pyarrow import parquet

    names = [str(j) for j in range(M.shape[1])] if column_names is None else list(column_names)
    table = table_of(M, names)
    if form.index is not None:
        for k in reversed(range(form.index.num_columns)):
            table = table.add_column(0, form.index.field(k), form.index.column(k))
    elif row_names is not None:
        title = next(title for title in ("_" * k + "name" for k in count()) if title not in names)
        table = table.add_column(0, title, pyarrow.array(list(row_names)))
    table = table.replace_schema_metadata(_pandas_note(form.metadata, names, M.dtype))
    schema = table.schema
    for k, kind in enumerate(form.index_types):
        schema = schema.set(k, schema.field(k).with_type(kind))
    lines = _lines_at_a_time(0 if row_names is None else mean_length(row_names))
    with open(path, "wb") as file, parquet.ParquetWriter(file, schema, write_page_checksum=True) as writer:
        for lo in range(0, table.num_rows, lines):
            writer.write_table(table.slice(lo, lines).cast(schema))


def mean_length(names) -> float:
    """Characters of a name on average."""
    return sum(map(len, names)) / max(1, len(names))


def _lines_at_a_time(length: float) -> int:
    """How many lines with so many characters of text are written at a time."""
    return int(min(max(TEXT_BYTES / max(1.0, length), 1), 1 << 20))


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


def write_triples(completion, form: FileForm, path: Path) -> None:
    """All entries as row, column and value, by columns; those that are not known are left out."""
    pyarrow = needed_module("pyarrow", "cli")
    from pyarrow import csv, parquet

    o = completion.observations
    kinds = [pyarrow.int64() if whole else pyarrow.string() for whole in form.whole_labels]
    names, sizes = form.oriented((o.row_names, o.column_names)), form.oriented(o.shape)
    labels = [_labels(*side) for side in zip(names, sizes, kinds)]
    value = pyarrow.from_numpy_dtype(o.values.dtype)
    schema = pyarrow.schema(list(zip(form.fields, [*kinds, value])))
    if form.kind == "csv":
        titles = [_quoted(guarded(title)) for title in form.fields]
        labels = [label if whole else _guarded(label) for label, whole in zip(labels, form.whole_labels)]
    with open(path, "wb") as file:
        if form.kind == "csv":
            file.write((form.delimiter.join(titles) + "\n").encode())
            options = csv.WriteOptions(include_header=False, delimiter=form.delimiter)
            writer = csv.CSVWriter(file, schema, write_options=options)
        else:
            writer = parquet.ParquetWriter(file, schema, write_page_checksum=True)
        with writer:
            lines = _lines_at_a_time(sum(mean_length(one) for one in names if one is not None))
            for lo, block in blocks_of(completion):
                columns, rows = np.nonzero(~np.isnan(block.T))
                for begin in range(0, rows.size, lines):
                    at = rows[begin : begin + lines], columns[begin : begin + lines]
                    writer.write_table(_triples_of(block[at], at[0], at[1] + lo, labels, form.transposed, schema))


def _labels(names, size: int, kind):
    """Labels of rows or columns by position, in the type that they had."""
    import pyarrow

    counted = np.arange(size) if names is None else None
    return pyarrow.array(counted if names is None else list(names)).cast(kind)


def _guarded(labels):
    import pyarrow

    return pyarrow.array([guarded(label) for label in labels.to_pylist()])


def _triples_of(values, rows, columns, labels, transposed: bool, schema):
    """An Arrow table of some filled entries."""
    import pyarrow

    places = (columns, rows) if transposed else (rows, columns)
    return pyarrow.Table.from_arrays([*(label.take(at) for label, at in zip(labels, places)), values], schema=schema)


def write_labelled(labels, numbers, titles, path: Path, working: Path) -> None:
    """Columns of labels, then of numbers, as the kind of file that `path` names, to `working`; NaN is empty."""
    pyarrow = needed_module("pyarrow", "cli")
    from pyarrow import parquet

    numbers = [pyarrow.array(x, from_pandas=True) for x in numbers]
    if kind_of_name(path) == "parquet":
        with open(working, "wb") as file:
            parquet.write_table(pyarrow.table([*labels, *numbers], names=titles), file, write_page_checksum=True)
    else:
        labels = [each_name(part, guarded) for part in labels]
        table = pyarrow.table([*labels, *numbers], names=[str(k) for k in range(len(titles))])
        write_text(table, titles, "\t" if path.suffix.lower() in (".tsv", ".tab") else ",", working)


def each_name(labels, change):
    """Names changed one by one; whole numbers stay."""
    import pyarrow

    if pyarrow.types.is_integer(labels.type):
        return labels
    return pyarrow.chunked_array([[change(text) for text in labels.to_pylist()]], pyarrow.large_string())
