"""Filled tables as Excel workbooks: filled cells have a colour, and a second sheet says what it means."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np

from ..._support.arguments import printable
from .excel import MOST_ROWS
from .kinds import FileForm, needed_module
from .table_writers import titles_of, with_aside

_MOST_COLUMNS, _LONGEST = 16_384, 32_767  # Columns of a sheet and characters of a cell that Excel allows.
_COLOUR = "FFF2CC"  # A light yellow, on which black text is read easily.
_PLAIN_SHEET, _LEGEND = "Table", "Legend"


@dataclass(frozen=True)
class Filled:
    """What is known of the filled cells of a table.

    Attributes
    ----------
    mask : bool array
        Which cells of the file are filled, in the orientation of the file.
    verdict : str
        Whether to use the filled table, in a sentence.
    level : float or None
        Of the intervals.
    low, high : arrays or None
        The ends of the intervals, in the shape of the mask.
    """

    mask: np.ndarray
    verdict: str = ""
    level: float | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def write_excel(M, row_names, column_names, form: FileForm, path: Path, filled: Filled) -> None:
    """A workbook with the table, and a legend with the intervals of filled cells if there are any."""
    openpyxl = needed_module("openpyxl", "excel")
    from openpyxl.styles import PatternFill

    workbook = openpyxl.Workbook(write_only=True)
    title = form.key or _PLAIN_SHEET
    colour = PatternFill("solid", start_color=_COLOUR)
    _write_table(workbook.create_sheet(title), M, row_names, column_names, form, (path, filled.mask, colour))
    legend = workbook.create_sheet(_LEGEND if title.lower() != _LEGEND.lower() else f"{_LEGEND} (colonnade)")
    _write_legend(legend, M, row_names, column_names, path, (filled, colour))
    workbook.save(path)


def _write_table(sheet, M, row_names, column_names, form: FileForm, marking) -> None:
    path, mask, colour = marking
    names = None if row_names is None else _index(row_names, form)
    places = range(M.shape[1]) if form.aside is None else form.aside.matrix_places(M.shape[1])
    position = {place: k for k, place in enumerate(places)}
    columns = [None if k in position else column.to_pylist() for k, column in enumerate(with_aside(M, form))]
    _refuse_large(path, len(M) + 1, len(columns) + 1)
    if column_names is not None or (names is not None and form.header):
        titles = titles_of(M.shape[1], column_names, form)
        corner = [] if names is None else [form.corner or ""]
        sheet.append([_cell(sheet, path, title) for title in (*corner, *titles)])
    formats = form.formats
    for i in range(len(M)):
        cells = [] if names is None else [_cell(sheet, path, names[i], formats.get(-1))]
        for k, column in enumerate(columns):
            j = position.get(k)
            value = column[i] if column is not None else _number(M[i, j], j in form.whole)
            fill = colour if j is not None and mask[i, j] else None
            cells.append(_cell(sheet, path, value, formats.get(k), fill))
        sheet.append(cells)


def _index(row_names, form: FileForm) -> list:
    return list(row_names) if form.index is None else form.index.column(0).to_pylist()


def _write_legend(sheet, M, row_names, column_names, path: Path, found) -> None:
    filled, colour = found
    count = int(filled.mask.sum())
    sheet.append([_cell(sheet, path, "", fill=colour), "Filled by colonnade; this cell was empty."])
    sheet.append([None, f"{count:,} of {M.size:,} cells were filled."])
    sheet.append([None, filled.verdict])
    if filled.low is None:
        return
    _refuse_large(path, count + 6, 5, "; ask for fewer with --entries")
    sheet.append([])
    sheet.append([None, f"Intervals that hold the true value with probability {filled.level:g}:"])
    sheet.append(["row", "column", "value", "low", "high"])
    for i, j in zip(*np.nonzero(filled.mask)):
        names = (int(k) if labels is None else labels[k] for labels, k in ((row_names, i), (column_names, j)))
        numbers = (_number(x[i, j]) for x in (M, filled.low, filled.high))
        sheet.append([_cell(sheet, path, value) for value in (*names, *numbers)])


def _number(x, is_whole: bool = False):
    """A number for a cell; nothing for NaN."""
    return None if np.isnan(x) else int(x) if is_whole else float(x)


def _cell(sheet, path: Path, value, number_format: str | None = None, fill=None):
    """A cell that holds just this value: text is never a formula."""
    from openpyxl.cell import WriteOnlyCell

    if value is None and fill is None:
        return None
    value, is_text = _allowed(path, value)
    is_broken = isinstance(value, float)
    # openpyxl writes 16 digits of a float; its shortest text holds all bits.
    cell = WriteOnlyCell(sheet, value=repr(value) if is_broken else value)
    if is_text or is_broken:
        cell.data_type = "n" if is_broken else "s"
    if number_format is not None and not is_text:
        cell.number_format = number_format
    if fill is not None:
        cell.fill = fill
    return cell


def _allowed(path: Path, value) -> tuple:
    """The value as Excel can hold it, and whether it is text."""
    if isinstance(value, (datetime, time)) and value.tzinfo is not None:
        return value.isoformat(), True
    if isinstance(value, (bool, int, float, Decimal, date, time, timedelta)):
        return value, False
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    text = ILLEGAL_CHARACTERS_RE.sub(lambda found: repr(found[0])[1:-1], str(value))
    if len(text) > _LONGEST:
        raise ValueError(
            f"{printable(path.name)} cannot hold a cell with {len(text):,} characters, Excel allows {_LONGEST:,}; write"
            " Parquet or csv"
        )
    return text, True


def _refuse_large(path: Path, rows: int, columns: int, remedy: str = "; write Parquet or csv") -> None:
    if rows > MOST_ROWS or columns > _MOST_COLUMNS:
        raise ValueError(
            f"a sheet of Excel holds at most {MOST_ROWS:,} rows and {_MOST_COLUMNS:,} columns; {printable(path.name)}"
            f" would need {rows:,} and {columns:,}{remedy}"
        )
