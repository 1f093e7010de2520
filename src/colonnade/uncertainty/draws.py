"""Draws of filled tables from the posterior predictive distribution, for multiple imputation.

Of the factor model: (u_i, c_i) ~ N(U_i, T_i), z_j ~ N(z_j, S_j) and noise N(0, v_i), each drawn once per table, so that
entries of a row or column are correlated as the model says. Of a column filled with the help of full ones:
z_j ~ N(z_j, t (U_O' W U_O + Lambda)^-1) and noise N(0, t). The deviation of a draw from the prediction is then scaled
as the intervals are: by the factors of its row and column, and such that 90 % intervals have the width of the draws'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from .._support.threads import one_blas_thread
from ..model.factor_model import FactorModel
from ..model.learned import Learned
from ..model.packed import as_int64, unpacked_all
from ..model.prediction import keep_in_bounds
from ..model.solve import solve_columns
from .parts import Parts
from .verdict import LEVEL

NORMAL = float(ndtri((1 + LEVEL) / 2))  # Half the width of that interval of a standard normal variable.
_PIECE_NUMBERS = 2_000_000  # Numbers of covariance matrices, or of drawn entries, at a time.


@one_blas_thread()
def model_deviations(learned: Learned, columns, n_draws: int, rows, rng, parts: Parts) -> np.ndarray:
    """Deviations of drawn tables from the prediction before calibration, shape (n_draws, rows, columns).

    Parameters
    ----------
    learned : Learned
    columns, rows : int arrays
        Numbers of columns and rows that the model has.
    n_draws : int
    rng : numpy Generator
    parts : Parts
        Factors of the variances of the noise and of the fit.
    """
    model = learned.model
    of_rows, of_columns = learned.at(rows, columns)
    u, z = _drawn_factors(model, n_draws, of_rows, of_columns, rng)
    result = np.empty((n_draws, of_rows.size, of_columns.size))
    scale, noise = model.unit[of_rows, None], np.sqrt(parts.noise * model.own_noise[of_rows, None])
    fitted = model.U[of_rows] @ model.Z[of_columns].T
    for k in range(n_draws):
        result[k] = np.sqrt(parts.fit) * (u[k] @ z[k].T - fitted)
        result[k] += noise * rng.standard_normal(fitted.shape)
        result[k] *= scale
    return result.transpose(0, 2, 1) if learned.is_turned else result


def _drawn_factors(model: FactorModel, n_draws: int, rows, columns, rng) -> tuple[np.ndarray, np.ndarray]:
    """(u, c) of shape (n_draws, rows, q) and (z, 1) of shape (n_draws, columns, q)."""
    r = model.rank
    u = model.U[rows] + _drawn(model.row_covariance, rows, r + 1, n_draws, rng)
    z = np.repeat(model.Z[None, columns], n_draws, axis=0)
    z[:, :, :r] += _drawn(model.column_covariance, columns, r, n_draws, rng)
    return u, z


def _drawn(packed, which, size: int, n_draws: int, rng) -> np.ndarray:
    """Draws of N(0, C) for some packed covariance matrices C, shape (n_draws, k, size)."""
    result = np.empty((n_draws, which.size, size))
    step = max(1, _PIECE_NUMBERS // size**2)
    for first in range(0, which.size, step):
        some = which[first : first + step]
        x = rng.standard_normal((some.size, size, n_draws))
        result[:, first : first + step] = (square_roots(packed[some], size) @ x).transpose(2, 0, 1)
    return result


def square_roots(packed, size: int) -> np.ndarray:
    """Matrices A with A A' = C for packed C, shape (k, size, size); of the nearest to what rounding made indefinite."""
    C = unpacked_all(packed, size)
    try:
        return np.linalg.cholesky(C)
    except np.linalg.LinAlgError:  # A variance is zero up to rounding, as in an exact fit.
        values, vectors = np.linalg.eigh(C)
        return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]


def column_deviations(
    space, o, noise_variance: float, plain: float, n_draws: int, rows, columns, rng, parts: Parts
) -> np.ndarray:
    """Deviations of drawn columns from their prediction before calibration, shape (n_draws, rows, columns).

    Coefficients z are drawn from the prior, and entries from z. What solving these gives differs from z by a draw of
    N(0, t (U_O' W U_O + Lambda)^-1), because the posterior variance does not depend on the entries. Under plain least
    squares z = 0.

    Parameters
    ----------
    space : ColumnSpace
    o : Observations
        The entries that have a part in filling the columns.
    noise_variance : float
        t under a prior; 0 means plain least squares, whose noise has the deviation `plain`.
    n_draws : int
    rows, columns : int arrays
    rng : numpy Generator
    parts : Parts
        Factors of the variances of the noise and of the coefficients.
    """
    t = noise_variance or plain**2
    scale = np.sqrt(space.variances) if noise_variance else np.ones(space.rank)
    scaled = replace(space, basis=space.basis.astype(np.float64) * scale, center=None, mean=None)
    penalty = np.full(space.rank, float(noise_variance))
    result = np.sqrt(parts.noise * t) * rng.standard_normal((n_draws, rows.size, columns.size))
    targets, known = scaled.basis[rows], o.take(columns)
    step = max(1, _PIECE_NUMBERS // max(1, known.values.size, space.rank * columns.size))
    for first in range(0, n_draws, step):
        count = min(step, n_draws - first)
        each = known.take(np.tile(np.arange(columns.size), count))
        z = rng.standard_normal((count * columns.size, space.rank)) if noise_variance else np.zeros((1, space.rank))
        noise = np.sqrt(t) * rng.standard_normal(each.values.size)
        if each.weights is not None:
            noise /= np.sqrt(each.weights.astype(np.float64))
        if noise_variance:
            noise += _products(scaled.basis, each.rows, z, each.entry_columns)
        solved, _ = solve_columns(scaled, each.with_arrays(values=noise), penalty=penalty)
        off = np.nan_to_num(z - solved.T).reshape(count, columns.size, space.rank)  # NaN: the entries tell nothing.
        result[first : first + count] += np.sqrt(parts.fit) * (targets @ off.transpose(0, 2, 1))
    return result


def _products(U, rows, Z, columns) -> np.ndarray:
    """u_i' z_j at (rows[k], columns[k])."""
    from ..model.kernels import sweep_kernels

    result = np.empty(rows.size)
    sweep_kernels.predictions(*as_int64(rows, columns), U, Z, result)
    return result


def refuse_infinite(half_width: float) -> float:
    """Half the width of intervals, refused where no entry could be held out and the noise is not known either."""
    if not np.isfinite(half_width):
        raise ValueError(
            "sample cannot tell how far to spread: no entry could be left out and the noise is not known, so that"
            " intervals are infinite; measure more entries than the rank in some partial columns"
        )
    return half_width


def drawn_tables(predictions, deviations, is_filled, bounds) -> np.ndarray:
    """Predictions plus deviations where entries were filled; shape (n_draws, a, b), type of the predictions.

    A number beyond the range of this type becomes its largest one.

    Parameters
    ----------
    predictions : array of shape (a, b)
    deviations : array of shape (n_draws, a, b)
    is_filled : bool array of shape (a, b)
    bounds : (float, float) or None
        Drawn entries are kept within them.
    """
    with np.errstate(over="ignore"):
        result = (predictions + deviations).astype(predictions.dtype, copy=False)
    largest = np.finfo(result.dtype).max
    np.clip(result, -largest, largest, out=result)
    keep_in_bounds(bounds, result)
    np.copyto(result, predictions, where=~is_filled)
    return result
