"""Parquet files, wide: a column of the file is a column of the matrix."""

from __future__ import annotations

import json
import os
from pathlib import Path

from .._arguments import printable
from ..frames import matrix_of_frame
from ..observations import Observations
from ._kinds import FileForm, needed_module, one_line, refuse_beyond_memory


def read_parquet(path: Path, row_names) -> Observations:
    """A wide table of numbers, null is unseen; the index of pandas, or a first column of text, names the rows."""
    with opened(path) as file:
        schema = file.schema_arrow
        refuse_beyond_memory(path, file.metadata.num_rows * len(schema) * 8.0)
        if not file.metadata.num_rows or not len(schema):
            raise ValueError(f"{printable(path)} has {file.metadata.num_rows:,} rows and {len(schema):,} columns")
        index = _index_columns(schema, row_names)
        table = checked(path, file.read)
    names = table.select(index)
    values = table.select([k for k in range(len(schema)) if k not in index])
    form = FileForm("parquet", index=names if index else None, metadata=schema.metadata)
    rows = [", ".join(map(str, labels)) for labels in zip(*(c.to_pylist() for c in names.columns))] if index else None
    return Observations.from_dense(
        matrix_of_frame(values), row_names=rows, column_names=values.column_names, origin=form
    )


def opened(path: Path, **options):
    """The file, if it is one.

    Arrow is given an open file, not a path: it would take some paths for addresses, and others are not text.
    """
    pyarrow = needed_module("pyarrow", "cli")
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(pyarrow.OSFile(os.fsencode(path)), **options)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{printable(path)} is damaged or not Parquet: {one_line(error)}") from error


def checked(path: Path, read, *arguments, **options):
    """What `read` returns; a damaged page is an error that names the file."""
    import pyarrow

    try:
        return read(*arguments, **options)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{printable(path)} is damaged: {one_line(error)}") from error


def _index_columns(schema, row_names) -> list[int]:
    """Which columns are names of rows; by position, because another column may be called the same."""
    import pyarrow.types as kinds

    if row_names is False:
        return []
    stored = pandas_metadata(schema.metadata).get("index_columns", [])
    found = [schema.names.index(name) for name in stored if isinstance(name, str) and name in schema.names]
    if found:
        return found
    kind = schema[0].type
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    is_text = kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)
    return [0] if row_names is True or is_text else []


def pandas_metadata(metadata) -> dict:
    """What pandas has noted in the file; empty if it did not write it."""
    try:
        content = json.loads((metadata or {}).get(b"pandas", b"{}"))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
