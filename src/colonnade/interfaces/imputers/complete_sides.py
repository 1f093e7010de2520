"""The two scikit-learn imputers: one learns from the complete rows of a table, the other from its complete columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._support.arguments import is_auto
from ...completion import Completion, complete
from ...data.observations import Observations, index_dtype
from ...model.column_space import ColumnSpace
from ...model.full_columns.column_outliers import solve_without_outliers
from ...model.solve import Status
from .common import CompleteSideImputer, no_complete
from .low_rank import LowRankImputer

_FILLED = [status for status in Status if status.is_filled]


class CompleteRowsImputer(CompleteSideImputer):
    """Fill a table with some complete rows: they show what rows look like.

    Every other row is fitted to its known entries in the space that the complete rows span; the method of Wan, Yi and
    Zhang with samples as the columns of its matrix. ``CompleteRowsImputer().fit_transform(X)`` is
    ``colonnade.complete(X.T).to_dense().T``.

    Parameters
    ----------
    rank, center, shrinkage, refine, bounds, random_state
        As of `colonnade.complete`, whose columns are the samples here.

    Attributes
    ----------
    components_ : array of shape (rank_, n_features_in_)
        Orthonormal directions in which complete rows differ.
    center_ : array of shape (n_features_in_,) or None
        Mean of the complete rows, if it is taken off.
    rank_ : int
    noise_std_ : float
        Of the complete rows about those directions; NaN if nothing is left to estimate it from.
    status_ : int8 array of shape (n_samples,)
        The `colonnade.Status` of every training sample.
    choices_ : dict of str
        What was chosen, in words.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        If the training data had names that are strings.

    Notes
    -----
    A sample that its entries do not determine stays NaN where it was, unless a prior (`shrinkage`) is on; then the
    prior decides what the entries do not. Samples are filled one by one: none depends on the others of `transform`.

    Examples
    --------
    >>> import numpy as np, colonnade as co
    >>> X = np.outer([1.0, 2, 3, 4], [1.0, 10, 100])
    >>> X[3, 2] = np.nan
    >>> co.CompleteRowsImputer().fit_transform(X)[3].round(9).tolist()
    [4.0, 40.0, 400.0]
    """

    def _learn(self, samples) -> Completion:
        observations = Observations.from_dense(samples.T)
        if observations.full_columns.size == 0:
            raise ValueError(no_complete(samples, "CompleteRowsImputer"))
        completion = self._completion(observations, "{:,} features and {:,} complete rows", self.refine)
        self._keep(completion)
        self.components_ = completion.basis.T
        self.center_ = completion.center
        self._space, self._penalty = completion.space, completion.penalty
        self._completed = completion
        return completion

    def _training(self, completion) -> np.ndarray:
        return completion.to_dense().T

    def _shifts(self, samples, level: float) -> list[np.ndarray]:
        """Ends of intervals less the prediction: new samples are further columns of the training table."""
        at, features = np.nonzero(np.isnan(samples))
        shifts = [np.zeros(samples.shape), np.zeros(samples.shape)]
        if at.size:
            longer = self._completed.extend(samples.astype(self._completed.dtype).T)
            places = features, self._completed.shape[1] + at
            for shift, end in zip(shifts, longer.interval(*places, level)):
                shift[at, features] = end - longer.entries(*places)
        return shifts

    def _predict(self, samples, at, known, predicted, n_threads) -> None:
        """Write predictions of all entries of the samples; NaN in samples that are not determined."""
        if self._completed.learned is not None:  # It learned from all rows.
            longer = self._completed.extend(samples.astype(self._completed.dtype).T)
            predicted[:] = longer.columns(np.arange(self._completed.shape[1], longer.shape[1])).T
            return
        observations = _rows_as_columns(samples.shape, at, known)
        space = _in_precision(self._space, samples.dtype)
        coefficients, status, _ = solve_without_outliers(
            space, observations, penalty=self._penalty, n_threads=n_threads
        )
        np.matmul(coefficients.T, space.basis.T, out=predicted)
        if space.center is not None:
            predicted += space.center
        predicted[~np.isin(status, _FILLED)] = np.nan


class CompleteColumnsImputer(CompleteSideImputer):
    """Fill a table with some complete columns: they predict the others.

    Every other column is fitted, on the rows where it is known, in the space that the complete columns span. The fill
    of a row is thus a linear function of its complete features, ``X[:, complete_features_] @ coef_.T + intercept_``
    (kept within `bounds`), and new rows are filled by the same function.
    ``CompleteColumnsImputer().fit_transform(X)`` is ``colonnade.complete(X).to_dense()``.

    Parameters
    ----------
    rank, center, shrinkage, refine, bounds, random_state
        As of `colonnade.complete`; `bounds` are those of all features.

    Attributes
    ----------
    complete_features_ : int array of shape (n_complete,)
        The features that were complete in training.
    components_ : array of shape (rank_, n_features_in_)
        Coefficients of every feature in the space that the complete features span; NaN where undetermined.
    coef_ : array of shape (n_features_in_, n_complete)
        What each feature is predicted with; a complete one by itself.
    intercept_ : array of shape (n_features_in_,)
    rank_ : int
    noise_std_ : float
        Of the complete features about the space; NaN if nothing is left to estimate it from.
    status_ : int8 array of shape (n_features_in_,)
        The `colonnade.Status` of every feature.
    choices_ : dict of str
        What was chosen, in words.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        If the training data had names that are strings.

    Notes
    -----
    A row that lacks a feature which was complete in training first has that feature filled, from those complete
    features that it has, by a `CompleteRowsImputer` with the same parameters. What cannot be determined stays NaN.

    `refine` lets the rows of the training profit from their known entries in incomplete features too, so that what
    `fit_transform` returns may be better there. `transform` knows a row by its complete features only; it and the
    fitted attributes are without refinement.

    Features of very different units serve each other better when they are brought to one scale before; scikit-learn's
    StandardScaler leaves NaN as it is.

    Examples
    --------
    >>> import numpy as np, colonnade as co
    >>> X = np.outer([1.0, 2, 3, 4], [1.0, 10, 100])
    >>> X[3, 2] = np.nan
    >>> imputer = co.CompleteColumnsImputer().fit(X)
    >>> imputer.transform([[5.0, 50.0, np.nan]]).round(9).tolist()
    [[5.0, 50.0, 500.0]]
    """

    def _learn(self, samples) -> Completion:
        observations = Observations.from_dense(samples)
        if observations.full_columns.size == 0:
            raise ValueError(no_complete(samples, "CompleteColumnsImputer"))
        completion = self._completion(observations, "{:,} rows and {:,} complete columns", 0)
        self._keep(completion)
        self.complete_features_ = observations.full_columns
        self.components_ = completion.coefficients
        A = samples[:, self.complete_features_]
        self._predictor = _Predictor.of(A, completion.space)
        self._gap_filler = CompleteRowsImputer(**self.get_params() | {"random_state": self._seed}).fit(A)
        self._samples, self._spreading = samples, None
        return completion

    def _training(self, completion) -> np.ndarray:
        """Refined, if that is asked for: with what the rows of the training have and new ones have not."""
        if is_auto(self.refine) or self.refine:
            completion = complete(completion.observations, **self.get_params() | {"random_state": self._seed})
        return np.ascontiguousarray(completion.to_dense())

    def _predict(self, samples, at, known, predicted, n_threads) -> None:
        """Write predictions from complete features; these as they are or are filled."""
        A = np.empty((len(samples), self.complete_features_.size), samples.dtype)
        self._gap_filler._fill(samples[:, self.complete_features_], A, n_threads)
        predicted[:] = self._linear(A)
        predicted[:, self.complete_features_] = A

    def _shifts(self, samples, level: float) -> list[np.ndarray]:
        """Ends of intervals less the prediction: those of a factor model that sees the complete features only.

        `transform` uses no other entries, so intervals that rest on all entries would be too narrow.
        """
        spreading: LowRankImputer | None = self._spreading
        if spreading is None:  # Learned at the first question: most users ask for no intervals.
            spreading = self._spreading = LowRankImputer(random_state=self._seed).fit(self._samples)
        known = np.full_like(samples, np.nan)
        known[:, self.complete_features_] = samples[:, self.complete_features_]
        filled = spreading.transform(known)
        return [end - filled for end in spreading.predict_interval(known, level)]

    def _linear(self, A) -> np.ndarray:
        """The linear function of complete features, shape (k, n_complete), for all features; NaN if undetermined."""
        predicted = self._predictor.predict(A, self.components_)
        predicted[:, ~np.isin(self.status_, _FILLED)] = np.nan
        return predicted

    @property
    def intercept_(self) -> np.ndarray:
        check_is_fitted(self)
        intercept = self._linear(np.zeros((1, self.complete_features_.size)))[0]
        intercept[self.complete_features_] = 0
        return intercept

    @property
    def coef_(self) -> np.ndarray:
        intercept, unit = self.intercept_, np.eye(self.complete_features_.size)
        coefficients = (self._linear(unit) - intercept).T
        coefficients[self.complete_features_] = unit
        return coefficients


@dataclass(frozen=True)
class _Predictor:
    """The rows of U as a function of the complete features: U = A V S^-1, or [A, 1] G if U has an offset.

    Attributes
    ----------
    scales : array of shape (c,)
        Powers of two that bring the features to about 1.
    G : array of shape (c + 1, r)
        Its last row belongs to the offset.
    centered : bool
        Whether a row's mean of its complete features is taken off before, and put back.
    """

    scales: np.ndarray
    G: np.ndarray
    centered: bool

    @classmethod
    def of(cls, A, space: ColumnSpace) -> _Predictor:
        """G by least squares on the scaled training rows: nothing is squared, and collinear features share evenly."""
        U, centered = space.basis.astype(np.float64), space.center is not None
        A = A.astype(np.float64)
        A = A - _row_means(A) if centered else A
        scales = np.ldexp(1.0, -np.frexp(np.abs(A).max(axis=0))[1].clip(-1000, 1000))
        B = A * scales
        G = np.vstack([_least_squares(B, U), np.zeros(U.shape[1])])
        rounding = 16 * max(A.shape) * float(np.finfo(space.basis.dtype).eps)
        if np.abs(B @ G[:-1] - U).max(initial=0) > rounding:  # A alone does not span U
            G = _least_squares(np.column_stack([B, np.ones(len(B))]), U)
        return cls(scales, G, centered)

    def predict(self, A, coefficients) -> np.ndarray:
        """center + U z for rows of A, shape (k, c), and all z, shape (r, n); shape (k, n)."""
        A = A.astype(np.float64)
        means = _row_means(A) if self.centered else 0.0
        U = ((A - means) * self.scales) @ self.G[:-1] + self.G[-1]
        return means + U @ coefficients


def _least_squares(B, U) -> np.ndarray:
    return np.linalg.lstsq(B, U, rcond=max(B.shape) * np.finfo(np.float64).eps)[0]


def _row_means(A) -> np.ndarray:
    return (A / A.shape[1]).sum(axis=1, keepdims=True)


def _rows_as_columns(shape, at, known) -> Observations:
    """Samples as the columns of observations, none of them full: `at` are the places of the known entries, flat."""
    k, m = shape
    indptr = np.searchsorted(at, np.arange(k + 1) * m)
    rows = at - np.repeat(np.arange(k) * m, np.diff(indptr))
    none = np.zeros(0, np.int64)
    return Observations((m, k), indptr, rows.astype(index_dtype(m)), known, None, none)


def _in_precision(space: ColumnSpace, dtype) -> ColumnSpace:
    """The space in the precision of the samples."""
    if space.basis.dtype == dtype:
        return space
    center = None if space.center is None else space.center.astype(dtype)
    return replace(space, basis=space.basis.astype(dtype), center=center)
