"""Stage 2, the column space: an orthonormal basis of what the full columns span."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .._support.arguments import as_choice, as_count
from .._support.numbers import CACHE_CELLS
from .._support.threads import in_threads, one_blas_thread, product
from ..data.observations import Observations
from .directions import (
    EXTRA,
    FullColumns,
    RowBlocks,
    block_edges,
    directions_by_qr,
    directions_by_row_blocks,
    fix_signs,
    is_tall,
    rows_of_basis,
    thin_svd,
    top_directions,
)

_WIDE = 400  # Columns from which no more than the wanted directions are computed.
_STORED_CELLS = 1 << 23  # Cells of the basis that are computed before they are written: 64 MB.
_INDEPENDENT = 1e-6  # Share of the largest singular value; above it no digit says that columns depend on each other.


def rank_ladder() -> np.ndarray:
    """Ranks that are tried: each is 1.6 times the one before, so that every rank is at most 26 % from one of them."""
    return np.unique(np.rint(1.6 ** np.arange(0, 30)).astype(int))


@dataclass(frozen=True)
class ColumnSpace:
    """What is learned from the full columns.

    Attributes
    ----------
    basis : array of shape (m, r)
        U, orthonormal; the largest entry of each vector is positive.
    singular_values : float64 array of shape (r,)
        Of A, which holds the full columns times their scales, less the center.
    center : array of shape (m,) or None
        Row means of the full columns, weighted by their squared scales, if they were taken off.
    variances : float64 array of shape (r,)
        Mean square of the full columns' coefficients along each direction.
    noise_std : float
        Root mean square of what the basis leaves out of A, per degree of freedom; NaN if there is none.
    mean : float64 array of shape (m,) or None
        Row means of the full columns where they are not the center. They fill a column without entries.
    pull : float64 array of shape (1, r, r) or (2, r, r), or None
        How far columns of coefficients z have pulled the space towards them: z' G z is the leverage of the column in
        the prior and, if there is a second G, in the moves of the rows. None if no partial column has.
    """

    basis: np.ndarray
    singular_values: np.ndarray
    center: np.ndarray | None
    variances: np.ndarray
    noise_std: float
    mean: np.ndarray | None = None
    pull: np.ndarray | None = None

    @property
    def rank(self) -> int:
        """r, the number of directions."""
        return self.basis.shape[1]

    @property
    def has_variances(self) -> bool:
        """Whether the squares of such numbers are floating-point numbers."""
        return self.rank == 0 or 1e-280 < self.variances[0] < 1e280

    @property
    def entry_variance(self) -> float:
        """Mean square of an entry about the center."""
        return float(self.variances.sum() / self.basis.shape[0])


@one_blas_thread()
def fit_column_space(data, *, rank: int | None = None, center: bool = False) -> ColumnSpace:
    """The top ``min(rank, numerical rank)`` left singular vectors of A.

    Parameters
    ----------
    data : Observations or array of shape (m, d)
        The full columns of the observations times their scales are A; an array is A itself.
    rank : int, optional
        Largest number of directions to return; None returns as many as the numerical rank.
    center : bool
        Take off the row means of the full columns first.

    Notes
    -----
    A is factored by QR and SVD, never through A'A. Columns whose norms differ widely are brought to one norm before
    the span is computed, so that a direction seen only in small columns is as exact as the others; if more directions
    are there than wanted, the top ones are those of A as it stands. Tall A goes by blocks of rows. Of a wide A only
    the wanted directions are computed, by a block Krylov method, and everything if that does not converge.
    """
    if rank is not None:
        rank = as_count("rank", rank, 1)
    center = as_choice("center", center, (True, False))
    A = FullColumns(data, center)
    m, d = A.shape
    few = rank is not None and 4 * (rank + EXTRA) <= min(m, d)
    found = top_directions(A, rank) if d >= _WIDE and few else None
    if found is None:
        found = directions_by_row_blocks(A, rank) if is_tall(m, d) else directions_by_qr(A, rank)
    U, relative, left = found
    return _space_of(A, np.ascontiguousarray(fix_signs(U).astype(A.dtype, copy=False)), relative, left)


@one_blas_thread()
def fit_about_means(observations: Observations, about_zero: ColumnSpace) -> ColumnSpace:
    """``fit_column_space(observations, center=True)``, given the space without a center and with all directions.

    If these are independent in all digits, the wanted ones lie within them, and no matrix of m rows is factored again.
    """
    (m, n), d, S = observations.shape, observations.full_columns.size, about_zero.singular_values
    if not 2 <= S.size == d < m or S[-1] < _INDEPENDENT * S[0] or about_zero.basis.dtype != np.float64:
        return fit_column_space(observations, center=True)
    given = observations.full_scales
    scales, population = (np.ones(d), d) if given is None else (given, n)
    A, U = observations.full_matrix(), about_zero.basis
    center = A @ (scales**2 / np.sum(scales**2))
    W, values, _ = thin_svd((product(U.T, A) - (U.T @ center)[:, None]) * scales)
    basis = np.ascontiguousarray(fix_signs(product(U, W[:, : d - 1])))
    with np.errstate(over="ignore"):
        variances = values[: d - 1] ** 2 / population
    return ColumnSpace(basis, values[: d - 1], center, variances, np.nan)


def no_variances(values) -> str:
    """What to say where the squares of some numbers are needed and are not floating-point numbers."""
    size = float(np.abs(values).max())
    return f"numbers as {size:.0e} have no variances in floating point: divide the data by it first"


@one_blas_thread()
def with_offset(space: ColumnSpace, share: float) -> ColumnSpace:
    """The space whose prior also lets all entries of a column move together, by `share` of an entry's variance."""
    if share == 0:
        return space
    m, r = space.basis.shape
    U = space.basis.astype(np.float64, copy=False)
    ones = np.ones(m)
    inside = U.T @ ones
    outside = ones - U @ inside
    outside -= U @ (U.T @ outside)
    length = np.linalg.norm(outside)
    root = np.sqrt(share * space.entry_variance)
    # F = [U sqrt(v), root 1] = [U, outside / length] core
    core = np.zeros((r + 1, r + 1))
    core[:r, :r], core[:r, r], core[r, r] = np.diag(np.sqrt(space.variances)), root * inside, root * length
    is_within = length <= 1e-8 * np.sqrt(m)  # The space has an offset already.
    W, values, _ = np.linalg.svd(core[:r] if is_within else core, full_matrices=False)
    basis = np.empty((m, values.size), space.basis.dtype)

    def fill(edges):
        at = slice(*edges)
        basis[at] = U[at] @ W[:r]
        if not is_within:
            basis[at] += np.multiply.outer(outside[at], W[r] / length)

    in_threads(fill, block_edges(m, max(1, CACHE_CELLS // max(1, values.size))))
    return replace(space, basis=basis, singular_values=values, variances=values**2)


def truncated(space: ColumnSpace, rank: int) -> ColumnSpace:
    """The first directions of a space, at most so many."""
    return replace(
        space,
        basis=np.ascontiguousarray(space.basis[:, :rank]),
        singular_values=space.singular_values[:rank],
        variances=space.variances[:rank],
    )


def _space_of(A: FullColumns, U, relative, left) -> ColumnSpace:
    """What there is to know of the directions U, with their singular values and the energy that they leave out."""
    freedom = (A.shape[0] - relative.size) * (A.n_independent - relative.size)
    with np.errstate(over="ignore"):
        singular_values = relative * A.unit
        variances = singular_values**2 / A.population
        noise = np.sqrt(left / freedom / A.mean_square_scale) * A.unit if freedom > 0 else np.nan
    return ColumnSpace(U, singular_values, A.center, variances, float(noise))


@one_blas_thread()
def fit_stored_column_space(
    columns, store_of, *, rank: int | None, center: bool, block_rows: int | None, mapped: Callable = in_threads
) -> ColumnSpace:
    """Do the same as `fit_column_space` for a tall A: blocks of rows of A are read, and those of the basis written.

    Parameters
    ----------
    columns : object with `shape`, `dtype` and ``read_rows(lo, hi)``
        A, of shape (m, d) with m >= d.
    store_of : function of (r, dtype)
        Makes the basis; slices of its rows can be set and read.
    rank, center
        As in `fit_column_space`.
    block_rows : int or None
        At least d. Default: as `fit_column_space` has them.
    mapped : function of (work, pieces)
        Returns what `work` returns for each piece; default: computed by threads.
    """
    A = FullColumns(columns, center, mapped)
    parts = RowBlocks(A, rank, block_rows)
    U, tops = store_of(parts.rank, A.dtype), []
    some = max(1, _STORED_CELLS // max(1, parts.rank * (parts.edges[0][1] - parts.edges[0][0])))
    for first in range(0, len(parts.edges), some):
        numbers = range(first, min(first + some, len(parts.edges)))
        pieces = [parts.piece(k) for k in numbers]
        for k, rows in zip(numbers, mapped(lambda piece: rows_of_basis(A, *piece), pieces)):
            lo, hi = parts.edges[k]
            U[lo:hi] = rows.astype(A.dtype, copy=False)
            tops.append(rows[np.abs(rows).argmax(axis=0), np.arange(parts.rank)])
    largest = np.array(tops).reshape(len(parts.edges), -1)
    signs = np.where(largest[np.abs(largest).argmax(axis=0), np.arange(parts.rank)] < 0, -1, 1).astype(A.dtype)
    if (signs < 0).any():
        for lo, hi in parts.edges:
            U[lo:hi] = U[lo:hi] * signs
    return _space_of(A, U, parts.values, parts.left)
