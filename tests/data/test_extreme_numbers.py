"""Numbers near the ends of floating point, and tables in which nothing is left: an answer or a refusal, no warning.

Most of these were found by ``python -m benchmarks random_tables``.
"""

import numpy as np
import pytest

import colonnade as co
from colonnade import leaderboard, methods
from colonnade.model.leaving_out import leave_one_out
from colonnade.model.posterior import fitted_variances

from problems import hide, low_rank


def test_a_partial_column_that_was_drawn_in_every_row():
    """So that no row can be missing from it by chance."""
    completion = co.algorithm1(np.arange(1.0, 5.0)[None, :], rank=1, n_full_columns=1, n_entries=1, random_state=0)
    low, high = completion.interval(0, np.arange(4))
    np.testing.assert_array_equal(low, np.arange(1.0, 5.0))
    np.testing.assert_array_equal(high, low)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_rows_are_selected_without_a_prior_where_variances_are_beyond_floating_point(rng, size):
    space = co.fit_column_space(size * rng.standard_normal((24, 5)), rank=3)
    np.testing.assert_array_equal(co.select_rows(space, 7), co.select_rows(space.basis, 7))


def test_fewer_rows_than_directions_of_very_different_sizes(rng):
    """An exchange that would leave a direction open is never made, and its trace not computed."""
    space = co.fit_column_space(rng.standard_normal((12, 2)) @ rng.standard_normal((2, 9)) + 1e7)
    for k in (1, 2, 3):
        assert np.unique(co.select_rows(space, k)).size == k


@pytest.mark.parametrize("size", [1e-130, 1e130])
def test_questions_do_not_depend_on_the_unit(rng, size):
    M = rng.standard_normal((30, 8))
    expected = leaderboard.select_questions(M, 6)
    np.testing.assert_array_equal(leaderboard.select_questions(size * M, 6), expected)


@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_scores_of_numbers_without_variances_are_refused(rng, size):
    with pytest.raises(ValueError, match="have no variances in floating point: divide the data by it first"):
        leaderboard.scores(size * rng.standard_normal((30, 8)))


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e100, 1e200])
def test_acquisition_in_any_unit(rng, size):
    """The same entries are read as long as there are variances, which tell how noisy a column is."""
    L, R = low_rank(rng, 20, 30, 2)
    M = L @ R + 0.1 * rng.standard_normal((20, 30))
    one, other = (co.acquire(unit * M, budget=400, random_state=0) for unit in (1.0, size))
    assert other.observations.rows.size == one.observations.rows.size == 400
    told = np.isfinite(other.to_dense()).all(axis=0)
    np.testing.assert_array_equal(told, np.isin(other.status, [s for s in co.Status if s.is_filled]))
    if 1e-150 < size < 1e150:
        np.testing.assert_array_equal(other.observations.rows, one.observations.rows)


def test_acquisition_of_small_whole_numbers(seed):
    M = np.random.default_rng(seed).integers(-3, 4, (8, 9)).astype(float)
    for budget in range(8, 73, 8):
        completion = co.acquire(M, budget=budget, random_state=seed)
        o = completion.observations
        np.testing.assert_array_equal(o.values, M[o.rows, o.entry_columns])


def test_a_penalty_beyond_all_entries_leaves_zeros(rng):
    known, seen = hide(rng, 1e-100 * rng.standard_normal((12, 14)), 4, 6)
    filled = methods.als(known, rank=1, penalty=0.1, center=False, random_state=0).to_dense()
    np.testing.assert_allclose(filled[~seen], 0, atol=1e-200)


def test_entries_left_out_have_no_prediction_where_there_are_no_variances(rng):
    space = co.fit_column_space(1e200 * rng.standard_normal((6, 3)))
    errors, deviations = leave_one_out(space, co.Observations.from_dense(1e200 * rng.standard_normal((6, 2))), [0.0])
    assert np.isnan(errors).all() and np.isnan(deviations).all()
    M = rng.integers(-3, 4, (26, 22)) * 10.0 ** rng.uniform(-290, 290, (26, 1))
    table = co.complete(np.where((rng.random(M.shape) < 0.5) | (np.arange(22) < 8), M, np.nan)).certificates()
    assert (table.verdict != "").all()


def test_a_direction_that_no_entry_shows_is_open():
    B = np.array([[[1.0, 0.0], [2.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]])
    targets = np.ones((2, 1, 2))
    variances = fitted_variances(B, targets, 4.0, has_prior=False)
    np.testing.assert_allclose(variances, [[np.inf], [4 * (1 + 0.25)]])


def test_float32_to_its_end():
    """An empty column beside full ones of the largest numbers, whose mean coefficient is larger still."""
    end = np.finfo(np.float32).max
    M = np.full((8, 5), end, np.float32) * np.where(np.arange(8) % 2, 1, -1)[:, None]
    M[:, 0] *= np.float32(0.5)
    M[:, 4] = np.nan
    M[0, 3] = np.nan
    completion = co.complete(M.astype(np.float32))
    told = np.isfinite(completion.to_dense()).all(axis=0)
    assert told[:3].all() and (told == np.isin(completion.status, [s for s in co.Status if s.is_filled])).all()


def test_no_column_can_teach():
    """float32 at its end: the coefficients of full columns overflow, so that none is left to refine from."""
    nan = np.nan
    signs = [[1, 1, 1, -1, -1, -1], [-1, -1, 1, -1, 1, -1], [-1, nan, -1, nan, nan, 1], [-1, -1, 1, -1, 1, -1]]
    M = np.array(signs, np.float32) * np.finfo(np.float32).max
    filled = co.complete(M).to_dense()
    np.testing.assert_array_equal(filled[~np.isnan(M)], M[~np.isnan(M)])


def is_told(completion) -> bool:
    """Whether the columns that count as filled, and no others, are finite."""
    finite = np.isfinite(completion.to_dense()).all(axis=0)
    return bool((finite == np.isin(completion.status, [s for s in co.Status if s.is_filled])).all())


@pytest.mark.parametrize("size", [1e-250, 1e-170, 1e170, 1e250])
def test_nystrom_in_any_unit(rng, size):
    M = rng.standard_normal((10, 2)) @ rng.standard_normal((2, 12))
    settings = {"n_columns": 4, "n_rows": 5, "rank": 2, "random_state": 0}
    one, other = methods.nystrom(M, **settings), methods.nystrom(size * M, **settings)
    np.testing.assert_allclose(other.to_dense() / size, one.to_dense(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "method",
    [
        lambda M: methods.nystrom(M, n_columns=3, n_rows=2, random_state=0),
        lambda M: methods.tall_project(_with_gaps(M), rank=2, random_state=0),
        pytest.param(lambda M: methods.als(_with_gaps(M), rank=3, penalty=0.0, random_state=0), marks=pytest.mark.slow),
        lambda M: co.complete(_with_gaps(M), rank=3, center=True, shrinkage=0, refine=0),
    ],
)
@pytest.mark.filterwarnings("ignore:als")
def test_predictions_beyond_float32_have_a_status(method):
    end = np.finfo(np.float32).max
    found = [
        method(np.random.default_rng(k).choice([-end, end, 0.5 * end], (8, 12)).astype(np.float32)) for k in range(20)
    ]
    assert all(is_told(completion) for completion in found)
    assert any((completion.status == co.Status.OVERFLOW).any() for completion in found)


def _with_gaps(M) -> np.ndarray:
    is_gap = ((np.arange(8)[:, None] + np.arange(12)) % 3 == 0) & (np.arange(12) >= 5)
    return np.where(is_gap, np.float32(np.nan), M)


def test_entries_far_smaller_than_the_center(rng):
    """So that the row means of the full columns are infinite in units of the entries that are left out."""
    space = co.fit_column_space(1e140 * (3 + rng.standard_normal((8, 4))), center=True)
    errors, _ = leave_one_out(space, co.Observations.from_dense(1e-200 * rng.standard_normal((8, 3))), [1.0])
    assert np.isfinite(errors).all() and np.abs(errors).max() > 1e130


@pytest.mark.parametrize("center", [True, False, "auto"])
def test_whole_numbers_near_the_end_of_float32(center):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        M = rng.integers(-3, 4, (14, 8)).astype(np.float32) * np.float32(1e38)
        M[rng.random(M.shape) < 0.4 * (np.arange(8) >= 4)] = np.nan
        assert is_told(co.complete(M, center=center))


def test_no_direction_is_left_to_refine():
    """Full columns of one number at the end of float32, whose coefficients overflow."""
    M = np.full((4, 12), np.finfo(np.float32).max, np.float32)
    M[1:3, 6:] = np.nan
    for settings in ({"center": True}, {"shrinkage": 1e-3}, {"center": False, "shrinkage": 1.0}):
        assert is_told(co.complete(M, refine=2, **settings))


def test_errors_of_far_larger_predictions_are_compared(rng):
    """Hidden entries near 1e-250 and full columns near 1e200: an error has no quotient with the spread."""
    M = rng.standard_normal((12, 10)) * np.where(np.arange(10) < 4, 1e200, 1e-250)
    M[rng.random(M.shape) < 0.4 * (np.arange(10) >= 4)] = np.nan
    comparison = co.compare(M, methods={"huge": lambda o: np.full(o.shape, 1e200), "zero": lambda o: np.zeros(o.shape)})
    assert [result.method for result in comparison.results] == ["zero", "huge"] and "huge" in str(comparison)


@pytest.mark.parametrize("orientation", ["rows", "columns"])
def test_noise_in_units_that_are_far_apart_is_not_trusted(orientation):
    """Noise whose rows are up to 1e580 apart: beside the largest row all others seem predicted "to rounding"."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((28, 14)) * 10.0 ** rng.uniform(-290, 290, (28, 1))
    X[rng.random(X.shape) < 0.2] = np.nan
    completion = co.complete(X, method="factor model", orientation=orientation)
    assert completion.verdict.word != "use it"
    completion.summary()


@pytest.mark.parametrize("code", [1e6, 1e100, 1e300, -1.7e308])
@pytest.mark.slow
def test_one_absurd_entry_spoils_nothing(rng, code):
    """Its square set the scale of all rows: from 1e200 on no interval held, and the verdict said "use it with care"."""
    M = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 40)) + 0.1 * rng.standard_normal((60, 40))
    known = np.where(rng.random(M.shape) < 0.5, M, np.nan)
    rows, columns = np.nonzero(np.isnan(known))
    clean = co.complete(known).entries(rows, columns) - M[rows, columns]
    known[5, np.flatnonzero(~np.isnan(known[5]))[0]] = code
    completion = co.complete(known)
    errors = completion.entries(rows, columns) - M[rows, columns]
    low, high = completion.interval(rows, columns)
    assert np.sqrt(np.mean(errors**2)) < 1.25 * np.sqrt(np.mean(clean**2))
    assert 0.82 < np.mean((low <= M[rows, columns]) & (M[rows, columns] <= high)) < 0.98
    assert completion.verdict.word == "use it" and "1 known value" in completion.choices["outliers"]


@pytest.mark.parametrize("end", [1e280, 1e290])
def test_columns_in_units_beyond_each_other_are_filled(end):
    """Their errors in units of the other side are beyond floating point, and count as outliers."""
    rng = np.random.default_rng(5)
    M = rng.standard_normal((24, 18)) * end ** rng.uniform(-1, 1, 18)
    known = np.where(rng.random(M.shape) < 0.25, np.nan, M)
    assert np.isfinite(co.complete(known).to_dense()).all()
