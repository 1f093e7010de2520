"""Left singular vectors of the full columns: in one piece, by blocks of rows, or only the top ones.

Full columns are factored by QR and SVD, never through A'A; see `column_space.fit_column_space`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy import linalg

from .._support.arguments import refuse_mask
from .._support.numbers import CACHE_CELLS
from .._support.threads import in_threads, one_blas_thread, product
from ..data.observations import Observations, pieces_at

_TALL = 20_000  # Rows from which A is factored by blocks of rows.
EXTRA = 10  # Directions that the search carries along beyond the wanted ones.
_MOST_SWEEPS = 12  # Sweeps of the search; then everything is computed after all.


def is_tall(m: int, d: int) -> bool:
    """Whether A is factored by blocks of rows."""
    return m >= _TALL and m >= 4 * d


class FullColumns:
    """A by blocks of rows, each column brought to norm 1: A = B diag(norms) * unit, rows of B on demand."""

    def __init__(self, data, center: bool, mapped: Callable = in_threads):
        self.mapped = mapped  # (work, pieces) to the results
        if isinstance(data, Observations):
            starts = data.indptr[data.full_columns]
            self.shape = data.shape[0], starts.size
            self._read = lambda lo, hi: pieces_at(data.values, starts + lo, hi - lo).T
            dtype, scales = data.values.dtype, data.full_scales
        elif hasattr(data, "read_rows"):
            self.shape, self._read, dtype, scales = data.shape, data.read_rows, data.dtype, None
        else:
            refuse_mask("A", data)
            array = np.asarray(data)
            if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "fiub":
                raise ValueError(f"A must be a matrix of real numbers; got {array.dtype} of shape {array.shape}")
            self.shape = array.shape
            self._read = lambda lo, hi: array[lo:hi]
            dtype, scales = array.dtype, None
        d = self.shape[1]
        if d == 0:
            raise ValueError("there is no full column to learn the column space from")
        self.dtype = dtype if dtype == np.float32 else np.dtype(np.float64)
        self.eps = float(np.finfo(self.dtype).eps)
        # Drawn columns stand for all of M (A A' has mean M M'); given ones for themselves.
        self.population = data.shape[1] if scales is not None else d
        scales = np.ones(d) if scales is None else scales
        self.mean_square_scale = float(np.mean(scales**2))
        self.n_independent = d - 1 if center else d
        if len(self.blocks()) == 1:  # One block is read once.
            whole = self._read(0, self.shape[0])
            self._read = lambda lo, hi: whole[lo:hi]
        self.center = self._row_means(scales**2) if center else None
        self._measure(scales)

    def blocks(self):
        step = max(1, 16 * CACHE_CELLS // self.shape[1])
        return [(lo, min(lo + step, self.shape[0])) for lo in range(0, self.shape[0], step)]

    def _row_means(self, weights):
        shares = weights / weights.sum()  # Divided before the sum, because a mean exists where a sum overflows.
        parts = self.mapped(lambda at: np.multiply(self._read(*at), shares, order="C").sum(axis=1), self.blocks())
        return np.concatenate(parts).astype(self.dtype)

    def _raw(self, lo, hi):
        block = np.asarray(self._read(lo, hi), dtype=np.float64)
        return block if self.center is None else block - self.center[lo:hi, None]

    def _measure(self, scales):
        """Norms of the columns, without overflow or underflow of their squares."""
        largest = np.max(self.mapped(lambda at: _largest(self._raw(*at)), self.blocks()), axis=0)
        self._uncentered = 0.0
        if self.center is not None:
            self._uncentered = np.max(self.mapped(lambda at: _largest(self._read(*at)), self.blocks()), axis=0)
        if not np.isfinite(largest).all():
            raise ValueError("A must be finite; use NaN only for entries of columns that are not full")
        self.unit = float(largest.max()) or 1.0
        # Powers of two, so that dividing by them rounds nothing.
        self._shrink = np.ldexp(1.0, -np.frexp(np.where(largest > 0, largest, self.unit))[1].clip(-1000, 1000))
        squares = np.sum(self.mapped(lambda at: _squares(self._raw(*at) * self._shrink), self.blocks()), axis=0)
        norms = np.sqrt(squares)
        self.norms = norms * (1 / self._shrink / self.unit) * scales
        # A column that the center takes away but for rounding counts as zero; a small one is a measurement like others.
        zero = largest <= 8 * self.eps * self._uncentered
        self.norms[zero] = 0.0
        self._factors = np.where(zero, 0.0, 1 / np.where(zero, 1.0, norms))
        self.energy = float(self.norms @ self.norms)

    def rows(self, lo, hi):
        """Rows lo..hi of B."""
        block = self._raw(lo, hi) * self._shrink
        block *= self._factors
        return block

    def matrix(self):
        return self.rows(0, self.shape[0])

    @property
    def is_uneven(self) -> bool:
        """Whether some norms are more than ten times others, zero columns apart."""
        present = self.norms[self.norms > 0]
        return bool(present.size and present.max() > 10 * present.min())

    def rank_of(self, values) -> int:
        return int((values > values[0] * max(self.shape) * self.eps).sum()) if values.size else 0


def _largest(block):
    return np.maximum(block.max(axis=0), -block.min(axis=0))


def _squares(block):
    return np.einsum("ij,ij->j", block, block)


def _directions_of(R, A: FullColumns, rank):
    """W and singular values such that Q W are the wanted directions of A = Q R diag(norms); and the energy left out."""
    if not A.norms.any():
        return np.zeros((R.shape[0], 0)), np.zeros(0), 0.0
    scaled = R * A.norms
    if A.is_uneven:
        span, values = _left_svd(R)
        there = A.rank_of(values)
        if rank is None or there <= rank:
            # All of it is wanted: the span comes from the equal norms, its order from A.
            span = span[:, :there]
            inside = span.T @ scaled
            turn, values = _left_svd(inside)
            return span @ turn, values[:there], _energy(scaled - span @ inside)
    W, values = _left_svd(scaled)
    r = A.rank_of(values) if rank is None else min(rank, A.rank_of(values))
    return W[:, :r], values[:r], _energy(values[r:])


def _energy(values) -> float:
    return float(np.sum(values**2))


def _left_svd(matrix):
    """Left singular vectors and singular values; of a wide matrix L Q those of L, which blocks of columns lead to."""
    m, d = matrix.shape
    step = max(4 * m, CACHE_CELLS // m)
    if d > 2 * step:
        with one_blas_thread():
            blocks = range(0, d, step)
            parts = in_threads(lambda lo: np.linalg.qr(matrix[:, lo : lo + step].T, mode="r"), blocks)
            matrix = np.asarray(np.linalg.qr(np.concatenate(parts), mode="r")).T
    return thin_svd(matrix)[:2]


def thin_svd(matrix):
    try:
        return linalg.svd(matrix, full_matrices=False, check_finite=False)
    except linalg.LinAlgError:  # The fast driver rarely fails to converge; the slow one does not.
        return linalg.svd(matrix, full_matrices=False, check_finite=False, lapack_driver="gesvd")


def directions_by_qr(A: FullColumns, rank):
    m, d = A.shape
    B = A.matrix()
    if m <= d:
        return _directions_of(B, A, rank)
    Q, R = linalg.qr(B, mode="economic", overwrite_a=True, check_finite=False)
    W, values, left = _directions_of(R, A, rank)
    return product(Q, W), values, left


def directions_by_row_blocks(A: FullColumns, rank):
    parts = RowBlocks(A, rank)
    U = np.empty((A.shape[0], parts.rank))

    def fill(k):
        lo, hi = parts.edges[k]
        U[lo:hi] = parts.rows(k)

    in_threads(fill, range(len(parts.edges)))
    return U, parts.values, parts.left


class RowBlocks:
    """QR of blocks of rows, then QR of the stacked factors; the blocks are factored twice rather than kept."""

    def __init__(self, A: FullColumns, rank, size: int | None = None):
        m, d = A.shape
        self._A, self.edges = A, block_edges(m, size or max(CACHE_CELLS // d, 4 * d))
        factors = A.mapped(lambda at: np.triu(_householder(A.rows(*at))[0][:d]), self.edges)
        self._Q, R = linalg.qr(np.vstack(factors), mode="economic", overwrite_a=True, check_finite=False)
        self._W, self.values, self.left = _directions_of(R, A, rank)
        self.rank = self._W.shape[1]

    def rows(self, k) -> np.ndarray:
        """Rows of the directions that belong to block k."""
        return rows_of_basis(self._A, *self.piece(k))

    def piece(self, k) -> tuple[tuple[int, int], np.ndarray]:
        """The rows of block k, and the factor, of shape (d, r), that turns its own basis into the directions."""
        d = self._A.shape[1]
        return self.edges[k], self._Q[k * d : (k + 1) * d] @ self._W


def rows_of_basis(A: FullColumns, edges: tuple[int, int], factor: np.ndarray) -> np.ndarray:
    (lo, hi), (d, r) = edges, factor.shape
    reflectors, tau = _householder(A.rows(lo, hi))
    padded = np.zeros((hi - lo, r), order="F")
    padded[:d] = factor
    return linalg.lapack.dormqr("L", "N", reflectors, tau, padded, 64 * max(1, r), overwrite_c=1)[0]


def block_edges(m, size):
    """Blocks of `size` rows, the last one up to twice as large."""
    starts = list(range(0, max(m - size, 0) + 1, size))
    return list(pairwise([*starts, m]))


def _householder(block):
    reflectors, tau, _, _ = linalg.lapack.dgeqrf(np.asfortranarray(block), overwrite_a=1)
    return reflectors, tau


def top_directions(A: FullColumns, rank):
    """The top directions of a wide A; None if the search does not converge.

    First a sketch of the columns at equal norms: if it explains them to rounding, A has no more directions than the
    sketch. Otherwise a block Krylov space of A grows until A v = sigma u holds to rounding for the wanted triples.
    """
    B = A.matrix()
    rng = np.random.default_rng(0)  # The answer does not depend on where the search starts.
    Q = _orthonormal(product(B, rng.standard_normal((B.shape[1], rank + EXTRA))))
    R = product(Q.T, B)
    tolerance = A.eps * max(A.shape)
    if np.linalg.norm(B - product(Q, R), axis=0).max() <= tolerance:
        W, values, left = _directions_of(R, A, rank)
        return product(Q, W), values, left
    B *= A.norms
    Q = _orthonormal(product(B, product(B.T, Q)))
    projected = product(Q.T, B)
    newest, settled = projected, False
    for _ in range(_MOST_SWEEPS):
        fresh = product(B, newest.T)
        for _ in range(2):  # One pass leaves rounding errors, two are enough.
            fresh = _orthonormal(fresh - product(Q, Q.T @ fresh))
        newest = product(fresh.T, B)
        Q, projected = np.hstack([Q, fresh]), np.vstack([projected, newest])
        W, values, V = thin_svd(projected)
        U = product(Q, W[:, :rank])
        was_settled = settled
        settled = np.linalg.norm(product(B, V[:rank].T) - U * values[:rank], axis=0).max() <= tolerance * values[0]
        if settled and was_settled:  # One sweep more than the tolerance asks for reaches the rounding of LAPACK.
            r = min(rank, A.rank_of(values))
            return U[:, :r], values[:r], _energy(B - product(U[:, :r], product(U[:, :r].T, B)))
        if Q.shape[1] + rank + EXTRA > min(B.shape) // 2:
            break
    return None


def _orthonormal(matrix):
    return linalg.qr(matrix, mode="economic", check_finite=False)[0]


def fix_signs(U):
    """Turn every vector so that its entry of largest size is positive."""
    if U.size == 0:
        return U
    high, low = U.max(axis=0), U.min(axis=0)  # This is twice as fast as `argmax` along the first axis.
    is_negative = -low > high
    for q in np.flatnonzero(-low == high):  # The first of the two decides.
        is_negative[q] = U[np.abs(U[:, q]).argmax(), q] < 0
    return U * np.where(is_negative, -1.0, 1.0)
