"""The factor model: a Gaussian posterior for every column's coefficients and for every row's loadings.

    x_ij = c_i + u_i' z_j + e_ij,  e_ij ~ N(0, v_i / w_ij),  z_j ~ N(0, I),  u_i ~ N(mu, K)

x is the table in units of each row's spread (see `table`). The posterior is taken as a product q(z_j) q(u_i, c_i) and
found by alternating updates (variational Bayes, see `sweeps`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._support.threads import in_threads
from .packed import as_int64
from .table import Entries, ScaledTable, Summands, pieces

TAIL = 0.02  # Weight of the even spectrum; .01 to .1 change the error by less than 3 % (docs/ablation.md).
WEIGHING_STEPS = 10  # Weights of Student-t noise and coefficients in turn; 5 and 60 give the same error to 0.1 %.


@dataclass(frozen=True, eq=False)
class Settings:
    """What is chosen by hidden entries, not learned by the sweeps.

    Attributes
    ----------
    rank : int
        r, the largest number of directions.
    tail : float
        Weight of the even spectrum in the prior of the loadings.
    row_noise : bool
        Whether the sweeps give every row noise of its own. Predictive variances always do.
    degrees : float
        Degrees of freedom of Student-t noise; infinite means Gaussian.
    one_unit : bool
        Whether all rows share one unit, as rows measured alike do.
    whiten : bool
        Whether the sweeps keep the coefficients at covariance I, as tables with many full columns need.
    first_noise : float or None
        Variance of the noise in units of a row's spread with which the sweeps begin. None: what the start leaves over.
    """

    rank: int
    tail: float = TAIL
    row_noise: bool = False
    degrees: float = np.inf
    one_unit: bool = False
    whiten: bool = False
    first_noise: float | None = None


@dataclass(eq=False)
class FactorModel:
    """The posterior, in units of each row's spread; q = r + 1 with the level last.

    Attributes
    ----------
    shift, unit : arrays of shape (m,)
    U : array of shape (m, q)
        Posterior means (u_i, c_i).
    row_covariance : array of shape (m, q (q + 1) / 2)
        Packed T_i.
    Z : array of shape (n, q)
        Posterior means (z_j, 1).
    column_covariance : array of shape (n, r (r + 1) / 2)
        Packed S_j.
    noise : array of shape (m,)
        v_i with which the sweeps weigh the rows.
    own_noise : array of shape (m,)
        v_i of every row for itself, shrunk to the common one as far as the rows agree.
    settings : Settings
    n_sweeps : int
    """

    shift: np.ndarray
    unit: np.ndarray
    U: np.ndarray
    row_covariance: np.ndarray
    Z: np.ndarray
    column_covariance: np.ndarray
    noise: np.ndarray
    own_noise: np.ndarray
    settings: Settings
    n_sweeps: int = 0

    @property
    def rank(self) -> int:
        return self.U.shape[1] - 1

    def predict(self, rows, columns) -> np.ndarray:
        """Predictions at (rows[k], columns[k]) in the units of the data."""
        from .kernels import sweep_kernels

        rows, columns = as_int64(rows, columns)
        result = np.empty(rows.size)
        sweep_kernels.predictions(rows, columns, self.U, self.Z, result)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.shift[rows] + self.unit[rows] * result

    def deviations(self, rows, columns, *, with_noise: bool = True) -> np.ndarray:
        """Predictive standard deviations at (rows[k], columns[k]) in the units of the data."""
        from .kernels import sweep_kernels

        rows, columns = as_int64(rows, columns)
        variance = np.empty(rows.size)
        covariances = self.row_covariance, self.Z, self.column_covariance

        def work(piece):
            at = slice(*piece)
            sweep_kernels.fit_variances(rows[at], columns[at], self.U, *covariances, variance[at])

        in_threads(work, pieces(rows.size, 2.0 * rows.size * self.U.shape[1] ** 2))
        if with_noise:
            variance += self.own_noise[rows]
        return self.unit[rows] * np.sqrt(np.maximum(variance, 0.0))

    def solve(self, table: ScaledTable) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (z, 1) and packed covariances of the columns of another table of the same rows."""
        n, r = table.shape[1], self.rank
        Z, covariance, logs = np.zeros((n, r + 1)), np.zeros((n, r * (r + 1) // 2)), np.zeros(n)
        given = self.U, moments_of(self.U, self.row_covariance), 1 / self.noise, Z, covariance, logs
        update_columns(table, *given)
        if np.isfinite(self.settings.degrees):
            # As many steps for every column, so that none depends on the others.
            weights = weights_of(table)
            for _ in range(WEIGHING_STEPS):
                tau, _ = student_weights(table, weights, replace(self, Z=Z, column_covariance=covariance))
                update_columns(table.with_weights(weights * tau), *given)
        return Z, covariance


def moments_of(means, covariance) -> np.ndarray:
    """Packed E[x x'] from means and packed covariances; those of the columns lack their last coordinate."""
    from .kernels import sweep_kernels

    q = means.shape[1]
    result = np.empty((means.shape[0], q * (q + 1) // 2))

    def work(piece):
        sweep_kernels.packed_moments(*piece, means, covariance, result)

    in_threads(work, pieces(means.shape[0], float(result.size)))
    return result


def _cost(e: Entries, q: int) -> float:
    """Multiplications of an update of all groups: sums of packed moments, and inverses."""
    return q**2 * (0.5 * e.values.size + q * (e.begins.size - 1.0))


class _Given(NamedTuple):
    """The other side of an update, its moments and precisions, and scales, prior and shift of the side itself."""

    means: np.ndarray
    moments: np.ndarray
    precision: np.ndarray
    scale: np.ndarray
    prior: np.ndarray
    shift: np.ndarray


def update_columns(table: ScaledTable, U, moments, precision, Z, covariance, logs, prior=None) -> None:
    """Update all columns, given the rows; `prior` is the precision of z, by default I."""
    n, r = table.shape[1], Z.shape[1] - 1
    given = _Given(U, moments, precision, np.ones(n), np.eye(r) if prior is None else prior, np.zeros(r + 1))
    _update(table.by_column, table.column_summands, given, (Z, covariance, logs, np.zeros(0)))


def update_rows(table: ScaledTable, Z, moments, precision, prior, shift, written) -> None:
    """Update all rows, given the columns: `written` are U, packed covariances, log determinants, expected squares."""
    given = _Given(Z, moments, np.ones(table.shape[1]), precision, prior, shift)
    _update(table.by_row, table.row_summands, given, written)


def _update(e: Entries, summands: Summands, given: _Given, written) -> None:
    from .kernels.sweep_kernels import memory_of, update_groups

    entries, some = (e.begins, e.others, e.values, e.weights), summands.arrays
    bases, q, r = summands.bases(given.moments, given.precision), given.means.shape[1], given.prior.shape[0]

    idle: list = []  # Memory in which no thread works now.

    def work(piece: tuple[int, int]):
        try:
            memory = idle.pop()
        except IndexError:  # Of a group that sums over the others it lacks these are fewer than its entries.
            memory = memory_of(e.longest, q, r)
        update_groups(*piece, entries, some, bases, *given, written, memory)
        idle.append(memory)

    in_threads(work, pieces(e.begins.size - 1, _cost(e, q), e.begins))


def weights_of(table: ScaledTable) -> np.ndarray:
    """The weights of the entries by column, 1 where none are given."""
    given = table.by_column.weights
    return given if given.size else np.ones(table.by_column.values.size)


def student_weights(table: ScaledTable, weights, model: FactorModel) -> tuple[np.ndarray, np.ndarray]:
    """E[tau] = (nu + 1) / (nu + w E[(x - p)^2] / v) and w E[(x - p)^2] of every entry by column."""
    from .kernels import sweep_kernels

    e, nu = table.by_column, model.settings.degrees
    rows, columns = as_int64(e.others, e.groups())
    fitted, variance = np.empty(rows.size), np.empty(rows.size)

    def work(piece):
        at = slice(*piece)
        sweep_kernels.predictions(rows[at], columns[at], model.U, model.Z, fitted[at])
        covariances = model.row_covariance, model.Z, model.column_covariance
        sweep_kernels.fit_variances(rows[at], columns[at], model.U, *covariances, variance[at])

    in_threads(work, pieces(rows.size, 2.0 * rows.size * model.U.shape[1] ** 2))
    squares = weights * ((e.values - fitted) ** 2 + variance)
    return (nu + 1) / (nu + squares / model.noise[rows]), squares


def truncated(model: FactorModel, rank: int) -> FactorModel:
    """The model with its `rank` strongest directions: those with the largest part in the fitted table."""
    r = model.rank
    if rank >= r:
        return model
    left, s, right = np.linalg.svd(model.U[:, :r], full_matrices=False)
    middle, t, last = np.linalg.svd((s[:, None] * right) @ model.Z[:, :r].T, full_matrices=False)
    n = model.Z.shape[0]
    U = (left @ middle[:, :rank]) * (t[:rank] / np.sqrt(n))
    Z = np.ascontiguousarray(last[:rank].T) * np.sqrt(n)
    q = rank + 1
    return replace(
        model,
        U=np.column_stack([U, model.U[:, r]]),
        Z=np.column_stack([Z, np.ones(n)]),
        row_covariance=np.zeros((U.shape[0], q * (q + 1) // 2)),
        column_covariance=np.zeros((n, rank * (rank + 1) // 2)),
        settings=replace(model.settings, rank=rank),
    )
