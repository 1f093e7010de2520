"""Intervals: how far a filled entry may be from the truth.

The variance of an entry that is measured anew is that of its prediction under the model, plus the noise,

    t u_i' (U_O' W U_O + Lambda)^-1 u_i + t,

times a factor for its row, for some rows are noisier or worse explained than others. Since no model is quite true, the
half-width is this deviation times a quantile of how many deviations observed entries of partial columns were off when
they were left out (split conformal), so that the coverage does not rest on Gaussian tails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, stats
from threadpoolctl import threadpool_limits

from .learn import leave_one_out
from .solve import Status

_ASKED_ENTRIES = 20_000
_ROW_CAUTION = 10.0  # imaginary entries of average error with which a row's own are diluted


@dataclass(frozen=True)
class Calibration:
    """What leaving out observed entries has shown.

    Attributes
    ----------
    scores : array of shape (k,)
        Sorted numbers of predicted deviations by which entries were off.
    row_factors : array of shape (m,)
        By which the deviation of each row is multiplied.
    """

    scores: np.ndarray
    row_factors: np.ndarray

    def half_width(self, level: float) -> float:
        """In predicted deviations; infinite if too few entries were left out for this level."""
        k = int(np.ceil((self.scores.size + 1) * level))
        if self.scores.size == 0:
            return float(stats.norm.ppf(0.5 + level / 2))
        return float(self.scores[k - 1]) if k <= self.scores.size else np.inf


def calibrate(completion) -> Calibration:
    """Leave out entries of partial columns, evenly chosen where there are many."""
    o, m = completion.observations, completion.shape[0]
    partial = o.partial_columns
    able = partial[(o.n_observed[partial] > 1) & (completion.status[partial] != Status.OVERFLOW)]
    most = max(1, int(_ASKED_ENTRIES / max(1.0, np.median(o.n_observed[able])))) if able.size else 0
    if able.size > most:
        able = able[np.linspace(0, able.size - 1, most).astype(int)]
    asked = o.take(able)
    errors, deviations = _left_out(completion, asked)
    known = np.isfinite(errors) & (deviations > 0)
    squares, rows = np.minimum(np.abs(errors[known]) / deviations[known], 1e100) ** 2, asked.rows[known]
    typical = float(np.mean(squares)) if squares.size else 1.0
    sums, counts = np.bincount(rows, squares, m), np.bincount(rows, minlength=m)
    factors = np.sqrt((sums + _ROW_CAUTION * typical) / ((counts + _ROW_CAUTION) * typical)) if typical else np.ones(m)
    return Calibration(np.sort(np.sqrt(squares) / factors[rows]), factors)


def _left_out(completion, asked) -> tuple[np.ndarray, np.ndarray]:
    """Errors and predicted deviations of the entries left out, shape (nnz,) each."""
    noise = completion.noise_variance
    errors, deviations = leave_one_out(completion.space, asked, [noise])
    unit = 1.0 if noise else _plain_noise(completion)
    return errors[:, 0], deviations[:, 0] * unit


def _plain_noise(completion) -> float:
    noise = completion.noise_std
    return noise if np.isfinite(noise) else 1.0  # the scores then carry the scale


def deviations(completion, rows, columns) -> np.ndarray:
    """Predicted standard deviations of entries measured anew, without the factors of rows; shape (k,)."""
    o, space = completion.observations, completion.space
    noise = completion.noise_variance or _plain_noise(completion) ** 2
    scale = np.sqrt(space.variances) if completion.noise_variance else 1.0

    def F(i):
        return space.basis[i].astype(np.float64) * scale

    result = np.full(rows.size, np.nan)
    order = np.argsort(columns, kind="stable")
    starts = np.flatnonzero(np.diff(columns[order], prepend=-1))
    with threadpool_limits(1, user_api="blas"):
        for at in np.split(order, starts[1:]) if order.size else ():
            j = columns[at[0]]
            if completion.status[j] != Status.FULL and Status(completion.status[j]).is_filled:
                result[at] = np.sqrt(
                    noise + _prediction_variance(F, o, j, F(rows[at]), noise, completion.noise_variance > 0)
                )
    return result


def _prediction_variance(F, o, j, targets, noise, has_prior) -> np.ndarray:
    """Variance of the fitted values of column j at some rows."""
    here = slice(o.indptr[j], o.indptr[j + 1])
    w = np.ones(here.stop - here.start) if o.weights is None else o.weights[here].astype(np.float64)
    B = np.sqrt(w)[:, None] * F(o.rows[here])
    if has_prior and B.shape[0] < B.shape[1]:
        factor = linalg.cholesky(B @ B.T + noise * np.eye(B.shape[0]), lower=True, check_finite=False)
        explained = linalg.solve_triangular(factor, B @ targets.T, lower=True, check_finite=False)
        return np.maximum((targets**2).sum(axis=1) - (explained**2).sum(axis=0), 0.0)
    stacked = np.vstack([B, np.sqrt(noise) * np.eye(B.shape[1])]) if has_prior else B
    R = np.linalg.qr(stacked, mode="r")
    spread = linalg.solve_triangular(R, targets.T, trans="T", check_finite=False)
    return noise * (spread**2).sum(axis=0)
