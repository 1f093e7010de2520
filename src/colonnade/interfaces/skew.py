"""Advice on skewed positive values, whose logarithms suit the model better."""

from __future__ import annotations

import numpy as np

from ..data.observations import Observations

_WORTH_LOGS = 0.1  # Nats per value, the log ratio of the widths of intervals: 10 % narrower ones are worth a try.
_FEW = 3  # Known values; a column with fewer says nothing about skew.
_WORDS = "The values are positive and skewed. Try their logarithms, and keep the result with the smaller typical error."


def about_logarithms(o: Observations) -> list[str]:
    """Advice to take logarithms, where these are nearer to normal distributions than the positive values themselves.

    The gain is the log-likelihood of a log-normal distribution less that of a normal one, per value of a column:
    log sd(x) - log sd(log x) - mean(log x).
    """
    n, counts, at = o.shape[1], o.n_observed, o.entry_columns
    if o.values.size == 0 or not (o.values > 0).all():
        return []
    x = o.values.astype(np.float64)

    def moments(values):
        mean = np.bincount(at, values, n) / np.maximum(counts, 1)
        return mean, np.sqrt(np.bincount(at, (values - mean[at]) ** 2, n) / np.maximum(counts, 1))

    unit = np.exp(np.mean(np.log(x)))
    (_, spread), (level, log_spread) = moments(x / unit), moments(np.log(x / unit))
    able = (counts >= _FEW) & (spread > 0) & (log_spread > 0) & np.isfinite(spread)
    gain = np.log(spread[able]) - np.log(log_spread[able]) - level[able]
    if gain.size < 2 or gain.mean() < max(_WORTH_LOGS, 2 * gain.std() / np.sqrt(gain.size)):
        return []
    return [_WORDS]
