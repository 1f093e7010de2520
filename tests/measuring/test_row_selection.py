"""select_rows: optimal where the optimum is known, never worse than pivoted QR, and far better than random rows."""

from itertools import combinations

import numpy as np
import pytest
from scipy import linalg

import colonnade as co

from problems import hide


def basis(rng, m, r):
    return np.linalg.qr(rng.standard_normal((m, r)))[0]


def trace(U, rows, penalty=0.0):
    S = U[rows]
    return np.trace(np.linalg.inv(S.T @ S + np.diag(np.broadcast_to(penalty, U.shape[1]))))


def space_of(U, variances, noise_std):
    variances = np.asarray(variances, dtype=float)
    return co.ColumnSpace(U, np.sqrt(variances), None, variances, noise_std)


def test_half_the_noise_of_random_rows(rng):
    m, r = 1000, 20
    U = basis(rng, m, r)
    usual = np.median([trace(U, rng.choice(m, 2 * r, replace=False)) for _ in range(25)])
    assert trace(U, co.select_rows(U, 2 * r)) <= usual / 2


@pytest.mark.parametrize("k", (6, 9, 12, 40))
def test_never_worse_than_pivoted_qr(rng, k):
    U = basis(rng, 60, 6)
    pivots = linalg.qr(U.T, pivoting=True, mode="r")[1]
    rows = co.select_rows(U, k)
    assert trace(U, rows) <= trace(U, pivots[:k]) * (1 + 1e-9)


@pytest.mark.parametrize("k", (2, 3, 4))
def test_near_the_best_of_all_choices(rng, k):
    """All subsets are tried; exchanges may end in a local minimum, never far from the least."""
    U = basis(rng, 14, 2)
    best = min(trace(U, list(rows)) for rows in combinations(range(14), k))
    assert trace(U, co.select_rows(U, k)) <= 1.1 * best


@pytest.mark.parametrize("k", (1, 2, 3, 5))
def test_with_a_prior_the_expected_error_is_near_the_least(rng, k):
    U, variances, noise = basis(rng, 14, 3), [9.0, 1.0, 0.1], 0.2
    penalty = noise**2 / np.asarray(variances)
    best = min(trace(U, list(rows), penalty) for rows in combinations(range(14), k))
    assert trace(U, co.select_rows(space_of(U, variances, noise), k), penalty) <= 1.1 * best


def test_no_single_exchange_helps(rng):
    """The optimality condition of the search itself."""
    U = basis(rng, 80, 5)
    rows = co.select_rows(U, 9)
    others = np.setdiff1d(np.arange(80), rows)
    least = min(trace(U, [*np.delete(rows, i), j]) for i in range(rows.size) for j in others)
    assert least >= trace(U, rows) * (1 - 1e-5)


def test_few_rows_measure_the_largest_directions():
    """Without noise and with k < r: each direction is a row of its own, and the largest variances are wanted."""
    U = np.eye(8)[:, [5, 2, 7, 0]]
    assert co.select_rows(space_of(U, [8.0, 4.0, 2.0, 1.0], np.nan), 2).tolist() == [2, 5]
    assert co.select_rows(space_of(U, [8.0, 4.0, 2.0, 1.0], 0.5), 3).tolist() == [2, 5, 7]


def test_rows_are_different_rising_and_repeatable(rng):
    U = np.repeat(basis(rng, 10, 3), 4, axis=0) / 2  # every row four times
    for k in (1, 3, 7, 20, 39, 40):
        rows = co.select_rows(U, k)
        assert rows.dtype == np.int64
        assert (np.diff(rows) > 0).all()
        assert rows.size == k
        assert np.array_equal(rows, co.select_rows(U, k))


def test_order_of_rows_and_signs_do_not_matter(rng):
    U = basis(rng, 50, 4)
    order = rng.permutation(50)
    moved = co.select_rows(U[order] * [-1, 1, -1, 1], 8)
    assert set(order[moved]) == set(co.select_rows(U, 8))


def test_cost(rng):
    U = basis(rng, 40, 3)
    cost = rng.uniform(0.1, 10, 40)
    cost[:5] = np.inf
    rows = co.select_rows(U, 6, cost=cost)
    assert rows.min() >= 5
    dear = co.select_rows(U, 6, cost=np.where(np.isfinite(cost), 1.0, np.inf))
    assert trace(U, rows) * cost[rows].sum() <= trace(U, dear) * cost[dear].sum()
    assert np.array_equal(co.select_rows(U, 6, cost=np.full(40, 7.0)), co.select_rows(U, 6))
    others = np.setdiff1d(np.arange(5, 40), rows)
    swaps = ([*np.delete(rows, i), j] for i in range(6) for j in others)
    assert min(trace(U, s) * cost[s].sum() for s in swaps) >= trace(U, rows) * cost[rows].sum() * (1 - 1e-5)


def test_rows_that_can_be_measured_need_not_determine_all(rng):
    U = np.eye(6)[:, :3]
    cost = np.array([np.inf, 1, 1, 1, 1, 1])
    assert {1, 2} <= set(co.select_rows(U, 3, cost=cost))


def test_exact_columns_are_recovered_from_as_many_rows_as_directions(rng):
    L, R = rng.standard_normal((200, 6)) * rng.pareto(1.0, 200)[:, None], rng.standard_normal((6, 50))
    M = L @ R
    rows = co.select_rows(co.fit_column_space(M[:, :10]), 6)
    known = np.full(M.shape, np.nan)
    known[:, :10], known[rows] = M[:, :10], M[rows]
    filled = co.complete(known, rank=6, center=False, shrinkage=0).to_dense()
    assert np.abs(filled - M).max() <= 1e-12 * np.abs(M).max()


def test_a_completion_brings_its_own_noise(rng):
    M = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 80)) + 0.3 * rng.standard_normal((60, 80))
    completion = co.complete(hide(rng, M, 12, 15)[0], method="full columns")
    rows = co.select_rows(completion, 6)
    penalty, U = completion.penalty, completion.basis
    usual = np.median([trace(U, rng.choice(60, 6, replace=False), penalty) for _ in range(50)])
    assert trace(U, rows, penalty) < usual


def test_tall_basis_in_single_precision(rng):
    U = basis(rng, 20_000, 8).astype(np.float32)
    rows = co.select_rows(co.fit_column_space(U @ rng.standard_normal((8, 8)).astype(np.float32)), 16)
    usual = np.median([trace(U, rng.choice(20_000, 16, replace=False)) for _ in range(25)])
    assert trace(U.astype(float), rows) <= usual / 2


def test_a_space_without_directions_takes_the_cheapest():
    space = co.fit_column_space(np.zeros((5, 2)))
    assert co.select_rows(space, 2, cost=[3, 1, 4, 1, 5]).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    (
        ((np.eye(4)[:, :2], 0), ValueError, "k must be a whole number from 1 to 4"),
        ((np.eye(4)[:, :2], 5), ValueError, "the rows that can be measured"),
        ((np.eye(4)[:, :2], 2.5), TypeError, "k must be a whole number"),
        ((np.ones((4, 2)), 2), ValueError, "column_space must be orthonormal"),
        ((np.eye(4)[:, :2], 2, [1, 2, 3]), ValueError, "cost must be 4 numbers"),
        ((np.eye(4)[:, :2], 2, [1, 2, np.nan, 1]), ValueError, r"cost\[2\] is nan"),
        ((np.eye(4)[:, :2], 2, [1, 2, 0, 1]), ValueError, r"cost\[2\] is 0"),
        ((np.eye(4)[:, :2], 2, [1, np.inf, np.inf, np.inf]), ValueError, "from 1 to 1"),
        ((np.eye(4)[:, :2], 2, ["a"] * 4), ValueError, "cost must be 4 numbers"),
    ),
)
def test_bad_arguments(arguments, kind, words):
    column_space, k, *cost = arguments
    with pytest.raises(kind, match=words):
        co.select_rows(column_space, k, cost=cost[0] if cost else None)


def test_one_exchange_is_an_exchange():
    """A row of length 1 is exchanged for one of length 2 in the same direction; nothing is left to exchange then."""
    from colonnade.measuring.row_selection import _exchange

    U, price = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]), np.ones(3)
    chosen, others = np.array([0, 1]), np.array([2])
    assert _exchange(U, np.zeros(2), price, chosen, others) and sorted(chosen) == [1, 2] and others == [0]
    assert not _exchange(U, np.zeros(2), price, chosen, others) and sorted(chosen) == [1, 2]


@pytest.mark.parametrize("n_start", (0, 3, 5))
def test_each_added_row_lowers_the_trace_most_for_its_price(rng, n_start):
    """Every candidate is tried by an inverse of its own."""
    from colonnade.measuring.row_selection import _penalty, grow_rows

    U, variances, noise, cost = basis(rng, 40, 4), [9.0, 2.0, 1.0, 0.5], 0.8, rng.uniform(0.5, 2, 40)
    space = space_of(U, variances, noise)
    start = rng.choice(40, n_start, replace=False)
    rows = grow_rows(space, start, 24, cost=cost)
    assert np.array_equal(rows[:n_start], start) and np.unique(rows).size == rows.size == 24
    penalty = _penalty(space, noise, 24)
    for k in range(n_start, 24):
        before = trace(U, rows[:k], penalty)
        gain = [(before - trace(U, [*rows[:k], j], penalty)) / cost[j] for j in range(40) if j not in rows[:k]]
        assert (before - trace(U, rows[: k + 1], penalty)) / cost[rows[k]] >= max(gain) * (1 - 1e-8)
