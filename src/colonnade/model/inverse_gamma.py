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
    from scipy.optimize import minimize
    from scipy.special import digamma, gammaln

    common = float((weights * squares).sum()) / max(1.0, float((weights * counts).sum()))
    if common <= 0:
        return InverseGamma(_LEAST_SHAPE, 0.0)
    half, t = counts / 2, squares / (2 * common)
    half_beside, t_beside = beside[0] / 2, beside[1] / (2 * common)

    def loss(p):
        prior = np.exp(p)
        a, b = prior[0] + half_beside, prior[1] + t_beside
        value = gammaln(a + half) - gammaln(a) + a * np.log(b) - (a + half) * np.log(b + t)
        by_a = digamma(a + half) - digamma(a) + np.log(b) - np.log(b + t)
        by_b = a / b - (a + half) / (b + t)
        by_prior = prior * [(weights * by_a).sum(), (weights * by_b).sum()]
        return -(weights * value).sum(), -by_prior

    begin = np.log([2.0, 2.0] if start is None else [start.shape, max(start.scale / common, 1e-6)])
    bounds = [(np.log(_LEAST_SHAPE), 9.0), (-12.0, 12.0)]
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds).x
    a, b = np.exp(np.round(found, _DIGITS))
    return InverseGamma(float(a), float(b) * common)
