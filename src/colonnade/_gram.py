"""Compiled sums over the entries of columns whose rows of U come a block at a time; beside them the same in NumPy.

Column j has the entries from ``indptr[j]`` on, by rising rows; ``at[j]`` is the first that has not been counted. Every
sum is taken in the order of the rows, so that it does not depend on how the rows are cut into blocks.
"""

from __future__ import annotations

import numpy as np

from ._kernels import compiled


@compiled()
def add_grams(U, first, center, indptr, rows, values, at, start, stop, G, b):
    """G[j] += U_O' U_O (upper half), b[j] += U_O'(x_O - c_O) for the entries of columns start..stop in these rows.

    U and `center` (or an empty array) hold the rows from `first` on; `at` goes on to the first entry beyond them.
    """
    r, last = U.shape[1], first + U.shape[0]
    for j in range(start, stop):
        k = at[j]
        while k < indptr[j + 1] and rows[k] < last:
            i = rows[k] - first
            x = np.float64(values[k]) - (np.float64(center[i]) if center.size else 0.0)
            for p in range(r):
                u = np.float64(U[i, p])
                b[j, p] += u * x
                for q in range(p, r):
                    G[j, p, q] += u * U[i, q]
            k += 1
        at[j] = k


@compiled()
def add_residuals(U, first, center, indptr, rows, values, at, start, stop, Z, b):
    """b[j] += U_O'(x_O - c_O - U_O z_j) likewise."""
    r, last = U.shape[1], first + U.shape[0]
    for j in range(start, stop):
        k = at[j]
        while k < indptr[j + 1] and rows[k] < last:
            i = rows[k] - first
            residual = np.float64(values[k]) - (np.float64(center[i]) if center.size else 0.0)
            for p in range(r):
                residual -= U[i, p] * Z[j, p]
            for p in range(r):
                b[j, p] += U[i, p] * residual
            k += 1
        at[j] = k


def add_grams_in_numpy(U, first, center, indptr, rows, values, at, start, stop, G, b) -> None:
    """The same as `add_grams`: the reference."""
    for j in range(start, stop):
        here, i, x = _entries(U, first, center, indptr, rows, values, at, j)
        G[j] += np.triu(U[i].astype(float).T @ U[i])
        b[j] += U[i].T @ x
        at[j] = here.stop


def add_residuals_in_numpy(U, first, center, indptr, rows, values, at, start, stop, Z, b) -> None:
    """The same as `add_residuals`: the reference."""
    for j in range(start, stop):
        here, i, x = _entries(U, first, center, indptr, rows, values, at, j)
        b[j] += U[i].T @ (x - U[i] @ Z[j])
        at[j] = here.stop


def _entries(U, first, center, indptr, rows, values, at, j):
    end = at[j] + np.searchsorted(rows[at[j] : indptr[j + 1]], first + U.shape[0])
    here = slice(int(at[j]), int(end))
    i = rows[here] - first
    return here, i, values[here].astype(float) - (center[i] if center.size else 0.0)
