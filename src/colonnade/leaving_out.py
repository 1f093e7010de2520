"""Leaving out: how far off an observed entry is when it is predicted from the others of its column.

That needs no refit. With prior variances v of the directions and noise variance t, the entries of a column have the
covariance K = U_O diag(v) U_O' + t I, and the entry left out is off by

    e_i = (K^-1 (x - c))_i / (K^-1)_ii,      with predicted variance 1 / (K^-1)_ii.
"""

from __future__ import annotations

import numpy as np

from ._threads import in_threads, one_blas_thread
from .column_space import ColumnSpace
from .observations import Observations

_MANY_COLUMNS = 20
_PIECE_CELLS = 200_000  # numbers that a thread has before it at a time


def leave_one_out(space: ColumnSpace, o: Observations, noise_variances) -> tuple[np.ndarray, np.ndarray]:
    """Errors and predicted standard deviations of all entries of some columns, each predicted from its column's others.

    Parameters
    ----------
    space : ColumnSpace
    o : Observations
        All of its columns are asked, in the order of `values`.
    noise_variances : array of shape (g,)
        0 is plain least squares, where entries that alone determine a direction have no prediction: NaN.

    Returns
    -------
    errors, deviations : arrays of shape (nnz, g)
    """
    noise = np.asarray(noise_variances, dtype=np.float64)
    errors, deviations = (np.full((o.values.size, noise.size), np.nan) for _ in range(2))
    F = space.basis.astype(np.float64) * np.sqrt(space.variances)
    unit = size_of(o)
    x = o.values / unit - (0 if space.center is None else space.center[o.rows] / unit)
    roots = np.ones(x.size) if o.weights is None else np.sqrt(o.weights.astype(np.float64))

    def leave_out(at):
        w = roots[at]
        P, squares = _principal_axes(F[o.rows[at]] * w[:, :, None], noise.min() == 0)
        solved, diagonal = _inverse_parts(P, squares, x[at] * w, noise)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            errors[at] = solved / diagonal / w[:, :, None] * unit
            deviations[at] = np.sqrt(1 / diagonal) / w[:, :, None]

    with one_blas_thread():  # many small problems: BLAS would split each of them
        in_threads(leave_out, columns_alike(o, max(space.rank, noise.size)))
    return errors, deviations


def columns_alike(o: Observations, width: int) -> list[np.ndarray]:
    """Places of the entries of columns with equally many, shape (k, s) each; k is cut so that k s width is limited."""
    pieces = []
    for s in np.unique(o.n_observed[o.n_observed > 0]):
        starts = o.indptr[:-1][o.n_observed == s]
        step = max(1, _PIECE_CELLS // int(s * max(1, width)))
        pieces += [starts[lo : lo + step, None] + np.arange(s) for lo in range(0, starts.size, step)]
    return pieces


def _principal_axes(B, exactly):
    """P and squared singular values of a stack of matrices, by the smaller of their Gram matrices unless `exactly`.

    The noise that is added to the squares is never below 1e-10 of them, so squaring costs nothing; axes whose squares
    are below that get no weight.
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


def _inverse_parts(P, squares, x, noise):
    """K^-1 x and the diagonal of K^-1, K = P diag(squares) P' + t I, shape (columns, s, noises); of t = 0 times t."""
    spans_all = P.shape[1] == P.shape[2]  # then K^-1 has no part outside P, and none of it must be made up by rounding
    y = np.einsum("ksr,ks->kr", P, x)
    outside = np.zeros_like(x) if spans_all else x - np.einsum("ksr,kr->ks", P, y)
    free = np.zeros_like(x) if spans_all else np.maximum(1 - (P**2).sum(axis=2), 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = noise == 0
        t = np.where(plain, 1.0, noise)
        weights = np.where(plain, 0.0, 1 / (squares[:, :, None] + t))
    solved = np.matmul(P, y[:, :, None] * weights) + outside[:, :, None] / t
    diagonal = np.matmul(P**2, weights) + free[:, :, None] / t
    diagonal[:, :, plain] = np.where(diagonal[:, :, plain] > 1e-10, diagonal[:, :, plain], np.nan)
    return solved, diagonal


def column_losses(squares, column) -> np.ndarray:
    """Means of square errors over the columns they belong to, or the squares as they are where the columns are few.

    Errors within a column go together, so that they count as one. `squares` has shape (k,) or (k, g).
    """
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    if counts.size < _MANY_COLUMNS:
        return squares
    table = squares.reshape(place.size, -1)
    sums = np.stack([np.bincount(place, values, counts.size) for values in table.T], axis=1)
    return (sums / counts[:, None]).reshape(-1, *squares.shape[1:])


def size_of(o: Observations) -> float:
    """In which errors are measured: the largest entry, so that the square of none overflows."""
    return float(np.abs(o.values.astype(np.float64)).max(initial=0)) or 1.0


def is_no_chance(gains, n_standard_errors: float) -> bool:
    """Whether the mean of some gains is positive by more than so many of its standard errors."""
    gains = gains / (float(np.abs(gains).max(initial=0)) or 1.0)  # lest squares of small ones vanish
    return bool(gains.size > 1 and gains.mean() > n_standard_errors * gains.std(ddof=1) / np.sqrt(gains.size))
