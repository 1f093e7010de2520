"""The matrices of the experiments, and how far a completion is from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._support.threads import in_threads, one_blas_thread
from ..completion import Completion
from ..data.sources import Source
from ..measuring import theory

SEED = 2018  # First word of every seed: the year of the paper.
_GATHER = 4096  # Entries of L R computed at a time: both gathered factors stay in the cache.
_DENSE = 9_000_000  # Cells up to which M is formed in memory: 72 MB.
_BLOCK_CELLS = 2_500_000  # Cells of a dense matrix handled at a time: 20 MB.


def seed_of(*numbers: int) -> np.random.SeedSequence:
    """A seed of its own for every tuple of whole numbers, so that no draw depends on what was run before it."""
    return np.random.SeedSequence([SEED, *numbers])


@dataclass(frozen=True)
class LowRank:
    """M = L R of rank r.

    Attributes
    ----------
    L : float64 array of shape (m, r)
    Rt : float64 array of shape (n, r)
        R transposed.
    """

    L: np.ndarray
    Rt: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.L.shape[0], self.Rt.shape[0]

    def source(self) -> Source:
        """The entries of M: of a small one from the product, of a large one each on demand."""
        if self.L.shape[0] * self.Rt.shape[0] <= _DENSE:
            return Source((self.Rt @ self.L.T).T)
        return Source(self._entries, shape=self.shape)

    @cached_property
    def norm(self) -> float:
        """|M|_F"""
        return float(np.linalg.norm(self.Rt @ np.asarray(np.linalg.qr(self.L, mode="r")).T))

    @cached_property
    def coherence(self) -> float:
        """mu(r)"""
        return theory.coherence((self.L, self.Rt.T), self.L.shape[1])

    def relative_error(self, completion: Completion) -> float:
        """|M - M^|_F / |M|_F from the factors; infinite if a column was left open.

        A full column is returned as it was observed and has no error. So are single observed entries, but with
        exact data that is a matter of rounding, and they are counted as U z.
        """
        U, Z = completion.basis, completion.coefficients
        # |m - U z|^2 = |U'm - z|^2 + |(I - UU')m|^2 with m = L r_j, column by column
        UtL = U.T @ self.L
        outside = np.asarray(np.linalg.qr(self.L - U @ UtL, mode="r"))
        squares = ((self.Rt @ UtL.T - Z.T) ** 2).sum(axis=1) + ((self.Rt @ outside.T) ** 2).sum(axis=1)
        squares[completion.observations.full_columns] = 0.0
        error = float(np.sqrt(squares.sum())) / self.norm
        return error if np.isfinite(error) else np.inf

    def _entries(self, rows, columns) -> np.ndarray:
        result = np.empty(rows.size)

        def fill(lo):
            at = slice(lo, lo + _GATHER)
            np.einsum("kr,kr->k", self.L[rows[at]], self.Rt[columns[at]], out=result[at])

        in_threads(fill, range(0, rows.size, _GATHER))
        return result


def gaussian(n: int, r: int, seed) -> LowRank:
    """n x n of rank r, both factors standard normal: the construction of the paper."""
    rng = np.random.default_rng(seed)
    return LowRank(rng.standard_normal((n, r)), rng.standard_normal((n, r)))


def flat(n: int, r: int, seed) -> LowRank:
    """n x n of rank r, both factors random signs: of a coherence close to 1, so that prescribed sizes stay small."""
    rng = np.random.default_rng(seed)
    return LowRank(rng.choice([-1.0, 1.0], (n, r)), rng.choice([-1.0, 1.0], (n, r)))


def noise(n: int, seed: np.random.SeedSequence, dtype=np.float32) -> np.ndarray:
    """Standard normal numbers of shape (n, n), Fortran order; every column has a seed of its own."""
    result = np.empty((n, n), dtype)
    words = seed.generate_state(2, np.uint64)

    def fill(j):
        np.random.Generator(np.random.Philox(key=words, counter=[0, 0, 0, j])).standard_normal(
            dtype=dtype, out=result[j]
        )

    in_threads(fill, range(n))
    return result.T


def noisy(matrix: LowRank, R: np.ndarray, sigma: float) -> np.ndarray:
    """M = C + sigma R, shape (m, n), Fortran order and the dtype of R."""
    L, Rt, noise = matrix.L.astype(R.dtype), matrix.Rt.astype(R.dtype), R.T
    result = np.empty_like(noise)

    def fill(at):
        np.matmul(Rt[at], L.T, out=result[at])
        result[at] += R.dtype.type(sigma) * noise[at]

    _by_column_blocks(fill, R.shape)
    return result.T


def distance(M: np.ndarray, U: np.ndarray, Z: np.ndarray, known=()) -> float:
    """|M - U Z|_F by blocks of columns, those in `known` counted as exact; sums in double precision."""
    weights = np.ones(M.shape[1])
    weights[list(known)] = 0.0

    def part(at):
        D = M[:, at] - U @ Z[:, at]
        return float(np.einsum("ij,ij->j", D, D) @ weights[at])

    return float(np.sqrt(sum(_by_column_blocks(part, M.shape))))


def best_distance(M: np.ndarray, L: np.ndarray) -> float:
    """|M - M_r|_F, for an M whose top r left singular vectors are close to the span of L.

    One step of subspace iteration from the span of L. A wrong angle of t raises the answer squared by about
    t^2 |M_r|^2; the step multiplies t by (sigma_(r+1) / sigma_r)^2, which leaves nothing to see in six digits.
    """
    Q = np.linalg.qr(L)[0].astype(M.dtype)
    U = np.linalg.qr(M @ (Q.T @ M).T)[0]
    return distance(M, U, U.T @ M)


def column_coherence(M: np.ndarray) -> float:
    """mu(M) by blocks of columns."""
    squares = np.concatenate(_by_column_blocks(lambda at: (M[:, at] ** 2).sum(axis=0), M.shape))
    return float(squares.max() / squares.mean(dtype=np.float64))


def _by_column_blocks(work, shape) -> list:
    step = max(1, _BLOCK_CELLS // shape[0])
    with one_blas_thread():
        return in_threads(work, [slice(lo, min(lo + step, shape[1])) for lo in range(0, shape[1], step)])
