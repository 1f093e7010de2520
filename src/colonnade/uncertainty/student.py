"""Errors whose scale was learned from few entries: Student-t, brought to the scale of normal errors and back.

If a squared scale is inverse gamma with k degrees of freedom, an error over the scale's estimate is Student-t with k of
them. Several scales multiply: the logarithm of each has a variance of about 1 / (2 k), and these add, so that together

    1 / k = 1 / k_1 + 1 / k_2 + ...

The map is that of Wallace (1959), y = (8 k + 1) / (8 k + 3) sqrt(k log(1 + x^2 / k)). It is explicit both ways, and
right to .07 deviations at one degree of freedom and two deviations.
"""

from __future__ import annotations

import numpy as np

_FARTHEST = 200.0  # Largest y^2 / k; no end of an interval leaves floating point: e^100 scales at most.


def to_normal(x, degrees) -> np.ndarray:
    """Normal scores of Student-t scores x, sign by sign; `degrees` may be infinite."""
    x, k = np.asarray(x, np.float64), np.asarray(degrees, np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        size = np.abs(x) / np.sqrt(k)
        logs = np.where(size > 1e100, 2 * np.log(size), np.log1p(np.minimum(size, 1e100) ** 2))
        y = _slope(k) * np.sqrt(k * logs)
    return np.where(np.isinf(k), x, np.copysign(y, x))


def from_normal(y, degrees) -> np.ndarray:
    """The inverse of `to_normal`."""
    y, k = np.asarray(y, np.float64), np.asarray(degrees, np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        x = np.sqrt(k * np.expm1(np.minimum((y / _slope(k)) ** 2 / k, _FARTHEST)))
    return np.where(np.isinf(k) | np.isinf(y), y, np.copysign(x, y))


def together(*degrees) -> np.ndarray:
    """Degrees of freedom of a product of scales."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / sum(1 / np.asarray(k, np.float64) for k in degrees))


def _slope(k) -> np.ndarray:
    return 1 - 2 / (8 * k + 3)
