"""The cells that the report shows: some rows and columns of a filled table, with their values and intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._support.arguments import printable
from ...uncertainty.verdict import LEVEL

_MOST_ON_A_SIDE = 400  # Rows or columns of a picture: about the pixels that it has on a screen.
_MIXED_UNITS = 3.0  # Ratio of spreads, or levels in spreads, from which one colour scale for all would hide most rows.
_LONGEST_NAME, _LONGEST_COMMAND = 60, 2_000  # Characters.
_MOST_BLOCKS = 12  # Blocks of a result on the disk that are read for pictures: each may take a second.


@dataclass(frozen=True)
class Cells:
    """Rows and columns of a table, all of them or evenly spaced ones.

    Attributes
    ----------
    rows, columns : int64 arrays of shape (k,) and (l,)
    values : float64 array of shape (k, l)
        NaN where nothing could be filled.
    is_seen : bool array of shape (k, l)
    low, high : float64 arrays of shape (k, l), or None
        Ends of the 90 % intervals; None where the method has none.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    is_seen: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None

    @property
    def is_filled(self) -> np.ndarray:
        return ~self.is_seen & np.isfinite(self.values)


@dataclass(frozen=True)
class Units:
    """Level and spread of the values, by which cells of different units are compared.

    Attributes
    ----------
    side : {"rows", "columns"} or None
        What has units of its own; None if the whole table has one.
    level, spread : float64 arrays
        One number for each row or column of the table, or one in all.
    is_mixed : bool
        Whether units differ so much that pictures must show values in them.
    """

    side: str | None
    level: np.ndarray
    spread: np.ndarray
    is_mixed: bool

    @property
    def kind(self) -> str:
        """The singular of `side`; "" if the whole table has one unit."""
        return "" if self.side is None else self.side[:-1]

    def at(self, rows, columns) -> tuple[np.ndarray, np.ndarray]:
        """Level and spread of entries; arguments broadcast against each other."""
        places = rows if self.side == "rows" else columns if self.side == "columns" else np.zeros(1, np.int64)
        return self.level[places], self.spread[places]

    def scaled(self, values, rows, columns) -> np.ndarray:
        """Values in spreads from their level."""
        level, spread = self.at(rows, columns)
        with np.errstate(over="ignore", invalid="ignore"):
            return (values - level) / spread

    def shown(self, values, rows, columns) -> np.ndarray:
        """Values as pictures show them: as they are where one unit serves all."""
        return self.scaled(values, rows, columns) if self.is_mixed else np.asarray(values, np.float64)

    def widths(self, cells: Cells) -> np.ndarray:
        """Half the width of each interval in spreads, shape (k, l); NaN where nothing was filled, inf if not known."""
        assert cells.low is not None and cells.high is not None
        _, spread = self.at(cells.rows[:, None], cells.columns)
        with np.errstate(over="ignore", invalid="ignore"):
            half = (cells.high / 2 - cells.low / 2) / spread
        return np.where(cells.is_filled, half, np.nan)


def sampled(completion, most_cells: int) -> Cells:
    """The cells of a table, or of evenly spaced rows and columns where there are too many."""
    m, n = completion.shape
    side = min(int(np.sqrt(most_cells)), _MOST_ON_A_SIDE)
    n_columns = min(n, _MOST_ON_A_SIDE, max(side, most_cells // m))
    n_rows = min(m, _MOST_ON_A_SIDE, most_cells // n_columns)
    if m * n <= most_cells:
        n_rows, n_columns = m, n
    return cells_at(completion, evenly(m, n_rows), some_columns(completion, n_columns))


def some_columns(completion, count: int) -> np.ndarray:
    """Evenly spaced columns; those of a large result on the disk are of a few blocks, because blocks are read whole."""
    n, n_blocks = completion.shape[1], completion.n_blocks
    if n_blocks <= _MOST_BLOCKS:
        return evenly(n, count)
    starts, each = completion.starts, max(1, count // _MOST_BLOCKS)
    chosen = (starts[k] + evenly(int(starts[k + 1] - starts[k]), each) for k in evenly(n_blocks, _MOST_BLOCKS))
    return np.unique(np.concatenate(list(chosen)))


def evenly(total: int, count: int) -> np.ndarray:
    """Places of `count` of `total` things, the first and the last among them."""
    return np.linspace(0, total - 1, min(total, count)).round().astype(np.int64)


def cells_at(completion, rows, columns) -> Cells:
    """The cells where some rows and columns meet."""
    values = completion.entries(rows[:, None], columns).astype(np.float64)
    try:
        ends = [end.astype(np.float64) for end in completion.interval(rows[:, None], columns, LEVEL)]
    except ValueError:  # The method has no intervals, or squares of the numbers overflow.
        ends = [None, None]
    return Cells(rows, columns, values, _are_seen(completion, rows, columns), *ends)


def _are_seen(completion, rows, columns) -> np.ndarray:
    i, j = (places.ravel() for places in np.broadcast_arrays(rows[:, None], columns))
    found = np.empty(i.size, bool)
    for first, stop, o in parts_of(completion):
        here = np.flatnonzero((first <= j) & (j < stop))
        if here.size:
            found[here] = o().locate(i[here], j[here] - first) >= 0
    return found.reshape(rows.size, columns.size)


def parts_of(completion):
    """First column, last column and one, and a function that gives the observations: all, or those of a block."""
    solution = completion.solution
    for k in range(solution.n_blocks):
        yield int(solution.starts[k]), int(solution.starts[k + 1]), lambda k=k: solution.block(k).observations


def units_of(completion, cells: Cells) -> Units:
    """Units of the factor model's rows, or one level and spread for the table."""
    if completion.learned is not None:
        model = completion.learned.model
        spread = np.where((model.unit > 0) & np.isfinite(model.unit), model.unit, np.nan)
        usual = np.nanmedian(spread) if np.isfinite(spread).any() else 1.0
        spread = np.where(np.isnan(spread), usual, spread)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = spread.max() / spread.min() > _MIXED_UNITS or np.ptp(model.shift) / usual > 2 * _MIXED_UNITS
        return Units("columns" if completion.learned.is_turned else "rows", model.shift, spread, bool(apart))
    known = cells.values[cells.is_seen & np.isfinite(cells.values)]
    if known.size == 0:
        return Units(None, np.zeros(1), np.ones(1), False)
    size = float(np.abs(known).max()) or 1.0  # Squares of the values themselves may overflow.
    deviation = size * float(np.std(known / size))
    return Units(None, np.array([size * float(np.mean(known / size))]), np.array([deviation or size]), False)


def plain_name(name, longest: int = _LONGEST_NAME) -> str:
    """A name short enough to read, with what is not printable shown by its code."""
    text = str(name)
    return printable(text if len(text) <= longest else text[: longest - 3] + "...")


def shown_command(line: str | None) -> str | None:
    """A command line short enough to read; None if it is not known."""
    return None if line is None else plain_name(line, _LONGEST_COMMAND)


def name_of(names, place: int) -> str:
    """Row or column by its name, else by its number."""
    return str(int(place)) if names is None else plain_name(names[place])
