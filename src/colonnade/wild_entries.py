"""Entries out of all proportion: typos, and codes such as -999 that stand for nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ._arguments import shown
from .observations import Observations

_WILD = 100.0  # times every other entry of its row and of its column: to be named
_UNLIKE = 10.0  # likewise: to teach nothing
_LARGER = 5.0  # than all other numbers: perhaps a code
_MOST = 20  # that are looked at, the largest ones
_SAMPLE = 20_000  # entries that tell the usual size


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

    j = np.searchsorted(o.indptr, at, side="right") - 1
    column, row = o.values[o.indptr[j] : o.indptr[j + 1]], o.rows == i if among is None else o.indptr[among] + i
    return is_alone(column) and is_alone(o.values[row])


def without_wild_full(o: Observations) -> Observations | None:
    """Without the entries of full columns that are far above all else in their column and their row of full columns.

    Such an entry is like no other and tells nothing of other columns, but as a direction of its own it would outdo all
    that do. Its column then counts as a partial one. None if there is no such entry, or if less than half of the full
    columns, or none but zeros, would be left: then it is the others that are unlike.
    """
    tame = o
    while (found := wild_entries(tame, _UNLIKE, tame.full_columns)).size:
        columns = np.searchsorted(tame.indptr, found, side="right") - 1
        kept = np.ones(tame.values.size, bool)
        kept[found] = False
        stays = ~np.isin(tame.full_columns, columns)
        scales = None if tame.full_scales is None else tame.full_scales[stays]
        tame = replace(tame.only(kept), full_columns=tame.full_columns[stays], full_scales=scales)
    full = tame.full_columns
    is_enough = 2 * full.size >= o.full_columns.size and any(
        tame.values[tame.indptr[j] : tame.indptr[j + 1]].any() for j in full
    )
    return tame if tame is not o and is_enough else None


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
    found, times = wild_entries(o), _WILD
    tame = None if taught else without_wild_full(o)
    if found.size == 0 and tame is not None:
        found, times = wild_entries(o, _UNLIKE, o.full_columns), _UNLIKE
    how = f"over {times:g} times any other entry of its row and its column"
    if found.size == 0:
        found = unused[np.argsort(-np.abs(o.values[unused].astype(np.float64)), kind="stable")]
        how = "far out of line with its row and its column"
    if found.size == 0:
        return _code_words(o.values)
    j = int(np.searchsorted(o.indptr, found[0], side="right") - 1)
    i = int(o.rows[found[0]])
    row = i if o.row_names is None else shown(o.row_names[i])
    column = j if o.column_names is None else shown(o.column_names[j])
    n_more = np.union1d(found, unused).size - 1
    more = f" (and {n_more:,} more)" if n_more else ""
    unlearned = found[0] in unused or (tame is not None and j in o.full_columns and j not in tame.full_columns)
    return (
        f"row {row} of column {column} is {o.values[found[0]]:g}, {how}{more}"
        f"{'; nothing was learned from it' if unlearned else ''}: take it out if that is a typo or stands for nothing"
    )


def _code_words(values) -> str:
    """Of a number that stands at several places and is far larger than all others; "" if there is none."""
    if values.size == 0:
        return ""
    code = max(values.min(), values.max(), key=abs)
    is_code = values == code
    others = max(abs(float(end(values, initial=0, where=~is_code))) for end in (np.min, np.max))
    if not 0 < others < abs(float(code)) / _LARGER or np.count_nonzero(is_code) < 2:
        return ""
    return (
        f"{code:g} stands at {np.count_nonzero(is_code):,} places and is over {_LARGER:g} times as large as any other"
        " number: leave these empty if it stands for nothing"
    )
