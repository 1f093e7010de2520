"""Compiled loops of the factor model: one update of all columns or rows, and predictive variances.

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


@compiled(**_inner)
def _fill_system(A, prior, scale, total, h):
    """Lower triangle of prior + scale total, with h as row r."""
    r, at = prior.shape[0], 0
    for a in range(r):
        for b in range(a + 1):
            A[a, b] = prior[a, b] + scale * total[at + b]
        at += a + 1
    for a in range(r):
        A[r, a] = h[a]


@compiled(**_inner)
def _read_inverse(A, packed):
    at = 0
    for a in range(A.shape[0] - 2):
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


def memory_of(longest: int, q: int, r: int) -> tuple[np.ndarray, ...]:
    """What `update_groups` works in: sums, right-hand side, factors of entries, twins, and `inverses.workspace`.

    No group has more than `longest` entries or summands.
    """
    return np.empty(q * (q + 1) // 2), np.empty(q), np.empty(longest), np.empty(2, np.int64), *workspace(r)


@compiled(_nrt=False)
def update_groups(lo, hi, entries, summands, bases, means, moments, precision, scale, prior, shift, written, memory):
    """Gaussian posteriors of the columns (or rows) lo to hi, given those of the rows (or columns).

    With x the unknowns of a group and y those of the others, S = (prior + s sum w p E[y y'])^-1 and
    x = S (shift + s sum w p y value), where p is the precision of the other and s the scale of the group. Columns have
    a known last coordinate 1: their prior has one row less than y has numbers. One function serves both sides, because
    compiling it takes longer than filling a small table.

    Parameters
    ----------
    entries : begins, others, values and weights by group; no weights means that all are 1
    summands : begins, others and `is_rest` of `table.Summands`; with weights the entries themselves
    bases : array of shape (2, q (q + 1) / 2), sums of p E[y y'] over the full others and over all others
    means : array of shape (n_others, q)
    moments : array of shape (n_others, q (q + 1) / 2), packed E[y y']
    precision : array of shape (n_others,)
    scale : array of shape (n_groups,)
    prior : array of shape (r, r), the precision of x before any entry; r is q or q - 1
    shift : array of shape (q,), the prior's precision times its mean
    written : means (n_groups, q), packed S, log det of S^-1, and the sums over the entries of w E[(value - x'y)^2]; the
        last may be empty
    memory : see `memory_of`
    """
    begins, others, values, weights = entries
    sum_begins, sum_others, is_rest = summands
    X, covariance, logs, squares = written
    # Groups whose sums are a base alone share their covariance: those that are seen in full. `twins` are the first.
    total, h, factors, twins, A, panels = memory
    twins[0], twins[1] = -1, -1
    q, r = means.shape[1], prior.shape[0]
    part = r * (r + 1) // 2
    for g in range(lo, hi):
        first, count = sum_begins[g], sum_begins[g + 1] - sum_begins[g]
        side = 1 if is_rest[g] else 0
        for k in range(count):
            factors[k] = precision[sum_others[first + k]] * (weights[first + k] if weights.size else 1.0 - 2.0 * side)
        _copy(bases[side], total.size, total)
        add_rows(moments, sum_others, first, count, factors, total)
        own, n_own = begins[g], begins[g + 1] - begins[g]
        for k in range(n_own):
            w = weights[own + k] if weights.size else 1.0
            factors[k] = scale[g] * values[own + k] * (precision[others[own + k]] * w)
        _copy(shift, q, h)
        add_rows(means, others, own, n_own, factors, h)
        if r < q:
            X[g, r] = 1.0
            for a in range(r):
                h[a] -= scale[g] * total[part + a]
        twin = twins[side]
        if count == 0 and twin >= 0 and scale[twin] == scale[g]:
            _copy(covariance[twin], part, covariance[g])
            logs[g] = logs[twin]
            _packed_times(covariance[g], h, r, X[g])
        else:
            _fill_system(A, prior, scale[g], total, h)
            logs[g] = sweep(A, panels)
            _read_inverse(A, covariance[g])
            _copy(A[r], r, X[g])  # Not S h: where noise is tiny, h is large and rounding of S would swamp the answer.
            if count == 0:
                twins[side] = g
        if squares.size:
            error, fitted = _error_and_fit(X[g], means, others, values, weights, own, n_own)
            # E[(value - x'y)^2] = (value - p)^2 + tr(S E[yy']) + x' V x, the last as x' E[yy'] x - p^2.
            trace, form = _trace_and_form(total, covariance[g], X[g])
            squares[g] = error + max(0.0, trace) + max(0.0, form - fitted)


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
