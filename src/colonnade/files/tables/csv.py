"""Text tables: delimiter, header and row names, as the first lines show them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..._support.arguments import printable
from .encodings import UTF8, Encoding, NotUtf8, encoding_of, opened_text
from .numerals import PLAIN, Numerals, is_any_number

SAMPLE_LINES = 200  # Lines that decide whether there are names.
_FEWEST_LINES = 8  # Lines that are read for it however long they are: a header and _FEWEST_LABELS others.
LONGEST = 2**31 - 1  # Bytes of a line.
MISSING = (
    *("", " ", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
    *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
NUMBER = r"^\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*$"
_DAY = r"(\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d{2,4}|\d{1,2}/\d{1,2}/\d{2,4})"
_DATE = re.compile(rf"^\s*{_DAY}([T ]\d\d:\d\d(:\d\d([.,]\d+)?)? ?(Z|[+-]\d\d:?\d\d)?)?\s*$")
_HINT = re.compile(rb"sep=([^\r\n])(\r\n|\n|\r)", re.IGNORECASE)  # A first line that tells Excel the delimiter.
_FEWEST_LABELS = 6  # Labels that are in order by chance once in 720 tables.
_FEWEST_COUNTED = 4  # Columns that count up; three could be a triple.
_TITLES = {"", "id", "index", "key", "name", "names", "row", "rows", "row_name", "row_names", "rowname", "unnamed: 0"}


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
        while is_cut and len(head) < LONGEST and sum(1 for _ in _lines(record, head, at, is_cut)) < _FEWEST_LINES:
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
    while at < len(head) and count < SAMPLE_LINES:
        found = record.match(head, at)
        assert found is not None, "a record may be of any kind"
        end = found.end()
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
    first, others = lines[0] if lines else b"", (lines[1:-1] if is_cut else lines[1:])[:SAMPLE_LINES]
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
    """Whether the first column holds names: different texts, or whole numbers that count up or have a usual title.

    Text that repeats, such as a city in several rows, is a column of text. So are signs and digits with an empty cell.
    Amounts such as $1,200 are numbers.
    """
    cells = [line[0] for line in body]
    texts = [cell for cell in cells if _is_text(cell)]
    if texts or are_codes(cells):
        has_words = any(letter.isalpha() for letter in "".join(texts))
        return not has_repeats(cells) and (has_words or _distinct(cells)) and not any(map(is_any_number, texts))
    if title is None or not all(cell.strip().isdigit() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    counts_up = numbers == list(range(numbers[0], numbers[0] + len(numbers))) and len(numbers) >= _FEWEST_LABELS
    return counts_up or (title.strip().lower() in _TITLES and _distinct(cells))


def has_repeats(names) -> bool:
    """Whether a name stands for several rows; empty cells do not count."""
    known = [name for name in names if name is not None and name.strip()]
    return len(set(known)) < len(known)


def text_columns(lines: list[list[str]]) -> dict[int, list[str]]:
    """The columns with text and without a number in some lines, by position, with their cells that are not empty.

    Codes such as 01067 are text.
    """
    columns: dict[int, list[str]] = {}
    for line in lines:
        for j, cell in enumerate(line):
            if cell.strip() and cell not in MISSING:
                columns.setdefault(j, []).append(cell)
    return {j: cells for j, cells in columns.items() if are_codes(cells) or not any(map(is_any_number, cells))}


def text_kind(cells) -> str:
    """What the cells of a column of text hold: dates, Booleans or text."""
    if all(cell.strip().lower() in ("true", "false") for cell in cells):
        return "Booleans"
    return "dates" if all(_DATE.match(cell) for cell in cells) else "text"


def _is_text(cell: str) -> bool:
    return cell not in MISSING and cell.strip() != "" and re.match(NUMBER, cell) is None


def are_codes(cells) -> bool:
    """Whether cells are codes such as the postcode 01067: as numbers they would lose their first digit."""
    known = [cell.strip() for cell in cells if cell.strip() and cell not in MISSING]
    return all(map(str.isdigit, known)) and any(cell.startswith("0") and len(cell) > 1 for cell in known)


def _distinct(cells: list[str]) -> bool:
    return all(cell.strip() for cell in cells) and len(set(cells)) == len(cells)


def plain(names):
    """Names without the mark that `guarded` set before what a spreadsheet would take for a formula."""
    return None if names is None else [name[1:] if _GUARDED.match(name) else name for name in names]


def guarded(name: str) -> str:
    """A name that no spreadsheet takes for a formula: an apostrophe before =, +, -, @, unless it is a number."""
    return "'" + name if _FORMULA.match(name) and not re.match(NUMBER, name, re.ASCII) else name


def guarded_cell(cell: str) -> str:
    """The same for text of a text table, which may have its apostrophe already. Dashes and telephone numbers stay."""
    return cell if cell.startswith("'") or _NO_FORMULA.match(cell) or is_any_number(cell) else guarded(cell)


# What a spreadsheet skips before a formula: blanks, and characters that are not seen.
_SKIPPED = r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff]*"
_SIGNS = r"[=+\-@\t\r\n＝＋－＠﹦﹢﹣﹫]"
_FORMULA = re.compile(f"'*{_SKIPPED}{_SIGNS}")
_NO_FORMULA = re.compile(r"[+-]*\s*[0-9][-0-9 ()./]*$|[-\s]*$")
_GUARDED = re.compile(f"'+{_SKIPPED}{_SIGNS}")
