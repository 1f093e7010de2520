"""The kernel against its NumPy reference, against least squares itself, and against itself in other circumstances."""

from itertools import pairwise

import numpy as np
import pytest

import colonnade as co
from colonnade.model.solve import Status, solve_columns_in_numpy


def ragged(rng, m=90, n=60, r=7, counts=None, weights=False, noise=0.1, dtype=np.float64):
    """A random basis and noisy observations with a different number of rows in each column."""
    U = np.linalg.qr(rng.standard_normal((m, r)))[0].astype(dtype)
    counts = rng.integers(0, m // 2, n) if counts is None else np.full(n, counts)
    rows = [np.sort(rng.choice(m, k, replace=False)) for k in counts]
    Z = rng.standard_normal((r, n))
    values = np.concatenate([U[i] @ Z[:, j] for j, i in enumerate(rows)])
    values = (values + noise * rng.standard_normal(values.size)).astype(dtype)
    w = 10 ** rng.uniform(-2, 2, values.size) if weights else None
    indptr = np.concatenate(([0], np.cumsum(counts)))
    rows = np.concatenate(rows).astype(np.int32)
    o = co.Observations((m, n), indptr, rows, values, w, np.zeros(0, np.int64))
    return co.ColumnSpace(U, np.ones(r), None, np.ones(r), 0.1), o


def assert_equal_answers(space, o, penalty=None, rtol=1e-10):
    Z, status = co.solve_columns(space, o, penalty=penalty)
    Z0, status0 = solve_columns_in_numpy(space, o, penalty=penalty)
    assert (status == status0).all()
    assert (np.isnan(Z) == np.isnan(Z0)).all()
    filled = ~np.isnan(Z0[0])
    assert filled.any()
    scale = np.abs(Z0[:, filled]).max(axis=0)
    assert (np.abs(Z - Z0)[:, filled].max(axis=0) <= rtol * np.maximum(scale, 1)).all()


@pytest.mark.parametrize("r", [1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 24, 31])
def test_kernel_equals_reference_at_every_rank(rng, r):
    assert_equal_answers(*ragged(rng, r=r))


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("penalty", ["none", "some", "all", "wide"])
def test_kernel_equals_reference_with_weights_and_penalty(rng, weights, penalty):
    space, o = ragged(rng, r=12, weights=weights)
    penalties = {
        "none": np.zeros(12),
        "some": np.where(np.arange(12) % 3, 0.3, 0.0),
        "all": np.full(12, 0.2),
        "wide": 10.0 ** np.arange(-6, 6),
    }
    assert_equal_answers(space, o, penalties[penalty], rtol=1e-8)


def test_center_is_taken_off(rng):
    space, o = ragged(rng, r=5)
    c = rng.standard_normal(90)
    moved = co.Observations(o.shape, o.indptr, o.rows, o.values + c[o.rows], None, o.full_columns)
    centered = co.ColumnSpace(space.basis, space.singular_values, c, space.variances, 0.1)
    np.testing.assert_allclose(co.solve_columns(centered, moved)[0], co.solve_columns(space, o)[0], atol=1e-11)
    assert_equal_answers(centered, moved)


def test_answer_satisfies_the_normal_equations(rng):
    space, o = ragged(rng, r=6, counts=30, weights=True)
    penalty = rng.random(6)
    Z, _ = co.solve_columns(space, o, penalty=penalty)
    for j in range(o.shape[1]):
        at = slice(o.indptr[j], o.indptr[j + 1])
        X, w, x = space.basis[o.rows[at]], o.weights[at], o.values[at]
        gradient = X.T @ (w * (X @ Z[:, j] - x)) + penalty * Z[:, j]
        assert np.abs(gradient).max() <= 1e-12 * np.abs(X.T @ (w * x)).max()


def test_integer_weights_are_repeated_rows(rng):
    space, o = ragged(rng, r=4, counts=20)
    times = rng.integers(1, 4, o.rows.size)
    weighted = co.Observations(o.shape, o.indptr, o.rows, o.values, times.astype(float), o.full_columns)
    Z, _ = co.solve_columns(space, weighted)
    for j in range(o.shape[1]):
        at = slice(o.indptr[j], o.indptr[j + 1])
        again = np.repeat(np.arange(o.indptr[j], o.indptr[j + 1]), times[at])
        z = np.linalg.lstsq(space.basis[o.rows[again]], o.values[again], rcond=None)[0]
        np.testing.assert_allclose(Z[:, j], z, atol=1e-10)


def test_a_column_in_a_group_has_the_bytes_of_the_column_alone(rng):
    m, n, r, s = 70, 300, 13, 25
    U = np.linalg.qr(rng.standard_normal((m, r)))[0]
    space = co.ColumnSpace(U, np.ones(r), None, np.ones(r), 0.0)
    patterns = [np.sort(rng.choice(m, s, replace=False)) for _ in range(3)]
    rows = np.array([patterns[k] for k in rng.integers(0, 3, n)], np.int32)
    values = rng.standard_normal((n, s))
    o = co.Observations((m, n), np.arange(n + 1) * s, rows.ravel(), values.ravel(), None, np.zeros(0, np.int64))
    Z, status = co.solve_columns(space, o)
    assert (status == Status.SOLVED).all()
    for j in range(0, n, 7):
        alone = co.Observations((m, 1), np.array([0, s]), rows[j], values[j], None, np.zeros(0, np.int64))
        assert (co.solve_columns(space, alone)[0][:, 0] == Z[:, j]).all()


@pytest.mark.parametrize("penalised", [False, True])
def test_a_column_beside_others_has_the_bytes_of_the_column_alone(rng, penalised):
    """Primal and dual systems, sound ones and such as are corrected or solved by QR, share the lanes of a vector."""
    r = 11
    space, o = ragged(rng, n=40, r=r, weights=True)
    basis = space.basis * 10.0 ** -np.linspace(0, 4, r)
    basis[:20, 3] = basis[:20, 4] + 1e-7 * basis[:20, 3]
    space = co.ColumnSpace(basis, np.ones(r), None, np.ones(r), 0.1)
    penalty = np.full(r, 1e-3) if penalised else None
    Z, status = co.solve_columns(space, o, penalty=penalty, typical=20.0)
    for j in range(o.shape[1]):
        at = slice(o.indptr[j], o.indptr[j + 1])
        entries = np.array([0, o.rows[at].size]), o.rows[at], o.values[at], o.weights[at]
        alone = co.Observations((o.shape[0], 1), *entries, np.zeros(0, np.int64))
        z, code = co.solve_columns(space, alone, penalty=penalty, typical=20.0)
        assert code[0] == status[j]
        np.testing.assert_array_equal(z[:, 0], Z[:, j])


@pytest.mark.parametrize("r", [2, 3, 7, 10, 15, 16])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["plain", "centered", "weighed"])
def test_columns_abreast_have_the_bytes_of_columns_alone(rng, r, dtype, kind):
    """Lengths beyond one chunk, few enough zeros behind the shorter ones, and columns left over at the end."""
    m = 200
    space, o = ragged(rng, m, n=45, r=r, counts=rng.integers(35, 45, 45), weights=kind == "weighed", dtype=dtype)
    center = rng.standard_normal(m).astype(dtype) if kind == "centered" else None
    space = co.ColumnSpace(space.basis, np.ones(r), center, np.ones(r), 0.1)
    Z, status = co.solve_columns(space, o)
    assert (status == Status.SOLVED).all()
    assert_equal_answers(space, o, rtol=1e-10 if dtype is np.float64 else 1e-5)
    for j in range(0, o.shape[1], 3):
        at = slice(o.indptr[j], o.indptr[j + 1])
        weights = None if o.weights is None else o.weights[at]
        entries = np.array([0, o.rows[at].size]), o.rows[at], o.values[at], weights
        alone = co.Observations((m, 1), *entries, np.zeros(0, np.int64))
        assert co.solve_columns(space, alone)[0][:, 0].tobytes() == Z[:, j].tobytes()


def test_weights_and_arrays_by_hand_need_no_other_compiled_solver(rng):
    """The solver takes 10 s to be compiled: once for each type of the values."""
    from colonnade.model.kernels.column_kernels import solve_groups

    space, o = ragged(rng, n=40, r=3, weights=True)
    none = np.zeros(0, np.int64)
    expected = co.solve_columns(space, co.Observations(o.shape, o.indptr, o.rows, o.values, np.ones(o.rows.size), none))
    for index in (np.int32, np.int64):
        for weights in (None, np.ones(o.rows.size), np.ones(o.rows.size, np.float32)):
            made = co.Observations(o.shape, o.indptr.astype(index), o.rows.astype(index), o.values, weights, none)
            np.testing.assert_allclose(co.solve_columns(space, made)[0], expected[0], rtol=1e-10)
    assert len(solve_groups.signatures) <= 2


def test_groups_hold_together_what_belongs_together(rng):
    from colonnade.model.solve import _groups_of_equal_rows

    rows = np.array([[0, 1], [2, 3], [0, 1], [0, 1], [2, 3], [4, 5]], np.int32)
    weights = np.ones(12)
    o = co.Observations((6, 6), np.arange(7) * 2, rows.ravel(), np.ones(12), None, np.zeros(0, np.int64))
    members, bounds = _groups_of_equal_rows(o, np.zeros(0), np.arange(6))
    groups = [members[a:b].tolist() for a, b in pairwise(bounds)]
    assert groups == [[0, 2, 3], [1, 4], [5]]
    weights[6] = 2  # column 3 is weighed otherwise
    members, bounds = _groups_of_equal_rows(o, weights, np.arange(6))
    groups = [members[a:b].tolist() for a, b in pairwise(bounds)]
    assert groups == [[0, 2], [1, 4], [3], [5]]


def test_threads_do_not_change_the_bytes(rng):
    space, o = ragged(rng, n=500, weights=True)
    one, _ = co.solve_columns(space, o, n_threads=1)
    for n_threads in (2, 3, 8):
        np.testing.assert_array_equal(co.solve_columns(space, o, n_threads=n_threads)[0], one)


@pytest.mark.parametrize("decades", [1, 3, 5, 7])
def test_ill_conditioned_rows_are_solved_stably(rng, decades):
    """Cholesky alone would lose twice the digits that the condition costs."""
    m, r, s = 200, 8, 20
    X = np.linalg.qr(rng.standard_normal((s, r)))[0] * 10.0 ** -np.linspace(0, decades, r)
    X = X @ np.linalg.qr(rng.standard_normal((r, r)))[0] * 0.5
    # An orthonormal basis with these rows: complete them below by a factor of I - X'X.
    rest = np.linalg.cholesky(np.eye(r) - X.T @ X).T
    U = np.vstack([X, np.linalg.qr(rng.standard_normal((m - s, r)))[0] @ rest])
    z = rng.standard_normal(r)
    o = co.Observations((m, 1), np.array([0, s]), np.arange(s, dtype=np.int32), X @ z, None, np.zeros(0, np.int64))
    Z, status = co.solve_columns(co.ColumnSpace(U, np.ones(r), None, np.ones(r), 0.0), o)
    assert status[0] == Status.SOLVED
    condition = np.linalg.cond(X)
    assert np.abs(Z[:, 0] - z).max() <= 50 * condition * np.finfo(float).eps * np.abs(z).max()


def test_rows_that_do_not_determine_a_column(rng):
    m, r = 30, 4
    U = np.linalg.qr(rng.standard_normal((m, r)))[0]
    U[:10, 3] = U[:10, 2]  # the first ten rows cannot tell two directions apart
    U[10:14] = 1e-17 * rng.standard_normal((4, r))  # rounding noise where the truth is zero
    space = co.ColumnSpace(U, np.ones(r), None, np.ones(r), 0.0)
    rows = [np.arange(8), np.arange(10, 14), np.arange(14, 20), np.arange(14, 16), np.arange(0)]
    indptr = np.concatenate(([0], np.cumsum([k.size for k in rows])))
    o = co.Observations(
        (m, 5), indptr, np.concatenate(rows).astype(np.int32), np.ones(indptr[-1]), None, np.zeros(0, np.int64)
    )
    Z, status = co.solve_columns(space, o)
    expected = [Status.UNDETERMINED, Status.UNDETERMINED, Status.SOLVED, Status.TOO_FEW, Status.NO_OBSERVATION]
    assert status.tolist() == expected
    assert np.isnan(Z[:, [0, 1, 3, 4]]).all() and np.isfinite(Z[:, 2]).all()
    Z, status = co.solve_columns(space, o, penalty=np.full(r, 0.1))
    assert np.isfinite(Z).all() and status.tolist() == [Status.SOLVED] * 3 + [Status.PRIOR, Status.PRIOR_ONLY]
    assert (Z[:, 4] == 0).all()


def test_the_dual_equals_the_primal(rng):
    """More directions than entries: the s x s system gives the minimiser of the r x r one."""
    space, o = ragged(rng, r=40, n=20, counts=9, weights=True)
    penalty = 10 ** rng.uniform(-3, 1, 40)
    Z, status = co.solve_columns(space, o, penalty=penalty)
    assert (status == Status.PRIOR).all()
    for j in range(20):
        at = slice(o.indptr[j], o.indptr[j + 1])
        X, w, x = space.basis[o.rows[at]], o.weights[at], o.values[at]
        z = np.linalg.solve(X.T @ (w[:, None] * X) + np.diag(penalty), X.T @ (w * x))
        np.testing.assert_allclose(Z[:, j], z, rtol=1e-8, atol=1e-10 * np.abs(z).max())


def test_single_precision_stays_single(rng):
    space, o = ragged(rng, r=6, dtype=np.float32)
    Z, _ = co.solve_columns(space, o)
    assert Z.dtype == np.float32
    assert_equal_answers(space, o, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_scale_of_the_values(rng, scale):
    space, o = ragged(rng, r=5, counts=20)
    Z, _ = co.solve_columns(space, o)
    scaled = co.Observations(o.shape, o.indptr, o.rows, o.values * scale, None, o.full_columns)
    np.testing.assert_allclose(co.solve_columns(space, scaled)[0], Z * scale, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
def test_scale_of_the_weights(rng, scale):
    space, o = ragged(rng, r=5, counts=20, weights=True)
    Z, _ = co.solve_columns(space, o)
    scaled = co.Observations(o.shape, o.indptr, o.rows, o.values, o.weights * scale, o.full_columns)
    np.testing.assert_allclose(co.solve_columns(space, scaled)[0], Z, rtol=1e-9)


def test_overflow_is_a_status(rng):
    U = np.linalg.qr(rng.standard_normal((40, 3)))[0]
    z = np.array([1e308, 1e308, 1e308])
    space = co.ColumnSpace(U, np.ones(3), None, np.ones(3), 0.0)
    with np.errstate(over="ignore"):
        x = np.clip(U @ z * 1.7, -1.7e308, 1.7e308)
    o = co.Observations((40, 1), np.array([0, 40]), np.arange(40, dtype=np.int32), x, None, np.zeros(0, np.int64))
    Z, status = co.solve_columns(space, o)
    assert status[0] in (Status.OVERFLOW, Status.SOLVED)
    assert np.isfinite(Z).all() if status[0] == Status.SOLVED else np.isnan(Z).all()


def test_status_messages_end_in_a_remedy():
    for status in Status:
        assert ";" in status.message and status.message.split(";")[-1].strip()
    assert [s for s in Status if s.is_filled] == [Status.FULL, Status.SOLVED, Status.PRIOR, Status.PRIOR_ONLY]


def test_the_codes_of_the_kernel_are_those_of_status():
    from colonnade.model.kernels import problem

    for status in Status:
        assert status == Status.FULL or getattr(problem, status.name) == status


def bumps(m, r):
    """An orthonormal basis of smooth functions: few random rows of it are often close to dependent."""
    x = np.linspace(0, 1, m)[:, None]
    return np.linalg.qr(np.exp(-0.5 * ((x - np.linspace(0, 1, r)) * r / 1.5) ** 2))[0]


def kahan(r, angle=1.2):
    """Kahan's matrix, whose pivots do not show its condition, as rows of an orthonormal basis."""
    X = np.diag(np.sin(angle) ** np.arange(r)) @ (np.eye(r) - np.cos(angle) * np.triu(np.ones((r, r)), 1))
    X *= 0.9 / np.linalg.norm(X, 2)
    return np.vstack([X, np.linalg.cholesky(np.eye(r) - X.T @ X).T])


@pytest.mark.parametrize("r", [6, 12, 20, 40, 60])
@pytest.mark.parametrize("kind", ["bumps", "kahan"])
def test_the_error_is_that_of_a_stable_method(rng, r, kind):
    """eps times the condition, not times its square, wherever that is small enough to be seen."""
    U = bumps(400, r) if kind == "bumps" else kahan(r)
    m, n, s = U.shape[0], 60, int(1.5 * r) if kind == "bumps" else r
    rows = [np.sort(rng.choice(m, s, replace=False)) if kind == "bumps" else np.arange(r) for _ in range(n)]
    truth = rng.standard_normal((r, n))
    values = np.concatenate([U[i] @ truth[:, j] for j, i in enumerate(rows)])
    o = co.Observations(
        (m, n), np.arange(n + 1) * s, np.concatenate(rows).astype(np.int32), values, None, np.zeros(0, np.int64)
    )
    Z, status = co.solve_columns(co.ColumnSpace(U, np.ones(r), None, np.ones(r), 0.0), o)
    condition = np.array([np.linalg.cond(U[i]) for i in rows])
    error = np.abs(Z - truth).max(axis=0) / np.abs(truth).max(axis=0)
    clear = condition < 1e12
    assert clear.any() and (status[clear] == Status.SOLVED).all()
    assert (error[clear] <= 50 * np.finfo(float).eps * condition[clear]).all()


@pytest.mark.parametrize("case", ["weights", "center", "penalty", "dual", "undetermined", "float32"])
def test_groups_of_columns_equal_the_reference(rng, case):
    m, n, s = 60, 150, 18
    r = 30 if case == "dual" else 9
    dtype = np.float32 if case == "float32" else np.float64
    U = np.linalg.qr(rng.standard_normal((m, r)))[0].astype(dtype)
    if case == "undetermined":
        U[:30, 1] = U[:30, 0]
    patterns = [np.sort(rng.choice(30 if case == "undetermined" else m, s, replace=False)) for _ in range(4)]
    weighing = [10 ** rng.uniform(-1, 1, s) for _ in range(4)]
    which = rng.integers(0, 4, n)
    rows = np.concatenate([patterns[k] for k in which]).astype(np.int32)
    weights = np.concatenate([weighing[k] for k in which]) if case == "weights" else None
    center = rng.standard_normal(m).astype(dtype) if case == "center" else None
    values = rng.standard_normal(n * s).astype(dtype)
    o = co.Observations((m, n), np.arange(n + 1) * s, rows, values, weights, np.zeros(0, np.int64))
    penalty = rng.random(r) if case in ("penalty", "dual") else None
    space = co.ColumnSpace(U, np.ones(r), center, np.ones(r), 0.1)
    Z, status = co.solve_columns(space, o, penalty=penalty)
    Z0, status0 = solve_columns_in_numpy(space, o, penalty=penalty)
    assert (status == status0).all() and (status == Status.UNDETERMINED).all() == (case == "undetermined")
    np.testing.assert_allclose(Z, Z0, atol=1e-3 if case == "float32" else 1e-10)


@pytest.mark.parametrize(
    "make", [np.asfortranarray, lambda U: np.repeat(U, 2, axis=1)[:, ::2], lambda U: U[::-1][::-1]]
)
def test_any_memory_layout_of_the_basis(rng, make):
    space, o = ragged(rng, r=6)
    other = co.ColumnSpace(make(space.basis), space.singular_values, None, space.variances, 0.1)
    np.testing.assert_array_equal(co.solve_columns(other, o)[0], co.solve_columns(space, o)[0])


def test_a_basis_at_the_end_of_its_memory(rng):
    """Whole vectors are read, but never beyond the last row: a page that may not be touched follows it."""
    import ctypes
    import mmap

    page = mmap.PAGESIZE
    for r in (1, 3, 5, 9, 14):
        U = np.linalg.qr(rng.standard_normal((40, r)))[0]
        size = -(-U.nbytes // page) * page
        memory = mmap.mmap(-1, size + page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + size), page, 0) == 0
        guarded = np.frombuffer(memory, np.float64, U.size, size - U.nbytes).reshape(U.shape)
        guarded[:] = U
        space = co.ColumnSpace(guarded, np.ones(r), None, np.ones(r), 0.0)
        rows = np.arange(40, dtype=np.int32)
        o = co.Observations((40, 1), np.array([0, 40]), rows, U @ np.ones(r), None, np.zeros(0, np.int64))
        np.testing.assert_allclose(co.solve_columns(space, o)[0][:, 0], 1.0, atol=1e-12)


def test_a_neighbour_that_overflows_changes_nothing(rng):
    m, r, s = 40, 5, 12
    U = np.linalg.qr(rng.standard_normal((m, r)))[0]
    rows = np.tile(np.sort(rng.choice(m, s, replace=False)), 3).astype(np.int32)
    values = rng.standard_normal((3, s))
    space = co.ColumnSpace(U, np.ones(r), None, np.ones(r), 0.0)

    def solve(values):
        o = co.Observations((m, 3), np.arange(4) * s, rows, values.ravel(), None, np.zeros(0, np.int64))
        return co.solve_columns(space, o)[0]

    calm = solve(values)
    values[1] = 1.7e308
    np.testing.assert_array_equal(solve(values)[:, [0, 2]], calm[:, [0, 2]])


def test_a_very_large_penalty_only_closes_its_direction(rng):
    space, o = ragged(rng, r=3, counts=10)
    Z, status = co.solve_columns(space, o, penalty=np.array([1e34, 0.1, 0.1]))
    Z0, status0 = solve_columns_in_numpy(space, o, penalty=np.array([1e34, 0.1, 0.1]))
    assert (status == Status.SOLVED).all() and (status0 == Status.SOLVED).all()
    np.testing.assert_allclose(Z, Z0, atol=1e-10)
    assert (np.abs(Z[0]) < 1e-30).all()


def test_rows_that_depend_on_each_other_but_for_rounding(rng):
    """As many entries as directions, some directions hardly present in these rows: undetermined all the same."""
    for r in (2, 3, 5):
        for _ in range(20):
            A = rng.standard_normal((24, r)) * 10.0 ** rng.uniform(-3, 0, r)
            A[r - 1] = rng.standard_normal(r - 1) @ A[: r - 1]
            U = np.linalg.svd(A, full_matrices=False)[0]
            known = np.full((24, 1), np.nan)
            known[:r, 0] = rng.standard_normal(r)
            o, space = co.Observations.from_dense(known), co.ColumnSpace(U, np.ones(r), None, np.ones(r), 0.0)
            assert co.solve_columns(space, o)[1].tolist() == [Status.UNDETERMINED]


def test_rows_in_which_a_direction_is_rounding_do_not_determine_it(rng):
    """Whatever its place among the directions, and however well the pivots look beside their own size."""
    U = np.zeros((40, 2))
    U[:20, 0], U[20:, 1] = rng.standard_normal((2, 20))
    U += 1e-19 * rng.standard_normal(U.shape)
    U /= np.linalg.norm(U, axis=0)
    o = co.Observations.from_dense(np.where(np.arange(40)[:, None] < 20, 3 * U[:, :1], np.nan))
    for order in ([0, 1], [1, 0]):
        space = co.ColumnSpace(np.ascontiguousarray(U[:, order]), np.ones(2), None, np.ones(2), np.nan)
        Z, status = co.solve_columns(space, o)
        assert status[0] == Status.UNDETERMINED and np.isnan(Z).all()
        assert (status == solve_columns_in_numpy(space, o)[1]).all()


def test_a_center_of_another_length_is_refused(rng):
    space, o = ragged(rng, r=3)
    short = co.ColumnSpace(space.basis, space.singular_values, np.ones(5), space.variances, 0.1)
    with pytest.raises(ValueError, match=r"the center must have 90 numbers; got shape \(5,\)"):
        co.solve_columns(short, o)


def test_a_penalty_beyond_float32_holds_its_direction_only(rng):
    space, o = ragged(rng, r=6, counts=4, dtype=np.float32)
    penalty = np.array([1, 1, 1, 1, 1, 1e95])
    Z, status = co.solve_columns(space, o, penalty=penalty)
    assert (status == Status.PRIOR).all() and (Z[5] == 0).all()
    without = co.ColumnSpace(np.ascontiguousarray(space.basis[:, :5]), np.ones(5), None, np.ones(5), 0.1)
    np.testing.assert_allclose(Z[:5], co.solve_columns(without, o, penalty=penalty[:5])[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("centered", [False, True])
def test_a_column_of_which_nothing_is_seen_is_the_mean(rng, centered):
    """About a center the prior's mean is 0; else it is the part of the row means within the space."""
    U, mean = np.linalg.qr(rng.standard_normal((12, 3)))[0], rng.standard_normal(12)
    space = co.ColumnSpace(U, np.ones(3), mean if centered else None, np.ones(3), 0.1, None if centered else mean)
    known = np.full((12, 2), np.nan)
    known[:5, 0] = rng.standard_normal(5)
    o = co.Observations.from_dense(known)
    for solve in (co.solve_columns, solve_columns_in_numpy):
        Z, status = solve(space, o, penalty=np.full(3, 0.1))
        np.testing.assert_allclose(Z[:, 1], np.zeros(3) if centered else U.T @ mean, atol=1e-14)
        assert status[1] == co.Status.PRIOR_ONLY
