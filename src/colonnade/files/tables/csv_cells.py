"""The cells of a text table as numbers: those that are not are refused by line and column.

A column of text has text in it and no number. Both in one column are refused: one of them may be a typo.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from ..._support.arguments import printable, shown
from ..._support.numbers import EXACT, rounded_words
from ..._support.printable import counted
from .csv import LONGEST, MISSING, Beginning
from .encodings import NotUtf8, opened_text
from .kinds import needed_module, one_line
from .numerals import is_any_number
from .styles import known_cells, refuse_uneven_groups

_BLOCK = 64 * 2**20  # Bytes that are parsed at a time.
_NO_DOUBLE = "conversion error to double"  # What Arrow says of text where a number should be.


class NotNumbers(ValueError):
    """Cells of a text table are not numbers."""


def read_columns(path: Path, begun: Beginning, header: bool, text=(), only=None, missing=()):
    """An Arrow table of the lines after the header, columns called f0, f1, ..., of float64 except those in `text`.

    Words in `missing` are null, besides those that always are. Columns with units have them in their metadata.
    """
    return _Reading(path, begun, header, text, only, (*MISSING, *missing)).numbers()


@dataclass(frozen=True)
class _Reading:
    """What `read_columns` was asked for; `missing` are all words that stand for nothing."""

    path: Path
    begun: Beginning
    header: bool
    text: Collection[str]
    only: list[str] | None
    missing: tuple[str, ...]

    def numbers(self):
        """The table; a cell that is not a number is refused."""
        pyarrow = needed_module("pyarrow", "cli")
        loose = self.begun.loose.difference(self.text)
        try:
            table = self._parsed({*self.text, *loose}, self.only)
        except pyarrow.ArrowInvalid as error:
            if _NO_DOUBLE in str(error):
                raise NotNumbers(self._refusal(error)) from None
            raise ValueError(self._refusal(error)) from None
        except UnicodeDecodeError:
            raise ValueError(
                f"{printable(self.path)} is not text in {self.begun.encoding.in_words()}; name another one with"
                " --encoding (encoding=...)"
            ) from None
        for k, name in enumerate(table.column_names):
            if name in loose:
                table = table.set_column(k, *self._loose_numbers(table, name))
        self._refuse_rounded(table, {*self.text, *loose})
        return table

    def _parsed(self, text, only, block: int = _BLOCK):
        """The table by Arrow, columns in `text` as they stand; blocks grow until the longest line fits into one."""
        import pyarrow
        from pyarrow import csv as arrow_csv

        begun, start = self.begun, self.begun.starts[self.header]
        fields = [f"f{j}" for j in range(len(begun.lines[self.header]))]
        types = {name: pyarrow.string() if name in text else pyarrow.float64() for name in fields}
        several = len(fields) > 1
        parse = arrow_csv.ParseOptions(delimiter=begun.delimiter, newlines_in_values=True, ignore_empty_lines=several)
        asked = {"column_types": types, "null_values": self.missing, "include_columns": only}
        convert = arrow_csv.ConvertOptions(**asked, decimal_point=begun.numerals.decimal)
        is_one_block = self.path.stat().st_size - start < block  # Threads would only cost their start and end.
        options = {"autogenerate_column_names": True, "block_size": block, "use_threads": not is_one_block}
        read = arrow_csv.ReadOptions(**options)
        with opened_text(self.path, begun.encoding, start) as file:
            source = file
            if is_one_block:  # Arrow needs an end of the only line.
                content = file.read()
                source = pyarrow.BufferReader(content if content.endswith((b"\n", b"\r")) else content + b"\n")
            try:
                return arrow_csv.read_csv(source, read, parse, convert)
            except pyarrow.ArrowInvalid as error:
                if "straddling" not in str(error) or block == LONGEST:
                    raise
        return self._parsed(text, only, LONGEST)

    def _as_text(self, only):
        """The table without any conversion."""
        return self._parsed({f"f{j}" for j in range(len(self.begun.lines[self.header]))}, only)

    def _loose_numbers(self, table, name: str) -> tuple:
        """A field and a column of numbers from text with groups of digits or units."""
        import pyarrow
        import pyarrow.compute as pc

        cells, numerals = known_cells(table.column(name), self.missing), self.begun.numerals

        def where(row: int) -> str:
            return self.place(table, row, name)

        wrong = pc.index(pc.match_substring_regex(cells, numerals.loose), False).as_py()
        if wrong >= 0:
            raise NotNumbers(self._not_a_number(1, where(wrong), cells[wrong].as_py()))
        refuse_uneven_groups(self.path, numerals, cells, where)
        plain_text, units = numerals.plain_column(cells), numerals.units(cells)
        if len(units) > 1:
            some = " and ".join(shown("number".join(unit)) for unit in units[:2])
            raise ValueError(
                f"column {self._title(name)} of {printable(self.path)} holds numbers in different units, such as"
                f" {some}: convert them to one, or set the column aside with --ignore (ignore=...)"
            )
        numbers = plain_text.cast(pyarrow.float64())
        at = first_rounded_text(plain_text, numbers) if reaches_exact(numbers) else None
        if at is not None:
            raise ValueError(self._rounded(where(at), int(plain_text[at].as_py())))
        before, behind = units[0] if units else ("", "")
        metadata = {"before": before, "behind": behind} if before or behind else None
        return pyarrow.field(name, pyarrow.float64(), metadata=metadata), numbers

    def _refuse_rounded(self, table, text) -> None:
        """Refuse whole numbers that float64 would change. Columns with large numbers are read again, as text."""
        large = [name for name in table.column_names if name not in text and reaches_exact(table.column(name))]
        if not large:
            return
        cells = self._as_text([name for name in table.column_names if name in text] + large)
        for name in large:
            at = first_rounded_text(cells.column(name), table.column(name))
            if at is not None:
                raise ValueError(self._rounded(self.place(cells, at, name), int(cells.column(name)[at].as_py())))

    def _rounded(self, where: str, number: int) -> str:
        remedy = "" if self.only else "; set identifiers aside with --ignore (ignore=...)"
        return rounded_words(f"the cell of {printable(self.path)} in {where}", number) + remedy

    def _refusal(self, error) -> str:
        """Why a table cannot be read."""
        import pyarrow

        if _NO_DOUBLE in str(error):
            try:
                return self._wrong_cells() or f"{printable(self.path)}: {one_line(error)}"
            except pyarrow.ArrowInvalid as another:
                error = another
        if "UTF8" in str(error):
            raise NotUtf8(self.path) from None
        return self._uneven_line() or f"{printable(self.path)} cannot be read as a table: {one_line(error)}"

    def _wrong_cells(self) -> str | None:
        """Which cells are not numbers."""
        import pyarrow
        import pyarrow.compute as pc

        table, count, first, rows = self._as_text(self.only), 0, None, set()
        for name, column in zip(table.column_names, table.columns):
            if name not in self.text:
                is_number = pc.match_substring_regex(column, self.begun.numerals.loose)
                wrong = pc.indices_nonzero(pc.invert(pc.or_(is_number, pc.is_in(column, pyarrow.array(self.missing)))))
                count += len(wrong)
                rows.update(wrong[:2].to_pylist())
                if len(wrong) and (first is None or wrong[0].as_py() < first[0]):
                    first = wrong[0].as_py(), name, column[wrong[0].as_py()].as_py()
        if first is None:
            return None
        return self._not_a_number(count, self.place(table, *first[:2]), first[2], count > 1 and len(rows) == 1)

    def _not_a_number(self, count: int, place: str, cell: str, are_titles: bool = False) -> str:
        remedy = "If it stands for a gap, name it with --missing (missing=...)"
        if are_titles:  # All are in one line.
            remedy = "If that line holds the names of the columns, delete the lines above it. " + remedy
        if is_any_number(cell):
            sign = "point" if self.begun.numerals.decimal == "." else "comma"
            remedy = f"Numbers of this file have a decimal {sign}. Correct it, or give --decimal (decimal=...)"
        elif self.only is None:
            remedy += ". If the column holds text, leave it out with --ignore (ignore=...)"
        name = printable(self.path)
        some = f"1 cell of {name} is not a number, in"
        wrong = some if count == 1 else f"{count:,} cells of {name} are not numbers, the first in"
        return f"{wrong} {place}: {shown(cell)}. {remedy}"

    def _uneven_line(self) -> str | None:
        """Which line has more or fewer cells than the first; None if none is found."""
        n_cells, line = len(self.begun.lines[self.header]), 0
        try:
            for line, is_one_line, cells in numbered_lines(self.path, self.begun, self.header):
                if len(cells) not in (0, n_cells):
                    has = f"line {line:,} of {printable(self.path)} has {counted(len(cells), 'cell')} where others have"
                    if not is_one_line:
                        return f"{has} {n_cells:,}: a quotation mark in it is not closed"
                    return (
                        f"{has} {n_cells:,}. Correct it, or put quotes around a cell that has {self.begun.delimiter!r}"
                    )
        except csv.Error:
            return f"line {line + 1:,} of {printable(self.path)} has a cell that does not end: close its quotation mark"
        return None

    def place(self, table, row: int, name: str) -> str:
        return place_in_words(self.path, self.begun, self.header, table, row, name, self.text)

    def _title(self, name: str) -> str:
        return _title(self.begun, self.header, name)


def numbered_lines(path: Path, begun: Beginning, header: bool) -> Iterator[tuple[int, bool, list[str]]]:
    """The lines after the header: the number of each in the file, from 1; whether its cells end in it; and they."""
    with opened_text(path, begun.encoding) as file:
        first = line = len(file.read(begun.starts[header]).splitlines()) + 1
        text = TextIOWrapper(file, newline="", encoding="utf-8", errors="replace")
        lines = csv.reader(text, delimiter=begun.delimiter)
        for cells in lines:
            following = first + lines.line_num
            yield line, following == line + 1, cells
            line = following


def place_in_words(path: Path, begun: Beginning, header: bool, table, row: int, name: str, text) -> str:
    """Line and column of a cell of a table, as people count them, from 1; f0 may hold names of rows."""
    line = line_of(path, begun, header, row)
    where = f"row {row + 1:,}" if line is None else f"line {line:,}"
    named = f" ({shown(table.column('f0')[row].as_py())})" if "f0" in text and "f0" in table.column_names else ""
    return f"{where}{named}, column {_title(begun, header, name)}"


def line_of(path: Path, begun: Beginning, header: bool, row: int) -> int | None:
    """The line of a file, from 1, on which a row of its table begins; None if that cannot be found."""
    several = len(begun.lines[header]) > 1  # Arrow skips empty lines then.
    rows = (line for line, _, cells in numbered_lines(path, begun, header) if cells or not several)
    try:
        return next(islice(rows, row, None), None)
    except (csv.Error, OSError):
        return None


def _title(begun: Beginning, header: bool, name: str) -> str:
    """What a column f0, f1, ... is called in a message: its title, or its number from 1."""
    j, titles = int(name[1:]), begun.lines[0]
    if not header:
        return f"{j + 1} (called '{j}' because the file has no names)"
    return shown(titles[j - (len(begun.lines[header]) - len(titles))])


def units_of(field) -> tuple[str, str] | None:
    """What stands before and behind the numbers of a column that `read_columns` read; None if nothing does."""
    found = field.metadata
    return None if not found else (found[b"before"].decode(), found[b"behind"].decode())


def reaches_exact(numbers) -> bool:
    """Whether an Arrow array of floats has some from 2^53 on, which whole numbers may have become by rounding."""
    import pyarrow.compute as pc

    return pc.any(pc.greater_equal(pc.abs(numbers), float(EXACT))).as_py() is True


def first_rounded_text(cells, numbers=None) -> int | None:
    """Where the first whole number stands that float64 changes; None if there is none.

    A cell with as many digits as float64 is written with, and zeros after them, is not changed. Cells are text;
    `numbers` are those that were made of them, null for words that stand for nothing.
    """
    import pyarrow.compute as pc

    long = pc.match_substring_regex(cells, r"^\s*[+-]?[0-9]{16,}\s*$")
    long = long if numbers is None else pc.and_(long, pc.is_valid(numbers))
    for at in pc.indices_nonzero(long).to_pylist():
        cell = Decimal(cells[at].as_py())
        if cell not in (int(float(cell)), Decimal(repr(float(cell)))):
            return at
    return None
