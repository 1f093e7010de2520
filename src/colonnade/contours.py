"""The narrowest intervals that hold a given share of entries whose predictions are not equally sure.

Of Gaussian errors x with deviations s they hold whatever is likelier than a common limit, exp(-x^2 / 2 s^2) / s > c.
With t = 1 / (c sqrt(e)) their half-widths are

    s sqrt(1 + 2 log(t / s)),

which rises with s until both are t. Beyond it would fall again, narrower where less is known, and so is t there.
A larger t makes every interval wider: those of a lower level lie within those of a higher one. Where s is far above t
the width is a constant, where it is far below it is nearly in proportion to s.
"""

from __future__ import annotations

import numpy as np

FAR = 1e100  # deviations, beyond which an error is not told from others


def half_widths(log_t: float, deviations) -> np.ndarray:
    """Shape (k,); NaN where the deviation is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        above = np.maximum(log_t - np.log(deviations), 0)
        return np.minimum(deviations, np.exp(log_t)) * np.sqrt(1 + 2 * above)


def log_thresholds(errors, deviations) -> np.ndarray:
    """The logarithm of the t for which the half-width of each entry is the size of its error, shape (k,)."""
    x = np.minimum(errors / deviations, FAR)
    with np.errstate(divide="ignore"):
        return np.log(deviations) + np.where(x <= 1, np.log(x), (x * x - 1) / 2)
