"""The imputer for any table: exact answers, invariances, calibrated uncertainty, and the contract of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import colonnade as co
from colonnade import LowRankImputer
from colonnade.model.packed import unpacked
from colonnade.uncertainty.student import from_normal
from colonnade.uncertainty.table_calibration import calibrate_table

FACTOR_MODEL = {"method": "factor model", "orientation": "rows"}


class Table:
    """Samples of low rank in 20 features with levels of their own, and more samples of the same kind."""

    def __init__(self, seed, n=80, p=20, rank=3, noise=0.0):
        self.rng, self.noise = np.random.default_rng(seed), noise
        self.loadings, self.level = self.rng.standard_normal((rank, p)), 3 * self.rng.standard_normal(p)
        self.X, self.known = self.samples(n)

    def samples(self, n, share=0.7):
        r, p = self.loadings.shape
        X = self.rng.standard_normal((n, r)) @ self.loadings + self.level
        X += self.noise * self.rng.standard_normal((n, p))
        return X, np.where(self.rng.random((n, p)) < share, X, np.nan)


@parametrize_with_checks([LowRankImputer()])
def test_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([LowRankImputer(sample_posterior=True, random_state=0)])
def test_contract_of_scikit_learn_with_draws(estimator, check):
    check(estimator)


# The answers


def test_exact_data_are_recovered(seed):
    """Also in new samples; those with fewer entries than directions are not determined, and their intervals say so."""
    t = Table(seed)
    imputer = LowRankImputer().fit(t.known)
    assert imputer.rank_ == 3 and imputer.choices_["noise"] == "none"
    np.testing.assert_allclose(imputer.transform(t.known), t.X, atol=1e-8)
    new, known = t.samples(200)
    np.testing.assert_allclose(imputer.transform(known), new, atol=1e-8)
    assert imputer.predict_std(known).max() < 1e-3
    known[:, 2:] = np.nan
    known[:, :2] = new[:, :2]
    assert np.median(imputer.predict_std(known)[:, 2:]) > 0.1
    low, high = imputer.predict_interval(known)
    # One open direction, known from 80 samples: 79 to 91 % over ten seeds.
    assert 0.7 < np.mean(((low <= new) & (new <= high))[:, 2:]) < 0.98


@pytest.mark.parametrize("settings", [{}, {"rank": 2}, {"bounds": (-4.0, 4.5)}, {"random_state": 3}])
@pytest.mark.parametrize("noise", [0.0, pytest.param(0.4, marks=pytest.mark.slow)])
def test_it_is_complete(seed, noise, settings):
    t = Table(seed, noise=noise)
    expected = co.complete(t.known, **FACTOR_MODEL, **settings).to_dense()
    np.testing.assert_array_equal(LowRankImputer(**settings).fit_transform(t.known), expected)
    np.testing.assert_allclose(LowRankImputer(**settings).fit(t.known).transform(t.known), expected, atol=1e-8)


@pytest.mark.slow
def test_training_samples_are_filled_like_new_ones_despite_outliers(seed):
    """Student-t noise weighs every entry by its error; new samples must be weighed in the same way."""
    t = Table(seed, n=150, noise=0.3)
    known = np.where(t.rng.random(t.X.shape) < 0.03, 40 * t.rng.standard_normal(t.X.shape), t.known)
    imputer = LowRankImputer().fit(known)
    assert "Student-t" in imputer.choices_["noise"]
    np.testing.assert_allclose(imputer.transform(known), imputer.fit_transform(known), rtol=1e-9, atol=1e-9)
    gappy = t.samples(100)[1]
    clean = imputer.transform(gappy)
    wrong = gappy.copy()
    first = np.argmax(~np.isnan(gappy), axis=1)
    wrong[np.arange(100), first] = 1e6
    gaps = np.isnan(gappy)
    moved = np.abs(imputer.transform(wrong) - clean)[gaps]
    assert np.median(moved) < 0.2  # In units in which the features vary by 1 to 2: one typing error moves little.


@pytest.mark.slow
def test_intervals_are_those_of_complete(seed):
    t = Table(seed, noise=0.4)
    completion = co.complete(t.known, **FACTOR_MODEL)
    rows, columns = np.indices(t.X.shape)
    expected = completion.interval(rows, columns, 0.8)
    found = LowRankImputer().fit(t.known).predict_interval(t.known, 0.8)
    # `complete` may take factors of samples from its held-out entries. A sample of the imputer then has the usual one.
    calibration = completion.accuracy.calibration
    apart = np.ptp(calibration.row_factors) if calibration.kind == "held out" else 1e-6
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, atol=apart * np.max(expected[1] - expected[0]))


def factor_by_hand(found, residuals, f, of_row, of_column, of_both, o):
    """The factor of a sample: its known entries, each left out, shrunk to the usual factor."""
    by_row, by_column = of_row / f.noise, of_column / f.noise
    rest = {"added": 1 - by_row - by_column, "multiplied": (1 - by_row) * (1 - by_column)}.get(found.kind)
    counts = sums = 0.0
    if rest is not None:
        rest = np.maximum(rest, 0.01)
        fit = of_row / (1 - by_row) + of_column / (1 - by_column) + of_both
        variance = found.parts.noise * f.own_noise + found.parts.fit * fit
        squares = np.minimum(residuals**2 / (rest**2 * variance), found.most) / found.column_factors**2
        counts, sums = rest[o].sum(), (rest * squares)[o].sum()
    factor = np.sqrt((found.row_prior.scale + sums / 2) / (found.row_prior.shape + counts / 2)) * found.column_factors
    degrees = 1 / (1 / (2 * found.row_prior.shape + counts) + 1 / found.column_degrees)
    low, high = (from_normal(end, degrees) for end in found.ends(0.9))
    return factor, (high - low) / 2 / 1.6448536269514722


def open_by_hand(found, f, S, T, moments):
    """Shares of the fit that a sample and the features leave open, and V0."""
    r = f.rank
    M = moments[:, :r, :r].mean(axis=0)
    N = np.mean([np.outer(z, z) for z in f.Z], axis=0)
    N[:r, :r] += np.mean([unpacked(packed, r) for packed in f.column_covariance], axis=0)
    before = np.einsum("iaa->i", moments) - f.U[:, r] ** 2
    open_sample, open_features = np.sum(M * S) / np.trace(M), np.sum(N * T, axis=(1, 2)) / before.mean()
    return 1 - (1 - open_sample) * (1 - np.minimum(open_features, 1)), before


def test_a_new_sample_by_hand(seed):
    """z = S sum u (x - c) - E[uc] cov, S = (I + sum E[uu'] / v)^-1; variance v + (z,1)'T(z,1) + u'Su + tr(TS)."""
    t = Table(seed, noise=0.4)
    imputer = LowRankImputer(rank=3).fit(t.known)
    completion = co.complete(t.known, rank=3, **FACTOR_MODEL)
    f, r = completion.learned.model, 3
    _, known = t.samples(5, share=0.5)
    filled, std = imputer.transform(known), imputer.predict_std(known)
    found = calibrate_table(completion.learned, completion.observations)
    T = np.array([unpacked(packed, r + 1) for packed in f.row_covariance])
    moments = T + f.U[:, :, None] * f.U[:, None, :]
    for x, fill, deviation in zip(known, filled, std):
        o = ~np.isnan(x)
        y = (x - f.shift) / f.unit
        S = np.linalg.inv(np.eye(r) + (moments[o, :r, :r] / f.noise[o, None, None]).sum(axis=0))
        z = S @ ((f.U[o, :r] * y[o, None] - moments[o, :r, r]) / f.noise[o, None]).sum(axis=0)
        z1 = np.append(z, 1.0)
        np.testing.assert_allclose(fill[~o], (f.shift + f.unit * (f.U @ z1))[~o], rtol=1e-9, atol=1e-9)
        of_row, of_column = np.einsum("a,iab,b->i", z1, T, z1), np.einsum("ia,ab,ib->i", f.U[:, :r], S, f.U[:, :r])
        of_both = np.einsum("iab,ab->i", T[:, :r, :r], S)
        variance = found.parts.noise * f.own_noise + found.parts.fit * (of_row + of_column + of_both)
        factor, half = factor_by_hand(found, y - f.U @ z1, f, of_row, of_column, of_both, o)
        # V is what is open of V0, and a its factor.
        share, before = open_by_hand(found, f, S, T, moments)
        V0, V = before + f.own_noise, f.own_noise + share * before
        a = factor**2 * (found.parts.noise * f.own_noise + found.parts.fit * share * before) / V
        told = 1 / (1 / (found.lines.spread * V0) + (1 / V - 1 / V0) / a)
        told = half * f.unit * factor * np.sqrt(variance * np.maximum(1, told / (a * V)))
        np.testing.assert_allclose(deviation[~o], told[~o], rtol=1e-9)
        assert (deviation[o] == 0).all()


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_units_of_features_do_not_matter(seed, noise):
    t = Table(seed, noise=noise)
    units, shifts = 10.0 ** t.rng.integers(-9, 10, 20), 100 * t.rng.standard_normal(20)
    _, new = t.samples(30)
    plain, other = LowRankImputer().fit(t.known), LowRankImputer().fit((t.known + shifts) * units)
    answers = [(plain.transform(new), other.transform((new + shifts) * units) / units - shifts)]
    answers += [(plain.predict_std(new), other.predict_std((new + shifts) * units) / units)]
    answers += [(plain.mean_, other.mean_ / units - shifts), (plain.components_, other.components_)]
    for ours, theirs in answers:
        np.testing.assert_allclose(theirs, ours, rtol=1e-6, atol=1e-6)


def test_short_features_in_different_units(seed):
    """Fewer than ten samples: the spread of one feature must not set the unit of another."""
    t = Table(seed, n=8, p=6, rank=1, noise=0.1)
    units = 10.0 ** np.array([-6, 6, 0, 3, -3, 1])
    filled = LowRankImputer().fit_transform(t.known * units) / units
    spread = np.abs(t.X - t.level).max(axis=0)
    assert (np.abs(filled - t.level) <= 2 * spread)[:, np.isfinite(filled).all(axis=0)].all()


def test_samples_do_not_depend_on_each_other(seed):
    t = Table(seed, noise=0.4)
    imputer, order = LowRankImputer().fit(t.known), t.rng.permutation(80)
    for method in (imputer.transform, imputer.predict_std, lambda X: imputer.predict_interval(X)[0]):
        whole = method(t.known)
        np.testing.assert_array_equal(method(t.known[order]), whole[order])
        for i in order[:5]:
            np.testing.assert_array_equal(method(t.known[i : i + 1])[0], whole[i])


def test_blocks_of_samples_change_nothing(seed, monkeypatch):
    t = Table(seed, noise=0.4)
    imputer = LowRankImputer().fit(t.known)
    whole = imputer.transform(t.known)
    monkeypatch.setattr("colonnade.interfaces.imputers.low_rank._BLOCK_NUMBERS", 1000)
    np.testing.assert_array_equal(imputer.transform(t.known), whole)


def test_learned_from_a_table_without_gaps(seed):
    t = Table(seed, noise=0.1)
    imputer = LowRankImputer().fit(t.X)
    np.testing.assert_array_equal(imputer.transform(t.X), t.X)
    new, known = t.samples(100)
    error = (imputer.transform(known) - new)[np.isnan(known)]
    assert np.sqrt(np.mean(error**2)) < 0.2


# Uncertainty


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say():
    """New samples of several tables, 90 and 50 %; the calibration of one table has about 170 held-out entries."""
    held = {0.9: [], 0.5: []}
    for seed in range(6):
        t = Table(seed, n=120, noise=0.4)
        imputer = LowRankImputer().fit(t.known)
        new, known = t.samples(200, share=0.5)
        for level, shares in held.items():
            low, high = imputer.predict_interval(known, level)
            shares.append(np.mean(((low <= new) & (new <= high))[np.isnan(known)]))
    for level, shares in held.items():
        assert abs(np.mean(shares) - level) < 0.05 and np.abs(np.array(shares) - level).max() < 0.15


@pytest.mark.slow
def test_draws_have_the_mean_and_the_spread_that_are_predicted(seed):
    t = Table(seed, noise=0.4)
    imputer = LowRankImputer(sample_posterior=True, random_state=np.random.default_rng(seed)).fit(t.known)
    new = t.samples(10, share=0.5)[1]
    new[0] = np.nan
    draws = np.array([imputer.transform(new) for _ in range(2000)])
    gaps = np.isnan(new)
    assert (draws[:, ~gaps] == new[~gaps]).all()
    mean, std = imputer.set_params(sample_posterior=False).transform(new)[gaps], imputer.predict_std(new)[gaps]
    assert np.abs((draws[:, gaps].mean(axis=0) - mean) / std).max() < 5 / np.sqrt(2000)
    np.testing.assert_allclose(draws[:, gaps].std(axis=0), std, rtol=0.15)


@pytest.mark.slow
def test_entries_of_a_draw_vary_together(seed):
    """The correlations of an empty sample's features are those of the table: u'u of the directions plus noise."""
    t = Table(seed, n=300, noise=0.4)
    imputer = LowRankImputer(sample_posterior=True, random_state=seed).fit(t.known)
    drawn = imputer.transform(np.full((20_000, 20), np.nan))
    found = np.corrcoef(drawn.T)
    truth = t.loadings.T @ t.loadings + 0.16 * np.eye(20)
    expected = truth / np.sqrt(np.outer(np.diag(truth), np.diag(truth)))
    assert np.abs(found - expected).max() < 0.3 and np.abs(found - expected).mean() < 0.06


@pytest.mark.slow
def test_random_state_of_draws(seed):
    t = Table(seed, noise=0.4)
    same = LowRankImputer(sample_posterior=True, random_state=1).fit(t.known)
    np.testing.assert_array_equal(same.transform(t.known), same.transform(t.known))
    np.testing.assert_array_equal(same.transform(t.known), clone(same).fit_transform(t.known))
    fresh = LowRankImputer(sample_posterior=True).fit(t.known)
    assert (fresh.transform(t.known) != fresh.transform(t.known)).any()
    exact = Table(seed)
    drawn = LowRankImputer(sample_posterior=True, random_state=0).fit(exact.known).transform(exact.known)
    np.testing.assert_allclose(drawn, exact.X, atol=1e-3)


# Tables at the edge


@pytest.mark.slow
def test_features_without_any_entry_stay_unknown(seed):
    """What new samples have there is kept, and tells nothing about the rest."""
    t = Table(seed, noise=0.4)
    t.known[:, 4] = np.nan
    imputer = LowRankImputer().fit(t.known)
    for filled in (imputer.transform(t.known), imputer.fit_transform(t.known), imputer.predict_std(t.known)):
        assert np.isnan(filled).all(axis=0).tolist() == [j == 4 for j in range(20)]
        assert np.isfinite(np.delete(filled, 4, axis=1)).all()
    for values in (imputer.mean_, imputer.scale_, imputer.noise_std_, imputer.components_[0]):
        assert np.flatnonzero(np.isnan(values)).tolist() == [4]
    new = t.known.copy()
    new[:, 4] = 1e9
    filled = imputer.transform(new)
    assert (filled[:, 4] == 1e9).all()
    np.testing.assert_array_equal(np.delete(filled, 4, axis=1), np.delete(imputer.transform(t.known), 4, axis=1))


def test_constant_features(seed):
    t = Table(seed, noise=0.4)
    t.known[:, 4] = np.where(np.isnan(t.known[:, 4]), np.nan, 7.0)
    imputer = LowRankImputer().fit(t.known)
    assert (imputer.transform(t.known)[:, 4] == 7).all() and imputer.scale_[4] == imputer.noise_std_[4] == 0
    new = t.known.copy()
    new[:, 4] = 7.0
    other = new.copy()
    other[:, 4] = 1e9
    filled = [np.delete(imputer.transform(X), 4, axis=1) for X in (new, other)]
    np.testing.assert_array_equal(*filled)


@pytest.mark.parametrize(
    "known, expected",
    [
        ([[1.0, 2, np.nan]], [[1.0, 2, np.nan]]),
        ([[1.0], [np.nan], [3]], [[1.0], [2], [3]]),
        ([[1.0, 2], [1, np.nan], [np.nan, 2]], [[1.0, 2], [1, 2], [1, 2]]),
        ([[5.0]], [[5.0]]),
    ],
)
def test_tiny_tables(known, expected):
    np.testing.assert_allclose(LowRankImputer().fit_transform(known), expected)
    imputer = LowRankImputer(sample_posterior=True, random_state=0).fit(known)
    assert imputer.transform(known).shape == np.shape(known)
    assert np.isfinite(imputer.predict_std(known)).sum() == np.isfinite(expected).sum()


def test_two_features(seed):
    rng = np.random.default_rng(seed)
    X = np.outer(rng.standard_normal(100), [1.0, -50.0]) + np.array([3, 4])
    known = X.copy()
    known[:30, 1] = known[30:60, 0] = np.nan
    np.testing.assert_allclose(LowRankImputer().fit_transform(known), X, atol=0.05)


def test_a_sample_without_any_entry_is_the_mean(seed):
    t = Table(seed, noise=0.4)
    imputer = LowRankImputer().fit(t.known)
    np.testing.assert_allclose(imputer.transform(np.full((1, 20), np.nan))[0], imputer.mean_, rtol=1e-12)


def test_bounds(seed):
    t = Table(seed)
    gaps, bounds = np.isnan(t.known), (-1.0, 2.0)
    imputer = LowRankImputer(bounds=bounds).fit(t.known)
    filled = imputer.transform(t.known)
    np.testing.assert_array_equal(filled[~gaps], t.X[~gaps])
    np.testing.assert_allclose(filled[gaps], np.clip(t.X, *bounds)[gaps], atol=1e-8)
    others = [*imputer.predict_interval(t.known), imputer.set_params(sample_posterior=True).transform(t.known)]
    for values in others:
        assert values[gaps].min() >= -1 and values[gaps].max() <= 2


@pytest.mark.slow
def test_extreme_numbers(seed):
    t = Table(seed, noise=0.4)
    filled = LowRankImputer().fit_transform(t.known)
    for size in (2.0**-900, 2.0**900):
        np.testing.assert_allclose(LowRankImputer().fit(t.known * size).transform(t.known * size) / size, filled)


# The company it keeps


def test_fitted_attributes(seed):
    t = Table(seed, n=200, noise=0.4)
    imputer = LowRankImputer(rank=3).fit(t.known)
    assert imputer.rank_ == 3 and imputer.components_.shape == (3, 20) and imputer.n_features_in_ == 20
    np.testing.assert_allclose(imputer.mean_, t.level, atol=0.5)
    np.testing.assert_allclose(imputer.noise_std_, 0.4, rtol=0.35)
    np.testing.assert_allclose(imputer.scale_, np.nanstd(t.known, axis=0), rtol=1e-9)
    C = imputer.components_ @ imputer.components_.T
    np.testing.assert_allclose(C, np.diag(np.diag(C)), atol=1e-12)
    assert (np.diff(np.diag(C)) <= 0).all()
    loadings = imputer.scale_ * imputer.components_
    truth = t.loadings.T @ t.loadings
    assert np.linalg.norm(loadings.T @ loadings - truth) < 0.5 * np.linalg.norm(truth)
    assert imputer.choices_["orientation"] == "samples; each feature has its own unit and level"
    assert not hasattr(imputer, "feature_names_in_") and not hasattr(imputer, "inverse_transform")
    assert imputer.get_feature_names_out().tolist() == [f"x{j}" for j in range(20)]


def test_known_entries_and_the_input_stay(seed):
    t = Table(seed, noise=0.4)
    before = t.known.copy()
    imputer = LowRankImputer().fit(t.known)
    seen = ~np.isnan(before)
    answers = [imputer.transform(t.known), imputer.fit_transform(t.known), *imputer.predict_interval(t.known)]
    for values in answers:
        np.testing.assert_array_equal(values[seen], t.X[seen])
        values[:] = 0
    np.testing.assert_array_equal(t.known, before)


@pytest.mark.slow
def test_single_precision_is_kept(seed):
    t = Table(seed, noise=0.4)
    single = t.known.astype(np.float32)
    imputer, expected = LowRankImputer().fit(single), LowRankImputer().fit_transform(t.known)
    for filled in (imputer.transform(single), LowRankImputer().fit_transform(single)):
        assert filled.dtype == np.float32
        np.testing.assert_allclose(filled, expected, atol=1e-3)
    others = [*imputer.predict_interval(single), imputer.predict_std(single)]
    others.append(clone(imputer).set_params(sample_posterior=True).fit_transform(single))
    assert {values.dtype for values in others} == {np.dtype(np.float32)}
    assert imputer.transform(t.known).dtype == np.float64


def frames_of(known):
    columns = {f"c{j}": [None if np.isnan(x) else float(x) for x in known[:, j]] for j in range(known.shape[1])}
    yield pd.DataFrame(known, columns=list(columns))
    yield pd.DataFrame(columns).convert_dtypes()
    yield pl.DataFrame(columns)
    yield pa.table(columns)


@pytest.mark.slow
def test_data_frames():
    t = Table(0, noise=0.4)
    expected = LowRankImputer().fit_transform(t.known)
    for frame in frames_of(t.known):
        imputer = LowRankImputer().fit(frame)
        assert imputer.feature_names_in_.tolist() == [f"c{j}" for j in range(20)]
        np.testing.assert_array_equal(LowRankImputer().fit_transform(frame), expected)
        assert imputer.predict_std(frame).shape == t.X.shape
        for output in ("pandas", "polars"):
            filled = imputer.set_output(transform=output).transform(frame)
            assert type(filled).__module__.startswith(output)
            assert list(filled.columns) == imputer.feature_names_in_.tolist()
            np.testing.assert_allclose(filled.to_numpy(), expected, atol=1e-10)


@pytest.mark.slow
def test_pickle_clone_and_pipelines():
    t = Table(0, noise=0.4)
    imputer = LowRankImputer(rank=4, bounds=(-9, 9)).fit(t.known)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(imputer)).transform(t.known), imputer.transform(t.known))
    for method in (clone(imputer).transform, clone(imputer).predict_interval, clone(imputer).predict_std):
        with pytest.raises(NotFittedError):
            method(t.known)
    exact = Table(0)
    y = exact.X @ exact.rng.standard_normal(20)
    pipeline = make_pipeline(StandardScaler(), LowRankImputer(), Ridge(1e-6))
    assert pipeline.fit(exact.known, y).score(exact.known, y) > 0.999
    grid = {"lowrankimputer__rank": [1, 3, "auto"]}
    search = GridSearchCV(make_pipeline(LowRankImputer(), Ridge(1e-6)), grid, cv=3, error_score="raise")
    assert search.fit(exact.known, y).cv_results_["mean_test_score"][1:].min() > 0.99


@pytest.mark.parametrize(
    "settings, error, words",
    [
        ({"rank": 0}, ValueError, "rank must be a whole number from 1 to 20.*got 0"),
        ({"rank": 21}, ValueError, "from 1 to 20.*got 21"),
        ({"rank": 2.0}, TypeError, "got 2.0"),
        ({"bounds": (1, 0)}, ValueError, "bounds"),
        ({"sample_posterior": "yes"}, ValueError, "sample_posterior must be one of True, False; got 'yes'"),
        ({"random_state": "x"}, TypeError, "random_state"),
    ],
)
def test_parameters_that_are_refused(settings, error, words):
    with pytest.raises(error, match=words):
        LowRankImputer(**settings).fit(Table(0).known)


def test_data_that_are_refused():
    with pytest.raises(ValueError, match="no entry of the 2 x 3 table is known"):
        LowRankImputer().fit(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="row 0, column 1 is inf"):
        LowRankImputer().fit([[1.0, np.inf]])
    with pytest.raises(TypeError, match="sparse data are refused"):
        LowRankImputer().fit(sparse.csr_array(np.eye(3)))
    imputer = LowRankImputer().fit(np.eye(3))
    with pytest.raises(ValueError, match="X has 2 features, but LowRankImputer is expecting 3"):
        imputer.predict_std(np.eye(2))
    with pytest.raises(ValueError, match=r"level must be a finite number in \(0, 1\); got 1"):
        imputer.predict_interval(np.eye(3), 1)
