"""One pass over the columns: those that the basis explains are filled, the others are read and widen it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .._support.numbers import unit_of
from ..data.observations import Observations
from ..data.sources import Source
from ._reading import distinct, observations_of, whole_column


@dataclass
class Pass:
    """What a pass over the columns has learned.

    Attributes
    ----------
    basis : float64 array of shape (m, k)
        U, orthonormal, in the order in which its vectors were found.
    triangle : float64 array of shape (k, k)
        T, upper triangular: the columns that were appended, each of norm 1, are U T.
    appended : list of int
        Which they are, k of them.
    full : list of int
        All that were read in full.
    coefficients : float64 array of shape (n, k), in units of `unit`
        Of every column in U; NaN where its rows do not determine them.
    unit : float64 array of shape (n,)
    places, values : lists of arrays
        What was read.
    """

    basis: np.ndarray
    triangle: np.ndarray
    coefficients: np.ndarray
    unit: np.ndarray
    appended: list = field(default_factory=list)
    full: list = field(default_factory=list)
    places: list = field(default_factory=list)
    values: list = field(default_factory=list)

    def observations(self, shape) -> Observations:
        return observations_of(shape, np.concatenate(self.places), np.concatenate(self.values), self.full)


def pass_over_columns(source: Source, s: int, tolerance: Callable[[int], float], rng, progress=None) -> Pass:
    """Fill or append every column, in the order of their indices.

    Of each column s rows O are read, the same for all until the basis grows. With k vectors in the basis U, the column
    is filled by least squares if |x_O - P x_O| < tolerance(k) |x_O|, P the projection on the span of U_O; otherwise
    the rest of it is read, its part orthogonal to U is appended, and O is drawn anew.
    """
    m, n = source.shape
    done = Pass(np.zeros((m, 0)), np.zeros((0, 0)), np.zeros((n, 0)), np.ones(n))
    start = 0
    while start < n:
        omega = distinct(rng, m, s)
        rows = _Rows(done.basis[omega])
        limit = tolerance(done.basis.shape[1])
        explained: list = []
        whole = None
        while whole is None and start + len(explained) < n:
            j = start + len(explained)
            x = source.entries(omega, np.full(s, j))
            if rows.leave_out(x, limit):
                whole = whole_column(source, j, omega, x)
            else:
                explained.append(x)
            if progress is not None and ((j + 1) % max(1, n // 100) == 0 or j + 1 == n):
                progress(j + 1, n)
        _keep_filled(done, start, omega, explained, rows)
        start += len(explained)
        if whole is not None:
            _keep_whole(done, start, whole)
            start += 1
    return done


class _Rows:
    """U_O = P diag(S) Q', its rank decided, so that every column costs two small products."""

    def __init__(self, B):
        s, k = B.shape
        P, S, Qt = np.linalg.svd(B, full_matrices=False)
        there = 8 * max(k, 1) * np.finfo(np.float64).eps < S
        self.determines = k <= s and bool(there.all())
        self.P, self.S, self.Q = np.ascontiguousarray(P[:, there]), S[there], Qt[there].T

    def leave_out(self, x, limit) -> bool:
        """Whether the part of x outside of the span is at least this share of it."""
        largest = np.abs(x).max()
        if largest == 0:
            return False
        x = x / np.float64(largest)  # No square overflows in this unit.
        off = x - self.P @ (self.P.T @ x)
        return bool(off @ off >= limit**2 * (x @ x))

    def solve(self, X):
        """z with U_O z = x in the least squares, one row for every row of X; NaN if there is more than one."""
        if not self.determines:
            return np.full((X.shape[0], self.Q.shape[0]), np.nan)
        return ((X @ self.P) / self.S) @ self.Q.T


def _keep_filled(done: Pass, start, omega, explained, rows: _Rows) -> None:
    """Columns start.. that the basis explains on the rows omega."""
    if not explained:
        return
    m, (X, k) = done.basis.shape[0], (np.array(explained), len(explained))
    here = slice(start, start + k)
    done.unit[here] = unit_of(X, axis=1)
    done.coefficients[here] = rows.solve(X / done.unit[here, None])
    done.places.append((np.arange(start, start + k)[:, None] * m + omega).ravel())
    done.values.append(X.ravel())


def _keep_whole(done: Pass, j: int, column) -> None:
    """Column j, read in full; its part orthogonal to the basis, normalised, is appended."""
    m, k = done.basis.shape
    done.full.append(j)
    done.places.append(j * m + np.arange(m))
    done.values.append(column)
    done.unit[j] = unit_of(column)
    x = column / done.unit[j]
    done.basis = widened(done.basis, x)
    z = done.basis.T @ x
    if z.size > k:
        done.appended.append(j)
        done.triangle = np.pad(done.triangle, (0, 1))
        done.triangle[:, k] = z / np.linalg.norm(z)
        done.coefficients = np.pad(done.coefficients, ((0, 0), (0, 1)))
    done.coefficients[j] = z


def widened(U, x) -> np.ndarray:
    """U with the part of x orthogonal to it, normalised, as a further vector; U itself if that is but rounding."""
    off = x - U @ (U.T @ x)
    off -= U @ (U.T @ off)  # One pass leaves rounding errors, two are enough.
    rest = np.linalg.norm(off)
    return np.column_stack([U, off / rest]) if rest > x.size * np.finfo(np.float64).eps * np.linalg.norm(x) else U
