"""The refinement: an EM step for the prior, and least squares for the rows."""

import numpy as np
import pytest

import colonnade as co
from colonnade.model.full_columns.learn import learn
from colonnade.model.full_columns.refine import _coefficients, _explained_by, _relearned, _row_moves
from colonnade.model.posterior import fitted_variances

from problems import hide, low_rank, relative_error

PLAIN = {"center": False, "shrinkage": 0}


def noisy(rng, m=200, n=220, r=4, d=12, s=20, noise=0.5, level=0.0):
    L, R = low_rank(rng, m, n, r)
    M = L @ R + level + noise * rng.standard_normal((m, n))
    return L @ R + level, *hide(rng, M, d, s)


def error(completion, M, seen):
    hidden = ~seen & ~seen.all(axis=0)
    return np.linalg.norm((completion.to_dense() - M)[hidden]) / np.linalg.norm(M[hidden])


def covariance(space):
    F = space.basis * np.sqrt(space.variances)
    return F @ F.T


def log_likelihood(space, noise, known):
    """Of the observed entries: columns are Gaussian about the center."""
    K = covariance(space) + noise * np.eye(known.shape[0])
    c = np.zeros(known.shape[0]) if space.center is None else space.center
    total = 0.0
    for x in known.T:
        O = np.flatnonzero(np.isfinite(x))
        e = x[O] - c[O]
        total -= 0.5 * (np.linalg.slogdet(K[np.ix_(O, O)])[1] + e @ np.linalg.solve(K[np.ix_(O, O)], e))
    return total


@pytest.mark.parametrize("center", [True, False])
def test_a_sweep_of_the_prior_is_a_step_of_em(rng, center):
    _, known, _ = noisy(rng, m=40, n=30, d=8, s=9, level=1.0)
    o = co.Observations.from_dense(known)
    space, t = co.fit_column_space(o, center=center), 0.3
    U, v = space.basis, space.variances
    c = space.center if center else np.zeros(40)
    means, spread = [], np.zeros((v.size, v.size))
    for x in known.T:
        O = np.flatnonzero(np.isfinite(x))
        precision = U[O].T @ U[O] / t + np.diag(1 / v)
        means.append(np.linalg.solve(precision, U[O].T @ (x[O] - c[O]) / t))
        spread += np.linalg.inv(precision)
    Z = np.array(means)
    mean = Z.mean(axis=0) if center else np.zeros(v.size)
    expected = ((Z - mean).T @ (Z - mean) + spread) / len(Z)
    after = _relearned(space, t, _coefficients(space, t, o), None)
    np.testing.assert_allclose(covariance(after), U @ expected @ U.T, atol=1e-9 * v[0])
    if center:
        np.testing.assert_allclose(after.center, c + U @ mean, atol=1e-9)
    np.testing.assert_allclose(after.basis.T @ after.basis, np.eye(after.rank), atol=1e-12)


def test_the_likelihood_of_the_observed_entries_never_falls(rng):
    _, known, _ = noisy(rng, m=40, n=60, d=8, s=9, level=2.0)
    o = co.Observations.from_dense(known)
    space, found = co.fit_column_space(o, center=True), []
    for _ in range(4):
        found.append(log_likelihood(space, 0.25, known))
        space = _relearned(space, 0.25, _coefficients(space, 0.25, o), None)
    assert (np.diff(found) > 0).all()


def test_rows_move_to_the_solution_of_their_equation(rng):
    _, known, seen = noisy(rng, m=50, n=60, d=8, s=12, level=1.0)
    o = co.Observations.from_dense(known)
    space, t, m = co.fit_column_space(o, rank=4, center=True), 0.2, 50
    Z = rng.standard_normal((4, 60)) * 5
    moves = _row_moves(space.basis, space.center, t, Z, o.transposed(), np.dtype(float))
    t = max(t, np.mean((known - space.center[:, None] - space.basis @ Z)[seen] ** 2))
    for i in range(m):
        O = np.flatnonzero(seen[i])
        residual = known[i, O] - space.center[i] - space.basis[i] @ Z[:, O]
        expected = np.linalg.solve(Z[:, O] @ Z[:, O].T + t * m * np.eye(4), Z[:, O] @ residual)
        np.testing.assert_allclose(moves[i], expected, rtol=1e-8, atol=1e-12)


def test_plain_sweeps_are_alternating_least_squares(rng):
    """Each sweep lowers the sum of squares at the observed entries, and many reach a stationary point."""
    _, known, seen = noisy(rng)
    sums, last = [], None
    for k in (0, 1, 2, 3, 40, 41):
        last = co.complete(known, rank=4, refine=k, **PLAIN)
        residual = (known - last.basis @ last.coefficients)[seen]
        sums.append(residual @ residual)
    assert (np.diff(sums) <= 1e-9 * sums[0]).all() and sums[1] < 0.9 * sums[0]
    assert sums[-2] - sums[-1] < 1e-3 * sums[-1]
    assert last.choices["refine"].startswith("41 sweeps")


def test_noisy_data_gain_what_converged_sweeps_would_give(rng):
    M, known, seen = noisy(rng, m=500, n=500, r=5, d=16, s=40)
    plain = error(co.complete(known, rank=5, refine=0, **PLAIN), M, seen)
    converged = error(co.complete(known, rank=5, refine=30, **PLAIN), M, seen)
    auto = co.complete(known, method="full columns")
    assert "over rows and columns" in auto.choices["refine"]
    assert error(auto, M, seen) <= 1.01 * converged < 0.95 * plain


def test_the_prior_is_learned_from_many_partial_columns(rng):
    """With few full columns the others know more of how columns vary."""
    spread = 3.0 * 0.8 ** np.arange(30)
    U = np.linalg.qr(rng.standard_normal((60, 30)))[0]
    M = U @ (spread[:, None] * rng.standard_normal((30, 800))) + 0.01 * rng.standard_normal((60, 800))
    known, seen = hide(rng, M, 40, 15)
    before, after = co.complete(known, refine=0), co.complete(known, method="full columns")
    assert "sweep" in after.choices["refine"] and error(after, M, seen) < 0.97 * error(before, M, seen)


def test_nothing_is_done_where_nothing_is_to_gain(rng):
    L, R = low_rank(rng, 80, 90, 5)
    known, _ = hide(rng, L @ R, 12, 20)
    completion = co.complete(known)
    assert completion.choices["refine"].startswith("none") and completion.optimism == 1
    assert relative_error(completion, L, R) < 1e-12
    assert relative_error(co.complete(known, rank=5, refine=3, **PLAIN), L, R) < 1e-12


def test_scaling_the_data_scales_the_answer(rng):
    _, known, _ = noisy(rng)
    one, other = (co.complete(unit * known, method="full columns") for unit in (1.0, 2.0**20))
    assert one.choices["refine"] == other.choices["refine"]
    np.testing.assert_allclose(other.to_dense(), one.to_dense() * 2.0**20, rtol=1e-6)


def test_columns_without_entries_and_weights_are_no_trouble(rng):
    _, known, seen = noisy(rng)
    known[:, np.flatnonzero(~seen.all(axis=0))[:3]] = np.nan
    weights = rng.uniform(0.5, 2, known.shape)
    completion = co.complete(co.Observations.from_dense(known, weights=weights), refine=2)
    assert np.isfinite(completion.to_dense()).all()
    single = co.complete(known.astype(np.float32), refine=2)
    assert single.basis.dtype == np.float32 and np.isfinite(single.to_dense()).all()


@pytest.mark.parametrize("refine", [-1, 1.5, True, "often", None])
def test_bad_numbers_of_sweeps_are_refused(rng, refine):
    _, known, _ = noisy(rng)
    with pytest.raises((TypeError, ValueError), match="refine"):
        co.complete(known, refine=refine)


def test_the_lesson_of_the_full_columns_is_not_changed(rng):
    _, known, _ = noisy(rng)
    o = co.Observations.from_dense(known)
    from_full = learn(o)
    copy = from_full.space.basis.copy()
    _relearned(from_full.space, 0.25, _coefficients(from_full.space, 0.25, o), o.transposed())
    np.testing.assert_array_equal(from_full.space.basis, copy)


def test_directions_far_above_the_noise_leave_covariances_positive(rng):
    """Three rows that are all but multiples of each other: what tells them apart is lost in rounding."""
    B = 1e20 * (np.ones((3, 1)) @ rng.standard_normal((1, 5)) + 1e-12 * rng.standard_normal((3, 5)))
    explained = _explained_by(B[None], 1e-3)
    assert np.isfinite(explained).all() and 0.99 < np.trace(explained) < 3.01
    variance = fitted_variances(B[None], B[None, :1], 1e-3, has_prior=True)
    assert 0 <= variance[0, 0] < 1e-10 * (B[0] @ B[0])


def test_uncertainty_where_the_noise_is_lost_beside_the_entries(rng):
    """The squares are singular then; their root is not."""
    B = rng.standard_normal((3, 8, 4)) * np.array([1e11, 1e11, 1.0, 1.0])
    B[:, :, 1] = B[:, :, 0]
    explained = _explained_by(B, 1.0)
    assert np.isfinite(explained).all() and (np.linalg.eigvalsh(explained) > -1e-6).all()
    assert (np.diag(explained) <= 3 + 1e-6).all()
