"""Means of columns: unbiased for rows drawn at random, with intervals that cover as often as they say."""

from itertools import combinations

import numpy as np
import pytest

import colonnade as co
from colonnade.model.column_space import with_offset
from colonnade.model.full_columns.hidden_columns import offset_beside
from colonnade.uncertainty.means import _inverse, _Model, _surely_larger

from problems import hide, low_rank


def noisy(rng, m=120, n=300, noise=0.5):
    L, R = low_rank(rng, m, n, 4)
    M = L @ R + 1 + noise * rng.standard_normal((m, n))
    return M, *hide(rng, M, 40, 20)


def answers(rng, m=160, n=240):
    """0 or 1 by a latent-trait model with two traits and a general ability."""
    logit = (
        rng.standard_normal((m, 1)) + rng.standard_normal(n) + rng.standard_normal((m, 2)) @ rng.standard_normal((2, n))
    )
    M = (rng.random((m, n)) < 1 / (1 + np.exp(-logit))).astype(float)
    return M, *hide(rng, M, 50, 30)


def test_it_is_the_average_over_entries_left_out(rng):
    """By hand from the definition, with a prediction for every entry left out."""
    _, known, _ = noisy(rng, m=30, n=60)
    completion = co.complete(known, center=True, shrinkage=0.3, refine=0)
    mean = completion.column_means()[0]
    F, c = completion.basis * np.sqrt(completion.space.variances), completion.center
    K = F @ F.T
    for j in completion.observations.partial_columns[:4]:
        O = np.flatnonzero(np.isfinite(known[:, j]))
        x, totals = known[:, j] - c, []
        for i in O:
            rest = O[i != O]
            unknown = np.setdiff1d(np.arange(30), rest)
            weights = np.linalg.solve(K[np.ix_(rest, rest)] + 0.3 * np.eye(rest.size), K[np.ix_(rest, unknown)])
            predicted = x[rest] @ weights
            error = x[i] - predicted[np.searchsorted(unknown, i)]
            totals.append(x[rest].sum() + predicted.sum() + unknown.size * error)
        np.testing.assert_allclose(mean[j], np.mean(totals) / 30 + c.mean(), rtol=1e-9)


@pytest.mark.parametrize("s", [1, 2, 3])
def test_unbiased_whatever_the_column_is(rng, s):
    """Over all sets of s rows the answers average to the mean, of a column that the model knows nothing of."""
    known = rng.standard_normal((7, 3)) @ rng.standard_normal((3, 30)) + 1
    known[3:, 20:] = np.nan
    model = _Model(co.complete(known, rank=3, center=True, shrinkage=0.5, refine=0).space, 0.5)
    x = 100 * rng.standard_normal(7) ** 3
    table = np.full((7, 35), np.nan)
    sets = list(combinations(range(7), s))
    for k, rows in enumerate(sets):
        table[rows, k] = x[list(rows)]
    o = co.Observations.from_dense(table[:, : len(sets)])
    mean, _ = model.means(o, model.sum_over_rows, 7, True)
    np.testing.assert_allclose(mean.mean(), x.mean(), rtol=1e-9)
    biased, _ = model.means(o, model.sum_over_rows, 7, False)
    assert abs(biased.mean() - x.mean()) > 1e-3 * abs(x).max()


def spectra(rng, m=300, n=300):
    """Smooth columns, so that what the full ones do not explain is common to many neighbouring rows."""
    distance = np.abs(np.arange(m)[:, None] - np.arange(m)) / 60
    K = (1 + distance) * np.exp(-distance) + 1e-10 * np.eye(m)
    M = np.linalg.cholesky(K) @ rng.standard_normal((m, n))
    return M, *hide(rng, M, 100, 10)


@pytest.mark.slow
@pytest.mark.parametrize("make", [noisy, answers, spectra])
def test_coverage_is_what_it_says(make):
    """Of 12 matrices of about 200 columns; the trust in the prior is right here too, as the columns are alike."""
    covered, errors, plain = {}, {}, []
    for seed in range(12):
        M, known, _ = make(np.random.default_rng(seed))
        completion = co.complete(known, method="full columns")
        partial = completion.observations.partial_columns
        truth = M.mean(axis=0)[partial]
        plain.append(np.mean((np.nanmean(known, axis=0)[partial] - truth) ** 2))
        for unbiased in (True, False):
            for level in (0.5, 0.8, 0.9, 0.95):
                mean, low, high = (part[partial] for part in completion.column_means(level, unbiased=unbiased))
                covered.setdefault((unbiased, level), []).append(np.mean((low <= truth) & (truth <= high)))
            errors.setdefault(unbiased, []).append(np.mean((mean - truth) ** 2))
    off = {key: np.mean(found) - key[1] for key, found in covered.items()}
    assert max(map(abs, off.values())) < 0.03, off
    for found in errors.values():
        assert np.mean(found) < 0.95 * np.mean(plain), "better than the average of what was seen"


def test_only_what_is_surely_larger_widens(rng):
    others = [np.abs(rng.standard_normal(200)) for _ in range(10)]
    assert _surely_larger([1.5 * scores for scores in others], others) == pytest.approx(1.5, rel=1e-9)
    assert _surely_larger([0.5 * scores for scores in others], others) == 1
    assert 1.2 < _surely_larger([1.5 * np.abs(rng.standard_normal(200)) for _ in range(10)], others) < 1.6
    by_chance = [[1.02 * np.abs(rng.standard_normal(4)) for _ in range(10)] for _ in range(20)]
    few = [scores[:4] for scores in others]
    assert sum(_surely_larger(scores, few) > 1.1 for scores in by_chance) < 10
    assert _surely_larger([np.zeros(5)] * 10, others) == _surely_larger(others, [np.zeros(5)] * 10) == 1


@pytest.mark.parametrize("center", [False, True])
def test_the_offset_of_a_prior_is_found_beside_the_full_columns(rng, center):
    A = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 30)) + 0.1 * rng.standard_normal((80, 30)) + 2
    space = co.fit_column_space(A, center=center)
    for share in (0.0, 0.01, 1.0):
        assert offset_beside(with_offset(space, share), np.arange(80), A) == pytest.approx(share, abs=1e-12)


def test_intervals_of_a_higher_level_hold_those_of_a_lower_one(rng):
    """Even if there are too few scores for the higher one."""
    _, known, seen = noisy(rng, n=41)
    completion = co.complete(known)
    widths = [np.ptp(completion.column_means(level)[1:], axis=0)[~seen.all(axis=0)] for level in (0.5, 0.7, 0.79, 0.9)]
    assert (np.diff(widths, axis=0) >= 0).all() and (widths[0] > 0).all()


@pytest.mark.parametrize("s", [3, 4, 5, 20])
def test_few_and_many_entries_are_solved_alike(rng, s):
    """By the definition, of fewer entries than directions and of more."""
    B, t = rng.standard_normal((2, s, 4)), rng.uniform(0.1, 2, (2, s))
    times_inverse, diagonal = _inverse(B, t)
    v = rng.standard_normal((2, s))
    for k in range(2):
        K = B[k] @ B[k].T + np.diag(t[k])
        np.testing.assert_allclose(K @ times_inverse(v)[k], v[k], atol=1e-12)
        np.testing.assert_allclose(diagonal[k], np.diag(np.linalg.inv(K)), rtol=1e-10)


@pytest.mark.slow
def test_full_columns_are_certain_and_bounds_hold(rng):
    M, known, seen = answers(rng)
    mean, low, high = co.complete(known, bounds=(0, 1)).column_means(0.99)
    full = seen.all(axis=0)
    np.testing.assert_allclose(mean[full], M.mean(axis=0)[full], rtol=1e-12)
    np.testing.assert_array_equal(low[full], high[full])
    assert (low >= 0).all() and (high <= 1).all() and (low <= mean).all() and (mean <= high).all()


def test_exact_data_have_exact_means(rng):
    L, R = low_rank(rng, 60, 50, 3)
    known, _ = hide(rng, L @ R, 8, 10)
    mean, low, high = co.complete(known).column_means()
    np.testing.assert_allclose(mean, (L @ R).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(high - low, 0, atol=1e-10)


def test_columns_that_are_not_filled_have_no_mean(rng):
    L, R = low_rank(rng, 60, 50, 3)
    known, seen = hide(rng, L @ R, 8, 10)
    j = np.flatnonzero(~seen.all(axis=0))[0]
    known[:, j] = np.nan
    completion = co.complete(known, rank=3, center=False, shrinkage=0, refine=0)
    assert np.isnan([part[j] for part in completion.column_means()]).all()


@pytest.mark.slow
def test_bad_arguments_and_methods_without_intervals_are_refused(rng):
    _, known, _ = noisy(rng)
    completion = co.complete(known)
    for level in (0, 1, 1.5, "high"):
        with pytest.raises((TypeError, ValueError), match="level"):
            completion.column_means(level)
    with pytest.raises(ValueError, match="no intervals"):
        co.methods.nystrom(rng.standard_normal((20, 20)), n_columns=5, n_rows=5).column_means()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-9])
def test_means_of_data_that_fit_nearly_to_rounding(rng, dtype, noise):
    L, R = low_rank(rng, 300, 200, 5)
    M = (L @ R + noise * rng.standard_normal((300, 200))).astype(dtype)
    known, _ = hide(rng, M, 10, 30)
    completion = co.complete(known)
    mean, low, high = completion.column_means()
    filled = completion.to_dense().mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(mean, filled, atol=10 * np.finfo(dtype).eps * np.abs(M).max())
    assert (low <= mean).all() and (mean <= high).all()
    assert (high - low).max() < 100 * max(noise, np.finfo(dtype).eps * np.abs(M).max())


def test_a_direction_that_one_entry_alone_tells(rng):
    """Beside little noise it must not cost the digits of all else."""
    M = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 60))
    M[5] = 0
    for size in (1e3, 1e7):
        X = M.copy()
        X[5] = size * rng.standard_normal(60)
        known, _ = hide(rng, X, 30, 15)
        known[5] = X[5]
        completion = co.complete(known, center=False, shrinkage=1e-12, refine=0)
        mean, low, high = completion.column_means()
        assert np.isfinite(mean).all() and np.isfinite(high - low).all()


def test_the_largest_numbers_spoil_no_other_mean(rng):
    """Two typos at the ends of floating point; whatever overflows on the way is not shown."""
    L, R = low_rank(rng, 60, 90, 3)
    known, seen = hide(rng, 10 + L @ R + 0.1 * rng.standard_normal((60, 90)), 30, 12)
    j = np.flatnonzero(~seen.all(axis=0))[0]
    known[np.flatnonzero(seen[:, j])[:2], j] = 1.7e308, -1.7e308
    mean, low, high = co.complete(known).column_means()
    others = np.delete(np.arange(90), j)
    assert (np.abs(mean[others]) < 100).all() and np.isfinite(high[others] - low[others]).all()


@pytest.mark.slow
def test_the_mean_of_a_single_column():
    """One column tells no quantile of its errors; the full ones do."""
    held, widths = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        M = (rng.random((200, 41)) < 1 / (1 + np.exp(rng.normal(0, 1.2, (200, 1)) - 1.2 * rng.normal(0, 1, 41)))) + 0.0
        known = M.copy()
        known[rng.choice(200, 170, replace=False), 40] = np.nan
        _, low, high = co.complete(known).column_means(0.9)
        held.append(low[40] <= M[:, 40].mean() <= high[40])
        widths.append(high[40] - low[40])
    assert 0.8 <= np.mean(held) <= 0.98 and np.mean(widths) < 2 * 1.645 * np.sqrt(0.25 / 30)


def test_means_where_full_columns_cannot_tell_the_noise(rng):
    """As many full columns as directions leave no residual: then the errors of entries left out tell it."""
    X = rng.standard_normal((200, 5)) @ rng.standard_normal((5, 300)) + 0.5 * rng.standard_normal((200, 300))
    known = np.where(rng.random(X.shape) < 0.15, X, np.nan)
    known[:, :5] = X[:, :5]
    completion = co.complete(known, rank=5, center=False, shrinkage=0, refine=0)
    assert np.isnan(completion.space.noise_std) and 0.5 < completion.noise_std < 5
    _, low, high = completion.column_means(0.9)
    truth = X.mean(axis=0)
    assert 0.8 < np.mean(((low <= truth) & (truth <= high))[5:]) < 0.97


@pytest.mark.slow
def test_means_with_very_unequal_weights(rng):
    """A mean over all rows as they are measured: the noise of each is its own."""
    weights = 10.0 ** rng.uniform(-2, 2, (100, 150))
    M = rng.standard_normal((100, 4)) @ rng.standard_normal((4, 150)) + 0.5 * rng.standard_normal((100, 150))
    known = M.copy()
    known[:, 50:][np.argsort(rng.random((100, 100)), axis=0) < 20] = np.nan
    figures = co.complete(co.Observations.from_dense(known, weights=weights)).column_means()
    assert np.isfinite(figures).all()
    few = np.where(np.arange(12) < 10, 1.0, np.where(np.arange(6)[:, None] < 1, np.nan, 1.0)) * M[:6, :12]
    mean, low, high = co.complete(co.Observations.from_dense(few, weights=weights[:6, :12])).column_means()
    np.testing.assert_allclose(np.stack([mean, low, high])[:, :10], np.tile(few[:, :10].mean(axis=0), (3, 1)))


def test_the_deviation_of_a_mean_under_unequal_weights(rng):
    """The variance of the sum of a Gaussian column given some of its entries, with the noise that each was measured."""
    m, r, s, noise = 30, 3, 12, 0.4
    U = np.linalg.qr(rng.standard_normal((m, r)))[0]
    space = co.ColumnSpace(U, np.ones(r), None, np.array([9.0, 4.0, 1.0]), np.nan)
    weights = 10.0 ** rng.uniform(-2, 2, m)
    rows = np.sort(rng.choice(m, s, replace=False))
    known = np.full((m, 1), np.nan)
    known[rows, 0] = rng.standard_normal(s)
    o = co.Observations.from_dense(known, weights=np.where(np.isnan(known), 1.0, weights[:, None]))
    model = _Model(space, noise)
    _, deviation = model.means(o, model.sum_over_rows, m, unbiased=False)
    C = (U * space.variances) @ U.T + noise * np.eye(m)
    C[rows, rows] += noise / weights[rows] - noise
    c = C[rows].sum(axis=1)
    expected = C.sum() - c @ np.linalg.solve(C[np.ix_(rows, rows)], c)
    np.testing.assert_allclose(deviation[0] * m, np.sqrt(expected), rtol=1e-9)


def test_the_jackknife_of_two_folds_by_hand():
    """Left out in turn, the folds say ratios a and b: the standard error of the logarithm is |log a - log b| / 2."""
    rng = np.random.default_rng(0)
    others = [rng.random(50) + 0.5 for _ in range(2)]
    assert _surely_larger([3 * scores for scores in others], others) == pytest.approx(3, rel=1e-12)
    one = np.ones(40)
    some = [4 * one, 9 * one]
    together = np.exp(np.log(np.quantile(np.concatenate(some), (0.5, 0.8, 0.9, 0.95))).mean())
    expected = together * np.exp(-np.log(9 / 4) / 2 / 2)  # less half a standard error
    assert _surely_larger(some, [one, one]) == pytest.approx(expected, rel=1e-12)
    assert _surely_larger([one / 2, one / 3], [one, one]) == 1


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_intervals_of_means_have_the_unit_of_the_data(scale):
    rng = np.random.default_rng(0)
    L, R = low_rank(rng, 40, 50, 2)
    known, _ = hide(rng, L @ R + 0.1 * rng.standard_normal((40, 50)), 15, 12)
    settings = {"rank": 2, "center": False, "shrinkage": 0.01, "refine": 0}
    one = co.complete(known, **settings).column_means()
    other = co.complete(scale * known, **{**settings, "shrinkage": 0.01 * scale**2}).column_means()
    np.testing.assert_allclose(other, scale * np.array(one), rtol=1e-6)
