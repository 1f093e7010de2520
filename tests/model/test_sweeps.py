"""Sweeps of the factor model: shared sums, block inverses, whitening, and the start from full columns."""

from dataclasses import replace

import numpy as np
import pytest

import colonnade as co
from colonnade._support.compiling import compiled
from colonnade.model.factor_model import Settings, student_weights
from colonnade.model.kernels.inverses import sweep, workspace
from colonnade.model.packed import unpacked
from colonnade.model.starts import first_factors
from colonnade.model.sweeps import Sweeps, loadings_prior
from colonnade.model.table import _medians, scaled_table


@compiled()
def compiled_sweep(A, panels):
    return sweep(A, panels)


def inverse_and_solution(S, h):
    """Minus the lower triangle of the inverse, the solution, and log det."""
    r = h.size
    A, panels = workspace(r)
    A[:r, :r], A[r, :r] = S, h
    log_determinant = compiled_sweep(A, panels)
    return A[:r, :r], A[r, :r], log_determinant


def mixed(rng, m=30, n=40, n_full=12):
    """Full columns, nearly full ones, sparse ones, an empty one, and a full row."""
    truth = rng.standard_normal((m, 3)) @ rng.standard_normal((3, n)) + 0.2 * rng.standard_normal((m, n))
    share = np.where(np.arange(n) < n_full + 10, 0.9, 0.3)
    seen = rng.random((m, n)) < share
    seen[:, :n_full], seen[4], seen[:, -1] = True, True, False
    return co.Observations.from_dense(np.where(seen, truth, np.nan))


@pytest.mark.parametrize("r", [1, 2, 3, 4, 5, 7, 8, 9, 16, 25, 50])
def test_a_matrix_is_inverted_and_a_system_solved(rng, r):
    root, h = rng.standard_normal((r, 2 * r)), rng.standard_normal(r)
    S = root @ root.T + np.eye(r)
    minus, solution, log_determinant = inverse_and_solution(S, h)
    lower = np.tril(-minus)
    np.testing.assert_allclose((lower + np.tril(lower, -1).T) @ S, np.eye(r), atol=1e-12)
    np.testing.assert_allclose(S @ solution, h, atol=1e-12 * np.linalg.cond(S))
    assert log_determinant == pytest.approx(np.linalg.slogdet(S)[1])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("row_noise", [False, True])
@pytest.mark.parametrize("whiten", [False, True])
def test_shared_sums_change_nothing_but_rounding(rng, turned, row_noise, whiten):
    o = mixed(rng)
    table = scaled_table(o.transposed() if turned else o)
    summands = table.row_summands if turned else table.column_summands
    assert summands.is_rest.any() and summands.begins[-1] < o.values.size
    plain = table.with_weights(np.ones(o.values.size))
    assert plain.column_summands.full.size == 0 and not plain.row_summands.is_rest.any()
    settings = Settings(5, row_noise=row_noise, whiten=whiten)
    one, other = (Sweeps(t, settings) for t in (table, plain))
    for sweeps in (one, other):
        for _ in range(4):
            sweeps.sweep()
    for name in ("U", "Z", "row_covariance", "column_covariance", "squares", "row_logs", "column_logs"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8, atol=1e-9, err_msg=name)


def test_the_bound_never_falls_with_full_columns(rng):
    sweeps = Sweeps(scaled_table(mixed(rng)), Settings(5))
    bounds = []
    for _ in range(40):
        sweeps.sweep()
        bounds.append(sweeps.bound())
    assert (np.diff(bounds) > -1e-8 * np.abs(bounds[-1])).all()


def whitened(Z, S, U, T, seen):
    """Coefficients of mean 0 and second moment I, and loadings with the same products."""
    r = Z.shape[1]
    E = (Z[seen].T @ Z[seen] + S[seen].sum(axis=0)) / seen.sum()
    L = np.linalg.cholesky(E)
    inverse, turn = np.linalg.inv(L), np.eye(r + 1)
    turn[:r, :r] = L
    return Z @ inverse.T, inverse @ S @ inverse.T, U @ turn, turn.T @ T @ turn


def whitened_sweep(M, U, T, v, tail):
    """One sweep in dense NumPy with explicit whitening; returns the new U and T."""
    (m, n), q, seen = M.shape, U.shape[1], ~np.isnan(M)
    r, second = q - 1, np.einsum("ia,ib->iab", U, U) + T
    S = np.array([np.linalg.inv(np.eye(r) + second[seen[:, j], :r, :r].sum(axis=0) / v) for j in range(n)])
    X = np.nan_to_num(M)
    H = (X.T @ U[:, :r] - seen.T @ second[:, :r, r]) / v
    Z = np.einsum("jab,jb->ja", S, H)
    some = seen.any(axis=0)
    Z, S, U, T = whitened(Z - Z[some].mean(axis=0), S, U, T, some)
    mu = U[:, :r].mean(axis=0)
    second = (np.einsum("ia,ib->ab", U, U) + T.sum(axis=0))[:r, :r] / m
    prior = np.zeros((q, q))
    prior[:r, :r] = np.linalg.inv((second - np.outer(mu, mu) + tail * np.eye(r) / r) / (1 + tail))
    prior[r, r] = 0.1
    Z1, S1 = np.column_stack([Z, np.ones(n)]), np.zeros((n, q, q))
    S1[:, :r, :r] = S
    Q = np.einsum("ja,jb->jab", Z1, Z1) + S1
    T = np.array([np.linalg.inv(prior + Q[seen[i]].sum(axis=0) / v) for i in range(m)])
    return np.einsum("iab,ib->ia", T, prior @ np.append(mu, 0) + X @ Z1 / v), T


@pytest.mark.parametrize("skewed", [0.0, 100.0])
def test_whitening_is_a_change_of_coordinates(rng, skewed, monkeypatch):
    """After each sweep U U' and U T U' are those of explicit whitening, whichever coordinates the sweeps keep."""
    monkeypatch.setattr("colonnade.model.sweeps._SKEWED", skewed)
    o = mixed(rng)
    table = scaled_table(o)
    M = np.full(o.shape, np.nan)
    M[table.by_column.others, table.by_column.groups()] = table.by_column.values
    sweeps = Sweeps(table, Settings(4, whiten=True))
    U, T = sweeps.U.copy(), np.array([unpacked(t, 5) for t in sweeps.row_covariance])
    for _ in range(5):
        v = float(sweeps.noise[0])
        sweeps.sweep()
        U, T = whitened_sweep(M, U, T, v, sweeps.settings.tail)
    found = sweeps._whitened()
    np.testing.assert_allclose(found.U[:, :4] @ found.U[:, :4].T, U[:, :4] @ U[:, :4].T, atol=1e-8)
    np.testing.assert_allclose(found.U[:, 4], U[:, 4], atol=1e-8)
    traces = [np.trace(unpacked(t, 5)) for t in found.row_covariance]
    np.testing.assert_allclose(traces, np.trace(T, axis1=1, axis2=2), rtol=1e-7)


def test_full_columns_give_the_start(rng):
    m, d = 30, 20
    full = rng.standard_normal((m, 3)) @ rng.standard_normal((3, d)) + 5.0
    M = np.column_stack([full, np.where(rng.random((m, 9)) < 0.3, rng.standard_normal((m, 9)), np.nan)])
    table = scaled_table(co.Observations.from_dense(M))
    U, Z, noise = first_factors(table, 3, 0)
    X = (full - table.shift[:, None]) / table.unit[:, None]
    np.testing.assert_allclose(U @ Z[:d].T, X, atol=1e-10)
    assert noise == 1e-8
    assert (Z[d:, :3] == 0).all() and (Z[:, 3] == 1).all()


def test_medians_of_rows_are_those_of_numpy(rng):
    groups = [
        rng.integers(-3, 4, size).astype(float) * rng.choice([1.0, 1e300]) for size in (1, 2, 3, 4, 7, 50, 0, 101)
    ]
    begins, values = np.cumsum([0, *map(len, groups)]), np.concatenate(groups)
    before = values.copy()
    assert _medians(begins, values).tolist() == [float(np.median(g)) if g.size else 0.0 for g in groups]
    assert (values == before).all()


def test_the_prior_of_loadings_has_an_inverse_beside_far_larger_ones(rng):
    """Rounding of one row of another size hides the even spectrum, which makes the covariance singular."""
    U = rng.standard_normal((20, 5))
    U[0] = 1e16
    moments = np.einsum("ka,kb->kab", U, U)[:, *np.tril_indices(5)]
    precision, _, _ = loadings_prior(U, moments, 0.01)
    values = np.linalg.eigvalsh(precision[:4, :4])
    assert values[0] > -1e-9 and 0 < values[-1] <= 4 * 1.01 / 0.01 * (1 + 1e-9)


def test_weights_of_student_noise_are_positive_where_rounding_makes_variances_negative(rng):
    table = scaled_table(co.Observations.from_dense(rng.standard_normal((9, 12))))
    model = Sweeps(table, Settings(2, degrees=4.0)).run(3, 0.0)
    model = replace(model, column_covariance=-1e-12 * np.ones_like(model.column_covariance))
    model = replace(model, row_covariance=np.zeros_like(model.row_covariance))
    tau, squares = student_weights(table, np.full(108, 1e20), model)
    assert (squares >= 0).all() and (tau > 0).all()
    # Without an error, too: then only the variance is left.
    exact = np.sum(model.U[table.by_column.others] * model.Z[table.by_column.groups()], axis=1)
    table.by_column.values[:] = exact
    assert (student_weights(table, np.full(108, 1e20), model)[0] > 0).all()
