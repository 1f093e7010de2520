"""Variances of groups: the fitted prior is the most likely one."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import zeta

from colonnade.model.inverse_gamma import _BOUNDS, _log_likelihood, _trigamma, fit_inverse_gamma


def groups(rng, shape, beside):
    """Numbers and sums of squares of groups with variances of an inverse gamma, of which the first has none."""
    n = int(rng.integers(3, 100))
    counts, variances = rng.integers(0, 40, n).astype(float), shape / rng.gamma(shape, size=n)
    counts[0], counts[1] = 0, 5
    squares, more = (variances * np.where(k > 0, rng.chisquare(np.maximum(k, 1)), 0) for k in (counts, counts[::-1]))
    return counts, squares, ((counts[::-1], more) if beside else (0.0, 0.0)), rng.random(n) if beside else 1.0


@pytest.mark.parametrize("beside", [False, True])
def test_derivatives_of_the_likelihood_are_those_by_differences(rng, beside):
    counts, squares, (k, t), weights = groups(rng, 3.0, beside)
    given = counts / 2, squares / 2, k / 2, t / 2, weights
    p = rng.standard_normal(2)
    _, slopes, second = _log_likelihood(p, *given)
    np.testing.assert_allclose(slopes, approx_fprime(p, lambda p: _log_likelihood(p, *given)[0]), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(second, approx_fprime(p, lambda p: _log_likelihood(p, *given)[1]), rtol=1e-4, atol=1e-3)


def test_trigamma_has_the_digits_of_scipy():
    x = np.logspace(-3, 9, 2000)
    np.testing.assert_allclose(_trigamma(x), zeta(2, x), rtol=1e-14)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("shape", [1.0, 2.0, 20.0, 1e4])
@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e150])
def test_the_prior_is_the_most_likely_one(rng, shape, unit, beside):
    counts, squares, (k, t), weights = groups(rng, shape, beside)
    found = fit_inverse_gamma(counts, unit * squares, beside=(k, unit * t), weights=weights)
    common = float((weights * squares).sum()) / float((weights * counts).sum())

    def loss(p):
        return -_log_likelihood(p, counts / 2, squares / (2 * common), k / 2, t / (2 * common), weights)[0]

    starts = np.log([[2.0, 1.0], [50.0, 1.0], [1.1, 0.3]])
    best = min(minimize(loss, start, method="L-BFGS-B", bounds=_BOUNDS.T).fun for start in starts)
    # Both logarithms are rounded to .001, so that the variance may be off by that share.
    reached = loss(np.log([found.shape, found.scale / found.shape / (unit * common)]))
    assert reached <= best + 1e-6 * float(np.sum(weights * (counts + k)))
