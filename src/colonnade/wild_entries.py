"""Entries out of all proportion: typos, and codes such as -999 that stand for nothing."""

from __future__ import annotations

import numpy as np

from ._arguments import named
from .observations import Observations

_WILD = 100.0  # times every other entry of its row and of its column: to be named
_UNLIKE = 10.0  # likewise: to teach nothing
_LARGER, _ALIKE = 5.0, 2.0  # times all other numbers, of which the largest is less than so many times the next: a code
_RARE = 0.25  # of the entries of columns that have a code, at most
_UNLEARNED = "; nothing was learned from {}"
_MOST = 20  # that are looked at, the largest ones
_SAMPLE, _SMALL_SAMPLE = 20_000, 1_000  # entries that tell the usual size, or whether any can be a code


def wild_entries(o: Observations, times: float = _WILD, among=None) -> np.ndarray:
    """Where in `values` entries stand that are so many times the usual one and all of their row and column.

    Of all columns, or of the full columns `among` as if there were no others; the largest ones only, if there are many.
    """
    some = np.abs(o.values[:: max(1, -(-o.values.size // _SAMPLE))].astype(np.float64))
    with np.errstate(over="ignore"):  # nothing is above infinity
        limit = o.values.dtype.type(times * np.median(some[some > 0]) if some.any() else np.inf)
    pieces = [(0, o.values.size)] if among is None else zip(o.indptr[among], o.indptr[among + 1])
    large = [low + _beyond(o.values[low:high], limit) for low, high in pieces]
    large = np.concatenate([np.zeros(0, np.int64), *large])
    largest = np.argsort(-np.abs(o.values[large].astype(np.float64)), kind="stable")[:_MOST]
    return np.array([at for at in large[largest] if _is_wild(o, at, times, among)], np.int64)


def _beyond(values, limit) -> np.ndarray:
    return np.flatnonzero((values > limit) | (values < -limit))


def _is_wild(o: Observations, at: int, times: float, among) -> bool:
    """Whether it is so many times as large as all others of its column and its row, of which there are some."""
    limit, i = abs(float(o.values[at])) / times, o.rows[at]

    def is_alone(others) -> bool:
        return others.size > 1 and np.sum(np.abs(others.astype(np.float64)) >= limit) == 1

    j = o.columns_of(at)
    column, row = o.values[o.indptr[j] : o.indptr[j + 1]], o.rows == i if among is None else o.indptr[among] + i
    return is_alone(column) and is_alone(o.values[row])


def without_wild(o: Observations) -> Observations | None:
    """Without a code, and the entries of full columns that are far above all else in their column and row of these.

    Such entries are like no other and tell nothing of other columns, but as directions of their own they would outdo
    all that do. Their columns then count as partial ones. None if there is no such entry, or if less than half of the
    full columns, or none but zeros, would be left: then it is the others that are unlike.
    """
    tame = o.without(code_places(o))
    while (found := wild_entries(tame, _UNLIKE, tame.full_columns)).size:
        tame = tame.without(found)
    full = tame.full_columns
    is_enough = 2 * full.size >= o.full_columns.size and any(
        tame.values[tame.indptr[j] : tame.indptr[j + 1]].any() for j in full
    )
    return tame if tame is not o and is_enough else None


def code_places(o: Observations) -> np.ndarray:
    """Where in `values` a code stands, if it is rare in the columns that have it: else it is how these columns are."""
    if (code := code_of(o.values)) is None:
        return np.zeros(0, np.int64)
    places = np.flatnonzero(o.values == code)
    columns = np.unique(o.columns_of(places))
    return places if places.size <= _RARE * o.n_observed[columns].sum() else places[:0]


def code_of(values) -> float | None:
    """A number that stands at several places and is far larger than all others, which are alike; None if none is."""
    if values.size == 0:
        return None
    code, some = max(values.min(), values.max(), key=abs), values[:: max(1, values.size // _SMALL_SAMPLE)]
    limit = abs(float(code)) / _LARGER
    if np.abs(some[some != code]).max(initial=0) >= limit:
        return None  # without a look at all of them
    others = np.abs(values[values != code].astype(np.float64))
    if values.size - others.size < 2 or not others.any():
        return None
    largest = others.max()
    next_one = others[others < largest].max(initial=0)
    return float(code) if largest < limit and largest / _ALIKE < next_one else None


def wild_words(o: Observations, unused, taught: bool) -> str:
    """The largest of them by name, and what to do; "" if there is none.

    Parameters
    ----------
    o : Observations
    unused : int array
        Where in `values` of partial columns entries stand that were out of line and had no part in the answer.
    taught : bool
        Whether wild entries of full columns taught like others.
    """
    words = []
    tame = None if taught else without_wild(o)
    if (code := code_of(o.values)) is not None:
        is_code = o.values == code
        is_tame = tame is not None and not (tame.values == code).any()
        unlearned = is_tame or np.isin(np.flatnonzero(is_code), unused).all()
        words.append(
            f"{code:g} stands at {np.count_nonzero(is_code):,} places and is over {_LARGER:g} times as large as any"
            f" other number{_UNLEARNED.format('them') if unlearned else ''}: leave these empty if it stands for nothing"
        )
        o, unused = o.without(np.flatnonzero(is_code)), _places_without(is_code, unused)
    found, times = wild_entries(o), _WILD
    if found.size == 0 and tame is not None:
        found, times = wild_entries(o, _UNLIKE, o.full_columns), _UNLIKE
    how = f"over {times:g} times any other entry of its row and its column"
    if found.size == 0:
        found = unused[np.argsort(-np.abs(o.values[unused].astype(np.float64)), kind="stable")]
        how = "far out of line with its row and its column"
    if found.size:
        place = found[0]
        j = int(o.columns_of(place))
        row, column = (named(names, k) for names, k in ((o.row_names, int(o.rows[place])), (o.column_names, j)))
        n_more = np.union1d(found, unused).size - 1
        more = f" (and {n_more:,} more)" if n_more else ""
        unlearned = place in unused or (tame is not None and j in o.full_columns and j not in tame.full_columns)
        words.append(
            f"row {row} of column {column} is {o.values[place]:g}, {how}{more}"
            f"{_UNLEARNED.format('it') if unlearned else ''}: take it out if that is a typo or stands for nothing"
        )
    return "; ".join(words)


def _places_without(gone, places) -> np.ndarray:
    """Where entries at these places stand when others are gone."""
    left = places[~gone[places]]
    return left - np.cumsum(gone)[left]
