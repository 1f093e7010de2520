import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from colonnade.methods import svt

from problems import hide


def low_rank(rng, m=90, n=80, r=2):
    return rng.standard_normal((m, r)) @ rng.standard_normal((r, n))


@pytest.mark.parametrize("n_full", [0, 4])
def test_exact_data_are_recovered(rng, n_full):
    M = low_rank(rng)
    known, seen = hide(rng, M, n_full, 40)
    answer = svt(known, tol=1e-7, max_iter=2_000, random_state=0)
    assert answer.rank == 2
    assert np.linalg.norm((answer.to_dense() - M)[~seen]) < 1e-5 * np.linalg.norm(M)


def test_is_the_paper_s_iteration(rng):
    """The same X as Y += delta P_O(M - X), X = shrink(Y), dense and as written, at the end of the same steps."""
    known, seen = hide(rng, low_rank(rng, 40, 30), 0, 25)
    tau, delta = 300.0, 1.5
    M = np.nan_to_num(known)
    Y = np.ceil(tau / np.linalg.norm(delta * M, 2)) * delta * M
    for _ in range(60):
        U, d, Vt = np.linalg.svd(Y)
        X = (U[:, :30] * np.maximum(d - tau, 0)) @ Vt
        Y = Y + delta * np.where(seen, M - X, 0)
    with pytest.warns(ConvergenceWarning, match="svt did not converge in 60 steps"):
        answer = svt(known, tau=tau, delta=delta, tol=1e-12, max_iter=60, random_state=0)
    np.testing.assert_allclose(answer.basis @ answer.coefficients, X, atol=1e-4 * np.abs(X).max())


def test_steps_that_are_too_long_are_halved(rng):
    M = low_rank(rng)
    known, seen = hide(rng, M, 4, 40)
    answer = svt(known, delta=50.0, tol=1e-5, max_iter=2_000, random_state=0)
    assert np.linalg.norm((answer.to_dense() - M)[~seen]) < 1e-3 * np.linalg.norm(M)


def test_stops_at_the_noise(rng):
    M = low_rank(rng)
    known, seen = hide(rng, M + 0.1 * rng.standard_normal(M.shape), 4, 40)
    answer = svt(known, noise_std=0.1, random_state=0)
    residual = (answer.basis @ answer.coefficients - known)[seen]
    assert 0.05 < np.sqrt(np.mean(residual**2)) <= 0.1
    assert answer.choices["iteration"].startswith("converged")
