import dataclasses

import numpy as np
import pytest
from scipy import linalg

import colonnade as co
from colonnade.model import column_space, directions

from problems import low_rank, orthonormality, space_angle


def check(A, U, r):
    """Shape, orthonormality to LAPACK's ratio, fixed signs."""
    assert U.shape == (A.shape[0], r) and U.flags.c_contiguous
    assert orthonormality(U) < 30
    top = U[np.abs(U).argmax(axis=0), np.arange(r)]
    assert (top > 0).all()


@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (40, 40), (25_000, 12), (1, 5), (5, 1)])
@pytest.mark.parametrize("noise", [0, 1e-3])
def test_basis_is_that_of_the_svd(rng, shape, noise):
    m, d = shape
    r = min(4, *shape)
    L, R = low_rank(rng, m, d, r)
    A = L @ R + noise * rng.standard_normal(shape)
    space = co.fit_column_space(A, rank=r)
    check(A, space.basis, r)
    V, values, _ = linalg.svd(A, full_matrices=False)
    assert space_angle(space.basis, V[:, :r]) < 1e-10
    np.testing.assert_allclose(space.singular_values, values[:r], rtol=1e-12 * max(shape))


@pytest.mark.parametrize("noise", [0, 0.05])
def test_only_the_wanted_directions_of_a_wide_matrix(rng, noise, monkeypatch):
    L, R = low_rank(rng, 900, 500, 6)
    A = L @ R + noise * rng.standard_normal((900, 500))
    monkeypatch.setattr(column_space, "directions_by_qr", None)  # the search must do it alone
    space = co.fit_column_space(A, rank=6)
    check(A, space.basis, 6)
    V, values, _ = linalg.svd(A, full_matrices=False)
    assert space_angle(space.basis, V[:, :6]) < 1e-11
    np.testing.assert_allclose(space.singular_values, values[:6], rtol=1e-12)


def test_a_wide_matrix_without_a_gap_is_computed_in_full(rng):
    A = rng.standard_normal((450, 430))
    space = co.fit_column_space(A, rank=5)
    V = linalg.svd(A, full_matrices=False)[0]
    assert space_angle(space.basis, V[:, :5]) < 1e-10


def test_blocks_of_rows_agree_with_one_piece(rng, monkeypatch):
    A = rng.standard_normal((2_000, 7))
    whole = co.fit_column_space(A, rank=3)
    monkeypatch.setattr(directions, "_TALL", 0)
    monkeypatch.setattr(directions, "CACHE_CELLS", 7 * 123)
    sizes, qr = [], linalg.qr
    monkeypatch.setattr(linalg, "qr", lambda X, **options: sizes.append(X.shape[0]) or qr(X, **options))
    parts = co.fit_column_space(A, rank=3)
    assert 0 < max(sizes) <= 17 * 7  # the triangles of the blocks, never all rows at once
    np.testing.assert_allclose(parts.basis, whole.basis, atol=1e-12)
    check(A, parts.basis, 3)


@pytest.mark.parametrize("spread", [0, 6])
def test_numerical_rank(rng, spread):
    L, R = low_rank(rng, 80, 30, 5)
    A = L @ R * 10 ** rng.uniform(-spread, spread, 30)
    A = np.hstack([A, A[:, :4], np.zeros((80, 2)), 3 * A[:, 5:6]])
    space = co.fit_column_space(A)
    assert space.rank == 5
    assert space_angle(space.basis, np.linalg.qr(L)[0]) < 1e-12
    assert co.fit_column_space(A, rank=3).rank == 3
    assert co.fit_column_space(A, rank=20).rank == 5


def test_zero_columns_have_no_direction():
    space = co.fit_column_space(np.zeros((6, 3)))
    assert space.basis.shape == (6, 0) and space.singular_values.shape == (0,)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e303])
def test_scale_does_not_matter(rng, scale):
    L, R = low_rank(rng, 50, 12, 4)
    A = L @ R
    np.testing.assert_allclose(
        co.fit_column_space(A * scale).basis, co.fit_column_space(A).basis, atol=1e-12, err_msg=str(scale)
    )


def test_permutations_and_rotations(rng):
    A = rng.standard_normal((60, 10)) @ np.diag(10.0 ** -np.arange(10))
    U = co.fit_column_space(A, rank=4).basis
    turned = co.fit_column_space(A @ linalg.qr(rng.standard_normal((10, 10)))[0], rank=4).basis
    np.testing.assert_allclose(turned, U, atol=1e-10)
    order = rng.permutation(60)
    np.testing.assert_allclose(co.fit_column_space(A[order], rank=4).basis, U[order], atol=1e-10)


def test_repeated_draws_weigh_as_repeated_columns(rng):
    M = rng.standard_normal((40, 6))
    o = co.observe(M, n_full_columns=12, n_entries=3, random_state=rng)
    draws = np.repeat(o.full_columns, np.rint(o.full_scales**2 * 12 / 6).astype(int))  # count = scale^2 d p, p = 1/6
    assert draws.size == 12
    A = M[:, draws] / np.sqrt(12 / 6)
    V, values, _ = linalg.svd(A, full_matrices=False)
    space = co.fit_column_space(o, rank=3)
    assert space_angle(space.basis, V[:, :3]) < 1e-12
    np.testing.assert_allclose(space.singular_values, values[:3], rtol=1e-12)


def test_center_and_noise(rng):
    L, R = low_rank(rng, 400, 200, 3)
    A = L @ R + 5 * rng.standard_normal((400, 1)) + 0.1 * rng.standard_normal((400, 200))
    space = co.fit_column_space(A, rank=3, center=True)
    np.testing.assert_allclose(space.center, A.mean(axis=1), rtol=1e-12)
    assert space_angle(space.basis, linalg.svd(A - A.mean(axis=1, keepdims=True))[0][:, :3]) < 1e-11
    assert abs(space.noise_std / 0.1 - 1) < 0.02  # 77,000 degrees of freedom: the standard error is 0.0026
    variances = np.linalg.svd(A - A.mean(axis=1, keepdims=True), compute_uv=False)[:3] ** 2 / 200
    np.testing.assert_allclose(space.variances, variances, rtol=1e-10)


def test_a_center_of_drawn_columns_weighs_them_by_what_they_stand_for(rng):
    """As columns that are there once for every time that they stand for."""
    M = rng.standard_normal((30, 6)) + 2.0
    counts = np.array([1, 3, 2])
    drawn = dataclasses.replace(co.Observations.from_dense(M[:, :3]), full_scales=np.sqrt(counts))
    once, repeated = (co.fit_column_space(x, center=True) for x in (drawn, np.repeat(M[:, :3], counts, axis=1)))
    np.testing.assert_allclose(once.center, repeated.center, rtol=1e-13)
    np.testing.assert_allclose(once.singular_values, repeated.singular_values, rtol=1e-12)
    np.testing.assert_allclose(once.basis, repeated.basis, atol=1e-12)


@pytest.mark.parametrize("d", [3, 100, 1000])
def test_equal_columns_are_nothing_about_their_mean(rng, d):
    """The mean of many equal numbers is that number to a few roundings, in whatever order the array is."""
    A = np.repeat(rng.standard_normal((50, 1)), d, axis=1)
    for data in (A, np.asfortranarray(A), co.Observations.from_dense(A)):
        assert co.fit_column_space(data, center=True).rank == 0


@pytest.mark.parametrize("kind", ["given", "drawn", "dependent", "wide", "single precision", "one column"])
def test_the_space_about_the_row_means_from_the_one_about_zero(rng, kind):
    m, d = {"wide": (8, 12), "one column": (40, 1)}.get(kind, (40, 9))
    M = rng.standard_normal((m, 30)) * np.linspace(1, 5, 30) + 7.0
    if kind == "dependent":
        M = M[:, :4] @ rng.standard_normal((4, 30))
    if kind == "single precision":
        M = M.astype(np.float32)
    o = co.observe(M, n_full_columns=d, n_entries=5, random_state=rng)
    if kind != "drawn":
        o = dataclasses.replace(o, full_scales=None)
    found = column_space.fit_about_means(o, co.fit_column_space(o))
    expected = co.fit_column_space(o, center=True)
    tolerance = 1e-4 if kind == "single precision" else 1e-11
    assert found.basis.dtype == expected.basis.dtype and found.rank == expected.rank
    np.testing.assert_allclose(found.basis, expected.basis, atol=tolerance)
    for name in ("center", "singular_values", "variances"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=tolerance, err_msg=name)


def test_single_precision(rng):
    L, R = low_rank(rng, 100, 20, 5)
    space = co.fit_column_space((L @ R).astype(np.float32))
    assert space.basis.dtype == np.float32 and space.rank == 5
    assert orthonormality(space.basis) < 30


@pytest.mark.parametrize("noise", [1e-4, 1e-7, 1e-10, 1e-12])
@pytest.mark.parametrize("shape", [(300, 40), (800, 450)])
def test_noise_is_told_however_small(rng, noise, shape):
    L, R = low_rank(rng, *shape, 3)
    A = L @ R + noise * rng.standard_normal(shape)
    assert abs(co.fit_column_space(A, rank=3).noise_std / noise - 1) < 0.1


@pytest.mark.parametrize("d", [2, 5, 6, 7, 10, 49])
def test_identical_columns_leave_nothing_when_centered(rng, d):
    A = np.repeat(rng.standard_normal((40, 1)), d, axis=1)
    assert co.fit_column_space(A, center=True).rank == 0


def test_a_wide_matrix_with_a_decaying_spectrum(rng):
    values = 10.0 ** -np.linspace(0, 6, 30)
    A = linalg.qr(rng.standard_normal((900, 30)), mode="economic")[0] * values
    A = A @ linalg.qr(rng.standard_normal((500, 30)), mode="economic")[0].T
    space = co.fit_column_space(A, rank=10)
    V = linalg.svd(A, full_matrices=False)[0][:, :10]
    assert space_angle(space.basis, V) < 1e-10


def test_small_columns_count_like_large_ones(rng):
    L, R = low_rank(rng, 60, 4, 4)
    A = L @ R * np.array([1e200, 1.0, 1e-100, 1e-200])
    space = co.fit_column_space(A)
    assert space.rank == 4 and space_angle(space.basis, np.linalg.qr(L)[0]) < 1e-12
