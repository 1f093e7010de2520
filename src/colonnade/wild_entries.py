"""Entries out of all proportion: typos, and codes such as -999 that stand for nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ._arguments import shown
from .observations import Observations

_WILD = 100.0  # times every other entry of its row and of its column: to be named
_UNLIKE = 10.0  # likewise: to teach nothing
_MOST = 20  # that are looked at, the largest ones
_SAMPLE = 20_000  # entries that tell the usual size


def wild_entries(o: Observations, times: float = _WILD) -> np.ndarray:
    """Where in `values` entries stand that are so many times the usual one and all of their row and column."""
    some = np.abs(o.values[:: max(1, -(-o.values.size // _SAMPLE))].astype(np.float64))
    with np.errstate(over="ignore"):  # nothing is above infinity
        limit = o.values.dtype.type(times * np.median(some[some > 0]) if some.any() else np.inf)
    large = np.flatnonzero((o.values > limit) | (o.values < -limit))
    sizes = np.abs(o.values[large].astype(np.float64))
    largest = np.argsort(-sizes, kind="stable")[:_MOST]
    return np.array([at for at in large[largest] if _is_wild(o, at, times)], np.int64)


def _is_wild(o: Observations, at: int, times: float) -> bool:
    """Whether it is so many times as large as all others of its column and its row, of which there are some."""
    limit = abs(float(o.values[at])) / times

    def is_alone(others) -> bool:
        return others.size > 1 and np.sum(np.abs(others.astype(np.float64)) >= limit) == 1

    j = np.searchsorted(o.indptr, at, side="right") - 1
    return is_alone(o.values[o.indptr[j] : o.indptr[j + 1]]) and is_alone(o.values[o.rows == o.rows[at]])


def without_wild_full(o: Observations) -> Observations | None:
    """The same, where full columns are partial but for their entries far above all of the row and column.

    Such an entry is like no other and tells nothing of other columns, but as a direction of its own it would outdo all
    that do. None if there is no such entry, or no other full column.
    """
    found = wild_entries(o, _UNLIKE)
    columns = np.searchsorted(o.indptr, found, side="right") - 1
    is_full = np.isin(columns, o.full_columns)
    stays = ~np.isin(o.full_columns, columns)
    if not is_full.any() or not stays.any():
        return None
    kept = np.ones(o.values.size, bool)
    kept[found[is_full]] = False
    scales = None if o.full_scales is None else o.full_scales[stays]
    tame = replace(o.only(kept), full_columns=o.full_columns[stays], full_scales=scales)
    return without_wild_full(tame) or tame


def wild_words(o: Observations) -> str:
    """The largest of them by name, and what to do; "" if there is none."""
    found = wild_entries(o)
    if found.size == 0:
        return ""
    j = int(np.searchsorted(o.indptr, found[0], side="right") - 1)
    i = int(o.rows[found[0]])
    row = i if o.row_names is None else shown(o.row_names[i])
    column = j if o.column_names is None else shown(o.column_names[j])
    more = f" (and {found.size - 1:,} more)" if found.size > 1 else ""
    return (
        f"row {row} of column {column} is {o.values[found[0]]:g}, over {_WILD:g} times any other entry of its row and"
        f" its column{more}: take it out if that is a typo or stands for nothing"
    )
