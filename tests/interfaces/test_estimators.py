"""The two imputers: the answers of `complete`, the contract of scikit-learn, and what must be survived."""

import pickle
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import colonnade as co
from colonnade import Status
from colonnade.interfaces.imputers.complete_sides import CompleteColumnsImputer, CompleteRowsImputer

from problems import hide, low_rank, processor_time

BOTH = pytest.mark.parametrize("Imputer", [CompleteRowsImputer, CompleteColumnsImputer])
PAPER = {"center": False, "shrinkage": 0, "refine": 0}


def table(rng, Imputer, n_samples=60, n_features=40, rank=3, n_complete=12, noise=0.0):
    """A table of low rank and what is known of it: some rows complete, or some columns."""
    L, R = low_rank(rng, n_samples, n_features, rank)
    X = L @ R + noise * rng.standard_normal((n_samples, n_features))
    if Imputer is CompleteRowsImputer:
        return X, hide(rng, X.T, n_complete, n_features // 3)[0].T.copy()
    return X, hide(rng, X, n_complete, n_samples // 3)[0]


def completed(Imputer, known, **settings):
    """`complete` in the orientation of the imputer."""
    if Imputer is CompleteRowsImputer:
        return co.complete(known.T, method="full columns", **settings).to_dense().T
    return co.complete(known, method="full columns", **settings).to_dense()


def no_complete_feature(estimator):
    if isinstance(estimator, CompleteColumnsImputer):
        return {"check_estimators_pickle": "its data have no complete feature"}
    return {}


# scikit-learn before 1.8 does not know the keyword.
STRICT = {"xfail_strict": True} if "xfail_strict" in signature(parametrize_with_checks).parameters else {}


@parametrize_with_checks(
    [CompleteRowsImputer(), CompleteColumnsImputer()], expected_failed_checks=no_complete_feature, **STRICT
)
def test_contract_of_scikit_learn(estimator, check):
    check(estimator)


# The answers


@BOTH
@pytest.mark.parametrize("settings", [{}, {"rank": 3, **PAPER}])
def test_exact_data_are_recovered(rng, Imputer, settings):
    X, known = table(rng, Imputer)
    for filled in (Imputer(**settings).fit_transform(known), Imputer(**settings).fit(known).transform(known)):
        assert np.abs(filled - X).max() <= 1e-12 * np.abs(X).max()


@BOTH
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rank": 4},
        {"center": True},
        {"center": False},
        {"shrinkage": 0.01},
        {"bounds": (-1.0, 1.5)},
        {"rank": 3, **PAPER},
    ],
)
def test_it_is_complete(rng, Imputer, settings):
    _, known = table(rng, Imputer, noise=0.3)
    expected = completed(Imputer, known, **settings)
    np.testing.assert_array_equal(Imputer(**settings).fit_transform(known), expected)
    imputer = Imputer(refine=0, **{k: v for k, v in settings.items() if k != "refine"}).fit(known)
    expected = completed(Imputer, known, **{**settings, "refine": 0})
    np.testing.assert_allclose(imputer.transform(known), expected, atol=1e-11)


@BOTH
def test_an_offset_of_features_is_learned(rng, Imputer):
    """A large mean per row and per column: whatever is chosen, `transform` and `complete` agree."""
    X, known = table(rng, Imputer, noise=0.3)
    known += 5 * rng.standard_normal((X.shape[0], 1)) + 5 * rng.standard_normal(X.shape[1]) + 20
    expected = completed(Imputer, known, refine=0)
    np.testing.assert_allclose(Imputer(refine=0).fit(known).transform(known), expected, atol=1e-10)


@BOTH
def test_known_entries_and_the_input_stay(rng, Imputer):
    X, known = table(rng, Imputer, noise=0.3)
    before = known.copy()
    imputer = Imputer().fit(known)
    for filled in (imputer.transform(known), imputer.fit_transform(known)):
        seen = ~np.isnan(known)
        np.testing.assert_array_equal(filled[seen], X[seen])
        assert np.isfinite(filled).all()
        filled[:] = 0
    np.testing.assert_array_equal(known, before)


@BOTH
def test_samples_do_not_depend_on_each_other(rng, Imputer):
    _, known = table(rng, Imputer, noise=0.3)
    imputer = Imputer().fit(known)
    filled, order = imputer.transform(known), rng.permutation(len(known))
    np.testing.assert_allclose(imputer.transform(known[order]), filled[order], rtol=1e-12, atol=1e-12)
    for i in order[:5]:
        np.testing.assert_allclose(imputer.transform(known[i : i + 1])[0], filled[i], rtol=1e-12, atol=1e-12)
    again = Imputer(**PAPER, rank=3).fit(known[order]).transform(known)
    np.testing.assert_allclose(again, Imputer(**PAPER, rank=3).fit(known).transform(known), atol=1e-10)


@BOTH
def test_blocks_of_samples_change_nothing(rng, Imputer, monkeypatch):
    _, known = table(rng, Imputer, noise=0.3)
    imputer = Imputer().fit(known)
    whole = imputer.transform(known)
    monkeypatch.setattr("colonnade.interfaces.imputers.common.CACHE_CELLS", 7 * known.shape[1])
    np.testing.assert_allclose(imputer.transform(known), whole, rtol=1e-12, atol=1e-12)


def test_new_rows_by_hand_from_complete_rows(rng):
    """x = mean + V' (V_O V_O' + Lambda)^-1 V_O (x_O - mean_O), the directions those of the complete rows."""
    X, known = table(rng, CompleteRowsImputer, noise=0.3)
    imputer = CompleteRowsImputer(rank=4, center=True, shrinkage=0.09, refine=0).fit(known)
    full = X[~np.isnan(known).any(axis=1)]
    mean = full.mean(axis=0)
    _, S, V = np.linalg.svd(full - mean, full_matrices=False)
    V, penalty = V[:4], 0.09 / (S[:4] ** 2 / len(full))
    new = np.where(rng.random((5, X.shape[1])) < 0.5, X[:5] + 1, np.nan)
    filled = imputer.transform(new)
    for x, found in zip(new, filled):
        o = ~np.isnan(x)
        z = np.linalg.solve(V[:, o] @ V[:, o].T + np.diag(penalty), V[:, o] @ (x - mean)[o])
        np.testing.assert_allclose(found[~o], (mean + z @ V)[~o], atol=1e-12)
    np.testing.assert_allclose(np.abs(imputer.components_ @ V.T), np.eye(4), atol=1e-12)
    np.testing.assert_allclose(imputer.center_, mean, atol=1e-13)


@pytest.mark.parametrize("center", [False, True])
def test_new_rows_by_hand_from_complete_columns(rng, center):
    """U = A V S^-1, so that the fill of a row a is a' V S^-1 z_j, with the mean of a taken off and put back."""
    X, known = table(rng, CompleteColumnsImputer, noise=0.3)
    imputer = CompleteColumnsImputer(rank=4, center=center, shrinkage=0, refine=0).fit(known)
    complete = np.flatnonzero(~np.isnan(known).any(axis=0))
    A = X[:, complete]
    means = A.mean(axis=1, keepdims=True) if center else np.zeros((len(A), 1))
    U, S, V = np.linalg.svd(A - means, full_matrices=False)
    new = rng.standard_normal((5, X.shape[1]))
    new[:, np.setdiff1d(np.arange(X.shape[1]), complete)] = np.nan
    filled = imputer.transform(new)
    new_means = new[:, complete].mean(axis=1) if center else np.zeros(5)
    for j in np.setdiff1d(np.arange(X.shape[1]), complete):
        o = ~np.isnan(known[:, j])
        z = np.linalg.lstsq(U[o, :4], (X[:, [j]] - means)[o, 0], rcond=None)[0]
        expected = new_means + (new[:, complete] - new_means[:, None]) @ (V[:4].T / S[:4]) @ z
        np.testing.assert_allclose(filled[:, j], expected, atol=1e-11)


def test_refinement_is_for_the_rows_of_the_training(rng):
    """It uses their entries in incomplete features, which new rows lack: these are filled as without it."""
    _, known = table(rng, CompleteColumnsImputer, noise=0.5)
    refined, plain = (CompleteColumnsImputer(rank=3, refine=k) for k in (2, 0))
    np.testing.assert_array_equal(refined.fit_transform(known), co.complete(known, rank=3, refine=2).to_dense())
    np.testing.assert_array_equal(refined.transform(known), plain.fit(known).transform(known))
    rows = CompleteRowsImputer(rank=3, refine=2).fit(known.T.copy())
    np.testing.assert_allclose(rows.transform(known.T), co.complete(known, rank=3, refine=2).to_dense().T, atol=1e-10)


def test_coefficients_are_the_fill(rng):
    _, known = table(rng, CompleteColumnsImputer, noise=0.3)
    known += 10 * rng.standard_normal(known.shape[1])
    imputer = CompleteColumnsImputer().fit(known)
    new = known[:, imputer.complete_features_] + 1
    expected = new @ imputer.coef_.T + imputer.intercept_
    rows = np.full((len(new), known.shape[1]), np.nan)
    rows[:, imputer.complete_features_] = new
    np.testing.assert_allclose(imputer.transform(rows), expected, atol=1e-10)


def test_collinear_and_scaled_features(rng):
    """Features in other units, repeated and zero ones: the same function of a row."""
    X, known = table(rng, CompleteColumnsImputer)
    units = 10.0 ** rng.integers(-8, 9, X.shape[1])
    extra = np.column_stack([known * units, X[:, :1] * 0, (known * units)[:, ~np.isnan(known).any(axis=0)]])
    new = np.full((7, extra.shape[1]), np.nan)
    L = rng.standard_normal((7, X.shape[1])) @ np.linalg.pinv(X) @ X  # rows of the same space
    imputer = CompleteColumnsImputer(**PAPER).fit(extra)
    complete = imputer.complete_features_
    whole = np.column_stack([L * units, L[:, :1] * 0, (L * units)[:, ~np.isnan(known).any(axis=0)]])
    new[:, complete] = whole[:, complete]
    error = np.abs(imputer.transform(new) - whole) / np.abs(whole).max(axis=0, initial=1e-300)
    assert error.max() <= 1e-9


def test_a_row_that_lacks_a_complete_feature(rng):
    """It is filled from the complete features that it has; NaN if they are too few."""
    X, known = table(rng, CompleteColumnsImputer)
    imputer = CompleteColumnsImputer(rank=3, **PAPER).fit(known)
    complete = imputer.complete_features_
    new = np.full_like(X, np.nan)
    new[:, complete] = X[:, complete]
    new[:, complete[:4]] = np.nan
    assert np.abs(imputer.transform(new) - X).max() <= 1e-10 * np.abs(X).max()
    new[:, complete[2:]] = np.nan
    new[:, complete[:2]] = X[:, complete[:2]]
    filled = imputer.transform(new)
    np.testing.assert_array_equal(filled[:, complete[:2]], X[:, complete[:2]])
    assert np.isnan(np.delete(filled, complete[:2], axis=1)).all()


@BOTH
def test_learned_from_a_table_without_gaps(rng, Imputer):
    X, _ = table(rng, Imputer)
    imputer = Imputer().fit(X)
    np.testing.assert_array_equal(imputer.transform(X), X)
    new = X.copy()
    new[rng.random(X.shape) < 0.4] = np.nan
    assert np.abs(imputer.transform(new) - X).max() <= 1e-10 * np.abs(X).max()
    assert imputer.rank_ == 3 and (imputer.status_ == Status.FULL).all()


@BOTH
def test_fitted_attributes(rng, Imputer):
    _, known = table(rng, Imputer, noise=0.3)
    imputer = Imputer(rank=4, center=True).fit(known)
    assert imputer.rank_ == 4 and imputer.components_.shape == (4, 40) and imputer.n_features_in_ == 40
    assert 0.1 < imputer.noise_std_ < 1
    assert imputer.status_.shape == (known.shape[0 if Imputer is CompleteRowsImputer else 1],)
    assert "4 directions" in imputer.choices_["rank"]
    assert not hasattr(imputer, "feature_names_in_")
    assert imputer.get_feature_names_out().tolist() == [f"x{j}" for j in range(40)]


@BOTH
def test_bounds(rng, Imputer):
    X, known = table(rng, Imputer)
    filled = Imputer(bounds=(-0.5, 1)).fit(known).transform(known)
    seen = ~np.isnan(known)
    np.testing.assert_array_equal(filled[seen], X[seen])
    np.testing.assert_allclose(filled[~seen], np.clip(X, -0.5, 1)[~seen], atol=1e-11)
    narrow = Imputer(bounds=(0, 1e300)).fit(known.astype(np.float32)).transform(known.astype(np.float32))
    assert narrow.dtype == np.float32 and narrow[~seen].min() == 0


# The company it keeps


@BOTH
def test_single_precision_is_kept(rng, Imputer):
    X, known = table(rng, Imputer)
    single = known.astype(np.float32)
    imputer = Imputer().fit(single)
    for filled in (imputer.transform(single), Imputer().fit_transform(single)):
        assert filled.dtype == np.float32
        assert np.abs(filled - X).max() <= 1e-4 * np.abs(X).max()
    assert imputer.transform(known).dtype == np.float64
    assert Imputer().fit(known).transform(single).dtype == np.float32
    np.testing.assert_allclose(imputer.transform(known), X, atol=1e-3)


@BOTH
def test_pickle_and_clone(rng, Imputer):
    _, known = table(rng, Imputer, noise=0.3)
    imputer = Imputer(rank=4, bounds=(-9, 9)).fit(known)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(imputer)).transform(known), imputer.transform(known))
    fresh = clone(imputer)
    assert fresh.get_params() == imputer.get_params() and not hasattr(fresh, "rank_")
    with pytest.raises(NotFittedError):
        fresh.transform(known)


@BOTH
def test_pipeline_and_grid_search(rng, Imputer):
    X, known = table(rng, Imputer, n_samples=120, n_complete=30)
    y = X @ rng.standard_normal(X.shape[1])
    pipeline = make_pipeline(StandardScaler(), Imputer(), Ridge(1e-6))
    assert pipeline.fit(known, y).score(known, y) > 0.999
    grid = {f"{Imputer.__name__.lower()}__rank": [1, 3, "auto"]}
    search = GridSearchCV(make_pipeline(Imputer(**PAPER), Ridge(1e-6)), grid, cv=3, error_score="raise")
    scores = search.fit(known, y).cv_results_["mean_test_score"]
    assert scores[1:].min() > 0.999


def frames_of(known):
    columns = {f"c{j}": [None if np.isnan(x) else float(x) for x in known[:, j]] for j in range(known.shape[1])}
    yield pd.DataFrame(known, columns=list(columns))
    yield pd.DataFrame(columns).convert_dtypes()
    yield pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow")
    yield pl.DataFrame(columns)
    yield pa.table(columns)


@BOTH
def test_data_frames(rng, Imputer):
    _, known = table(rng, Imputer, noise=0.3)
    expected = Imputer(rank=3, **PAPER).fit_transform(known)
    for frame in frames_of(known):
        imputer = Imputer(rank=3, **PAPER).fit(frame)
        assert imputer.feature_names_in_.tolist() == [f"c{j}" for j in range(known.shape[1])]
        np.testing.assert_array_equal(Imputer(rank=3, **PAPER).fit_transform(frame), expected)
        for output in ("pandas", "polars"):
            filled = imputer.set_output(transform=output).transform(frame)
            assert type(filled).__module__.startswith(output)
            assert list(filled.columns) == imputer.feature_names_in_.tolist()
            np.testing.assert_allclose(filled.to_numpy(), expected, atol=1e-11)
            assert list(Imputer(rank=3, **PAPER).set_output(transform=output).fit_transform(frame).columns) == list(
                filled.columns
            )


@BOTH
def test_frames_of_single_precision_stay_so(rng, Imputer):
    _, known = table(rng, Imputer, noise=0.3)
    single = known.astype(np.float32)
    columns = {f"c{j}": single[:, j] for j in range(single.shape[1])}
    seen = ~np.isnan(single)
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns, nan_to_null=True), pa.table(columns)):
        assert Imputer().fit_transform(frame).dtype == np.float32
        for output in ("pandas", "polars"):
            filled = Imputer().set_output(transform=output).fit(frame).transform(frame)
            assert {str(kind).lower() for kind in filled.dtypes} == {"float32"}
            np.testing.assert_array_equal(filled.to_numpy()[seen], single[seen])


@BOTH
def test_nothing_is_inverted(Imputer):
    assert not hasattr(Imputer(), "inverse_transform")


@BOTH
def test_index_and_names_of_a_frame(rng, Imputer):
    _, known = table(rng, Imputer)
    frame = pd.DataFrame(known, columns=[f"c{j}" for j in range(40)], index=np.arange(60) * 10)
    imputer = Imputer().set_output(transform="pandas").fit(frame)
    assert imputer.transform(frame).index.tolist() == frame.index.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        imputer.transform(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        imputer.transform(pa.table({"c0": [1.0]}))
    with pytest.raises(ValueError, match=r"X has 39 features, but .* is expecting 40"):
        Imputer().fit(known).transform(known[:, 1:])


@pytest.mark.parametrize("samples", [1, 2000])
def test_time_of_new_samples(samples):
    """At most 3 times a least-squares solve for one sample, and a tenth of one each for many: processor time."""
    rng = np.random.default_rng(0)
    L, R = low_rank(rng, 300 + samples, 400, 50)
    X = L @ R
    imputer = CompleteRowsImputer(rank=50).fit(X[:300])
    unseen = rng.permuted(np.tile(np.arange(400) < 200, (samples, 1)), axis=1)
    new = np.where(unseen, np.nan, X[300:])
    B, b = imputer.components_.T[~unseen[0]], new[0, ~unseen[0]]
    with threadpool_limits(1, user_api="blas"):
        ours = processor_time(lambda: imputer.transform(new), 20 if samples == 1 else 1)
        theirs = processor_time(lambda: np.linalg.lstsq(B, b, rcond=None), 20)
    assert ours <= (3 if samples == 1 else 0.1 * samples) * theirs


# What must be survived, by the numbers of the list of bad inputs; more of it in tests/completion/test_three_doors.py


@pytest.mark.parametrize(
    "data, words",
    [
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((3, 0)), "0 feature"),
        (np.zeros(3), "1D array"),
        (np.zeros((2, 2, 2)), "dim 3"),
        ([[1.0, 2.0], [3.0]], "rows have different lengths"),
    ],
)
@BOTH
def test_1_shapes(Imputer, data, words):
    with pytest.raises(ValueError, match=words):
        Imputer().fit(data)


@BOTH
@pytest.mark.parametrize(
    "rank, error, words",
    [
        (0, ValueError, "rank must be a whole number from 1 to 12, the smaller of .0 .* and 12 complete .*got 0"),
        (13, ValueError, "from 1 to 12.*got 13"),
        (True, TypeError, "got True"),
        (2.0, TypeError, "got 2.0"),
        ("2", TypeError, "got '2'"),
        (None, TypeError, "got None"),
    ],
)
def test_7_rank(Imputer, rank, error, words):
    _, known = table(np.random.default_rng(0), Imputer)
    with pytest.raises(error, match=words):
        Imputer(rank=rank).fit(known)


@BOTH
@pytest.mark.parametrize("settings", [{"center": 2}, {"shrinkage": -1}, {"refine": -1}, {"bounds": (1, 0)}])
def test_7_other_parameters(Imputer, settings):
    _, known = table(np.random.default_rng(0), Imputer)
    with pytest.raises(ValueError, match=next(iter(settings))):
        Imputer(**settings).fit(known)


@pytest.mark.parametrize(("n", "p", "k"), [(40, 5, 3), (100, 6, 4), (200, 10, 6)])
def test_complete_rows_alone_teach_what_rows_with_gaps_need(rng, n, p, k):
    """Against the Gaussian conditional mean with the moments of the complete rows."""
    ratios = []
    for _ in range(8):
        T = rng.standard_normal((n + 100, k)) @ rng.standard_normal((k, p)) + 0.2 * rng.standard_normal((n + 100, p))
        gaps = rng.random((100, p)) < 0.4
        new = np.where(gaps, np.nan, T[n:])
        mean, C, expected = T[:n].mean(axis=0), np.cov(T[:n].T), new.copy()
        for row, gap in zip(expected, gaps):
            row[gap] = mean[gap] + C[np.ix_(gap, ~gap)] @ np.linalg.solve(C[np.ix_(~gap, ~gap)], (row - mean)[~gap])
        filled = co.CompleteRowsImputer().fit(T[:n]).transform(new)
        ratios.append(np.linalg.norm(filled - T[n:]) / np.linalg.norm(expected - T[n:]))
    assert np.median(ratios) < 1.05 and max(ratios) < 2


@pytest.mark.parametrize("n_complete", [40, 400])
@pytest.mark.parametrize("Imputer", [CompleteRowsImputer, CompleteColumnsImputer])
@pytest.mark.slow
def test_intervals_and_deviations_of_new_samples(rng, Imputer, n_complete):
    """90 % intervals of new samples hold 84 to 96 %; known entries are their own."""
    W = rng.standard_normal((3, 12))
    X = rng.standard_normal((800, 3)) @ W + 0.5 * rng.standard_normal((800, 12))
    gaps = rng.random(X.shape) < 0.4
    gaps[:, :7] = False
    gaps[:n_complete] = False
    M = np.where(gaps, np.nan, X)
    imputer = Imputer(bounds=(-50, 50)).fit(M[:600])
    low, high = imputer.predict_interval(M[600:], 0.9)
    new, asked = X[600:], gaps[600:]
    assert (low[~asked] == new[~asked]).all() and (high[~asked] == new[~asked]).all()
    filled = imputer.transform(M[600:])
    assert ((low <= filled) & (filled <= high)).all()
    assert 0.84 < np.mean((low <= new)[asked] & (new <= high)[asked]) < 0.96
    std = imputer.predict_std(M[600:])
    assert (std[~asked] == 0).all() and np.allclose(std[asked], (high - low)[asked] / 2 / 1.6448536)


@pytest.mark.parametrize("Imputer", [CompleteRowsImputer, CompleteColumnsImputer])
def test_a_generator_is_asked_for_one_number(Imputer):
    _, known = table(np.random.default_rng(0), Imputer)
    given, same = np.random.default_rng(3), np.random.default_rng(3)
    imputer, other = Imputer(random_state=given).fit(known), Imputer(random_state=int(same.integers(2**31))).fit(known)
    for found, expected in zip(imputer.predict_interval(known), other.predict_interval(known)):
        np.testing.assert_array_equal(found, expected)
    assert given.integers(2**31) == same.integers(2**31)


def test_intervals_rest_on_what_the_prediction_uses(rng):
    """`CompleteColumnsImputer` predicts from complete features alone, so other known entries change no interval."""
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 8)) + 0.3 * rng.standard_normal((300, 8))
    gaps = rng.random(X.shape) < 0.4
    gaps[:, :5] = False
    known = np.where(gaps, np.nan, X)
    imputer = CompleteColumnsImputer().fit(known[:200])
    more, fewer = known[200:].copy(), known[200:].copy()
    fewer[:, 5:] = np.nan
    for one, other in zip(imputer.predict_interval(more), imputer.predict_interval(fewer)):
        np.testing.assert_array_equal(one[gaps[200:]], other[gaps[200:]])
