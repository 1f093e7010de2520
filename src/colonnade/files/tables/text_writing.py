"""Text tables as they came in: delimiter, decimal sign, units and encoding."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .csv import guarded
from .encodings import UTF8
from .kinds import FileForm
from .parquet import TEXT_BYTES

_CELL = 25  # Characters of a number with its delimiter, at most.


def is_plain(form: FileForm) -> bool:
    """Whether Arrow itself writes such a table: decimal points, no units, UTF-8 without a mark."""
    return form.decimal == "." and not form.units and (form.encoding or UTF8) == UTF8


def write_text(table, titles, form: FileForm, path: Path, units: dict | None = None) -> None:
    """An Arrow table with a line of titles, all of which may be anything; dictionaries are written as their values.

    Parameters
    ----------
    table : Arrow table
    titles : list of str or None
    form : FileForm
        Says the delimiter, the decimal sign and the encoding.
    path : path
    units : dict, optional
        What stands before and behind the numbers of columns of the table, by their positions.
    """
    plain_types = _without_dictionaries(table.schema)
    step = lines_at_a_time(sum(longest_text(column) for column in table.columns), table.num_columns)
    with open(path, "wb") as file:
        write_titles(file, titles, form, path)
        for lo in range(0, table.num_rows, step):
            write_lines(file, table.slice(lo, step).cast(plain_types), form, path, units)


def write_titles(file, titles, form: FileForm, path: Path) -> None:
    """The byte-order mark, if there is one, and the line of titles, if there is one."""
    encoding = form.encoding or UTF8
    file.write(encoding.mark)
    if titles is not None:
        line = form.delimiter.join(quoted(guarded(title)) for title in titles) + "\n"
        file.write(encoding.encoded(path, line.encode()))


def write_lines(file, table, form: FileForm, path: Path, units: dict | None = None) -> None:
    """The lines of an Arrow table without dictionaries."""
    from pyarrow import csv

    if is_plain(form) and not units:
        csv.write_csv(table, file, csv.WriteOptions(include_header=False, delimiter=form.delimiter))
        return
    file.write((form.encoding or UTF8).encoded(path, _joined(table, form, units or {})))


def _joined(table, form: FileForm, units: dict) -> bytes:
    """Lines of text in UTF-8."""
    import pyarrow
    import pyarrow.compute as pc

    kind = pyarrow.large_string()
    cells = [_cells(column, form, units.get(k, ("", "")), kind) for k, column in enumerate(table.columns)]
    lines = pc.binary_join_element_wise(*cells, pyarrow.scalar(form.delimiter, kind)) if len(cells) > 1 else cells[0]
    lines = pc.binary_join_element_wise(lines, pyarrow.scalar("", kind), pyarrow.scalar("\n", kind))
    return b"".join(_content(chunk) for chunk in lines.chunks if len(chunk))


def _content(lines) -> bytes:
    """The text of an Arrow array of type large_string, one behind the other."""
    _, offsets, text = lines.buffers()
    ends = np.frombuffer(offsets, np.int64)
    return text[ends[lines.offset] : ends[lines.offset + len(lines)]].to_pybytes()


def _cells(column, form: FileForm, unit: tuple[str, str], kind):
    """A column as the text of its cells; what is null is empty."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    text = column.cast(kind)
    if kinds.is_string(column.type) or kinds.is_large_string(column.type):
        text = _enclosed(pc.replace_substring(text, '"', '""'))
    elif kinds.is_floating(column.type) or kinds.is_integer(column.type):
        text = pc.replace_substring(text, ".", form.decimal) if form.decimal != "." else text
        text = text if unit == ("", "") else pc.replace_substring_regex(text, "^(-?)(.*)$", rf"\1{unit[0]}\2{unit[1]}")
        holds = pc.match_substring(text, form.delimiter)
        text = pc.if_else(holds, _enclosed(text), text)
    return pc.fill_null(text, "")


def _enclosed(text):
    import pyarrow
    import pyarrow.compute as pc

    mark, nothing = pyarrow.scalar('"', text.type), pyarrow.scalar("", text.type)
    return pc.binary_join_element_wise(mark, text, mark, nothing)


def _without_dictionaries(schema):
    import pyarrow

    kinds = [kind.value_type if pyarrow.types.is_dictionary(kind) else kind for kind in schema.types]
    return pyarrow.schema(list(zip(schema.names, kinds)))


def longest_text(column) -> int:
    """Characters of the longest text in the dictionaries of a column; 0 if it has none."""
    import pyarrow
    import pyarrow.compute as pc

    if not pyarrow.types.is_dictionary(column.type):
        return 0
    lengths = [pc.max(pc.binary_length(chunk.dictionary.cast(pyarrow.large_string()))) for chunk in column.chunks]
    return max((length.as_py() or 0 for length in lengths), default=0)


def lines_at_a_time(length: float, n_columns: int = 0) -> int:
    """How many lines with so many characters of text, and so many numbers, are written at a time."""
    return int(min(max(TEXT_BYTES / max(1.0, length + _CELL * n_columns), 1), 1 << 20))


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
