"""The two imputers: the answers of `complete`, the contract of scikit-learn, and what must be survived."""

import hashlib
import pickle
import time
from datetime import datetime

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
from threadpoolctl import threadpool_limits

import colonnade as co
from colonnade import Status
from colonnade.estimators import CompleteColumnsImputer, CompleteRowsImputer

from problems import hide, low_rank

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
        return co.complete(known.T, **settings).to_dense().T
    return co.complete(known, **settings).to_dense()


def no_complete_feature(estimator):
    if isinstance(estimator, CompleteColumnsImputer):
        return {"check_estimators_pickle": "its data have no complete feature"}
    return {}


@parametrize_with_checks(
    [CompleteRowsImputer(), CompleteColumnsImputer()], expected_failed_checks=no_complete_feature, xfail_strict=True
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
    monkeypatch.setattr("colonnade._imputer._BLOCK_CELLS", 7 * known.shape[1])
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


def processor_time(function, times):
    function()
    best = np.inf
    for _ in range(5):
        start = time.process_time()
        for _ in range(times):
            function()
        best = min(best, (time.process_time() - start) / times)
    return best


# What must be survived, by the numbers of the list in tests/test_bad_input.py


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


def test_2_nothing_complete_names_the_sister():
    X = np.arange(20.0).reshape(5, 4) % 7
    no_row, no_column, neither = X.copy(), X.copy(), X.copy()
    no_row[:, 1] = np.nan
    no_column[2] = np.nan
    np.fill_diagonal(neither, np.nan)
    neither[4, 2] = np.nan
    with pytest.raises(ValueError, match=r"no row is known in all 4 columns.*row 0 with 3.*use CompleteColumnsImputer"):
        CompleteRowsImputer().fit(no_row)
    with pytest.raises(ValueError, match=r"no column is known in all 5 rows.*column 0 with 4.*use CompleteRowsImputer"):
        CompleteColumnsImputer().fit(no_column)
    with pytest.raises(ValueError, match=r"no row .*measure some rows in full, or drop the columns"):
        CompleteRowsImputer().fit(neither)
    with pytest.raises(ValueError, match=r"no column .*measure some columns in full, or drop the rows"):
        CompleteColumnsImputer().fit(neither)


@BOTH
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_4_infinite_entries(rng, Imputer, bad):
    _, known = table(rng, Imputer)
    imputer = Imputer().fit(known)
    i, j = np.argwhere(np.isfinite(known))[5]
    known[i, j] = bad
    for attempt in (imputer.transform, Imputer().fit, Imputer().fit_transform):
        with pytest.raises(ValueError, match=rf"row {i}, column {j} is {bad} \(1 infinite in all\); use NaN"):
            attempt(known)


def test_5_rows_that_are_not_determined(rng):
    X, known = table(rng, CompleteRowsImputer)
    partial = np.flatnonzero(np.isnan(known).any(axis=1))
    known[partial[0]] = np.nan
    known[partial[1], np.flatnonzero(~np.isnan(known[partial[1]]))[2:]] = np.nan
    imputer = CompleteRowsImputer(rank=3, **PAPER)
    for filled in (imputer.fit_transform(known), imputer.transform(known)):
        assert np.isnan(filled[partial[0]]).all() and np.isnan(filled[partial[1]]).sum() == 38
        assert np.abs(np.delete(filled - X, partial[:2], axis=0)).max() <= 1e-11
    assert [Status(s) for s in imputer.status_[partial[:2]]] == [Status.NO_OBSERVATION, Status.TOO_FEW]
    prior = CompleteRowsImputer(center=True, shrinkage=0.1).fit(known)
    np.testing.assert_allclose(prior.transform(known)[partial[0]], prior.center_)


def test_5_columns_that_are_not_determined(rng):
    X, known = table(rng, CompleteColumnsImputer)
    partial = np.flatnonzero(np.isnan(known).any(axis=0))
    known[:, partial[0]] = np.nan
    known[np.flatnonzero(~np.isnan(known[:, partial[1]]))[2:], partial[1]] = np.nan
    imputer = CompleteColumnsImputer(rank=3, **PAPER)
    for filled in (imputer.fit_transform(known), imputer.transform(known)):
        assert np.isnan(filled[:, partial[0]]).all() and np.isnan(filled[:, partial[1]]).sum() == 58
        assert np.abs(np.delete(filled - X, partial[:2], axis=1)).max() <= 1e-11
    assert [Status(s) for s in imputer.status_[partial[:2]]] == [Status.NO_OBSERVATION, Status.TOO_FEW]
    nothing = CompleteColumnsImputer().fit([[0.0, np.nan], [0.0, np.nan]])
    assert np.isnan(nothing.transform([[0.0, np.nan]])[0, 1])


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


@BOTH
@pytest.mark.parametrize("scale", [1e306, 1e150, 1e-150, 1e-300])
@pytest.mark.parametrize("settings", [{}, {"rank": 3, **PAPER}])
def test_8_extreme_scales(rng, Imputer, scale, settings):
    X, known = table(rng, Imputer)
    size = np.abs(X).max()
    imputer = Imputer(**settings).fit(known / size * scale)
    for filled in (imputer.transform(known / size * scale), imputer.fit_transform(known / size * scale)):
        assert not np.isinf(filled).any()
        unknown = np.isnan(filled)
        if not unknown.any():
            assert np.abs(filled / scale - X / size).max() <= 1e-9
        else:  # no answer, and the status says so
            assert not all(Status(s).is_filled for s in imputer.status_)


@BOTH
@pytest.mark.parametrize("digits", [6, 100])
def test_8_mixed_scales(rng, Imputer, digits):
    """Units of the things to be filled: recovered while they fit into one number, and finite or NaN beyond."""
    X, known = table(rng, Imputer)
    units = 10.0 ** rng.integers(-digits, digits, (1, 40) if Imputer is CompleteColumnsImputer else (60, 1))
    imputer = Imputer(rank=3, **PAPER)
    for filled in (imputer.fit_transform(known * units), imputer.transform(known * units)):
        assert not np.isinf(filled).any()
        if digits == 6:
            assert np.abs(filled / units - X).max() <= 1e-9 * np.abs(X).max()


def variants(known):
    """The same numbers in other clothes, all of them whole numbers with NaN or none."""
    yield known.astype(np.float16)
    yield known.astype(">f8")
    yield np.asfortranarray(known)
    yield np.repeat(np.repeat(known, 2, axis=0), 3, axis=1)[::2, ::3]
    yield known.tolist()
    read_only = known.copy()
    read_only.flags.writeable = False
    yield read_only
    yield np.where(np.isnan(known), None, known)
    yield np.where(np.isnan(known), pd.NA, known)


def whole_table(rng, Imputer):
    X, known = table(rng, Imputer)
    return np.where(np.isnan(known), np.nan, np.rint(4 * X))


def digest(array):
    return hashlib.sha256(pickle.dumps(array)).hexdigest()


@BOTH
def test_9_kinds_of_arrays(rng, Imputer):
    known = whole_table(rng, Imputer)
    imputer = Imputer(rank=3, **PAPER).fit(known)
    expected, trained = imputer.transform(known), imputer.fit_transform(known)
    for array in variants(known):
        before = digest(array)
        np.testing.assert_allclose(imputer.transform(array), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(Imputer(rank=3, **PAPER).fit_transform(array), trained, rtol=1e-10, atol=1e-10)
        assert digest(array) == before


@BOTH
def test_9_whole_numbers_and_booleans(rng, Imputer):
    for dtype in (int, np.uint8, bool):
        X = rng.integers(0, 2, (30, 8)).astype(dtype)
        filled = Imputer().fit(X).transform(X)
        assert filled.dtype == np.float64
        np.testing.assert_array_equal(filled, X)


@BOTH
def test_9_memory_maps(rng, Imputer, tmp_path):
    _, known = table(rng, Imputer, noise=0.3)
    np.save(tmp_path / "known.npy", known)
    before = (tmp_path / "known.npy").read_bytes()
    mapped = np.load(tmp_path / "known.npy", mmap_mode="r")
    np.testing.assert_array_equal(Imputer().fit(mapped).transform(mapped), Imputer().fit(known).transform(known))
    assert (tmp_path / "known.npy").read_bytes() == before


@BOTH
@pytest.mark.parametrize(
    "data, error, words",
    [
        (np.ones((3, 2), complex), ValueError, "Complex data not supported: got complex128"),
        ([[1.0, "1.5"], [2.0, 3.0]], TypeError, "string.*not a number; columns 1 hold str: convert"),
        (np.array([["1.5", "2"]]), TypeError, "columns 0, 1 hold str"),
        (np.array([[1.0, 1j], [2.0, None]], object), TypeError, "columns 1 hold complex"),
        (np.array([["2020-01-01"]], "M8[ns]"), TypeError, "columns 0 hold datetime64"),
        (np.array([[datetime(2020, 1, 1), 1.0]], object), TypeError, "columns 0 hold datetime"),
        (pd.DataFrame({"a": [1.0, 2.0], "b": ["1.5", "2"]}), TypeError, "1 of 2 columns are not numeric: 'b'"),
        (pl.DataFrame({"a": [1.0, 2.0], "b": ["1.5", "2"]}), TypeError, "1 of 2 columns are not numeric: 'b'"),
        (pa.table({"a": [1.0, 2.0], "b": ["1.5", "2"]}), TypeError, "1 of 2 columns are not numeric: 'b'"),
    ],
)
def test_10_other_kinds_are_refused(Imputer, data, error, words):
    with pytest.raises(error, match=words):
        Imputer().fit(data)


@BOTH
def test_11_masks(rng, Imputer):
    _, known = table(rng, Imputer, noise=0.3)
    mask = np.isnan(known)
    expected = Imputer(rank=3, **PAPER).fit_transform(known)
    for fill in (0.0, 1e20, np.inf):
        masked = np.ma.array(np.where(mask, fill, known), mask=mask)
        np.testing.assert_array_equal(Imputer(rank=3, **PAPER).fit_transform(masked), expected)
        np.testing.assert_array_equal(
            Imputer(rank=3, **PAPER).fit(masked).transform(masked), Imputer(rank=3, **PAPER).fit(known).transform(known)
        )
    objects = np.ma.array(np.where(mask, "?", known.astype(object)), mask=mask)
    np.testing.assert_array_equal(Imputer(rank=3, **PAPER).fit_transform(objects), expected)


@BOTH
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_12_sparse_data_are_refused(Imputer, kind):
    imputer = Imputer().fit(np.ones((4, 3)))
    for attempt in (imputer.transform, imputer.fit, imputer.fit_transform):
        with pytest.raises(TypeError, match=r"sparse data are refused.*Observations\.from_sparse.*toarray"):
            attempt(kind(np.eye(4, 3)))
