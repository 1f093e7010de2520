"""Outliers found over the whole data: typos, and codes such as -999 that stand for nothing.

The whole is looked at once, before anything is learned; see `screened`. What is found is a record, which every way to
complete uses: in memory, by blocks of columns, by blocks of rows and on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..._support.arguments import named
from ...data.observations import Observations

_EXTREME = 100.0  # Times every other entry of its row and column; a larger entry is named to the user.
_UNLIKE = 10.0  # Times the same, in a full column; nothing is learned from a larger entry.
_LARGER, _ALIKE = 5.0, 2.0  # A code is 5 times all other numbers; the largest of these is at most twice the next.
_RARE = 0.25  # Share of the entries of columns that have the code; a more frequent number is no code.
_UNLEARNED = "; nothing was learned from {}"
_MOST = 20  # Largest entries that are looked at.
# Entries that show the usual size, and those that show whether there can be a code.
_SAMPLE, _SMALL_SAMPLE = 20_000, 1_000


class Whole:
    """All columns in one piece. Data on the disk come in several; see `disk_columns.Blocks`.

    Attributes
    ----------
    size : int
        Number of observed entries.
    reach : (float, float)
        The least and the largest of them and 0.
    """

    def __init__(self, o: Observations):
        self._o, self.size = o, o.values.size
        self.reach = float(o.values.min(initial=0)), float(o.values.max(initial=0))

    def __iter__(self) -> Iterator[tuple[int, Observations]]:
        """Pieces: the number of the first column, and the observations of this column and those that follow."""
        yield 0, self._o

    def sample(self, step: int) -> np.ndarray:
        """Every step-th value."""
        return self._o.values[::step]


class Found(NamedTuple):
    """Some entries of the whole."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    def first(self, order) -> Found:
        return Found(*(np.asarray(x)[order] for x in self))


NOTHING = Found(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True)
class Screening:
    """What was found over the whole.

    Attributes
    ----------
    code : float or None
        A number that stands for nothing; it has no part in filling a partial column.
    rows, columns : tuples of int
        Entries of full columns that are far above all else in their column and row of these.
    is_enough : bool
        Whether something is left to learn from without them. If not, the others are the odd ones, and all are used.
    """

    code: float | None = None
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    is_enough: bool = True

    def of(self, columns) -> Screening:
        """The same of some columns, which are numbered anew, in any order."""
        columns = np.asarray(columns)
        order = np.argsort(columns)
        at = np.searchsorted(columns, self.columns, sorter=order)
        at = order[np.minimum(at, columns.size - 1)] if columns.size else np.zeros(0, np.int64)
        here = np.flatnonzero(columns[at] == self.columns) if columns.size else at
        kept = [self.rows[k] for k in here], [int(at[k]) for k in here]
        return replace(self, rows=tuple(kept[0]), columns=tuple(kept[1]))

    def at_rows(self, rows) -> Screening:
        """The same of some rows, rising, which are numbered anew."""
        at = np.searchsorted(rows, self.rows)
        kept = [k for k, i in enumerate(at) if i < len(rows) and rows[i] == self.rows[k]]
        return replace(self, rows=tuple(int(at[k]) for k in kept), columns=tuple(self.columns[k] for k in kept))

    def unlearned(self, o: Observations) -> np.ndarray:
        """Places in `values` of entries from which nothing is learned under a prior, rising."""
        if not self.is_enough:
            return np.zeros(0, np.int64)
        outliers = o.locate(np.array(self.rows, np.int64), np.array(self.columns, np.int64))
        return np.union1d(code_places(o, self.code), outliers[outliers >= 0])

    def cleaned(self, o: Observations) -> Observations:
        """Leave out entries from which nothing is learned; full columns that had some count as partial ones."""
        return o.without(self.unlearned(o))


def screened(whole) -> Screening:
    """The code, and the entries of full columns that are far above all else in their column and row of these.

    Such entries say nothing about other columns, but as directions of their own they would outweigh all others.
    """
    code, limit = rare_code(whole), _UNLIKE * _usual(whole)
    if code is None and _size(whole) <= limit:
        return Screening()
    peaks = _peaks(whole, code)
    left = np.array([peak.size is not None for peak in peaks], bool)  # The other columns have a code.
    while (found := _outlying_peaks(whole, peaks, left, limit)).size:
        left[found] = False
    outliers = [peaks[k] for k in np.flatnonzero(~left) if peaks[k].size is not None]
    is_enough = 2 * left.sum() >= left.size and any(peaks[k].size for k in np.flatnonzero(left))
    return Screening(code, tuple(p.row for p in outliers), tuple(p.column for p in outliers), bool(is_enough))


def without_outliers(o: Observations) -> Observations | None:
    """Leave out entries from which nothing is learned; None if there is no such entry."""
    cleaned = screened(Whole(o)).cleaned(o)
    return cleaned if cleaned is not o else None


def _size(whole) -> float:
    return max(-whole.reach[0], whole.reach[1])


def _usual(whole) -> float:
    """The usual size of an entry; infinite if all are zero."""
    some = np.abs(whole.sample(max(1, -(-whole.size // _SAMPLE))).astype(np.float64))
    return float(np.median(some[some > 0])) if some.any() else np.inf


class _Peak(NamedTuple):
    """The largest entry of a full column and the size of the next; the size is None if the column has a code."""

    column: int
    row: int
    size: float | None
    second: float


def _peaks(whole, code) -> list[_Peak]:
    found = []
    for first, o in whole:
        for j in o.full_columns:
            values = o.values[o.indptr[j] : o.indptr[j + 1]]
            has_code = code is not None and (values == code).any()
            sizes = np.abs(values.astype(np.float64))
            row = int(sizes.argmax())
            size, sizes[row] = float(sizes[row]), -1.0
            found.append(_Peak(first + int(j), row, None if has_code else size, float(sizes.max())))
    return found


def _outlying_peaks(whole, peaks, left, limit: float) -> np.ndarray:
    """Which of the largest entries of the full columns left are far above all else of their column and row."""
    able = [k for k in np.flatnonzero(left) if peaks[k].size > limit and 0 <= peaks[k].second < peaks[k].size / _UNLIKE]
    able = sorted(able, key=lambda k: -peaks[k].size)[:_MOST]
    if not able or left.sum() < 2:
        return np.zeros(0, np.int64)
    rows = np.array([peaks[k].row for k in able])
    beside = [o.values[o.indptr[o.full_columns] + rows[:, None]] for _, o in whole if o.full_columns.size]
    sizes = np.abs(np.concatenate(beside, axis=1).astype(np.float64))[:, left]
    least = np.array([peaks[k].size for k in able]) / _UNLIKE
    return np.array(able)[(sizes >= least[:, None]).sum(axis=1) == 1]


def rare_code(whole) -> float | None:
    """A code, if it is rare in the columns that have it; a frequent number is a usual value of these columns."""
    if (code := code_of(whole)) is None:
        return None
    n_code = n_all = 0
    for _, o in whole:
        places = code_places(o, code)
        n_code, n_all = n_code + places.size, n_all + int(o.n_observed[np.unique(o.columns_of(places))].sum())
    return code if n_code <= _RARE * n_all else None


def code_places(o: Observations, code: float | None) -> np.ndarray:
    """Places of a code in `values`, rising."""
    return np.zeros(0, np.int64) if code is None else np.flatnonzero(o.values == code)


def code_of(whole) -> float | None:
    """A number that stands at several places and is far larger than all others, which are alike; None if none is."""
    code = whole.reach[0] if -whole.reach[0] >= whole.reach[1] else whole.reach[1]
    limit, count, next_one, largest = abs(code) / _LARGER, 0, 0.0, 0.0
    if code == 0:
        return None
    for _, o in whole:
        some = o.values[:: max(1, o.values.size // _SMALL_SAMPLE)]
        if np.abs(some[some != code]).max(initial=0) >= limit:
            return None  # A sample is enough to see it.
        others = np.abs(o.values[o.values != code].astype(np.float64))
        count += o.values.size - others.size
        high = others.max(initial=0)
        low = others[others < high].max(initial=0)
        next_one, largest = sorted({-1.0, 0.0, next_one, largest, float(low), float(high)})[-2:]
        if largest >= limit:
            return None
    return code if count > 1 and largest / _ALIKE < next_one else None


def extreme_entries(whole, code: float | None = None) -> Found:
    """Entries far above the usual one and all of their row and column, the code not counted; the largest ones only."""
    limit, code = _EXTREME * _usual(whole), np.nan if code is None else code
    if _size(whole) <= limit:
        return NOTHING
    parts, alone = [NOTHING], [np.zeros(0, bool)]
    for first, o in whole:
        places = np.flatnonzero(((o.values > limit) | (o.values < -limit)) & (o.values != code))
        places = places[_order_by_size(o.values[places])[:_MOST]]
        parts.append(found_at(o, places, first))
        alone.append(np.array([_is_alone_in_column(o, at, code) for at in places], bool))
    found = Found(*map(np.concatenate, zip(*parts)))
    largest = _order_by_size(found.values)[:_MOST]
    found = found.first(largest[np.concatenate(alone)[largest]])
    least = np.abs(found.values.astype(np.float64)) / _EXTREME
    n_seen, n_large = np.zeros(least.size, np.int64), np.zeros(least.size, np.int64)
    for _, o in whole if least.size else ():
        near = np.flatnonzero(np.isin(o.rows, found.rows))
        near = near[o.values[near] != code]
        sizes = np.abs(o.values[near].astype(np.float64))
        for k, i in enumerate(found.rows):
            here = o.rows[near] == i
            n_seen[k], n_large[k] = n_seen[k] + here.sum(), n_large[k] + (sizes[here] >= least[k]).sum()
    return found.first(np.flatnonzero((n_seen > 1) & (n_large == 1)))


def _is_alone_in_column(o: Observations, at: int, code) -> bool:
    j = o.columns_of(at)
    column = o.values[o.indptr[j] : o.indptr[j + 1]]
    column = np.abs(column[column != code].astype(np.float64))
    return column.size > 1 and np.sum(column >= abs(float(o.values[at])) / _EXTREME) == 1


def _order_by_size(values) -> np.ndarray:
    return np.argsort(-np.abs(values.astype(np.float64)), kind="stable")


def _by_size(found: Found) -> Found:
    return found.first(_order_by_size(found.values))


def found_at(o: Observations, places, first: int = 0) -> Found:
    """The entries at some places in `values`; the first column has the number `first`."""
    return Found(o.rows[places], first + o.columns_of(places), o.values[places])


def in_partial_columns(o: Observations, places) -> np.ndarray:
    """Places in `values` that belong to partial columns, out of some places."""
    places = np.asarray(places, np.int64)
    return places[~np.isin(o.columns_of(places), o.full_columns)]


def screened_in_words(whole, screening: Screening, unused: Found, names, is_used: bool) -> str:
    """The largest outliers by name, and what to do; "" if there is none.

    Parameters
    ----------
    whole : Whole or Blocks
    screening : Screening
    unused : Found
        Entries of partial columns that had no part in the answer, column by column.
    names : (array or None, array or None)
        Of rows and of columns.
    is_used : bool
        Whether outliers of full columns were learned from like other entries.
    """
    words, code = [], code_of(whole)
    is_cleaned = not is_used and screening.is_enough
    if code is not None:
        count = sum(code_places(o, code).size for _, o in whole)
        unlearned = (is_cleaned and screening.code == code) or np.sum(unused.values == code) == count
        words.append(
            f"{code:g} stands at {count:,} places and is over {_LARGER:g} times as large as any"
            f" other number{_UNLEARNED.format('them') if unlearned else ''}: if it stands for nothing, make these gaps"
            f" (NaN, or --missing {code:g})"
        )
        unused = unused.first(np.flatnonzero(unused.values != code))
    found, how = extreme_entries(whole, code), f"over {_EXTREME:g} times any other entry of its row and its column"
    if found.rows.size == 0 and is_cleaned and screening.rows:
        found, how = (
            _screened_entries(whole, screening),
            f"over {_UNLIKE:g} times any other entry of its row and its column",
        )
    if found.rows.size == 0:
        found, how = _by_size(unused), "far from the rest of its row and its column"
    if found.rows.size:
        i, j = int(found.rows[0]), int(found.columns[0])
        places = {*zip(found.rows.tolist(), found.columns.tolist())}
        not_used = {*zip(unused.rows.tolist(), unused.columns.tolist())}
        n_more = len(places | not_used) - 1
        more = f" (and {n_more:,} more)" if n_more else ""
        unlearned = (i, j) in not_used or (is_cleaned and _has_lost(whole, screening, j))
        row, column = named(names[0], i), named(names[1], j)
        words.append(
            f"row {row} of column {column} is {found.values[0]:g}, {how}{more}"
            f"{_UNLEARNED.format('it') if unlearned else ''}: take it out if that is a typo or stands for nothing"
        )
    return "; ".join(words)


def _screened_entries(whole, screening: Screening) -> Found:
    """The entries of full columns that the screening has found."""
    parts = [NOTHING]
    for first, o in whole:
        here = screening.of(np.arange(first, first + o.shape[1]))
        parts.append(found_at(o, o.locate(np.array(here.rows, np.int64), np.array(here.columns, np.int64)), first))
    return _by_size(Found(*map(np.concatenate, zip(*parts))))


def _has_lost(whole, screening: Screening, column: int) -> bool:
    """Whether a column is full and the screening has found something in it."""
    for first, o in whole:
        j = column - first
        if 0 <= j < o.shape[1] and j in o.full_columns:
            values = o.values[o.indptr[j] : o.indptr[j + 1]]
            return column in screening.columns or (
                screening.code is not None and bool((values == screening.code).any())
            )
    return False
