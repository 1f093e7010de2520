import numpy as np
import pytest

from colonnade import Observations, complete
from colonnade.methods import als

from problems import hide


def low_rank(rng, m=90, n=80, r=3):
    return rng.standard_normal((m, r)) @ rng.standard_normal((r, n))


def noisy(rng, **sizes):
    M = low_rank(rng, **sizes)
    return hide(rng, M + 0.3 * rng.standard_normal(M.shape), 4, 30)[0]


@pytest.mark.parametrize("settings", [{"rank": 3, "penalty": 0.0}, {}])
@pytest.mark.parametrize("n_full", [0, 6])
def test_exact_data_are_recovered(rng, settings, n_full):
    M = low_rank(rng)
    known, _ = hide(rng, M, n_full, 30)
    answer = als(known, tol=1e-12, max_sweeps=1_000, random_state=0, **settings)
    assert np.linalg.norm(answer.to_dense() - M) < 1e-9 * np.linalg.norm(M)


@pytest.mark.parametrize("weighted", [False, True])
def test_normal_equations_of_both_sides(rng, weighted):
    """With A = U sqrt(d), B = V sqrt(d) and G = P_O(W (M - A B')): G B = lambda A and G'A = lambda B."""
    known, penalty = noisy(rng, m=50, n=45), 1.5
    weights = rng.uniform(0.5, 2, known.shape) if weighted else np.ones(known.shape)
    o = Observations.from_dense(known, weights=weights)
    answer = als(o, rank=5, penalty=penalty, center=False, tol=1e-12, max_sweeps=5_000, random_state=0)
    U, d, Vt = np.linalg.svd(answer.basis @ answer.coefficients, full_matrices=False)
    A, B = U[:, : answer.rank] * np.sqrt(d[: answer.rank]), (Vt.T * np.sqrt(d))[:, : answer.rank]
    G = np.nan_to_num(weights * (known - A @ B.T))
    np.testing.assert_allclose(G @ B, penalty * A, atol=1e-6)
    np.testing.assert_allclose(G.T @ A, penalty * B, atol=1e-6)


def test_plain_normal_equations(rng):
    known = noisy(rng)
    answer = als(known, rank=3, penalty=0, center=False, tol=1e-12, max_sweeps=5_000, random_state=0)
    G = np.nan_to_num(known - answer.basis @ answer.coefficients)
    assert np.abs(answer.basis.T @ G).max() < 1e-6
    assert np.abs(G @ answer.coefficients.T).max() < 1e-6 * np.abs(answer.coefficients).max() * 90


def test_the_start_does_not_matter_at_the_end(rng):
    known = noisy(rng)
    settings = {"rank": 3, "penalty": 1.0, "center": False, "tol": 1e-9, "max_sweeps": 2_000}
    first, second = (als(known, random_state=k, **settings) for k in range(2))
    third = als(known, start=complete(known, rank=3, center=False, shrinkage=0, refine=0), **settings)
    np.testing.assert_allclose(first.to_dense(), second.to_dense(), atol=1e-5)
    np.testing.assert_allclose(first.to_dense(), third.to_dense(), atol=1e-5)


def test_from_its_own_end_it_stays(rng):
    known = noisy(rng)
    settings = {"rank": 3, "penalty": 1.0, "center": False, "random_state": 0}
    end = als(known, tol=1e-8, **settings)
    again = als(known, start=end, tol=1e-6, **settings)
    assert "after 1 sweeps" in again.choices["iteration"]


@pytest.mark.slow
def test_hidden_entries_choose_well(rng):
    """Not much worse than the best of many fixed settings, judged by the truth."""
    M = low_rank(rng, 150, 120)
    known, seen = hide(rng, M + 0.5 * rng.standard_normal(M.shape), 5, 40)

    def error(**settings):
        answer = als(known, center=False, tol=1e-4, max_sweeps=500, random_state=0, **settings)
        return np.linalg.norm((answer.basis @ answer.coefficients - M)[~seen])

    best = min(error(rank=r, penalty=p) for r in (2, 3, 5) for p in (0.1, 1.0, 4.0))
    assert error() < 1.15 * best


def test_center_helps_where_rows_differ(rng):
    M = 20 * rng.standard_normal((90, 1)) + low_rank(rng)
    known, _ = hide(rng, M, 4, 40)
    assert als(known, random_state=0).center is not None
    assert als(low_rank(rng), random_state=0).center is None


def test_a_start_of_another_shape_is_refused(rng):
    with pytest.raises(ValueError, match=r"start must be a Completion of the shape of the data, \(90, 80\)"):
        als(noisy(rng), start=complete(low_rank(rng, 10, 12)))
