"""Two parts of a predicted variance, each with a factor of its own: noise of the entry, and what the fit leaves open.

A model that is chosen for its predictions need not know how the two divide: predictions hardly depend on the noise
where many entries are known. Errors of held-out entries tell, because the parts differ from entry to entry:

    s^2 = a noise + b fit,    errors Student-t about it, log a and log b normal about 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_DEGREES = 4.0  # Degrees of freedom of the errors; rows and columns have factors besides, which are not known yet.
_USUAL = np.log(2.0)  # Deviation of log a and log b: a part is wrong by a factor of two, more or less.
_MEDIAN = 0.6745  # Median size of a standard normal variable.
_ENOUGH = 100  # Errors from which the parts are told apart.


class Parts(NamedTuple):
    """Factors of the variances."""

    noise: float = 1.0
    fit: float = 1.0

    def deviations(self, whole, noise) -> np.ndarray:
        """Deviations of entries from predicted ones; `noise` is the deviation of the noise in them."""
        share = _shares(whole, noise)
        with np.errstate(over="ignore"):
            return whole * np.sqrt(self.noise * share + self.fit * (1 - share))


EQUAL_PARTS = Parts()


def _shares(whole, noise) -> np.ndarray:
    """Shares of the noise in the variances; 1 where a deviation is 0 or infinite."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.clip(np.nan_to_num(np.where(whole > 0, noise / whole, 1.0), nan=1.0), 0.0, 1.0) ** 2


def fit_parts(ratios, whole, noise, weights) -> Parts:
    """The most probable factors, up to one that both have: quantiles of the errors give that.

    Parameters
    ----------
    ratios : float64 array of shape (k,)
        Errors in predicted deviations.
    whole, noise : float64 arrays of shape (k,), or noise a float
        Predicted deviations and the noise in them.
    weights : float64 array of shape (k,)
        For how many unseen entries each error stands.
    """
    from scipy.optimize import minimize

    told = (weights > 0) & np.isfinite(ratios)
    typical = float(np.median(np.abs(ratios[told]))) / _MEDIAN if told.any() else 0.0
    if told.sum() < _ENOUGH or not typical > 0:
        return EQUAL_PARTS
    share = np.broadcast_to(_shares(whole, noise), ratios.shape)[told]
    A, w = np.stack([share, 1 - share]), weights[told]
    sizes = np.abs(ratios[told]) / typical
    squares = np.minimum(sizes, 1e50) ** 2 / _DEGREES
    w = w * (w.sum() / (w**2).sum())  # As many errors as the weights are worth.

    def loss(p):
        parts = np.exp(p)
        s = parts @ A
        far = squares / s
        value = np.log(s) / 2 + (_DEGREES + 1) / 2 * np.log1p(far)
        slope = (0.5 - (_DEGREES + 1) / 2 * far / (1 + far)) / s
        return w @ value + (p @ p) / (2 * _USUAL**2), parts * (A @ (w * slope)) + p / _USUAL**2

    found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-12.0, 12.0)] * 2).x
    parts = np.exp(np.round(found, 3))  # Further digits depend on rounding.
    parts /= np.exp(np.average(np.log(parts @ A), weights=w))  # The usual deviation stays as it was.
    return Parts(*parts.tolist())
