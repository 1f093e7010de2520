"""What errors of entries left out say, beside numbers by hand."""

import numpy as np
import pytest

from colonnade import Observations
from colonnade.model.column_space import fit_column_space
from colonnade.model.leaving_out import column_losses, is_no_chance, squares_of_others
from colonnade.uncertainty.calibration import Spreads


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1.0, 1e300])
def test_gains_that_are_no_chance(scale):
    """0, 2 and 4 have the mean 2 and the standard error 2 / sqrt(3): the mean is 1.732 standard errors."""
    gains = scale * np.array([0.0, 2.0, 4.0])
    assert is_no_chance(gains, 1.73) and not is_no_chance(gains, 1.74)
    assert is_no_chance(gains[:2], 0.99) and not is_no_chance(gains[:2], 1.01)  # 0 and 2: the mean and its error are 1
    assert not is_no_chance(-gains, 0) and not is_no_chance(np.zeros(3), 0)


def test_one_gain_alone_may_be_chance():
    assert not is_no_chance(np.array([5.0]), 0) and not is_no_chance(np.zeros(0), 0)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_losses_are_means_over_columns_where_these_are_many(order):
    columns = np.repeat(np.arange(40), np.arange(40) % 3 + 1)
    squares = np.random.default_rng(0).random((columns.size, 2))
    expected = np.array([squares[columns == j].mean(axis=0) for j in range(40)])
    np.testing.assert_allclose(column_losses(squares[order], columns[order]), expected, rtol=1e-14)
    np.testing.assert_allclose(column_losses(squares[order, 0], columns[order]), expected[:, 0], rtol=1e-14)
    few = columns < 3
    np.testing.assert_array_equal(column_losses(squares[few], columns[few]), squares[few])


@pytest.mark.parametrize("weighted", [False, True])
def test_squares_of_others_are_those_of_a_column_without_the_entry(rng, weighted):
    """By hand: the entry is deleted, each of the others is left out of what remains, by solves without any shortcut."""
    m, r, noise = 12, 3, 0.3
    space = fit_column_space(rng.standard_normal((m, 4)) @ rng.standard_normal((4, 9)), rank=r, center=True)
    X = rng.standard_normal((m, 5))
    X[rng.random(X.shape) < 0.4] = np.nan
    weights = rng.uniform(0.5, 2, X.shape) if weighted else None
    o = Observations.from_dense(X, weights=weights)
    found = squares_of_others(space, o, noise)

    def squares(rows, x, w):
        """Of the standardised errors of all entries, each left out by itself."""
        L = space.basis[rows] * np.sqrt(space.variances)
        K, x, sizes = L @ L.T + np.diag(noise / w), x - space.center[rows], []
        for k in range(rows.size):
            rest = np.delete(np.arange(rows.size), k)
            pull = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, k])
            sizes.append((x[k] - pull @ x[rest]) ** 2 / (K[k, k] - pull @ K[rest, k]))
        return np.array(sizes)

    for j in range(5):
        at = slice(o.indptr[j], o.indptr[j + 1])
        rows, x = o.rows[at], o.values[at]
        w = np.ones(rows.size) if o.weights is None else o.weights[at]
        with_it = squares(rows, x, w)
        for i in range(rows.size):
            rest = np.delete(np.arange(rows.size), i)
            expected = squares(rows[rest], x[rest], w[rest]).sum() / with_it[rest].sum()
            np.testing.assert_allclose(found[at][i], expected, rtol=1e-9)


def test_strength_of_factors_is_that_which_predicts_squares_best(rng):
    """Squares of 400 groups whose variances are inverse gamma with shape and scale 3: the strength is found again."""
    variances = 3 / rng.gamma(3.0, 1.0, 400)
    groups = np.repeat(np.arange(400), 10)
    squares = variances[groups] * rng.standard_normal(4000) ** 2
    prior = Spreads.of(groups, squares, 400).prior
    assert 2.2 < prior.shape < 4.2 and 0.8 < prior.scale / prior.shape < 1.25
