"""Advice on values that are positive, skewed, or of a scale such as 1 to 5: logarithms, and bounds."""

from __future__ import annotations

import numpy as np

from .._support.printable import counted
from ..data.observations import Observations

_WORTH_LOGS = 0.1  # Nats per value, the log ratio of the widths of intervals: 10 % narrower ones are worth a try.
_FEW = 3  # Known values; a column with fewer says nothing about skew.
_MOST_CELLS = 5_000_000  # Of a table whose filled values are looked at; a second for more.
_ROUNDING = 1e-6  # Share of the range of the known values: filled ones that leave it by less are rounding.


def about_logarithms(o: Observations) -> list[str]:
    """Advice to take logarithms, where these are nearer to normal distributions than the positive values themselves.

    Of counts, which may be zero, x + 1 stands for x. The gain is the log-likelihood of a log-normal distribution less
    that of a normal one, per value of a column:
    log sd(x) - log sd(log x) - mean(log x).
    """
    n, counts, at = o.shape[1], o.n_observed, o.entry_columns
    x = o.values.astype(np.float64)
    are_counts = x.size and x.min() == 0 and bool((x == np.rint(x)).all())
    x = x + 1 if are_counts else x
    if x.size == 0 or not (x > 0).all():
        return []

    def moments(values):
        mean = np.bincount(at, values, n) / np.maximum(counts, 1)
        return mean, np.sqrt(np.bincount(at, (values - mean[at]) ** 2, n) / np.maximum(counts, 1))

    unit = np.exp(np.mean(np.log(x)))
    with np.errstate(over="ignore", invalid="ignore"):  # A spread beyond floating point is not looked at.
        (_, spread), (level, log_spread) = moments(x / unit), moments(np.log(x / unit))
    able = (counts >= _FEW) & (spread > 0) & (log_spread > 0) & np.isfinite(spread)
    gain = np.log(spread[able]) - np.log(log_spread[able]) - level[able]
    if gain.size < 2 or gain.mean() < max(_WORTH_LOGS, 2 * gain.std() / np.sqrt(gain.size)):
        return []
    kind, which = ("counts", "log(1 + x)") if are_counts else ("positive", "their logarithms")
    return [
        f"The values are {kind}{' that' if are_counts else ' and'} {'are skewed' if are_counts else 'skewed'}."
        f" Try {which}, and keep the result with the smaller typical error."
    ]


def about_bounds(completion) -> list[str]:
    """Advice to set bounds, where filled values leave a scale such as 1 to 5, or fall below zero as no known one does.

    Known values that are all the whole numbers of their range, each at least twice, are taken for a scale.
    """
    (m, n), x = completion.shape, completion.observations.values
    if completion.bounds is not None or not 0 < x.size < m * n <= _MOST_CELLS:
        return []
    low, high = float(x.min()), float(x.max())
    if _is_scale(x, low, high):
        limits, said = (low, high), f"outside {low:g} to {high:g}, but no known value is"
    elif low >= 0:
        limits, said = (0.0, np.inf), "below 0, but no known value is"
    else:
        return []
    filled, slack = completion.to_dense(), _ROUNDING * (high - low)
    count = int(np.count_nonzero((filled < limits[0] - slack) | (filled > limits[1] + slack)))
    if count == 0:
        return []
    ends = ["np.inf" if np.isinf(end) else f"{end:g}" for end in limits]
    setting = f"--bounds {' '.join(ends).replace('np.', '')} (bounds=({', '.join(ends)}))"
    return [f"{counted(count, 'filled value')} {'is' if count == 1 else 'are'} {said}. If none can be, set {setting}."]


def _is_scale(x, low: float, high: float) -> bool:
    if not (high > low and (x == np.rint(x)).all()):
        return False
    counts = np.unique(x, return_counts=True)[1]
    return counts.size == high - low + 1 and counts.min() > 1
