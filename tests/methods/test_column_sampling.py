"""Methods that choose the full columns by what they hold: norms, leverages, residuals."""

import numpy as np
import pytest

from colonnade import Observations, Source, Status, algorithm1
from colonnade.methods import (
    active_columns,
    adaptive_column_sampling,
    column_probabilities,
    entrywise_subsampling,
    norm_sampling,
)
from colonnade.methods._reading import by_chance, distinct
from colonnade.methods.column_probabilities import probe_norms

from problems import low_rank


def noisy(rng, m=40, n=50, r=3):
    L, R = low_rank(rng, m, n, r)
    return (L @ R + 0.3 * rng.standard_normal((m, n))) * 10.0 ** rng.uniform(-1, 1, n)


def spiked(rng, m=60, n=80):
    """Rank 3: one direction is in four large columns only."""
    L, R = low_rank(rng, m, n, 3)
    R[2] = 0.0
    R[2, rng.choice(n, 4, replace=False)] = 50.0
    return L @ R


def product(answer):
    return answer.basis @ answer.coefficients


def best_within(C, M, r):
    """The best matrix of rank r whose columns lie in the span of C."""
    Q = np.linalg.qr(C)[0]
    P, S, Vt = np.linalg.svd(Q.T @ M, full_matrices=False)
    return Q @ (P[:, :r] * S[:r]) @ Vt[:r]


def test_probabilities_of_all_entries_are_those_of_the_matrix(rng):
    M = noisy(rng)
    p = column_probabilities(M, by="norm", n_entries=40, uniform_share=0.0, random_state=rng)
    np.testing.assert_allclose(p, (M**2).sum(axis=0) / (M**2).sum(), rtol=1e-12)
    p = column_probabilities(M, by="leverage", n_entries=40, rank=3, uniform_share=0.0, random_state=rng)
    np.testing.assert_allclose(p, (np.linalg.svd(M)[2][:3] ** 2).sum(axis=0) / 3, atol=1e-12)


@pytest.mark.parametrize("by", ["norm", "leverage"])
def test_probabilities_are_counted_and_positive(rng, by):
    M = noisy(rng)
    M[:, 7] = 0.0
    source = Source(M)
    p = column_probabilities(source, by=by, n_entries=5, rank=2 if by == "leverage" else None, random_state=rng)
    assert source.entries_read == 5 * 50 and p.shape == (50,) and abs(p.sum() - 1) < 1e-14
    np.testing.assert_allclose(p[7], 0.1 / 50)
    assert (p >= 0.1 / 50 * (1 - 1e-12)).all()


@pytest.mark.parametrize("by", ["norm", "leverage"])
def test_probabilities_help_algorithm1_where_few_columns_hold_a_direction(rng, seed, by):
    M = spiked(rng)
    rank = 3 if by == "leverage" else None
    p = column_probabilities(M, by=by, n_entries=20, rank=rank, random_state=rng)
    answer = algorithm1(M, rank=3, n_full_columns=50, n_entries=20, probabilities=p, random_state=seed)
    assert answer.rank == 3
    assert np.linalg.norm(answer.to_dense() - M) <= 1e-9 * np.linalg.norm(M)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_entries": 41}, "n_entries must be a whole number from 1 to 40"),
        ({"by": "residual"}, "by must be one of 'norm', 'leverage'"),
        ({"rank": 2}, "rank is for by='leverage'"),
        ({"by": "leverage", "rank": 6}, "rank must be a whole number from 1 to 5"),
        ({"by": "leverage"}, "rank must be a whole number .* got None"),
        ({"uniform_share": 1.5}, "uniform_share"),
    ],
)
def test_bad_arguments_of_the_probabilities(change, words):
    with pytest.raises((TypeError, ValueError), match=words):
        column_probabilities(np.ones((40, 50)), **{"n_entries": 5, **change})


def test_active_by_norm_is_the_formula(rng, seed):
    """C X with X = C+ M~, from the same draws."""
    M = noisy(rng)
    answer = active_columns(M, by="norm", rank=6, n_full_columns=6, n_entries=20, random_state=seed)
    same = np.random.default_rng(seed)
    p = probe_norms(Source(M), 10, same)[2]
    full = np.unique(same.choice(50, size=6, p=p))
    estimate = np.zeros(M.shape)
    for j in range(50):
        share = min(1.0, 10 * 50 * p[j] / 40)
        rows = by_chance(same, 40, share)
        estimate[rows, j] = M[rows, j] / share
    expected = M[:, full] @ (np.linalg.pinv(M[:, full]) @ estimate)
    expected[:, full] = M[:, full]
    np.testing.assert_array_equal(answer.observations.full_columns, full)
    np.testing.assert_allclose(product(answer), expected, atol=1e-10 * np.abs(M).max())


def test_active_by_leverage_is_nystrom_on_its_columns_and_rows(rng, seed):
    """With as many directions as distinct columns: C W+ R."""
    M = noisy(rng)
    answer = active_columns(M, by="leverage", rank=6, n_full_columns=6, n_entries=15, random_state=seed)
    rows, full = distinct(np.random.default_rng(seed), 40, 15), answer.observations.full_columns
    expected = M[:, full] @ np.linalg.pinv(M[np.ix_(rows, full)]) @ M[rows]
    np.testing.assert_allclose(product(answer), expected, atol=1e-8 * np.abs(M).max())
    assert answer.by_columns and np.isfinite(answer.interval([0], [int(answer.observations.partial_columns[0])])).all()


def test_active_by_residual_takes_as_many_columns_as_the_rank(rng, seed):
    M = spiked(rng)
    source = Source(M)
    answer = active_columns(source, by="residual", rank=5, n_full_columns=9, n_entries=14, random_state=seed)
    assert answer.rank == 3 and answer.observations.full_columns.size == 3
    assert source.entries_read == 3 * 60 + 77 * 14
    assert np.linalg.norm(answer.to_dense() - M) <= 1e-10 * np.linalg.norm(M)


def test_active_by_residual_draws_columns_that_differ(rng, seed):
    heard = []
    answer = active_columns(
        noisy(rng), by="residual", rank=4, n_full_columns=9, n_entries=14, random_state=seed,
        progress=lambda done, total: heard.append((done, total)),
    )  # fmt: skip
    assert answer.observations.full_columns.size == 9 and answer.rank == 4
    assert heard == [(t, 9) for t in range(1, 10)]


def test_norm_sampling_is_the_formula(rng, seed):
    M = noisy(rng)
    source = Source(M)
    answer = norm_sampling(source, rank=3, n_full_columns=12, random_state=seed)
    p = (M**2).sum(axis=0) / (M**2).sum()
    full, times = np.unique(np.random.default_rng(seed).choice(50, size=12, p=p), return_counts=True)
    np.testing.assert_array_equal(answer.observations.full_columns, full)
    np.testing.assert_allclose(answer.observations.full_scales, np.sqrt(times / (12 * p[full])))
    U = np.linalg.svd(M[:, full] * np.sqrt(times / (12 * p[full])))[0][:, :3]
    np.testing.assert_allclose(product(answer), U @ U.T @ M, atol=1e-11 * np.abs(M).max())
    assert source.entries_read == 2 * M.size + full.size * 40


@pytest.mark.parametrize("rounds", [1, 3, 12])
def test_adaptive_column_sampling_is_the_best_within_its_columns(rng, seed, rounds):
    M = noisy(rng)
    source, heard = Source(M), []
    answer = adaptive_column_sampling(
        source, rank=3, n_full_columns=12, n_rounds=rounds, random_state=seed,
        progress=lambda done, total: heard.append((done, total)),
    )  # fmt: skip
    full = answer.observations.full_columns
    np.testing.assert_allclose(product(answer), best_within(M[:, full], M, 3), atol=1e-11 * np.abs(M).max())
    assert source.entries_read == (rounds + 1) * M.size + full.size * 40
    assert full.size == 12 or rounds < 12
    assert heard[-1] == ((rounds + 1) * 50, (rounds + 1) * 50)


def test_adaptive_column_sampling_by_single_columns_finds_every_direction(rng, seed):
    """Each round draws a column that the others do not explain, so that as many as the rank are enough."""
    M = spiked(rng)
    answer = adaptive_column_sampling(M, rank=3, n_full_columns=7, n_rounds=7, random_state=seed)
    assert answer.observations.full_columns.size == 3
    assert np.linalg.norm(product(answer) - M) <= 1e-11 * np.linalg.norm(M)


def test_entrywise_subsampling_of_everything_is_the_truncated_decomposition(rng, seed):
    M = noisy(rng)
    P, S, Vt = np.linalg.svd(M, full_matrices=False)
    for r in (1, 3, 40):
        answer = entrywise_subsampling(M, rank=r, share=1.0, random_state=seed)
        np.testing.assert_allclose(product(answer), (P[:, :r] * S[:r]) @ Vt[:r], atol=1e-11 * S[0])
        np.testing.assert_allclose(answer.space.singular_values, S[:r], rtol=1e-9)


def test_entrywise_subsampling_is_the_decomposition_of_the_scaled_entries(rng, seed):
    M = noisy(rng)
    answer = entrywise_subsampling(M, rank=2, share=0.3, random_state=seed)
    places = by_chance(np.random.default_rng(seed), M.size, 0.3)
    S = np.zeros(M.shape)
    S[places % 40, places // 40] = M[places % 40, places // 40] / 0.3
    P, sizes, Vt = np.linalg.svd(S, full_matrices=False)
    np.testing.assert_allclose(product(answer), (P[:, :2] * sizes[:2]) @ Vt[:2], atol=1e-9 * sizes[0])


@pytest.mark.parametrize("share", [1e-9, 3e-4, 3e-3, 0.02])
def test_entrywise_subsampling_leaves_columns_open_of_which_nothing_is_seen(rng, seed, share):
    answer = entrywise_subsampling(noisy(rng), rank=5, share=share, random_state=seed)
    unseen = answer.observations.n_observed == 0
    np.testing.assert_array_equal(answer.status == Status.NO_OBSERVATION, unseen)
    np.testing.assert_array_equal(np.isnan(answer.to_dense()), np.broadcast_to(unseen, (40, 50)))


def test_residual_norms_on_the_rows_of_each_column(rng):
    """Of every column, the first and the last too, |x_O - P x_O| as least squares has it."""
    from colonnade.methods.active_columns import _residual_norms

    m, n, s = 40, 15, 9
    U = np.linalg.qr(rng.standard_normal((m, 3)))[0]
    rows = np.sort(np.array([rng.choice(m, s, replace=False) for _ in range(n)]), axis=1)
    x = rng.standard_normal((n, s))
    probes = Observations((m, n), np.arange(n + 1) * s, rows.ravel(), x.ravel(), None, np.zeros(0, np.int64))
    expected = [np.linalg.norm(y - U[at] @ np.linalg.lstsq(U[at], y)[0]) for at, y in zip(rows, x)]
    np.testing.assert_allclose(_residual_norms(U, probes, np.linalg.norm(x, axis=1)), expected, rtol=1e-10)
