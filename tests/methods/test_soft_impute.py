import numpy as np
import pytest

from colonnade import Observations
from colonnade.methods import als, soft_impute

from problems import hide


def problem(rng, m=30, n=25, r=3, noise=0.3, n_full=3, s=14):
    M = rng.standard_normal((m, r)) @ rng.standard_normal((r, n)) + noise * rng.standard_normal((m, n))
    return hide(rng, M, n_full, s)[0]


def textbook(known, penalty, steps=20_000):
    """X = shrink(P_O(M) + P_O_perp(X)), dense and as written, until nothing moves."""
    seen, X = ~np.isnan(known), np.zeros(known.shape)
    for _ in range(steps):
        U, d, Vt = np.linalg.svd(np.where(seen, known, X), full_matrices=False)
        new = (U * np.maximum(d - penalty, 0)) @ Vt
        if np.linalg.norm(new - X) <= 1e-12 * np.linalg.norm(new):
            break
        X = new
    return X


def product(completion):
    return completion.basis @ completion.coefficients


@pytest.mark.parametrize("penalty", [1.0, 3.0])
def test_is_the_textbook_loop(rng, penalty):
    known = problem(rng)
    answer = soft_impute(known, penalty=penalty, center=False, tol=1e-10, max_iter=5_000, random_state=0)
    expected = textbook(known, penalty)
    np.testing.assert_allclose(product(answer), expected, atol=1e-6 * np.linalg.norm(expected, 2))
    seen = ~np.isnan(known)
    assert (answer.to_dense()[seen] == known[seen]).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_conditions_of_the_minimum(rng, weighted):
    """With G = P_O(W (M - X)): U'G = lambda V', G V = lambda U, and G is at most lambda outside of U and V."""
    known, penalty = problem(rng, 60, 50, noise=0.5, s=20), 2.0
    weights = rng.uniform(0.5, 2, known.shape) if weighted else np.ones(known.shape)
    o = Observations.from_dense(known, weights=weights)
    answer = soft_impute(o, penalty=penalty, center=False, tol=1e-10, max_iter=5_000, random_state=0)
    U, _, Vt = np.linalg.svd(product(answer), full_matrices=False)
    U, Vt = U[:, : answer.rank], Vt[: answer.rank]
    G = np.nan_to_num(weights * (known - product(answer)))
    assert 0 < answer.rank < 50
    np.testing.assert_allclose(G @ Vt.T, penalty * U, atol=1e-6 * penalty)
    np.testing.assert_allclose(U.T @ G, penalty * Vt, atol=1e-6 * penalty)
    outside = G - U @ (U.T @ G)
    outside -= (outside @ Vt.T) @ Vt
    assert np.linalg.norm(outside, 2) <= penalty * (1 + 1e-6)


def test_is_als_with_enough_directions(rng):
    known = problem(rng, 50, 40)
    settings = {"penalty": 2.0, "center": True, "random_state": 0}
    ours = soft_impute(known, tol=1e-9, max_iter=5_000, **settings)
    other = als(known, rank=20, tol=1e-9, max_sweeps=2_000, **settings)
    np.testing.assert_allclose(ours.to_dense(), other.to_dense(), atol=1e-5)


def test_a_penalty_as_large_as_the_entries_leaves_nothing(rng):
    known = problem(rng)
    top = np.linalg.norm(np.nan_to_num(known), 2)
    assert soft_impute(known, penalty=1.01 * top, center=False, random_state=0).rank == 0
    assert soft_impute(known, penalty=0.99 * top, center=False, random_state=0).rank == 1


def test_hidden_entries_choose_a_penalty_near_the_best(rng):
    m, n = 80, 60
    truth = rng.standard_normal((m, 3)) @ rng.standard_normal((3, n))
    known, seen = hide(rng, truth + rng.standard_normal((m, n)), 5, 30)
    top = np.linalg.norm(np.nan_to_num(known), 2)

    def error(**settings):
        answer = soft_impute(known, center=False, tol=1e-4, random_state=0, **settings)
        return np.linalg.norm((product(answer) - truth)[~seen])

    best = min(error(penalty=top * 0.5**k) for k in range(1, 6))
    assert error() < 1.15 * best


def test_where_the_limit_binds_it_is_als(rng):
    known = problem(rng, 60, 50, noise=0.5, s=25)
    settings = {"penalty": 1.0, "center": False, "random_state": 0}
    limited = soft_impute(known, max_rank=3, tol=1e-13, max_iter=5_000, **settings)
    other = als(known, rank=3, tol=1e-9, max_sweeps=5_000, **settings)
    np.testing.assert_allclose(product(limited), product(other), atol=1e-4)


def test_rank_limit_is_said(rng):
    known = problem(rng, 40, 40)
    limited = soft_impute(known, penalty=0.05, center=False, max_rank=3, max_iter=10_000, random_state=0)
    assert limited.rank == 3 and "no more than 3 allowed" in limited.choices["rank"]
