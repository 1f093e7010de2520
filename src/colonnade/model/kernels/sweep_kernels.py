"""Compiled loops of the factor model: one update of all columns, of all rows, and predictive variances.

A symmetric q x q matrix is stored as its lower triangle, row after row, in q (q + 1) / 2 numbers ("packed"). The last
of the q coordinates is the level: a row is (u, c) and a column is (z, 1), so that a prediction is their product.

Most of the time goes into sums of packed second moments over the entries of a column or row, and into inverses. The
sums are those of `table.Summands`: for a column that is seen in most rows, the sum over all rows less the missing ones.
"""

from __future__ import annotations

import numpy as np

from ..._support.compiling import compiled
from .inverses import sweep, workspace
from .tiles import add_rows

# Called by kernels only, which compiles faster. They allocate no memory, so no references need be counted.
_inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


@compiled(**_inner)
def _copy(source, count, target):
    """target[:count] = source[:count]; numba needs a second to compile an assignment of slices."""
    for a in range(count):
        target[a] = source[a]


@compiled()
def weighted_sum(X, at, factors, result):
    """result = sum of factors[k] X[at[k]]."""
    for a in range(result.size):
        result[a] = 0.0
    add_rows(X, at, 0, at.size, factors, result)


@compiled()
def list_summands(begins, others, is_full, is_rest, sum_begins, result):
    """Those others that a group sums over: the ones it lacks if `is_rest`, else the seen ones that are not full."""
    seen = np.empty(is_full.size, np.bool_)
    for g in range(begins.size - 1):
        at = sum_begins[g]
        if is_rest[g]:
            for i in range(seen.size):
                seen[i] = False
            for k in range(begins[g], begins[g + 1]):
                seen[others[k]] = True
            for i in range(seen.size):
                if not seen[i]:
                    result[at] = i
                    at += 1
        else:
            for k in range(begins[g], begins[g + 1]):
                if not is_full[others[k]]:
                    result[at] = others[k]
                    at += 1


@compiled(**_inner)
def _longest(lo, hi, begins):
    most = 0
    for g in range(lo, hi):
        most = max(most, begins[g + 1] - begins[g])
    return most


@compiled(**_inner)
def _fill_system(A, prior, scale, total, h):
    """Lower triangle of prior + scale total, with h as its last row."""
    r = A.shape[0] - 1
    at = 0
    for a in range(r):
        for b in range(a + 1):
            A[a, b] = prior[a, b] + scale * total[at + b]
        at += a + 1
    for a in range(r):
        A[r, a] = h[a]


@compiled(**_inner)
def _read_inverse(A, packed):
    at = 0
    for a in range(A.shape[0] - 1):
        for b in range(a + 1):
            packed[at + b] = -A[a, b]
        at += a + 1


@compiled(any_order=True, **_inner)
def _packed_times(packed, h, r, result):
    """result[:r] = S h with S packed."""
    at = 0
    for a in range(r):
        total, factor = packed[at + a] * h[a], h[a]
        for b in range(a):
            total += packed[at + b] * h[b]
            result[b] += packed[at + b] * factor
        result[a] = total
        at += a + 1


@compiled()
def update_columns(
    lo, hi, begins, rows, values, weights, summands, bases, U, moments, precision, prior, Z, covariance, logs
):
    """q(z_j) = N(z_j, S_j) of columns lo to hi, with S_j = (prior + sum w E[u u'] / v)^-1.

    Parameters
    ----------
    begins, rows, values, weights : the entries by column; no weights means that all are 1
    summands : begins, others and `is_rest` of `table.Summands`; with weights the entries themselves
    bases : array of shape (2, q (q + 1) / 2), sums of E[(u, c) (u, c)'] / v over the full rows and over all rows
    U : array of shape (m, q), the means of (u, c)
    moments : array of shape (m, q (q + 1) / 2), packed E[(u, c) (u, c)']
    precision : array of shape (m,), 1 / v
    prior : array of shape (r, r), the precision of z before any entry
    Z : array of shape (n, q), written: (z, 1)
    covariance : array of shape (n, r (r + 1) / 2), written: packed S_j
    logs : array of shape (n,), written: log det of S_j^-1
    """
    sum_begins, sum_rows, is_rest = summands
    q = U.shape[1]
    r = q - 1
    size, part = q * (q + 1) // 2, r * (r + 1) // 2
    total, h, factors = (
        np.empty(size),
        np.empty(q),
        np.empty(max(_longest(lo, hi, begins), _longest(lo, hi, sum_begins))),
    )
    A, panels = workspace(r)
    twins = (
        np.zeros(2, np.int64) - 1
    )  # Columns whose sums are a base alone share their covariance: those seen in all rows.
    for j in range(lo, hi):
        first, count = sum_begins[j], sum_begins[j + 1] - sum_begins[j]
        side = 1 if is_rest[j] else 0
        _copy(bases[side], size, total)
        for k in range(count):
            factors[k] = precision[sum_rows[first + k]] * (weights[first + k] if weights.size else 1.0 - 2.0 * side)
        add_rows(moments, sum_rows, first, count, factors, total)
        for a in range(q):
            h[a] = 0.0
        own, n_own = begins[j], begins[j + 1] - begins[j]
        for k in range(n_own):
            w = precision[rows[own + k]] * (weights[own + k] if weights.size else 1.0)
            factors[k] = w * values[own + k]
        add_rows(U, rows, own, n_own, factors, h)
        for a in range(r):
            h[a] -= total[part + a]
        Z[j, r] = 1.0
        if count == 0 and twins[side] >= 0:
            _copy(covariance[twins[side]], part, covariance[j])
            logs[j] = logs[twins[side]]
            _packed_times(covariance[j], h, r, Z[j])
            continue
        _fill_system(A, prior, 1.0, total, h)
        logs[j] = sweep(A, panels)
        _read_inverse(A, covariance[j])
        _copy(A[r], r, Z[j])  # Not S h: where noise is tiny, h is large and rounding of S would swamp the answer.
        if count == 0:
            twins[side] = j


@compiled()
def packed_moments(lo, hi, means, covariance, moments):
    """Packed E[x x'] of vectors lo to hi; covariances of fewer numbers lack the last coordinates, which are sure."""
    q, part = means.shape[1], covariance.shape[1]
    for j in range(lo, hi):
        x, S, M = means[j], covariance[j], moments[j]
        at = 0
        for a in range(q):
            factor = x[a]
            if at < part:
                for b in range(a + 1):
                    M[at + b] = factor * x[b] + S[at + b]
            else:
                for b in range(a + 1):
                    M[at + b] = factor * x[b]
            at += a + 1


@compiled(any_order=True, **_inner)
def _error_and_fit(rows_u, Z, columns, values, weights, first, count):
    """sum of w (x - p)^2 and of w p^2 over the entries of a row."""
    error, fitted = 0.0, 0.0
    for k in range(first, first + count):
        z, p = Z[columns[k]], 0.0
        for a in range(rows_u.size):
            p += rows_u[a] * z[a]
        w = weights[k] if weights.size else 1.0
        fitted += w * p * p
        error += w * (values[k] - p) ** 2
    return error, fitted


@compiled(any_order=True, **_inner)
def _trace_and_form(total, T, u):
    """tr(total T) and u' total u of packed symmetric matrices."""
    at, trace, form = 0, 0.0, 0.0
    for a in range(u.size):
        inner, product = 0.0, 0.0
        for b in range(a):
            inner += total[at + b] * T[at + b]
            product += total[at + b] * u[b]
        trace += 2.0 * inner + total[at + a] * T[at + a]
        form += u[a] * (2.0 * product + total[at + a] * u[a])
        at += a + 1
    return trace, form


@compiled()
def update_rows(
    lo,
    hi,
    begins,
    columns,
    values,
    weights,
    summands,
    bases,
    Z,
    moments,
    precision,
    prior,
    shift,
    U,
    covariance,
    logs,
    squares,
):
    """q(u_i, c_i) = N(U_i, T_i) of rows lo to hi, with T_i = (prior + sum w E[(z, 1) (z, 1)'] / v_i)^-1.

    Parameters
    ----------
    begins, columns, values, weights : the entries by row
    summands : begins, others and `is_rest` of `table.Summands`; with weights the entries themselves
    bases : array of shape (2, q (q + 1) / 2), sums of E[(z, 1) (z, 1)'] over the full columns and over all columns
    Z : array of shape (n, q), (z, 1)
    moments : array of shape (n, q (q + 1) / 2), packed E[(z, 1) (z, 1)']
    precision : array of shape (m,), 1 / v
    prior : array of shape (q, q), the prior's precision
    shift : array of shape (q,), the prior's precision times its mean
    U, covariance, logs : written: means, packed T_i, log det of T_i^-1
    squares : array of shape (m,), written: sum over the row's entries of w E[(x - prediction)^2]
    """
    sum_begins, sum_columns, is_rest = summands
    q = U.shape[1]
    size = q * (q + 1) // 2
    total, h = np.empty(size), np.empty(q)
    factors = np.empty(max(_longest(lo, hi, begins), _longest(lo, hi, sum_begins)))
    A, panels = workspace(q)
    twins = np.zeros(2, np.int64) - 1
    for i in range(lo, hi):
        first, count = sum_begins[i], sum_begins[i + 1] - sum_begins[i]
        side = 1 if is_rest[i] else 0
        _copy(bases[side], size, total)
        for k in range(count):
            factors[k] = weights[first + k] if weights.size else 1.0 - 2.0 * side
        add_rows(moments, sum_columns, first, count, factors, total)
        _copy(shift, q, h)
        own, n_own = begins[i], begins[i + 1] - begins[i]
        for k in range(n_own):
            factors[k] = precision[i] * values[own + k] * (weights[own + k] if weights.size else 1.0)
        add_rows(Z, columns, own, n_own, factors, h)
        twin = twins[side]
        if count == 0 and twin >= 0 and precision[twin] == precision[i]:
            _copy(covariance[twin], size, covariance[i])
            logs[i] = logs[twin]
            _packed_times(covariance[i], h, q, U[i])
        else:
            _fill_system(A, prior, precision[i], total, h)
            logs[i] = sweep(A, panels)
            _read_inverse(A, covariance[i])
            _copy(A[q], q, U[i])
            if count == 0:
                twins[side] = i
        error, fitted = _error_and_fit(U[i], Z, columns, values, weights, own, n_own)
        # E[(x - p)^2] = (x - p)^2 + tr(T E[zz']) + u' S u, the last as u' E[zz'] u - p^2.
        trace, form = _trace_and_form(total, covariance[i], U[i])
        squares[i] = error + max(0.0, trace) + max(0.0, form - fitted)


@compiled(any_order=True)
def fit_variances(rows, columns, U, row_covariance, Z, column_covariance, result):
    """Var[(u, c)'(z, 1)] = (z, 1)' T (z, 1) + u' S u + tr(T S) at (rows[k], columns[k])."""
    q = U.shape[1]
    r = q - 1
    for k in range(rows.size):
        u, T, z, S = U[rows[k]], row_covariance[rows[k]], Z[columns[k]], column_covariance[columns[k]]
        at, total = 0, 0.0
        for a in range(r):
            of_row, of_column, of_both = 0.0, 0.0, 0.0
            for b in range(a + 1):
                of_row += z[b] * T[at + b]
                of_column += u[b] * S[at + b]
                of_both += T[at + b] * S[at + b]
            last = at + a
            total += 2.0 * (z[a] * of_row + u[a] * of_column + of_both)
            total -= z[a] * z[a] * T[last] + (u[a] * u[a] + T[last]) * S[last]
            at += a + 1
        of_level = 0.0
        for b in range(r):
            of_level += z[b] * T[at + b]
        result[k] = total + z[r] * (2.0 * of_level + z[r] * T[at + r])


@compiled(any_order=True)
def predictions(rows, columns, U, Z, result):
    """(u, c)'(z, 1) at (rows[k], columns[k])."""
    for k in range(rows.size):
        u, z = U[rows[k]], Z[columns[k]]
        total = 0.0
        for a in range(u.size):
            total += u[a] * z[a]
        result[k] = total
