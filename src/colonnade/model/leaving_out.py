"""Leaving out: how far off an observed entry is when it is predicted from the others of its column.

That needs no refit. With prior variances v of the directions and noise variance t, the entries of a column have the
covariance K = U_O diag(v) U_O' + t I, and the entry left out is off by

    e_i = (K^-1 (x - c))_i / (K^-1)_ii,      with predicted variance 1 / (K^-1)_ii.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._support.numbers import CACHE_CELLS
from .._support.threads import in_threads, one_blas_thread
from ..data.observations import Observations
from .column_space import ColumnSpace

FEW_ENTRIES = 30  # Left-out entries; fewer do not show how large errors are.
MANY_COLUMNS = 20  # Columns from which each column, and not each entry, has one loss.
LEAST_SHARE = 1e-10  # Share of an entry's variance; less noise is lost beside squares.
_MOST_PAIRED = 1_000  # Entries of a column; in longer ones a single entry hardly changes the fit.
_LEAST_LEFT = 1e-10  # Share of an entry's precision that is left without a second entry; less is rounding.


def leave_one_out(space: ColumnSpace, o: Observations, noise_variances) -> tuple[np.ndarray, np.ndarray]:
    """Errors and predicted standard deviations of all entries of some columns, each predicted from its column's others.

    Parameters
    ----------
    space : ColumnSpace
    o : Observations
        All of its columns are asked, in the order of `values`.
    noise_variances : array of shape (g,)
        0 is plain least squares, where entries that alone determine a direction have no prediction: NaN. Nor has any
        entry if the variances of the space are beyond floating point.

    Returns
    -------
    errors, deviations : arrays of shape (nnz, g)
    """
    all_errors, deviations = (np.full((o.values.size, len(noise_variances)), np.nan) for _ in range(2))

    def keep(at, errors, precisions):
        all_errors[at] = errors
        deviations[at] = 1 / np.sqrt(precisions)

    if np.isfinite(space.variances).all():
        leave_out(space, o, noise_variances, keep)
    return all_errors, deviations


def leave_out(space: ColumnSpace, o: Observations, noise_variances, use: Callable) -> None:
    """Call ``use(at, errors, precisions)`` for all entries.

    The entries are those at the places `at`, of shape (columns, s); errors and the inverses of their predicted
    variances have shape (columns, s, g). Threads call it, each for other columns.
    Weights that differ by many powers of ten cost digits.
    """
    noise = np.asarray(noise_variances, dtype=np.float64)
    spread, center = np.sqrt(space.variances), space.center
    largest = 0.0 if center is None else float(np.abs(center.astype(np.float64)).max(initial=0))
    unit = max(size_of(o), 1e-100 * largest)  # The center does not overflow in units of small entries.
    roots = np.ones(o.values.size) if o.weights is None else np.sqrt(o.weights.astype(np.float64))
    exactly = noise.min(initial=np.inf) < 0.99 * LEAST_SHARE * space.entry_variance

    def work(at):
        rows, w = o.rows[at], roots[at]
        K = _Covariances(space.basis[rows] * spread * w[:, :, None], noise, exactly)
        inverse = K.inverse_diagonal()
        x = o.values[at] / unit - (0 if center is None else center[rows].astype(np.float64) / unit)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            errors = K.solve(x * w) / inverse
            errors *= (unit / w)[:, :, None]
            use(at, errors, inverse if o.weights is None else inverse * (w**2)[:, :, None])

    with one_blas_thread():  # BLAS would split each of many small problems.
        in_threads(work, columns_alike(o, max(space.rank, noise.size)))


def squares_of_others(space: ColumnSpace, o: Observations, noise_variance: float) -> np.ndarray:
    """How squares of the other entries' standardised errors change where an entry is left out with each, shape (nnz,).

    The errors of the others, left out one at a time, have seen the entry. An entry that is far off has drawn the fit
    towards itself and made them larger. Without both entries i and l, with Q = K^-1 and a = Q (x - c), it is

        e_l^2 / s_l^2 = (a_l - Q_li a_i / Q_ii)^2 / (Q_ll - Q_li^2 / Q_ii)      instead of a_l^2 / Q_ll.

    Returned is the sum over l of the one over that of the other; 1 in columns so long that an entry hardly matters.
    """
    ratios = np.ones(o.values.size)
    if not np.isfinite(space.variances).all():
        return ratios
    spread, center, unit = np.sqrt(space.variances), space.center, size_of(o)
    roots = np.ones(o.values.size) if o.weights is None else np.sqrt(o.weights.astype(np.float64))
    exactly = noise_variance < 0.99 * LEAST_SHARE * space.entry_variance

    def work(at):
        rows, w, s = o.rows[at], roots[at], at.shape[1]
        if not 2 <= s <= _MOST_PAIRED:
            return
        K = _Covariances(space.basis[rows] * spread * w[:, :, None], np.array([noise_variance]), exactly)
        Q = K.solve_each()
        x = (o.values[at] / unit - (0 if center is None else center[rows].astype(np.float64) / unit)) * w
        a, d = np.einsum("kst,kt->ks", Q, x), np.einsum("kss->ks", Q)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            left = d[:, :, None] - Q**2 / d[:, None, :]
            told = (left > _LEAST_LEFT * d[:, :, None]) & ~np.eye(s, dtype=bool)
            squares = (a[:, :, None] - Q * (a / d)[:, None, :]) ** 2 / left
            alone = np.where(told, (a**2 / d)[:, :, None], 0.0)
            found = np.where(told, squares, 0.0).sum(axis=1) / alone.sum(axis=1)
        ratios[at] = np.where(np.isfinite(found), found, 1.0)

    with one_blas_thread():
        in_threads(work, columns_alike(o, max(space.rank, int(o.n_observed.max(initial=1)))))
    return ratios


def least_noise(B) -> np.ndarray:
    """Least noise variances t for which B B' + t I is positive despite rounding, for B of shape (..., s, r)."""
    return 10 * np.finfo(np.float64).eps * np.einsum("...sr,...sr->...", B, B)


def columns_alike(o: Observations, width: int) -> list[np.ndarray]:
    """Places of the entries of columns with equally many, shape (k, s) each; k is cut so that k s width is limited."""
    pieces = []
    for s in np.unique(o.n_observed[o.n_observed > 0]):
        starts = o.indptr[:-1][o.n_observed == s]
        step = max(1, CACHE_CELLS // int(s * max(1, width)))
        pieces += [starts[lo : lo + step, None] + np.arange(s) for lo in range(0, starts.size, step)]
    return pieces


class _Covariances:
    """K = B B' + t I of a stack of columns, for every noise variance t; B has shape (columns, s, r).

    Of t = 0 the inverse is taken times t: what is left of it as t vanishes.
    """

    def __init__(self, B, noise, exactly: bool):
        self.plain = noise == 0
        self.P, squares = _principal_axes(B, exactly)
        # Then K^-1 has no part outside P, and rounding must not make one up.
        self.spans_all = self.P.shape[1] == self.P.shape[2]
        self.t = np.where(self.plain, 1.0, noise)
        self.weights = np.where(self.plain, 0.0, 1 / (squares[:, :, None] + self.t))

    def solve(self, x) -> np.ndarray:
        """K^-1 x, shape (columns, s, noises)."""
        y = np.einsum("ksr,ks->kr", self.P, x)
        solved = np.matmul(self.P, y[:, :, None] * self.weights)
        if not self.spans_all:
            solved += (x - np.einsum("ksr,kr->ks", self.P, y))[:, :, None] / self.t
        return solved

    def solve_each(self) -> np.ndarray:
        """K^-1 for the first noise variance, shape (columns, s, s)."""
        Q = np.matmul(self.P * self.weights[:, None, :, 0], self.P.transpose(0, 2, 1))
        if not self.spans_all:
            Q += (np.eye(self.P.shape[1]) - np.matmul(self.P, self.P.transpose(0, 2, 1))) / self.t[0]
        return Q

    def inverse_diagonal(self) -> np.ndarray:
        """The diagonal of K^-1, shape (columns, s, noises); NaN where t = 0 and nothing is left of it."""
        squares = self.P**2
        diagonal = np.matmul(squares, self.weights)
        if not self.spans_all:
            diagonal += np.maximum(1 - squares.sum(axis=2), 0)[:, :, None] / self.t
        left = diagonal[:, :, self.plain]
        diagonal[:, :, self.plain] = np.where(left > 1e-10, left, np.nan)
        return diagonal


def _principal_axes(B, exactly):
    """P and squared singular values of a stack of matrices, by the smaller of their Gram matrices unless `exactly`.

    Squaring costs nothing if the noise that is added to the squares is not below 1e-10 of them; axes whose squares are
    below that get no weight.
    """
    if exactly:
        P, S, _ = np.linalg.svd(B, full_matrices=False)
        return P, S**2
    if B.shape[1] <= B.shape[2]:
        squares, P = np.linalg.eigh(np.matmul(B, B.transpose(0, 2, 1)))
        return P, np.maximum(squares, 0)
    squares, V = np.linalg.eigh(np.matmul(B.transpose(0, 2, 1), B))
    kept = squares > 1e-11 * squares[:, -1:]
    squares = np.where(kept, squares, 0)
    P = np.matmul(B, V) * np.where(kept, 1 / np.sqrt(np.where(kept, squares, 1)), 0)[:, None, :]
    return P, squares


def column_losses(squares, column) -> np.ndarray:
    """Means of square errors over the columns they belong to, or the squares as they are where the columns are few.

    Errors within a column go together, so that they count as one. `squares` has shape (k,) or (k, g).
    """
    if (column[1:] < column[:-1]).any():
        order = np.argsort(column, kind="stable")
        column, squares_in_order = column[order], squares[order]
    else:
        squares_in_order = squares
    begins = np.flatnonzero(np.diff(column, prepend=-1))
    if begins.size < MANY_COLUMNS:
        return squares
    counts = np.diff(begins, append=column.size)
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(squares_in_order, begins, axis=0)
    return sums / counts.reshape(-1, *[1] * (squares.ndim - 1))


def size_of(o: Observations) -> float:
    """The unit of errors: the largest entry, so that no square overflows."""
    return float(np.abs(o.values.astype(np.float64)).max(initial=0)) or 1.0


def is_no_chance(gains, n_standard_errors: float = 2.0) -> bool:
    """Whether the mean of some gains is positive by more than so many of its standard errors; 2 are chance in 2 %."""
    gains = gains / (float(np.abs(gains).max(initial=0)) or 1.0)  # Squares of small gains would vanish.
    return bool(gains.size > 1 and gains.mean() > n_standard_errors * gains.std(ddof=1) / np.sqrt(gains.size))
