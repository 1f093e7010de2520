"""Variational sweeps: update columns, prior of the rows, rows and noise in turn.

K, the covariance of the loadings, has an inverse Wishart prior that spreads the unit variance of a row evenly over the
r directions, K = (mean E[(u - mu)(u - mu)'] + tail I / r) / (1 + tail): real spectra have long tails, and without it
the sweeps give up every weak direction. v_i is inverse gamma about a common value, its two parameters learned.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._support.threads import in_threads, one_blas_thread
from .factor_model import (
    FactorModel,
    Settings,
    moments_of,
    student_weights,
    update_columns,
    update_rows,
    weights_of,
)
from .inverse_gamma import InverseGamma, fit_inverse_gamma
from .packed import diagonal, places, unpacked, unpacked_all
from .starts import FIRST_VARIANCE, LEAST_NOISE, first_factors, widened
from .table import ScaledTable, pieces

_LEVEL_PRECISION = 0.1  # A row's level is about 3 of its spreads around the mean of its entries.
_SKEWED = 100.0  # Condition of the coefficients' covariance beyond which new coordinates keep rounding small.
_ROW_NOISE_EVERY = 5  # Sweeps between two fits of the two parameters of the row noise.


class Sweeps:
    """Variational sweeps over a table, from a start.

    Parameters
    ----------
    table : ScaledTable
    settings : Settings
    start : FactorModel or None
        Of the same rows and columns; None begins with a singular value decomposition of the table filled by offsets.
        A start with fewer directions than `settings.rank` is given those of its residuals.
    seed : int
        For the randomised decomposition.
    """

    def __init__(self, table: ScaledTable, settings: Settings, start: FactorModel | None = None, seed: int = 0):
        self.table, self.settings = table, settings
        m, n = table.shape
        # Rows that are constant or empty fit any loadings, so that neither prior nor noise is learned from them.
        self.seen_rows, self.seen_columns = (table.by_row.counts > 0) & (table.unit > 0), table.by_column.counts > 0
        self.counts = np.where(self.seen_rows, table.by_row.counts, 0.0)
        if start is None:
            self.U, Z, noise = first_factors(table, settings.rank, seed)
            self.noise = np.full(m, noise if settings.first_noise is None else settings.first_noise)
        else:
            start = widened(start, table, settings.rank, seed)
            self.U, Z, self.noise = start.U.copy(), start.Z, start.noise.copy()
        r = self.rank = self.U.shape[1] - 1
        q = r + 1
        # The start has no posterior yet: a small variance of the loadings keeps the first step from being too sure.
        self.row_covariance = np.zeros((m, q * (q + 1) // 2))
        self.row_covariance[:, diagonal(r)] = FIRST_VARIANCE / r if start is None else 0.0
        if start is not None and start.row_covariance.shape == self.row_covariance.shape:
            self.row_covariance[:] = start.row_covariance
        self.Z, self.column_covariance = Z.copy(), np.zeros((n, r * (r + 1) // 2))
        self.own_noise = self.noise.copy()
        self.squares: np.ndarray = np.zeros(m)
        self.row_logs, self.column_logs = np.zeros(m), np.zeros(n)
        self.noise_prior = InverseGamma(2.0, 2.0 * float(self.noise.mean()))
        self.prior, self.prior_mean, self.column_prior = np.eye(q), np.zeros(q), np.eye(r)
        self.n_sweeps = 0
        if np.isfinite(settings.degrees):
            self._weigh_at_start(start is None)

    def run(self, most: int, tol: float, progress=None) -> FactorModel:
        """Sweep until the total of the expected squares changes by less than `tol` of itself, `most` times at most."""
        before = np.inf
        for k in range(most):
            self.sweep()
            total = float(self.squares.sum())
            if progress is not None:
                progress(k + 1, most)
            if abs(before - total) <= tol * total:
                break
            before = total
        return self.model()

    def sweep(self) -> None:
        """Update the columns, the prior of the rows, the rows, and the noise."""
        if self.settings.whiten and np.linalg.cond(self.column_prior) > _SKEWED:
            whitened = self._whitened()
            self.U, self.row_covariance, self.column_prior = whitened.U, whitened.row_covariance, np.eye(self.rank)
        row_moments = moments_of(self.U, self.row_covariance)
        written = self.Z, self.column_covariance, self.column_logs
        update_columns(self.table, self.U, row_moments, 1 / self.noise, *written, self.column_prior)
        self._center_columns()
        if self.settings.whiten:
            self._learn_column_prior()
        self._learn_prior(row_moments)
        self._update_rows()
        if np.isfinite(self.settings.degrees):
            self._weigh_entries()
        self._learn_noise()
        self.n_sweeps += 1

    def model(self) -> FactorModel:
        """The posterior, with coefficients that belong to the latest rows, as `FactorModel.solve` finds them."""
        model = self._whitened() if self.settings.whiten else self._posterior()
        table = self.table.with_weights(self._weights) if hasattr(self, "_weights") else self.table
        model.Z, model.column_covariance = model.solve(table)
        return model

    def _whitened(self) -> FactorModel:
        """The posterior in coordinates in which the prior of z is N(0, I)."""
        q = self.rank + 1
        turn, (a, b, _) = np.eye(q), places(q)
        # The prior's precision is RR', so that z = R'^-1 y with y ~ N(0, I), and u'z = (R^-1 u)'y.
        turn[:-1, :-1] = np.linalg.inv(np.linalg.cholesky(self.column_prior)).T
        covariance = np.empty_like(self.row_covariance)

        def work(piece):
            T = unpacked_all(self.row_covariance[slice(*piece)], q)
            covariance[slice(*piece)] = (turn.T @ T @ turn)[:, a, b]

        with one_blas_thread():
            in_threads(work, pieces(covariance.shape[0], float(covariance.shape[0]) * q**3))
            return replace(self._posterior(), U=self.U @ turn, row_covariance=covariance)

    def _posterior(self) -> FactorModel:
        covariances = self.row_covariance, self.Z, self.column_covariance
        noises = self.noise, self.own_noise
        return FactorModel(
            self.table.shift, self.table.unit, self.U, *covariances, *noises, self.settings, self.n_sweeps
        )

    def _center_columns(self) -> None:
        """Give the mean of the coefficients to the levels; the rows, which are updated next, take it up."""
        r = self.rank
        self.mean = self.Z[self.seen_columns, :r].mean(axis=0) if self.seen_columns.any() else np.zeros(r)
        self.Z[:, :r] -= self.mean

    def _learn_column_prior(self) -> None:
        """z ~ N(0, E) with E the second moment of the coefficients, which is to say that they are whitened.

        Whitening z -> L^-1 z, u -> L'u with E = LL' would change nothing but coordinates. In the old ones the prior of
        z is N(0, E) and the even spectrum of the loadings E^-1 / r. `sweep` changes to new ones where E is skewed.
        """
        seen, r = self.seen_columns, self.rank
        count = max(1, int(seen.sum()))
        Z, covariance = self.Z[seen, :r], self.column_covariance
        packed = covariance.sum(axis=0) if seen.all() else covariance[seen].sum(axis=0)
        if seen.any():
            self.column_prior = np.linalg.inv((Z.T @ Z + unpacked(packed, r)) / count)

    def _learn_prior(self, row_moments) -> None:
        """Mean and covariance of the loadings, from the rows that have entries."""
        seen = self.seen_rows
        if not seen.all():
            row_moments = row_moments[seen]
        self.prior, self.prior_mean, self.K = loadings_prior(
            self.U[seen], row_moments, self.settings.tail, self.column_prior
        )

    def _update_rows(self) -> None:
        moments = moments_of(self.Z, self.column_covariance)
        written = self.U, self.row_covariance, self.row_logs, self.squares
        shift = self.prior @ self.prior_mean
        update_rows(self.table, self.Z, moments, 1 / self.noise, self.prior, shift, written)

    def _learn_noise(self) -> None:
        self.squares[~self.seen_rows] = 0.0
        total = max(1.0, float(self.counts.sum()))
        common = max(float(self.squares.sum()) / total, LEAST_NOISE)
        if self.n_sweeps % _ROW_NOISE_EVERY == 0:
            self.noise_prior = fit_inverse_gamma(self.counts, self.squares, self.noise_prior)
        self.own_noise = np.maximum(self.noise_prior.variances(self.counts, self.squares), LEAST_NOISE)
        self.noise = self.own_noise.copy() if self.settings.row_noise else np.full(self.counts.size, common)

    def _weigh_at_start(self, is_new: bool) -> None:
        """Weights of Student-t noise before the first sweep, so that outliers do not bend what is learned first.

        Without a model the entry itself, in spreads of its row, is taken for its error.
        """
        if not is_new:
            self._weigh_entries()
            return
        self._weights, nu = weights_of(self.table), self.settings.degrees
        tau = (nu + 1) / (nu + self.table.by_column.values**2)
        self.table = self.table.with_weights(self._weights * tau)

    def _weigh_entries(self) -> None:
        """Give every entry its further weight E[tau] under Student-t noise."""
        if not hasattr(self, "_weights"):
            self._weights = weights_of(self.table)
        tau, squares = student_weights(self.table, self._weights, self._posterior())
        self.table = self.table.with_weights(self._weights * tau)
        self.squares = np.bincount(self.table.by_column.others, squares * tau, self.squares.size)

    def bound(self) -> float:
        """Evidence lower bound after a sweep, up to a constant; for Gaussian noise that is common to all rows."""
        r, m, n = self.rank, int(self.seen_rows.sum()), int(self.seen_columns.sum())
        total, v = float(self.counts.sum()), float(self.noise[0])
        likelihood = -0.5 * total * np.log(v) - 0.5 * float(self.squares.sum()) / v
        zz = float((self.Z[self.seen_columns, :r] ** 2).sum())
        zz += float(self.column_covariance[self.seen_columns][:, diagonal(r)].sum())
        columns = -0.5 * zz - 0.5 * float(self.column_logs[self.seen_columns].sum()) + 0.5 * n * r
        offset = self.U[self.seen_rows] - self.prior_mean
        covariance = unpacked(self.row_covariance[self.seen_rows].sum(axis=0), r + 1)
        spread = float(np.einsum("ij,jk,ik->", offset, self.prior, offset) + (self.prior * covariance).sum())
        log_prior = float(np.linalg.slogdet(self.prior)[1])
        rows = 0.5 * m * log_prior - 0.5 * spread - 0.5 * float(self.row_logs[self.seen_rows].sum())
        inverse = self.prior[:r, :r]
        wishart = 0.5 * self.settings.tail * m * (np.linalg.slogdet(inverse)[1] - np.trace(inverse) / r)
        return likelihood + columns + rows + float(wishart)


def loadings_prior(U, moments, tail: float, even=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precision of shape (q, q) and mean of the prior of (u, c), and K, from rows that have entries.

    Parameters
    ----------
    U : array of shape (m, q)
    moments : array of shape (m, q (q + 1) / 2)
        Packed E[(u, c) (u, c)'].
    tail : float
        Weight of the even spectrum.
    even : array of shape (r, r), optional
        r times the even spectrum, by default I.
    """
    r, count = U.shape[1] - 1, max(1, U.shape[0])
    second = unpacked(moments.sum(axis=0), r + 1)[:r, :r] / count
    mu = U[:, :r].sum(axis=0) / count
    K = (second - np.outer(mu, mu) + tail * (np.eye(r) if even is None else even) / r) / (1 + tail)
    precision = np.zeros((r + 1, r + 1))
    least = tail / r / (1 + tail) * (1.0 if even is None else np.linalg.eigvalsh(even)[0])
    precision[:r, :r] = _inverse(K, least)
    precision[r, r] = _LEVEL_PRECISION
    return precision, np.append(mu, 0.0), K


def _inverse(K, least: float) -> np.ndarray:
    """K^-1, where no eigenvalue of K is below `least` but by rounding of far larger ones."""
    try:
        np.linalg.cholesky(K)
        return np.linalg.inv(K)
    except np.linalg.LinAlgError:
        values, axes = np.linalg.eigh(K)
        return (axes / np.maximum(values, least)) @ axes.T
