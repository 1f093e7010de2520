"""Text tables: what the first lines tell, and cells that are no numbers named by their place.

A column of text has text in it and no number. Both in one column are refused: one of them may be a typo.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from io import TextIOWrapper
from pathlib import Path

from ..._support.arguments import printable, shown
from ..._support.numbers import EXACT, rounded_words
from .encodings import UTF8, Encoding, NotUtf8, encoding_of, opened_text
from .kinds import needed_module, one_line
from .numerals import PLAIN, Numerals, is_any_number
from .styles import known_cells, refuse_uneven_groups

_SAMPLE = 200  # lines that decide whether there are names
_FEWEST_LINES = 8  # Lines that are read for it however long they are: a header and _FEWEST_LABELS others.
_BLOCK = 64 * 2**20  # bytes that are parsed at a time
_LONGEST = 2**31 - 1  # bytes of a line
MISSING = (
    *("", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
    *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
NUMBER = r"^\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*$"
_DAY = r"(\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d{2,4}|\d{1,2}/\d{1,2}/\d{2,4})"
_DATE = re.compile(rf"^\s*{_DAY}([T ]\d\d:\d\d(:\d\d([.,]\d+)?)? ?(Z|[+-]\d\d:?\d\d)?)?\s*$")
_HINT = re.compile(rb"sep=([^\r\n])(\r\n|\n|\r)", re.IGNORECASE)  # A first line that tells Excel the delimiter.
_FEWEST_LABELS = 6  # numbers that can hardly be in order by chance
_FEWEST_COUNTED = 4  # columns that count up; three could be a triple
_TITLES = {"", "id", "index", "key", "name", "names", "row", "rows", "row_name", "row_names", "rowname", "unnamed: 0"}


_NO_DOUBLE = "conversion error to double"  # What Arrow says of text where a number should be.


class NotNumbers(ValueError):
    """Cells of a text table are not numbers."""


@dataclass(frozen=True)
class Beginning:
    """The first lines of a text table.

    Attributes
    ----------
    delimiter : str
    lines : list of lists of str
        Their cells.
    starts : list of int
        Bytes of UTF-8 at which they begin.
    encoding : Encoding
    styles : tuple of Numerals
        The ways of writing numbers that the user leaves open.
    numerals : Numerals
        The way in which they are written, as far as it is known.
    loose : frozenset of str
        Columns f0, f1, ... of numbers with groups of digits or units.
    is_settled : bool
        Whether some cell, or the user, decides about the way.
    """

    delimiter: str
    lines: list[list[str]]
    starts: list[int]
    encoding: Encoding = UTF8
    styles: tuple[Numerals, ...] = (PLAIN,)
    numerals: Numerals = PLAIN
    loose: frozenset[str] = frozenset()
    is_settled: bool = True

    @property
    def may_have_grouped_points(self) -> bool:
        """Whether points may stand between groups of digits: only where semicolons leave commas to be decimal."""
        return self.delimiter == ";" and self.numerals.decimal == "." and len(self.styles) > 1


def beginning(path: Path, delimiter: str | None = None, encoding: str | Encoding | None = None) -> Beginning:
    """The delimiter, the encoding and the first lines of a text table."""
    encoding = encoding if isinstance(encoding, Encoding) else encoding_of(path, encoding)
    with opened_text(path, encoding) as file:
        head, is_cut = _more(file, b"", 2**20)
        at = len(encoding.mark) if encoding.is_utf8 else 0
        hint = _HINT.match(head, at)
        if hint is not None:
            at, delimiter = hint.end(), delimiter or hint[1].decode()
        delimiter = delimiter or _delimiter(path, head[at:], is_cut)
        record = _record(delimiter)
        while is_cut and len(head) < _LONGEST and sum(1 for _ in _lines(record, head, at, is_cut)) < _FEWEST_LINES:
            head, is_cut = _more(file, head, len(head))
    found = list(_lines(record, head, at, is_cut))
    if not found:
        raise ValueError(f"{printable(path)} has only empty lines: save the table anew")
    lines = [_cells(_decoded(path, line), delimiter) for _, line in found]
    return Beginning(delimiter, lines, [start for start, _ in found], encoding)


def _more(file, head: bytes, count: int) -> tuple[bytes, bool]:
    """The head with as many more bytes, and whether others may follow."""
    parts, wanted = [head], count
    while wanted > 0 and (part := file.read(wanted)):
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts), wanted <= 0


def _lines(record: re.Pattern, head: bytes, at: int, is_cut: bool) -> Iterator[tuple[int, bytes]]:
    """Where the first lines that are not empty begin, and these; not the last one if others may follow it."""
    count = 0
    while at < len(head) and count < _SAMPLE:
        end = record.match(head, at).end()
        if is_cut and end == len(head):
            return
        line = head[at:end].rstrip(b"\r\n")
        if line:
            yield at, line
            count += 1
        at = end


def _delimiter(path: Path, head: bytes, is_cut: bool) -> str:
    """A tab or semicolon that every line has equally often, else the most frequent sign of the first line.

    Signs in quotation marks do not count; a file called .tsv has tabs. Commas alone say little: they may be decimal.
    """
    if path.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    lines = [line for line in re.sub(rb'"[^"]*"', b"", head).splitlines() if line]
    first, others = lines[0] if lines else b"", (lines[1:-1] if is_cut else lines[1:])[:_SAMPLE]
    for mark in (b"\t", b";"):
        count = first.count(mark)
        if count and all(line.count(mark) == count for line in others):
            return mark.decode()
    return max(",\t;", key=lambda mark: first.count(mark.encode()))


def _record(delimiter: str) -> re.Pattern:
    """One line with its end; a cell in quotation marks may hold ends of lines."""
    mark = re.escape(delimiter.encode())
    cell = rb'(?:"[^"]*(?:""[^"]*)*"?)?[^' + mark + rb"\r\n]*"
    return re.compile(cell + rb"(?:" + mark + cell + rb")*(?:\r\n|\n|\r)?")


def _cells(line: str, delimiter: str) -> list[str]:
    mark = re.escape(delimiter)
    found = re.compile(rf'(?:^|{mark})(?:"([^"]*(?:""[^"]*)*)"?)?([^{mark}]*)').findall(line)
    return [quoted.replace('""', '"') + rest for quoted, rest in found]


def _decoded(path: Path, line: bytes) -> str:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise NotUtf8(path) from None
    if "\0" in text:
        raise ValueError(f"{printable(path)} is not a text table: it has bytes that are no text; save it as csv")
    return text


def has_header(lines: list[list[str]]) -> bool:
    """Whether the first line holds names.

    It does if there is text in it besides the first cell; or in the first cell and no text below it; or if that cell
    is a usual title, or the others look like years, wavelengths or numbers of things; or if nothing stands in the first
    cell and the others look like numbers of columns, as pandas writes them; or if all count up from 0 or 1, as it
    writes them without an index. Columns of text tell nothing, unless they hold dates or Booleans and their first cell
    is another text.
    """
    text = {j: cells for j, cells in text_columns(lines[1:]).items() if j > 0}
    titles = {j: lines[0][j] for j in text if j < len(lines[0]) and _is_text(lines[0][j])}
    if any(text_kind([title]) != text_kind(text[j]) for j, title in titles.items()):
        return True
    lines = [[cell for j, cell in enumerate(line) if j not in text] for line in lines]
    first, below = lines[0], [line[0] for line in lines[1:]]
    if any(_is_text(cell) for cell in first[1:]):
        return True
    if _is_text(first[0]):
        is_title = first[0].strip().lower() in _TITLES
        return is_title or not any(_is_text(cell) for cell in below) or _are_labels(lines)
    if _counts_columns(lines):
        return True
    numbered = all(cell.strip().isdigit() for cell in first[1:]) and _distinct(first[1:])
    return len(first) > 1 and first[0].strip() == "" and numbered and bool(below) and _distinct(below)


def _counts_columns(lines: list[list[str]]) -> bool:
    """Whether the first line is 0, 1, 2, ... or 1, 2, 3, ...; a short one only if the numbers below are not whole."""
    cells = [cell.strip() for cell in lines[0]]
    if cells not in ([str(k + first) for k in range(len(cells))] for first in (0, 1)) or len(cells) < _FEWEST_COUNTED:
        return False
    below = [float(cell) for line in lines[1:] for cell in line if re.match(NUMBER, cell)]
    return bool(below) and (len(cells) >= _FEWEST_LABELS or not all(number.is_integer() for number in below))


def _are_labels(lines: list[list[str]]) -> bool:
    """Whether the numbers of the first line, its first cell apart, rise or fall, or are whole and those below not."""
    cells = lines[0][1:]
    if len(cells) < _FEWEST_LABELS or not all(re.match(NUMBER, cell) for cell in cells) or not _distinct(cells):
        return False
    numbers = [float(cell) for cell in cells]
    if numbers in (sorted(numbers), sorted(numbers, reverse=True)):
        return True
    below = [cell for line in lines[1:] for cell in line[1:] if re.match(NUMBER, cell)]
    return all(number.is_integer() for number in numbers) and not all(float(cell).is_integer() for cell in below)


def has_row_names(body: list[list[str]], title: str | None) -> bool:
    """Whether the first column holds names: text, or whole numbers, different under a usual title or counting up."""
    cells = [line[0] for line in body]
    if any(_is_text(cell) for cell in cells):
        return True
    if title is None or not all(cell.strip().isdigit() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    counts_up = numbers == list(range(numbers[0], numbers[0] + len(numbers))) and len(numbers) >= _FEWEST_LABELS
    return counts_up or (title.strip().lower() in _TITLES and _distinct(cells))


def text_columns(lines: list[list[str]]) -> dict[int, list[str]]:
    """The columns with text and without a number in some lines, by position, with their cells that are not empty."""
    columns: dict[int, list[str]] = {}
    for line in lines:
        for j, cell in enumerate(line):
            if cell.strip() and cell not in MISSING:
                columns.setdefault(j, []).append(cell)
    return {j: cells for j, cells in columns.items() if not any(map(is_any_number, cells))}


def text_kind(cells) -> str:
    """What the cells of a column of text hold: dates, Booleans or text."""
    if all(cell.strip().lower() in ("true", "false") for cell in cells):
        return "Booleans"
    return "dates" if all(_DATE.match(cell) for cell in cells) else "text"


def _is_text(cell: str) -> bool:
    return cell not in MISSING and cell.strip() != "" and re.match(NUMBER, cell) is None


def _distinct(cells: list[str]) -> bool:
    return all(cell.strip() for cell in cells) and len(set(cells)) == len(cells)


def read_columns(path: Path, begun: Beginning, header: bool, text=(), only=None, missing=()):
    """An Arrow table of the lines after the header, columns called f0, f1, ..., of float64 except those in `text`.

    Words in `missing` are null, besides those that always are. Columns with units have them in their metadata.
    """
    pyarrow = needed_module("pyarrow", "cli")
    body = begun.lines[header]
    fields = [f"f{j}" for j in range(len(body))]
    loose = begun.loose.difference(text)
    types = {name: pyarrow.string() if name in text or name in loose else pyarrow.float64() for name in fields}
    arguments = path, begun, begun.starts[header], types, only, (*MISSING, *missing)
    titles = begun.lines[0] if header else None
    try:
        table = _parsed(*arguments)
    except pyarrow.ArrowInvalid as error:
        kind = NotNumbers if _NO_DOUBLE in str(error) else NotUtf8 if _is_about_utf8(error) else ValueError
        raise (NotUtf8(path) if kind is NotUtf8 else kind(_refusal(error, arguments, titles, text))) from None
    except UnicodeDecodeError:
        raise ValueError(
            f"{printable(path)} is not text in {begun.encoding.in_words()}; name another one with --encoding"
            " (encoding=...)"
        ) from None
    for k, name in enumerate(table.column_names):
        if name in loose:
            table = table.set_column(k, *_loose_numbers(table, name, arguments, titles, text))
    _refuse_rounded(table, arguments, titles, {*text, *loose})
    return table


def _loose_numbers(table, name: str, arguments, titles, text) -> tuple:
    """A field and a column of numbers from text with groups of digits or units."""
    import pyarrow
    import pyarrow.compute as pc

    path, begun, _, types, only, missing = arguments
    cells, numerals = known_cells(table.column(name), missing), begun.numerals

    def where(row: int) -> str:
        return place_in_words(table, row, name, titles, len(types), text)

    wrong = pc.index(pc.match_substring_regex(cells, numerals.loose), False).as_py()
    if wrong >= 0:
        raise NotNumbers(_not_a_number(arguments, 1, where(wrong), cells[wrong].as_py()))
    refuse_uneven_groups(path, numerals, cells, where)
    plain_text, units = numerals.plain_column(cells), numerals.units(cells)
    if len(units) > 1:
        some = " and ".join(shown("number".join(unit)) for unit in units[:2])
        raise ValueError(
            f"column {where(0).rpartition('column ')[2]} of {printable(path)} holds numbers in different units, such as"
            f" {some}: convert them to one, or set the column aside with --ignore (ignore=...)"
        )
    numbers = plain_text.cast(pyarrow.float64())
    at = first_rounded_text(plain_text, numbers) if reaches_exact(numbers) else None
    if at is not None:
        raise ValueError(_rounded(path, where(at), int(plain_text[at].as_py()), only))
    before, behind = units[0] if units else ("", "")
    metadata = {"before": before, "behind": behind} if before or behind else None
    return pyarrow.field(name, pyarrow.float64(), metadata=metadata), numbers


def units_of(field) -> tuple[str, str] | None:
    """What stands before and behind the numbers of a column that `read_columns` read; None if nothing does."""
    found = field.metadata
    return None if not found else (found[b"before"].decode(), found[b"behind"].decode())


def _is_about_utf8(error) -> bool:
    return "UTF8" in str(error)


def _refuse_rounded(table, arguments, titles, text) -> None:
    """Refuse whole numbers that float64 would change. Columns with large numbers are read again, as text."""
    import pyarrow

    large = [name for name in table.column_names if name not in text and reaches_exact(table.column(name))]
    if not large:
        return
    path, begun, start, types, only, missing = arguments
    asked = [name for name in table.column_names if name in text] + large
    cells = _parsed(path, begun, start, dict.fromkeys(types, pyarrow.string()), asked, missing)
    for name in large:
        at = first_rounded_text(cells.column(name), table.column(name))
        if at is not None:
            where = place_in_words(cells, at, name, titles, len(types), text)
            raise ValueError(_rounded(path, where, int(cells.column(name)[at].as_py()), only))


def _rounded(path: Path, where: str, number: int, only) -> str:
    remedy = "" if only else "; set identifiers aside with --ignore (ignore=...)"
    return rounded_words(f"the cell of {printable(path)} in {where}", number) + remedy


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


def _refusal(error, arguments, titles, text) -> str:
    """Why a table cannot be read."""
    import pyarrow

    path, begun, start, types = arguments[:4]
    if _NO_DOUBLE in str(error):
        try:
            return _wrong_cells(arguments, titles, text) or f"{printable(path)}: {one_line(error)}"
        except pyarrow.ArrowInvalid as another:
            error = another
    if _is_about_utf8(error):
        raise NotUtf8(path) from None
    return _uneven_line(path, begun, start, len(types)) or (
        f"{printable(path)} cannot be read as a table: {one_line(error)}"
    )


def _uneven_line(path: Path, begun: Beginning, start: int, n_cells: int) -> str | None:
    """Which line has more or fewer cells than the first; None if none is found."""
    delimiter = begun.delimiter
    with opened_text(path, begun.encoding) as file:
        line = len(file.read(start).splitlines()) + 1
        text = TextIOWrapper(file, newline="", encoding="utf-8", errors="replace")
        lines = csv.reader(text, delimiter=delimiter)
        first = line
        try:
            for cells in lines:
                if len(cells) not in (0, n_cells):
                    has = f"line {line:,} of {printable(path)} has {len(cells):,} cells where others have {n_cells:,}"
                    if first + lines.line_num - line > 1:
                        return f"{has}: a quotation mark in it is not closed"
                    return f"{has}: mend it, or put quotes about a cell that holds {delimiter!r}"
                line = first + lines.line_num
        except csv.Error:  # a cell without end
            return f"line {line:,} of {printable(path)} has a cell that does not end: close its quotation mark"
    return None


def _parsed(path: Path, begun: Beginning, start: int, types: dict, only, missing, block: int = _BLOCK):
    """The table by Arrow; blocks grow until the longest line fits into one."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    several = len(types) > 1
    parse = arrow_csv.ParseOptions(delimiter=begun.delimiter, newlines_in_values=True, ignore_empty_lines=several)
    told = {"column_types": types, "null_values": missing, "include_columns": only}
    convert = arrow_csv.ConvertOptions(**told, decimal_point=begun.numerals.decimal)
    read = arrow_csv.ReadOptions(autogenerate_column_names=True, block_size=block)
    with opened_text(path, begun.encoding, start) as file:
        source = file
        if path.stat().st_size - start < block:  # Arrow wants an end of the only line
            content = file.read()
            source = pyarrow.BufferReader(content if content.endswith((b"\n", b"\r")) else content + b"\n")
        try:
            return arrow_csv.read_csv(source, read, parse, convert)
        except pyarrow.ArrowInvalid as error:
            if "straddling" not in str(error) or block == _LONGEST:
                raise
    return _parsed(path, begun, start, types, only, missing, _LONGEST)


def _wrong_cells(arguments, titles, text) -> str | None:
    """Which cells are no numbers."""
    import pyarrow
    import pyarrow.compute as pc

    path, begun, start, types, only, missing = arguments
    table = _parsed(path, begun, start, dict.fromkeys(types, pyarrow.string()), only, missing)
    pattern = begun.numerals.loose
    count, first = 0, None
    for name, column in zip(table.column_names, table.columns):
        if name not in text:
            good = pc.or_(pc.match_substring_regex(column, pattern), pc.is_in(column, pyarrow.array(missing)))
            wrong = pc.indices_nonzero(pc.invert(good))
            count += len(wrong)
            if len(wrong) and (first is None or wrong[0].as_py() < first[0]):
                first = wrong[0].as_py(), name, column[wrong[0].as_py()].as_py()
    if first is None:
        return None
    row, name, cell = first
    return _not_a_number(arguments, count, place_in_words(table, row, name, titles, len(types), text), cell)


def _not_a_number(arguments, count: int, place: str, cell: str) -> str:
    path, begun, _, _, only, _ = arguments
    remedy = "leave it empty, or name it with --missing (missing=...), if it is not known"
    if is_any_number(cell):
        sign = "point" if begun.numerals.decimal == "." else "comma"
        remedy = f"numbers of this file have a decimal {sign}; mend it, or say --decimal (decimal=...)"
    elif only is None:
        remedy += "; or set its column aside with --ignore (ignore=...)"
    wrong = (
        f"1 cell of {printable(path)} is not a number, in"
        if count == 1
        else f"{count:,} cells of {printable(path)} are not numbers, the first in"
    )
    return f"{wrong} {place}: {shown(cell)}; {remedy}"


def place_in_words(table, row: int, name: str, titles, n_columns: int, text) -> str:
    """Row and column of a cell; columns are called f0, f1, ... in the table, and f0 may hold names of rows."""
    named = f" ({shown(table.column('f0')[row].as_py())})" if "f0" in text and "f0" in table.column_names else ""
    j = int(name[1:])
    return f"row {row}{named}, column " + (shown(titles[j - (n_columns - len(titles))]) if titles else str(j))


def plain(names):
    """Names without the mark that `guarded` set before what a spreadsheet would take for a formula."""
    return None if names is None else [name[1:] if _GUARDED.match(name) else name for name in names]


def guarded(name: str) -> str:
    """A name that no spreadsheet takes for a formula: an apostrophe before =, +, -, @, unless it is a number."""
    return "'" + name if _FORMULA.match(name) and not re.match(NUMBER, name, re.ASCII) else name


# What a spreadsheet skips before a formula: blanks, and characters that are not seen.
_SKIPPED = r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff]*"
_SIGNS = r"[=+\-@\t\r\n＝＋－＠﹦﹢﹣﹫]"
_FORMULA = re.compile(f"'*{_SKIPPED}{_SIGNS}")
_GUARDED = re.compile(f"'+{_SKIPPED}{_SIGNS}")
