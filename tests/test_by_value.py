"""What predicted values tell of errors: their size, and how far they go to either side."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize

from colonnade.by_value import SYMMETRIC, Sides, _bins, deviation_factors, shape_of


def test_equal_predictions_have_equal_intervals(rng):
    """Whatever the order of the entries; equal up to rounding counts as equal."""
    predicted = np.repeat([0.0, 1.0, 2.0], 800) + 1e-15 * rng.standard_normal(2400)
    squares = rng.exponential(np.linspace(0.1, 4.0, 2400))
    order = rng.permutation(2400)
    found, again = deviation_factors(predicted, squares), deviation_factors(predicted[order], squares[order])
    np.testing.assert_allclose(found.at([0.0, 1.0, 1.5, 2.0]), again.at([0.0, 1.0, 1.5, 2.0]), rtol=1e-9)
    typical, sums = squares.mean(), squares.reshape(3, 800).sum(axis=1)
    expected = (sums + 20 * typical) / 820 / typical  # diluted with twenty entries
    np.testing.assert_allclose(found.at([0.0, 1.0, 2.0]) ** 2, expected, rtol=1e-9)


def skewed(rng, n, likeliest, below, above):
    """Errors that fall off exponentially to both sides of the likeliest one."""
    up = rng.random(n) < above / (below + above)
    return likeliest + rng.exponential(size=n) * np.where(up, above, -below)


@pytest.mark.parametrize("below, above", [(1.0, 1.0), (0.2, 1.0), (3.0, 0.5)])
def test_the_shape_is_that_of_the_errors(rng, below, above):
    """Two values with mirrored errors; against the parameters that a general optimiser finds likeliest."""
    errors = skewed(rng, 4000, 0.3, below, above)
    predicted = np.repeat([-1.0, 1.0], 4000)
    shape = shape_of(predicted, np.concatenate([errors, -errors]))
    sides, mirrored = shape.at(-1.0), shape.at(1.0)
    assert mirrored.q == pytest.approx(-sides.q, abs=0.05 * (below + above))
    assert mirrored.u == pytest.approx(2 - sides.u, abs=0.05)

    def unlikeliness(q, u):
        """Of errors whose sides are in the ratio 2 - u to u, at the best scale, in units of their number."""
        x = errors - q
        return np.log(np.mean(np.where(x > 0, x / u, -x / (2 - u))))

    grid = optimize.brute(
        lambda p: unlikeliness(*p), [(0.3 - below, 0.3 + above), (0.1, 1.9)], Ns=60, finish=optimize.fmin
    )
    assert unlikeliness(*sides) < unlikeliness(*grid) + 0.01


def test_sides_hold_errors_up_to_their_size(rng):
    n = 2000
    sides = Sides(rng.normal(size=n), rng.uniform(0.05, 1.95, n))
    errors, half = 2 * rng.normal(size=n), rng.exponential(size=n)
    low, high = sides.ends(half)
    assert ((low <= errors) & (errors <= high) == (sides.sizes(errors) <= half)).all()
    assert ((low <= 0) & (high >= 0)).all()
    wider = sides.ends(1.1 * half)
    assert ((wider[0] <= low) & (high <= wider[1])).all()
    np.testing.assert_array_equal(SYMMETRIC.at(errors).sizes(errors), np.abs(errors))


@pytest.mark.parametrize("errors", [np.zeros(300), np.full(300, -2.0), np.repeat([0.0, 1.0], 150), np.eye(1, 300)[0]])
def test_equal_errors_have_a_shape(errors):
    sides = shape_of(np.linspace(0, 1, errors.size), errors).at(0.5)
    assert np.isfinite(sides).all() and 0 < sides.u < 2


@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e305])
def test_few_errors_are_believed_in_part(unit):
    """Beside 20 imaginary ones without a shift, and one more of average size on either side."""
    q, u = shape_of(np.zeros(100), np.full(100, 3.0 * unit)).at(0.0)
    assert q == pytest.approx(3.0 * unit * 100 / 120) and u == 1
    errors = np.repeat([0.0, unit], [200, 100])
    q, u = shape_of(np.zeros(300), errors).at(0.0)
    up, down = np.sqrt(100 + 100 / 300), np.sqrt(100 / 300)
    assert q == 0 and u == pytest.approx(2 * up / (up + down))


def test_bins_have_enough_entries_wherever_the_values_are(rng):
    """Many equal values, one far from all others, and far from zero."""
    for predicted in (
        np.repeat([0.0, 1.0], [5, 995]),
        np.concatenate([np.zeros(300), np.linspace(1, 2, 103), np.full(300, 3.0)]),
        np.append(rng.standard_normal(3000), 1e300),
        rng.standard_normal(3000) + 1e9,
    ):
        places, bins = _bins(predicted)
        assert min(map(len, bins)) >= 100 and sorted(np.concatenate(bins)) == list(range(predicted.size))
        assert (np.diff(places) > 0).all()
        for before, after in pairwise(bins):
            assert predicted[before].max() < predicted[after].min()
    assert len(bins) == 20 and len(_bins(np.append(rng.standard_normal(3000), 1e300))[1]) == 20


def test_a_wild_error_does_not_decide_and_few_errors_say_nothing(rng):
    errors, predicted = skewed(rng, 1000, 0.0, 1.0, 2.0), np.zeros(1000)
    errors[0] = 40.0  # the largest of all
    expected = shape_of(predicted, errors).at(0.0)
    errors[0] = 1e300
    assert shape_of(predicted, errors).at(0.0) == expected
    assert shape_of(predicted[:99], errors[:99]) is SYMMETRIC
