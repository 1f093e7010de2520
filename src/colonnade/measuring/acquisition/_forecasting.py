"""The forecast: what error a number of full columns and a number of entries of each other would leave.

Columns that were read in full are held out in turn and projected on the space of d others. What stays outside is lost
in any case; it is noise to the entries of a partial column, from which the coefficients along the d directions must be
estimated. With coefficients of variance v_i and s random entries of noise t, an entry is then predicted with the
variance q that solves

    q = (1/m) sum_i 1 / (1/v_i + (s/m) / (t + q)),

because the entries from which a coefficient is learned carry the noise and the errors of the other coefficients.
Without a prior (v infinite) that is t r / (s - r), the mean for a random basis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._support.numbers import unit_of
from ..._support.threads import one_blas_thread

_FOLDS = 10  # Parts of the full columns that are held out in turn.
_STEPS = 200  # Most steps to the fixed point; about 20 are usual.
_LEARNED = 0.1  # What an entry of a partial column adds to the space, where one of a full column adds 1.


@dataclass(frozen=True)
class Forecast:
    """What d full columns tell about another column.

    Attributes
    ----------
    n_rows : int
        m.
    variances : array of shape (k,)
        Of its coefficients, without the noise in them; only those above the noise.
    noise : float
        Mean square of an entry that the space does not explain.
    """

    n_rows: int
    variances: np.ndarray
    noise: float

    def error(self, s: float) -> float:
        """Mean square error of an unseen entry of a column with s entries."""
        return self.noise + self.estimation_error(s)

    def estimation_error(self, s: float) -> float:
        """The part of it that more entries lower: q."""
        if self.variances.size == 0 or (self.noise == 0 and s > self.variances.size):
            return 0.0
        q, m = float(self.variances.sum()) / self.n_rows, self.n_rows
        for _ in range(_STEPS):  # The values fall to the fixed point.
            before, q = q, float(np.sum(1 / (1 / self.variances + (s / m) / (self.noise + q)))) / m
            if before - q <= 1e-6 * before:
                break
        return q


@one_blas_thread()
def forecasts(A, sizes) -> list[Forecast]:
    """A forecast for each number of full columns in `sizes`, from held-out columns of A, shape (m, D).

    A size is at most D - ceil(D / 10). Every column of A is held out once and predicted from that many others.
    """
    m, D = A.shape
    R = np.asarray(np.linalg.qr(A, mode="r")) if m > D else A  # R has the same lengths and angles.
    folds = np.array_split(np.arange(D), min(D, _FOLDS))
    squares = [np.zeros(min(d, R.shape[0])) for d in sizes]
    energy = float((R**2).sum())
    for fold in folds:
        others = np.setdiff1d(np.arange(D), fold)
        for d, total in zip(sizes, squares):
            some = others[np.linspace(0, others.size - 1, d).round().astype(int)]
            U = np.linalg.svd(R[:, some], full_matrices=False)[0]
            total += ((U.T @ R[:, fold]) ** 2).sum(axis=1)
    return [_forecast(m, d, total / D, energy / D) for d, total in zip(sizes, squares)]


def _forecast(m, d, squares, energy) -> Forecast:
    noise = max(energy - float(squares.sum()), 0.0) / max(m - d, 1)
    if noise <= 1e-20 * energy / m:
        noise = 0.0
    signal = squares - noise
    return Forecast(m, signal[signal > 0], noise)


def largest_size(D: int) -> int:
    """The most columns from which a held-out one of D can be predicted."""
    return D - -(-D // min(D, _FOLDS))


def more_columns_pay(A, n_columns: int, left: int) -> bool:
    """Whether a tenth more full columns than those of A would be worth their entries, if `left` entries may be read.

    What the space leaves out falls as a + b / d, the numbers from nearly all columns of A and from 15 % fewer. Entries
    of partial columns improve the space too, if less, when it is refined.
    """
    m, D = A.shape
    many = largest_size(D)
    few = min(many - 1, round(0.85 * many))
    if few < 1 or n_columns == D:
        return True
    now, before = forecasts(A / unit_of(A), [many, few])
    b = (before.noise - now.noise) / (1 / few - 1 / many)

    def error(d):
        worth = d + _LEARNED * (left / m + D - d)
        noise = max(now.noise + b * (1 / worth - 1 / many), 0.0)
        return replace(now, noise=noise).error(min(m, (left + (D - d) * m) / (n_columns - d)))

    more = min(max(D + 1, 1.1 * D), n_columns - 1, D + left / m)
    return error(more) < error(D)
