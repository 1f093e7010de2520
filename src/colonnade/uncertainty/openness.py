"""What entries leave open, where factors that were learned from other errors mean less.

The variance of an entry is V0 before its row and column show anything, and V with what they show. Errors that are
smaller than predicted, V a with a < 1, say that entries tell more than the model thinks. They tell nothing of rows and
columns without entries. Precisions add up, so only what the entries add to 1 / V0 is scaled:

    1 / variance = 1 / (spread_i V0) + (1 / V - 1 / V0) / a

The known entries of row i of the model have the squares spread_i V0 about their level, by an inverse gamma prior.
V0 is the noise and what the fit may be. Of the latter a column leaves open tr(M S_j) / tr(M), M the mean of u u' + T,
and a row tr(N T_i) / tr(M), N the mean of z z' + S. An entry is known as far as both of its lines are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.observations import Observations
from ..model.factor_model import FactorModel
from ..model.learned import Learned
from ..model.packed import diagonal, unpacked
from .calibration import Spreads, far_square
from .parts import Parts

_LARGEST = 1e100  # Entries in units of V0 beyond which they are not told apart.


class Openness(NamedTuple):
    """Of entries; arrays that fit each other.

    Attributes
    ----------
    open : float64 array
        Share of the fit's variance that is open, from 0 to 1.
    noise : float64 array
        Share of the noise in V0, from 0 to 1.
    spread : float64 array
        Squares of known entries about their level, over V0.
    """

    open: np.ndarray
    noise: np.ndarray
    spread: np.ndarray

    @classmethod
    def of_entries(cls, f: FactorModel, rows, deviations, noise, spreads) -> Openness:
        """In these rows of the model, from predicted deviations, those of the noise in them, and all rows' spreads."""
        shares, unknown = noise_shares(f)[rows], np.sqrt(unknown_variances(f))[rows] * f.unit[rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            known, of_noise = (deviations / unknown) ** 2, (noise / unknown) ** 2
            open = (known - of_noise) / (1 - shares)
        return cls(_share(open), shares, spreads[rows])

    def widening(self, factors, parts: Parts) -> np.ndarray:
        """By how much factors of deviations, beside `parts`, fall short of the variance above; 1 or more."""
        whole = self.noise + self.open * (1 - self.noise)
        with np.errstate(over="ignore"):
            a = np.square(factors) * (parts.fit + (parts.noise - parts.fit) * self.noise / whole)
            return np.sqrt(np.maximum(1.0, 1 / (whole * a / self.spread + 1 - whole)))


def _share(x) -> np.ndarray:
    return np.clip(np.nan_to_num(x, nan=1.0), 0.0, 1.0)


def unknown_variances(f: FactorModel) -> np.ndarray:
    """V0 of an entry in every row of the model, in squares of its unit."""
    return _fits(f) + f.own_noise


def noise_shares(f: FactorModel) -> np.ndarray:
    return f.own_noise / unknown_variances(f)


def _fits(f: FactorModel) -> np.ndarray:
    """tr(u u' + T) of every row, its level included as far as it is not known."""
    return (f.U[:, :-1] ** 2).sum(axis=1) + f.row_covariance[:, diagonal(f.rank + 1)].sum(axis=1)


def spreads_about_levels(learned: Learned, o: Observations) -> np.ndarray:
    """Squares of known entries about the level of their row of the model, over `unknown_variances`; shape (m,)."""
    f = learned.model
    rows, _ = learned.at(o.rows, o.entry_columns)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        x = (o.values - f.shift[rows]) / f.unit[rows] - f.U[rows, -1]
        x = x / np.sqrt(unknown_variances(f))[rows]
    known = np.isfinite(x)
    x = np.clip(x[known], -_LARGEST, _LARGEST)
    squares = np.minimum(x**2, far_square(x))
    return Spreads.of(rows[known], squares, f.unit.size).factors ** 2


def open_columns(f: FactorModel, n_rows: int | None = None) -> np.ndarray:
    """What the columns of the model leave open of the fit in its first rows, by default in all; shape (n,)."""
    r, some = f.rank, np.flatnonzero(f.unit[:n_rows] > 0)
    U, T = f.U[some, :r], f.row_covariance[some]
    loadings = U.T @ U + unpacked(T.sum(axis=0), r + 1)[:r, :r]
    with np.errstate(divide="ignore", invalid="ignore"):
        return _share(_traces(f.column_covariance, loadings) / np.trace(loadings))


def open_rows(f: FactorModel, n_rows: int | None = None, n_columns: int | None = None) -> np.ndarray:
    """What the rows of the model leave open of the fit, by its first rows and columns; shape (m,)."""
    r, Z, some = f.rank, f.Z[:n_columns], np.flatnonzero(f.unit[:n_rows] > 0)
    moments = Z.T @ Z / max(1, Z.shape[0])
    moments[:r, :r] += unpacked(f.column_covariance[:n_columns].mean(axis=0), r)
    usual = _fits(f)[some].mean() if some.size else 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return _share(_traces(f.row_covariance, moments) / usual)


def _traces(packed, matrix) -> np.ndarray:
    """tr(C M) for packed matrices C."""
    weights = 2 * matrix - np.diag(np.diag(matrix))
    return packed @ weights[np.tril_indices(matrix.shape[0])]
