from importlib import import_module

import numpy as np
import pytest

from colonnade import Source, Status, complete
from colonnade.methods import nystrom
from colonnade.methods.nystrom import complete_cross, observe_cross

from problems import orthonormality


def low_rank(rng, m=60, n=50, r=4, noise=0.0):
    return rng.standard_normal((m, r)) @ rng.standard_normal((r, n)) + noise * rng.standard_normal((m, n))


def by_the_formula(M, observations, rank=None):
    """C W+ R as written, through a pseudo-inverse: the oracle."""
    columns = observations.full_columns
    rows = observations.rows[observations.indptr[observations.partial_columns[0]] :][: observations.n_observed.min()]
    W = M[np.ix_(rows, columns)]
    P, S, Qt = np.linalg.svd(W, full_matrices=False)
    k = rank or S.size
    return M[:, columns] @ (Qt[:k].T / S[:k]) @ P[:, :k].T @ M[rows]


@pytest.mark.parametrize("rank", [None, 4])
def test_exact_data_are_recovered(rng, rank):
    M = low_rank(rng)
    answer = nystrom(M, n_columns=8, n_rows=12, rank=rank, random_state=rng)
    o = answer.observations
    crossing = o.full_matrix()[o.rows[o.indptr[o.partial_columns[0]] :][:12]]
    sizes = np.linalg.svd(crossing, compute_uv=False)
    allowed = 60 * np.finfo(float).eps * sizes[0] / sizes[3] * np.linalg.norm(M)
    assert answer.rank == 4 and orthonormality(answer.basis) < 10
    assert np.linalg.norm(answer.to_dense() - M) <= allowed
    assert np.linalg.norm(answer.basis @ answer.coefficients - M) <= allowed


@pytest.mark.parametrize("rank", [None, 1, 3, 6])
def test_is_the_formula(rng, rank):
    M = low_rank(rng, noise=0.3)
    observations = observe_cross(M, n_columns=6, n_rows=15, random_state=rng)
    answer = complete_cross(observations, rank=rank)
    assert answer.rank == (rank or 6)
    np.testing.assert_allclose(answer.basis @ answer.coefficients, by_the_formula(M, observations, rank), atol=1e-10)


def test_in_full_is_algorithm1_on_shared_rows(rng):
    """C W+ R = U U_O+ R, U a basis of C: also with noise."""
    observations = observe_cross(low_rank(rng, noise=0.3), n_columns=6, n_rows=15, random_state=rng)
    ours = complete(observations, rank=6, center=False, shrinkage=0, refine=0)
    np.testing.assert_allclose(complete_cross(observations).to_dense(), ours.to_dense(), atol=1e-9)


def test_is_algorithm1_on_exact_data_when_the_ranks_agree(rng):
    observations = observe_cross(low_rank(rng), n_columns=8, n_rows=15, random_state=rng)
    ours = complete(observations, rank=4, center=False, shrinkage=0, refine=0)
    np.testing.assert_allclose(complete_cross(observations, rank=4).to_dense(), ours.to_dense(), atol=1e-9)


def test_reads_what_it_says_and_keeps_what_it_read(rng):
    M = low_rank(rng, noise=1.0)
    source = Source(M)
    answer = nystrom(source, n_columns=5, n_rows=9, random_state=rng)
    o = answer.observations
    assert source.entries_read == 5 * 60 + 45 * 9 == o.rows.size
    assert (o.n_observed[o.full_columns] == 60).all() and (o.n_observed[o.partial_columns] == 9).all()
    columns = np.repeat(np.arange(50), o.n_observed)
    np.testing.assert_array_equal(answer.to_dense()[o.rows, columns], M[o.rows, columns])
    assert (answer.status[o.full_columns] == Status.FULL).all()
    assert (answer.status[o.partial_columns] == Status.SOLVED).all()


def test_is_scaled_with_the_data_and_repeats_with_the_seed(rng, seed):
    M = low_rank(rng, noise=0.5)
    first, again, scaled = (nystrom(X, n_columns=5, n_rows=9, rank=3, random_state=seed) for X in (M, M, 2.0**40 * M))
    np.testing.assert_array_equal(first.to_dense(), again.to_dense())
    np.testing.assert_array_equal(2.0**40 * first.to_dense(), scaled.to_dense())


def test_single_precision_stays(rng):
    M = low_rank(rng, noise=0.5).astype(np.float32)
    answer = nystrom(M, n_columns=5, n_rows=20, rank=3, random_state=0)
    reference = nystrom(M.astype(float), n_columns=5, n_rows=20, rank=3, random_state=0)
    assert answer.basis.dtype == answer.coefficients.dtype == answer.to_dense().dtype == np.float32
    np.testing.assert_allclose(answer.to_dense(), reference.to_dense(), atol=1e-3)


def test_blocks_do_not_matter(rng, monkeypatch):
    M = low_rank(rng, noise=0.5)
    whole = nystrom(M, n_columns=5, n_rows=9, random_state=1).to_dense()
    monkeypatch.setattr(import_module("colonnade.methods._reading"), "BLOCK_CELLS", 27)
    np.testing.assert_allclose(nystrom(M, n_columns=5, n_rows=9, random_state=1).to_dense(), whole, atol=1e-12)


def test_all_columns_and_nothing_at_all(rng):
    M = low_rank(rng, noise=0.5)
    np.testing.assert_array_equal(nystrom(M, n_columns=50, n_rows=9, random_state=rng).to_dense(), M)
    nothing = nystrom(np.zeros((7, 6)), n_columns=2, n_rows=3, random_state=rng)
    assert nothing.rank == 0 and not nothing.to_dense().any()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"n_columns": 0}, ValueError, "n_columns must be a whole number from 1 to 50"),
        ({"n_columns": 51}, ValueError, "got 51"),
        ({"n_columns": 2.5}, TypeError, "n_columns"),
        ({"n_rows": 61}, ValueError, "n_rows must be a whole number from 1 to 60"),
        ({"n_rows": True}, TypeError, "n_rows"),
        ({"rank": 0}, ValueError, "rank"),
        ({"rank": 6}, ValueError, "smaller side of the crossing"),
        ({"random_state": "tomorrow"}, TypeError, "random_state"),
    ],
)
def test_bad_arguments(change, error, words):
    arguments = {"n_columns": 5, "n_rows": 9, "rank": 3, **change}
    with pytest.raises(error, match=words):
        nystrom(np.ones((60, 50)), **arguments)
