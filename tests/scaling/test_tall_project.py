import tracemalloc

import numpy as np
import pytest

from colonnade import Observations, Source, observe
from colonnade.methods import tall_project, tall_project_errors

from problems import hide, low_rank


def factor_model(rng, m, n, r, noise=0.0):
    """Intercepts and factors; errors whose size differs by row and by column."""
    truth = rng.standard_normal(n) + rng.standard_normal((m, r)) @ (0.5 + rng.standard_normal((r, n)))
    sizes = rng.uniform(0.3, 1.5, (m, 1)) * rng.uniform(0.5, 1.5, (1, n))
    return truth, truth + noise * sizes * rng.standard_normal((m, n))


@pytest.mark.parametrize("settings", [{}, {"rank": 3}, {"reestimate": False}])
def test_exact_data_are_recovered(rng, settings):
    M, _ = factor_model(rng, 60, 50, 3)
    known, _ = hide(rng, M, 8, 15)
    answer = tall_project(known, **settings)
    assert answer.rank == 4 and answer.choices["rank"].startswith("3 factors and an intercept")
    assert np.abs(answer.to_dense() - M).max() < 1e-10 * np.abs(M).max()


def by_the_book(known, r, again):
    """Dense and with lstsq: factors of the demeaned full columns, a regression for every column, and again."""
    m, seen = known.shape[0], ~np.isnan(known)
    A = known[:, seen.all(axis=0)]
    for _ in range(1 + again):
        F = np.linalg.svd(A - A.mean(axis=0), full_matrices=False)[0][:, :r]
        X = np.column_stack([np.ones(m), F])
        fitted = np.column_stack([X @ np.linalg.lstsq(X[s], x[s], rcond=None)[0] for s, x in zip(seen.T, known.T)])
        A = np.where(seen, known, fitted)
    return A, fitted


@pytest.mark.parametrize("again", [False, True])
def test_is_the_book(rng, again):
    _, M = factor_model(rng, 60, 50, 2, noise=1.0)
    known, _ = hide(rng, M, 8, 15)
    answer = tall_project(known, rank=2, reestimate=again)
    filled, fitted = by_the_book(known, 2, again)
    np.testing.assert_allclose(answer.to_dense(), filled, atol=1e-8)
    np.testing.assert_allclose(answer.basis @ answer.coefficients, fitted, atol=1e-8)
    assert answer.by_columns == (not again)


def test_errors_are_the_formula(rng):
    """V0 / N_full + W0 / T_i with HC3 residuals, as loops over one entry."""
    _, M = factor_model(rng, 40, 30, 2, noise=1.0)
    known, seen = hide(rng, M, 9, 12)
    answer = tall_project(known, rank=2, reestimate=False)
    full = seen.all(axis=0)
    X, L = answer.basis, answer.coefficients[1:]
    e = known - X @ answer.coefficients
    t, i = 3, int(np.flatnonzero(~full)[1])

    def squared(t, j):
        O = seen[:, j]
        h = X[t] @ np.linalg.inv(X[O].T @ X[O]) @ X[t]
        h += L[:, j] @ np.linalg.inv(L[:, full] @ L[:, full].T) @ L[:, j] if full[j] else 0
        return (e[t, j] / (1 - h)) ** 2

    S = np.linalg.inv(L[:, full] @ L[:, full].T)
    V = sum(squared(t, k) * np.outer(L[:, k], L[:, k]) for k in np.flatnonzero(full))
    O = seen[:, i]
    Q = np.linalg.inv(X[O].T @ X[O])
    W = sum(squared(s, i) * np.outer(X[s], X[s]) for s in np.flatnonzero(O))
    expected = np.sqrt(L[:, i] @ S @ V @ S @ L[:, i] + X[t] @ Q @ W @ Q @ X[t])
    np.testing.assert_allclose(tall_project_errors(answer, t, i), expected, rtol=1e-10)
    noise = np.nansum(e[:, i] ** 2) / (12 - 3)
    anew = tall_project_errors(answer, [t], [i], measured_anew=True)
    np.testing.assert_allclose(anew, [np.sqrt(expected**2 + noise)], rtol=1e-10)


def coverage(m, n, n_full, s, r, again, n_draws=40):
    """Shares of unseen entries whose true low-rank part, and a new measurement, lie within 1.645 errors."""
    shares = []
    for draw in range(n_draws):
        rng = np.random.default_rng([draw, m])
        truth, M = factor_model(rng, m, n, r, noise=1.0)
        known, seen = hide(rng, M, n_full, s)
        answer = tall_project(known, rank=r, reestimate=again, random_state=0)
        t, i = np.nonzero(~seen)
        off = np.abs(answer.basis @ answer.coefficients - truth)[t, i]
        new = np.abs(answer.basis @ answer.coefficients - M)[t, i]
        errors = [tall_project_errors(answer, t, i, measured_anew=anew) for anew in (False, True)]
        shares.append([np.mean(off < 1.645 * errors[0]), np.mean(new < 1.645 * errors[1])])
    return np.mean(shares, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("sizes", [(100, 80, 30, 30, 2), (60, 80, 15, 40, 2)])
def test_error_bars_cover(sizes, again):
    """At 90 %: over draws of the factors, the noise and what is seen."""
    low_rank_part, new_measurement = coverage(*sizes, again)
    assert 0.88 < low_rank_part < 0.935
    assert 0.87 < new_measurement < 0.93


def test_errors_where_nothing_can_be_known(rng):
    _, M = factor_model(rng, 40, 30, 2, noise=1.0)
    known, _ = hide(rng, M, 9, 12)
    j = int(np.flatnonzero(np.isnan(known).any(axis=0))[0])
    known[np.flatnonzero(~np.isnan(known[:, j]))[3:], j] = np.nan
    errors = tall_project_errors(tall_project(known, rank=2), np.arange(40)[:, None], np.arange(30))
    assert np.isnan(errors[:, j]).all() and np.isfinite(np.delete(errors, j, axis=1)).all()
    few = tall_project(hide(rng, M, 2, 12)[0], rank=2)
    assert np.isnan(tall_project_errors(few, 0, np.arange(30))).all()
    with pytest.raises(ValueError, match="made by tall_project"):
        tall_project_errors(known, 0, 0)


def test_the_criterion_finds_the_rank(rng):
    _, M = factor_model(rng, 100, 90, 3, noise=0.5)
    assert tall_project(hide(rng, M, 40, 30)[0]).rank == 4


def test_entries_are_read_by_observe_alone(rng):
    M, _ = factor_model(rng, 50, 40, 2)
    source = Source(M)
    o = observe(source, n_full_columns=8, n_entries=20, random_state=rng)
    answer = tall_project(o, rank=2)
    assert source.entries_read == o.values.size and answer.observations is o
    assert np.abs(answer.to_dense() - M).max() < 1e-9 * np.abs(M).max()
    with pytest.raises(TypeError, match=r"co\.observe"):
        tall_project(source)


@pytest.mark.parametrize("scale", [2.0**900, 2.0**-900])
def test_scale_free(rng, scale):
    _, M = factor_model(rng, 40, 30, 2, noise=1.0)
    known, _ = hide(rng, M, 9, 12)
    plain, other = tall_project(known, rank=2), tall_project(known * scale, rank=2)
    np.testing.assert_allclose(other.to_dense() / scale, plain.to_dense(), rtol=1e-8)
    errors = [tall_project_errors(answer, [3, 4], [5, 6]) for answer in (plain, other)]
    np.testing.assert_allclose(errors[1] / scale, errors[0], rtol=1e-6)


def test_edges(rng):
    constant = np.full((5, 4), 3.0)
    constant[2, 3] = np.nan
    assert tall_project(constant).to_dense()[2, 3] == pytest.approx(3)
    assert tall_project(np.array([[2.0, 3.0]])).to_dense().tolist() == [[2, 3]]
    M, _ = factor_model(rng, 20, 12, 2)
    known, _ = hide(rng, M.astype(np.float32), 4, 9)
    answer = tall_project(known)
    assert answer.to_dense().dtype == np.float32 and np.abs(answer.to_dense() - M).max() < 1e-3
    with pytest.raises(ValueError, match="no column is known in all 3 rows"):
        tall_project(np.where(np.eye(3), 1.0, np.nan))
    with pytest.raises(ValueError, match="rank must be a whole number from 1 to 4"):
        tall_project(Observations.from_dense(known), rank=5)


def test_singular_values_have_the_unit_of_the_data(rng):
    L, R = low_rank(rng, 40, 20, 2)
    known = L @ R + 0.01 * rng.standard_normal((40, 20))
    known[10:, 12:] = np.nan
    one, other = (tall_project(scale * known, rank=2) for scale in (1.0, 1e6))
    np.testing.assert_allclose(other.space.singular_values, 1e6 * one.space.singular_values, rtol=1e-9)
    for space in (one.space, other.space):
        np.testing.assert_allclose(space.variances, space.singular_values**2 / 12, rtol=1e-9)
    fitted = one.to_dense()[:, :12]
    np.testing.assert_allclose(np.sum(one.space.singular_values**2), np.sum(fitted**2), rtol=1e-2)


def test_errors_of_a_whole_row_need_no_table_of_pairs_of_columns():
    """It grew with the square of the columns: 400 MB here."""
    rng = np.random.default_rng(0)
    known = np.where(
        rng.random((8, 8_000)) < 0.8, rng.standard_normal((8, 1)) + rng.standard_normal((8, 8_000)), np.nan
    )
    known[:, ::2] = rng.standard_normal((8, 4_000))
    completion = tall_project(known, rank=1)
    tracemalloc.start()
    try:
        errors = tall_project_errors(completion, 0, np.arange(8_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert errors.shape == (8_000,) and peak < 50e6
