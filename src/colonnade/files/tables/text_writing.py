"""Text tables as they came in: delimiter, decimal sign, units and encoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...data.frames import array_of_column
from .csv import guarded
from .encodings import UTF8
from .kinds import FileForm
from .parquet import TEXT_BYTES

_CELL = 25  # Characters of a number with its delimiter, at most.


def is_plain(form: FileForm) -> bool:
    """Whether Arrow itself writes such a table: decimal points, no units, UTF-8 without a mark."""
    return form.decimal == "." and not form.units and (form.encoding or UTF8) == UTF8


class Cells(NamedTuple):
    """Neighbouring columns of a text table whose cells are written alike.

    Attributes
    ----------
    columns : float array of shape (m, k), or Arrow array of length m
        k columns of numbers, empty where they are NaN; or one column of any kind.
    kind : Arrow type, optional
        As which the numbers are written. Default: floating point.
    unit : (str, str)
        What stands before and behind each number.
    """

    columns: Any
    kind: Any = None
    unit: tuple[str, str] = ("", "")

    @property
    def width(self) -> int:
        return self.columns.shape[1] if isinstance(self.columns, np.ndarray) else 1

    def lines(self, lo: int, hi: int, form: FileForm):
        """The text of some lines, an Arrow array. All its numbers are converted at once: tables may be wide."""
        import pyarrow
        import pyarrow.compute as pc

        if not isinstance(self.columns, np.ndarray):
            column, kind = self.columns.slice(lo, hi - lo), self.columns.type
            column = column.cast(kind.value_type) if pyarrow.types.is_dictionary(kind) else column
            return _cells(column, form, self.unit)
        block = self.columns[lo:hi]
        numbers = array_of_column(block.ravel())
        numbers = numbers if self.kind is None else numbers.cast(self.kind, safe=False)
        ends = pyarrow.array(np.arange(len(block) + 1) * self.width, pyarrow.int64())
        lines = pyarrow.LargeListArray.from_arrays(ends, _cells(numbers, form, self.unit))
        return pc.binary_join(lines, pyarrow.scalar(form.delimiter, pyarrow.large_string()))


def write_text(parts: list[Cells], titles, form: FileForm, path: Path) -> None:
    """A text table with a line of titles, which may be any text; dictionaries are written as their values.

    Parameters
    ----------
    parts : list of Cells
        All columns, from left to right.
    titles : list of str or None
    form : FileForm
        Says the delimiter, the decimal sign and the encoding.
    path : path
    """
    n_lines = len(parts[0].columns) if parts else 0
    longest = sum(longest_text(part.columns) for part in parts if not isinstance(part.columns, np.ndarray))
    step = lines_at_a_time(longest, sum(part.width for part in parts))
    with open(path, "wb") as file:
        write_titles(file, titles, form, path)
        for lo in range(0, n_lines, step):
            text = _joined([part.lines(lo, min(lo + step, n_lines), form) for part in parts], form)
            file.write((form.encoding or UTF8).encoded(path, text))


def write_titles(file, titles, form: FileForm, path: Path) -> None:
    """The byte-order mark, if there is one, and the line of titles, if there is one."""
    encoding = form.encoding or UTF8
    file.write(encoding.mark)
    if titles is not None:
        line = form.delimiter.join(quoted(guarded(title)) for title in titles) + "\n"
        file.write(encoding.encoded(path, line.encode()))


def write_lines(file, table, form: FileForm, path: Path) -> None:
    """The lines of an Arrow table without dictionaries."""
    from pyarrow import csv

    if is_plain(form):
        csv.write_csv(table, file, csv.WriteOptions(include_header=False, delimiter=form.delimiter))
        return
    text = _joined([_cells(column, form, ("", "")) for column in table.columns], form)
    file.write((form.encoding or UTF8).encoded(path, text))


def _joined(cells: list, form: FileForm) -> bytes:
    """Lines of text in UTF-8, from Arrow arrays with the text of columns."""
    import pyarrow
    import pyarrow.compute as pc

    kind = pyarrow.large_string()
    lines = pc.binary_join_element_wise(*cells, pyarrow.scalar(form.delimiter, kind)) if len(cells) > 1 else cells[0]
    lines = pc.binary_join_element_wise(lines, pyarrow.scalar("", kind), pyarrow.scalar("\n", kind))
    chunks = lines.chunks if isinstance(lines, pyarrow.ChunkedArray) else [lines]
    return b"".join(_content(chunk) for chunk in chunks if len(chunk))


def _content(lines) -> bytes:
    """The text of an Arrow array of type large_string, one behind the other."""
    _, offsets, text = lines.buffers()
    ends = np.frombuffer(offsets, np.int64)
    return text[ends[lines.offset] : ends[lines.offset + len(lines)]].to_pybytes()


def _cells(column, form: FileForm, unit: tuple[str, str]):
    """A column as the text of its cells; what is null is empty."""
    import pyarrow
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    text = column.cast(pyarrow.large_string())
    if kinds.is_string(column.type) or kinds.is_large_string(column.type):
        text = _enclosed(pc.replace_substring(text, '"', '""'))
    elif kinds.is_floating(column.type) or kinds.is_integer(column.type):
        text = pc.replace_substring(text, ".", form.decimal) if form.decimal != "." else text
        text = text if unit == ("", "") else pc.replace_substring_regex(text, "^(-?)(.*)$", rf"\1{unit[0]}\2{unit[1]}")
        holds = pc.match_substring(text, form.delimiter)
        text = pc.if_else(holds, _enclosed(text), text) if pc.any(holds).as_py() else text
    return pc.fill_null(text, "")


def _enclosed(text):
    import pyarrow
    import pyarrow.compute as pc

    mark, nothing = pyarrow.scalar('"', text.type), pyarrow.scalar("", text.type)
    return pc.binary_join_element_wise(mark, text, mark, nothing)


def longest_text(column) -> int:
    """Characters of the longest text in the dictionaries of a column; 0 if it has none."""
    import pyarrow
    import pyarrow.compute as pc

    if not pyarrow.types.is_dictionary(column.type):
        return 0
    chunks = column.chunks if isinstance(column, pyarrow.ChunkedArray) else [column]
    lengths = [pc.max(pc.binary_length(chunk.dictionary.cast(pyarrow.large_string()))) for chunk in chunks]
    return max((length.as_py() or 0 for length in lengths), default=0)


def lines_at_a_time(length: float, n_columns: int = 0) -> int:
    """How many lines with so many characters of text, and so many numbers, are written at a time."""
    return int(min(max(TEXT_BYTES / max(1.0, length + _CELL * n_columns), 1), 1 << 20))


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
