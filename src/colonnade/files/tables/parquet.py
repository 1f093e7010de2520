"""Parquet files, wide: a column of the file is a column of the matrix."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..._support.arguments import printable, shown
from ..._support.storage import RangeFile, Url
from ...data.frame_numbers import matrix_of_frame, refuse_columns, texts_of
from ...data.observations import Observations
from ...data.set_aside import named_columns, other_kind, split
from .csv import has_repeats
from .kinds import TIMES_TABLE, TIMES_TEXT, FileForm, needed_module, one_line, refuse_beyond_memory, refuse_one_column
from .partitions import PartitionedFile, partition_of

TEXT_BYTES = 1 << 26  # Bytes of text that are decoded at a time, about 64 MB.
_LARGE_GROUP = 1 << 26  # Bytes of a row group from which it is read piece by piece.
_FEW_LINES = 64  # Lines that are decoded at a time where the footer does not say how long the text is.


def read_parquet(path: Path, row_names, limit: float | None = None, *, ignore=(), only=None) -> Observations:
    """A wide table, null is unseen; the index of pandas, or a first column of text, names the rows.

    Other columns of text, dates and Booleans are set aside, as are those that `ignore` names.
    """
    with opened(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    if not n_rows or not len(schema):
        raise ValueError(f"{printable(path)} has {n_rows:,} rows and {len(schema):,} columns")
    index = _index_columns(schema, row_names, {str(name) for name in named_columns(ignore) + named_columns(only)})
    if index == [0] and row_names == "auto" and not _stored_index(schema) and _repeats(path, schema.names, limit):
        index = []
    others = [k for k in range(len(schema)) if k not in index]
    fields = [schema.field(k) for k in others]
    _refuse_other_columns(fields)
    used, aside = split([one.name for one in fields], [other_kind(one.type) for one in fields], ignore, only)
    refuse_beyond_memory(path, n_rows * len(used) * 8.0, times=TIMES_TABLE, limit=limit)
    kept = [] if aside is None else [others[k] for k in aside.places]
    names, columns, values = _tables(path, schema, index, kept, limit)
    if aside is not None:
        refuse_one_column(path, values.column_names, aside)
        aside = replace(aside, columns=columns, types=tuple(schema.field(k).type for k in kept))
    form = FileForm(
        "parquet",
        metadata=schema.metadata,
        index=names,
        index_types=tuple(schema.field(k).type for k in index),
        aside=aside,
        whole={k: kind for k, kind in enumerate(values.schema.types) if _is_whole(kind)},
    )
    return Observations.from_dense(
        matrix_of_frame(values, can_ignore=True),
        row_names=_row_names(path, names, limit) if index else None,
        column_names=values.column_names,
        origin=form,
    )


def _is_whole(kind) -> bool:
    import pyarrow.types as kinds

    return kinds.is_integer(kind)


def _tables(path: Path, schema, index: list[int], aside: list[int], limit: float | None) -> tuple:
    """The columns at `index`, those at `aside` and all others as Arrow tables, the first two with dictionaries.

    The first two are None where there are none.
    """
    apart, every = index + aside, schema.names  # Arrow makes this list anew whenever it is asked for.
    titles = [every[k] for k in apart]
    left_out = set(apart)
    others = [k for k in range(len(every)) if k not in left_out]
    counts = Counter(every)
    if any(counts[title] > 1 for title in titles):  # Arrow chooses columns by name: read all of them.
        with by_pieces(path, titles) as pieces:
            read = checked(path, pieces.read, use_threads=pieces.metadata.num_rows > len(others))
        return tuple(read.select(some) if some else None for some in (index, aside, others))
    names = table_with_text(path, titles[: len(index)], limit) if index else None
    remedy = "leave these columns out of the file"
    columns = table_with_text(path, titles[len(index) :], limit, remedy) if aside else None
    wanted = list(dict.fromkeys(every[k] for k in others)) if apart else None
    with by_pieces(path) as pieces:
        values = checked(path, pieces.read, columns=wanted, use_threads=pieces.metadata.num_rows > len(others))
    return names, columns, values


def _refuse_other_columns(fields) -> None:
    """Refuse columns of bytes, lists and the like before the table is read, because they may be of any size."""
    wrong = [field for field in fields if other_kind(field.type) is not None and not _can_be_aside(field.type)]
    refuse_columns([(one.name, one.type, None) for one in wrong], len(fields))


def _can_be_aside(kind) -> bool:
    """Whether columns of a type are set aside: text, also in dictionaries, dates, times and Booleans."""
    import pyarrow.types as kinds

    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    return is_text(kind) or kinds.is_temporal(kind) or kinds.is_boolean(kind) or other_kind(kind) is None


def _row_names(path: Path, names, limit: float | None) -> list[str]:
    """The labels of every row in one text; equal ones are one object, so that long ones are held once."""
    joined, held, size = {}, [], 0
    for labels in zip(*(texts_of(column) for column in names.columns)):
        if labels not in joined:
            joined[labels] = ", ".join(map(str, labels))
            size += len(joined[labels])
            if size > TEXT_BYTES:
                what = f", the names of rows in column {shown(names.column_names[0])},"
                refuse_beyond_memory(path, size, what, times=TIMES_TEXT, limit=limit, remedy="shorten them")
        held.append(joined[labels])
    return held


def is_text(kind) -> bool:
    """Whether a column holds text, of any length."""
    import pyarrow.types as kinds

    return kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)


def table_with_text(path: Path, fields, limit: float | None = None, remedy: str = "shorten the names"):
    """Columns of a file as an Arrow table, with dictionaries in place of text; bytes are counted as they come."""
    import pyarrow

    parts, size = [], 0
    for batch in batches(path, fields):
        parts.append(batch)
        size += batch.nbytes
        what = f", {'column' if len(fields) == 1 else 'columns'} {', '.join(map(shown, fields))},"
        refuse_beyond_memory(path, size, what, times=TIMES_TEXT, limit=limit, remedy=remedy)
    return pyarrow.Table.from_batches(parts).select(list(fields)) if parts else opened(path).read(columns=list(fields))


def batches(path: Path, fields, most: int = 1 << 20) -> Iterator:
    """Columns of a file as record batches, with dictionaries in place of text, so that a name is held once.

    A small file may hold much text: a dictionary repeats it, and delta encodings share its beginnings. So as many lines
    are read at a time as have not too much of it.
    """
    import pyarrow

    file = opened(path)
    metadata, schema = file.metadata, file.schema_arrow
    text = [name for name in fields if is_text(schema.field(name).type)]
    places = [j for j, name in enumerate(metadata.schema.names) if name in text]
    chunks = [metadata.row_group(k).column(j) for k in range(metadata.num_row_groups) for j in places]
    shared = {one.path_in_schema for one in chunks if any(word.startswith("DELTA") for word in one.encodings)}
    longest = max((one.total_uncompressed_size / max(1, one.num_values) for one in chunks), default=1)
    lines = _FEW_LINES if shared else int(min(max(TEXT_BYTES / max(1.0, longest), 1), most))
    reader = by_pieces(path, [name for name in text if name not in shared]).iter_batches(lines, columns=list(fields))
    while (batch := checked(path, next, reader, None)) is not None:
        columns = [batch.column(name).dictionary_encode() if name in shared else batch.column(name) for name in fields]
        yield pyarrow.record_batch(columns, names=list(fields))


def by_pieces(path: Path, text=()):
    """A Parquet file that is read by row groups or, where these are large, by pages.

    The columns `text` are read as dictionaries.
    """
    metadata = opened(path).metadata
    largest = max((metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups)), default=0)
    size = 1 << 22 if largest > _LARGE_GROUP else 0
    return opened(path, read_dictionary=list(text), pre_buffer=False, buffer_size=size)


def opened(path: Path, **options):
    """The file, if it is one.

    Arrow is given an open file, not a path: it would take some paths for addresses, and others are not text.
    """
    pyarrow = needed_module("pyarrow", "cli")
    from pyarrow import parquet

    try:
        source = pyarrow.PythonFile(RangeFile(path)) if isinstance(path, Url) else pyarrow.OSFile(os.fsencode(path))
        file = parquet.ParquetFile(source, **options)
        partition = partition_of(path)
        return file if partition is None else PartitionedFile(file, path, partition)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(path, Url) and isinstance(error, OSError):
            raise
        raise ValueError(f"{printable(path)} is damaged or not Parquet: {one_line(error)}") from error


def checked(path: Path, read, *arguments, **options):
    """What `read` returns; a damaged page is an error that names the file."""
    import pyarrow

    try:
        return read(*arguments, **options)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(path, Url) and isinstance(error, OSError):
            raise
        raise ValueError(f"{printable(path)} is damaged: {one_line(error)}") from error


def _index_columns(schema, row_names, named: set[str]) -> list[int]:
    """Which columns are names of rows; by position, because another column may be called the same.

    A first column of text is not, if it is among the columns that `ignore` or `only` has named.
    """
    import pyarrow.types as kinds

    if row_names is False:
        return []
    found = _stored_index(schema)
    if found:
        return found
    kind = schema[0].type
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    return [0] if row_names is True or (is_text(kind) and schema.names[0] not in named) else []


def _stored_index(schema) -> list[int]:
    """The columns that pandas has written as the index."""
    stored = pandas_metadata(schema.metadata).get("index_columns", [])
    return [schema.names.index(name) for name in stored if isinstance(name, str) and name in schema.names]


def _repeats(path: Path, names: list[str], limit: float | None) -> bool:
    """Whether a text stands in several rows of the first column, so that it does not name them."""
    if names.count(names[0]) > 1:  # Arrow chooses columns by name.
        return False
    return has_repeats(texts_of(table_with_text(path, names[:1], limit).column(0)))


def pandas_metadata(metadata) -> dict:
    """What pandas has noted in the file; empty if it did not write it."""
    try:
        content = json.loads((metadata or {}).get(b"pandas", b"{}"))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
