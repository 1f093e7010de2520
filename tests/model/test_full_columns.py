"""Full columns: those that are hidden to test predictions, and outliers in them."""

from dataclasses import replace

import numpy as np
import pytest

import colonnade as co
from colonnade.model.full_columns.hidden_columns import DRAWS, hidden_in_turn, some_of_the_full

from problems import hide, low_rank


def heavy_tailed(rng, m=60, n=150, r=4):
    """Of low rank with noise in proportion; the sizes of the columns differ by orders of magnitude, as runtimes do."""
    L, R = low_rank(rng, m, n, r)
    return (L @ R + 0.3 * rng.standard_normal((m, n))) * np.exp(1.5 * rng.standard_normal(n))


def hidden_error(filled, M, seen):
    return np.linalg.norm((filled - M)[~seen]) / np.linalg.norm(M[~seen])


def test_every_hidden_column_is_apart_from_the_others_and_keeps_as_many_entries_as_drawn(rng):
    A, counts = rng.standard_normal((30, 23)), np.array([3, 7])
    folds = list(hidden_in_turn(A, None, counts, 5, 23, rng))
    assert sum(fold.truth.shape[1] for fold in folds) == DRAWS * 23
    for fold in folds:
        together = np.column_stack([fold.others, fold.truth[:, : fold.truth.shape[1] // DRAWS]])
        np.testing.assert_array_equal(np.sort(together[0]), np.sort(A[0]))
        assert np.isin(fold.seen.n_observed, counts).all()
        np.testing.assert_array_equal(fold.seen.values, fold.truth[fold.seen.rows, fold.seen.entry_columns])


def test_some_of_the_full_are_rows_of_full_columns(rng, monkeypatch):
    monkeypatch.setattr("colonnade.model.full_columns.hidden_columns.FULL_CELLS", 60)
    M = rng.standard_normal((40, 12))
    known, seen = hide(rng, M, 8, 5)
    rows, A, _ = some_of_the_full(co.Observations.from_dense(known), 6)
    assert A.shape == (10, 6) and rows.size == 10
    full = M[np.ix_(rows, np.flatnonzero(seen.all(axis=0)))]
    assert all((full == A[:, [k]]).all(axis=0).any() for k in range(6))


def test_few_full_columns_and_offsets_of_columns(rng):
    """Nothing but row means and a column's own offset: no direction of 14 noisy columns may be preferred to that."""
    M = rng.standard_normal((300, 1)) + rng.standard_normal(60) + rng.standard_normal((300, 60))
    known, seen = hide(rng, M, 14, 20)
    center = M[:, seen.all(axis=0)].mean(axis=1, keepdims=True)
    plain = center + np.nanmean(known - center, axis=0)
    assert hidden_error(co.complete(known).to_dense(), M, seen) < 1.03 * hidden_error(plain, M, seen)


@pytest.mark.parametrize("size", [300.0, 1e4, 1e12])
@pytest.mark.slow
def test_a_typo_in_a_full_column_teaches_nothing(rng, size):
    L, R = low_rank(rng, 60, 90, 3)
    M = L @ R + 0.1 * rng.standard_normal((60, 90))
    known, seen = hide(rng, M, 30, 12)
    column = np.flatnonzero(seen.all(axis=0))[4]
    spoiled = known.copy()
    spoiled[7, column] = -size
    filled = co.complete(spoiled).to_dense()
    assert filled[7, column] == -size
    known[7, column] = np.nan
    np.testing.assert_array_equal(filled[~seen], co.complete(known).to_dense()[~seen])
    settings = {"rank": 3, "center": False, "shrinkage": 0, "refine": 0}  # the paper's method learns from all there is
    space = co.fit_column_space(co.Observations.from_dense(spoiled), rank=3)
    np.testing.assert_allclose(co.complete(spoiled, **settings).basis, space.basis)


def test_exact_data_keep_all_full_columns_however_unlike_an_entry_is(rng):
    """As many full columns as directions: without the one with the large entry a direction would be missed."""
    L, R = low_rank(rng, 40, 60, 3)
    L[5, 0] = 1e4
    R[0, 1:] = 0
    R[0, [1, 40]] = 1.0, 1e-6
    M = L @ R
    known = np.where(rng.random(M.shape) < 0.4, M, np.nan)
    known[:, :3], known[5] = M[:, :3], M[5]
    filled = co.complete(known).to_dense()
    assert np.linalg.norm(filled - M) < 1e-12 * np.linalg.norm(M)


@pytest.mark.slow
def test_the_only_full_column_teaches_whatever_is_in_it(rng):
    x = rng.standard_normal(30)
    M = np.outer(x, rng.standard_normal(20)) + 0.1 * rng.standard_normal((30, 20))
    known = np.where(rng.random(M.shape) < 0.3, M, np.nan)
    known[:, 0] = M[:, 0]
    known[3, 0] = 1e6
    completion = co.complete(known)
    assert np.isfinite(completion.to_dense()).all() and "suspicious values" in completion.choices


def test_drawn_columns_keep_their_scales_without_the_wild_one(rng):
    from colonnade.model.full_columns.outlier_screening import without_outliers

    M = rng.standard_normal((30, 40))
    o = co.observe(M, n_full_columns=10, n_entries=8, random_state=rng)
    at = o.indptr[o.full_columns[2]] + 4
    wild = replace(o, values=np.where(np.arange(o.values.size) == at, 1e5, o.values))
    cleaned = without_outliers(wild)
    assert without_outliers(o) is None
    np.testing.assert_array_equal(cleaned.full_columns, np.delete(o.full_columns, 2))
    np.testing.assert_array_equal(cleaned.full_scales, np.delete(o.full_scales, 2))
    assert cleaned.n_observed[o.full_columns[2]] == 29 and cleaned.values.max() < 100


def test_hidden_columns_keep_their_weights(rng):
    """All weights times a number are the same weights."""
    M = heavy_tailed(rng)
    known, _ = hide(rng, M, 40, 10)
    weights = np.exp(0.3 * rng.standard_normal(M.shape))
    units = 1.0, 100.0, 1e-4
    found = [co.complete(co.Observations.from_dense(known, weights=w * weights), refine=0) for w in units]
    for completion in found:
        assert completion.noise_variance == pytest.approx(found[0].noise_variance, rel=1e-6)
        np.testing.assert_allclose(completion.to_dense(), found[0].to_dense(), rtol=1e-6, atol=1e-6 * abs(M).max())


@pytest.mark.slow
def test_a_large_column_does_not_hide_the_typo_of_a_full_one(rng):
    L, R = low_rank(rng, 60, 90, 3)
    M = L @ R + 0.1 * rng.standard_normal((60, 90))
    known, seen = hide(rng, M, 30, 25)
    full, partial = np.flatnonzero(seen.all(axis=0)), np.flatnonzero(~seen.all(axis=0))
    known[:, partial[0]] *= 1e6
    others = ~seen
    others[:, partial[0]] = False
    before = hidden_error(co.complete(known).to_dense(), M, ~others)
    known[7, full[2]] = 1e4
    completion = co.complete(known)
    assert hidden_error(completion.to_dense(), M, ~others) < 1.2 * before
    alone = known.copy()
    alone[:, partial[0]] = np.nan
    said = co.complete(alone).choices["suspicious values"]
    assert f"row 7 of column {full[2]} is 10000" in said and "nothing was learned from it" in said


def test_columns_are_not_dropped_until_none_that_teaches_is_left(rng):
    """One of two full columns is zero: the other one teaches, however unlike one of its entries is."""
    x = rng.standard_normal(30)
    x[4] = 40.0
    M = np.outer(x, np.append([0.0, 1.0], rng.standard_normal(18))) + 0.05 * rng.standard_normal((30, 20))
    M[:, 0] = 0
    known = np.where(rng.random(M.shape) < 0.4, M, np.nan)
    known[:, :2], known[4] = M[:, :2], np.nan
    known[4, :2] = M[4, :2]
    assert co.complete(known).rank >= 1


@pytest.mark.slow
def test_a_typo_does_not_widen_the_means(rng):
    L, R = low_rank(rng, 60, 150, 3)
    M = L @ R + 0.1 * rng.standard_normal((60, 150))
    known, seen = hide(rng, M, 40, 12)
    column = np.flatnonzero(seen.all(axis=0))[4]
    partial = np.flatnonzero(~seen.all(axis=0))
    widths = []
    for typo in (np.nan, 300.0, 1e4):
        spoiled = known.copy()
        spoiled[7, column] = typo
        _, low, high = co.complete(spoiled).column_means()
        widths.append(np.median((high - low)[partial]))
    assert max(widths) < 1.5 * min(widths)


def test_full_columns_of_zeros_are_told(rng):
    known = np.where(rng.random((20, 8)) < 0.5, rng.standard_normal((20, 8)), np.nan)
    known[:, :2] = 0
    assert "do not explain" in co.complete(known).choices["fit"]
    assert "fit exactly" in co.complete(np.where(np.isnan(known), np.nan, 0.0)).choices["fit"]
