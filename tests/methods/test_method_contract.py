"""What holds of every method that samples columns, rows or entries."""

import numpy as np
import pytest

from colonnade import Completion, Source, Status, methods

from problems import orthonormality

M_ROWS, N_COLUMNS, RANK = 60, 50, 3

# Name: (function, arguments, whether exact data are recovered, whether it reads the whole matrix)
METHODS = {
    "nystrom": (methods.nystrom, {"n_columns": 8, "n_rows": 15, "rank": RANK}, True, False),
    "cur_plus": (methods.cur_plus, {"rank": RANK, "n_columns": 8, "n_rows": 9, "n_entries": 300}, True, False),
    "adaptive_completion": (methods.adaptive_completion, {"n_entries": 15}, True, False),
    "lifelong bounded": (methods.lifelong_completion, {"n_entries": 15, "noise_bound": 1e-6}, True, False),
    "lifelong sparse": (methods.lifelong_completion, {"n_entries": 15, "noise": "sparse"}, True, False),
    "active norm": (
        methods.active_columns,
        {"by": "norm", "rank": RANK, "n_full_columns": 9, "n_entries": 20},
        False,
        False,
    ),
    "active leverage": (
        methods.active_columns,
        {"by": "leverage", "rank": RANK, "n_full_columns": 12, "n_entries": 15},
        True,
        False,
    ),
    "active residual": (
        methods.active_columns,
        {"by": "residual", "rank": RANK, "n_full_columns": 6, "n_entries": 15},
        True,
        False,
    ),
    "norm_sampling": (methods.norm_sampling, {"rank": RANK, "n_full_columns": 12}, True, True),
    "adaptive_column_sampling": (
        methods.adaptive_column_sampling,
        {"rank": RANK, "n_full_columns": 12, "n_rounds": 3},
        True,
        True,
    ),
    "entrywise_subsampling": (methods.entrywise_subsampling, {"rank": RANK, "share": 0.4}, False, False),
}
EVERY = pytest.mark.parametrize("name", METHODS)


def run(name, data, seed):
    function, arguments, *_ = METHODS[name]
    return function(data, random_state=seed, **arguments)


def exact(rng, m=M_ROWS, n=N_COLUMNS):
    return rng.standard_normal((m, RANK)) @ rng.standard_normal((RANK, n))


def noisy(rng):
    return exact(rng) + 0.2 * rng.standard_normal((M_ROWS, N_COLUMNS))


@EVERY
def test_exact_data_are_recovered_where_the_theory_says_so(name, rng, seed):
    M = exact(rng)
    answer = run(name, M, seed)
    assert isinstance(answer, Completion) and answer.rank == RANK and answer.choices["method"]
    assert orthonormality(answer.basis) < 10
    if METHODS[name][2]:
        assert np.linalg.norm(answer.to_dense() - M) <= 1e-11 * np.linalg.norm(M)
        assert np.linalg.norm(answer.basis @ answer.coefficients - M) <= 1e-11 * np.linalg.norm(M)


@EVERY
def test_every_entry_is_read_once_and_kept(name, rng, seed):
    M = noisy(rng)
    source = Source(lambda i, j: M[i, j], shape=M.shape)
    answer = run(name, source, seed)
    o = answer.observations
    assert source.entries_read == o.rows.size or METHODS[name][3]
    columns = np.repeat(np.arange(N_COLUMNS), o.n_observed)
    np.testing.assert_array_equal(o.values, M[o.rows, columns])
    np.testing.assert_array_equal(answer.to_dense()[o.rows, columns], o.values)
    assert set(o.full_columns) <= set(np.flatnonzero(o.n_observed == M_ROWS))
    assert (answer.status[o.full_columns] == Status.FULL).all()
    assert (answer.status[o.partial_columns] == Status.SOLVED).all()


@EVERY
def test_is_scaled_with_the_data_and_repeats_with_the_seed(name, rng, seed):
    M = noisy(rng)
    before = M.copy()
    first, again, scaled = (run(name, X, seed) for X in (M, M, 2.0**40 * M))
    np.testing.assert_array_equal(first.to_dense(), again.to_dense())
    np.testing.assert_array_equal(2.0**40 * first.to_dense(), scaled.to_dense())
    np.testing.assert_array_equal(M, before)


@EVERY
def test_single_precision_stays(name, rng):
    M = exact(rng).astype(np.float32)
    answer, reference = run(name, M, 0), run(name, M.astype(float), 0)
    assert answer.basis.dtype == answer.coefficients.dtype == answer.to_dense().dtype == np.float32
    if METHODS[name][2]:
        assert np.linalg.norm(answer.to_dense() - M) <= 1e-4 * np.linalg.norm(M)
    else:
        np.testing.assert_allclose(answer.to_dense(), reference.to_dense(), atol=1e-3)


@EVERY
@pytest.mark.parametrize("size", [1e-290, 1e300])
def test_wild_sizes_do_not_overflow_inside(name, rng, size):
    M = exact(rng)
    M *= size / np.abs(M).max()
    answer = run(name, M, 0)
    assert np.isfinite(answer.to_dense()).all()
    if METHODS[name][2]:
        assert np.abs(answer.to_dense() - M).max() <= 1e-9 * size


@EVERY
def test_nothing_but_zeros(name):
    answer = run(name, np.zeros((M_ROWS, N_COLUMNS)), 0)
    assert not answer.to_dense().any() and (answer.status <= Status.SOLVED).all()


@EVERY
def test_a_completion_can_be_saved_and_certified(name, rng, tmp_path):
    answer = run(name, noisy(rng), 0)
    answer.save(tmp_path / "answer")
    np.testing.assert_array_equal(Completion.load(tmp_path / "answer").to_dense(), answer.to_dense())
    assert answer.certificates().size == N_COLUMNS


@EVERY
def test_bad_random_state(name):
    with pytest.raises(TypeError, match="random_state must be"):
        run(name, np.ones((M_ROWS, N_COLUMNS)), "tomorrow")


@EVERY
def test_a_gap_in_the_source_is_refused(name):
    with pytest.raises(ValueError, match="a source must know every entry"):
        run(name, np.full((M_ROWS, N_COLUMNS), np.nan), 0)


@pytest.mark.parametrize(
    ("name", "change", "error", "words"),
    [
        ("cur_plus", {"rank": 9}, ValueError, "rank must be a whole number from 1 to 8, the least of"),
        ("cur_plus", {"n_columns": 51}, ValueError, "n_columns .* got 51"),
        ("cur_plus", {"n_rows": 0}, ValueError, "n_rows"),
        ("cur_plus", {"n_entries": 3001}, ValueError, "n_entries must be a whole number from 1 to 3,000"),
        ("adaptive_completion", {"n_entries": 61}, ValueError, "n_entries must be a whole number from 1 to 60"),
        ("adaptive_completion", {"n_entries": 2.5}, TypeError, "n_entries"),
        ("adaptive_completion", {"tolerance": 0.0}, ValueError, "tolerance must be a finite number in"),
        ("adaptive_completion", {"tolerance": np.nan}, ValueError, "tolerance"),
        ("adaptive_completion", {"progress": 3}, TypeError, "progress must be a function of"),
        ("lifelong bounded", {"noise": "loud"}, ValueError, "noise must be one of 'bounded', 'sparse'"),
        ("lifelong bounded", {"noise_bound": -1}, ValueError, "noise_bound"),
        ("lifelong sparse", {"noise_bound": 0.1}, ValueError, "noise_bound is for noise='bounded'"),
        ("active norm", {"by": "chance"}, ValueError, "by must be one of 'norm', 'leverage', 'residual'"),
        ("active norm", {"n_entries": 1}, ValueError, "one for the norm and one for the rest"),
        ("active norm", {"rank": 10}, ValueError, "smaller of the rows and n_full_columns"),
        ("active leverage", {"n_entries": 2}, ValueError, "from 3 to 60, from the rank to the rows"),
        ("active residual", {"n_entries": 6}, ValueError, "more than n_full_columns"),
        ("active residual", {"n_full_columns": 51}, ValueError, "n_full_columns must be .* from 1 to 50"),
        ("norm_sampling", {"rank": 13}, ValueError, "rank"),
        ("norm_sampling", {"n_full_columns": True}, TypeError, "n_full_columns"),
        ("adaptive_column_sampling", {"n_rounds": 13}, ValueError, "n_rounds must be a whole number from 1 to 12"),
        ("entrywise_subsampling", {"share": 0}, ValueError, "share"),
        ("entrywise_subsampling", {"share": 1.5}, ValueError, "share must be a finite number in"),
        ("entrywise_subsampling", {"rank": 51}, ValueError, "rank"),
    ],
)
def test_bad_arguments(name, change, error, words):
    function, arguments, *_ = METHODS[name]
    with pytest.raises(error, match=words):
        function(np.ones((M_ROWS, N_COLUMNS)), **{**arguments, **change})


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 2)])
def test_the_smallest_matrices(shape, rng):
    M = rng.standard_normal((shape[0], 1)) @ rng.standard_normal((1, shape[1]))
    one = {"rank": 1, "random_state": 0}
    answers = [
        methods.cur_plus(M, n_columns=1, n_rows=1, n_entries=M.size, **one),
        methods.adaptive_completion(M, n_entries=1, random_state=0),
        methods.lifelong_completion(M, n_entries=1, random_state=0),
        methods.active_columns(M, by="leverage", n_full_columns=1, n_entries=1, **one),
        methods.norm_sampling(M, n_full_columns=1, **one),
        methods.adaptive_column_sampling(M, n_full_columns=1, n_rounds=1, **one),
        methods.entrywise_subsampling(M, share=1.0, **one),
    ]
    for answer in answers:
        np.testing.assert_allclose(answer.to_dense(), M, rtol=1e-10)
