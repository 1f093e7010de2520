"""Entries left out in closed form, and the factors of rows and columns that they tell."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import colonnade as co
from colonnade.data.observations import Observations
from colonnade.model.factor_model import FactorModel, Settings
from colonnade.model.leverage import leave_out
from colonnade.model.table import rescaled_table
from colonnade.uncertainty.openness import Openness
from colonnade.uncertainty.parts import Parts

from problems import low_rank


@pytest.mark.parametrize("weighted", [False, True])
def test_a_left_out_entry_is_that_of_the_column_solved_without_it(rng, weighted):
    """With loadings that are known, residual / (1 - h) and the deviation are those of a column without the entry."""
    m, r = 12, 3
    packed = (m, (r + 1) * (r + 2) // 2)
    sides = rng.standard_normal(m), rng.uniform(1, 3, m), rng.standard_normal((m, r + 1)), np.zeros(packed)
    noise = rng.uniform(0.1, 0.5, m)
    f = FactorModel(*sides, np.zeros((0, r + 1)), np.zeros((0, 6)), noise, noise, Settings(r))
    x = rng.standard_normal((m, 1))
    w = rng.uniform(0.5, 2, (m, 1)) if weighted else None
    o = Observations.from_dense(x, weights=w)

    def solved(o):
        Z, covariance = f.solve(rescaled_table(o, f.shift, f.unit))
        return replace(f, Z=Z, column_covariance=covariance)

    rows, column = np.arange(m), np.zeros(m, np.int64)
    found = leave_out(solved(o), rows, column, x[:, 0], None if w is None else w[:, 0])
    assert (found.by_row == 0).all() and (found.by_column > 0).all()
    for i in range(m):
        model = solved(o.without(np.array([i])))
        at = np.array([i]), column[:1]
        error = x[i, 0] - model.predict(*at)[0]
        assert found.residuals[i] / (1 - found.by_column[i]) == pytest.approx(error, rel=1e-9)
        variance = model.deviations(*at, with_noise=False)[0] ** 2 + f.unit[i] ** 2 * noise[i] / (
            w[i, 0] if weighted else 1
        )
        assert found.deviations[i] == pytest.approx(np.sqrt(variance), rel=1e-9)


def covered(completion, truth, mask, level=0.9):
    i, j = np.nonzero(mask)
    low, high = completion.interval(i, j, level=level)
    return (low <= truth[i, j]) & (truth[i, j] <= high), j, high - low


@pytest.mark.slow
def test_every_tenth_and_row_holds_where_rows_and_columns_differ(rng):
    L, R = low_rank(rng, 80, 160, 3)
    noise = rng.lognormal(-1, 0.6, (80, 1)) * rng.lognormal(0, 0.6, 160)
    X = L @ R + noise * rng.standard_normal((80, 160))
    seen = rng.random(X.shape) < 0.4
    completion = co.complete(np.where(seen, X, np.nan), orientation="columns")
    within, _, width = covered(completion, X, ~seen)
    assert abs(within.mean() - 0.9) < 0.04
    tenths = [part.mean() for part in np.array_split(within[np.argsort(width)], 10)]
    assert min(tenths) > 0.82 and max(tenths) < 0.98  # About 770 entries each: three standard errors from 85 and 95 %.
    rows = np.nonzero(~seen)[0]
    shares = np.bincount(rows, within) / np.bincount(rows)
    assert np.mean((shares >= 0.8) & (shares <= 0.98)) > 0.85


@pytest.mark.slow
def test_rows_with_hardly_any_entry_hold_beside_others_that_are_well_known():
    """Errors in well-known rows are small; in rows with 0 to 2 entries 70 % held where that made them narrower."""
    held = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = np.matmul(*low_rank(rng, 60, 40, 3)) + 0.1 * rng.standard_normal((60, 40))
        seen = rng.random(X.shape) < np.where(np.arange(60) < 20, 0.03, 0.5)[:, None]
        completion = co.complete(np.where(seen, X, np.nan), rank=10, orientation="rows")
        held.append(covered(completion, X, ~seen & (seen.sum(axis=1, keepdims=True) < 3))[0])
    assert 0.82 < np.concatenate(held).mean() < 0.97


def test_only_what_entries_tell_is_scaled():
    """Variances are V0 where nothing is known, V a where all is, and precisions add up in between."""
    parts, spread, noise = Parts(0.5, 2.0), 1.3, 0.2
    share = np.linspace(0, 1, 11)
    found = Openness(share, np.full(11, noise), np.full(11, spread))
    V = noise + share * (1 - noise)
    for factor in (0.2, 0.7, 3.0):
        plain = factor**2 * (0.5 * noise + 2.0 * (V - noise))
        told = 1 / (1 / spread + (1 / V - 1) * V / plain)
        wider = found.widening(np.full(11, factor), parts)
        np.testing.assert_allclose(wider**2 * plain, np.maximum(told, plain), rtol=1e-12)
    assert (found.widening(np.full(11, 3.0), parts) == 1).all()  # A line that is worse than predicted stays so.


def odd_columns(rng):
    """A table of rank 3 with 12 columns that are noise of the same size, and which these are."""
    L, R = low_rank(rng, 80, 120, 3)
    X = L @ R + 0.2 * rng.standard_normal((80, 120)) * np.std(L @ R)
    X[:, :12] = np.std(X) * rng.standard_normal((80, 12))
    return X, np.arange(120) < 12


def real_odd_columns(rng):
    """Measurements of 200 tumours, standardised; those of the 15 that are farthest from the mean are shuffled."""
    X = load_breast_cancer().data[rng.permutation(569)[:200]].T
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    X = X[:, np.argsort(-X.std(axis=0))]
    for j in range(15):
        X[:, j] = rng.permutation(X[:, j])
    return X, np.arange(200) < 15


@pytest.mark.parametrize("make, least", [(odd_columns, 0.75), (real_odd_columns, 0.65)])
@pytest.mark.slow
def test_columns_unlike_all_others_have_wide_intervals_and_a_verdict(rng, make, least):
    """Factors that 15 entries tell are not quite those of the column; with one factor for all it is about a half."""
    held, wider, verdicts = [], [], []
    for _ in range(4):  # A draw has 12 or 15 such columns, which alone would tell little.
        X, odd = make(rng)
        seen = rng.random(X.shape) < 0.5
        completion = co.complete(np.where(seen, X, np.nan), orientation="columns")
        within, j, width = covered(completion, X, ~seen)
        held.append(within[odd[j]])
        wider.append(np.median(width[odd[j]]) / np.median(width[~odd[j]]))
        verdicts.append(completion.certificates().verdict[odd])
    verdicts = np.concatenate(verdicts)
    assert np.concatenate(held).mean() > least and min(wider) > 1.5
    assert np.mean(verdicts == "recovered") < 0.1 and np.mean(verdicts == "poor fit") > 0.6


@pytest.mark.slow
def test_constant_rows_are_predicted_to_the_last_digit(rng):
    X = np.exp(rng.standard_normal((30, 1)) + rng.standard_normal((30, 40)))
    X[3], X[7] = 0.0, 0.1
    seen = rng.random(X.shape) < 0.6
    for side in ("columns", "rows"):
        M = np.where(seen, X, np.nan)
        completion = co.complete(M if side == "columns" else M.T, orientation=side)
        filled = completion.to_dense() if side == "columns" else completion.to_dense().T
        assert (filled[3] == 0).all()
        places = [np.full(40, 3), np.arange(40)]
        low, high = completion.interval(*(places if side == "columns" else places[::-1]))
        assert (low <= 0).all() and (high >= 0).all()
