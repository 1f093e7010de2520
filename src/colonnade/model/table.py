"""A table in units of each row's spread, with its entries by column and by row.

x_ij = (value_ij - shift_i) / unit_i. Multiplying a row by a number or adding one to it changes only `unit` and `shift`,
so that nothing that is learned from x depends on the units of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._support.threads import in_threads
from ..data.observations import Observations, pointers_of

_PIECES = 16  # Pieces into which the groups are cut; more than the threads, so that none waits long.
_WORTH_A_PIECE = 3e6  # Multiplications: about 0.3 ms, in which a thread has started. Pieces do not change results.
_MEDIAN_COST = 30  # Multiplications that take as long as a number of a median.
_ENOUGH = 10  # Entries from which a row's spread is its own; a shorter one borrows: see `_likeness`.
FARTHEST = 1e3  # Spreads at which entries are clipped, so that the square of one code cannot swamp the rest.
_ALIKE = 20.0  # Entries times variance of the logarithms; 2 costs 5 % on short rows of one unit.
_REACH = 10.0  # Robust deviations at which entries are clipped before the spread is taken: one code must not set it.
# Difference of two `_unit_range`: at most .3 of 7 tables in one unit, at least 1.2 of wine and breast cancer. None of
# 278 small public tables of variables has .7 on the side of its samples; with half of the entries three do, up to 1.6.
# So hidden entries have the last word (`selection.py`).
_MIXED_UNITS = 0.9
_UNIT_ROUNDS = 5  # Alternations between units and sizes.
_LOG_VARIANCE = np.pi**2 / 8  # Variance of the logarithm of the size of a normal variable.
_FEWEST = 3  # Entries of a row from which its median deviation says something of its unit.


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries of a table grouped by one side: those of group g stand at ``begins[g]`` to ``begins[g + 1]``.

    Attributes
    ----------
    begins : int64 array of shape (n_groups + 1,)
    others : int array of shape (n_entries,)
        Where each entry stands on the other side.
    values : float64 array of shape (n_entries,)
    weights : float64 array of shape (n_entries,), or of shape (0,) where all are 1
    """

    begins: np.ndarray
    others: np.ndarray
    values: np.ndarray
    weights: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Number of entries of each group."""
        return np.diff(self.begins)

    @cached_property
    def longest(self) -> int:
        """Number of entries of the largest group."""
        return int(self.counts.max(initial=0))

    def groups(self) -> np.ndarray:
        """The group of each entry."""
        return np.repeat(np.arange(self.begins.size - 1), self.counts)


@dataclass(frozen=True, eq=False)
class Summands:
    """Over which others each group sums second moments, beyond a base that all groups share.

    The sum over the entries of a group is a base plus the listed others; or, if `is_rest`, the sum over all others less
    the listed ones, which the group lacks. So a column that is seen in every row costs nothing, and no column costs
    more than half of the rows.

    Attributes
    ----------
    begins : int64 array of shape (n_groups + 1,)
    others : int array
        Those of group g stand at ``begins[g]`` to ``begins[g + 1]``.
    is_rest : bool array of shape (n_groups,)
    full : int64 array
        The others that every group has; their sum is the base of the groups that are not `is_rest`.
    """

    begins: np.ndarray
    others: np.ndarray
    is_rest: np.ndarray
    full: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the kernels need."""
        return self.begins, self.others, self.is_rest

    def bases(self, moments, factors) -> np.ndarray:
        """Sums of ``factors[i] * moments[i]`` over the full others and over all others, shape (2, size)."""
        result = np.zeros((2, moments.shape[1]))
        if self.full.size:
            result[0] = np.einsum("i,ij->j", factors[self.full], moments[self.full])
        if self.is_rest.any():
            result[1] = np.einsum("i,ij->j", factors, moments)
        return result


@dataclass(frozen=True, eq=False)
class ScaledTable:
    """What the factor model learns from.

    Attributes
    ----------
    by_column, by_row : Entries
    order : int64 array of shape (n_entries,)
        Where the entries of `by_row` stand in `by_column`.
    shift, unit : float64 arrays of shape (m,)
        Typical value and spread of each row; a row whose entries are all equal has unit 0.
    """

    by_column: Entries
    by_row: Entries
    order: np.ndarray
    shift: np.ndarray
    unit: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.by_row.begins.size - 1, self.by_column.begins.size - 1

    @cached_property
    def column_summands(self) -> Summands:
        """Summands of the sums over the rows of each column; they do not depend on other columns of the table."""
        return _summands(self.by_column, np.zeros(self.shape[0], bool))

    @cached_property
    def row_summands(self) -> Summands:
        """Summands of the sums over the columns of each row."""
        return _summands(self.by_row, self.by_column.counts == self.shape[0])

    def with_weights(self, weights) -> ScaledTable:
        """The same entries with other weights, given in the order of `by_column`."""
        by_column, by_row = self.by_column, self.by_row
        columns = Entries(by_column.begins, by_column.others, by_column.values, weights)
        rows = Entries(by_row.begins, by_row.others, by_row.values, weights[self.order])
        return ScaledTable(columns, rows, self.order, self.shift, self.unit)


def _summands(e: Entries, is_full) -> Summands:
    """Summands of the groups of one side; `is_full` tells which others every group has."""
    counts, full = e.counts, np.flatnonzero(is_full)
    is_rest = is_full.size - counts < counts - full.size
    if e.weights.size or not (full.size or is_rest.any()):  # With weights nothing is shared.
        return Summands(e.begins, e.others, np.zeros(counts.size, bool), np.zeros(0, np.int64))
    lengths = np.where(is_rest, is_full.size - counts, counts - full.size)
    others = np.empty(lengths.sum(), e.others.dtype)
    in_rest = np.repeat(is_rest, lengths)
    of_rest = np.repeat(is_rest, counts)
    others[~in_rest] = e.others[~(of_rest | is_full[e.others])]
    # Less than half of the rest is lacking, so this table has at most twice as many cells as there are entries.
    is_seen = np.zeros((np.count_nonzero(is_rest), is_full.size), bool)
    is_seen[np.repeat(np.arange(is_seen.shape[0]), counts[is_rest]), e.others[of_rest]] = True
    others[in_rest] = np.nonzero(~is_seen)[1]
    return Summands(np.append(0, np.cumsum(lengths)), others, is_rest, full)


def scaled_table(o: Observations, *, one_unit: bool = False) -> ScaledTable:
    """The observations in units of each row's spread, or in one unit for all rows."""
    values, (begins, columns, order) = o.values.astype(np.float64), o.by_rows()
    shift, unit, _ = _spreads(begins, values[order])
    if one_unit and unit.any():
        largest = float(unit.max())
        unit = np.where(unit > 0, largest * np.sqrt(np.mean((unit[unit > 0] / largest) ** 2)), 0.0)
    return _in_units(o, values, begins, columns, order, shift, unit)


def unit_degrees(o: Observations) -> np.ndarray:
    """Degrees of freedom of the unit of every row: its entries and those it borrows, less one for the shift."""
    begins, _, order = o.by_rows()
    return _spreads(begins, o.values[order].astype(np.float64))[2]


def _unit_range(begins, others, values, n_others: int) -> float:
    """How far the units of the rows differ: standard deviation of the logarithms of the units, less that of chance.

    The distance of an entry from its row's median is fitted as a unit of the row times a size of the column. Without
    the sizes, rows that lack different variables seem to differ in unit. Of tables in one unit the range is below 1 on
    either side; variables in units of their own have 1 to 5.
    """
    from scipy import sparse

    values, counts = values.astype(np.float64), np.diff(begins)
    with np.errstate(over="ignore"):
        off = np.abs(values - np.repeat(_medians(begins, values), counts))
    known = (off > 0) & np.isfinite(off) & np.repeat(counts >= _FEWEST, counts)
    if not known.all():
        counts, others, off = np.diff(pointers_of(known)[begins]), others[known], off[known]
    # A matrix of the logarithms for their sums, and of ones for those of units and sizes.
    entries = sparse.csr_array((np.log(off), others, pointers_of(counts)), shape=(counts.size, n_others))
    of_rows, of_columns = np.maximum(1, counts), np.maximum(1, np.bincount(others, minlength=n_others))
    row_means, column_means = entries.sum(axis=1) / of_rows, entries.sum(axis=0) / of_columns
    entries.data[:] = 1.0
    units = np.zeros(counts.size)
    for _ in range(_UNIT_ROUNDS):
        sizes = column_means - (entries.T @ units) / of_columns
        units = row_means - (entries @ sizes) / of_rows
    found = units[counts > 0]
    if found.size < 2:
        return 0.0
    by_chance = _LOG_VARIANCE * float(np.mean(1 / counts[counts > 0]))
    return float(np.sqrt(max(0.0, float(np.var(found)) - by_chance)))


def side_of_units(o: Observations) -> str | None:
    """ "rows" or "columns" if their units differ far more than those of the other side; None if neither do."""
    begins, others, order = o.by_rows()
    rows = _unit_range(begins, others, o.values[order], o.shape[1])
    columns = _unit_range(o.indptr, o.rows, o.values, o.shape[0])
    if abs(rows - columns) <= _MIXED_UNITS:
        return None
    return "rows" if rows > columns else "columns"


def rescaled_table(o: Observations, shift, unit) -> ScaledTable:
    """Other observations of the same rows in units that are known."""
    return _in_units(o, o.values.astype(np.float64), *o.by_rows(), shift, unit)


def _in_units(o, values, begins, columns, order, shift, unit) -> ScaledTable:
    divisor = np.where(unit > 0, unit, np.inf)  # Entries of a constant row tell nothing in any unit: x = 0.
    with np.errstate(over="ignore", invalid="ignore"):
        x = values / divisor[o.rows] - (shift / divisor)[o.rows]
    x = np.clip(np.nan_to_num(x), -FARTHEST, FARTHEST)
    weights = np.zeros(0) if o.weights is None else o.weights.astype(np.float64)
    by_column = Entries(o.indptr, o.rows, x, weights)
    by_row = Entries(begins, columns, x[order], weights[order] if weights.size else weights)
    return ScaledTable(by_column, by_row, order, shift, unit)


def _spreads(begins, values) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shift and unit of every row from its entries, which stand together, and the unit's degrees of freedom.

    Squares are taken in units of each row, so that numbers near the ends of floating point spoil no other row.
    """
    m, counts = begins.size - 1, np.diff(begins)
    row, seen = np.repeat(np.arange(m), counts), np.maximum(counts, 1)
    middle, largest = _medians(begins, values), np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        off = np.clip(values - middle[row], -largest, largest)
        reach = _REACH * 1.4826 * _medians(begins, np.abs(off))
        limit = np.where(reach > 0, reach, np.inf)[row]
        off = np.clip(off, -limit, limit)
        size = _sizes(begins, off)
        off /= size[row]
        mean = np.bincount(row, off, m) / seen
        squares = np.bincount(row, (off - mean[row]) ** 2, m)
        shift = np.clip(middle + size * mean, -largest, largest)
    is_constant = np.bincount(row, values != middle[row], m) == 0
    several = (counts >= 2) & (squares > 0)
    own = size[several] * np.sqrt(squares[several] / counts[several])
    typical = float(np.median(own)) if own.size else 1.0
    lacking = np.maximum(counts < 2, min(_ENOUGH, _likeness(own, counts[several])) - counts)
    lacking = np.where(is_constant, np.maximum(lacking, 1), lacking)
    total = counts + lacking
    unit = np.hypot(size * np.sqrt(squares / total), typical * np.sqrt(lacking / total))
    constant = (counts >= _ENOUGH) & is_constant  # Two or three equal entries may be chance.
    degrees = np.maximum(total - 1, 1.0)  # One is spent on the shift.
    return np.where(constant, middle, shift), np.where(constant, 0.0, unit), degrees


def _sizes(begins, values) -> np.ndarray:
    """The power of 2 below the largest number of each row, by which division loses no digit; 1 for zeros."""
    result, some = np.zeros(begins.size - 1), np.diff(begins) > 0
    if some.any():
        result[some] = np.maximum.reduceat(np.abs(values), begins[:-1][some])
    exponents = np.floor(np.log2(np.where(result > 0, result, 1.0)))
    return np.where(result > 0, np.exp2(np.clip(exponents, -1020, 1020)), 1.0)


def _likeness(spreads, counts) -> float:
    """Number of entries that the spreads of all rows are worth to a row that has few.

    Few if they differ by more than chance, as in different units. By chance the logarithm of a variance from k entries
    has the variance trigamma((k - 1) / 2).
    """
    from scipy.special import polygamma

    if spreads.size < 2:
        return np.inf
    logs = 2 * np.log(spreads)
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, (counts - 1) / 2)))
    return _ALIKE / excess if excess > 0 else np.inf


def _medians(begins, values) -> np.ndarray:
    """Median of each row's entries; 0 for a row without any. Rows with equally many entries are taken together."""
    counts = np.diff(begins)
    result, by_count = np.zeros(counts.size), np.argsort(counts, kind="stable")
    some = [
        piece
        for rows in np.split(by_count, np.flatnonzero(np.diff(counts[by_count])) + 1)
        for piece in np.array_split(rows, 1 + int(rows.size * counts[rows[:1]].sum() * _MEDIAN_COST / _WORTH_A_PIECE))
        if piece.size and counts[piece[0]]
    ]
    n_threads = None if values.size * _MEDIAN_COST > _WORTH_A_PIECE else 1
    in_threads(lambda rows: _put_medians(rows, counts[rows[0]], begins, values, result), some, n_threads)
    return result


def _put_medians(rows, count, begins, values, result) -> None:
    low, high = (count - 1) // 2, count // 2
    numbers = np.partition(values[begins[rows][:, None] + np.arange(count)], (low, high), axis=1)
    with np.errstate(over="ignore"):
        result[rows] = numbers[:, high] if low == high else (numbers[:, low] + numbers[:, high]) / 2


def pieces(count: int, cost: float, begins=None) -> list[tuple[int, int]]:
    """Neighbouring pieces of 0 .. count - 1; with `begins` of about equally many entries.

    `cost` is the number of multiplications in all. A piece that takes less time than a thread needs to start is not
    worth one.
    """
    most = int(min(_PIECES, 1 + cost // _WORTH_A_PIECE))
    if most == 1 or count == 0:
        return [(0, count)] if count else []
    if begins is None or begins[-1] == 0:
        edges = np.linspace(0, count, most + 1).astype(int)
    else:
        edges = np.searchsorted(begins, np.linspace(0, begins[-1], most + 1)[1:-1])
        edges = np.concatenate(([0], np.minimum(edges, count), [count]))
    edges = np.unique(edges)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist()))
