"""What else people fill a matrix with; each fits a matrix with NaN, given a seed and its settings.

Settings are tuned as a careful user would: a tenth of the entries of the partial columns is hidden, and the settings
that predict these best are taken. Whether the columns are the samples of an imputer, or the rows, is a setting too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.full_columns import algorithm1_centred, gaussian_prior

_HELD_OUT = 0.1
_NEAREST = 30  # features that IterativeImputer regresses on
_REGRESSIONS = 2_000  # that it may do in all: its rounds are cut so that it stays below
_NEIGHBOURS = 3, 5, 10, 20
_FACTORS = 4, 8, 16, 32
_PENALTIES = 10.0 ** np.arange(-4.5, -0.4, 0.5)  # of standardised numbers, times the entries of a row or column


@dataclass(frozen=True)
class Rival:
    """A way to fill a matrix.

    Attributes
    ----------
    fit : function of (known, seed, *settings)
        Gives the filled matrix.
    grid : tuple of tuples
        The settings that are tried; an empty one needs no tuning.
    package : str
        Without which it cannot run.
    remark : str
        What a reader of its figures should know.
    """

    fit: Callable
    grid: tuple = ((),)
    package: str = "sklearn"
    remark: str = ""

    @property
    def is_here(self) -> bool:
        return find_spec(self.package) is not None

    @property
    def is_tuned(self) -> bool:
        return len(self.grid) > 1

    def tune(self, known, seed: int) -> tuple:
        """The settings that predict held-out entries of partial columns best."""
        if not self.is_tuned:
            return self.grid[0]
        rng = np.random.default_rng(seed)
        held = ~np.isnan(known) & np.isnan(known).any(axis=0) & (rng.random(known.shape) < _HELD_OUT)
        rest = np.where(held, np.nan, known)
        errors = [np.linalg.norm((self.fit(rest, seed, *settings) - known)[held]) for settings in self.grid]
        return self.grid[int(np.nanargmin(errors))]


def mean_and_offset(known, seed) -> np.ndarray:
    """Mean of the full columns in each row, moved by each column's mean distance from it."""
    center = known[:, ~np.isnan(known).any(axis=0)].mean(axis=1, keepdims=True)
    return _kept(known, center + np.nanmean(known - center, axis=0))


def knn(known, seed, k, by_columns) -> np.ndarray:
    from sklearn.impute import KNNImputer

    return _impute(KNNImputer(n_neighbors=k, keep_empty_features=True), known, by_columns)


def iterative(known, seed, by_columns) -> np.ndarray:
    """IterativeImputer with BayesianRidge, its own default, on the nearest features, for a limited number of rounds."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    gaps = np.isnan(known).any(axis=1 if by_columns else 0)
    imputer = IterativeImputer(
        max_iter=int(np.clip(_REGRESSIONS // gaps.sum(), 1, 10)),
        n_nearest_features=min(_NEAREST, gaps.size - 1),
        random_state=seed,
        keep_empty_features=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return _impute(imputer, known, by_columns)


def soft_impute(known, seed) -> np.ndarray:
    from colonnade.methods import soft_impute

    return soft_impute(known, random_state=seed).to_dense()


def cmfrec(known, seed, k, penalty) -> np.ndarray:
    """Alternating least squares with a bias for every row and column."""
    from cmfrec import CMF

    scale = np.nanstd(known)
    rows, columns = np.nonzero(~np.isnan(known))
    entries = sparse.coo_matrix((known[rows, columns] / scale, (rows, columns)), shape=known.shape)
    model = CMF(
        k=min(k, min(known.shape) - 1),
        lambda_=penalty,
        scale_lam=True,
        use_cg=False,
        niter=20,
        random_state=seed,
        precompute_for_predictions=False,
        verbose=False,
    ).fit(entries)
    predicted = model.A_ @ model.B_.T + model.user_bias_[:, None] + model.item_bias_ + model.glob_mean_
    return _kept(known, scale * predicted)


def _impute(imputer, known, by_columns) -> np.ndarray:
    with threadpool_limits(1, user_api="blas"):  # small problems: threads would only wait for each other
        return imputer.fit_transform(known.T).T if by_columns else imputer.fit_transform(known)


def _kept(known, predicted) -> np.ndarray:
    return np.where(np.isnan(known), predicted, known)


PRIOR = "prior"  # the yardstick that complete(M) is held against

RIVALS = {
    PRIOR: Rival(gaussian_prior, remark="Gaussian prior from the full columns, noise cross-validated on them"),
    "Alg1": Rival(algorithm1_centred, remark="the paper's least squares, centred, rank cross-validated"),
    "mean+off": Rival(mean_and_offset, remark="row mean of the full columns plus an offset for each column"),
    "KNN": Rival(knn, tuple(product(_NEIGHBOURS, (True, False))), remark="KNNImputer"),
    "Iterative": Rival(
        iterative,
        tuple(product((True, False))),
        remark=f"IterativeImputer on the {_NEAREST} nearest features, rounds cut at {_REGRESSIONS:,} regressions",
    ),
    "SoftImpute": Rival(
        soft_impute, package="colonnade.methods.soft_impute", remark="colonnade.methods, penalty by held-out entries"
    ),
    "cmfrec": Rival(
        cmfrec,
        tuple(product(_FACTORS, _PENALTIES)),
        "cmfrec",
        "ALS with biases, factors and penalty by held-out entries",
    ),
}
