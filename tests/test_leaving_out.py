"""What errors of entries left out say, beside numbers by hand."""

import numpy as np
import pytest

from colonnade.model.leaving_out import column_losses, is_no_chance


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
