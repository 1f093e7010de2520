"""Variances that differ between groups: an inverse gamma prior about a common value, its strength learned.

v_g ~ inverse gamma(a, b), and the k_g squares of group g have the mean v_g. Integrating v_g out leaves

    log p = sum over g of [ lgamma(a + k/2) - lgamma(a) + a log b - (a + k/2) log(b + t/2) ],   t the sum of squares,

which is maximised over (a, b). Its limit a -> infinity is one variance for all groups. Where squares of a group are
not independent, each is a group of its own instead, and what the others say of it stands beside the prior:
a + k'/2 and b + t'/2 with their number k' and sum t'. The prior is then the one that predicts squares best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_LEAST_SHAPE = 1.0  # A variance counts as seen on two squares at least, so that none can run to zero.

_DIGITS = 3  # Decimals of the logarithms; further ones depend on the rounding of the squares.
_BOUNDS = np.array([[np.log(_LEAST_SHAPE), -12.0], [9.0, 12.0]])  # Least and largest log a and log (b / a).
_FROM_LOGS = np.array([[1.0, 0.0], [1.0, 1.0]])  # log a and log b from log a and log (b / a).
_LONGEST_STEP = 2.0  # Of Newton's method on the scale of logarithms.
_SMALLEST_STEP = 1e-5  # Likewise: below a hundredth of what rounding to `_DIGITS` sees.
_MOST_STEPS = 100


@dataclass(frozen=True)
class InverseGamma:
    """A prior of variances.

    Attributes
    ----------
    shape, scale : float
        a and b; b / a is the variance of a group without any square.
    """

    shape: float
    scale: float

    def variances(self, counts, squares) -> np.ndarray:
        """The variance of every group, (b + t / 2) / (a + k / 2), from the number and the sum of its squares."""
        return (self.scale + squares / 2) / (self.shape + counts / 2)


def fit_inverse_gamma(counts, squares, start: InverseGamma | None = None, beside=(0.0, 0.0), weights=1.0):
    """The prior that maximises the marginal likelihood of the squares.

    Parameters
    ----------
    counts, squares : float64 arrays of shape (n_groups,)
        Number and sum of the squares of every group.
    start : InverseGamma, optional
        Where the search begins.
    beside : pair of float64 arrays of shape (n_groups,), optional
        Number and sum of further squares that every group is known to have.
    weights : float64 array of shape (n_groups,), optional
        How much each group counts.

    Returns
    -------
    InverseGamma
    """
    common = float((weights * squares).sum()) / max(1.0, float((weights * counts).sum()))
    if common <= 0:
        return InverseGamma(_LEAST_SHAPE, 0.0)
    half, t = counts / 2, squares / (2 * common)
    half_beside, t_beside = beside[0] / 2, beside[1] / (2 * common)

    def gain(p):
        return _log_likelihood(p, half, t, half_beside, t_beside, weights)

    begin = np.array([2.0, 1.0]) if start is None else np.array([start.shape, start.scale / start.shape / common])
    a, variance = np.exp(np.round(_climbed(gain, np.clip(np.log(np.maximum(begin, 1e-6)), *_BOUNDS)), _DIGITS))
    return InverseGamma(float(a), float(a * variance) * common)


def _log_likelihood(p, half, t, half_beside, t_beside, weights) -> tuple[float, np.ndarray, np.ndarray]:
    """The logarithm of the marginal likelihood, its slopes and its second derivatives by log a and log (b / a).

    These two hardly depend on each other where a is large.
    """
    from scipy.special import digamma, gammaln

    prior = np.exp([p[0], p[0] + p[1]])
    a, b = prior[0] + half_beside, prior[1] + t_beside
    more, wide = a + half, b + t
    value = weights * (gammaln(more) - gammaln(a) + a * np.log(b) - more * np.log(wide))
    slopes = digamma(more) - digamma(a) + np.log(b) - np.log(wide), a / b - more / wide
    second = _trigamma(more) - _trigamma(a), 1 / b - 1 / wide, more / wide**2 - a / b**2
    by = prior * [float((weights * x).sum()) for x in slopes]
    aa, ab, bb = (float((weights * x).sum()) for x in second)
    by_logs = np.outer(prior, prior) * [[aa, ab], [ab, bb]] + np.diag(by)
    return float(value.sum()), _FROM_LOGS.T @ by, _FROM_LOGS.T @ by_logs @ _FROM_LOGS


def _trigamma(x) -> np.ndarray:
    """The derivative of digamma at x > 0: SciPy's, which is zeta(2, x), takes ten times as long.

    psi'(x) = sum over k < 8 of 1 / (x + k)^2 + psi'(x + 8), the last by its series in 1 / (x + 8).
    """
    x = np.asarray(x, np.float64)
    y = 1 / (x + 8)
    s = y * y
    series = y + s / 2 + y * s * (1 / 6 - s * (1 / 30 - s * (1 / 42 - s * (1 / 30 - s * (5 / 66 - s * 691 / 2730)))))
    return series + sum(1 / (x + k) ** 2 for k in range(8))


def _climbed(gain, p) -> np.ndarray:
    """The highest point within `_BOUNDS`, by Newton's method from p."""
    value, slopes, second = gain(p)
    for _ in range(_MOST_STEPS):
        free = ~((p <= _BOUNDS[0]) & (slopes < 0) | (p >= _BOUNDS[1]) & (slopes > 0))
        curvatures, axes = np.linalg.eigh(-second[np.ix_(free, free)])
        # Where the surface bends upwards, Newton's step would lead down.
        sizes = np.maximum(np.abs(curvatures), 1e-8 * max(1.0, np.abs(curvatures).max(initial=0.0)))
        step = np.zeros(2)
        step[free] = axes @ ((axes.T @ slopes[free]) / sizes)
        step *= min(1.0, _LONGEST_STEP / max(np.abs(step).max(), 1e-300))
        while np.abs(step).max() > _SMALLEST_STEP:
            further = np.clip(p + step, *_BOUNDS)
            found = gain(further)
            if found[0] >= value:
                break
            step /= 4
        else:
            return p
        p, (value, slopes, second) = further, found
    return p
