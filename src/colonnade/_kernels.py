"""Compiled loops over plain arrays: every column is one small regularised least-squares problem.

    (U_O' W U_O + Lambda) z = U_O' W (x_O - c_O)

Per group of columns that share their rows O: gather the rows of U once, form and factor the matrix in one pass
(`_tiles.py`), and substitute for each right-hand side. Where a pivot of the Cholesky factor shows a bad condition the
column is solved again by a Householder QR with pivoting, which also decides whether its rows determine it at all.
With more directions than entries and a penalty on all of them, the smaller dual system is solved:

    (U_O Lambda^-1 U_O' + W^-1) a = x_O - c_O,     z = Lambda^-1 U_O' a

Arrays in, arrays and status codes out; no exception, no class. The same in NumPy stands in `solve.py`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ._tiles import LANES, TILE_VECTORS, backward, gather, head1, head2, head3, prefetch, tail1, tail2, tail3

# The codes of solve.Status.
SOLVED, PRIOR, NO_OBSERVATION, TOO_FEW, UNDETERMINED, OVERFLOW = 1, 2, 3, 4, 5, 6

# A pivot below this share of its diagonal entry: squaring has cost two of sixteen digits or more, so solve by QR.
PIVOT_SHARE = 1e-2
ROWS_AHEAD = 6  # of the gather that are asked for before their use

_inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by kernels only; compiles faster


def _compiled(**options):
    """njit for this module: fused multiply-add, no lock of the interpreter, machine code kept on disk if it can be."""

    def decorate(function):
        try:
            return njit(cache=True, nogil=True, fastmath={"contract"}, **options)(function)
        except RuntimeError:  # no folder for the cache can be written
            return njit(nogil=True, fastmath={"contract"}, **options)(function)

    return decorate


@_compiled(**_inner)
def _padded(k):
    return (k + LANES - 1) // LANES * LANES


@_compiled(**_inner)
def _row_stride(width):
    # An odd number of cache lines, so that one column of the buffer does not fall into few sets of the cache.
    lines = (width + 7) // 8
    return 8 * (lines | 1)


@_compiled(**_inner)
def _factor(X, s, R, T, stride, penalty, r, width, floor):
    """Rows of R = upper Cholesky factor of X'X + diag(penalty), all columns up to width; 1 if every pivot is sound."""
    sound = 1
    for j in range(0, r, LANES):
        vectors = (width - j) // LANES
        if vectors >= TILE_VECTORS:
            sound &= head3(X, s, R, T, stride, penalty, j, j, r, PIVOT_SHARE, floor)
        elif vectors == 2:
            sound &= head2(X, s, R, T, stride, penalty, j, j, r, PIVOT_SHARE, floor)
        else:
            sound &= head1(X, s, R, T, stride, penalty, j, j, r, PIVOT_SHARE, floor)
        for v in range(j + TILE_VECTORS * LANES, width, TILE_VECTORS * LANES):
            vectors = (width - v) // LANES
            if vectors >= TILE_VECTORS:
                tail3(X, s, R, T, stride, penalty, j, v, r, PIVOT_SHARE, floor)
            elif vectors == 2:
                tail2(X, s, R, T, stride, penalty, j, v, r, PIVOT_SHARE, floor)
            else:
                tail1(X, s, R, T, stride, penalty, j, v, r, PIVOT_SHARE, floor)
    return sound


@_compiled(**_inner)
def _substitute(R, T, stride, r, y, z):
    """z with R z = R[:, y]; True if all of it is finite."""
    for j in range(_padded(r) - LANES, -1, -LANES):
        backward(R, T, stride, j, r, y, z)
    total = 0.0
    for i in range(r):
        total += 0.0 * z[i]
    return total == 0.0


@_compiled(**_inner)
def _solve_by_qr(B, b, floor, z):
    """Least squares by Householder QR with column pivoting; B (k x r) and b (k) are used up. Returns a code."""
    k, r = B.shape
    scale = 0.0
    for i in range(k):
        scale = max(scale, abs(b[i]))
    if not scale < np.inf:
        return OVERFLOW
    order, diagonal = np.empty(r, np.int64), np.empty(r)
    for j in range(r):
        order[j] = j
    for i in range(k):
        b[i] = b[i] / scale if scale > 0 else 0.0
    for j in range(r):
        best, best_norm = j, -1.0
        for q in range(j, r):
            norm = 0.0
            for i in range(j, k):
                norm += B[i, q] * B[i, q]
            if norm > best_norm:
                best, best_norm = q, norm
        norm = np.sqrt(best_norm)
        if j == 0:
            floor = max(floor, norm * max(k, r) * 2.3e-16)
        if not norm > floor:
            return UNDETERMINED
        order[j], order[best] = order[best], order[j]
        for i in range(k):
            B[i, j], B[i, best] = B[i, best], B[i, j]
        # Reflect by I - v v' / (norm * |v_j|), with v in place of column j and the sign that does not cancel.
        diagonal[j] = -norm if B[j, j] > 0 else norm
        B[j, j] -= diagonal[j]
        factor = 1.0 / (norm * abs(B[j, j]))
        for q in range(j + 1, r):
            product = 0.0
            for i in range(j, k):
                product += B[i, j] * B[i, q]
            for i in range(j, k):
                B[i, q] -= product * factor * B[i, j]
        product = 0.0
        for i in range(j, k):
            product += B[i, j] * b[i]
        for i in range(j, k):
            b[i] -= product * factor * B[i, j]
    finite = True
    for j in range(r - 1, -1, -1):
        value = b[j]
        for q in range(j + 1, r):
            value -= B[j, q] * b[q]
        b[j] = value / diagonal[j]
        z[order[j]] = b[j] * scale
        finite &= abs(z[order[j]]) < np.inf
    return SOLVED if finite else OVERFLOW


@_compiled(**_inner)
def _solve_stably(U, center, rows, values, weights, top, penalty, floor, z):
    """One column by QR of sqrt(W) U_O with sqrt(Lambda) below it."""
    s, r = rows.size, U.shape[1]
    B, b = np.zeros((s + r, r)), np.zeros(s + r)
    for k in range(s):
        root = np.sqrt(weights[k] / top) if weights.size else 1.0
        x = values[k] - center[rows[k]] if center.size else np.float64(values[k])
        for q in range(r):
            B[k, q] = root * U[rows[k], q]
        b[k] = root * x
    for q in range(r):
        B[s + q, q] = np.sqrt(penalty[q] / top)
    return _solve_by_qr(B, b, floor, z)


@_compiled(**_inner)
def _gather_rows(U, rows, weights, top, lo, s, X, stride):
    """X[k, :r] = sqrt(w_k / top) U[rows[lo + k]]."""
    m, r = U.shape
    last_whole = (m * r - _padded(r)) // r  # beyond it a whole vector would reach past the end of U
    for k in range(s):
        i = np.int64(rows[lo + k])
        if lo + k + ROWS_AHEAD < rows.size:
            prefetch(U, np.int64(rows[lo + k + ROWS_AHEAD]), r)
        root = np.sqrt(weights[lo + k] / top) if weights.size else 1.0
        if i <= last_whole:
            gather(U, i, root, X, k, stride, r)
        else:
            for q in range(r):
                X[k, q] = root * U[i, q]


@_compiled(**_inner)
def _gather_values(center, rows, values, weights, top, lo, at, s, X, column):
    """X[k, column] = sqrt(w_k / top) (x_k - c_k) for the values from `at` on; rows and weights stand from `lo` on."""
    for k in range(s):
        x = np.float64(values[at + k])
        if center.size:
            x -= center[rows[lo + k]]
        X[k, column] = x * np.sqrt(weights[lo + k] / top) if weights.size else x


@_compiled(**_inner)
def _solve_dual(U, center, indptr, rows, values, weights, top, penalty, group, X, R, T, stride, diagonal, z, Z, status):
    """The s x s system in place of the r x r one; only with fewer entries than directions and every penalty > 0."""
    r = U.shape[1]
    lo = indptr[group[0]]
    s = indptr[group[0] + 1] - lo
    for k in range(s):
        diagonal[k] = top / weights[lo + k] if weights.size else 1.0
        for q in range(r):
            X[q, k] = U[rows[lo + k], q] / np.sqrt(penalty[q] / top)
    sound = _factor(X, r, R, T, stride, diagonal, s, _padded(s), 0.0)
    for g in range(group.size):
        column = group[g]
        at = indptr[column]
        x = np.empty(s)
        for k in range(s):
            x[k] = values[at + k] - center[rows[lo + k]] if center.size else values[at + k]
        for k in range(s):  # R' y = x, y in place of x and into a spare column of R
            x[k] *= T[k, LANES]
            for q in range(k + 1, s):
                x[q] -= R[k, q] * x[k]
            R[k, stride - 1] = x[k]
        finite = _substitute(R, T, stride, s, stride - 1, z)
        if not (sound and finite):
            code = _solve_stably(
                U, center, rows[lo : lo + s], values[at : at + s], weights[lo : lo + s], top, penalty, 0.0, z
            )
            _put(1.0 if code == SOLVED else np.nan, z, r, Z, column)
            status[column] = PRIOR if code == SOLVED else code
            continue
        for q in range(r):
            total = 0.0
            for k in range(s):
                total += X[q, k] * z[k]
            Z[column, q] = total / np.sqrt(penalty[q] / top)
        status[column] = PRIOR


@_compiled(**_inner)
def _put(factor, z, r, Z, column):
    """Z[column] = factor * z; a factor of NaN says that there is no answer."""
    for q in range(r):
        Z[column, q] = factor * z[q]


@_compiled(**_inner)
def _widest(indptr, members, bounds, start, stop):
    """Most entries of a column and most columns of a group, for the buffers."""
    entries = columns = 0
    for g in range(start, stop):
        first = members[bounds[g]]
        entries = max(entries, indptr[first + 1] - indptr[first])
        columns = max(columns, bounds[g + 1] - bounds[g])
    return entries, columns


@_compiled()
def solve_groups(
    U, center, indptr, rows, values, weights, penalty, members, bounds, start, stop, unit_floor, Z, status
):
    """Solve the columns ``members[bounds[g] : bounds[g + 1]]`` for the groups ``start <= g < stop``.

    Columns of a group have the same rows and weights. `center` (m) and `weights` (nnz) may be empty. Row j of Z
    (n x r) and ``status[j]`` receive the answer of column j; Z holds NaN where the status says that there is none.
    """
    r = U.shape[1]
    s_max, c_max = _widest(indptr, members, bounds, start, stop)
    n_penalised = 0
    for q in range(r):
        n_penalised += penalty[q] > 0
    every_direction_penalised = n_penalised == r
    stride = _row_stride(max(_padded(r + c_max), _padded(min(s_max, r)) + 1))
    X = np.zeros((max(s_max, r), stride))
    R = np.zeros((_padded(r), stride))
    T = np.zeros((_padded(r), 2 * LANES))
    z, diagonal = np.zeros(_padded(r)), np.zeros(_padded(r))
    for g in range(start, stop):
        first, size = bounds[g], bounds[g + 1] - bounds[g]
        lo = indptr[members[first]]
        s = indptr[members[first] + 1] - lo
        if s == 0 or (s < r and n_penalised == 0):
            code = TOO_FEW if s else PRIOR if every_direction_penalised else NO_OBSERVATION
            for k in range(first, first + size):
                status[members[k]] = code
                _put(0.0 if code == PRIOR else np.nan, z, r, Z, members[k])
            continue
        top = np.float64(weights[lo]) if weights.size else 1.0
        for k in range(lo, lo + s if weights.size else lo):
            top = max(top, np.float64(weights[k]))
        if s < r and every_direction_penalised:
            _solve_dual(
                U,
                center,
                indptr,
                rows,
                values,
                weights,
                top,
                penalty,
                members[first : first + size],
                X,
                R,
                T,
                stride,
                diagonal,
                z,
                Z,
                status,
            )
            continue
        _gather_rows(U, rows, weights, top, lo, s, X, stride)
        for k in range(size):
            _gather_values(center, rows, values, weights, top, lo, indptr[members[first + k]], s, X, r + k)
        for q in range(r):
            diagonal[q] = penalty[q] / top
        floor = 0.0 if every_direction_penalised else unit_floor
        sound = _factor(X, s, R, T, stride, diagonal, r, _padded(r + size), floor * floor)
        done = SOLVED if s >= r else PRIOR
        for k in range(size):
            column = members[first + k]
            if sound and _substitute(R, T, stride, r, r + k, z):
                _put(1.0, z, r, Z, column)
                status[column] = done
                continue
            at = indptr[column]
            status[column] = _solve_stably(
                U,
                center,
                rows[lo : lo + s],
                values[at : at + s],
                weights[lo : lo + s],
                top,
                penalty,
                floor,
                z,
            )
            _put(1.0 if status[column] == SOLVED else np.nan, z, r, Z, column)
            if status[column] == SOLVED:
                status[column] = done


@_compiled()
def row_set_hashes(indptr, rows, bits, columns, most):
    """A 64-bit number per column from its count and up to `most` rows and (bits of the) weights."""
    result = np.empty(columns.size, np.uint64)
    for c in range(columns.size):
        lo, hi = indptr[columns[c]], indptr[columns[c] + 1]
        h = np.uint64(14695981039346656037) + np.uint64(hi - lo)
        for k in range(lo, min(hi, lo + most)):
            h = (h ^ np.uint64(rows[k])) * np.uint64(1099511628211)
            h ^= h >> np.uint64(29)
            if bits.size:
                h = (h ^ np.uint64(bits[k])) * np.uint64(1099511628211)
                h ^= h >> np.uint64(31)
        result[c] = h
    return result


@_compiled()
def same_row_sets(indptr, rows, weights, members, bounds):
    """Whether within every group all columns have the rows and weights of the first."""
    for g in range(bounds.size - 1):
        a = indptr[members[bounds[g]]]
        s = indptr[members[bounds[g]] + 1] - a
        for k in range(bounds[g] + 1, bounds[g + 1]):
            b = indptr[members[k]]
            if indptr[members[k] + 1] - b != s:
                return False
            for i in range(s):
                if rows[a + i] != rows[b + i]:
                    return False
                if weights.size and weights[a + i] != weights[b + i]:
                    return False
    return True
