"""Sheets of Excel workbooks: columns of numbers are the matrix; text, dates and Booleans are set aside."""

from __future__ import annotations

import warnings
import zipfile
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from ..._support.arguments import printable, shown
from ..._support.numbers import rounded_words
from ...data.observations import Observations
from ...data.set_aside import named_columns, split
from .csv import MISSING, SAMPLE_LINES, has_header, has_row_names
from .kinds import (
    ANEW,
    TIMES_TABLE,
    TIMES_TEXT,
    FileForm,
    needed_module,
    one_line,
    refuse_beyond_memory,
    refuse_one_column,
)
from .wide_csv import whole_columns

_NOTHING = frozenset(MISSING)
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_ALWAYS_READ = "", "_rels", "docProps", "xl", "xl/_rels", "xl/theme"  # Folders of parts that belong to all sheets.
MOST_ROWS = 2**20  # Rows of a sheet that Excel allows.
_AS_CSV = "save the sheet as csv or Parquet"


@dataclass(frozen=True)
class Sheet:
    """A sheet of a workbook.

    Attributes
    ----------
    name : str
    count : int
        How many sheets the workbook has.
    corner : (int, int)
        Row and column, from 0, of the first cell of the table.
    rows : list of lists
        Numbers, text, dates, Booleans, or None; shorter rows end in None.
    formats : dict of str
        Number formats by column of the table, as the first cells with numbers or dates show them.
    """

    name: str
    count: int
    corner: tuple[int, int]
    rows: list[list]
    formats: dict

    def cell(self, row: int, column: int) -> str:
        """What Excel calls a cell of the table, with its sheet."""
        from openpyxl.utils import get_column_letter

        letter = get_column_letter(self.corner[1] + column + 1)
        return f"cell {letter}{self.corner[0] + row + 1} of sheet {shown(self.name)}"


def read_excel(
    path: Path, sheet, header, row_names, missing=(), limit: float | None = None, *, ignore=(), only=None
) -> Observations:
    """A wide table from a sheet; a cell that is empty, or one of the words `missing`, is unseen."""
    needed_module("openpyxl", "excel")
    needed_module("pyarrow", "cli")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns about styles and features that are not read here.
        found = _sheet(path, sheet, limit)
    nothing = _NOTHING.union(missing)
    lines = [[_as_text(cell, nothing) for cell in row] for row in found.rows[:SAMPLE_LINES]]
    header = has_header(lines) if header == "auto" else header
    if len(lines) <= header:
        raise ValueError(f"{printable(path)}, sheet {shown(found.name)}, has a line of names and no row")
    titles = [_as_text(cell, frozenset()) for cell in found.rows[0]] if header else None
    if row_names == "auto":
        named = {str(name) for one in (ignore, only) for name in named_columns(one)}
        first = None if titles is None else titles[0]
        is_named = (first if header else "0") in named
        names = [[_as_text(row[0], nothing)] for row in found.rows[header:]]
        row_names = not is_named and has_row_names(names, first)
    return _observations(path, found, header, int(row_names), titles, nothing, {"ignore": ignore, "only": only})


def _observations(path: Path, sheet: Sheet, header, row_names: int, titles, nothing, given: dict) -> Observations:
    import pyarrow

    body, n = sheet.rows[header:], len(sheet.rows[0]) - row_names
    if n < 1:
        raise ValueError(f"{printable(path)}, sheet {shown(sheet.name)}, has no column of numbers")
    labels = [str(j + row_names) for j in range(n)] if titles is None else titles[row_names:]
    raw = [[row[j + row_names] for row in body] for j in range(n)]
    columns = [[None if _is_nothing(cell, nothing) else cell for cell in cells] for cells in raw]
    named = set(split(labels, [None] * n, **given)[0])  # The rest is left out by its name.
    kinds: list[str | None] = [None] * n
    for j in sorted(named):
        kinds[j] = _kind(path, columns[j], partial(_place, sheet, header, j + row_names))
    used, aside = split(labels, kinds, **given)
    if aside is not None:
        refuse_one_column(path, [labels[k] for k in used], aside)
        arrays = [_array(raw[k]) for k in aside.places]
        table = pyarrow.Table.from_arrays(arrays, names=[str(k) for k in range(len(arrays))])
        aside = replace(aside, columns=table, types=tuple(table.schema.types))
    matrix = np.array([[np.nan if x is None else float(x) for x in columns[k]] for k in used]).T
    names = [row[0] for row in body] if row_names else None
    form = FileForm(
        "xlsx",
        header=header,
        corner=titles[0] if row_names and header else "",
        aside=aside,
        whole=whole_columns(matrix),
        key=sheet.name,
        index=None if names is None else pyarrow.table([_array(names)], names=["0"]),
        formats={k - row_names: text for k, text in sheet.formats.items()},
        line_of=(1 + sheet.corner[0] + header).__add__,
    )
    shown_names = None if names is None else [_as_text(name, frozenset()) for name in names]
    titles = None if titles is None else [labels[k] for k in used]
    return Observations.from_dense(matrix, row_names=shown_names, column_names=titles, origin=form)


def _place(sheet: Sheet, header, column: int, row: int) -> str:
    """Where a cell below the header is, in words."""
    return sheet.cell(row + header, column)


@contextmanager
def _damage_named(path: Path):
    """Turn whatever a library raises while it reads a workbook into a sentence; files may hold anything."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise ValueError(f"{printable(path)} is damaged or not an xlsx file: {ANEW} ({one_line(error)})") from error


def _each(path: Path, found):
    """The items of an iterator of a library."""
    with _damage_named(path):  # What is raised while an item is used does not come here.
        yield from found


def _sheet(path: Path, wanted, limit: float | None) -> Sheet:
    import openpyxl

    with _damage_named(path):
        archive = zipfile.ZipFile(path)
    with archive:
        sizes = {one.filename: one.file_size for one in archive.infolist()}
        always = sum(size for name, size in sizes.items() if name.rpartition("/")[0] in _ALWAYS_READ)
        refuse_beyond_memory(path, always, times=TIMES_TEXT, limit=limit, remedy=_AS_CSV)
        with _damage_named(path):
            parts = _parts(archive)
        name = _chosen(path, list(parts), wanted)
        with _damage_named(path):
            declared = always + sizes[parts[name]]
        refuse_beyond_memory(path, declared, f", sheet {shown(name)},", times=TIMES_TEXT, limit=limit, remedy=_AS_CSV)
        _refuse_merged_and_uncomputed(path, name, archive, parts[name])
    with open(path, "rb") as file:
        with _damage_named(path):
            workbook = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        with closing(workbook):
            with _damage_named(path):
                cells = workbook[name]
                cells.reset_dimensions()  # What a file says of its size need not be true.
            rows = _rows(path, cells, limit)
            top, rows = _without_margin(path, name, rows)
            left = min(next(k for k, cell in enumerate(row) if cell is not None) for row in rows if row)
            width = max(map(len, rows))
            rows = [[*row[left:], *[None] * (width - max(left, len(row)))] for row in rows]
            with _damage_named(path):
                return Sheet(name, len(parts), (top, left), rows, _formats(cells, top, left))


def _parts(archive: zipfile.ZipFile) -> dict[str, str]:
    """Where in the archive the sheets are, by name, hidden ones last."""
    relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    links = {one.get("Id", ""): one.get("Target", "") for one in relations}
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    sheets = [one for one in book.iter() if one.tag.rpartition("}")[2] == "sheet"]
    sheets.sort(key=lambda one: one.get("state", "visible") != "visible")
    found = {}
    for one in sheets:
        target = links[one.get(_RELATION, "")]
        part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        if "worksheets/" in part:  # Charts have sheets of their own.
            found[one.get("name", "")] = part
    return found


def _chosen(path: Path, names: list[str], wanted) -> str:
    if not names:
        raise ValueError(f"{printable(path)} has no sheet with cells")
    if wanted is None:
        return names[0]
    if wanted in names:
        return wanted
    if str(wanted).isdecimal() and int(wanted) < len(names):
        return names[int(wanted)]
    listed = ", ".join(shown(name) for name in names[:8]) + (", ..." if len(names) > 8 else "")
    raise ValueError(f"{printable(path)} has no sheet {shown(wanted)}; it has {listed}")


def _refuse_merged_and_uncomputed(path: Path, name: str, archive: zipfile.ZipFile, part: str) -> None:
    """Refuse merged cells, and formulas without a stored result: both would look like gaps."""
    where = f"of {printable(path)}, sheet {shown(name)},"
    with _damage_named(path):
        stream = archive.open(part)
    with stream:
        for _, element in _each(path, ElementTree.iterparse(stream)):
            tag = element.tag.rpartition("}")[2]
            if tag == "mergeCell":
                raise ValueError(
                    f"the cells {element.get('ref')} {where} are merged. Unmerge them, delete lines"
                    " above the names of the columns, and name every column in one line"
                )
            if tag == "c":
                inside = {child.tag.rpartition("}")[2]: child.text for child in element}
                if "f" in inside and not inside.get("v") and element.get("t") != "str":
                    raise ValueError(
                        f"cell {element.get('r')} {where} holds a formula without a result: open the file in Excel or"
                        " LibreOffice and save it there"
                    )
            if tag == "row":
                element.clear()


def _rows(path: Path, sheet, limit: float | None) -> list[list]:
    """The rows without what is empty at their ends; what would not fit is refused on the way."""
    rows: list[list] = []
    width = 0
    for row in _each(path, sheet.iter_rows(values_only=True)):
        if len(rows) == MOST_ROWS:  # A row may have any number; those before it would be made up.
            raise ValueError(f"{printable(path)} is damaged or not an xlsx file: it has more than {MOST_ROWS:,} rows")
        cells = list(row)
        while cells and cells[-1] is None:
            cells.pop()
        rows.append(cells)
        width = max(width, len(cells))
        if len(rows) % 1024 == 0:
            refuse_beyond_memory(path, 8.0 * len(rows) * width, times=TIMES_TABLE, limit=limit, remedy=_AS_CSV)
    refuse_beyond_memory(path, 8.0 * len(rows) * width, times=TIMES_TABLE, limit=limit, remedy=_AS_CSV)
    return rows


def _without_margin(path: Path, name: str, rows: list[list]) -> tuple[int, list[list]]:
    """The row where the table begins, and its rows; empty ones above and below are left out."""
    known = [k for k, row in enumerate(rows) if row]
    if not known:
        raise ValueError(f"{printable(path)}, sheet {shown(name)}, is empty; name another one with --sheet (sheet=...)")
    return known[0], rows[known[0] : known[-1] + 1]


def _formats(sheet, top: int, left: int) -> dict[int, str]:
    """The number format of every column, as its first number or date below the first row has it."""
    found: dict[int, str] = {}
    for row in sheet.iter_rows(min_row=top + 2, max_row=top + 1 + SAMPLE_LINES):
        for cell in row:
            if cell.value is not None and not isinstance(cell.value, (str, bool)):
                found.setdefault(cell.column - 1 - left, cell.number_format)
    return {k: text for k, text in found.items() if text and text != "General"}


def _is_nothing(cell, nothing) -> bool:
    return cell is None or (isinstance(cell, str) and (not cell.strip() or cell in nothing))


def _as_text(cell, nothing) -> str:
    """A cell as a text table would have it."""
    if _is_nothing(cell, nothing):
        return ""
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ")
    return cell if isinstance(cell, str) else str(cell)


def _is_number(cell) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def _kind(path: Path, cells: list, where) -> str | None:
    """What a column holds other than numbers; None of numbers. Both in one column are refused."""
    numbers = [k for k, cell in enumerate(cells) if _is_number(cell)]
    others = [k for k, cell in enumerate(cells) if cell is not None and not _is_number(cell)]
    if numbers and others:
        text = cells[others[0]]
        hint = "turn text into a number in Excel" if isinstance(text, str) else "mend it"
        raise ValueError(
            f"{where(others[0])} in {printable(path)} holds {shown(text)}, and {where(numbers[0])} holds the number"
            f" {cells[numbers[0]]}: some cells are not numbers. {hint.capitalize()}, name what stands for nothing with"
            " --missing (missing=...), or set the column aside with --ignore (ignore=...)"
        )
    changed = next((k for k in numbers if isinstance(cells[k], int) and int(float(cells[k])) != cells[k]), None)
    if changed is not None:
        raise ValueError(rounded_words(f"{where(changed)} in {printable(path)}", cells[changed]))
    if not others:
        return None
    known = [cells[k] for k in others]
    if all(isinstance(cell, bool) for cell in known):
        return "Booleans"
    if all(isinstance(cell, (date, time)) for cell in known):
        return "dates"
    return "durations" if all(isinstance(cell, timedelta) for cell in known) else "text"


def _array(cells: list):
    """Cells as an Arrow array; of several types, as text."""
    import pyarrow

    known = [cell for cell in cells if cell is not None]
    if len({type(cell) for cell in known}) <= 1 or all(map(_is_number, known)):
        return pyarrow.array(cells)
    return pyarrow.array([None if cell is None else _as_text(cell, frozenset()) for cell in cells])
