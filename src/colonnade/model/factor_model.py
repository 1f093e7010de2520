"""The factor model: a Gaussian posterior for every column's coefficients and for every row's loadings.

    x_ij = c_i + u_i' z_j + e_ij,  e_ij ~ N(0, v_i / w_ij),  z_j ~ N(0, I),  u_i ~ N(mu, K)

x is the table in units of each row's spread (see `table`). The posterior is taken as a product q(z_j) q(u_i, c_i) and
found by alternating updates (variational Bayes). K has an inverse Wishart prior that spreads the unit variance of a row
evenly over the r directions, K = (mean E[(u - mu)(u - mu)'] + tail I / r) / (1 + tail): real spectra have long tails,
and without it the sweeps give up every weak direction. v_i is inverse gamma about a common value, its two parameters
learned; its limit is noise that is common to all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._support.threads import in_threads, one_blas_thread
from .table import Entries, ScaledTable, Summands, pieces

TAIL = 0.02  # Weight of the even spectrum; .01 to .1 change the error by less than 3 % (docs/settings.md).
_FIRST_VARIANCE = 1e-3  # Of the loadings of all directions together, in which a start is not quite sure of them.
_LEVEL_PRECISION = 0.1  # A row's level is about 3 of its spreads around the mean of its entries.
_LEAST_NOISE = 1e-8  # Variance in units of a row's spread: with less the small systems are lost in rounding.
_WEIGHING_STEPS = 10  # Weights of Student-t noise and coefficients in turn; 5 and 60 give the same error to 0.1 %.
_SIGNAL_PART = 4  # The first quarter of the full columns' directions is left out of the first noise variance.
_SKEWED = 100.0  # Condition of the coefficients' covariance beyond which new coordinates keep rounding small.
_ROW_NOISE_EVERY = 5  # Sweeps between two fits of the two parameters of the row noise.


@dataclass(frozen=True, eq=False)
class Settings:
    """What is chosen by hidden entries, not learned by the sweeps.

    Attributes
    ----------
    rank : int
        r, the most directions.
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

        rows, columns = _as_int64(rows, columns)
        result = np.empty(rows.size)
        sweep_kernels.predictions(rows, columns, self.U, self.Z, result)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.shift[rows] + self.unit[rows] * result

    def deviations(self, rows, columns, *, with_noise: bool = True) -> np.ndarray:
        """Predictive standard deviations at (rows[k], columns[k]) in the units of the data."""
        from .kernels import sweep_kernels

        rows, columns = _as_int64(rows, columns)
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
        given = self.U, _moments(self.U, self.row_covariance), 1 / self.noise, Z, covariance, logs
        _update_columns(table, *given)
        if np.isfinite(self.settings.degrees):
            # As many steps for every column, so that none depends on the others.
            weights = _weights_of(table)
            for _ in range(_WEIGHING_STEPS):
                tau, _ = _student_weights(table, weights, replace(self, Z=Z, column_covariance=covariance))
                _update_columns(table.with_weights(weights * tau), *given)
        return Z, covariance


def _as_int64(*places) -> tuple[np.ndarray, ...]:
    """The same places in the one type for which the kernels are compiled."""
    return tuple(np.asarray(at, np.int64) for at in places)


def _moments(means, covariance) -> np.ndarray:
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


def _update_columns(table: ScaledTable, U, moments, precision, Z, covariance, logs, prior=None) -> None:
    """Update all columns, given the rows; `prior` is the precision of z, by default I."""
    n, r = table.shape[1], Z.shape[1] - 1
    given = U, moments, precision, np.ones(n), np.eye(r) if prior is None else prior, np.zeros(r)
    _update(table.by_column, table.column_summands, *given, (Z, covariance, logs, np.zeros(0)))


def update_rows(table: ScaledTable, Z, moments, precision, prior, shift, written) -> None:
    """Update all rows, given the columns: `written` are U, packed covariances, log determinants, expected squares."""
    given = Z, moments, np.ones(table.shape[1]), precision, prior, shift
    _update(table.by_row, table.row_summands, *given, written)


def _update(e: Entries, summands: Summands, means, moments, precision, *given) -> None:
    from .kernels import sweep_kernels

    entries, bases = (e.begins, e.others, e.values, e.weights), summands.bases(moments, precision)

    def work(piece):
        sweep_kernels.update_groups(*piece, entries, summands.arrays, bases, means, moments, precision, *given)

    in_threads(work, pieces(e.begins.size - 1, _cost(e, means.shape[1]), e.begins))


def _weights_of(table: ScaledTable) -> np.ndarray:
    """The weights of the entries by column, 1 where none are given."""
    given = table.by_column.weights
    return given if given.size else np.ones(table.by_column.values.size)


def _student_weights(table: ScaledTable, weights, model: FactorModel) -> tuple[np.ndarray, np.ndarray]:
    """E[tau] = (nu + 1) / (nu + w E[(x - p)^2] / v) and w E[(x - p)^2] of every entry by column."""
    from .kernels import sweep_kernels

    e, nu = table.by_column, model.settings.degrees
    rows, columns = _as_int64(e.others, e.groups())
    fitted, variance = np.empty(rows.size), np.empty(rows.size)

    def work(piece):
        at = slice(*piece)
        sweep_kernels.predictions(rows[at], columns[at], model.U, model.Z, fitted[at])
        covariances = model.row_covariance, model.Z, model.column_covariance
        sweep_kernels.fit_variances(rows[at], columns[at], model.U, *covariances, variance[at])

    in_threads(work, pieces(rows.size, 2.0 * rows.size * model.U.shape[1] ** 2))
    squares = weights * ((e.values - fitted) ** 2 + variance)
    return (nu + 1) / (nu + squares / model.noise[rows]), squares


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
            start = _widened(start, table, settings.rank, seed)
            self.U, Z, self.noise = start.U.copy(), start.Z, start.noise.copy()
        r = self.rank = self.U.shape[1] - 1
        q = r + 1
        # The start has no posterior yet: a small variance of the loadings keeps the first step from being too sure.
        self.row_covariance = np.zeros((m, q * (q + 1) // 2))
        self.row_covariance[:, diagonal(r)] = _FIRST_VARIANCE / r if start is None else 0.0
        if start is not None and start.row_covariance.shape == self.row_covariance.shape:
            self.row_covariance[:] = start.row_covariance
        self.Z, self.column_covariance = Z.copy(), np.zeros((n, r * (r + 1) // 2))
        self.own_noise, self.squares = self.noise.copy(), np.zeros(m)
        self.row_logs, self.column_logs = np.zeros(m), np.zeros(n)
        self.shape_and_scale = 2.0, 2.0 * float(self.noise.mean())
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
        row_moments = _moments(self.U, self.row_covariance)
        written = self.Z, self.column_covariance, self.column_logs
        _update_columns(self.table, self.U, row_moments, 1 / self.noise, *written, self.column_prior)
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
        turn, lower = np.eye(q), np.tril_indices(q)
        # The prior's precision is RR', so that z = R'^-1 y with y ~ N(0, I), and u'z = (R^-1 u)'y.
        turn[:-1, :-1] = np.linalg.inv(np.linalg.cholesky(self.column_prior)).T
        covariance = np.empty_like(self.row_covariance)

        def work(piece):
            T = _unpacked_all(self.row_covariance[slice(*piece)], q)
            covariance[slice(*piece)] = (turn.T @ T @ turn)[:, lower[0], lower[1]]

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
        moments = _moments(self.Z, self.column_covariance)
        written = self.U, self.row_covariance, self.row_logs, self.squares
        shift = self.prior @ self.prior_mean
        update_rows(self.table, self.Z, moments, 1 / self.noise, self.prior, shift, written)

    def _learn_noise(self) -> None:
        self.squares[~self.seen_rows] = 0.0
        total = max(1.0, float(self.counts.sum()))
        common = max(float(self.squares.sum()) / total, _LEAST_NOISE)
        if self.n_sweeps % _ROW_NOISE_EVERY == 0:
            self.shape_and_scale = _noise_prior(self.counts, self.squares, common, self.shape_and_scale)
        a, b = self.shape_and_scale
        self.own_noise = np.maximum((b + self.squares / 2) / (a + self.counts / 2), _LEAST_NOISE)
        self.noise = self.own_noise.copy() if self.settings.row_noise else np.full(self.counts.size, common)

    def _weigh_at_start(self, is_new: bool) -> None:
        """Weights of Student-t noise before the first sweep, so that outliers do not bend what is learned first.

        Without a model the entry itself, in spreads of its row, is taken for its error.
        """
        if not is_new:
            self._weigh_entries()
            return
        self._weights, nu = _weights_of(self.table), self.settings.degrees
        tau = (nu + 1) / (nu + self.table.by_column.values**2)
        self.table = self.table.with_weights(self._weights * tau)

    def _weigh_entries(self) -> None:
        """Give every entry its further weight E[tau] under Student-t noise."""
        if not hasattr(self, "_weights"):
            self._weights = _weights_of(self.table)
        tau, squares = _student_weights(self.table, self._weights, self._posterior())
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
    precision[:r, :r] = np.linalg.inv(K)
    precision[r, r] = _LEVEL_PRECISION
    return precision, np.append(mu, 0.0), K


def diagonal(r: int) -> np.ndarray:
    """Where the first r diagonal entries stand in a packed matrix."""
    k = np.arange(r)
    return k * (k + 3) // 2


def unpacked(packed, q: int) -> np.ndarray:
    """The symmetric matrix of shape (q, q) of which `packed` is the lower triangle."""
    full = np.zeros((q, q))
    full[np.tril_indices(q)] = packed
    return full + np.tril(full, -1).T


def _unpacked_all(packed, q: int) -> np.ndarray:
    """Symmetric matrices of shape (q, q), one for each packed row."""
    full, (a, b) = np.empty((packed.shape[0], q, q)), np.tril_indices(q)
    full[:, a, b] = packed
    full[:, b, a] = packed
    return full


def _noise_prior(counts, squares, common: float, start) -> tuple[float, float]:
    """Shape and scale (a, b) of the inverse gamma prior of v_i that maximise the marginal likelihood of the squares."""
    from scipy.optimize import minimize
    from scipy.special import digamma, gammaln

    half, t = counts / 2, squares / (2 * common)

    def loss(p):
        a, b = np.exp(p)
        value = gammaln(a + half) - gammaln(a) + a * p[1] - (a + half) * np.log(b + t)
        by_a = digamma(a + half) - digamma(a) + p[1] - np.log(b + t)
        by_b = a / b - (a + half) / (b + t)
        return -value.sum(), -np.array([a * by_a.sum(), b * by_b.sum()])

    begin = np.log([start[0], max(start[1] / common, 1e-6)])
    # a >= 1: a row's noise counts as seen on two entries at least, so that it cannot run to zero.
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=[(0.0, 9.0), (-12.0, 12.0)])
    a, b = np.exp(found.x)
    return float(a), float(b) * common


def first_factors(table: ScaledTable, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """U of shape (m, q), Z of shape (n, q) and a noise variance: the table filled by column offsets, decomposed.

    The filled table is a sparse matrix plus one of rank 2, and is never formed. More full columns than directions tell
    these by themselves.
    """
    if np.count_nonzero(table.by_column.counts == table.shape[0]) > rank:
        return _factors_of_full_columns(table, rank)
    from scipy import sparse

    from .kernels import sweep_kernels

    m, n = table.shape
    e = table.by_column
    counts = e.counts
    column = e.groups()
    offset = _column_offsets(column, e.values, counts)
    rest = sparse.csc_array((e.values - offset[column], e.others, e.begins), shape=(m, n))
    level = np.asarray(rest.sum(axis=1)).ravel() / n + offset.mean()
    r = max(1, min(rank, m - 1, n - 1))
    U, Z = _decomposed(rest, offset, level, r, seed)
    U, Z = np.column_stack([U, level]), np.column_stack([Z, np.ones(n)])
    fitted = np.empty(e.values.size)
    sweep_kernels.predictions(*_as_int64(e.others, column), U, Z, fitted)
    noise = float(np.mean((e.values - fitted) ** 2)) if e.values.size else 1.0
    return U, Z, max(noise, 0.05)


def _decomposed(rest, offset, level, r: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """U and Z of the r largest directions of the sparse matrix plus 1 offset' less level 1', by random projections."""
    m, n = rest.shape
    across = rest.T.tocsr()

    def times(B):
        return rest @ B + np.outer(np.ones(m), offset @ B) - np.outer(level, B.sum(axis=0))

    def transposed_times(B):
        return across @ B + np.outer(offset, B.sum(axis=0)) - np.outer(np.ones(n), level @ B)

    width = min(r + 10, m, n)
    Q = np.linalg.qr(times(np.random.default_rng(seed).standard_normal((n, width))))[0]
    for _ in range(4):
        Q = np.linalg.qr(times(np.linalg.qr(transposed_times(Q))[0]))[0]
    left, s, right = np.linalg.svd(transposed_times(Q).T, full_matrices=False)
    return (Q @ left[:, :r]) * (s[:r] / np.sqrt(n)), right[:r].T * np.sqrt(n)


def _widened(model: FactorModel, table: ScaledTable, rank: int, seed: int) -> FactorModel:
    """The model with further directions: those of its residuals, with zeros for the entries that are not seen."""
    from scipy import sparse

    from .kernels import sweep_kernels

    (m, n), e, r = table.shape, table.by_column, model.rank
    more = min(rank, m - 1, n - 1) - r
    if more <= 0:
        return model
    fitted, q = np.empty(e.values.size), r + more + 1
    sweep_kernels.predictions(*_as_int64(e.others, e.groups()), model.U, model.Z, fitted)
    rest = sparse.csc_array((e.values - fitted, e.others, e.begins), shape=(m, n))
    U, Z = _decomposed(rest, np.zeros(n), np.zeros(m), more, seed)
    covariance = np.zeros((m, q, q))
    old = np.r_[:r, q - 1]
    covariance[:, old[:, None], old] = _unpacked_all(model.row_covariance, r + 1)
    covariance[:, range(r, q - 1), range(r, q - 1)] = _FIRST_VARIANCE / rank
    return replace(
        model,
        U=np.column_stack([model.U[:, :r], U, model.U[:, r]]),
        Z=np.column_stack([model.Z[:, :r], Z, model.Z[:, r]]),
        row_covariance=covariance[(slice(None), *np.tril_indices(q))],
    )


def _factors_of_full_columns(table: ScaledTable, rank: int) -> tuple[np.ndarray, np.ndarray, float]:
    """U, Z and a noise variance from the full columns about their row means; the other columns begin at 0."""
    (m, n), e = table.shape, table.by_column
    full = np.flatnonzero(e.counts == m)
    X = np.empty((m, full.size))
    for k, j in enumerate(full):
        X[e.others[e.begins[j] : e.begins[j + 1]], k] = e.values[e.begins[j] : e.begins[j + 1]]
    level = X.mean(axis=1)
    with one_blas_thread():
        left, s, right = np.linalg.svd(X - level[:, None], full_matrices=False)
    r = max(1, min(rank, m - 1, n - 1))
    U, Z = np.zeros((m, r + 1)), np.zeros((n, r + 1))
    U[:, :r], U[:, r] = left[:, :r] * (s[:r] / np.sqrt(full.size)), level
    Z[full, :r], Z[:, r] = right[:r].T * np.sqrt(full.size), 1.0
    rest = float((s[s.size // _SIGNAL_PART :] ** 2).sum()) / X.size
    return U, Z, max(rest, _LEAST_NOISE)


def _column_offsets(column, values, counts) -> np.ndarray:
    """Means of the columns, shrunk to 0 as far as entries of a column differ.

    The variance of the offsets is the mean product of two entries of a column. Without shrinkage the start would have
    all rows rise together, and sweeps that must first turn a row around may end at a model without directions.
    """
    n = counts.size
    values = np.clip(values, -10.0, 10.0)  # Spreads: outliers must not set the offsets, nor their squares overflow.
    total, squares = np.bincount(column, values, n), float(np.sum(values**2))
    pairs = float(np.sum(counts * (counts - 1.0)))
    between = max(0.0, (float(np.sum(total**2)) - squares) / max(pairs, 1.0))
    within = max(squares / max(values.size, 1) - between, 0.0)
    return total * between / np.maximum(counts * between + within, 1e-300)


def truncated(model: FactorModel, rank: int) -> FactorModel:
    """The model with its `rank` strongest directions: those with the largest part in the fitted table."""
    r = model.rank
    if rank >= r:
        return model
    left, s, right = np.linalg.svd(model.U[:, :r], full_matrices=False)
    middle, t, last = np.linalg.svd((s[:, None] * right) @ model.Z[:, :r].T, full_matrices=False)
    n = model.Z.shape[0]
    U = (left @ middle[:, :rank]) * (t[:rank] / np.sqrt(n))
    Z = last[:rank].T * np.sqrt(n)
    q = rank + 1
    return replace(
        model,
        U=np.column_stack([U, model.U[:, r]]),
        Z=np.column_stack([Z, np.ones(n)]),
        row_covariance=np.zeros((U.shape[0], q * (q + 1) // 2)),
        column_covariance=np.zeros((n, rank * (rank + 1) // 2)),
        settings=replace(model.settings, rank=rank),
    )
