"""How a text table writes its numbers: as the user says, or as cells show that can be read in one way only.

A cell such as "1,234" has two readings, 1.234 and 1234. It is read only if another cell of the file decides, such as
"0,5" or "1,234.5"; otherwise the file is refused. A point alone is a decimal point, except in a file with semicolons.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from ..._support.arguments import printable, shown
from .numerals import TWO_READINGS, Numerals

# Signs of numbers that are not bare ones with a decimal point.
_SPECIAL = re.compile("[,%'$¢£¥฿\u2019\u00a0\u202f\u2009\u2212\u20a0-\u20c0]")
_ASCII_SPECIAL = ",%'$("
_BLANK = r"^\s*$"
_ROWS = 1_000  # Rows that are looked at together.


def first_look(begun, styles, missing):
    """The beginning with the style that its lines show, and which columns are not bare numbers.

    It is settled if a cell decides, or if all numbers are bare ones with a decimal point.

    Parameters
    ----------
    begun : Beginning
    styles : sequence of Numerals
        Those that the user leaves open.
    missing : set of str
        Words that stand for nothing.
    """
    lines = begun.lines[1:] or begun.lines
    if styles[0].decimal == "." and not _has_special(lines, styles[0], missing):
        return replace(begun, styles=tuple(styles), numerals=styles[0])
    columns: dict[int, list[str]] = {}
    for line in lines:
        for j, cell in enumerate(line):
            if cell.strip() and cell not in missing:
                columns.setdefault(j, []).append(cell)
    fits = {j: [s for s in styles if all(map(s.is_number, cells))] for j, cells in columns.items()}
    fits = {j: found for j, found in fits.items() if found}
    possible = [s for s in styles if all(s in found for found in fits.values())]
    style = possible[0] if possible else styles[0]
    loose = frozenset(f"f{j}" for j in fits if not all(map(style.is_bare, columns[j])))
    is_settled = len(styles) == 1 or len(possible) == 1 or (not loose and style.decimal == ".")
    return replace(begun, styles=tuple(styles), numerals=style, loose=loose, is_settled=is_settled)


def _has_special(lines, style: Numerals, missing) -> bool:
    """Whether some cell may be a number that is not bare."""
    seen: set[int] = set()
    for line in lines:
        if len(seen) < len(line):
            for j, cell in enumerate(line):
                if j not in seen and cell.strip() and cell not in missing:
                    seen.add(j)
                    if not style.is_bare(cell):
                        return True
        text = "\0".join([*line, ""])
        if any(sign in text for sign in (*_ASCII_SPECIAL, "-\0")) or not (
            text.isascii() or _SPECIAL.search(text) is None
        ):
            return True
    return False


def plain_lines(begun, missing) -> list[list[str]]:
    """The first lines with plain numbers, for a look at what is a header and what are names."""
    if begun.numerals.decimal == "." and not begun.loose and begun.is_settled:
        return begun.lines
    styles = begun.numerals, *begun.styles

    def plain(cell: str) -> str:
        return next((style.plain(cell) for style in styles if style.is_number(cell)), cell)

    return [[cell if cell in missing else plain(cell) for cell in line] for line in begun.lines]


def settled(path, begun, cells, missing, place):
    """The beginning with the style that all cells of the file show; refuses what remains open.

    Parameters
    ----------
    path : path
        For messages.
    begun : Beginning
    cells : Arrow table of text
        The columns that may hold numbers.
    missing : sequence of str
        Words that stand for nothing.
    place : function
        Called with a row and the name of a column; says them in words.
    """
    styles = begun.styles
    known = {name: known_cells(cells.column(name), missing) for name in cells.column_names}
    fits = {name: [s for s in styles if _first_other(column, s.loose) is None] for name, column in known.items()}
    fits = {name: found for name, found in fits.items() if found and len(known[name]) > known[name].null_count}
    possible = [s for s in styles if all(s in found for found in fits.values())]
    if not possible:
        raise ValueError(_conflict(path, styles, known, fits, place))
    style = possible[0]
    if len(possible) > 1:
        for name in fits:
            _refuse_two_readings(path, known[name], name, begun.delimiter, place)
    loose = frozenset(name for name in fits if _first_other(known[name], style.bare) is not None)
    return replace(begun, numerals=style, loose=loose, is_settled=True)


def known_cells(column, missing):
    """A column of text with null for what stands for nothing."""
    import pyarrow
    import pyarrow.compute as pc

    empty = pc.or_(pc.is_in(column, pyarrow.array(missing)), pc.match_substring_regex(column, _BLANK))
    return pc.if_else(empty, pyarrow.scalar(None, column.type), column)


def _first_other(column, pattern: str) -> int | None:
    """The row of the first cell that is not null and does not match."""
    import pyarrow.compute as pc

    at = pc.index(pc.match_substring_regex(column, pattern), False).as_py()
    return None if at < 0 else at


def _conflict(path, styles, known, fits, place) -> str:
    """Which two cells cannot be read in the same way."""
    cells = []
    for style, other in zip(styles, reversed(styles)):
        name = next(name for name, found in fits.items() if other not in found)
        row = _first_other(known[name], other.loose)
        cells.append(f"{shown(known[name][row].as_py())} in {place(row, name)} has a decimal {_word(style)}")
    return (
        f"{printable(path)} writes numbers in two ways: {cells[0]}, and {cells[1]}. Use one of them, or set a column"
        " aside with --ignore (ignore=...)"
    )


def _word(style: Numerals) -> str:
    return "point" if style.decimal == "." else "comma"


def _refuse_two_readings(path, column, name: str, delimiter: str, place) -> None:
    import pyarrow.compute as pc

    pattern = TWO_READINGS if delimiter == ";" else TWO_READINGS.replace("[.,]", ",")
    row = pc.index(pc.match_substring_regex(column, pattern), True).as_py()
    if row >= 0:
        raise ValueError(two_readings(path, column[row].as_py(), place(row, name)))


def two_readings(path, cell: str, where: str) -> str:
    """What to say of a number that nothing decides about."""
    digits = re.sub("[^0-9.,]", "", cell)
    one, other = digits.replace(",", "."), re.sub("[.,]", "", digits)
    return (
        f"{shown(cell)} in {where} of {printable(path)} can be {one} or {other}, and no other cell decides:"
        " say --decimal . or --decimal , (decimal=...)"
    )


def refuse_uneven_groups(path, numerals: Numerals, cells, where) -> None:
    """Refuse a column in which a sign seems to group digits and may be a typo for the decimal sign.

    So it is if "1,234" stands beside 1.234 or 1234, and no cell of the column, such as "1,234.5", shows groups clearly.

    Parameters
    ----------
    cells : Arrow column of text
        All of them numbers, or null.
    where : function
        Called with a row; says the place in words.
    """
    import pyarrow.compute as pc

    if numerals.thousands is not None:
        return
    other, decimal = ("[.]", ",") if numerals.decimal == "," else (",", "[.]")

    def first(pattern: str) -> int:
        return pc.index(pc.match_substring_regex(cells, pattern), True).as_py()

    row = first(TWO_READINGS.replace("[.,]", other))
    if row < 0 or first(f"[0-9]{other}[0-9]{{3}}({other}|{decimal})") >= 0:
        return
    beside = [at for at in (first(TWO_READINGS.replace("[.,]", decimal)), first("^[^0-9]*[0-9]{4}")) if at >= 0]
    if beside:
        raise ValueError(
            f"{shown(cells[row].as_py())} in {where(row)} of {printable(path)} stands beside"
            f" {shown(cells[beside[0]].as_py())} in {where(beside[0])}: it is not clear whether its sign groups digits."
            " Write both in the same way, or say --thousands (thousands=...)"
        )


def may_be_grouped(matrix: np.ndarray) -> bool:
    """Whether numbers that were read with a decimal point may be whole ones with points between groups of digits."""
    for lo in range(0, len(matrix), _ROWS):  # Most files show something else in their first rows.
        sizes = np.abs(matrix[lo : lo + _ROWS])
        broken = sizes[sizes != np.rint(sizes)]
        broken = broken[~np.isnan(broken)]
        if not np.all((broken >= 1) & (broken < 1000) & (np.round(broken, 3) == broken)):
            return False
    return True
