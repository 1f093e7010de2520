"""Intervals cover as often as they say, and say where they are sure."""

import numpy as np
import pytest

import colonnade as co
from colonnade.model.posterior import deviations
from colonnade.uncertainty.calibration import Quantiles, Scores, calibrate

from problems import hide, low_rank


def noisy(rng, noise, n=300, level=0.0):
    L, R = low_rank(rng, 120, n, 4)
    M = L @ R + level + noise * rng.standard_normal((120, n))
    return M, *hide(rng, M, 40, 20)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"rank": 4, "center": False, "shrinkage": 0, "refine": 0}])
def test_coverage_is_what_it_says_on_gaussian_data(settings):
    """10 matrices of about 31,000 hidden entries each; what is left of chance is the calibration of 5,200 entries."""
    covered = {level: [] for level in (0.5, 0.8, 0.9, 0.95)}
    for seed in range(10):
        M, known, seen = noisy(np.random.default_rng(seed), 0.5)
        completion = co.complete(known, **settings)
        i, j = np.nonzero(~seen)
        for level, found in covered.items():
            low, high = completion.interval(i, j, level)
            found.append(np.mean((low <= M[i, j]) & (M[i, j] <= high)))
    for level, found in covered.items():
        assert abs(np.mean(found) - level) < 0.03, (level, np.mean(found))


@pytest.mark.slow
def test_noisy_rows_have_wider_intervals_than_quiet_ones(rng):
    L, R = low_rank(rng, 100, 400, 3)
    noise = np.where(np.arange(100) < 50, 0.1, 1.0)[:, None]
    M = L @ R + noise * rng.standard_normal((100, 400))
    known, seen = hide(rng, M, 60, 25)
    completion = co.complete(known)
    i, j = np.nonzero(~seen)
    low, high = completion.interval(i, j, 0.9)
    inside, quiet = (low <= M[i, j]) & (M[i, j] <= high), i < 50
    assert np.mean((high - low)[quiet]) < 0.5 * np.mean((high - low)[~quiet])
    constant = 2 * np.quantile(np.abs(M[i, j] - completion.entries(i, j)), inside.mean())
    assert np.mean(high - low) < 0.9 * constant, "narrower than a constant width of the same coverage"


@pytest.mark.slow
def test_columns_known_at_few_entries_count_for_what_is_unseen_of_them():
    """Most observed entries are in well-known columns, most unseen ones are not."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        M, known, seen = noisy(rng, 0.3)
        for j in np.flatnonzero(~seen.all(axis=0))[::2]:
            known[np.flatnonzero(seen[:, j])[3:], j] = np.nan
        completion = co.complete(known)
        i, j = np.nonzero(np.isnan(known))
        low, high = completion.interval(i, j, 0.9)
        found.append(np.mean((low <= M[i, j]) & (M[i, j] <= high)))
    assert abs(np.mean(found) - 0.9) < 0.03


@pytest.mark.parametrize("settings", [{}, {"rank": 4, "center": False, "shrinkage": 0, "refine": 0}])
@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
# Four full columns of rank 4 cannot tell the noise.
@pytest.mark.parametrize("n_full, n", [pytest.param(40, 300, marks=pytest.mark.slow), (4, 12)])
def test_intervals_have_the_unit_of_the_data(rng, unit, n_full, n, settings):
    L, R = low_rank(rng, 120, n, 4)
    known, seen = hide(rng, L @ R + 0.5 * rng.standard_normal((120, n)), n_full, 20)
    i, j = np.nonzero(~seen)
    expected = co.complete(known, **settings).interval(i, j, 0.8)
    assert np.ptp(expected[1] - expected[0]) > 0
    for found, end in zip(co.complete(unit * known, **settings).interval(i, j, 0.8), expected):
        np.testing.assert_allclose(found / unit, end, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_large_counts_have_wider_intervals_than_small_ones():
    rng, found = np.random.default_rng(0), []
    for _ in range(6):
        M = rng.poisson(2 * rng.gamma(2.0, 1.0, (120, 3)) @ rng.gamma(1.0, 1.0, (3, 300))).astype(float)
        known, seen = hide(rng, M, 40, 25)
        completion = co.complete(known)
        i, j = np.nonzero(~seen)
        low, high = completion.interval(i, j, 0.9)
        predicted, inside = completion.entries(i, j), (low <= M[i, j]) & (M[i, j] <= high)
        small, large = predicted < np.quantile(predicted, 0.2), predicted > np.quantile(predicted, 0.8)
        constant = 2 * np.quantile(np.abs(M[i, j] - predicted), inside.mean())
        growth = np.mean((high - low)[large]) / np.mean((high - low)[small])
        found.append((inside.mean(), inside[large].mean(), np.mean(high - low) / constant, growth))
    coverage, of_large, width, growth = np.mean(found, axis=0)
    assert growth > 1.4
    assert abs(coverage - 0.9) < 0.03
    assert of_large > 0.78, "one width for all holds 0.74 of them"
    assert width < 1, "narrower than a constant width of the same coverage"


@pytest.mark.slow
def test_errors_to_one_side_have_intervals_to_that_side(rng):
    """Exponential waiting beside what is usual: an interval about the mean is wider than one with equal tails."""
    L, R = low_rank(rng, 150, 500, 2)
    M = L @ R + 2 * rng.exponential(size=(150, 500))
    known, seen = hide(rng, M, 100, 50)
    completion = co.complete(known)
    i, j = np.nonzero(~seen)
    predicted = completion.entries(i, j)
    off = np.abs(M[i, j] - predicted)
    ends = []
    for level, widest in ((0.5, 0.93), (0.95, 1.05)):
        low, high = completion.interval(i, j, level)
        held = np.mean((low <= M[i, j]) & (M[i, j] <= high))
        assert abs(held - level) < 0.03
        assert np.mean(high - low) < widest * 2 * np.quantile(off, held)
        assert ((low <= predicted) & (predicted <= high)).all()
        ends.append((low, high))
    assert np.mean(predicted - ends[0][0]) > np.mean(ends[0][1] - predicted), "towards what is likeliest"
    assert np.mean(predicted - ends[1][0]) < np.mean(ends[1][1] - predicted), "farther where errors go farther"
    assert (ends[1][0] <= ends[0][0]).all() and (ends[0][1] <= ends[1][1]).all()


@pytest.mark.parametrize("kind", ["waiting", "rare"])
@pytest.mark.slow
def test_low_levels_hold_where_errors_go_to_one_side(kind):
    """Where the likeliest error is far from 0, half of all errors lie between: they must not be held at any level."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        if kind == "waiting":
            M = 1 + rng.standard_normal((100, 1)) + 3 * rng.exponential(size=(100, 260))
        else:
            logit = 3 - rng.standard_normal((100, 1)) - rng.standard_normal(260)
            M = (rng.random((100, 260)) < 1 / (1 + np.exp(logit))).astype(float)
        known, seen = hide(rng, M, 60, 20)
        completion = co.complete(known, method="full columns")
        i, j = np.nonzero(~seen)
        ends = [completion.interval(i, j, level) for level in (0.1, 0.3, 0.5, 0.9)]
        found.append([np.mean((low <= M[i, j]) & (M[i, j] <= high)) for low, high in ends])
        assert all((high - low).min() > 0 for low, high in ends)
    low, *rest = np.mean(found, axis=0) - (0.1, 0.3, 0.5, 0.9)
    assert np.abs(rest).max() < 0.03 and -0.03 < low < 0.06  # many errors of 0/1 data are nearly equal


@pytest.mark.parametrize("weighted", [False, True])
def test_the_deviation_is_that_of_the_posterior(rng, weighted):
    """The textbook formula for a Gaussian vector with some entries seen; both ways of computing it.

    Columns with many numbers of entries, one of them with none, are asked in any order and some entries twice.
    """
    _, known, _ = noisy(rng, 0.3)
    few = np.arange(known.shape[1]) % 7 == 1
    known[:, few & np.isnan(known).any(axis=0)] *= np.where(rng.random((120, 1)) < 0.5, 1, np.nan)
    known[:, -1] = np.nan
    weights = rng.uniform(0.5, 2, known.shape) if weighted else np.ones(known.shape)
    observations = co.Observations.from_dense(known, weights=weights if weighted else None)
    rows, columns = rng.integers(0, 120, 2000), rng.choice(observations.partial_columns, 2000)
    columns[:5] = known.shape[1] - 1
    for rank in (4, 39):
        completion = co.complete(observations, rank=rank, center=True, shrinkage=0.09, refine=0)
        F = completion.basis * np.sqrt(completion.space.variances)
        K, variances = F @ F.T, np.empty(known.shape)
        for j in observations.partial_columns:
            O = np.flatnonzero(np.isfinite(known[:, j]))
            inner = K[np.ix_(O, O)] + 0.09 * np.diag(1 / weights[O, j])
            variances[:, j] = np.diag(K - K[:, O] @ np.linalg.solve(inner, K[O])) + 0.09
        found = deviations(completion, rows, columns)
        np.testing.assert_allclose(found**2, variances[rows, columns], rtol=1e-8)


def test_exact_data_have_no_width(rng):
    L, R = low_rank(rng, 60, 70, 3)
    known, seen = hide(rng, L @ R, 8, 9)
    i, j = np.nonzero(~seen)
    low, high = co.complete(known).interval(i, j, 0.95)
    assert np.max(high - low) < 1e-9 and np.max(np.abs(low - (L @ R)[i, j])) < 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("noise", [0.0, 1e-6, pytest.param(0.1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("bounds", [None, (-0.05, 0.05)])
def test_predictions_of_all_doors_lie_within_their_interval(rng, tmp_path, dtype, noise, bounds):
    """Also those near 0, which are small differences of large terms."""
    L, R = low_rank(rng, 40, 50, 3)
    M = L @ R
    M[:20] = np.where(np.arange(20)[:, None] % 2, 1e-16, 0.0) * M[20:]  # rows that are zero but for rounding
    known, seen = hide(rng, (M + noise * rng.standard_normal(M.shape)).astype(dtype), 10, 12)
    completion = co.complete(known, bounds=bounds)
    completion.save(tmp_path / "saved")
    i, j = (index.ravel() for index in np.indices(known.shape))
    low, high = completion.interval(i, j)
    some = rng.permutation(50)
    doors = [completion.to_dense(), completion.columns(some)[:, np.argsort(some)], completion.to_frame().to_numpy()]
    doors += [
        np.column_stack([completion.columns(k) for k in range(50)]),
        co.Completion.load(tmp_path / "saved").to_dense(),
    ]
    for filled in (*(door[i, j] for door in doors), completion.entries(i, j)):
        told = ~np.isnan(filled)  # A column seen in zero rows only is not determined.
        assert told.mean() > 0.9 and (np.isnan(low) == ~told).all() and (np.isnan(high) == ~told).all()
        assert (low <= filled)[told].all() and (filled <= high)[told].all()
    assert (low[seen.ravel()] == high[seen.ravel()]).all()


def test_cancelling_terms_leave_predictions_within_their_interval():
    """Exact whole numbers, half of the rows 0: there predictions are differences of equal terms, without a width."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        M = (rng.integers(-2, 3, (23, 3)).astype(float)) @ rng.integers(-2, 3, (3, 13)).astype(float)
        M[11:] = 0
        completion = co.complete(np.where((rng.random(M.shape) < 0.5) | (np.arange(13) < 4), M, np.nan))
        low, high = completion.interval(*np.indices(M.shape))
        filled = completion.to_dense()
        told = ~np.isnan(filled)
        assert (low <= filled)[told].all() and (filled <= high)[told].all()
        assert np.abs(high - low)[told].max() < 1e-10


def test_observed_entries_bounds_and_gaps(rng):
    _, known, _ = noisy(rng, 0.3)
    known[:, -1] = np.nan
    completion = co.complete(known, rank=4, center=False, shrinkage=0, bounds=(-1, 1), refine=0)
    rows, columns = np.arange(120)[:, None], np.arange(300)[None, :]
    low, high = completion.interval(rows, columns)
    observed = np.isfinite(known)
    assert low.shape == (120, 300) and (low[observed] == known[observed]).all()
    assert np.isnan(low[:, -1]).all() and np.isnan(high[:, -1]).all()
    hidden = ~observed & np.isfinite(low)
    assert (low[hidden] >= -1).all() and (high[hidden] <= 1).all() and (low <= high)[hidden].all()


@pytest.mark.parametrize("s", [12, 20, 25])
def test_means_far_above_the_noise_cost_no_digits(rng, s):
    """The noise is then 1e-17 of the squares, in which nothing must lose it; with fewer entries than directions too."""
    L, R = low_rank(rng, 100, 300, 3)
    sizes = np.where(np.arange(300) < 20, 1.0, rng.uniform(0.5, 2, 300))
    M = L @ R + 0.01 * rng.standard_normal((100, 300)) + 1e7 * rng.standard_normal((100, 1)) * sizes
    seen = np.arange(100)[:, None] < np.where(np.arange(300) < 20, 100, s)
    seen = rng.permuted(seen, axis=0)
    i, j = np.nonzero(~seen)
    completion = co.complete(np.where(seen, M, np.nan), refine=0)
    low, high = completion.interval(i, j, 0.9)
    assert 0.86 < np.mean((low <= M[i, j]) & (M[i, j] <= high)) < 0.95
    uncertainty = completion.certificates().uncertainty[20:]
    errors = np.sqrt(np.mean((completion.basis @ completion.coefficients - M)[:, 20:] ** 2, axis=0))
    assert 0.3 < np.median(uncertainty) / np.median(errors) < 3


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, np.nan])
def test_levels(rng, level):
    _, known, _ = noisy(rng, 0.3)
    with pytest.raises(ValueError, match=r"level must be a finite number in \(0, 1\)"):
        co.complete(known, rank=2).interval(0, 50, level)


@pytest.mark.parametrize("scale", [1e270, 1e-270])
def test_numbers_without_variances_are_refused(rng, scale):
    M = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 40)) + 0.1 * rng.standard_normal((30, 40))
    known = np.where(rng.random(M.shape) < 0.5, M, np.nan)
    known[:, :10] = M[:, :10]
    completion = co.complete(known * scale)
    for ask in (lambda: completion.interval([0], [39]), completion.column_means):
        with pytest.raises(ValueError, match="divide the data"):
            ask()


def test_columns_of_which_nothing_is_known_have_intervals_that_say_so(rng):
    """Less is known of them than of any entry that was left out, by which the others are calibrated."""
    m, n = 100, 300
    U = np.linalg.qr(rng.standard_normal((m, 30)))[0]
    M = U @ ((10 * 0.6 ** np.arange(30))[:, None] * rng.standard_normal((30, n)))
    M += 0.001 * rng.standard_t(3, (m, n))
    seen = np.zeros((m, n), bool)
    for j in range(n):
        seen[rng.choice(m, rng.integers(6, 25) if j < 260 else int(j < 280), replace=False), j] = True
    seen[:, :60] = True
    completion = co.complete(np.where(seen, M, np.nan))
    for columns in (np.arange(280, 300), np.arange(260, 280)):
        low, high = completion.interval(np.arange(m)[:, None], columns, 0.9)
        held = ((low <= M[:, columns]) & (M[:, columns] <= high))[~seen[:, columns]].mean()
        assert held > 0.6  # twenty columns; of those that know no better, a fifth


@pytest.mark.slow
def test_scalars_have_intervals_within_bounds(rng):
    _, known, _ = noisy(rng, 0.3)
    i, j = np.argwhere(np.isnan(known))[0]
    for bounds in (None, (-0.1, 0.1), (-np.inf, np.inf)):
        completion = co.complete(known, bounds=bounds)
        one, several = completion.interval(i, j), completion.interval([i], [j])
        assert [float(end) for end in one] == [float(end[0]) for end in several]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.slow
def test_predictions_lie_inside_however_they_are_computed(rng, dtype):
    """Counts, whose intervals of half of all entries end at the prediction itself."""
    M = rng.poisson(np.exp(0.5 * rng.standard_normal((100, 2)) @ rng.standard_normal((2, 120)))).astype(dtype)
    known, seen = hide(rng, M, 40, 20)
    completion = co.complete(known)
    i, j = np.indices(M.shape)
    for level in (0.5, 0.8):
        low, high = completion.interval(i, j, level)
        for predicted in (completion.to_dense(), completion.entries(i, j)):
            assert ((low <= predicted) & (predicted <= high)).all()
        assert (low[seen] == M[seen]).all() and (high[seen] == M[seen]).all()


@pytest.mark.parametrize("kind", ["block", "random"])
@pytest.mark.slow
def test_rows_that_no_partial_column_shows(rng, kind):
    """The same rows are read of every column, as by sensors: of the others only the full columns tell."""
    m, n, d, s = 120, 260, 60, 15
    x = np.linspace(0, 1, m)
    waves = np.sin(np.outer(x, np.arange(1, 30)) * 3 + rng.uniform(0, 6, 29)) / np.arange(1, 30)
    M = waves @ rng.standard_normal((29, n)) + 0.01 * rng.standard_normal((m, n))
    rows = np.arange(s) if kind == "block" else rng.choice(m, s, replace=False)
    hidden = np.ones((m, n), bool)
    hidden[:, :d] = hidden[rows] = False
    completion = co.complete(np.where(hidden, np.nan, M))
    i, j = np.nonzero(hidden)
    for level in (0.5, 0.8, 0.9):
        low, high = completion.interval(i, j, level)
        assert abs(np.mean((low <= M[hidden]) & (M[hidden] <= high)) - level) < 0.12  # 60 columns teach, no more


def test_without_any_trial_and_noise_intervals_are_infinite(rng):
    """One full column and one entry of each other: nothing tells how far they are off."""
    M = rng.standard_normal((50, 40))
    known = np.where(np.arange(50)[:, None] == rng.integers(0, 50, 40), M, np.nan)
    known[:, 0] = M[:, 0]
    completion = co.complete(known, method="full columns")
    low, high = completion.interval(np.zeros(39, int), np.arange(1, 40))
    unseen = np.isnan(known[0, 1:])
    assert np.isinf(low[unseen]).all() and np.isinf(high[unseen]).all()
    assert np.isnan(completion.noise_std)
    mean, below, above = completion.column_means()
    assert np.isfinite(mean).all() and (below[1:] == -np.inf).all() and (above[1:] == np.inf).all()


def test_one_sided_bounds_leave_the_other_end_open(rng):
    M = np.abs(rng.standard_normal((30, 4)) @ rng.standard_normal((4, 40)))
    known, seen = hide(rng, M, 10, 8)
    low, high = co.complete(known, bounds=(0, np.inf)).interval(*np.nonzero(~seen), 0.99999)
    assert (low >= 0).all() and (low == 0).any() and (high > low).all()


def test_quantiles_of_weighted_values():
    equal = Quantiles.of(np.arange(99.0), np.full(99, 3.0), are_sizes=True)
    assert [equal.at(level) for level in (0.005, 0.01, 0.011, 0.99)] == [0, 0, 1, 98]
    last_counts_most = Quantiles.of(np.arange(30.0), np.append(np.ones(29), 971.0), are_sizes=True)
    assert last_counts_most.at(0.1) == 29 and last_counts_most.at(0.002) == 3


def test_beyond_the_largest_score_quantiles_grow_as_those_of_a_normal_variable():
    scores = Quantiles.of(np.linspace(0.1, 5, 50), np.ones(50), are_sizes=True)
    assert scores.at(50 / 51) == 5.0
    ratio = scores.at(0.9999) / scores.at(0.999)
    assert ratio == pytest.approx(3.8906 / 3.2905, rel=1e-3)
    few = Quantiles.of(np.full(5, 1e-3), np.ones(5), are_sizes=True)
    assert few.at(0.5) == pytest.approx(0.6745, rel=1e-3), "five scores do not make an interval narrow"


def scores_with(rng, row_factors, column_factors, share=0.3):
    """Scores of about `share` of all entries, normal times the factors of their rows and columns."""
    i, j = np.nonzero(rng.random((row_factors.size, column_factors.size)) < share)
    deviations = rng.lognormal(0, 0.5, i.size)
    errors = deviations * row_factors[i] * column_factors[j] * rng.standard_normal(i.size)
    return Scores(i, j, errors, deviations, *np.ones((2, i.size)))


def test_factors_of_rows_and_columns_are_found(rng):
    f, g = rng.lognormal(0, 0.7, 80), rng.lognormal(0, 0.7, 120)
    scores = scores_with(rng, f, g)
    calibration = calibrate(scores, 80)
    found = calibration.rows.factors[:, None] * calibration.factors_of_columns(scores, np.arange(120))
    found *= calibration.half_width(0.9) / 1.6449
    ratio = found / np.outer(f, g)
    assert abs(np.log(np.median(ratio))) < 0.15
    # Squares of normal scores times g^2 have the relative variance 3 exp(4 * 0.49) - 1 = 20. A row has 36 of them, so
    # the logarithm of its factor is off by sqrt(20 / 36) / 2 = 0.37 at most; with the columns the sum is 0.4.
    without = np.std(np.log(np.outer(f, g)))  # About 1; without the factors of either side 0.7 of it would be left.
    assert np.std(np.log(ratio)) < 0.5 * without


def test_equal_errors_of_gaussian_data_are_not_told_apart(rng):
    """What is not there must not make intervals differ, in any unit."""
    for unit in (1e-9, 1.0, 1e9):
        scores = scores_with(rng, np.full(80, unit), np.ones(120))
        calibration = calibrate(scores, 80)
        columns = calibration.factors_of_columns(scores, np.arange(120))
        assert np.ptp(np.log(calibration.rows.factors)) < 0.2 and np.ptp(np.log(columns)) < 0.2
        low, high = calibration.ends(0.9)
        width = (high - low) * np.median(calibration.rows.factors) * np.median(columns)
        assert width == pytest.approx(2 * 1.6449 * unit, rel=0.06)


def test_one_outlier_does_not_set_the_factor_of_its_row(rng):
    scores = scores_with(rng, np.ones(80), np.ones(120))
    before = calibrate(scores, 80).rows.factors
    scores.errors[0] = 1e200
    after = calibrate(scores, 80).rows.factors
    assert after[scores.rows[0]] < 3 * before[scores.rows[0]] and np.isfinite(after).all()


def test_a_score_has_no_part_in_its_own_interval(rng):
    """Coverage of scores that calibrate is what it says, though their rows and columns have few each."""
    held = []
    for _ in range(20):
        scores = scores_with(rng, rng.lognormal(0, 1, 100), rng.lognormal(0, 1, 100), share=0.05)
        calibration = calibrate(scores, 100)
        x = calibration.standardised(scores)
        low, high = calibration.ends(0.9)
        held.append(np.mean((low <= x) & (x <= high)))
    assert abs(np.mean(held) - 0.9) < 0.02


@pytest.mark.slow
def test_every_tenth_of_the_entries_is_covered_by_what_is_predicted_of_it():
    """Rows and columns of unequal noise: by tenths of the width, 90 % intervals hold 84 to 96 %."""
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        L, R = low_rank(rng, 120, 400, 3)
        noise = rng.lognormal(-1, 0.6, (120, 1)) * rng.lognormal(0, 0.4, 400)
        M = L @ R + noise * rng.standard_normal((120, 400))
        known, seen = hide(rng, M, 80, 30)
        completion = co.complete(known, method="full columns")
        i, j = np.nonzero(~seen)
        low, high = completion.interval(i, j)
        inside = (low <= M[i, j]) & (M[i, j] <= high)
        found.append([inside[part].mean() for part in np.array_split(np.argsort(high - low), 10)])
    tenths = np.mean(found, axis=0)
    assert tenths.min() > 0.84 and tenths.max() < 0.96
