"""Compiled sums over the entries of columns whose rows of U come a block at a time; beside them the same in NumPy.

Column j has the entries from ``indptr[j]`` on, by rising rows; ``at[j]`` is the first that has not been counted. Every
sum over entries is taken in the order of the rows, so that it does not depend on how the rows are cut into blocks.
"""

from __future__ import annotations

import numpy as np

from ..._support.compiling import compiled

TOGETHER = 4  # entries whose products are added in one go
WIDTH = 16  # numbers that the processor adds to at a time


@compiled()
def add_grams(U, first, center, indptr, rows, values, at, start, stop, G, b):
    """G[j] += U_O' U_O, b[j] += U_O'(x_O - c_O) for the entries of columns start..stop in these rows.

    U and `center` (or an empty array) hold the rows from `first` on; `at` goes on to the first entry beyond them.
    """
    r, last = U.shape[1], first + U.shape[0]
    width = (r + WIDTH) // WIDTH * WIDTH  # whole vectors; the numbers beyond r are not used
    X, sums = np.zeros((TOGETHER, width)), np.zeros((r, width))
    for j in range(start, stop):
        end = at[j]
        while end < indptr[j + 1] and rows[end] < last:
            end += 1
        if end == at[j]:
            continue
        for p in range(r):
            for q in range(r):
                sums[p, q] = G[j, p, q]
            sums[p, r] = b[j, p]
        for k in range(at[j], end, TOGETHER):
            n = min(TOGETHER, end - k)
            for t in range(n):
                i = rows[k + t] - first
                for q in range(r):
                    X[t, q] = U[i, q]
                X[t, r] = np.float64(values[k + t]) - (np.float64(center[i]) if center.size else 0.0)
            _add_products(X, n, sums)
        for p in range(r):
            for q in range(r):
                G[j, p, q] = sums[p, q]
            b[j, p] = sums[p, r]
        at[j] = end


@compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _add_products(X, n, sums):
    """sums[p, q] += X[t, p] X[t, q] for t = 0 .. n - 1, one after the other."""
    r, width = sums.shape
    if n == TOGETHER:
        for p in range(r):
            x0, x1, x2, x3 = X[0, p], X[1, p], X[2, p], X[3, p]
            for q in range(width):
                sums[p, q] = sums[p, q] + x0 * X[0, q] + x1 * X[1, q] + x2 * X[2, q] + x3 * X[3, q]
    else:
        for t in range(n):
            for p in range(r):
                x = X[t, p]
                for q in range(width):
                    sums[p, q] = sums[p, q] + x * X[t, q]


@compiled(any_order=True)
def add_residuals(U, first, center, indptr, rows, values, at, start, stop, Z, b):
    """b[j] += U_O'(x_O - c_O - U_O z_j) for the same columns and rows."""
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
        G[j] += U[i].astype(float).T @ U[i]
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
