"""Adaptive and life-long completion, against a plain loop over the columns."""

import numpy as np
import pytest

from colonnade import Source, Status
from colonnade.methods import adaptive_completion, lifelong_completion
from colonnade.methods._reading import distinct

from problems import low_rank, space_angle


def one_by_one(M, s, tolerance, seed):
    """The method as written, with pseudo-inverses: the filled matrix, the appended columns, the entries read."""
    rng = np.random.default_rng(seed)
    m, n = M.shape
    U, filled, appended, read = np.zeros((m, 0)), np.empty((m, n)), [], 0
    omega = distinct(rng, m, s)
    for t in range(n):
        x = M[omega, t]
        z = np.linalg.pinv(U[omega]) @ x
        read += s
        if np.linalg.norm(x - U[omega] @ z) >= tolerance(U.shape[1]) * np.linalg.norm(x):
            read += m - s
            appended.append(t)
            U = np.linalg.qr(M[:, appended])[0]
            omega = distinct(rng, m, s)
            filled[:, t] = M[:, t]
        else:
            filled[:, t] = U @ z
            filled[omega, t] = x
    return filled, appended, read


@pytest.mark.parametrize("tolerance", [0.1, 0.3])
def test_adaptive_completion_is_the_loop(rng, seed, tolerance):
    L, R = low_rank(rng, 80, 120, 4)
    M = L @ R + 0.1 * rng.standard_normal((80, 120))
    source = Source(M)
    answer = adaptive_completion(source, n_entries=30, tolerance=tolerance, random_state=seed)
    filled, appended, read = one_by_one(M, 30, lambda k: tolerance, seed)
    np.testing.assert_array_equal(answer.observations.full_columns, appended)
    np.testing.assert_allclose(answer.to_dense(), filled, atol=1e-11)
    assert source.entries_read == read == len(appended) * 80 + (120 - len(appended)) * 30


@pytest.mark.parametrize("bound", [1e-3, 0.02])
def test_lifelong_completion_is_the_loop(rng, seed, bound):
    L, R = low_rank(rng, 80, 120, 4)
    M = L @ R + 0.01 * rng.standard_normal((80, 120))
    answer = lifelong_completion(M, n_entries=30, noise_bound=bound, random_state=seed)
    filled, appended, _ = one_by_one(M, 30, lambda k: max(1e-8, np.sqrt(k * bound) / 1.6), seed)
    np.testing.assert_array_equal(answer.observations.full_columns, appended)
    np.testing.assert_allclose(answer.to_dense(), filled, atol=1e-11)


def test_exact_data_take_as_many_columns_as_the_rank(rng, seed):
    L, R = low_rank(rng, 100, 200, 6)
    source = Source(L @ R)
    answer = adaptive_completion(source, n_entries=24, random_state=seed)
    np.testing.assert_array_equal(answer.observations.full_columns, np.arange(6))  # generic columns: the first ones
    assert source.entries_read == 6 * 100 + 194 * 24
    np.testing.assert_allclose(answer.to_dense(), L @ R, atol=1e-11)


def test_late_directions_and_repeated_columns(rng, seed):
    """A direction that appears in a late column is found there; copies and multiples are not read in full."""
    L = rng.standard_normal((60, 3))
    R = np.zeros((3, 90))
    R[0], R[1, 40:], R[2, 70:] = 1.0, rng.standard_normal(50), rng.standard_normal(20)
    answer = adaptive_completion(L @ R, n_entries=12, random_state=seed)
    np.testing.assert_array_equal(answer.observations.full_columns, [0, 40, 70])
    np.testing.assert_allclose(answer.to_dense(), L @ R, atol=1e-11)


def test_scales_of_the_columns_do_not_matter(rng, seed):
    L, R = low_rank(rng, 60, 80, 3)
    sizes = 10.0 ** rng.uniform(-150, 150, 80)
    answer = adaptive_completion(L @ R * sizes, n_entries=12, random_state=seed)
    np.testing.assert_array_equal(answer.observations.full_columns, [0, 1, 2])
    np.testing.assert_allclose(answer.to_dense() / sizes, L @ R, atol=1e-10)


def test_rows_that_do_not_determine_a_column_leave_it_open():
    """The first direction has one row, which half of the draws do not see: then nothing is said of the columns."""
    M = np.zeros((40, 30))
    M[0, [0, 5]] = 1.0
    M[:, 1] = np.arange(40)
    open_columns = 0
    for seed in range(20):
        answer = adaptive_completion(M, n_entries=20, random_state=seed)
        undetermined = answer.status == Status.UNDETERMINED
        open_columns += undetermined.sum()
        assert np.isnan(answer.to_dense()[:, undetermined]).any(axis=0).all()
        if 0 in answer.observations.full_columns:
            np.testing.assert_allclose(answer.to_dense()[:, ~undetermined], M[:, ~undetermined], atol=1e-12)
    assert 0 < open_columns < 20 * 28


def test_no_more_columns_than_entries_are_read_in_full(rng, seed):
    source = Source(rng.standard_normal((50, 60)))
    answer = adaptive_completion(source, n_entries=8, random_state=seed)
    assert answer.rank == 8 and answer.observations.full_columns.size == 8


def test_without_noise_life_long_is_adaptive(rng, seed):
    L, R = low_rank(rng, 60, 80, 3)
    first = adaptive_completion(L @ R, n_entries=12, random_state=seed)
    for noise in ("bounded", "sparse"):
        second = lifelong_completion(L @ R, n_entries=12, noise=noise, random_state=seed)
        np.testing.assert_array_equal(first.to_dense(), second.to_dense())


def test_bounded_noise_keeps_the_rank_and_the_error(rng, seed):
    """The error of a column is of the order (m / s) sqrt(k eps), by the theorem; the noise is within the bound."""
    L, R = low_rank(rng, 100, 200, 4)
    clean = L @ R / np.linalg.norm(L @ R, axis=0)
    noise = rng.standard_normal(clean.shape)
    eps = 1e-4
    noise *= eps * rng.random(200) / np.linalg.norm(noise, axis=0)
    answer = lifelong_completion(clean + noise, n_entries=40, noise_bound=eps, random_state=seed)
    assert answer.rank == 4
    assert np.linalg.norm(answer.to_dense() - clean, axis=0).max() <= 100 / 40 * np.sqrt(4 * eps)


def test_sparse_noise_is_found_and_dropped(rng, seed):
    L, R = low_rank(rng, 100, 150, 4)
    M = L @ R
    corrupted = np.sort(rng.choice(np.arange(1, 150), 6, replace=False))
    M[:, corrupted] = rng.standard_normal((100, 6)) * 10.0 ** rng.uniform(-3, 3, 6)
    answer = lifelong_completion(M, n_entries=30, noise="sparse", random_state=seed)
    assert answer.choices["dropped"] == f"columns {', '.join(map(str, corrupted))}"
    assert answer.rank == 4 and space_angle(answer.basis, np.linalg.qr(L)[0]) < 1e-9
    np.testing.assert_allclose(answer.to_dense(), M, atol=1e-8)  # corrupted columns were read, and stay as they are
    good = np.setdiff1d(np.arange(150), corrupted)
    np.testing.assert_allclose((answer.basis @ answer.coefficients)[:, good], (L @ R)[:, good], atol=1e-9)
    projected = answer.basis @ (answer.basis.T @ M[:, corrupted])
    np.testing.assert_allclose((answer.basis @ answer.coefficients)[:, corrupted], projected, atol=1e-8)


def test_progress_is_told(rng):
    heard = []
    M = rng.standard_normal((20, 500))
    adaptive_completion(M, n_entries=5, random_state=0, progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (500, 500) and heard == sorted(set(heard)) and len(heard) <= 101


def test_rows_that_do_not_determine_a_column_give_nan(rng):
    from colonnade.methods._streaming import _Rows

    U = np.linalg.qr(rng.standard_normal((20, 3)))[0]
    few, enough = _Rows(U[:2]), _Rows(U[:6])
    Z = rng.standard_normal((4, 3))
    np.testing.assert_allclose(enough.solve(Z @ U[:6].T), Z, rtol=1e-9)
    found = few.solve(Z @ U[:2].T)
    assert found.shape == (4, 3) and np.isnan(found).all()
