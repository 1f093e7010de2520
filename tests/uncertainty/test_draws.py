"""Draws of filled tables: spread, correlation, calibration, seeds, bounds, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import colonnade as co
from colonnade.model.packed import unpacked
from colonnade.model.posterior import deviations
from colonnade.uncertainty.draws import NORMAL, column_deviations, square_roots
from colonnade.uncertainty.parts import EQUAL_PARTS

from problems import hide, low_rank


def table(rng, m=30, n=40, noise=0.3):
    L, R = low_rank(rng, m, n, 3)
    return L @ R + noise * rng.standard_normal((m, n))


def completions(rng):
    """Of the same kind of table: by full columns, and by the factor model in both orientations."""
    M = table(rng)
    gappy = np.where(rng.random(M.shape) < 0.5, M, np.nan)
    yield co.complete(hide(rng, M, 15, 12)[0])
    for side in ("columns", "rows"):
        yield co.complete(gappy, method="factor model", orientation=side)


@pytest.mark.slow
def test_draws_keep_what_was_observed_and_spread_as_the_intervals_do(rng):
    for completion in completions(rng):
        draws = completion.sample(2000, random_state=0)
        mask, filled = completion.filled_mask(), completion.to_dense()
        assert draws.shape == (2000, 30, 40)
        assert (draws[:, ~mask] == filled[~mask]).all()
        low, high = completion.interval(*np.nonzero(mask), level=0.9)
        ratio = draws[:, mask].std(axis=0) / ((high - low) / 2 / NORMAL)
        assert ratio.mean() == pytest.approx(1, abs=0.02) and np.abs(ratio - 1).max() < 0.25
        off = (draws[:, mask].mean(axis=0) - filled[mask]) / ((high - low) / 2 / NORMAL)
        assert np.abs(off).max() < 5.5 / np.sqrt(2000)


@pytest.mark.slow
def test_entries_of_a_column_and_of_a_row_are_correlated_as_the_model_says(rng):
    M = np.where(rng.random((20, 24)) < 0.3, table(rng, 20, 24), np.nan)
    for side in ("columns", "rows"):
        completion = co.complete(M, method="factor model", orientation=side)
        learned = completion.learned
        f, r = learned.model, learned.model.rank
        if learned.is_exact:
            continue
        filled = completion.filled_mask().T if learned.is_turned else completion.filled_mask()
        draws = completion.sample(20_000, random_state=1)
        draws = draws.transpose(0, 2, 1) if learned.is_turned else draws
        calibration = completion.accuracy.calibration
        everywhere = np.arange(20)[:, None], np.arange(24)
        low, high = calibration.ends_at(0.9, *everywhere)
        k = np.sqrt(calibration.parts.fit) * calibration.factors_at(*everywhere) * (high - low) / 2 / NORMAL
        k = k.T if learned.is_turned else k
        j = int(np.argmax(filled.sum(axis=0)))
        rows = np.flatnonzero(filled[:, j])
        S = unpacked(f.column_covariance[j], r)
        u = (f.unit * k[:, j])[rows, None] * f.U[rows, :r]
        found, told = np.cov(draws[:, rows, j].T), u @ S @ u.T
        off = ~np.eye(rows.size, dtype=bool)
        size = np.sqrt(np.outer(np.diag(found), np.diag(found)))
        assert (np.abs(found - told) / size)[off].max() < 0.04  # 5 standard errors of a correlation.
        i = int(np.argmax(filled.sum(axis=1)))
        columns = np.flatnonzero(filled[i])
        z, T = k[i][columns, None] * f.Z[columns], unpacked(f.row_covariance[i], r + 1)
        found, told = np.cov(draws[:, i, columns].T), f.unit[i] ** 2 * z @ T @ z.T
        off = ~np.eye(columns.size, dtype=bool)
        size = np.sqrt(np.outer(np.diag(found), np.diag(found)))
        assert (np.abs(found - told) / size)[off].max() < 0.04


@pytest.mark.slow
def test_drawn_columns_have_the_covariance_of_the_posterior(rng):
    """U A^-1 U' t + t I with A = U_O' U_O + Lambda, and the same variances as `deviations`."""
    completion = co.complete(hide(rng, table(rng), 15, 8)[0], center=True)
    assert completion.noise_variance > 0
    j, t, U = int(completion.observations.partial_columns[0]), completion.noise_variance, completion.basis
    o, rows = completion.used, np.arange(30)
    seen = U[o.rows[o.indptr[j] : o.indptr[j + 1]]]
    told = t * U @ np.linalg.inv(seen.T @ seen + np.diag(completion.penalty)) @ U.T + t * np.eye(30)
    drawn = column_deviations(
        completion.space, o, t, 1.0, 40_000, rows, np.array([j]), np.random.default_rng(0), EQUAL_PARTS
    )
    size = np.sqrt(np.outer(np.diag(told), np.diag(told)))
    assert (np.abs(np.cov(drawn[:, :, 0].T) - told) / size).max() < 0.05
    np.testing.assert_allclose(np.sqrt(np.diag(told)), deviations(completion, rows, np.full(30, j)), rtol=1e-8)


@pytest.mark.slow
def test_the_truth_lies_among_the_draws(rng):
    M = table(rng, 60, 80)
    for known in (hide(rng, M, 25, 20)[0], np.where(rng.random(M.shape) < 0.5, M, np.nan)):
        draws, mask = co.complete(known).sample(400, random_state=0), np.isnan(known)
        below = (draws[:, mask] < M[mask]).mean(axis=0)
        assert 0.84 < np.mean((below > 0.05) & (below < 0.95)) < 0.96


def test_a_part_has_its_shape_and_names_are_understood(rng):
    M = np.where(rng.random((12, 9)) < 0.7, table(rng, 12, 9), np.nan)
    o = co.Observations.from_dense(M, row_names=[f"r{i}" for i in range(12)], column_names=list("abcdefghi"))
    completion = co.complete(o, method="factor model")
    part = completion.sample(5, rows=["r3", "r1"], columns="c", random_state=0)
    assert part.shape == (5, 2, 1)
    known = ~np.isnan(M[[3, 1], 2])
    assert (part[:, known, 0] == M[[3, 1], 2][known]).all()
    assert completion.sample(2, rows=[0]).shape == (2, 1, 9)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_the_type_of_the_data(rng):
    M = table(rng).astype(np.float32)
    for known in (hide(rng, M, 15, 12)[0], np.where(rng.random(M.shape) < 0.5, M, np.float32(np.nan))):
        completion = co.complete(known)
        one, other = (completion.sample(3, random_state=7) for _ in range(2))
        assert one.dtype == np.float32 and one.tobytes() == other.tobytes()
        assert one.tobytes() != completion.sample(3, random_state=8).tobytes()


def test_draws_stay_within_bounds(rng):
    M = np.clip(table(rng), -1, 1)
    for known in (hide(rng, M, 15, 12)[0], np.where(rng.random(M.shape) < 0.5, M, np.nan)):
        completion = co.complete(known, bounds=(-1, 1))
        draws = completion.sample(50, random_state=0)
        assert draws.min() >= -1 and draws.max() <= 1
        free = replace(completion, solution=replace(completion.solution, bounds=None)).sample(50, random_state=0)
        inside = completion.filled_mask() & (np.abs(completion.to_dense()) < 1)
        np.testing.assert_allclose(draws[:, inside], np.clip(free[:, inside], -1, 1), atol=1e-12)


def test_exact_data_have_no_spread(rng):
    M = table(rng, 60, 80, noise=0.0)
    for known in (hide(rng, M, 20, 12)[0], np.where(rng.random(M.shape) < 0.6, M, np.nan)):
        assert np.abs(co.complete(known).sample(20, random_state=0) - M).max() < 1e-8


def test_what_stays_nan_is_nan_in_every_draw(rng):
    M = np.where(rng.random((12, 14)) < 0.6, table(rng, 12, 14), np.nan)
    M[4] = np.nan
    draws = co.complete(M, orientation="columns").sample(4, random_state=0)
    assert np.isnan(draws[:, 4]).all() and np.isfinite(np.delete(draws, 4, axis=1)).all()


def test_a_table_without_gaps_is_every_draw(rng):
    M = table(rng, 6, 5)
    assert (co.complete(M).sample(2) == M).all()


@pytest.mark.filterwarnings("ignore:als did not converge")
@pytest.mark.slow
def test_methods_without_intervals_have_no_draws(rng):
    M = np.where(rng.random((30, 40)) < 0.6, table(rng), np.nan)
    with pytest.raises(ValueError, match="ALS has no intervals"):
        co.complete(M, method="als").sample(3)
    with pytest.raises(ValueError, match="n must be a whole number from 1"):
        co.complete(M).sample(0)


def test_infinite_intervals_are_no_basis_for_draws(rng):
    L, R = low_rank(rng, 10, 8, 2)
    M = L @ R
    M[2:, 5:] = np.nan
    completion = co.complete(M[:, 3:], rank=2, center=False, shrinkage=0, refine=0)  # Nothing can be left out.
    with pytest.raises(ValueError, match="intervals are infinite; measure more entries"):
        completion.sample(3)


def test_roots_of_covariances_that_rounding_has_spoiled():
    C = np.array([[[1.0, 1.0], [1.0, 1.0 - 1e-12]], [[2.0, 0.0], [0.0, 1.0]]])
    A = square_roots(C[:, *np.tril_indices(2)], 2)
    np.testing.assert_allclose(A @ A.transpose(0, 2, 1), C, atol=1e-11)
