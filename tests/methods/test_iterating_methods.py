"""What all methods that iterate have in common."""

import hashlib
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from colonnade import Observations, Source, observe
from colonnade.methods import als, optspace, soft_impute, svt
from colonnade.methods._low_rank import _pieces_of, orthonormal, times, transposed_times

from problems import hide, low_rank, orthonormality, source_of


def thresholding(data, **settings):
    """SVT by as much as these small problems need."""
    return svt(data, **{"tol": 1e-3, "max_iter": 2_000, **settings})


METHODS = [als, optspace, soft_impute, thresholding]
every = pytest.mark.parametrize("method", METHODS, ids=[method.__name__ for method in METHODS])


def exact(rng, m=60, n=50, r=2):
    L, R = low_rank(rng, m, n, r)
    return L @ R


@pytest.mark.parametrize("width", [1, 400])
def test_products_by_threads_are_products(rng, width):
    """Also where a column holds most of the entries, so that some pieces are empty."""
    dense = np.where(rng.random((300, 400)) < 0.2, rng.standard_normal((300, 400)), 0.0)
    dense[:, 50:] *= rng.random(350) < 0.05
    E, (U, V) = sparse.csc_array(dense), (rng.standard_normal((k, width)) for k in dense.shape)
    scale = 300 * np.finfo(float).eps * np.linalg.norm(dense)
    assert np.abs(times(E, V) - dense @ V).max() < scale * np.linalg.norm(V, axis=0).max()
    assert np.abs(transposed_times(E, U) - dense.T @ U).max() < scale * np.linalg.norm(U, axis=0).max()


def test_pieces_of_many_entries():
    """More products than an int32 counts."""
    assert len(_pieces_of(np.arange(1001, dtype=np.int32) * 30_000, 100)) == 8


@pytest.mark.slow
@every
def test_threads_do_not_change_the_bytes(rng, method, monkeypatch):
    """Large enough that products are split."""
    L, R = low_rank(rng, 500, 600, 3)
    known, _ = hide(rng, L @ R + rng.standard_normal((500, 600)), 40, 130)
    settings = {"max_iter": 5} if method is not als else {"max_sweeps": 5}
    answers = []
    for n_threads in (1, 2, 3):
        monkeypatch.setenv("OMP_NUM_THREADS", str(n_threads))
        monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            answers.append(method(Observations.from_dense(known), random_state=0, **settings).to_dense().tobytes())
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("condition", [1.0, 1e6, 1e9, 1e14, np.inf])
def test_orthonormal_whatever_the_condition(rng, condition):
    U, V = (np.linalg.qr(rng.standard_normal((k, 20)))[0] for k in (200, 20))
    A = (U * np.geomspace(1, 1 / condition, 20) if np.isfinite(condition) else np.outer(U[:, 0], V[0])) @ V.T
    Q = orthonormal(A)
    assert orthonormality(Q) < 1
    assert np.linalg.norm(A - Q @ (Q.T @ A)) < 200 * np.finfo(float).eps * np.linalg.norm(A)


@every
def test_entries_are_read_by_observe_alone(rng, method):
    L, R = low_rank(rng, 60, 50, 2)
    source = source_of(L, R)
    observations = observe(source, n_full_columns=5, n_entries=30, random_state=rng)
    read = source.entries_read
    answer = method(observations, random_state=0)
    assert source.entries_read == read == observations.values.size
    assert answer.observations is observations and not answer.by_columns
    assert np.linalg.norm(answer.to_dense() - L @ R) < 0.05 * np.linalg.norm(L @ R)
    with pytest.raises(TypeError, match=r"draw them from the source with co\.observe"):
        method(source)


@every
def test_same_seed_same_bytes_and_input_unchanged(rng, method):
    known, _ = hide(rng, exact(rng), 4, 30)
    before = hashlib.sha256(known.tobytes()).digest()
    first, second = (method(known, random_state=3).to_dense() for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert hashlib.sha256(known.tobytes()).digest() == before


@pytest.mark.slow
@every
def test_scale_free(rng, method):
    known, _ = hide(rng, exact(rng), 4, 30)
    plain = method(known, random_state=0).to_dense()
    for scale in (2.0**900, 2.0**-900):
        np.testing.assert_allclose(method(known * scale, random_state=0).to_dense() / scale, plain, rtol=1e-8)


@every
def test_float32_in_float32_out(rng, method):
    known, _ = hide(rng, exact(rng), 4, 30)
    answer = method(known.astype(np.float32), random_state=0)
    assert answer.to_dense().dtype == answer.basis.dtype == answer.coefficients.dtype == np.float32
    np.testing.assert_allclose(answer.to_dense(), method(known, random_state=0).to_dense(), atol=0.05)


@every
def test_orthonormal_basis_with_positive_peaks(rng, method):
    answer = method(hide(rng, exact(rng), 4, 30)[0], random_state=0)
    U = answer.basis
    assert orthonormality(U) < 10
    assert (U[np.abs(U).argmax(axis=0), np.arange(answer.rank)] > 0).all()


@every
def test_progress_rises_to_the_end(rng, method):
    heard = []
    method(hide(rng, exact(rng), 4, 30)[0], random_state=0, progress=lambda done, total: heard.append((done, total)))
    assert heard and heard[-1][0] == heard[-1][1]
    assert all(0 <= done <= total for done, total in heard)


@every
def test_says_when_it_did_not_converge(rng, method):
    known, _ = hide(rng, exact(rng, r=4), 4, 30)
    most = {"max_sweeps" if method is als else "max_iter": 1}
    given = {thresholding: {}, soft_impute: {"penalty": 0.1}, als: {"rank": 4, "penalty": 0}, optspace: {"rank": 4}}[
        method
    ]
    with pytest.warns(
        ConvergenceWarning, match="(als|optspace|soft_impute|svt) did not converge in 1 (steps|sweeps).*Allow more"
    ):
        answer = method(known, random_state=0, **most, **given)
    assert answer.choices["iteration"].startswith("did not converge in 1 ")


@every
def test_edges(method):
    full = np.outer(np.arange(1.0, 6), np.arange(1.0, 5))
    assert (method(full, random_state=0).to_dense() == full).all()
    assert (method(np.zeros((4, 3)), random_state=0).to_dense() == 0).all()
    assert method(np.array([[2.0]]), random_state=0).to_dense() == 2
    with pytest.raises(ValueError, match="no entry is observed"):
        method(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="tol must be a finite number in"):
        method(full, tol=0)
    with pytest.raises(TypeError, match="progress must be a function"):
        method(full, progress=3)


@every
def test_what_is_not_seen_has_a_status(rng, method):
    known, _ = hide(rng, exact(rng), 4, 30)
    known[:, 7], known[11] = np.nan, np.nan
    settings = {"penalty": 0.01} if method is als else {}
    answer = method(Observations.from_dense(known), random_state=0, **settings)
    column = answer.columns(7)
    if method is optspace:
        assert np.isnan(column).all() and answer.status[7] == 3
    else:
        assert np.isfinite(column).all() and answer.status[7] == 7
    assert answer.choices["rows"].startswith("1 rows have no entry")


@every
def test_has_no_intervals_and_is_kept_on_disk(rng, method, tmp_path):
    answer = method(hide(rng, exact(rng), 4, 30)[0], random_state=0)
    with pytest.raises(ValueError, match="has no intervals"):
        answer.interval([0], [1])
    answer.save(tmp_path / "answer")
    assert (type(answer).load(tmp_path / "answer").to_dense() == answer.to_dense()).all()


def test_a_source_counts_once(rng):
    source = Source(exact(rng))
    observe(source, n_full_columns=3, n_entries=10, random_state=0)
    assert source.entries_read < 3 * 60 + 50 * 10
