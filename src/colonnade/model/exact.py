"""The exact fit: where a table is of low rank up to rounding, least squares without a prior recovers it.

Alternating least squares from the factor model's directions, u_i'z_j + c_i = x_ij, until the residuals are rounding.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .factor_model import FactorModel, moments_of, truncated, update_columns, update_rows
from .packed import diagonal
from .table import ScaledTable

_DROP = 100.0  # Times by which the spectrum of the fitted table falls behind its last true direction.
_ROUNDING = 1e-10  # Residual in units of the spread that counts as rounding.
_STEPS = 1e3  # Steps of the data's own type that count as rounding too.
_SPARE = 1.1  # Entries per free number that are needed before a fit to rounding means anything.
_MOST_SWEEPS = 500  # Sweeps of an exact fit, at most, for time; `_HOPELESS` ends most of those that do not converge.
_HOPELESS = 30  # Sweeps after which the residual must have fallen tenfold.
_NOISE = 1e-12  # Variance for columns solved later: the prior still counts where their entries leave something open.
_WEIGHT = 1e16  # Weight of the entries at which the prior has no part.
_SOME_WEIGHT = 1e8  # Weight at which the prior still decides what the entries of a row or column leave open.
_OPEN = 1e-3  # Share of the prior's variance: a direction that keeps more is not determined by the entries.


def exact_fit(table: ScaledTable, model: FactorModel, dtype) -> FactorModel | None:
    """The model without noise and prior if fewer numbers than entries fit them to rounding; else None.

    `dtype` is that of the data, whose rounding counts.
    """
    size = 1 + np.abs(table.shift) / np.where(table.unit > 0, table.unit, np.inf)
    rounding = np.maximum(_ROUNDING, _STEPS * float(np.finfo(dtype).eps) * size)
    m, n = table.shape
    for rank in _ranks(model):
        if table.by_column.values.size < _SPARE * ((rank + 1) * m + rank * (n - rank)):
            continue
        found = _least_squares(table, truncated(model, rank), rounding)
        if found is not None:
            return found
    return None


def _ranks(model: FactorModel) -> list[int]:
    """Ranks behind which the spectrum of the fitted table falls far."""
    r = model.rank
    s = np.linalg.svd(np.linalg.qr(model.U[:, :r])[1] @ np.linalg.qr(model.Z[:, :r])[1].T, compute_uv=False)
    s = np.append(s, 0.0)
    return [int(k) + 1 for k in np.flatnonzero(s[:-1] > _DROP * s[1:])]


def _least_squares(table: ScaledTable, model: FactorModel, rounding) -> FactorModel | None:
    from .kernels import sweep_kernels

    e = table.by_column
    U, Z, r = model.U.copy(), model.Z.copy(), model.rank
    column, given = e.groups(), table
    # Columns with fewer entries than directions determine nothing, and their small systems are singular.
    enough = (e.counts >= r)[column]
    table = table.with_weights(enough * (e.weights if e.weights.size else 1.0))
    judged = enough & (table.by_row.counts > r)[e.others]
    first, before, fitted = None, np.inf, np.empty(e.values.size)
    for k in range(_MOST_SWEEPS):
        Z = _solved_columns(table, U)
        U, covariance = _solved_rows(table, Z, U)
        sweep_kernels.predictions(e.others.astype(np.int64), column, U, Z, fitted)
        with np.errstate(over="ignore", invalid="ignore"):
            residual = np.abs(e.values - fitted)[judged] / rounding[e.others[judged]]
        worst = float(residual.max(initial=0.0))
        first = worst if first is None else first
        if not np.isfinite(worst) or (k == _HOPELESS and worst > 0.1 * first):
            return None
        if worst < 1 and worst > 0.5 * before:  # The sweeps go on while they halve the residual.
            break
        before = worst
    if worst >= 1:
        return None
    few = e.counts < r
    open_columns = few | _are_open(_column_posterior(table, U, np.zeros((U.shape[0], 0)))[1], r)
    U, Z = _standardised(U, Z, ~open_columns & (e.counts > r))
    sure = np.zeros((table.shape[1], r * (r + 1) // 2))
    Z[open_columns] = _column_posterior(given, U, np.zeros((U.shape[0], 0)))[0][open_columns]
    again, covariance = _solved_rows(given, Z, U, _SOME_WEIGHT)
    open_rows = _are_open(covariance, r + 1)
    U[open_rows], covariance[~open_rows] = again[open_rows], 0.0
    means, covariances = _column_posterior(given, U, covariance)
    Z[open_columns], sure[open_columns] = means[open_columns], covariances[open_columns]
    model = replace(model, noise=np.full(table.shape[0], _NOISE), own_noise=np.zeros(table.shape[0]))
    return replace(model, U=U, Z=Z, row_covariance=covariance, column_covariance=sure)


def _are_open(covariance, q: int) -> np.ndarray:
    """Which packed posterior covariances keep a part of the prior's variance in some direction."""
    return covariance[:, diagonal(q)].max(axis=1) > _OPEN


def _column_posterior(table: ScaledTable, U, row_covariance) -> tuple[np.ndarray, np.ndarray]:
    """Means (z, 1) and packed covariances of the columns: the prior decides what their entries leave open."""
    n, q = table.shape[1], U.shape[1]
    Z, covariance = np.zeros((n, q)), np.zeros((n, q * (q - 1) // 2))
    packed = row_covariance if row_covariance.size else np.zeros((U.shape[0], q * (q + 1) // 2))
    update_columns(table, U, moments_of(U, packed), np.full(U.shape[0], _SOME_WEIGHT), Z, covariance, np.zeros(n))
    return Z, covariance


def _standardised(U, Z, determined) -> tuple[np.ndarray, np.ndarray]:
    """The same products, with columns of mean 0 and covariance I: least squares alone leaves both open."""
    U, Z, r = U.copy(), Z.copy(), U.shape[1] - 1
    if determined.sum() <= r:
        return U, Z
    mean = Z[determined, :r].mean(axis=0)
    _, s, turn = np.linalg.svd(Z[determined, :r] - mean, full_matrices=False)
    if s[-1] <= _ROUNDING * s[0]:
        return U, Z
    s /= np.sqrt(determined.sum())
    U[:, r] += U[:, :r] @ mean
    U[:, :r] = (U[:, :r] @ turn.T) * s
    Z[:, :r] = ((Z[:, :r] - mean) @ turn.T) / s
    return U, Z


def _solved_columns(table: ScaledTable, U) -> np.ndarray:
    n, r = table.shape[1], U.shape[1] - 1
    Z, covariance = np.zeros((n, r + 1)), np.zeros((n, r * (r + 1) // 2))
    nothing = np.zeros((U.shape[0], covariance.shape[1]))
    update_columns(table, U, moments_of(U, nothing), np.full(U.shape[0], _WEIGHT), Z, covariance, np.zeros(n))
    return Z


def _solved_rows(table: ScaledTable, Z, U, weight: float = _WEIGHT) -> tuple[np.ndarray, np.ndarray]:
    """Rows and their packed covariances: those of the prior where the entries leave something open."""
    q, m = U.shape[1], U.shape[0]
    result, moments = U.copy(), moments_of(Z, np.zeros((Z.shape[0], 0)))
    covariance = np.zeros((m, q * (q + 1) // 2))
    written = result, covariance, np.zeros(m), np.zeros(m)
    update_rows(table, Z, moments, np.full(m, weight), np.eye(q), np.zeros(q), written)
    return result, covariance
