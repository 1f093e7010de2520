"""Observed entries of a factor model, left out in closed form: no fit is repeated.

The fit follows an entry by its leverage. That of the entry's column is h = u' S u w / v, that of its row
z' T z w / v, with w / v the weight of the entry. Without the entry the variance of the fit on that side is

    u' S u / (1 - h)          which is exact if the other side stays as it is (Sherman and Morrison).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._support.threads import in_threads
from ..data.observations import Observations
from .factor_model import FactorModel
from .learned import Learned
from .table import pieces

_MOST = 0.99  # Leverage beyond which an entry alone decides, so that nothing is known without it.


class LeftOut(NamedTuple):
    """Observed entries and what the model says of them; arrays of shape (k,).

    Attributes
    ----------
    residuals : float64 array
        Value minus fit, in the units of the data. The fit has seen the value.
    deviations : float64 array
        Predicted standard deviation of the entry without itself, in the units of the data.
    noise : float64 array
        That of the noise alone.
    by_column, by_row : float64 arrays
        Leverage on the two sides of the model, from 0 to 1.
    """

    residuals: np.ndarray
    deviations: np.ndarray
    noise: np.ndarray
    by_column: np.ndarray
    by_row: np.ndarray

    def rest(self, kind: str) -> np.ndarray:
        """1 - h of both sides together: their leverages "added", or else multiplied as 1 - h = (1 - h_j) (1 - h_i)."""
        if kind == "added":
            return np.maximum(1 - self.by_column - self.by_row, 1 - _MOST)
        return np.maximum((1 - self.by_column) * (1 - self.by_row), 1 - _MOST)


def whole_and_noise(f: FactorModel, rows, columns) -> tuple[np.ndarray, np.ndarray]:
    """Predicted deviations at places of the model, and those of the noise in them, in the units of the data."""
    return f.deviations(rows, columns), f.unit[rows] * np.sqrt(f.own_noise[rows])


def leave_out_entries(learned: Learned, o: Observations, n_columns: int) -> tuple[np.ndarray, np.ndarray, LeftOut]:
    """Rows, columns and the rest of all entries of the first columns of a table, each left out in turn."""
    last = o.indptr[n_columns]
    rows, columns = o.rows[:last].astype(np.int64), o.entry_columns[:last].astype(np.int64)
    weights = None if o.weights is None else o.weights[:last].astype(np.float64)
    values = o.values[:last].astype(np.float64)
    return rows, columns, leave_out(learned.model, *learned.at(rows, columns), values, weights)


def leave_out(f: FactorModel, rows, columns, values, weights=None) -> LeftOut:
    """Observed entries at places of the model, which has seen them, each left out in turn.

    Parameters
    ----------
    f : FactorModel
    rows, columns : int64 arrays of shape (k,)
        Of the model.
    values : float64 array of shape (k,)
    weights : float64 array of shape (k,), optional
        Default: 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _leave_out(f, rows, columns, values, weights)


def _leave_out(f: FactorModel, rows, columns, values, weights) -> LeftOut:
    unit, noise, weights = f.unit[rows], f.noise[rows], np.ones(rows.size) if weights is None else weights
    of_column, of_row, of_both = _variances(f, rows, columns)
    residuals = values - f.predict(rows, columns)
    own, nu = f.own_noise[rows] / weights, f.settings.degrees
    if np.isfinite(nu):  # The weights of Student-t noise: see `factor_model`.
        squares = weights * ((residuals / np.where(unit > 0, unit, 1.0)) ** 2 + of_column + of_row + of_both)
        weights = weights * (nu + 1) / (nu + squares / noise)
    by_column, by_row = (np.clip(x * weights / noise, 0.0, _MOST) for x in (of_column, of_row))
    variance = own + of_column / (1 - by_column) + of_row / (1 - by_row) + of_both
    deviations, noise_deviations = (unit * np.sqrt(np.maximum(x, 0.0)) for x in (variance, own))
    return LeftOut(residuals, deviations, noise_deviations, by_column, by_row)


def _variances(f: FactorModel, rows, columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three terms of Var[fit], in units of the row: u' S u, (z, 1)' T (z, 1) and tr(T S)."""
    from .kernels import sweep_kernels

    of_column, of_row, total = (np.empty(rows.size) for _ in range(3))
    no_row, no_column = np.zeros_like(f.row_covariance), np.zeros_like(f.column_covariance)

    def work(piece):
        at = slice(*piece)
        i, j = np.asarray(rows[at], np.int64), np.asarray(columns[at], np.int64)
        sweep_kernels.fit_variances(i, j, f.U, no_row, f.Z, f.column_covariance, of_column[at])
        sweep_kernels.fit_variances(i, j, f.U, f.row_covariance, f.Z, no_column, of_row[at])
        sweep_kernels.fit_variances(i, j, f.U, f.row_covariance, f.Z, f.column_covariance, total[at])

    in_threads(work, pieces(rows.size, 6.0 * rows.size * f.U.shape[1] ** 2))
    return of_column, of_row, np.maximum(total - of_column - of_row, 0.0)
