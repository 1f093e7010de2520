import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from colonnade import Observations
from colonnade.methods import als, optspace

from problems import hide, space_angle


def low_rank(rng, m=100, n=90, r=3):
    return rng.standard_normal((m, r)) @ rng.standard_normal((r, n))


@pytest.mark.parametrize("rank", [3, "auto"])
@pytest.mark.parametrize("n_full", [0, 6])
def test_exact_data_are_recovered(rng, rank, n_full):
    M = low_rank(rng)
    known, _ = hide(rng, M, n_full, 30)
    answer = optspace(known, rank=rank, tol=1e-10, random_state=0)
    assert answer.rank == 3
    assert np.linalg.norm(answer.to_dense() - M) < 1e-8 * np.linalg.norm(M)


def test_very_unequal_singular_values(rng):
    """Directions that are added little by little, in a metric that treats all alike."""
    U, V = (np.linalg.qr(rng.standard_normal((k, 3)))[0] for k in (100, 90))
    M = (U * [300.0, 30.0, 3.0]) @ V.T
    known, _ = hide(rng, M, 6, 40)
    answer = optspace(known, tol=1e-11, max_iter=2_000, random_state=0)
    assert np.linalg.norm(answer.to_dense() - M) < 1e-4


def test_no_gradient_is_left(rng):
    """At the end X'E, E Y and with them all gradients are zero, E what is left of the entries."""
    known, seen = hide(rng, low_rank(rng) + 0.2 * rng.standard_normal((100, 90)), 4, 40)
    answer = optspace(known, rank=3, tol=1e-9, random_state=0)
    E = np.where(seen, known - answer.basis @ answer.coefficients, 0)
    Y = np.linalg.qr(answer.coefficients.T)[0]
    assert np.abs(answer.basis.T @ E).max() < 1e-5
    assert np.abs(E @ Y).max() < 1e-5


def test_is_plain_als(rng):
    known, _ = hide(rng, low_rank(rng) + 0.2 * rng.standard_normal((100, 90)), 4, 40)
    ours = optspace(known, rank=3, tol=1e-9, random_state=0)
    other = als(known, rank=3, penalty=0, center=False, tol=1e-9, max_sweeps=2_000, random_state=1)
    np.testing.assert_allclose(ours.to_dense(), other.to_dense(), atol=1e-5)


def test_trimming_throws_the_full_columns_away(rng):
    """Full columns of exact data span the space, and the start nearly has it; trimmed, it hardly does."""
    M = low_rank(rng, 200, 200)
    known, _ = hide(rng, M, 20, 8)
    truth = np.linalg.svd(M)[0][:, :3]
    with pytest.warns(ConvergenceWarning):
        kept = optspace(known, rank=3, max_iter=0, random_state=0)
        trimmed = optspace(known, rank=3, max_iter=0, trim=True, random_state=0)
    assert space_angle(kept.basis, truth) < 0.3
    assert space_angle(trimmed.basis, truth) > 0.6
    assert trimmed.choices["trimming"] == "20 columns and 0 rows left out of the start"


def test_trimming_changes_nothing_where_entries_are_even(rng):
    known, _ = hide(rng, low_rank(rng), 0, 40)
    left, right = (optspace(known, rank=3, trim=trim, random_state=0).to_dense() for trim in (True, False))
    assert (left == right).all()


def test_columns_with_few_entries_stay_empty(rng):
    known, _ = hide(rng, low_rank(rng), 4, 40)
    j = int(np.flatnonzero(np.isnan(known).any(axis=0))[0])
    seen = np.flatnonzero(~np.isnan(known[:, j]))
    known[seen[2:], j] = np.nan
    answer = optspace(Observations.from_dense(known), rank=3, random_state=0)
    assert np.isnan(answer.columns(j)).sum() == 98 and answer.status[j] == 4
