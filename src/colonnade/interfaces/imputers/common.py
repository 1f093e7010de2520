"""What the imputers share: the scikit-learn methods, the checks of their input, and the filling of gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ..._support.arguments import OR_AUTO, as_count, as_real, as_seed, is_auto
from ..._support.numbers import CACHE_CELLS, array_of, numbers_of
from ..._support.threads import in_threads, one_blas_thread
from ...completion import Completion, complete
from ...data.frame_numbers import matrix_of_frame
from ...data.frames import is_frame
from ...data.observations import Observations, refuse_infinite
from ...data.sources import real_dtype
from ...model.full_columns.learn import learn, with_mean
from ...model.full_columns.outlier_screening import without_outliers
from ...model.prediction import keep_in_bounds
from ...model.solution import Solution
from ...model.solve import solve_columns
from ...uncertainty.draws import LEVEL, NORMAL

_BLOCK_SAMPLES = 64  # Samples filled at a time, at least; they may share one factorisation.


class Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """The scikit-learn methods. A subclass has `_learn`, `_training`, `_without_gaps`, `_ends` and `_deviations`."""

    @one_blas_thread()
    def fit(self, X, y=None):
        """Learn from X.

        Parameters
        ----------
        X : array, masked array, data frame or Arrow table of shape (n_samples, n_features)
            NaN, NA, null and masked entries are unknown.
        y : ignored

        Returns
        -------
        self
        """
        self._learn(samples_of(self, X, reset=True))
        return self

    @one_blas_thread()
    def fit_transform(self, X, y=None):
        """Learn from X and fill it: ``colonnade.complete`` of the same table.

        Parameters
        ----------
        X : array, masked array, data frame or Arrow table of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        X_filled : array of shape (n_samples, n_features), or a frame if `set_output` says so
        """
        return without_infinite(self._training(self._learn(samples_of(self, X, reset=True))))

    @one_blas_thread()
    def transform(self, X):
        """Fill samples, those of the training or new ones; X itself is not changed.

        Parameters
        ----------
        X : array, masked array, data frame or Arrow table of shape (n_samples, n_features)

        Returns
        -------
        X_filled : array of shape (n_samples, n_features), or a frame if `set_output` says so
            Known entries are as they were; what the data do not determine stays NaN.
        """
        check_is_fitted(self)
        return self._without_gaps(samples_of(self, X, reset=False))

    @one_blas_thread()
    def predict_interval(self, X, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Ends between which entries, measured anew, lie with probability `level`.

        Parameters
        ----------
        X : array, masked array, data frame or Arrow table of shape (n_samples, n_features)
        level : float
            Between 0 and 1. Held-out entries of the training data calibrate the width.

        Returns
        -------
        low, high : arrays of shape (n_samples, n_features)
            Known entries are their own interval; NaN where the data determine nothing.
        """
        check_is_fitted(self)
        level = as_real("level", level, 0, 1, "()")
        with np.errstate(over="ignore", invalid="ignore"):
            return self._ends(samples_of(self, X, reset=False), level)

    @one_blas_thread()
    def predict_std(self, X) -> np.ndarray:
        """Standard deviations of the entries about their predictions: 1.645 of them are half a 90 % interval.

        Parameters
        ----------
        X : array, masked array, data frame or Arrow table of shape (n_samples, n_features)

        Returns
        -------
        std : array of shape (n_samples, n_features)
            0 at known entries; NaN where the data determine nothing.
        """
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._deviations(samples_of(self, X, reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class CompleteSideImputer(Imputer):
    """What the imputers that learn from complete rows or columns have in common."""

    def __init__(self, *, rank="auto", center="auto", shrinkage="auto", refine="auto", bounds=None, random_state=None):
        self.rank = rank
        self.center = center
        self.shrinkage = shrinkage
        self.refine = refine
        self.bounds = bounds
        self.random_state = random_state

    def _ends(self, samples, level: float) -> tuple[np.ndarray, np.ndarray]:
        gaps, filled = np.isnan(samples), self._without_gaps(samples)
        low, high = ((filled + shift).astype(samples.dtype) for shift in self._shifts(samples, level))
        for end in (low, high):
            keep_in_bounds(self._bounds, end)
        return np.where(gaps, low, samples), np.where(gaps, high, samples)

    def _deviations(self, samples) -> np.ndarray:
        low, high = self._ends(samples, LEVEL)
        return (high - low) / (2 * NORMAL)

    def _completion(self, observations: Observations, sizes: str, refine) -> Completion:
        """What `complete` makes of the training data; `sizes` names m and d in words."""
        if not is_auto(self.refine):
            as_count("refine", self.refine, 0, why=OR_AUTO)
        m, d = observations.shape[0], observations.full_columns.size
        if not is_auto(self.rank):
            as_count("rank", self.rank, 1, min(m, d), f", the smaller of {sizes.format(m, d)}{OR_AUTO}")
        self._seed = as_seed(self.random_state)  # Asked for once, because several fits need it.
        settings = {name: getattr(self, name) for name in ("rank", "center", "shrinkage")}
        settings["random_state"] = self._seed
        completion = complete(observations, refine=refine, bounds=self.bounds, method="full columns", **settings)
        if completion.rank or observations.partial_columns.size:
            return completion
        # Nothing is to be filled now, so `complete` did not look for a space; new samples may need one.
        cleaned = without_outliers(observations) or observations
        from_full = with_mean(learn(observations, cleaned=cleaned, **settings), cleaned)
        coefficients, _ = solve_columns(from_full.space, observations, penalty=from_full.penalty)
        assert isinstance(completion.solution, Solution)  # It is in memory.
        solution = replace(
            completion.solution,
            space=from_full.space,
            noise_variance=from_full.noise_variance,
            coefficients=coefficients,
        )
        return replace(completion, solution=solution, choices=from_full.choices)

    def _keep(self, completion: Completion) -> None:
        self.rank_ = completion.rank
        self.noise_std_ = completion.noise_std
        self.status_ = completion.status
        self.choices_ = completion.choices
        self._bounds = completion.bounds

    def _without_gaps(self, samples) -> np.ndarray:
        """A copy of the samples, shape (k, n_features_in_), with their gaps filled."""
        k, n_features = samples.shape
        filled = np.empty((k, n_features), samples.dtype)
        step = max(_BLOCK_SAMPLES, CACHE_CELLS // n_features)
        if k <= step:
            self._fill(samples, filled)
            return filled

        def work(lo):
            self._fill(samples[lo : lo + step], filled[lo : lo + step], n_threads=1)

        in_threads(work, range(0, k, step))
        return filled

    def _fill(self, samples, filled, n_threads=None) -> None:
        """Write the samples to `filled`, with predictions in their gaps."""
        seen = ~np.isnan(samples)
        gappy = ~seen.all(axis=1)
        if gappy.all():
            self._fill_gappy(samples, seen, filled, n_threads)
            return
        filled[:] = samples
        if gappy.any():
            part = np.empty((int(gappy.sum()), samples.shape[1]), samples.dtype)
            self._fill_gappy(samples[gappy], seen[gappy], part, n_threads)
            filled[gappy] = part

    def _fill_gappy(self, samples, seen, filled, n_threads) -> None:
        """The same for samples that all have a gap; `filled` is contiguous."""
        at = np.flatnonzero(seen)
        known = samples.reshape(-1)[at]
        with np.errstate(over="ignore", invalid="ignore"):
            self._predict(samples, at, known, filled, n_threads)
        keep_in_bounds(self._bounds, filled)
        filled.reshape(-1)[at] = known
        without_infinite(filled)


def without_infinite(filled) -> np.ndarray:
    """The same array, with NaN in place of what left the range of floating-point numbers."""
    filled[np.isinf(filled)] = np.nan
    return filled


def samples_of(estimator, X, *, reset: bool) -> np.ndarray:
    """X as float32 or float64 of shape (n_samples, n_features); what is NaN, NA, null or masked becomes NaN.

    Names and number of the features are learned by the estimator (`reset`) or compared with those it learned.
    """
    if sparse.issparse(X):
        raise TypeError(
            "sparse data are refused, because an entry that is not stored may be 0 or a gap. If it is 0, pass"
            " X.toarray(). If it is a gap, use colonnade.complete(Observations.from_sparse(X))"
        )
    if is_frame(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        samples = check_array(matrix_of_frame(X), dtype=None, ensure_all_finite=False, estimator=estimator)
    else:
        samples = validate_data(estimator, _numbers_of(X), reset=reset, dtype=None, ensure_all_finite=False)
    names = None, getattr(estimator, "feature_names_in_", None)
    refuse_infinite(samples, lambda at: np.unravel_index(at, samples.shape), names)
    return samples


def _numbers_of(X) -> np.ndarray:
    """An array of float32 or float64 from an array, a masked array or nested lists."""
    kind = array_of("the argument", X).dtype
    if kind.kind == "c":  # scikit-learn asks for these words.
        raise ValueError(f"Complex data not supported: got {kind}; take the real part or the modulus")
    values, mask = numbers_of("the argument", X)
    with np.errstate(over="ignore"):
        values = values.astype(real_dtype(values.dtype), copy=False)
    return values if mask is None else np.where(mask, np.nan, values)


def no_complete(samples, estimator_name: str) -> str:
    """Why nothing can be learned, naming the sister class if the other side of the table is complete."""
    seen = ~np.isnan(samples)
    sides = {
        "CompleteRowsImputer": ("row", "column", seen, "CompleteColumnsImputer"),
        "CompleteColumnsImputer": ("column", "row", seen.T, "CompleteRowsImputer"),
    }
    own, other, known, sister = sides[estimator_name]
    counts, across = known.sum(axis=1), np.flatnonzero(known.all(axis=0))
    fullest = np.argsort(-counts, kind="stable")[:3]
    named = ", ".join(f"{own} {i} with {counts[i]:,}" for i in fullest)
    remedy = (
        f"{across.size:,} of the {other}s {'is' if across.size == 1 else 'are'} complete, so use {sister}"
        if across.size
        else f"use LowRankImputer, which needs no complete {own}; or measure some {own}s in full, or drop the {other}s"
        " that are hardly known"
    )
    return (
        f"no {own} is known in all {known.shape[1]:,} {other}s, and {estimator_name} learns from such; the fullest are"
        f" {named}: {remedy}"
    )
