"""What the iterating methods share: a sparse matrix plus one of low rank, and its top singular triples."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from .._support.threads import in_threads
from ..data.observations import Observations

_FEW_PRODUCTS = 2_000_000  # Multiplications below which a second thread costs more than it saves.
_MOST_PIECES = 8  # Pieces of a product: as many threads as it can use.


class Factors(NamedTuple):
    """U diag(d) V' with orthonormal U (m, k) and V (n, k), and d (k,) falling."""

    U: np.ndarray
    d: np.ndarray
    V: np.ndarray

    @property
    def rank(self) -> int:
        return self.d.size

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.d))

    def top(self, k: int) -> Factors:
        return Factors(self.U[:, :k], self.d[:k], self.V[:, :k])


def nothing(shape) -> Factors:
    return Factors(np.zeros((shape[0], 0)), np.zeros(0), np.zeros((shape[1], 0)))


class Entries:
    """The observed values in float64 and in units of the largest, so that no square overflows, less a center.

    Attributes
    ----------
    values, weights : float64 arrays of shape (nnz,)
    """

    def __init__(self, o: Observations, unit: float, center=None):
        self.shape, self.indptr, self.rows = o.shape, o.indptr, o.rows
        self.values = o.values / unit
        if center is not None:
            self.values -= center[o.rows] / unit
        self.weights = np.ones(o.values.size) if o.weights is None else o.weights.astype(np.float64)
        index = np.int32 if max(o.values.size, *o.shape) < 2**31 else np.int64
        self._pattern = o.rows.astype(index), o.indptr.astype(index)

    def fitted(self, A, B) -> np.ndarray:
        """The entries of A B', A (m, k) and B (n, k), at the observed places, shape (nnz,)."""
        from ..model.kernels.column_kernels import fitted_values

        A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
        out = np.empty(self.values.size)
        pieces = _pieces_of(self.indptr, A.shape[1])
        in_threads(lambda piece: fitted_values(A, B, self.indptr, self.rows, *piece, out), pieces)
        return out

    def matrix(self, values) -> sparse.csc_array:
        """The sparse m x n matrix with these values at the observed places."""
        return sparse.csc_array((values, *self._pattern), shape=self.shape)


def _pieces_of(indptr, width: int) -> list[tuple[int, int]]:
    """Columns lo to hi with about as many entries each, for threads; `width` products are to be formed of each entry.

    How many pieces there are does not depend on the threads, so that neither does how sums over them are rounded.
    """
    n_pieces = min(_MOST_PIECES, 1 + int(indptr[-1]) * width // _FEW_PRODUCTS)
    edges = np.searchsorted(indptr, np.linspace(0, int(indptr[-1]), n_pieces + 1)[1:-1])
    return list(pairwise([0, *edges.tolist(), indptr.size - 1]))


def _columns_of(E, lo: int, hi: int) -> sparse.csc_array:
    """The columns, without a copy."""
    here = slice(E.indptr[lo], E.indptr[hi])
    pattern = E.indices[here], E.indptr[lo : hi + 1] - E.indptr[lo]
    return sparse.csc_array((E.data[here], *pattern), shape=(E.shape[0], hi - lo))


def times(E: sparse.csc_array, V) -> np.ndarray:
    """E V, by threads."""
    pieces = _pieces_of(E.indptr, V.shape[1])
    return sum(in_threads(lambda piece: _columns_of(E, *piece) @ V[slice(*piece)], pieces))


def transposed_times(E: sparse.csc_array, U) -> np.ndarray:
    """E' U, by threads."""
    return np.concatenate(in_threads(lambda piece: _columns_of(E, *piece).T @ U, _pieces_of(E.indptr, U.shape[1])))


class SparsePlusLowRank(NamedTuple):
    """E + A B', with E sparse of shape (m, n), A (m, k) and B (n, k)."""

    E: sparse.csc_array
    A: np.ndarray
    B: np.ndarray


def top_triples(M: SparsePlusLowRank, V, sweeps: int = 1) -> Factors:
    """Singular triples of M by subspace iteration from V (n, k), as many as V has columns.

    Warm starts are the point: between two steps of a method the space hardly moves, and one sweep is enough.
    """
    for _ in range(sweeps):
        U = orthonormal(times(M.E, V) + M.A @ (M.B.T @ V))
        W = transposed_times(M.E, U) + M.B @ (M.A.T @ U)
        V = orthonormal(W) if _ < sweeps - 1 else V
    V, d, P = np.linalg.svd(W, full_matrices=False)
    return Factors(U @ P.T, d, V)


def orthonormal(A) -> np.ndarray:
    """An orthonormal basis of the span of A (m, k): by Cholesky twice, or by QR where the columns are too dependent.

    The second pass is as good as QR if the first has come close, and both together take less than half of its time.
    """
    Q = A
    for _ in range(2):
        gram = Q.T @ Q
        if _ and not np.abs(gram - np.eye(len(gram))).max(initial=0) < 0.1:
            return np.linalg.qr(A)[0]
        try:
            L = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            return np.linalg.qr(A)[0]
        Q = linalg.solve_triangular(L, Q.T, lower=True, check_finite=False).T
    return Q


def shrink(
    M: SparsePlusLowRank, by: float, V, limit: int, rng, sweeps: int = 1, all_at_once=False
) -> tuple[Factors, np.ndarray]:
    """The singular triples of M above `by`, lowered by it: at most `limit`, and as many as V (n, k) has.

    Also the directions to start from next time: those that nearly reach `by`, and some new ones if all of V did. So
    the rank grows little by little; or `all_at_once`, with more directions until one does not reach `by`.
    """
    F = top_triples(M, V, sweeps)
    while all_at_once and (F.d > by).all() and F.rank < limit:
        F = top_triples(M, wider(rng, F.V, min(limit - F.rank, 5 + F.rank // 2)), 2 * sweeps)
    r = min(int((F.d > by).sum()), limit)
    V = wider(rng, F.V, min(limit - r, 3 + r // 4)) if r == F.rank else F.top(r + max(5, r // 3)).V
    return F.top(r)._replace(d=F.d[:r] - by), V


def leading(E, k: int, rng) -> Factors:
    """The top k singular triples of a sparse matrix, from a random start."""
    none = nothing(E.shape)
    wide = min(min(E.shape), k + 10)
    return top_triples(SparsePlusLowRank(E, none.U, none.V), rng.standard_normal((E.shape[1], wide)), sweeps=12).top(k)


def factors_of(A, B) -> Factors:
    """The singular value decomposition of A B', A (m, k) and B (n, k), without forming it."""
    P, R = np.linalg.qr(A)
    Q, S = np.linalg.qr(B)
    X, d, Yt = np.linalg.svd(R @ S.T)
    return Factors(P @ X, d, Q @ Yt.T)


def distance(X: Factors, A, B) -> float:
    """|X - A B'|_F, exact to rounding also where the two are close: inside the space of U and outside of it."""
    inside = X.U.T @ A
    outside = A - X.U @ inside
    square = np.linalg.norm(X.d[:, None] * X.V.T - inside @ B.T) ** 2
    return float(np.sqrt(square + max(0.0, np.sum((outside.T @ outside) * (B.T @ B)))))


def wider(rng, V, k: int) -> np.ndarray:
    """V (n, l) with k random directions beside it."""
    return np.column_stack([V, rng.standard_normal((V.shape[0], k))])
