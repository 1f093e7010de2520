"""Compiled loops over plain arrays: every column is one small regularised least-squares problem.

    (U_O' W U_O + Lambda) z = U_O' W (x_O - c_O)

Per group of columns that share their rows O: gather the rows of U once, form and factor the matrix in one pass
(`tiles.py`), and substitute for each right-hand side. Where the condition is not small, the answer is corrected by the
residual of the rows themselves (the corrected seminormal equations, Bjorck 1987), and where that moves it too far the
column is solved again by a Householder QR with pivoting, which also decides whether its rows determine it at all.
With more directions than entries and a penalty on all of them, the smaller dual system is solved:

    (U_O Lambda^-1 U_O' + W^-1) a = x_O - c_O,     z = Lambda^-1 U_O' a

Arrays in, arrays and status codes out; no exception, no class. The same in NumPy stands in `model/solve.py`.
"""

from __future__ import annotations

import numpy as np

from ..._support.compiling import compiled
from .tiles import LANES, TILE_VECTORS, backward, gather, head1, head2, head3, prefetch, tail1, tail2, tail3

# The codes of solve.Status.
SOLVED, PRIOR, NO_OBSERVATION, TOO_FEW, UNDETERMINED, OVERFLOW, PRIOR_ONLY = 1, 2, 3, 4, 5, 6, 7

SMALL_PIVOT = 0.05  # a pivot below this share of its diagonal entry shows a bad condition, but not every one does
FEW_DIRECTIONS, SAFE_PIVOT = 24, 0.3  # with so few directions, pivots above that show a good one
WELL_CONDITIONED = 4.0  # up to this estimate of the condition squaring costs nothing worth mending
LEAST_ROOT = 1e-5  # of a pivot beside the largest, for which a correction is tried
MENDED = 1e-8  # a correction of more than this share of the answer: solve by QR
MENDED_DUAL = 1e-6  # likewise for the dual system, whose solution is smoothed before it counts
LARGE = 1e290  # entries beyond this may overflow and are solved by QR, which scales them
PROJECTED_ROWS = 1024  # of a full column that are summed by themselves
ROWS_AHEAD = 6  # of the gather that are asked for before their use

_inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by kernels only; compiles faster


@compiled(**_inner)
def _padded(k):
    return (k + LANES - 1) // LANES * LANES


@compiled(**_inner)
def _row_stride(width):
    # An odd number of cache lines, so that one column of the buffer does not fall into few sets of the cache.
    lines = (width + 7) // 8
    return 8 * (lines | 1)


@compiled(**_inner)
def _factor(X, s, R, T, stride, penalty, r, width, share):
    """Rows of R = upper Cholesky factor of X'X + diag(penalty), all columns up to width.

    True if every pivot is at least this share of its diagonal entry.
    """
    sound = 1
    for j in range(0, r, LANES):
        vectors = (width - j) // LANES
        if vectors >= TILE_VECTORS:
            sound &= head3(X, s, R, T, stride, penalty, j, j, r, share)
        elif vectors == 2:
            sound &= head2(X, s, R, T, stride, penalty, j, j, r, share)
        else:
            sound &= head1(X, s, R, T, stride, penalty, j, j, r, share)
        for v in range(j + TILE_VECTORS * LANES, width, TILE_VECTORS * LANES):
            vectors = (width - v) // LANES
            if vectors >= TILE_VECTORS:
                tail3(X, s, R, T, stride, penalty, j, v, r, share)
            elif vectors == 2:
                tail2(X, s, R, T, stride, penalty, j, v, r, share)
            else:
                tail1(X, s, R, T, stride, penalty, j, v, r, share)
    return sound == 1


@compiled(**_inner)
def _substitute(R, T, stride, r, y, z):
    """z with R z = R[:, y], in whole vectors, so z has room for ``_padded(r)``; True if all of it is finite."""
    for j in range(_padded(r) - LANES, -1, -LANES):
        backward(R, T, stride, j, r, y, z)
    total = 0.0
    for i in range(r):
        total += 0.0 * z[i]
    return total == 0.0


@compiled(**_inner)
def _scale_columns(B, norms):
    """Bring the columns of B to norm 1."""
    for q in range(B.shape[1]):
        square = 0.0
        for i in range(B.shape[0]):
            square += B[i, q] * B[i, q]
        norms[q] = np.sqrt(square)
        for i in range(B.shape[0]):
            B[i, q] = B[i, q] / norms[q] if norms[q] > 0 else 0.0


@compiled(**_inner)
def _bring_largest_forward(B, j, order, sizes):
    """Swap into place j the column whose norm below row j is largest, times its size; that norm without the size."""
    best, best_norm, most = j, 0.0, -1.0
    for q in range(j, B.shape[1]):
        square = 0.0
        for i in range(j, B.shape[0]):
            square += B[i, q] * B[i, q]
        norm = np.sqrt(square)
        if norm * sizes[order[q]] > most:
            best, best_norm, most = q, norm, norm * sizes[order[q]]
    order[j], order[best] = order[best], order[j]
    for i in range(B.shape[0]):
        B[i, j], B[i, best] = B[i, best], B[i, j]
    return best_norm


@compiled(**_inner)
def _reflect(B, b, j, norm):
    """Householder reflection of the columns after j and of b, its vector v in place of column j; the new diagonal.

    By I - v v' / (norm |v_j|), with the sign of v_j that does not cancel.
    """
    k, r = B.shape
    diagonal = -norm if B[j, j] > 0 else norm
    B[j, j] -= diagonal
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
    return diagonal


@compiled(**_inner)
def _solve_by_qr(B, b, floor, z):
    """Least squares by Householder QR with column pivoting; B (k x r) and b (k) are used up. Returns a code."""
    k, r = B.shape
    scale = 0.0
    for i in range(k):
        scale = max(scale, abs(b[i]))
    if not scale < np.inf:
        return OVERFLOW
    for i in range(k):
        b[i] = b[i] / scale if scale > 0 else 0.0
    norms, diagonal, order = np.empty(r), np.empty(r), np.empty(r, np.int64)
    _scale_columns(B, norms)
    for j in range(r):
        order[j] = j
    # Where the floor decides, columns go in the order of their own sizes: of two that are alike, the smaller is last.
    sizes = norms if floor > 0 else np.ones(r)
    for j in range(r):
        norm = _bring_largest_forward(B, j, order, sizes)
        if not (norm > max(k, r) * 2.3e-16 and norm * norms[order[j]] > floor):
            return UNDETERMINED
        diagonal[j] = _reflect(B, b, j, norm)
    finite = True
    for j in range(r - 1, -1, -1):
        value = b[j]
        for q in range(j + 1, r):
            value -= B[j, q] * b[q]
        b[j] = value / diagonal[j]
        z[order[j]] = b[j] / norms[order[j]] * scale
        finite &= abs(z[order[j]]) < np.inf
    return SOLVED if finite else OVERFLOW


@compiled(**_inner)
def _put(factor, z, r, Z, column):
    """Z[column] = factor * z; a factor of NaN says that there is no answer."""
    for q in range(r):
        Z[column, q] = factor * z[q]


@compiled(**_inner)
def _solve_stably(U, center, indptr, rows, values, weights, top, penalty, floor, lo, s, done, z, Z, status, column):
    """One column by QR of sqrt(W) U_O with sqrt(Lambda) below it; rows and weights stand from `lo` on."""
    r, at = U.shape[1], indptr[column]
    B, b = np.zeros((s + r, r)), np.zeros(s + r)
    for k in range(s):
        root = np.sqrt(weights[lo + k] / top) if weights.size else 1.0
        x = np.float64(values[at + k]) - (np.float64(center[rows[lo + k]]) if center.size else 0.0)
        for q in range(r):
            B[k, q] = root * U[rows[lo + k], q]
        b[k] = root * x
    for q in range(r):
        B[s + q, q] = np.sqrt(penalty[q] / top)
    code = _solve_by_qr(B, b, floor, z)
    _put(1.0 if code == SOLVED else np.nan, z, r, Z, column)
    status[column] = done if code == SOLVED else code


@compiled(**_inner)
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


@compiled(**_inner)
def _gather_values(center, rows, values, weights, top, lo, at, s, X, column):
    """X[k, column] = sqrt(w_k / top) (x_k - c_k) for the values from `at` on; rows and weights stand from `lo` on.

    A column with an entry beyond `LARGE` becomes 0, lest it spoil its neighbours, and False is returned.
    """
    fine = True
    for k in range(s):
        x = np.float64(values[at + k])
        if center.size:
            x -= np.float64(center[rows[lo + k]])
        fine &= abs(x) < LARGE
        X[k, column] = x * np.sqrt(weights[lo + k] / top) if weights.size else x
    if not fine:
        for k in range(s):
            X[k, column] = 0.0
    return fine


@compiled(**_inner)
def _forward(R, T, r, x):
    """x becomes y with R' y = x."""
    for i in range(r):
        x[i] *= T[i, LANES]
        for q in range(i + 1, r):
            x[q] -= R[i, q] * x[i]


@compiled(any_order=True, **_inner)
def _is_well_conditioned(R, T, stride, r, sound, z, x):
    """Whether squaring has cost nothing worth mending.

    The pivots alone tell it of few directions: with all of them at least 0.3 of the diagonal, the smallest eigenvalue
    of the scaled matrix is at least 0.3^r / e, and in practice far larger. Of more, an estimate is needed: z = R^-1 v
    with v of mixed signs leans towards the weakest direction, and |R^-T z| / |z| measures it; the unit is the largest
    pivot.
    """
    if not sound or r <= FEW_DIRECTIONS:
        return sound
    signs = np.uint64(0x9E3779B97F4A7C15)
    for i in range(r):
        R[i, stride - 1] = 1.0 if (signs >> np.uint64(i % 64)) & np.uint64(1) else -1.0
    _substitute(R, T, stride, r, stride - 1, z)
    before = after = 0.0
    smallest = T[0, LANES]
    for i in range(r):
        x[i] = z[i]
        before += z[i] * z[i]
        smallest = min(smallest, T[i, LANES])
    _forward(R, T, r, x)
    for i in range(r):
        after += x[i] * x[i]
    return after <= WELL_CONDITIONED * WELL_CONDITIONED * smallest * smallest * before


@compiled(**_inner)
def _largest_root(T, r):
    """1 / sqrt(pivot) of the smallest pivot."""
    largest = T[0, LANES]
    for i in range(r):
        largest = max(largest, T[i, LANES])
    return largest


@compiled(**_inner)
def _can_be_corrected(T, r, floor):
    """Whether no pivot is as small as rounding may make it where the rows determine nothing."""
    largest = _largest_root(T, r)
    smallest = largest
    for i in range(r):
        smallest = min(smallest, T[i, LANES])
    return smallest > LEAST_ROOT * largest and largest * floor < 1


@compiled(any_order=True, **_inner)
def _correct(X, s, R, T, stride, penalty, r, column, z, step):
    """Add the correction (R'R)^-1 (X'(x - X z) - Lambda z) to z; False if it is too large to be one."""
    for q in range(r):
        step[q] = -penalty[q] * z[q]
    for k in range(s):
        residual = X[k, column]
        for q in range(r):
            residual -= X[k, q] * z[q]
        for q in range(r):
            step[q] += X[k, q] * residual
    _forward(R, T, r, step)
    for i in range(r):
        R[i, column] = step[i]
    _substitute(R, T, stride, r, column, step)
    moved = size = 0.0
    for q in range(r):
        moved += step[q] * step[q]
        size += z[q] * z[q]
        z[q] += step[q]
    return moved <= MENDED * MENDED * size


@compiled(any_order=True, **_inner)
def _correct_dual(X, r, R, T, stride, diagonal, s, x, a, fitted, step):
    """Add the correction (R'R)^-1 (x - diagonal a - X'X a) to a; False if it is too large to be one.

    `a` and `step` have room for whole vectors.
    """
    for q in range(r):
        fitted[q] = 0.0
        for k in range(s):
            fitted[q] += X[q, k] * a[k]
    for k in range(s):
        step[k] = x[k] - diagonal[k] * a[k]
    for q in range(r):
        for k in range(s):
            step[k] -= X[q, k] * fitted[q]
    _forward(R, T, s, step)
    for k in range(s):
        R[k, stride - 1] = step[k]
    _substitute(R, T, stride, s, stride - 1, step)
    moved = size = 0.0
    for k in range(s):
        moved += step[k] * step[k]
        size += a[k] * a[k]
        a[k] += step[k]
    return moved <= MENDED_DUAL * MENDED_DUAL * size


@compiled(**_inner)
def _solve_dual(
    U,
    center,
    indptr,
    rows,
    values,
    weights,
    top,
    penalty,
    members,
    first,
    size,
    X,
    R,
    T,
    stride,
    diagonal,
    z,
    Z,
    status,
):
    """The s x s system in place of the r x r one; only with fewer entries than directions and every penalty > 0."""
    r = U.shape[1]
    lo = indptr[members[first]]
    s = indptr[members[first] + 1] - lo
    for k in range(s):
        diagonal[k] = top / weights[lo + k] if weights.size else 1.0
        for q in range(r):
            X[q, k] = U[rows[lo + k], q] / np.sqrt(penalty[q] / top)
    sound = _factor(X, r, R, T, stride, diagonal, s, _padded(s), SMALL_PIVOT)
    usable = sound or _can_be_corrected(T, s, 0.0)
    x, y, fitted = np.empty(s), np.empty(_padded(s)), np.empty(r)
    for g in range(first, first + size):
        column = members[g]
        at = indptr[column]
        for k in range(s):
            x[k] = np.float64(values[at + k]) - (np.float64(center[rows[lo + k]]) if center.size else 0.0)
            y[k] = x[k]
        _forward(R, T, s, y)
        for k in range(s):
            R[k, stride - 1] = y[k]
        good = usable and _substitute(R, T, stride, s, stride - 1, z)
        if not good or not (sound or _correct_dual(X, r, R, T, stride, diagonal, s, x, z, fitted, y)):
            _solve_stably(
                U, center, indptr, rows, values, weights, top, penalty, 0.0, lo, s, PRIOR, z, Z, status, column
            )
            continue
        for q in range(r):
            total = 0.0
            for k in range(s):
                total += X[q, k] * z[k]
            Z[column, q] = total / np.sqrt(penalty[q] / top)
        status[column] = PRIOR


@compiled(**_inner)
def _solve_primal(
    U,
    center,
    indptr,
    rows,
    values,
    weights,
    top,
    penalty,
    members,
    first,
    size,
    floor,
    X,
    R,
    T,
    stride,
    diagonal,
    z,
    step,
    Z,
    status,
):
    """The r x r system, factored once for all columns of a group."""
    r = U.shape[1]
    lo = indptr[members[first]]
    s = indptr[members[first] + 1] - lo
    _gather_rows(U, rows, weights, top, lo, s, X, stride)
    done = SOLVED if s >= r else PRIOR
    for k in range(size):
        column = members[first + k]
        fine = _gather_values(center, rows, values, weights, top, lo, indptr[column], s, X, r + k)
        status[column] = done if fine else OVERFLOW
    for q in range(r):
        diagonal[q] = penalty[q] / top
    share = SAFE_PIVOT if r <= FEW_DIRECTIONS else SMALL_PIVOT
    sound = _factor(X, s, R, T, stride, diagonal, r, _padded(r + size), share)
    easy = _is_well_conditioned(R, T, stride, r, sound, z, step) and _largest_root(T, r) * floor < 1e-3
    usable = easy or _can_be_corrected(T, r, floor)
    for k in range(size):
        column = members[first + k]
        good = usable and status[column] == done and _substitute(R, T, stride, r, r + k, z)
        if good and (easy or _correct(X, s, R, T, stride, diagonal, r, r + k, z, step)):
            _put(1.0, z, r, Z, column)
        else:
            _solve_stably(
                U, center, indptr, rows, values, weights, top, penalty, floor, lo, s, done, z, Z, status, column
            )


@compiled(**_inner)
def _widest(indptr, members, bounds, start, stop):
    """Most entries of a column and most columns of a group, for the buffers."""
    entries = columns = 0
    for g in range(start, stop):
        first = members[bounds[g]]
        entries = max(entries, indptr[first + 1] - indptr[first])
        columns = max(columns, bounds[g + 1] - bounds[g])
    return entries, columns


@compiled()
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
    stride = _row_stride(max(_padded(r + c_max), _padded(min(s_max, r))) + 1)  # one spare column
    X, R, T = np.zeros((max(s_max, r), stride)), np.zeros((_padded(r), stride)), np.zeros((_padded(r), 2 * LANES))
    z, step, diagonal = np.zeros(_padded(r)), np.zeros(_padded(r)), np.zeros(_padded(r))
    floor = 0.0 if n_penalised == r else unit_floor
    for g in range(start, stop):
        first, size = bounds[g], bounds[g + 1] - bounds[g]
        lo = indptr[members[first]]
        s = indptr[members[first] + 1] - lo
        if s == 0 or (s < r and n_penalised == 0):
            code = TOO_FEW if s else PRIOR_ONLY if n_penalised == r else NO_OBSERVATION
            for k in range(first, first + size):
                status[members[k]] = code
                for q in range(r):
                    Z[members[k], q] = 0.0 if code == PRIOR_ONLY else np.nan
            continue
        top = np.float64(weights[lo]) if weights.size else 1.0
        for k in range(lo, lo + s if weights.size else lo):
            top = max(top, np.float64(weights[k]))
        if s < r and n_penalised == r:
            _solve_dual(
                U,
                center,
                indptr,
                rows,
                values,
                weights,
                top,
                penalty,
                members,
                first,
                size,
                X,
                R,
                T,
                stride,
                diagonal,
                z,
                Z,
                status,
            )
        else:
            _solve_primal(
                U,
                center,
                indptr,
                rows,
                values,
                weights,
                top,
                penalty,
                members,
                first,
                size,
                floor,
                X,
                R,
                T,
                stride,
                diagonal,
                z,
                step,
                Z,
                status,
            )


@compiled(any_order=True)
def residuals(U, Z, offsets, indptr, rows, values, first, last, result):
    """result[k] = x - z_j' u_i - offsets[j] for every entry k = (i, j), j in first:last; U is m x r, Z is n x r."""
    for j in range(first, last):
        for k in range(indptr[j], indptr[j + 1]):
            i, fitted = rows[k], offsets[j]
            for q in range(Z.shape[1]):
                fitted += Z[j, q] * U[i, q]
            result[k] = values[k] - fitted


@compiled()
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


@compiled()
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


@compiled()
def project(U, center, values, start, z):
    """z += U'(x - c) for the m values from `start` on; summed in one order, whatever else is computed."""
    m, r = U.shape
    part = np.empty(r)
    for lo in range(0, m, PROJECTED_ROWS):
        part[:] = 0.0
        for i in range(lo, min(lo + PROJECTED_ROWS, m)):
            x = np.float64(values[start + i]) - (np.float64(center[i]) if center.size else 0.0)
            for q in range(r):
                part[q] += U[i, q] * x
        for q in range(r):
            z[q] += part[q]


@compiled()
def project_each(U, center, values, starts, Z):
    """`project` for several columns, given where their values start; Z has a row for each."""
    for k in range(starts.size):
        project(U, center, values, starts[k], Z[k])


@compiled(any_order=True)
def fitted_values(A, B, indptr, rows, start, stop, out):
    """The entries of A B' (m x k and n x k, in rows) at the observed places of the columns ``start <= j < stop``."""
    for j in range(start, stop):
        for k in range(indptr[j], indptr[j + 1]):
            i, total = rows[k], 0.0
            for q in range(A.shape[1]):
                total += A[i, q] * B[j, q]
            out[k] = total
