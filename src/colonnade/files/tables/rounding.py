"""Filled numbers with as many digits as their uncertainty supports.

A prediction x with standard deviation s is rounded at the second significant digit of s. The rounding error is then at
most s / 20, and the variance of the entry grows by less than 0.1 %.
"""

from __future__ import annotations

from math import erf, sqrt

import numpy as np

ROUNDINGS = None, "auto"
_ONE_DEVIATION = erf(1 / sqrt(2))  # Probability of an interval that is one standard deviation wide to each side.
_DIGITS = 15  # Significant digits that every float64 keeps; more are noise of the text itself.
_EXACT_POWER = 22  # The largest power of ten that float64 holds exactly.


def rounded_columns(completion, block: np.ndarray, first: int = 0) -> np.ndarray:
    """Some filled columns with rounded predictions; observed entries stay as they are.

    Parameters
    ----------
    completion : Completion
    block : array of shape (m, k)
        Its columns from number `first` on.
    """
    o = completion.observations
    mask = ~np.isnan(block)
    columns = np.arange(first, first + block.shape[1])
    for k, j in enumerate(columns):
        mask[o.rows[o.indptr[j] : o.indptr[j + 1]], k] = False
    rows, at = np.nonzero(mask)
    result = block.copy()
    if rows.size:
        low, high = completion.interval(rows, columns[at], _ONE_DEVIATION)
        low, high = low.astype(np.float64), high.astype(np.float64)
        numbers = rounded(block[mask].astype(np.float64), (high - low) / 2)
        bounds = completion.bounds
        result[mask] = numbers if bounds is None else np.clip(numbers, *bounds)
    return result


def rounded(values: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Numbers rounded at the second significant digit of their standard deviations, shape (k,)."""
    result = values.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        places = 1 - np.floor(np.log10(deviations))  # Decimal places; negative ones are tens and hundreds.
        most = _DIGITS - np.floor(np.log10(np.abs(values)))
    usable = np.isfinite(places) & (places < most)
    for place in np.unique(places[usable]).astype(int):
        here = usable & (places == place)
        result[here] = _rounded_at(values[here], int(place))
    return result


def _rounded_at(values: np.ndarray, place: int) -> np.ndarray:
    if abs(place) <= _EXACT_POWER:
        return np.round(values, place)
    return np.array([round(float(x), place) for x in values])
