"""Wide text tables: columns of numbers are the matrix, columns of text are set aside as they stand in the file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ..._support.arguments import printable, shown
from ..._support.numbers import BLOCK_CELLS, EXACT
from ...data.frame_numbers import matrix_of_frame
from ...data.observations import Observations
from ...data.set_aside import named_columns, split
from .csv import MISSING, Beginning, are_codes, has_header, has_repeats, has_row_names, plain, text_columns, text_kind
from .csv_cells import NotNumbers, line_of, place_in_words, read_columns, units_of
from .dialects import FOUND_OUT, DialectOptions, with_encoding
from .kinds import TIMES_TABLE, TIMES_TEXT, FileForm, refuse_beyond_memory, refuse_one_column
from .numerals import STYLES
from .styles import first_look, known_cells, may_be_grouped, plain_lines, settled

_NOTHING = frozenset(MISSING)


def read_csv(
    path: Path,
    header,
    row_names,
    dialect: DialectOptions = FOUND_OUT,
    missing=(),
    limit: float | None = None,
    *,
    ignore=(),
    only=None,
) -> Observations:
    """A wide table; a cell that is empty, or one of the words `missing`, is unseen.

    Columns of text are set aside, as are those that `ignore` names or `only` does not.
    """
    refuse_beyond_memory(path, path.stat().st_size, times=TIMES_TEXT, limit=limit)
    names = {"ignore": ignore, "only": only}
    return with_encoding(path, dialect, lambda begun: _read(path, begun, header, row_names, missing, limit, names))


def _read(path: Path, begun: Beginning, header, row_names, missing, limit, named: dict) -> Observations:
    _refuse_many_cells(path, begun, limit)
    begun = replace(begun, lines=[["" if cell in missing else cell for cell in line] for line in begun.lines])
    begun = first_look(begun, begun.styles, _NOTHING)
    first, lines = begun.lines[0], plain_lines(begun, _NOTHING)
    untitled = len(lines) > 1 and len(lines[1]) == len(first) + 1  # R sets no title over row names
    if header == "auto":
        header = untitled or has_header(lines)
    body = lines[header:]
    if not body:
        raise ValueError(
            f"{printable(path)} has a line of names and no row; say --no-header (header=False) if these are data"
        )
    is_guess = row_names == "auto" and not untitled
    if row_names == "auto":
        given = {str(name) for one in named.values() for name in named_columns(one)}
        is_named = not untitled and (plain(first)[0] if header else "0") in given
        row_names = untitled or (not is_named and has_row_names(body, first[0] if header else None))
    titles = first[row_names and not untitled :] if header else None
    if titles is not None and len(titles) != len(body[0]) - row_names:
        raise ValueError(
            f"{printable(path)} has {len(first)} names in its first line and {len(body[0])} cells in the next:"
            " check the delimiter, or say --no-header (header=False)"
        )
    labels = [str(j) for j in range(row_names, len(body[0]))] if titles is None else plain(titles)
    begun, names, numbers, aside = _parts(path, begun, header, row_names, labels, missing, named)
    if is_guess and row_names and has_repeats(names):  # The first lines did not show it.
        return _read(path, begun, header, False, missing, limit, named)
    matrix = matrix_of_frame(numbers)
    _refuse_infinite(path, begun, header, numbers, matrix)
    if begun.may_have_grouped_points and may_be_grouped(matrix):
        every = [f"f{j}" for j in range(len(body[0]))]
        cells = read_columns(path, begun, header, every, numbers.column_names, missing)
        _settled(path, begun, header, cells, numbers.column_names, every[:row_names], missing)
    form = FileForm(
        "csv",
        delimiter=begun.delimiter,
        header=header,
        corner=None if untitled else plain(first)[0] if header else "",
        aside=aside,
        whole=whole_columns(matrix),
        decimal=begun.numerals.decimal,
        units={k: unit for k, field in enumerate(numbers.schema) if (unit := units_of(field)) is not None},
        encoding=begun.encoding,
        line_of=partial(line_of, path, begun, header),
    )
    titles = None if titles is None else [labels[int(name[1:]) - row_names] for name in numbers.column_names]
    return Observations.from_dense(matrix, row_names=plain(names), column_names=titles, origin=form)


def _refuse_infinite(path: Path, begun: Beginning, header, numbers, matrix) -> None:
    infinite = np.argwhere(np.isinf(matrix))
    if len(infinite):
        row, column = infinite[0]
        place = place_in_words(path, begun, header, numbers, int(row), numbers.column_names[column], ())
        raise ValueError(
            f"the cell of {printable(path)} in {place} is infinite or above 1.8e308 ({len(infinite):,} in all):"
            " leave it empty if it is not known"
        )


def _refuse_many_cells(path: Path, begun: Beginning, limit: float | None) -> None:
    """Refuse a table that would not fit: 8 bytes for a cell, as many as the length of the first lines tells."""
    last = begun.lines[1:] or begun.lines  # The line of names may be much longer than others.
    length = sum(len(cell) + 1 for line in last for cell in line)
    cells = path.stat().st_size / max(1, length) * sum(map(len, last))
    refuse_beyond_memory(path, 8.0 * cells, times=TIMES_TABLE, limit=limit)


def _parts(path: Path, begun: Beginning, header, row_names, labels, missing, given: dict) -> tuple:
    """The settled beginning; the row names, if there are any; an Arrow table of numbers; and what is set aside.

    Parameters
    ----------
    labels : list of str
        Names of all columns but that of the row names.
    given : dict
        `ignore` and `only`.
    """
    fields = [f"f{j + row_names}" for j in range(len(labels))]
    named = set(split(labels, [None] * len(labels), **given)[0])  # The rest is left out by its name.
    kept = (["f0"] if row_names else []) + [field for k, field in enumerate(fields) if k not in named]
    begun, table, text = _with_text(path, begun, header, kept, missing)
    kinds = []
    for field, label in zip(fields, labels):
        where = partial(place_in_words, path, begun, header, table, name=field, text=kept)
        kinds.append(_kind(path, label, table.column(field), missing, where) if field in text else None)
    used, aside = split(labels, kinds, **given)
    if aside is not None:
        refuse_one_column(path, [labels[k] for k in used], aside)
        aside = replace(aside, columns=table.select([fields[k] for k in aside.places]))
    names = table.column(0).to_pylist() if row_names else None
    return begun, names, table.select([fields[k] for k in used]), aside


def _with_text(path: Path, begun: Beginning, header, kept: list[str], missing) -> tuple:
    """The settled beginning, an Arrow table of all columns, and which of them, `kept` apart, are text.

    The first lines tell the columns of text and the way in which numbers are written. If they leave it open, or the
    file has other cells, it is read again.
    """
    text, failure = {f"f{j}" for j in text_columns(plain_lines(begun, _NOTHING)[header:])} - set(kept), None
    if begun.is_settled:
        try:
            return begun, read_columns(path, begun, header, {*kept, *text}, missing=missing), text
        except NotNumbers as error:
            failure = error
    every = [f"f{j}" for j in range(len(begun.lines[header]))]
    cells = read_columns(path, begun, header, every, missing=missing)
    more = {name for name in every if name not in kept and _is_text(cells.column(name), missing, begun.styles)} - text
    numbers = [name for name in every if name not in kept and name not in text | more]
    found = _settled(path, begun, header, cells, numbers, kept, missing)
    if failure is not None and not more and (found.numerals, found.loose) == (begun.numerals, begun.loose):
        raise failure
    text |= more
    return found, read_columns(path, found, header, {*kept, *text}, missing=missing), text


def _settled(path: Path, begun: Beginning, header, cells, numbers, kept, missing) -> Beginning:
    """The beginning with the way in which the cells of these columns are written; see `_styles.settled`."""

    def place(row: int, name: str) -> str:
        return place_in_words(path, begun, header, cells, row, name, kept)

    return settled(path, begun, cells.select(numbers), (*MISSING, *missing), place)


def _is_text(column, missing, styles) -> bool:
    return len(_known(column, missing)) > 0 and _first_number(column, missing, (*STYLES, *styles)) is None


def _known(column, missing):
    """The different cells of a column of text that stand for something."""
    import pyarrow.compute as pc

    return pc.unique(known_cells(column, (*MISSING, *missing)).drop_null())


def _first_number(column, missing, styles=STYLES) -> int | None:
    """The row of the first cell of a column of text that is a number and not one of the words `missing`."""
    import pyarrow.compute as pc

    known = known_cells(column, (*MISSING, *missing))
    rows = (pc.index(pc.match_substring_regex(known, style.loose), True).as_py() for style in styles)
    return min((row for row in rows if row >= 0), default=None)


def _kind(path: Path, label: str, column, missing, where) -> str:
    """What a column of text holds; one with numbers beside the text is refused."""
    known, row = _known(column, missing), _first_number(column, missing)
    if row is not None and are_codes(known.to_pylist()):
        return "codes with leading zeros"
    if row is not None:
        line = where(row).partition(",")[0]
        raise ValueError(
            f"column {shown(label)} of {printable(path)} holds text and numbers, such as {shown(known[0])} and"
            f" {shown(column[row])} in {line}: some cells are not numbers. Name text that stands for nothing with"
            " --missing (missing=...), or set the column aside with --ignore (ignore=...)"
        )
    return text_kind(known.to_pylist())


def whole_columns(matrix: np.ndarray) -> dict:
    """The columns whose known cells are whole numbers that float64 holds exactly, and -0 is not one of them."""
    import pyarrow

    found: dict = {}
    step = max(1, BLOCK_CELLS // len(matrix))
    for lo in range(0, matrix.shape[1], step):
        block = matrix[:, lo : lo + step]
        is_whole = np.isnan(block) | ((block == np.rint(block)) & (np.abs(block) <= EXACT))
        is_whole &= ~((block == 0) & np.signbit(block))
        found |= {lo + int(k): pyarrow.int64() for k in np.flatnonzero(is_whole.all(axis=0))}
    return found
