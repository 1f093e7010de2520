"""Tall-Project: the column space of the full ("tall") columns, every column regressed on it, once over again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, svds

from .._support.arguments import as_choice, as_count, as_generator, as_progress, is_auto
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.observations import Observations
from ..model.column_space import ColumnSpace, fit_column_space
from ..model.full_columns.nothing_full import WITH_COMPLETE, refuse_nothing_full
from ..model.solution import Solution
from ..model.solve import solve_columns
from ._answers import without_overflows
from ._fitting import observed, silent
from ._low_rank import Entries

_MOST_AUTO = 50  # Directions that are considered where the rank is "auto".


@one_blas_thread()
def tall_project(data, *, rank="auto", reestimate: bool = True, random_state=None, progress=None) -> Completion:
    """Complete a matrix by the factor model M_ti = a_i + f_t' l_i + e_ti: Algorithm 1 with an intercept, once repeated.

    The factors F are the top r left singular vectors of the full columns, each less its mean; intercept and loadings
    of every column follow by least squares on its observed rows. The factors are then estimated again from the whole
    completed matrix, observed entries as they are, and the columns once more from them. `tall_project_errors` gives
    heteroscedasticity-robust standard errors.

    Parameters
    ----------
    data : Observations, array of shape (m, n), masked array, data frame or scipy sparse matrix
        With at least one full column; from a source, draw it with `observe`, which counts.
    rank : int or "auto"
        r, the number of factors, beside the intercept; "auto" is the criterion IC_p2 of Bai and Ng (2002) on the full
        columns.
    reestimate : bool
        Estimate the factors again from the completed matrix. Without it the columns are solved one by one, and the
        completion has the usual intervals too.
    random_state : None, int or numpy Generator
        For the start of the singular vectors of the completed matrix.
    progress : function, optional
        Called as ``progress(stage, done, total)`` after each of the two estimates.

    Returns
    -------
    Completion
        The first direction of the basis is constant, for the intercepts. Columns with fewer than r + 1 entries are NaN.

    References
    ----------
    E. Cahan, J. Bai, S. Ng: Factor-based imputation of missing values and covariances in panel data of large
    dimensions. Journal of Econometrics 233 (2023).
    """
    o = observed(data)
    (m, _), d = o.shape, o.full_columns.size
    refuse_nothing_full(o, WITH_COMPLETE)
    if not is_auto(rank):
        rank = as_count("rank", rank, 1, min(m - 1, d), f", the smaller of {m:,} rows less one and {d:,} full columns")
    reestimate = as_choice("reestimate", reestimate, (True, False))
    rng, progress = as_generator(random_state), as_progress(progress) or silent
    unit = unit_of(o.values)
    small = replace(o, values=_times(o.values, 1 / unit))
    F, sizes, how = _factors_of_full(small, rank)
    Z, status = solve_columns(_space(F, sizes, small), small)
    progress(1, 1 + reestimate)
    if reestimate and F.shape[1]:
        F = _factors_of_completed(small, F, Z, rng)
        Z, status = solve_columns(_space(F, sizes, small), small)
    progress(1 + reestimate, 1 + reestimate)
    choices = {
        "method": "Tall-Project",
        "rank": f"{F.shape[1]} factors and an intercept, {how}",
        "factors": "of the completed matrix" if reestimate else "of the full columns",
    }
    space = _space(F, sizes, small, Z, unit)
    return without_overflows(
        Completion(Solution(o, space, _times(Z, unit), status, by_columns=not reestimate), choices)
    )


def _times(values, unit: float) -> np.ndarray:
    """The product in the type of the values, in which the unit alone may be too large."""
    with np.errstate(over="ignore"):
        return (values * np.float64(unit)).astype(values.dtype)


def _factors_of_full(o: Observations, rank) -> tuple[np.ndarray, np.ndarray, str]:
    """F (m, r) and the singular values of the full columns, each less its mean, and how r was found."""
    A = o.full_matrix().astype(np.float64)
    m, d = A.shape
    A -= A.mean(axis=0)
    scale = m * np.abs(o.values).max(initial=0) * np.finfo(o.values.dtype).eps
    if m == 1 or np.abs(A).max() <= scale:  # Constant columns have no factor.
        return np.zeros((m, 0)), np.zeros(0), "the full columns are constant"
    if not is_auto(rank):
        space = fit_column_space(A, rank=rank)
        return space.basis, space.singular_values, f"{rank} asked for"
    space = fit_column_space(A)
    left = np.sum(A**2) - np.concatenate(([0.0], np.cumsum(space.singular_values**2)))
    left = np.maximum(left, scale**2 * d)[: min(_MOST_AUTO, (min(m, d) + 1) // 2) + 1]
    criterion = np.log(left) + np.arange(left.size) * (m + d) / (m * d) * np.log(min(m, d))
    r = int(np.argmin(criterion))
    return space.basis[:, :r], space.singular_values[:r], "by the criterion IC_p2"


def _space(F, sizes, o: Observations, Z=None, unit=1.0) -> ColumnSpace:
    """The factors with a constant direction before them, orthonormal; sizes and noise once Z is known."""
    m, d = F.shape[0], o.full_columns.size
    basis = np.ascontiguousarray(np.column_stack([np.full(m, 1 / np.sqrt(m)), F]), dtype=o.values.dtype)
    sizes, noise = np.concatenate([[0.0], sizes]), np.nan
    if Z is not None:
        full = Z[:, o.full_columns].astype(np.float64)
        sizes = np.linalg.norm(full, axis=1)
        freedom = (m - basis.shape[1]) * d - F.shape[1] * d
        off = np.linalg.norm(o.full_matrix() - basis @ full)
        noise = off / np.sqrt(freedom) * unit if freedom > 0 else np.nan
    with np.errstate(over="ignore"):
        return ColumnSpace(basis, sizes * unit, None, (sizes * unit) ** 2 / d, float(noise))


def _factors_of_completed(o: Observations, F, Z, rng) -> np.ndarray:
    """The top r left singular vectors of the completed matrix, each column less its mean; never formed.

    It is sparse plus low rank: with E the residuals of the observed entries, F Z_1 + E - 1 (1'E) / m.
    """
    m, n = o.shape
    r, filled = F.shape[1], ~np.isnan(Z[0])
    Z = np.where(filled, Z, 0.0).astype(np.float64)
    e = Entries(o, 1.0)
    basis = np.column_stack([np.full(m, 1 / np.sqrt(m)), F])
    residual = (e.values - e.fitted(basis, Z.T)) * np.repeat(filled, o.n_observed)
    E = e.matrix(residual)
    means = E.sum(axis=0) / m
    A, B = np.column_stack([F, np.full(m, -1.0)]), np.column_stack([Z[1:].T, means])
    if r >= min(m, n) - 1:
        U = np.linalg.svd(E.toarray() + A @ B.T, full_matrices=False)[0][:, :r]
    else:
        operator = LinearOperator(
            (m, n),
            dtype=np.float64,
            matvec=lambda x: E @ x + A @ (B.T @ x),
            rmatvec=lambda y: E.T @ y + B @ (A.T @ y),
        )
        U = svds(operator, k=r, v0=rng.standard_normal(min(m, n)))[0][:, ::-1]
    signs = np.where(U[np.abs(U).argmax(axis=0), np.arange(r)] < 0, -1.0, 1.0)
    return U * signs
