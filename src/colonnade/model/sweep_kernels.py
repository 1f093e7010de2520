"""Compiled loops of the factor model: one update of all columns, of all rows, and predictive variances.

A symmetric q x q matrix is stored as its lower triangle, row after row, in q (q + 1) / 2 numbers ("packed"). The last
of the q coordinates is the level: a row is (u, c) and a column is (z, 1), so that a prediction is their product.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def invert(A, log_determinant):
    """Replace a symmetric positive definite matrix by its inverse.

    Gauss-Jordan elimination: every inner loop adds a multiple of one row to another, which compiles to vector code.
    Pivots that rounding has used up are replaced by rounding itself, as a slightly stronger prior would.
    """
    r = A.shape[0]
    total, largest = 0.0, 0.0
    for k in range(r):
        largest = max(largest, A[k, k])
    for k in range(r):
        pivot = max(A[k, k], 1e-15 * largest)
        total += math.log(pivot)
        scale = 1.0 / pivot
        for b in range(r):
            A[k, b] *= scale
        A[k, k] = scale
        for a in range(r):
            if a != k:
                factor = A[a, k]
                A[a, k] = 0.0
                for b in range(r):
                    A[a, b] -= factor * A[k, b]
    log_determinant[0] = total


@njit(cache=True, nogil=True)
def update_columns(lo, hi, indptr, rows, values, weights, U, moments, precision, Z, covariance, logs):
    """q(z_j) = N(z_j, S_j) of columns lo to hi, with S_j = (I + sum w E[u u'] / v)^-1.

    Parameters
    ----------
    indptr, rows, values, weights : the entries by column; no weights means that all are 1
    U : array of shape (m, q), the means of (u, c)
    moments : array of shape (m, q (q + 1) / 2), packed E[(u, c) (u, c)']
    precision : array of shape (m,), 1 / v
    Z : array of shape (n, q), written: (z, 1)
    covariance : array of shape (n, r (r + 1) / 2), written: packed S_j
    logs : array of shape (n,), written: log det of S_j^-1
    """
    q = U.shape[1]
    r = q - 1
    size, part = q * (q + 1) // 2, r * (r + 1) // 2
    total, h = np.empty(size), np.empty(q)
    G, log_determinant = np.empty((r, r)), np.zeros(1)
    for j in range(lo, hi):
        total[:] = 0.0
        h[:] = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            i = rows[k]
            w = precision[i] * (weights[k] if weights.size else 1.0)
            y = w * values[k]
            P, u = moments[i], U[i]
            for a in range(size):
                total[a] += w * P[a]
            for a in range(q):
                h[a] += y * u[a]
        at = 0
        for a in range(r):
            for b in range(a + 1):
                G[a, b] = total[at]
                G[b, a] = total[at]
                at += 1
            G[a, a] += 1.0
            h[a] -= total[part + a]
        invert(G, log_determinant)
        logs[j] = log_determinant[0]
        for a in range(r):
            z = 0.0
            for b in range(r):
                z += G[a, b] * h[b]
            Z[j, a] = z
        Z[j, r] = 1.0
        at = 0
        for a in range(r):
            for b in range(a + 1):
                covariance[j, at] = G[a, b]
                at += 1


@njit(cache=True, nogil=True)
def column_moments(Z, covariance, moments):
    """Packed E[(z, 1) (z, 1)'] of every column, shape (n, q (q + 1) / 2)."""
    n, q = Z.shape
    part = covariance.shape[1]
    for j in range(n):
        at = 0
        for a in range(q):
            for b in range(a + 1):
                moments[j, at] = Z[j, a] * Z[j, b] + (covariance[j, at] if at < part else 0.0)
                at += 1


@njit(cache=True, nogil=True)
def update_rows(
    lo, hi, indptr, columns, values, weights, Z, moments, precision, prior, shift, U, covariance, logs, squares
):
    """q(u_i, c_i) = N(U_i, T_i) of rows lo to hi, with T_i = (prior + sum w E[(z, 1) (z, 1)'] / v_i)^-1.

    Parameters
    ----------
    indptr, columns, values, weights : the entries by row
    Z : array of shape (n, q), (z, 1)
    moments : array of shape (n, q (q + 1) / 2), packed E[(z, 1) (z, 1)']
    precision : array of shape (m,), 1 / v
    prior : array of shape (q, q), the prior's precision
    shift : array of shape (q,), the prior's precision times its mean
    U, covariance, logs : written: means, packed T_i, log det of T_i^-1
    squares : array of shape (m,), written: sum over the row's entries of w E[(x - prediction)^2]
    """
    q = U.shape[1]
    size = q * (q + 1) // 2
    total, h = np.empty(size), np.empty(q)
    G, log_determinant = np.empty((q, q)), np.zeros(1)
    for i in range(lo, hi):
        total[:] = 0.0
        h[:] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j = columns[k]
            w = weights[k] if weights.size else 1.0
            y = w * values[k]
            Q, z = moments[j], Z[j]
            for a in range(size):
                total[a] += w * Q[a]
            for a in range(q):
                h[a] += y * z[a]
        at = 0
        for a in range(q):
            for b in range(a + 1):
                G[a, b] = prior[a, b] + precision[i] * total[at]
                G[b, a] = G[a, b]
                at += 1
        invert(G, log_determinant)
        logs[i] = log_determinant[0]
        for a in range(q):
            u = 0.0
            for b in range(q):
                u += G[a, b] * (shift[b] + precision[i] * h[b])
            U[i, a] = u
        fitted, error = 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j = columns[k]
            w = weights[k] if weights.size else 1.0
            p = 0.0
            for a in range(q):
                p += U[i, a] * Z[j, a]
            fitted += w * p * p
            error += w * (values[k] - p) ** 2
        # E[(x - p)^2] = (x - p)^2 + tr(T E[zz']) + u' S u, the last as u' E[zz'] u - p^2.
        at, spread, quadratic = 0, 0.0, 0.0
        for a in range(q):
            for b in range(a + 1):
                twice = 1.0 if a == b else 2.0
                spread += twice * total[at] * G[a, b]
                quadratic += twice * total[at] * U[i, a] * U[i, b]
                covariance[i, at] = G[a, b]
                at += 1
        squares[i] = error + max(0.0, spread) + max(0.0, quadratic - fitted)


@njit(cache=True, nogil=True)
def fit_variances(rows, columns, U, row_covariance, Z, column_covariance, result):
    """Var[(u, c)'(z, 1)] = (z, 1)' T (z, 1) + u' S u + tr(T S) at (rows[k], columns[k])."""
    q = U.shape[1]
    part = column_covariance.shape[1]
    for k in range(rows.size):
        u, T, z, S = U[rows[k]], row_covariance[rows[k]], Z[columns[k]], column_covariance[columns[k]]
        at, total = 0, 0.0
        for a in range(q):
            for b in range(a + 1):
                twice = 1.0 if a == b else 2.0
                term = z[a] * z[b] * T[at]
                if at < part:
                    term += (u[a] * u[b] + T[at]) * S[at]
                total += twice * term
                at += 1
        result[k] = total


@njit(cache=True, nogil=True)
def predictions(rows, columns, U, Z, result):
    """(u, c)'(z, 1) at (rows[k], columns[k])."""
    for k in range(rows.size):
        u, z = U[rows[k]], Z[columns[k]]
        total = 0.0
        for a in range(u.size):
            total += u[a] * z[a]
        result[k] = total
