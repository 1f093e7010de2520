"""acquire: exact data from few entries, noisy data better than by Algorithm 1, never over budget, never lost."""

import numpy as np
import pytest

import colonnade as co
from colonnade.measuring.acquisition._forecasting import Forecast, forecasts
from colonnade.measuring.acquisition._measuring import Measurements

from problems import hide, low_rank, relative_error, source_of


def rms(values):
    return float(np.sqrt(np.mean(values**2)))


def noisy(rng, m, n, r, sigma=0.5):
    L, R = low_rank(rng, m, n, r)
    return L @ R + sigma * rng.standard_normal((m, n))


# ------------------------------------------------------------------------------------------------ exact data


@pytest.mark.parametrize(("m", "n", "r"), ((60, 90, 1), (80, 200, 8)))
def test_exact_data_of_unknown_rank_from_nearly_as_many_entries_as_unknowns(rng, seed, m, n, r):
    L, R = low_rank(rng, m, n, r)
    source = source_of(L, R)
    completion = co.acquire(source, budget=m * n, random_state=seed)
    assert completion.rank == r
    assert relative_error(completion, L, R) <= 1e-12
    assert source.entries_read <= r * m + (n - r) * (r + 2) + 60  # two spare entries a column, thirty once


def test_coherent_rows_are_found(rng, seed):
    """Each direction lives in a few rows of its own, which random rows would miss."""
    L = np.zeros((200, 4))
    for k in range(4):
        L[3 * k : 3 * k + 3, k] = rng.standard_normal(3)
    L += 1e-3 * rng.standard_normal(L.shape)
    R = rng.standard_normal((4, 150))
    source = source_of(L, R)
    completion = co.acquire(source, budget=5000, random_state=seed)
    assert relative_error(completion, L, R) <= 1e-12
    assert source.entries_read <= 4 * 200 + 150 * 6 + 60


def test_a_direction_that_only_some_columns_have(rng, seed):
    L, R = low_rank(rng, 100, 300, 4)
    R[3] *= rng.random(300) < 0.05
    R[3, 7] = 1.0
    source = source_of(L, R)
    completion = co.acquire(source, budget=15_000, random_state=seed)
    assert relative_error(completion, L, R) <= 1e-12
    assert source.entries_read <= 4 * 100 + 300 * 6 + 100


def test_scale_zero_columns_and_single_precision(rng, seed):
    L, R = low_rank(rng, 80, 120, 3)
    R[:, ::7] = 0.0
    for factor in (1e-30, 1e30):
        completion = co.acquire(source_of(factor * L, R), budget=5000, random_state=seed)
        assert relative_error(completion, factor * L, R) <= 1e-12
    M = (L @ R).astype(np.float32)
    source = co.Source(M)
    filled = co.acquire(source, budget=5000, random_state=seed).to_dense()
    assert filled.dtype == np.float32
    assert source.entries_read < 1000
    assert np.abs(filled - M).max() <= 1e-4 * np.abs(M).max()


def test_equal_columns_in_noise_are_not_taken_for_exact_data(rng, seed):
    M = noisy(rng, 60, 100, 3)
    M[:, ::3] = M[:, :1]
    source = co.Source(M)
    co.acquire(source, budget=2400, random_state=seed)
    assert source.entries_read > 2300


@pytest.mark.slow
def test_few_different_numbers_fit_by_chance(rng, seed):
    M = (rng.random((100, 120)) < 0.5).astype(float)
    source = co.Source(M)
    co.acquire(source, budget=3000, random_state=seed)
    assert source.entries_read > 2900


# ------------------------------------------------------------------------------------------------ noisy data


@pytest.mark.parametrize("share", (0.15, 0.3))
def test_better_than_algorithm1_with_the_best_numbers(rng, seed, share):
    """Algorithm 1 knows the rank, and the best of several (d, s) is picked by looking at the truth."""
    m, n, r = 100, 200, 4
    M = noisy(rng, m, n, r)
    budget = int(share * m * n)
    source = co.Source(M)
    ours = rms(co.acquire(source, budget=budget, random_state=seed).to_dense() - M)
    assert 0.97 * budget <= source.entries_read <= budget
    theirs = []
    for part in (0.15, 0.25, 0.35, 0.45, 0.55):
        d = int(part * budget / m)
        s = (budget - d * m) // (n - d)
        completion = co.algorithm1(M, rank=r, n_full_columns=d, n_entries=s, random_state=seed)
        theirs.append(rms(np.nan_to_num(completion.to_dense()) - M))
    assert ours < min(theirs)


@pytest.mark.slow
def test_columns_off_the_space_are_read_in_full(rng, seed):
    m, n = 60, 200
    M = noisy(rng, m, n, 2, sigma=0.05)
    odd = rng.choice(n, 5, replace=False)
    M[:, odd] = 3 * rng.standard_normal((m, 5))
    completion = co.acquire(co.Source(M), budget=4000, random_state=seed)
    assert np.isin(odd, np.flatnonzero(completion.observations.n_observed == m)).all()
    others = np.setdiff1d(np.arange(n), odd)
    assert rms((completion.to_dense() - M)[:, others]) < 0.1


@pytest.mark.slow
def test_noisier_columns_get_more_entries(rng, seed):
    M = noisy(rng, 80, 300, 3, sigma=0.1)
    loud = rng.choice(300, 40, replace=False)
    M[:, loud] += 0.4 * rng.standard_normal((80, 40))
    o = co.acquire(M, budget=6000, random_state=seed).observations
    counts = o.n_observed
    partial = counts < 80
    isloud = np.isin(np.arange(300), loud)
    assert counts[partial & isloud].mean() > 1.2 * counts[partial & ~isloud].mean()


def test_random_rows_for_unbiased_means(rng, seed):
    M = noisy(rng, 80, 150, 3)
    o = co.acquire(M, budget=3600, rows="random", random_state=seed).observations
    times = np.bincount(o.take(o.partial_columns).rows, minlength=80)
    n_partial = o.partial_columns.size
    assert times.max() < 0.8 * n_partial  # no row is in every column


def test_rank_and_noise_may_be_told(rng, seed):
    M = noisy(rng, 80, 150, 3)
    completion = co.acquire(M, budget=3600, rank=2, noise_std=0.5, random_state=seed)
    assert "as given" in completion.choices["rank"]
    assert completion.noise_variance == pytest.approx(0.25)


@pytest.mark.parametrize("budget", (40, 41, 100, 400, 1150, 1200, 5000))
def test_budgets_from_one_column_to_everything(rng, seed, budget):
    M = noisy(rng, 40, 30, 2)
    source = co.Source(M)
    source.entries_read = 17  # by somebody else
    completion = co.acquire(source, budget=budget, random_state=seed)
    assert source.entries_read - 17 <= budget
    assert completion.observations.rows.size == source.entries_read - 17
    if budget >= 1200:
        assert np.array_equal(completion.to_dense(), M)


@pytest.mark.slow
def test_same_seed_same_answer(rng, seed):
    M = noisy(rng, 50, 80, 2)
    first, second = (co.acquire(M, budget=1500, random_state=seed) for _ in range(2))
    assert np.array_equal(first.to_dense(), second.to_dense())
    assert first.choices["budget"] == "1,500 of 1,500 entries read"


# ------------------------------------------------------------------------------------- sources that fail


class Failing:
    """Entries of M that fail as told, and a count of the calls."""

    def __init__(self, M, *, raises=None, nan=None):
        self.M, self.raises, self.nan, self.calls = M, raises, nan, 0

    def __call__(self, rows, columns):
        self.calls += 1
        if self.raises is not None and self.raises(self, rows, columns):
            raise ConnectionError("no answer")
        values = self.M[rows, columns].copy()
        if self.nan is not None:
            values[self.nan(self, rows, columns)] = np.nan
        return values

    def source(self):
        return co.Source(self, shape=self.M.shape)


def test_calls_that_fail_now_and_then_are_made_again(rng, seed):
    L, R = low_rank(rng, 80, 120, 3)
    failing = Failing(L @ R, raises=lambda self, i, j: self.calls % 3 == 0)
    source = failing.source()
    completion = co.acquire(source, budget=4000, random_state=seed)
    assert relative_error(completion, L, R) <= 1e-12
    assert source.entries_read <= 3 * 80 + 117 * 5 + 60
    assert "calls failed" in completion.choices["budget"]


def test_entries_that_are_nan_now_and_then_are_asked_for_again(rng, seed):
    L, R = low_rank(rng, 80, 120, 3)
    failing = Failing(L @ R, nan=lambda self, i, j: rng.random(i.size) < 0.05)
    source = failing.source()
    completion = co.acquire(source, budget=4000, random_state=seed)
    assert relative_error(completion, L, R) <= 1e-12
    assert source.entries_read <= 1.2 * (3 * 80 + 117 * 5 + 60)


def test_exact_data_with_cells_that_never_answer(rng, seed):
    L, R = low_rank(rng, 60, 150, 3)
    broken = rng.random((60, 150)) < 0.005
    source = Failing(L @ R, nan=lambda self, i, j: broken[i, j]).source()
    completion = co.acquire(source, budget=4500, random_state=seed)
    assert np.abs(completion.to_dense() - L @ R).max() <= 1e-10
    assert source.entries_read <= 2500


@pytest.mark.parametrize("how", ("nan", "raises"))
def test_cells_rows_and_columns_that_never_answer(rng, seed, how):
    """A few cells, one row and three columns are out of order for good."""
    m, n = 60, 90
    M = noisy(rng, m, n, 2, sigma=0.1)
    broken = rng.random((m, n)) < 0.005
    broken[11], broken[:, [5, 50, 70]] = True, True
    marks = {"nan": lambda self, i, j: broken[i, j], "raises": lambda self, i, j: broken[i, j].any()}
    source = Failing(M, **{how: marks[how]}).source()
    completion = co.acquire(source, budget=2500, random_state=seed)
    assert source.entries_read <= 2500
    filled = completion.to_dense()
    assert np.isnan(filled[11]).all()
    assert "rows" in completion.choices
    rest = np.delete(np.delete(filled - M, 11, axis=0), [5, 50, 70], axis=1)
    assert rms(rest) < 0.25
    assert completion.observations.n_observed[[5, 50, 70]].sum() == 0
    assert completion.certificates().verdict.size == n


@pytest.mark.parametrize("after", (0, 25))
def test_a_source_that_breaks_down_for_good(rng, seed, after):
    M = noisy(rng, 60, 90, 2)
    failing = Failing(M, raises=lambda self, i, j: self.calls > after)
    source = failing.source()
    with pytest.raises(RuntimeError, match="ConnectionError: no answer") as caught:
        co.acquire(source, budget=2500, random_state=seed)
    known = caught.value.observations
    assert known.rows.size == source.entries_read
    assert np.array_equal(known.values, M[known.rows, np.repeat(np.arange(90), known.n_observed)])
    assert failing.calls - after <= 150


def test_a_source_of_nothing_but_nan(rng, seed):
    source = Failing(np.ones((60, 90)), nan=lambda self, i, j: np.ones(i.size, bool)).source()
    with pytest.raises(RuntimeError, match="gave nothing but NaN") as caught:
        co.acquire(source, budget=2500, random_state=seed)
    assert caught.value.observations.rows.size == 0
    assert source.entries_read < 100


def test_an_interrupt_loses_nothing(rng, seed):
    M = noisy(rng, 60, 90, 2)

    def interrupted(self, rows, columns):
        if self.calls == 20:
            raise KeyboardInterrupt
        return False

    source = Failing(M, raises=interrupted).source()
    with pytest.raises(KeyboardInterrupt) as caught:
        co.acquire(source, budget=2500, random_state=seed)
    known = caught.value.observations
    assert known.rows.size == source.entries_read > 0
    assert known.full_columns.size > 0
    assert np.isfinite(co.complete(known).to_dense()).any()


def test_one_bad_entry_in_a_call_costs_few_calls():
    M = np.arange(5000.0 * 3).reshape(5000, 3)
    failing = Failing(M, raises=lambda self, i, j: (i == 1234).any())
    measurements = Measurements(failing.source(), 15_000)
    values = measurements.read(np.arange(5000), np.zeros(5000, np.int64))
    assert np.flatnonzero(np.isnan(values)).tolist() == [1234]
    assert failing.calls < 150
    assert measurements.left == 15_000 - 4999


# -------------------------------------------------------------------------------------------- the forecast


def test_forecast_of_plain_least_squares():
    """With a wide prior q = t r / (s - r)."""
    forecast = Forecast(1000, np.full(5, 1e12), 0.3)
    assert forecast.estimation_error(25) == pytest.approx(0.3 * 5 / 20, rel=1e-3)


def test_forecast_is_what_comes_true(rng):
    m, n, r, d, s = 200, 400, 3, 20, 12
    M = noisy(rng, m, n, r)
    forecast = forecasts(M[:, : d + 3], [d])[0]
    truth = []
    for _ in range(2):
        seen = np.zeros((m, n), bool)
        for j in range(n):
            seen[rng.choice(m, s, replace=False), j] = True
        seen[:, :d] = True
        filled = co.complete(np.where(seen, M, np.nan), center=False, refine=0).to_dense()
        truth.append(np.mean((filled - M)[~seen] ** 2))
    assert forecast.error(s) == pytest.approx(np.mean(truth), rel=0.35)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    (
        ({"budget": 39}, ValueError, "budget must be a whole number from 40"),
        ({"budget": 1e3}, TypeError, "budget must be a whole number"),
        ({"budget": 400, "rank": 0}, ValueError, "rank"),
        ({"budget": 400, "noise_std": -1.0}, ValueError, "noise_std"),
        ({"budget": 400, "rows": "best"}, ValueError, "rows must be one of 'auto', 'random'"),
    ),
)
def test_bad_arguments(arguments, kind, words):
    with pytest.raises(kind, match=words):
        co.acquire(np.ones((40, 30)), **arguments)


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 7, 20, 41])
@pytest.mark.parametrize("weights", [[1, 1, 1, 0.9], [1, 2, 3, 4], [0.3, 1, 1, 7]])
def test_entries_go_to_columns_in_proportion_to_their_weights(weights, budget):
    """Column k gets its j-th entry when the level reaches j / weight: so many of the smallest levels are spent."""
    from colonnade.measuring.acquisition._spending import _level

    m = 12
    levels = sorted((j / w, k) for k, w in enumerate(weights) for j in range(1, m + 1))[:budget]
    expected = [sum(at == k for _, at in levels) for k in range(4)]
    assert _level(np.zeros(4, np.int64), np.array(weights, float), m, budget).tolist() == expected


def test_the_error_of_an_answer_is_the_mean_square_of_entries_left_out(rng):
    """In units of the size of the data, so that no square overflows: the same for data in other units."""
    from colonnade.measuring.acquisition._completing import _error
    from colonnade.model.leaving_out import size_of

    L, R = low_rank(rng, 20, 12, 2)
    M = L @ R + 0.5 * rng.standard_normal((20, 12))
    known, _ = hide(rng, M, 6, 9)
    completion = co.complete(known, rank=2, center=False, shrinkage=0, refine=0)
    o, U, squares = completion.observations, completion.basis, []
    for j in o.partial_columns:
        rows, x = o.rows[o.indptr[j] : o.indptr[j + 1]], o.values[o.indptr[j] : o.indptr[j + 1]]
        for k in range(rows.size):
            z = np.linalg.lstsq(np.delete(U[rows], k, axis=0), np.delete(x, k))[0]
            squares.append((x[k] - U[rows[k]] @ z) ** 2)
    none, full = np.zeros(0, np.int64), o.full_columns
    assert _error(completion, full[1:], full[:1]) == pytest.approx(np.mean(squares) / size_of(o) ** 2, rel=1e-9)
    larger = co.complete(1e6 * known, rank=2, center=False, shrinkage=0, refine=0)
    assert _error(larger, full[1:], full[:1]) == pytest.approx(np.mean(squares) / size_of(o) ** 2, rel=1e-9)
    assert _error(completion, full, none) == 0
