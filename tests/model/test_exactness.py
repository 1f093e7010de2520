"""Exact low-rank data are recovered to rounding, for every seed; errors are computed from factors."""

import numpy as np
import pytest

import colonnade as co

from problems import low_rank, relative_error, source_of

EVERY_SEED = range(100)


@pytest.mark.parametrize("r", [1, 5, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n, seeds", [(200, EVERY_SEED), pytest.param(2000, range(10), marks=pytest.mark.slow)])
def test_gaussian_matrices(n, seeds, r):
    errors = []
    for seed in seeds:
        L, R = low_rank(np.random.default_rng(seed), n, n, r)
        completion = co.algorithm1(source_of(L, R), rank=r, n_full_columns=2 * r, n_entries=3 * r, random_state=seed)
        assert (completion.status <= co.Status.SOLVED).all(), f"seed {seed}"
        errors.append(relative_error(completion, L, R))
    assert np.max(errors) < 1e-12, f"seed {int(np.argmax(errors))}: {np.max(errors):.1e}"


def coherent(rng):
    """A few rows carry most of the matrix."""
    L, R = low_rank(rng, 200, 300, 5)
    L[:8] *= 100
    return L, R, {}


def spread(rng):
    """Norms of the columns from 1e-6 to 1e6."""
    L, R = low_rank(rng, 200, 300, 5)
    return L, R * 10 ** rng.uniform(-6, 6, 300), {}


def duplicated(rng):
    """Every column stands three times."""
    L, R = low_rank(rng, 200, 100, 5)
    return L, np.hstack([R, R, R]), {"n_full_columns": 20}


def overrated(rng):
    """The rank that is asked for is above the true one."""
    L, R = low_rank(rng, 200, 300, 3)
    return L, R, {"rank": 8, "n_full_columns": 16, "n_entries": 24}


def skewed(rng):
    """Some columns are a thousand times as likely to be drawn as others."""
    L, R = low_rank(rng, 200, 300, 5)
    p = 10 ** rng.uniform(-3, 0, 300)
    return L, R, {"probabilities": p / p.sum(), "n_full_columns": 20}


@pytest.mark.parametrize("make", [coherent, spread, duplicated, overrated, skewed])
def test_harder_matrices_of_100_seeds(make):
    errors = []
    for seed in EVERY_SEED:
        rng = np.random.default_rng(seed)
        L, R, settings = make(rng)
        settings = {"rank": 5, "n_full_columns": 12, "n_entries": 20, **settings}
        completion = co.algorithm1(source_of(L, R), **settings, random_state=rng)
        assert completion.rank == L.shape[1], f"seed {seed}"
        assert (completion.status <= co.Status.SOLVED).all(), f"seed {seed}"
        errors.append(relative_error(completion, L, R))
    assert np.max(errors) < 1e-12, f"seed {int(np.argmax(errors))}: {np.max(errors):.1e}"


def test_small_columns_are_as_exact_as_large_ones():
    for seed in EVERY_SEED:
        rng = np.random.default_rng(seed)
        L, R, _ = spread(rng)
        M = L @ R
        completion = co.algorithm1(M, rank=5, n_full_columns=12, n_entries=20, random_state=seed)
        error = np.linalg.norm(completion.to_dense() - M, axis=0) / np.linalg.norm(M, axis=0)
        assert error.max() < 1e-11, f"seed {seed}"


def test_single_precision():
    for seed in EVERY_SEED:
        L, R = low_rank(np.random.default_rng(seed), 200, 200, 5)
        M = (L @ R).astype(np.float32)
        completion = co.algorithm1(M, rank=5, n_full_columns=10, n_entries=15, random_state=seed)
        dense = completion.to_dense()
        assert dense.dtype == np.float32
        assert np.linalg.norm(dense - M) / np.linalg.norm(M) < 1e-4, f"seed {seed}"


def test_complete_with_no_settings_is_exact_on_exact_data():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        L, R = low_rank(rng, 120, 150, 6)
        M = L @ R
        known = np.where(rng.random(M.shape) < 0.3, M, np.nan)
        known[:, :12] = M[:, :12]
        assert relative_error(co.complete(known), L, R) < 1e-12
