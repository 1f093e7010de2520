"""The number of threads, calls from several threads and forks change neither the answer nor the process."""

import multiprocessing
import os
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import colonnade as co
from colonnade import leaderboard, methods, theory
from colonnade._support.threads import one_blas_thread, product

from problems import hide, low_rank


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def noisy_table(rng, m=200, n=170, d=120, s=40):
    L, R = low_rank(rng, m, n, 5)
    return hide(rng, L @ R + 0.3 * rng.standard_normal((m, n)), d, s)[0]


def figures_of(completion) -> list:
    """All numbers that a completion tells."""
    m, n = completion.shape
    i, j = np.arange(n) % m, np.arange(n)
    table = completion.certificates()
    return [
        completion.basis,
        completion.coefficients,
        completion.to_dense(),
        completion.noise_std,
        *completion.interval(i, j),
        *completion.column_means(),
        *(table[name] for name in ("smallest_eigenvalue", "condition", "residual", "uncertainty", "more_entries")),
    ]


def completed(known):
    return figures_of(co.complete(known))


def refined(known):
    return figures_of(co.complete(known.astype(np.float32), refine=2))


def imputed(known):
    rows, columns = co.CompleteColumnsImputer(), co.CompleteRowsImputer()
    return [rows.fit_transform(known), columns.fit_transform(known.T), columns.transform(known[:, ::-1].T)]


def chosen(known):
    U = co.fit_column_space(known[:, ~np.isnan(known).any(axis=0)], rank=20).basis
    scores = leaderboard.scores(known)
    return [U, co.select_rows(U, 25), leaderboard.select_questions(known, 20), scores.score, scores.low, scores.high]


def fitted(known):
    M = np.nan_to_num(known)
    found = [
        methods.als(known, rank=5, random_state=0),
        methods.soft_impute(known, penalty=20.0, random_state=0),
        methods.tall_project(known, rank=5, random_state=0),
        methods.nystrom(M, n_columns=100, n_rows=100, random_state=0),
        methods.cur_plus(M, rank=5, n_columns=100, n_rows=100, n_entries=15_000, random_state=0),
        methods.active_columns(M, rank=5, n_full_columns=100, n_entries=100, by="norm", random_state=0),
        methods.adaptive_column_sampling(M, rank=5, n_full_columns=50, random_state=0),
    ]
    return [part for one in found for part in (one.basis, one.coefficients)] + [theory.coherence(M, 5)]


def acquired(known):
    """Of a source without noise, whose directions are found one by one."""
    M = np.outer(np.arange(3000.0), known[0])[:, ~np.isnan(known[0])] + np.sin(np.arange(3000.0))[:, None]
    return figures_of(co.acquire(M, budget=60_000, random_state=0))


def asked_for(known):
    """A table of a million numbers, with the settings given."""
    table = np.vstack([known + 0.1 * k for k in range(40)])
    completion = co.complete(table, rank=5, center=True, shrinkage=0.1, refine=0)
    return [completion.basis, completion.coefficients, completion.to_dense()]


@pytest.mark.parametrize(
    "figures", [completed, refined, pytest.param(imputed, marks=pytest.mark.slow), chosen, fitted, acquired, asked_for]
)
@pytest.mark.filterwarnings("ignore:soft_impute")
def test_bytes_do_not_depend_on_the_number_of_threads(monkeypatch, figures):
    known = noisy_table(np.random.default_rng(0))
    found = []
    for n_threads in (1, 2):
        monkeypatch.setenv("OMP_NUM_THREADS", str(n_threads))
        with threadpool_limits(n_threads, user_api="blas"):
            found.append([np.asarray(figure).tobytes() for figure in figures(known)])
    assert found[0] == found[1]


@pytest.mark.parametrize(("m", "d", "rank"), [(1500, 450, 5), (20_000, 40, None), (900, 300, None)])
def test_the_column_space_does_not_depend_on_the_number_of_threads(monkeypatch, rng, m, d, rank):
    L, R = low_rank(rng, m, d, 5)
    A, found = L @ R + 0.1 * rng.standard_normal((m, d)), []
    for n_threads in (1, 2):
        monkeypatch.setenv("OMP_NUM_THREADS", str(n_threads))
        with threadpool_limits(n_threads, user_api="blas"):
            space = co.fit_column_space(A, rank=rank, center=True)
        found.append([space.basis.tobytes(), space.singular_values.tobytes(), space.noise_std])
    assert found[0] == found[1]


@pytest.mark.parametrize("shape", [(3, 4, 5), (5000, 100, 90), (90, 100, 5000), (0, 3, 2), (3, 0, 2), (1, 50, 1)])
def test_product_by_chunks_is_the_product(rng, shape):
    m, k, n = shape
    A, B = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    np.testing.assert_allclose(product(A, B), A @ B, rtol=1e-12, atol=1e-12)
    assert product(A.astype(np.float32), B.astype(np.float32)).dtype == np.float32


def test_calls_from_several_threads_leave_the_process_as_it_was():
    known = noisy_table(np.random.default_rng(1), 60, 50, 20, 15)
    with threadpool_limits(2, user_api="blas"):
        before, info = co.complete(known).to_dense(), blas_threads()
        answers = [None] * 6

        def work(k):
            answers[k] = [co.complete(known).to_dense() for _ in range(2)]

        threads = [threading.Thread(target=work, args=(k,)) for k in range(len(answers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert blas_threads() == info
        for filled in (one for answer in answers for one in answer):
            np.testing.assert_array_equal(filled, before)
        np.testing.assert_array_equal(co.complete(known).to_dense(), before)


def test_overlapping_calls_restore_what_the_first_one_found():
    """In the order that left one thread for good: the first to begin is the first to end."""
    inside, go_on = threading.Event(), threading.Event()

    def late():
        with one_blas_thread():
            inside.set()
            go_on.wait(10)

    with threadpool_limits(2, user_api="blas"):
        info, thread = blas_threads(), threading.Thread(target=late)
        with one_blas_thread():
            thread.start()
            assert inside.wait(10)
        assert set(blas_threads()) == {1}  # the other one is still at work
        go_on.set()
        thread.join()
        assert blas_threads() == info


def _in_child(known, results):
    before = blas_threads()
    results.put((before, co.complete(known).to_dense(), blas_threads()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("while_another_thread_computes", [False, True])
def test_a_forked_child_computes_the_same(while_another_thread_computes):
    known = noisy_table(np.random.default_rng(2), 60, 50, 20, 15)
    inside, go_on = threading.Event(), threading.Event()

    def compute():
        with one_blas_thread():
            inside.set()
            go_on.wait(60)

    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with threadpool_limits(2, user_api="blas"):
        expected, info = co.complete(known).to_dense(), blas_threads()
        thread = threading.Thread(target=compute)
        if while_another_thread_computes:
            thread.start()
            assert inside.wait(10)
        child = context.Process(target=_in_child, args=(known, results))
        child.start()
        before, filled, after = results.get(timeout=60)
        child.join()
        go_on.set()
        if while_another_thread_computes:
            thread.join()
        assert before == after == info == blas_threads()
    np.testing.assert_array_equal(filled, expected)
