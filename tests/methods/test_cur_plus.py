from importlib import import_module

import numpy as np
import pytest

from colonnade import Observations, Source, Status
from colonnade.methods import cur_plus
from colonnade.methods._reading import by_chance, distinct
from colonnade.methods.cur_plus import _middle

from problems import low_rank


def noisy(rng, m=40, n=50, r=3):
    L, R = low_rank(rng, m, n, r)
    return L @ R + 0.3 * rng.standard_normal((m, n))


def product(answer):
    return answer.basis @ answer.coefficients


def test_with_all_entries_it_is_the_projection(rng, seed):
    """Z = U'M V, so that the answer is U U'M V V'."""
    M = noisy(rng)
    answer = cur_plus(M, rank=3, n_columns=8, n_rows=9, n_entries=M.size, random_state=seed)
    same = np.random.default_rng(seed)
    columns, rows = distinct(same, 50, 8), distinct(same, 40, 9)
    U = np.linalg.svd(M[:, columns])[0][:, :3]
    V = np.linalg.svd(M[rows])[2][:3].T
    np.testing.assert_allclose(product(answer), U @ U.T @ M @ V @ V.T, atol=1e-12)


def test_is_the_least_squares_problem_as_written(rng, seed):
    M = noisy(rng)
    answer = cur_plus(M, rank=3, n_columns=8, n_rows=9, n_entries=200, random_state=seed)
    same = np.random.default_rng(seed)
    columns, rows, places = distinct(same, 50, 8), distinct(same, 40, 9), distinct(same, M.size, 200)
    U = np.linalg.svd(M[:, columns])[0][:, :3]
    V = np.linalg.svd(M[rows])[2][:3].T
    i, j = places % 40, places // 40
    design = np.einsum("ka,kb->kab", U[i], V[j]).reshape(200, 9)
    Z = np.linalg.lstsq(design, M[i, j], rcond=None)[0].reshape(3, 3)
    np.testing.assert_allclose(product(answer), U @ Z @ V.T, atol=1e-11)


def test_ill_conditioned_entries_cost_the_condition_and_not_its_square(rng):
    """Two directions that the entries hardly tell apart, exact data: the correction mends what squaring has cost."""
    U, V = (np.linalg.qr(rng.standard_normal((k, 2)))[0] for k in (40, 50))
    rows = np.arange(12)
    U[rows, 1] = U[rows, 0] * (1 + 1e-5 * rng.standard_normal(12))
    i, j = np.tile(rows, 10), np.repeat(np.arange(10), 12)
    Z = rng.standard_normal((2, 2))
    o = Observations.from_triplets(i, j, np.einsum("ka,ab,kb->k", U[i], Z, V[j]), (40, 50))
    condition = np.linalg.cond(np.einsum("ka,kb->kab", U[i], V[j]).reshape(120, 4))
    assert np.abs(_middle(U, V, o) - Z).max() <= 20 * condition * np.finfo(float).eps < 1e-7


def test_ranks_of_columns_and_rows_may_differ(rng, seed):
    """One column of rank one and three rows: the ranks that are there are taken."""
    L, R = low_rank(rng, 40, 50, 1)
    answer = cur_plus(L @ R, rank=3, n_columns=4, n_rows=5, n_entries=60, random_state=seed)
    assert answer.rank == 1
    np.testing.assert_allclose(answer.to_dense(), L @ R, atol=1e-12)


def test_reads_the_union(rng, seed):
    M = noisy(rng)
    source = Source(M)
    answer = cur_plus(source, rank=2, n_columns=8, n_rows=9, n_entries=200, random_state=seed)
    same = np.random.default_rng(seed)
    seen = np.zeros(M.shape, bool)
    seen[:, distinct(same, 50, 8)] = True
    seen[distinct(same, 40, 9)] = True
    places = distinct(same, M.size, 200)
    seen[places % 40, places // 40] = True
    assert source.entries_read == seen.sum() == answer.observations.rows.size


def test_too_few_entries_leave_the_columns_open(rng, seed):
    M = noisy(rng)
    answer = cur_plus(M, rank=3, n_columns=8, n_rows=9, n_entries=8, random_state=seed)
    o = answer.observations
    assert (answer.status[o.partial_columns] == Status.UNDETERMINED).all()
    assert np.isnan(answer.to_dense()).sum() == M.size - o.rows.size


def test_blocks_do_not_matter(rng, monkeypatch):
    M = noisy(rng)
    arguments = {"rank": 3, "n_columns": 8, "n_rows": 9, "n_entries": 300, "random_state": 1}
    whole = cur_plus(M, **arguments).to_dense()
    monkeypatch.setattr(import_module("colonnade.methods.cur_plus"), "BLOCK_CELLS", 27)
    monkeypatch.setattr(import_module("colonnade.methods._reading"), "BLOCK_CELLS", 7)
    np.testing.assert_allclose(cur_plus(M, **arguments).to_dense(), whole, atol=1e-12)


@pytest.mark.parametrize(("size", "count"), [(10, 0), (10, 1), (10, 5), (10, 7), (10, 10), (10**12, 1000)])
def test_distinct_draws(rng, size, count):
    drawn = distinct(rng, size, count)
    assert drawn.size == count == np.unique(drawn).size and (np.diff(drawn) > 0).all()
    assert count == 0 or (drawn[0] >= 0 and drawn[-1] < size)


def test_distinct_draws_are_uniform(rng):
    counts = sum(np.bincount(distinct(rng, 12, 5), minlength=12) for _ in range(4000))
    assert np.abs(counts - 4000 * 5 / 12).max() < 5 * np.sqrt(4000 * 5 / 12 * 7 / 12)


def test_draws_by_chance(rng):
    np.testing.assert_array_equal(by_chance(rng, 9, 1.0), np.arange(9))
    assert by_chance(rng, 9, 0.0).size == 0 and by_chance(rng, 10**12, 1e-300).size == 0
    counts = sum(np.bincount(by_chance(rng, 12, 0.3), minlength=12) for _ in range(4000))
    assert np.abs(counts - 1200).max() < 5 * np.sqrt(4000 * 0.3 * 0.7)
    total = by_chance(rng, 10**9, 1e-4).size
    assert abs(total - 10**5) < 6 * np.sqrt(10**5)
