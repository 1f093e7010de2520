"""Scales that few entries tell, the two parts of a variance, and errors of columns that nothing was learned from."""

import numpy as np
import pytest
from scipy.special import ndtri, stdtr

import colonnade as co
from colonnade.model.table import unit_degrees
from colonnade.uncertainty.parts import EQUAL_PARTS, fit_parts
from colonnade.uncertainty.student import from_normal, to_normal, together

from problems import hide, low_rank


@pytest.mark.parametrize("degrees", [1.0, 2.0, 5.0, 30.0, np.inf])
def test_student_scores_and_normal_ones(degrees):
    x = np.linspace(-6, 6, 49)
    y = to_normal(x, degrees)
    np.testing.assert_allclose(from_normal(y, degrees), x, rtol=1e-9, atol=1e-9)
    right = x if np.isinf(degrees) else np.copysign(-ndtri(stdtr(degrees, -np.abs(x))), x)
    assert np.abs(y - right).max() < 0.1 if degrees < 3 else np.abs(y - right).max() < 0.05
    assert np.isfinite(to_normal(1e300, degrees)) and np.isfinite(from_normal(30.0, degrees))


def test_degrees_of_a_product_of_scales():
    assert together(4.0, 4.0) == 2.0 and together(3.0, np.inf) == 3.0


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_two_parts_of_a_variance_are_found(unit):
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        noise, fit = np.ones(3000), rng.lognormal(0, 1.5, 3000)
        errors = np.sqrt(0.25 * noise**2 + 2 * fit**2) * rng.standard_t(4, 3000)
        whole = np.sqrt(noise**2 + fit**2)
        found.append(fit_parts(unit * errors / whole, unit * whole, unit * noise, np.ones(3000)))
    # The log variance of 3,000 Student-t errors is known to sqrt(7 / 4 * 2 / 3000) = .03; a tenth of them is noise.
    noise, fit = np.mean(found, axis=0)
    assert np.log(fit / noise) == pytest.approx(np.log(8.0), abs=0.25)


def test_few_errors_do_not_tell_the_parts():
    assert fit_parts(np.ones(20), np.ones(20), np.full(20, 0.5), np.ones(20)) == EQUAL_PARTS


def test_a_row_of_another_unit_has_the_degrees_of_its_entries(rng):
    """Rows alike lend each other their spread; rows in different units do not."""
    X = rng.standard_normal((60, 40))
    X[0, 2:] = np.nan
    alike = unit_degrees(co.Observations.from_dense(X))
    unlike = unit_degrees(co.Observations.from_dense(X * rng.lognormal(0, 3, (60, 1))))
    assert alike[0] == 9 and unlike[0] < 2 and (alike[1:] == 39).all() and (unlike[1:] == 39).all()


def test_optimism_makes_up_for_what_was_learned_from_the_entries():
    """Errors of hidden entries over those left out, in predicted deviations: 1.2 in the mean without the optimism."""
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        L, R = low_rank(rng, 80, 120, 8)
        M = L @ R / np.std(L @ R) + 0.3 * rng.standard_normal((80, 120))
        known, seen = hide(rng, M, 16, 14)
        completion = co.complete(known, method="full columns")
        assert completion.optimism > 1.02
        i, j = np.nonzero(~seen)
        hidden = np.abs(M[i, j] - completion.entries(i, j)) / completion.accuracy.deviations(i, j)
        left_out = np.abs(completion.accuracy.held_out.errors) / completion.accuracy.held_out.deviations
        ratios.append(np.median(hidden) / np.median(left_out))
    assert 0.9 < np.exp(np.mean(np.log(ratios))) < 1.1


@pytest.mark.slow
def test_rows_with_one_to_three_entries_have_intervals_that_hold():
    """Rows in units of their own: 90 % intervals that take the unit of a few entries for known hold 71 %."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        L, R = low_rank(rng, 60, 80, 4)
        X = (L @ R / np.std(L @ R) + 0.3 * rng.standard_normal((60, 80))) * rng.lognormal(0, 1.5, (60, 1))
        seen = rng.random(X.shape) < np.where(np.arange(60) < 20, 0.04, 0.5)[:, None]
        completion = co.complete(np.where(seen, X, np.nan), orientation="columns")
        few = (seen.sum(axis=1) >= 1) & (seen.sum(axis=1) <= 3)
        i, j = np.nonzero(~seen & few[:, None])
        low, high = completion.interval(i, j)
        assert np.isfinite(high - low).all()
        found.append(np.mean((low <= X[i, j]) & (X[i, j] <= high)))
    assert 0.8 < np.mean(found) < 0.98
