"""Widths that hold as much as they should and are narrow."""

import numpy as np
import pytest
from scipy import optimize, special

from colonnade.contours import half_widths, log_thresholds

LEVELS = 0.5, 0.8, 0.9, 0.95


def test_all_ends_are_equally_likely_or_the_width_is_constant(rng):
    s, t = rng.lognormal(0, 1.5, 500), 1.3
    w = half_widths(np.log(t), s)
    density = np.exp(-((w / s) ** 2) / 2) / s
    np.testing.assert_allclose(density[s < t], 1 / (t * np.sqrt(np.e)), rtol=1e-12)
    np.testing.assert_allclose(w[s >= t], t, rtol=1e-12)
    assert (np.diff(w[np.argsort(s)]) >= -1e-15).all(), "never narrower where less is known"
    assert (half_widths(np.log(1.1 * t), s) > w).all(), "a higher level holds all that a lower one does"


@pytest.mark.parametrize("unit", [1.0, 1e-120, 1e120])
def test_a_threshold_is_where_an_error_is_just_held(rng, unit):
    s, e = unit * rng.lognormal(0, 1.5, (2, 500))
    thresholds = log_thresholds(e, s)
    np.testing.assert_allclose([half_widths(*pair) for pair in zip(thresholds, s)], e, rtol=1e-9)


def test_errors_of_any_size_have_thresholds():
    errors = np.array([0.0, 1e-300, 1.0, 1e300])
    with np.errstate(over="ignore"):
        thresholds = log_thresholds(errors, np.full(4, 1e-3))
    assert (np.diff(thresholds) > 0).all() and np.isfinite(thresholds[1:]).all()
    assert half_widths(thresholds[0], np.ones(1)) == 0
    assert np.isinf(half_widths(np.inf, np.ones(1)))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("inequality", [0.1, 0.5, 1.5])
def test_no_power_of_the_deviation_is_narrower(rng, level, inequality):
    """Gaussian errors with known deviations, so that the coverage of any widths is known too."""
    s = rng.lognormal(0, inequality, 2000)

    def mean_width(widths):
        def excess(log_size):
            return special.erf(widths(log_size) / s / np.sqrt(2)).mean() - level

        return widths(optimize.brentq(excess, -20, 20, xtol=1e-12)).mean()

    ours = mean_width(lambda log_t: half_widths(log_t, s))
    for power in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert ours <= 1.002 * mean_width(lambda log_size: np.exp(log_size) * s**power), power  # noqa: B023
