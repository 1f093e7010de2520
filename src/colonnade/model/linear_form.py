"""A prediction as a sum: given the loadings, it is linear in the known entries of its column.

With F the loadings of the known rows O, f that of the asked row, W the weights and Lambda the penalty,

    prediction = level + offset + sum_k a_k (x_k - level_k),      a = W F (F' W F + Lambda)^-1 f.

The offset is what neither the level nor the entries explain; only a factor model has one, where a row's level and
loadings are uncertain together. `a` comes from a QR decomposition, so that nothing is squared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from .column_space import ColumnSpace
from .factor_model import WEIGHING_STEPS, FactorModel
from .packed import unpacked
from .table import FARTHEST


@dataclass(frozen=True, eq=False)
class LinearForm:
    """A prediction as level + offset + sum of contributions, in the units of the data.

    Attributes
    ----------
    level, offset : float
    weights, contributions : arrays of shape (s,)
        Of every known entry; contribution = weight * (entry - level of the entry).
    leverage : float
        Share by which the prediction would follow the entry itself, if that were measured too; from 0 to 1.
    """

    level: float
    offset: float
    weights: np.ndarray
    contributions: np.ndarray
    leverage: float

    @property
    def prediction(self) -> float:
        """The sum."""
        return float(self.level + self.offset + self.contributions.sum())


def form_in_space(space: ColumnSpace, penalty, row: int, rows, values, weights, own: float = 1.0) -> LinearForm:
    """The prediction at a row from the known entries of a column, by least squares with a penalty.

    Parameters
    ----------
    space : ColumnSpace
        With a basis of shape (m, r); the entries must determine the column unless there is a penalty.
    penalty : array of shape (r,)
        The diagonal of Lambda.
    row : int
    rows, values, weights : arrays of shape (s,)
        The known entries that have a part in the answer.
    own : float
        Weight that an entry at this row has or would have.
    """
    f = space.basis[row].astype(np.float64)
    level = 0.0 if space.center is None else float(space.center[row])
    levels = np.zeros(rows.size) if space.center is None else space.center[rows].astype(np.float64)
    if rows.size == 0 and space.mean is not None and space.center is None:  # Nothing is known: the mean is taken.
        level = float(f @ (space.basis.astype(np.float64).T @ space.mean))
    roots = np.sqrt(weights.astype(np.float64))
    F = space.basis[rows].astype(np.float64)
    a, _, spread = _weights(roots, F, np.diag(np.sqrt(penalty)), f)
    contributions = a * (values.astype(np.float64) - levels)
    return LinearForm(level, 0.0, a, contributions, _leverage(own * spread))


def form_in_model(model: FactorModel, row: int, rows, values, weights, own: float = 1.0) -> LinearForm:
    """The prediction at a row of a factor model from the known entries of one of its columns.

    Parameters
    ----------
    model : FactorModel
    row : int
    rows, values, weights : arrays of shape (s,)
        The known entries, in the units of the data; weights in the units in which the model was learned.
    own : float
        Weight that an entry at this row has or would have.
    """
    r, unit = model.rank, model.unit[rows]
    divisor = np.where(unit > 0, unit, np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.clip(np.nan_to_num(values / divisor - model.shift[rows] / divisor), -FARTHEST, FARTHEST)
        W = _weights_of_entries(model, rows, x, weights) / model.noise[rows]
        f, scale = model.U[row, :r], model.unit[row]
        a, b, _ = _weights(np.sqrt(W), model.U[rows, :r], _penalty_root(model, rows, W), f)
        covariance = unpacked(W @ model.row_covariance[rows], r + 1)
        parts = a * (x - model.U[rows, r])
        fixed = unit == 0  # All entries of such a row are equal: their values tell nothing.
        offset = parts[fixed].sum() - covariance[r, :r] @ b
        parts[fixed] = 0.0
        contributions = scale * parts
        away = values - (model.shift[rows] + unit * model.U[rows, r])
        slope = np.where(fixed, 0.0, a * (scale / divisor))
        clipped = np.abs(x) >= FARTHEST  # There the weight is the mean slope from the level to the entry.
        slope[clipped] = np.where(away[clipped] != 0, contributions[clipped] / away[clipped], 0.0)
    level = float(model.shift[row] + scale * model.U[row, r])
    leverage = _own_leverage(model, row, rows, W, own)
    return LinearForm(level, float(scale * offset), slope, contributions, leverage)


def _weights(roots, F, penalty_root, f) -> tuple[np.ndarray, np.ndarray, float]:
    """W F A^-1 f, A^-1 f and f' A^-1 f with A = F' W F + Lambda; `penalty_root` is C with C'C = Lambda."""
    if f.size == 0:
        return np.zeros(roots.size), np.zeros(0), 0.0
    Q, R = np.linalg.qr(np.vstack([roots[:, None] * F, penalty_root]))
    y = solve_triangular(R, f, trans="T", check_finite=False)
    return roots * (Q[: roots.size] @ y), solve_triangular(R, y, check_finite=False), float(y @ y)


def _penalty_root(model: FactorModel, rows, W) -> np.ndarray:
    """C with C'C = I + sum of W T over the rows."""
    r = model.rank
    return np.linalg.cholesky(np.eye(r) + unpacked(W @ model.row_covariance[rows], r + 1)[:r, :r]).T


def _weights_of_entries(model: FactorModel, rows, x, weights) -> np.ndarray:
    """Weights of the entries, with those of Student-t noise as `FactorModel.solve` finds them."""
    given = weights.astype(np.float64)
    found = given
    if np.isfinite(model.settings.degrees):
        for _ in range(WEIGHING_STEPS):
            squares = given * _expected_squares(model, rows, x, found) / model.noise[rows]
            found = given * (model.settings.degrees + 1) / (model.settings.degrees + squares)
    return found


def _expected_squares(model: FactorModel, rows, x, weights) -> np.ndarray:
    """E[(x - fit)^2] of entries of a column that is solved with these weights."""
    r, W, u = model.rank, weights / model.noise[rows], model.U[rows]
    total = unpacked(W @ model.row_covariance[rows], r + 1)
    S = np.linalg.inv(np.eye(r) + (W[:, None] * u[:, :r]).T @ u[:, :r] + total[:r, :r])
    z = np.append(S @ (u[:, :r].T @ (W * (x - u[:, r])) - total[r, :r]), 1.0)
    # Var[fit] = z'T z + u'S u + tr(T S) with packed T: off-diagonal entries stand for two.
    outer = np.outer(z, z)
    outer[:r, :r] += S
    low = np.tril_indices(r + 1)
    packed = np.where(low[0] == low[1], 1.0, 2.0) * outer[low]
    variance = model.row_covariance[rows] @ packed + np.einsum("ka,ab,kb->k", u[:, :r], S, u[:, :r])
    return (x - u @ z) ** 2 + variance


def _own_leverage(model: FactorModel, row: int, rows, W, own: float) -> float:
    """f' A^-1 f w / v, with an entry at the row itself as part of A."""
    r = model.rank
    rows, W = np.append(rows, row), np.append(W, own / model.noise[row])
    spread = _weights(np.sqrt(W), model.U[rows, :r], _penalty_root(model, rows, W), model.U[row, :r])[2]
    return min(1.0, float(spread * W[-1]))


def _leverage(spread: float) -> float:
    """h / (1 + h): the leverage of an entry at a place whose fit has the variance h before it is measured."""
    return 1.0 if np.isinf(spread) else spread / (1 + spread)
