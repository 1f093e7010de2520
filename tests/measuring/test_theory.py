"""Coherences, theorems and plans against hand-computed values, invariances and simulation."""

import dataclasses
import math

import numpy as np
import pytest

from colonnade import theory
from colonnade.measuring.planning import _draws_for_distinct, gaussian_coherence, plan

BIG, SMALL = 1e300, 1e-300


def gaussian_factors(rng, m, n, r):
    return rng.standard_normal((m, r)), rng.standard_normal((r, n))


def random_basis(rng, m, r):
    return np.linalg.qr(rng.standard_normal((m, r)))[0]


def spiked_basis(rng, m, r, weight):
    """A basis whose first vector has the share ``weight`` of its squared length in the first row."""
    U = np.zeros((m, r))
    U[1:, 1:] = random_basis(rng, m - 1, r - 1)
    U[:, 0] = rng.standard_normal(m)
    U[1:, 0] -= U[1:, 1:] @ (U[1:, 1:].T @ U[1:, 0])
    U[1:, 0] *= math.sqrt(1 - weight) / np.linalg.norm(U[1:, 0])
    U[0, 0] = math.sqrt(weight)
    return U


# ----------------------------------------------------------------------------------------------- coherences


def test_coherence_of_an_identity_block():
    M = np.zeros((6, 10))
    M[:2, :2] = np.eye(2)
    assert theory.coherence(M) == pytest.approx(10 / 2)  # the right side: n/r
    assert theory.coherence(M.T) == pytest.approx(10 / 2)
    assert theory.coherence(np.eye(4)) == pytest.approx(1)


def test_coherence_of_rank_one_by_hand():
    u, v = np.array([3.0, 4.0]), np.array([1.0, 1.0, 1.0])
    assert theory.coherence(np.outer(u, v)) == pytest.approx(2 * 16 / 25)
    assert theory.coherence((u[:, None], v[None])) == pytest.approx(2 * 16 / 25)


def test_coherence_takes_the_top_singular_vectors():
    M = np.diag([5.0, 2.0, 1.0])
    assert theory.coherence(M, rank=1) == pytest.approx(3)
    assert theory.coherence(M, rank=2) == pytest.approx(3 / 2)
    assert theory.coherence(M, rank=3) == pytest.approx(1)


def test_coherence_of_factors_is_that_of_the_matrix(seed):
    L, R = gaussian_factors(np.random.default_rng(seed), 40, 25, 4)
    assert theory.coherence((L, R)) == pytest.approx(theory.coherence(L @ R, rank=4), rel=1e-12)
    assert theory.coherence(L @ R) == pytest.approx(theory.coherence(L @ R, rank=4), rel=1e-15)
    assert theory.column_coherence((L, R)) == pytest.approx(theory.column_coherence(L @ R), rel=1e-12)
    wide = np.hstack([L, L]), np.vstack([R, R])  # redundant factors, rank still 4
    assert theory.coherence(wide) == pytest.approx(theory.coherence((L, R)), rel=1e-12)


@pytest.mark.parametrize("n, cells", ((1_023, 0), (9, 0), (1_000, 400)))
def test_the_coherence_of_a_long_matrix_is_that_of_lapack(rng, monkeypatch, n, cells):
    """Blocks in two levels, with a last block that has fewer rows than columns; and a matrix of one block."""
    monkeypatch.setattr(theory, "CACHE_CELLS", cells)
    A = rng.standard_normal((n, 5)) * [1, 1e-2, 1e-4, 1e-6, 1e-8] @ random_basis(rng, 5, 5).T
    A[0] *= 30
    U, sigma, V = theory._tall_svd(A)
    assert U.shape == A.shape and np.allclose(U.T @ U, np.eye(5), atol=1e-14)
    assert np.allclose(U * sigma @ V, A, atol=1e-13)
    U, V = np.linalg.svd(A, full_matrices=False)[::2]
    for r in (1, 3, 5):
        mu = max(n / r * (U[:, :r] ** 2).sum(axis=1).max(), 5 / r * (V[:r] ** 2).sum(axis=0).max())
        assert theory.coherence(A, r) == pytest.approx(mu, rel=1e-6)  # LAPACK's own error at sigma_5
        assert theory.coherence(A.T, r) == pytest.approx(mu, rel=1e-6)


def test_coherences_are_invariant(seed):
    rng = np.random.default_rng(seed)
    L, R = gaussian_factors(rng, 30, 20, 3)
    M, rows, columns = L @ R, rng.permutation(30), rng.permutation(20)
    Q = random_basis(rng, 3, 3)
    mu, mu_M = theory.coherence(M, 3), theory.column_coherence(M)
    for other in (
        M[rows][:, columns],
        -7 * M,
        BIG / 100 * M,
        SMALL * M,
        (L @ Q, Q.T @ R),
        (BIG * L, SMALL * R),
    ):
        assert theory.coherence(other, 3) == pytest.approx(mu, rel=1e-11)
        assert theory.column_coherence(other) == pytest.approx(mu_M, rel=1e-11)
    assert theory.coherence(M.T, 3) == pytest.approx(mu, rel=1e-11)
    U = random_basis(rng, 30, 3)
    assert theory.basis_coherence(U[rows] @ Q) == pytest.approx(theory.basis_coherence(U), rel=1e-11)


def test_coherence_keeps_numerical_rank_in_single_precision():
    L, R = gaussian_factors(np.random.default_rng(0), 50, 40, 3)
    M = (L @ R).astype(np.float32)  # of rank 40 in double precision
    assert theory.coherence(M) == pytest.approx(theory.coherence((L, R)), rel=1e-4)
    with pytest.raises(ValueError, match="from 1 to 3, the numerical rank; got 4"):
        theory.coherence(M, rank=4)


def test_basis_coherence_by_hand():
    assert theory.basis_coherence(np.eye(6)[:, :2]) == pytest.approx(3)
    assert theory.basis_coherence(np.full((9, 1), 1 / 3)) == pytest.approx(1)
    hadamard = np.array([[1, 1], [1, -1], [1, 1], [1, -1]]) / 2
    assert theory.basis_coherence(hadamard) == pytest.approx(1)
    assert theory.basis_coherence(hadamard.astype(np.float32)) == pytest.approx(1)


def test_column_coherence_by_hand():
    M = np.array([[3.0, 0.0, 1.0], [4.0, 2.0, 0.0]])  # squared column norms 25, 4, 1
    assert theory.column_coherence(M) == pytest.approx(3 * 25 / 30)
    assert theory.column_coherence(M * (BIG / 4)) == pytest.approx(3 * 25 / 30)
    assert theory.column_coherence(np.ones((4, 7), dtype=int)) == pytest.approx(1)


def test_vector_coherence_by_hand():
    assert theory.vector_coherence(np.full(8, -2.5)) == pytest.approx(1)
    assert theory.vector_coherence(np.eye(8)[0]) == pytest.approx(8)
    for scale in (1, BIG, SMALL):
        assert theory.vector_coherence(scale * np.array([1.0, -2.0, 0.0])) == pytest.approx(3 * 4 / 5)


@pytest.mark.parametrize("m, n, r", [(60, 60, 3), (200, 50, 10), (30, 30, 30)])
def test_gaussian_coherence_is_typical(seed, m, n, r):
    rng = np.random.default_rng(seed)
    mus = [theory.coherence(gaussian_factors(rng, m, n, r), r) for _ in range(21)]
    assert gaussian_coherence((m, n), r) == pytest.approx(np.median(mus), rel=0.2)


def test_gaussian_coherence_agrees_with_the_paper():
    # "from 1.9049 to 4.1616" for square Gaussian matrices, n = 2,000 to 10,000, r = 10 to 50
    assert gaussian_coherence((10_000, 10_000), 10) == pytest.approx(4.1616, rel=0.15)
    assert gaussian_coherence((2_000, 2_000), 50) == pytest.approx(1.9049, rel=0.15)


# ------------------------------------------------------------------------------------------------- theorems


def test_theorem1_by_hand():
    p = np.full(200, 0.004)
    p[0] = 1 - 0.004 * 199
    size = theory.theorem1((100, 200), 5, 2.0, delta=0.05, probabilities=p)
    assert size.n_full_columns == math.ceil(7 * 2 * 5 * math.log(2 * 5 / 0.05) / (200 * 0.004)) == 464
    assert size.n_entries == math.ceil(7 * 2 * 5 * math.log(2 * 5 * 200 / 0.05)) == 742
    assert size.confidence == 0.95 and not size.violated
    assert not size.fits and "more than the whole matrix" in repr(size)


def test_corollary1_is_theorem1_with_uniform_probabilities():
    for n in (49, 200, 1000):
        corollary = theory.corollary1((n, n), 3, 1.5, delta=0.1)
        theorem = theory.theorem1((n, n), 3, 1.5, delta=0.1, probabilities=np.full(n, 1 / n))
        assert corollary.n_full_columns == theorem.n_full_columns == math.ceil(31.5 * math.log(60))
        assert corollary.n_entries == theorem.n_entries == math.ceil(31.5 * math.log(60 * n))
        assert corollary.share == pytest.approx(theorem.share, rel=1e-12)
        assert (corollary.source, theorem.source) == ("Corollary 1", "Theorem 1")


def test_lemma2_by_hand():
    s = theory.lemma2(4, 1.5, 300, delta=0.2)
    assert s == math.ceil(7 * 1.5 * 4 * math.log(4 * 300 / 0.2)) == 366


def test_lemma2_holds(seed):
    rng = np.random.default_rng(seed)
    U = random_basis(rng, 150, 2)
    s = theory.lemma2(2, theory.basis_coherence(U), 100, delta=0.05)
    grams = [U[rows].T @ U[rows] for rows in rng.integers(150, size=(100, s))]  # with multiplicity, as the paper
    assert min(np.linalg.eigvalsh(G)[0] for G in grams) >= s / (2 * 150)


@pytest.mark.parametrize("residual_coherence, branch", [(3.0, "basis"), (900.0, "residual")])
def test_theorem2_by_hand(residual_coherence, branch):
    size = theory.theorem2(
        (50_000, 3_000),
        4,
        epsilon=0.5,
        column_coherence=2.5,
        basis_coherence=1.2,
        residual_coherence=residual_coherence,
        delta=0.02,
    )
    log = math.log(2 * 4 * 3_000 / 0.02)
    by_branch = {"basis": 84 * 1.2 * 4 * log / 0.5, "residual": 4 / 3 * 4 * residual_coherence * log}
    assert size.n_full_columns == math.ceil(64 * math.log(100) * 2.5 * 4 / 0.25) == 11_790
    assert size.n_entries == math.ceil(by_branch[branch])
    assert size.n_entries >= theory.lemma2(4, 1.2, 3_000, delta=0.01)
    assert size.violated == () and size.confidence == pytest.approx(0.96)


def test_theorem2_lists_the_violated_conditions():
    coherences = {"column_coherence": 2.0, "basis_coherence": 1.0, "residual_coherence": 5.0}
    size = theory.theorem2((100, 2_000), 30, epsilon=1, **coherences, delta=0.1)
    assert [v.split(",")[0] for v in size.violated] == [
        "ln(2n/delta) <= m/64",
        "rank <= m/4",
        "d <= m/4 (of Lemma 4; the theorem does not repeat it)",
    ]
    assert "10.5966 > 1.5625" in size.violated[0] and "violated: rank <= m/4, but 30 > 25" in repr(size)


def test_theorem2_lemma2_and_r_le_d_are_implied():
    for epsilon, delta in [(1, 0.999), (1, 0.1), (0.1, 1e-6)]:
        size = theory.theorem2(
            (50, 7),
            7,
            epsilon=epsilon,
            column_coherence=1,
            basis_coherence=1,
            residual_coherence=1,
            delta=delta,
        )
        assert size.n_full_columns >= 7
        assert size.n_entries >= theory.lemma2(7, 1.0, 7, delta=delta / 2)


def test_sample_size_counts_distinct_entries():
    size = theory.SampleSize.of_draws(1, 2, (4, 10), source="hand")
    assert size.expected_columns == pytest.approx(1) and size.expected_entries == pytest.approx(4 * 7 / 16)
    assert size.share == pytest.approx((1 * 4 + 9 * 1.75) / 40) and size.fits
    assert theory.SampleSize.of_draws(10**9, 10**9, (4, 10), source="hand").share == pytest.approx(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        size.n_entries = 3


def test_expected_distinct_by_hand():
    assert theory.expected_distinct(3, 1) == 1
    assert theory.expected_distinct(2, 3, np.array([0.5, 0.3, 0.2])) == pytest.approx(3 - 0.25 - 0.49 - 0.64)


# ----------------------------------------------------------------------------------------------------- plan


def waiting_time_tail(target, n, n_draws):
    """P(fewer than target distinct of n after n_draws), exactly, for uniform draws."""
    k = np.arange(target)
    state = np.zeros(target)
    state[0] = 1
    for _ in range(n_draws):
        state = state * k / n + np.r_[0, (state * (n - k) / n)[:-1]]
    return state.sum()


@pytest.mark.parametrize(
    "target, n, failure", [(52, 10_000, 0.1), (12, 30, 0.1), (6, 6, 0.01), (1, 5, 0.5), (2, 2, 0.1)]
)
def test_draws_for_distinct_are_enough_and_not_many_more(target, n, failure):
    draws = _draws_for_distinct(target, n, failure)
    assert waiting_time_tail(target, n, draws) <= failure
    fewer = int(draws / 1.7)
    assert fewer < target or waiting_time_tail(target, n, fewer) > failure


def test_draws_for_distinct_with_uneven_probabilities(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(40, 0.5)) + 1e-3
    p /= p.sum()
    draws = _draws_for_distinct(8, p.size, 0.1, p)
    distinct = [np.unique(rng.choice(40, size=draws, p=p)).size for _ in range(400)]
    assert np.mean(np.array(distinct) < 8) <= 0.1 + 4 * math.sqrt(0.09 / 400)


def test_plan_of_the_papers_largest_matrix():
    answer = plan((10_000, 10_000), 50)
    assert 52 <= answer.practical.n_full_columns <= 54 and 55 <= answer.practical.n_entries <= 57
    assert answer.practical.share == pytest.approx(0.0108, abs=3e-4)
    assert answer.guaranteed == theory.corollary1((10_000, 10_000), 50, gaussian_coherence((10_000, 10_000), 50))
    assert answer.expected_error is None and answer.expected_rms is None
    first, second, last = str(answer).split("\n")
    assert first.startswith("Measure 53 of 10,000 columns in full and 56 of 10,000 entries of every other column")
    assert "more than the whole matrix" in second and "assumed: typical of a Gaussian matrix" in second
    assert last.startswith("The practical numbers are no theorem: they give 52 distinct columns and 55 distinct rows")
    assert repr(answer) == str(answer)


def test_plan_takes_probabilities_and_coherence():
    p = np.r_[0.5, np.full(99, 0.5 / 99)]
    answer = plan((80, 100), 3, coherence=2.0, probabilities=p, delta=0.2)
    assert answer.guaranteed == theory.theorem1((80, 100), 3, 2.0, delta=0.2, probabilities=p)
    assert answer.practical.n_full_columns > plan((80, 100), 3, delta=0.2).practical.n_full_columns
    assert answer.practical.expected_columns == pytest.approx(
        theory.expected_distinct(answer.practical.n_full_columns, 100, p)
    )
    uniform, single = plan((80, 100), 3), np.full(100, 0.01, dtype=np.float32)
    for equal in (plan((80, 100), 3, probabilities=q) for q in (single, np.full(100, 0.01))):
        assert equal.practical.n_full_columns == uniform.practical.n_full_columns
        assert equal.guaranteed.n_full_columns == uniform.guaranteed.n_full_columns
        assert equal.practical.share == pytest.approx(uniform.practical.share, rel=1e-12)


@pytest.mark.parametrize("m, n, r", [(200, 300, 5), (60, 40, 10), (300, 100, 1)])
def test_practical_numbers_recover_gaussian_matrices(seed, m, n, r):
    rng = np.random.default_rng(seed)
    L, R = gaussian_factors(rng, m, n, r)
    M, size = L @ R, plan((m, n), r, delta=1e-3).practical
    full = np.unique(rng.integers(n, size=size.n_full_columns))
    U = np.linalg.svd(M[:, full], full_matrices=False)[0][:, :r]
    M_hat = np.empty_like(M)
    for i in range(n):
        omega = np.unique(rng.integers(m, size=size.n_entries))
        M_hat[:, i] = U @ np.linalg.lstsq(U[omega], M[omega, i], rcond=None)[0]
    M_hat[:, full] = M[:, full]
    assert np.linalg.norm(M_hat - M) <= 1e-8 * np.linalg.norm(M)


def test_coherent_bases_ask_for_more_entries(seed):
    rng = np.random.default_rng(seed)
    m, n, r = 200, 100, 4
    incoherent, spiked = (
        plan((m, n), r, basis=U, random_state=seed)
        for U in (random_basis(rng, m, r), spiked_basis(rng, m, r, weight=1.0))
    )
    # an incoherent basis changes nothing; here every column must see the first row: (1 - 1/m)^s small
    assert plan((m, n), r).practical.n_entries <= incoherent.practical.n_entries <= 20
    assert spiked.practical.n_entries > m * math.log(10)
    assert spiked.coherence == pytest.approx(m / r) and "of the basis" in spiked.coherence_source
    assert str(spiked).startswith("Measure the whole matrix of 200 x 100 values. A plan would need")
    assert "\n" not in str(spiked) and "inf" not in str(spiked)
    mild = plan((m, n), r, basis=spiked_basis(rng, m, r, weight=0.9999), random_state=seed)
    assert incoherent.practical.n_entries < mild.practical.n_entries <= spiked.guaranteed.n_entries


def test_plan_with_a_basis_is_reproducible():
    U = random_basis(np.random.default_rng(0), 100, 3)
    first, second, other = (plan((100, 50), 3, basis=U, noise_std=1.0, random_state=k) for k in (1, 1, 2))
    assert first == second and first.expected_error != other.expected_error


def test_simulated_error_agrees_with_the_closed_form(seed):
    m, n, r, s = 400, 30, 4, 40
    U = random_basis(np.random.default_rng(seed), m, r)
    simulated = plan((m, n), r, basis=U, noise_std=0.5, n_entries=s, random_state=seed)
    closed = plan((m, n), r, noise_std=0.5, n_entries=s)
    n_distinct = theory.expected_distinct(s, m)
    assert closed.expected_error == pytest.approx(0.25 * r * (m - r - 1) / (n_distinct - r - 1))
    assert simulated.expected_error == pytest.approx(closed.expected_error, rel=0.12)
    assert closed.expected_rms == pytest.approx(math.sqrt(closed.expected_error / m))
    assert (simulated.error_source[:4], closed.error_source[:6]) == ("mean", "closed")


def test_noise_formula_is_the_error_of_least_squares(seed):
    rng = np.random.default_rng(seed)
    m, r, s, sigma = 150, 3, 30, 0.1
    U = random_basis(rng, m, r)
    errors = []
    for _ in range(600):
        omega = np.unique(rng.integers(m, size=s))
        c = U @ rng.standard_normal(r)
        x = c + sigma * rng.standard_normal(m)
        errors.append(np.sum((U @ np.linalg.lstsq(U[omega], x[omega], rcond=None)[0] - c) ** 2))
    answer = plan((m, 20), r, basis=U, noise_std=sigma, n_entries=s, random_state=seed)
    assert answer.expected_error == pytest.approx(np.mean(errors), rel=0.25)


def test_noise_in_the_full_columns(seed):
    rng = np.random.default_rng(seed)
    m, n, r, sigma = 120, 60, 2, 1e-4
    answer = plan((m, n), r, noise_std=sigma, delta=1e-9, n_entries=30)  # delta: enough full columns for a mean
    d = round(answer.practical.expected_columns)
    errors = []
    for _ in range(500):
        L, R = gaussian_factors(rng, m, d, r)
        U = np.linalg.svd(L @ R + sigma * rng.standard_normal((m, d)), full_matrices=False)[0][:, :r]
        c, omega = L @ rng.standard_normal(r), np.unique(rng.integers(m, size=30))
        x = c + sigma * rng.standard_normal(m)
        errors.append(np.sum((U @ np.linalg.lstsq(U[omega], x[omega], rcond=None)[0] - c) ** 2))
    assert answer.expected_error + answer.column_space_error == pytest.approx(np.mean(errors), rel=0.3)


def test_all_rows_leave_the_noise_of_rank_directions():
    U = random_basis(np.random.default_rng(0), 20, 4)
    for basis in (None, U):
        answer = plan((20, 30), 4, noise_std=3.0, basis=basis, n_entries=2_000, random_state=0)
        assert answer.expected_error == pytest.approx(9 * 4)


def test_too_few_entries_have_no_finite_error():
    U = random_basis(np.random.default_rng(0), 50, 4)
    for basis in (None, U):
        for noise_std in (0.0, 1.0):
            answer = plan((50, 30), 4, noise_std=noise_std, basis=basis, n_entries=3, random_state=0)
            assert answer.expected_error == math.inf and "too few" in str(answer)


@pytest.mark.parametrize("shape, rank", [((1, 1), 1), ((1, 9), 1), ((9, 1), 1), ((5, 7), 5), ((4, 3), 2)])
def test_smallest_shapes(shape, rank):
    basis = np.eye(shape[0])[:, :rank]
    for answer in (
        plan(shape, rank, noise_std=0.1),
        plan(shape, rank, noise_std=0.1, basis=basis, random_state=0),
    ):
        assert 0 < answer.practical.share <= 1 and 0 < answer.guaranteed.share <= 1
        assert "Measure" in str(answer)


# ----------------------------------------------------------------------------------------------- bad input


NAN = np.array([[1.0, np.nan]])
THEOREM2 = {"epsilon": 0.5, "column_coherence": 2.0, "basis_coherence": 2.0, "residual_coherence": 2.0}


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: theory.coherence(NAN), ValueError, "NaN or infinite"),
        (lambda: theory.coherence(np.zeros((2, 3))), ValueError, "M is zero"),
        (lambda: theory.coherence(np.ones(3)), ValueError, r"2 dimensions, none of them empty; got shape \(3,\)"),
        (lambda: theory.coherence(np.ones((0, 3))), ValueError, "none of them empty"),
        (
            lambda: theory.coherence(np.ones((2, 2), dtype=complex)),
            TypeError,
            "real numbers; got dtype complex",
        ),
        (lambda: theory.coherence(np.ma.masked_equal(np.eye(2), 0)), ValueError, "masked"),
        (
            lambda: theory.coherence(np.eye(3), rank=True),
            TypeError,
            "whole number from 1 to 3, the numerical rank; got True",
        ),
        (
            lambda: theory.coherence(np.eye(3), rank=0),
            ValueError,
            "whole number from 1 to 3, the numerical rank; got 0",
        ),
        (lambda: theory.coherence((np.ones((3, 2)), np.ones((3, 2)))), ValueError, r"\(m, k\) and \(k, n\)"),
        (lambda: theory.coherence((np.eye(2),)), ValueError, "two factors"),
        (
            lambda: theory.coherence((np.eye(2)[:, :1] @ [[1, 0]], [[0, 0], [0, 1]])),
            ValueError,
            "L @ R is zero",
        ),
        (
            lambda: theory.basis_coherence(np.ones((3, 2))),
            ValueError,
            "orthonormalise it with numpy.linalg.qr",
        ),
        (lambda: theory.basis_coherence(np.eye(3)[:2]), ValueError, "U must be orthonormal"),
        (lambda: theory.column_coherence(np.zeros((2, 2))), ValueError, "M is zero"),
        (lambda: theory.vector_coherence(np.zeros(3)), ValueError, "x is zero"),
        (lambda: theory.vector_coherence([[1.0]]), ValueError, "must have 1 dimensions"),
        (
            lambda: theory.corollary1((5, 0), 1, 1),
            ValueError,
            r"shape\[1\] must be a whole number from 1 on; got 0",
        ),
        (lambda: theory.corollary1((5, 2.0), 1, 1), TypeError, r"shape\[1\] must be a whole number from 1 on; got 2.0"),
        (lambda: theory.corollary1(5, 1, 1), TypeError, r"pair \(n_rows, n_columns\); got 5"),
        (lambda: theory.corollary1((5, 6), 6, 1), ValueError, "rank must be a whole number from 1 to 5; got 6"),
        (
            lambda: theory.corollary1((5, 6), 2, 0.5),
            ValueError,
            r"coherence must be a finite number in \[1, 3\]; got 0.5",
        ),
        (
            lambda: theory.corollary1((5, 6), 2, 3.1),
            ValueError,
            r"coherence must be a finite number in \[1, 3\]; got 3.1",
        ),
        (lambda: theory.corollary1((5, 6), 2, math.nan), ValueError, "coherence .* got nan"),
        (lambda: theory.corollary1((5, 6), 2, "2"), TypeError, "finite number .* got '2'"),
        (
            lambda: theory.corollary1((5, 6), 2, 2, delta=0),
            ValueError,
            r"delta must be a finite number in \(0, 1\); got 0",
        ),
        (
            lambda: theory.corollary1((5, 6), 2, 2, delta=1),
            ValueError,
            r"delta must be a finite number in \(0, 1\); got 1",
        ),
        (
            lambda: theory.theorem1((5, 2), 1, 1, probabilities=[1.0]),
            ValueError,
            r"2 real numbers, one per column; got float64 of shape \(1,\)",
        ),
        (
            lambda: theory.theorem1((5, 2), 1, 1, probabilities=[1.0, 0.0]),
            ValueError,
            r"probabilities\[1\] is 0",
        ),
        (
            lambda: theory.theorem1((5, 2), 1, 1, probabilities=[0.5, 0.6]),
            ValueError,
            "must sum to 1; they sum to .*1.1",
        ),
        (lambda: theory.lemma2(2, math.inf, 3, delta=0.1), ValueError, "coherence .* got inf"),
        (lambda: theory.theorem2((9, 9), 2, **THEOREM2 | {"epsilon": 0}), ValueError, r"in \(0, 1\]"),
        (lambda: theory.theorem2((9, 9), 2, **THEOREM2 | {"epsilon": 1.5}), ValueError, r"in \(0, 1\]"),
        (lambda: theory.theorem2((9, 7), 2, **THEOREM2 | {"column_coherence": 8}), ValueError, r"\[1, 7\]"),
        (lambda: theory.theorem2((9, 7), 2, **THEOREM2 | {"basis_coherence": 5}), ValueError, r"\[1, 4.5\]"),
        (
            lambda: theory.theorem2((9, 7), 2, **THEOREM2 | {"residual_coherence": 10}),
            ValueError,
            r"\[1, 9\]",
        ),
        (
            lambda: plan((9, 9), 2, noise_std=-1),
            ValueError,
            r"noise_std must be a finite number in \[0, 1e\+150\]; got -1",
        ),
        (lambda: plan((9, 9), 2, noise_std=math.inf), ValueError, "noise_std .* got inf"),
        (lambda: plan((9, 9), 2, n_entries=0), ValueError, "n_entries .* got 0"),
        (lambda: plan((9, 9), 2, basis=np.eye(9)), ValueError, r"shape \(9, 9\), allowed is .* \(9, 2\)"),
        (lambda: plan((9, 9), 2, basis=np.ones((9, 2))), ValueError, "basis must be orthonormal"),
        (lambda: plan((9, 9), 2, delta=2.0), ValueError, "delta .* got 2.0"),
        (lambda: plan((9, 9), 2, coherence=9), ValueError, r"coherence .* \[1, 4.5\]; got 9"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
