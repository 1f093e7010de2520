"""What must be survived: each is refused by a sentence that names the place and the remedy, or answered rightly."""

import numpy as np
import pytest
from scipy import sparse

import colonnade as co
from colonnade import Status

from problems import hide, low_rank


def known_matrix(seed=0):
    rng = np.random.default_rng(seed)
    L, R = low_rank(rng, 12, 15, 2)
    return hide(rng, L @ R, 4, 6)[0]


@pytest.mark.parametrize(
    "data, words",
    [
        (np.zeros((0, 3)), r"none of them 0; got shape \(0, 3\)"),
        (np.zeros((3, 0)), r"got shape \(3, 0\)"),
        (np.zeros(3), r"two dimensions.*got shape \(3,\)"),
        (np.zeros((2, 2, 2)), r"two dimensions.*got shape \(2, 2, 2\)"),
        (5.0, r"two dimensions.*got shape \(\)"),
        ([[1.0, 2.0], [3.0]], "rows have different lengths"),
    ],
)
def test_1_shapes(data, words):
    with pytest.raises(ValueError, match=words):
        co.complete(data)


def test_4_infinite_entries():
    with pytest.raises(ValueError, match="row 1, column 0 is inf"):
        co.Observations.from_triplets([0, 1], [0, 0], [1.0, np.inf], (2, 2))


@pytest.mark.parametrize(
    "rank, error, words",
    [
        (
            0,
            ValueError,
            "rank must be a whole number from 1 to 4, the smaller of 12 rows and 4 full columns, or 'auto'; got 0",
        ),
        (-1, ValueError, "got -1"),
        (5, ValueError, "from 1 to 4.*got 5"),
        (True, TypeError, "got True"),
        (2.0, TypeError, "got 2.0"),
        (float("nan"), TypeError, "got nan"),
        ("2", TypeError, "got '2'"),
        (None, TypeError, "got None"),
    ],
)
def test_7_ranks(rank, error, words):
    with pytest.raises(error, match=words):
        co.complete(known_matrix(), rank=rank)


M = np.arange(20.0).reshape(4, 5)


@pytest.mark.parametrize(
    "settings, error, words",
    [
        (
            {"rank": 4},
            ValueError,
            "rank must be a whole number from 1 to 3, the smaller of the rows and n_full_columns",
        ),
        ({"n_full_columns": 0}, ValueError, "n_full_columns .* got 0"),
        ({"n_full_columns": 1.5}, TypeError, "n_full_columns .* got 1.5"),
        ({"n_entries": 0}, ValueError, "n_entries .* got 0"),
        ({"n_entries": True}, TypeError, "n_entries .* got True"),
        ({"probabilities": [0.2] * 4}, ValueError, r"5 real numbers, one per column; got float64 of shape \(4,\)"),
        ({"probabilities": [0.25] * 4 + [0.0]}, ValueError, r"probabilities\[4\] is 0.0"),
        ({"probabilities": [0.5, 0.5, 0.5, -0.25, -0.25]}, ValueError, r"probabilities\[3\] is -0.25"),
        ({"probabilities": [0.2, 0.2, np.nan, 0.2, 0.2]}, ValueError, r"probabilities\[2\] is nan"),
        ({"probabilities": [0.3] * 5}, ValueError, "must sum to 1; they sum to .*: divide them by their sum"),
        ({"probabilities": ["a"] * 5}, ValueError, "real numbers"),
        ({"random_state": -1}, ValueError, "random_state must be None, a whole number >= 0 or a Generator; got -1"),
        ({"random_state": "x"}, TypeError, "random_state .* got 'x'"),
    ],
)
def test_7_arguments_of_algorithm_1(settings, error, words):
    with pytest.raises(error, match=words):
        co.algorithm1(M, **{"rank": 2, "n_full_columns": 3, "n_entries": 2, **settings})


@pytest.mark.parametrize(
    "settings, error, words",
    [
        ({"center": 1}, ValueError, "center must be one of True, False, 'auto'; got 1"),
        ({"shrinkage": -1}, ValueError, r"shrinkage must be a finite number from 0 on, or 'auto'; got -1"),
        ({"shrinkage": np.nan}, ValueError, "got nan"),
        ({"shrinkage": "much"}, TypeError, "got 'much'"),
        ({"refine": -1}, ValueError, "refine .* got -1"),
        ({"bounds": (1, 0)}, ValueError, r"low < high; got \(1, 0\)"),
        ({"bounds": 3}, TypeError, "pair"),
    ],
)
def test_7_arguments_of_complete(settings, error, words):
    with pytest.raises(error, match=words):
        co.complete(known_matrix(), **settings)


def test_8_mixed_scales_are_answered_or_named(rng):
    L, R = low_rank(rng, 30, 40, 2)
    with np.errstate(over="ignore"):
        M = L @ R * 10.0 ** rng.uniform(-300, 300, 40)
    known, seen = hide(rng, M, 10, 8)
    completion = co.complete(known)
    dense = completion.to_dense()
    for j in range(40):
        if Status(completion.status[j]).is_filled:
            np.testing.assert_allclose(dense[:, j], M[:, j], rtol=0, atol=1e-9 * np.abs(M[:, j]).max())
        else:
            assert np.isnan(dense[~seen[:, j], j]).all()
    assert (completion.status <= Status.SOLVED).sum() >= 38


def test_8_the_largest_numbers_are_answered_or_named():
    u = np.array([1.0, -0.5, 0.25, 0.75])
    M = np.outer(u, [1.7e308, -1.7e308, 1.2e308])
    known = M.copy()
    known[2, 2] = np.nan
    completion = co.complete(known)
    value = completion.to_dense()[2, 2]
    assert abs(value / M[2, 2] - 1) < 1e-12 or (np.isnan(value) and completion.status[2] == Status.OVERFLOW)


@pytest.mark.parametrize(
    "rows, columns, error, words",
    [
        ([0, 2], [0, 0], IndexError, r"rows must lie in 0..1; rows\[1\] is 2"),
        ([0, 1], [0, -1], IndexError, r"columns\[1\] is -1"),
        ([0, np.nan], [0, 0], ValueError, r"rows\[1\] is nan"),
        ([0, 3.7], [0, 0], ValueError, r"rows\[1\] is 3.7"),
        (["0", "1"], [0, 0], TypeError, "rows must be whole numbers"),
        ([0], [0, 1], ValueError, "of one length"),
    ],
)
def test_12_indices_of_triplets(rows, columns, error, words):
    with pytest.raises(error, match=words):
        co.Observations.from_triplets(rows, columns, [1.0, 2.0], (2, 2))


def test_12_sparse_matrices_with_wild_indices():
    S = sparse.csc_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    S.indices = np.array([0, 7], np.int32)
    with pytest.raises(IndexError, match=r"indices must lie in 0..1; indices\[1\] is 7"):
        co.complete(S)
    S.indices = np.array([0, -3], np.int32)
    with pytest.raises(IndexError, match="is -3"):
        co.complete(S)
    S.indices, S.indptr = np.array([0, 1], np.int32), np.array([0, 5, 2], np.int32)
    with pytest.raises(ValueError, match="indptr"):
        co.complete(S)


@pytest.mark.parametrize(
    "weights, error, words",
    [
        (np.ones((3, 3)), ValueError, r"shape of the data, \(2, 2\); got \(3, 3\)"),
        (np.array([[1.0, 0.0], [1.0, 1.0]]), ValueError, r"positive and finite; weights\[0, 1\] is 0.0"),
        (np.array([[1.0, np.nan], [1.0, 1.0]]), ValueError, r"weights\[0, 1\] is nan"),
        (np.array([["a", "b"], ["c", "d"]]), TypeError, "weights must be real numbers"),
    ],
)
def test_weights(weights, error, words):
    with pytest.raises(error, match=words):
        co.Observations.from_dense(np.ones((2, 2)), weights=weights)


def test_sources_must_know_their_entries():
    M = np.ones((3, 4))
    M[1, 2] = np.nan
    with pytest.raises(ValueError, match="gave nan at row 1, column 2"):
        co.observe(M, n_full_columns=40, n_entries=1, random_state=0)
    with pytest.raises(ValueError, match="asked for 3 entries and returned float64 of shape"):
        co.Source(lambda i, j: np.ones(7), shape=(3, 4)).columns([0])
    with pytest.raises(TypeError, match="needs shape="):
        co.Source(lambda i, j: i)
    with pytest.raises(TypeError, match="real numbers"):
        co.Source(np.ones((2, 2), complex))


@pytest.mark.parametrize("rows, columns", [([0, 12], [0, 0]), ([0], [15]), ([-1], [0])])
def test_entries_outside_the_matrix(rows, columns):
    with pytest.raises(IndexError, match="must lie in 0"):
        co.complete(known_matrix()).entries(rows, columns)


def test_11_masks_are_honoured_or_refused():
    masked = np.ma.array([1.0, 999.0], mask=[False, True])
    assert co.Observations.from_triplets([0, 1], [0, 0], masked, (2, 1)).values.tolist() == [1.0]
    rows = [np.ma.array([1.0, 999.0], mask=[False, True]), np.ma.array([1.0, 2.0])]
    assert co.Observations.from_dense(rows).values.tolist() == [1.0, 1.0, 2.0]
    matrix = np.ma.array(np.ones((2, 2)), mask=[[False, False], [False, True]])
    for call in (
        lambda: co.observe(matrix, n_full_columns=1, n_entries=1),
        lambda: co.fit_column_space(matrix),
        lambda: co.Source(lambda i, j: np.ma.array(np.ones(i.size), mask=True), shape=(2, 2)).columns([0]),
        lambda: co.Observations.from_dense(np.ones((2, 2)), weights=matrix),
        lambda: co.Observations.from_triplets(masked, [0, 0], [1.0, 2.0], (2, 1)),
    ):
        with pytest.raises(ValueError, match="has masked entries"):
            call()


def test_12_a_format_that_cannot_tell_zeros_is_refused():
    with pytest.raises(TypeError, match="dia does not tell stored zeros"):
        co.complete(sparse.dia_array(np.eye(3)))


@pytest.mark.parametrize(
    "change, error, words",
    [
        (
            {"rows": np.array([0, 1, 2, 900_000_000, 1])},
            IndexError,
            "rows must lie in 0..2; they reach from 0 to 900000000",
        ),
        ({"rows": np.array([0, 1, 2, -1, 1])}, IndexError, "from -1"),
        ({"rows": np.array([0, 2, 1, 0, 1])}, ValueError, "rows must rise within each column"),
        ({"rows": [0, 1, 2, 0, 1]}, TypeError, "rows must be an array of 5 integers"),
        ({"values": np.ones(4)}, TypeError, "rows must be an array of 4 integers"),
        ({"indptr": np.array([0, 3, 2, 5])}, ValueError, "indptr must rise from 0 to the number of values, 5"),
        ({"full_columns": np.array([1])}, ValueError, "full_columns must be observed in every row"),
        ({"full_columns": np.array([7])}, IndexError, "full_columns must lie in 0..2"),
    ],
)
def test_observations_made_by_hand_are_checked(change, error, words):
    good = {
        "shape": (3, 3),
        "indptr": np.array([0, 3, 4, 5]),
        "rows": np.array([0, 1, 2, 0, 1]),
        "values": np.ones(5),
        "weights": None,
        "full_columns": np.array([0]),
    }
    made = co.Observations(**good)
    assert (made.indptr.dtype, made.rows.dtype) == (np.int64, np.int32)  # No other solver has to be compiled.
    co.complete(made)
    with pytest.raises(error, match=words):
        co.Observations(**{**good, **change})


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: co.Source(lambda i, j: i, (3, 3), dtype=int), TypeError, "must be float32 or float64; got int64"),
        (lambda: co.Source(lambda i, j: i + 1j, (3, 3)).columns([0]), ValueError, "returned complex128 of shape"),
        (lambda: co.Source(lambda i, j: ["a"] * i.size, (3, 3)).columns([0]), ValueError, "returned <U1 of shape"),
        (lambda: co.Source(np.ones((3, 3)), shape=(2, 2)), TypeError, "an array has its own"),
        (lambda: co.Source(sparse.eye_array(3)), TypeError, "an array or a function"),
        (lambda: co.solve_columns(*_small(), n_threads=-1), ValueError, "n_threads .* got -1"),
        (lambda: co.complete(known_matrix(), progress=3), TypeError, "progress must be a function"),
        (lambda: co.complete(known_matrix(), random_state="x"), TypeError, "random_state"),
        (lambda: co.complete(known_matrix(), rank=np.array([1, 2])), TypeError, "rank must be a whole number"),
        (lambda: co.complete(known_matrix()).columns([[0, 1]]), ValueError, r"got shape \(1, 2\)"),
        (lambda: co.complete(known_matrix()).columns(1.5), ValueError, "columns is 1.5"),
        (lambda: co.complete(known_matrix()).entries([0, 1], [0, 1, 2]), ValueError, "do not match"),
        (lambda: co.complete(known_matrix(), bounds="01"), TypeError, "pair"),
        (lambda: co.fit_column_space(np.ones((2, 2)), center="no"), ValueError, "center must be one of True, False"),
        (lambda: co.theory.expected_distinct(5, -1), ValueError, "n must be a whole number from 1 on"),
    ],
)
def test_other_arguments(make, error, words):
    with pytest.raises(error, match=words):
        make()


def _small():
    o = co.Observations.from_dense(known_matrix())
    return co.fit_column_space(o), o


def test_single_precision_that_cannot_hold_the_answer():
    known = np.full((30, 3), 2e38, np.float32)
    known[1:, 2] = np.nan
    completion = co.complete(known)
    assert completion.status[2] == Status.OVERFLOW and np.isnan(completion.to_dense()[1:, 2]).all()


def test_a_plan_for_a_matrix_of_any_size():
    assert co.plan((10**12, 10**12), 50).practical.n_full_columns == 52


@pytest.mark.parametrize("outlier", [1e150, 1e200, 1e306])
def test_8_one_wild_entry_spoils_only_its_column(outlier):
    rng = np.random.default_rng(0)
    M = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 40)) + 0.1 * rng.standard_normal((30, 40))
    known, seen = hide(rng, M, 10, 12)
    partial = np.flatnonzero(~seen.all(axis=0))
    wild = partial[4]
    known[np.flatnonzero(seen[:, wild])[0], wild] = outlier
    completion = co.complete(known)
    others = np.delete(np.arange(40), wild)
    assert np.isfinite(completion.columns(others)).all()
    assert len(completion.certificates()) == 40
    low, high = completion.interval(np.zeros(3, int), partial[:3])
    assert (low <= high).all()


def test_8_the_smallest_number_beside_ordinary_ones():
    exact = known_matrix()
    for noise in (0.0, 0.1):
        known = np.column_stack(
            [np.full(12, 5e-324), exact + noise * np.random.default_rng(1).standard_normal(exact.shape)]
        )
        completion = co.complete(known)
        assert np.isfinite(completion.to_dense()).all() and len(completion.certificates()) == 16
