"""New columns of a table that a factor model has filled, without learning anything anew.

Where the model's columns are the table's, a new one is one column update. Where the model is turned, a new column is a
new row of the model: one row update given all coefficients, under the prior that the known rows have led to.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._support.arguments import named
from ..data.observations import Observations
from .factor_model import WEIGHING_STEPS, FactorModel, moments_of, student_weights, update_rows, weights_of
from .learned import Learned, solve_new_columns
from .solve import Status
from .sweeps import loadings_prior
from .table import ScaledTable, rescaled_table, scaled_table

_NOISE_ENTRIES = 2.0  # Entries for which the usual noise counts beside those of a new row; the least in `sweeps`.
_ROUNDING = 1e-6  # Residual in units of the spread up to which a new column fits an exact model,
_STEPS = 1e3  # or so many steps of the data's own type.


def extended(learned: Learned, whole: Observations, n_old: int, basis) -> tuple[Learned, np.ndarray, np.ndarray]:
    """The model with further columns of the table, and their coefficients of shape (r, k) and status.

    Parameters
    ----------
    learned : Learned
    whole : Observations
        Of the old and the new columns, with weights in the units in which the model was learned.
    n_old : int
        Number of old columns.
    basis : array of shape (m, r)
        Of the completion, in which the coefficients are wanted.
    """
    new = whole.take(np.arange(n_old, whole.shape[1]))
    f, r = learned.model, learned.model.rank
    if learned.is_turned:
        model = _with_rows(f, whole, new, learned.is_exact)
        U, unit, shift = (x[n_old:] for x in (model.U, model.unit, model.shift))
        left = np.column_stack([f.Z[:, :r], np.ones(f.Z.shape[0])])
        right = np.column_stack([unit[:, None] * U[:, :r], shift + unit * U[:, r]])
        nothing = Status.NO_OBSERVATION
    else:
        Z, covariance = solve_new_columns(learned, new)
        covariance = np.zeros_like(covariance) if learned.is_exact else covariance
        model = replace(f, Z=np.vstack([f.Z, Z]), column_covariance=np.vstack([f.column_covariance, covariance]))
        left, right, nothing = f.unit[:, None] * f.U[:, :r], Z[:, :r], Status.PRIOR_ONLY
    coefficients = basis.astype(np.float64).T @ left @ right.T
    status = np.where(new.n_observed > 0, Status.SOLVED, nothing).astype(np.int8)
    found = replace(learned, model=model)
    if learned.is_exact:
        status[new.n_observed < r + int(learned.is_turned)] = Status.TOO_FEW
        _refuse_misfits(found, new, n_old, status)
    coefficients[:, np.isin(status, (Status.NO_OBSERVATION, Status.TOO_FEW))] = np.nan
    return found, coefficients, status


def _with_rows(f: FactorModel, whole: Observations, new: Observations, is_exact: bool) -> FactorModel:
    """The model with a row for each new column of the table."""
    n_old = f.U.shape[0]
    scaled = scaled_table(whole.transposed())  # A short row borrows from the typical one of all.
    shift, unit = scaled.shift[n_old:], scaled.unit[n_old:]
    if f.settings.one_unit:
        unit = np.where(unit > 0, f.unit.max(), 0.0)
    table = rescaled_table(new.transposed(), shift, unit)
    noise = np.full(shift.size, float(np.median(f.noise)))
    U, covariance, squares = _updated_rows(f, table, noise, (whole.n_observed[:n_old] > 0) & (f.unit > 0))
    usual = float(np.median(f.own_noise))
    own = (_NOISE_ENTRIES * usual + squares) / (_NOISE_ENTRIES + table.by_row.counts)
    if is_exact:
        covariance, own = np.zeros_like(covariance), np.zeros_like(own)
    return replace(
        f,
        shift=np.append(f.shift, shift),
        unit=np.append(f.unit, unit),
        U=np.vstack([f.U, U]),
        row_covariance=np.vstack([f.row_covariance, covariance]),
        noise=np.append(f.noise, noise),
        own_noise=np.append(f.own_noise, own),
    )


def _updated_rows(f: FactorModel, table: ScaledTable, noise, seen) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loadings, packed covariances and expected squares of the rows of a table, given the model's columns."""
    k, q = table.shape[0], f.rank + 1
    prior, mean, _ = loadings_prior(f.U[seen], moments_of(f.U, f.row_covariance)[seen], f.settings.tail)
    U, covariance = np.zeros((k, q)), np.zeros((k, q * (q + 1) // 2))
    squares = np.zeros(k)
    written = U, covariance, np.zeros(k), squares
    given = f.Z, moments_of(f.Z, f.column_covariance), 1 / noise, prior, prior @ mean, written
    update_rows(table, *given)
    if np.isfinite(f.settings.degrees):
        weights = weights_of(table)
        for _ in range(WEIGHING_STEPS):
            tau, _ = student_weights(table, weights, replace(f, U=U, row_covariance=covariance, noise=noise))
            update_rows(table.with_weights(weights * tau), *given)
    return U, covariance, squares


def _refuse_misfits(learned: Learned, new: Observations, n_old: int, status) -> None:
    """Refuse a new column that an exact model does not explain: it would be called exact."""
    rows, columns = new.rows.astype(np.int64), new.entry_columns + n_old
    values = new.values.astype(np.float64)
    unit = learned.model.unit[learned.at(rows, columns)[0]]
    allowed = _ROUNDING * unit + _STEPS * float(np.finfo(new.values.dtype).eps) * np.abs(values)
    off = (np.abs(values - learned.predict(rows, columns)) > allowed) & (status[new.entry_columns] == Status.SOLVED)
    if off.any():
        j = int(new.entry_columns[np.argmax(off)])
        raise ValueError(
            f"new column {named(new.column_names, j)} does not fit the model, which fits all old entries to rounding:"
            " complete the whole table again"
        )
