"""Compiled loops over plain arrays: every column is one small regularised least-squares problem.

    (U_O' W U_O + Lambda) z = U_O' W (x_O - c_O)

Columns that share their rows O form a group. Per group: gather the rows of U once and form the matrix (`tiles.py`). If
the rank is small, this is done for several groups at once (`abreast.py`). The matrices of `BATCH` groups are factored
side by side, one per vector lane (`lanes.py`). Where the condition is not small, the answer is corrected by the
residual of the rows themselves (the corrected seminormal equations, Bjorck 1987), and where that moves it too far the
column is left to `stable.py`. With more directions than entries and a penalty on all of them, the smaller dual system
is solved:

    (U_O Lambda^-1 U_O' + W^-1) a = x_O - c_O,     z = Lambda^-1 U_O' a

Arrays in, arrays and status codes out; no exception, no class. The same in NumPy stands in `model/solve.py`.
"""

from __future__ import annotations

import numpy as np

from ..._support.compiling import compiled
from .abreast import CHUNK, add_products, ask_for, gather_abreast
from .emitter import BATCH, LANES
from .lanes import backward, extremes, factor, forward
from .problem import EASY, HARD, NO_OBSERVATION, PRIOR, PRIOR_ONLY, SOLVED, TOO_FEW, UNSETTLED, USABLE
from .tiles import corner, gather, head1, head2, head3, tail1, tail2, tail3, take_off

SMALL_PIVOT = 0.05  # a pivot below this share of its diagonal entry shows a bad condition, but not every one does
FEW_DIRECTIONS, SAFE_PIVOT = 24, 0.3  # with so few directions, pivots above that show a good one
WELL_CONDITIONED = 4.0  # up to this estimate of the condition squaring costs nothing worth mending
LEAST_ROOT = 1e-5  # of a pivot beside the largest, for which a correction is tried
MENDED = 1e-8  # a correction of more than this share of the answer: solve by QR
MENDED_DUAL = 1e-6  # likewise for the dual system, whose solution is smoothed before it counts
MOST_ABREAST = 16  # directions up to which `abreast.py` is faster: 1.4 times with 10, 1.1 times with 16 and more
LONGEST = 1.4  # times the mean of the entries of `LANES` columns; beyond it more would be lost to zeros than is won
PROJECTED_ROWS = 1024  # of a full column that are summed by themselves

# Called by kernels only, which compiles faster. They allocate no memory, so no references need be counted. They are
# inlined because a call hands over all arrays, which takes as long as a small column.
_inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False, "forceinline": True}
_whole = {"inline": "always"}  # Likewise, without being compiled by themselves: half of the time of compiling.


@compiled(**_inner)
def _padded(k):
    return (k + LANES - 1) // LANES * LANES


@compiled(**_inner)
def _span(p, g):
    """First entry and number of entries of the first column of group g."""
    j = p.members[p.bounds[g]]
    return p.indptr[j], p.indptr[j + 1] - p.indptr[j]


@compiled(**_inner)
def _gather_rows(p, top, lo, s, X):
    """X[k, :r] = sqrt(w_k / top) U[rows[lo + k]]."""
    m, r = p.U.shape
    last_whole = (m * r - _padded(r)) // r  # beyond it a whole vector would reach past the end of U
    if last_whole < 0 or gather(p.U, p.rows, lo, s, X) > last_whole:
        for k in range(s):
            i = p.rows[lo + k]
            for q in range(r if i > last_whole else 0):
                X[k, q] = p.U[i, q]
    for k in range(s if p.weights.size else 0):
        root = np.sqrt(p.weights[lo + k] / top)
        for q in range(r):
            X[k, q] *= root


@compiled(**_inner)
def _put_gram(X, s, n, width, lane, L):
    """The first n rows and `width` columns of X'X, summed over s rows, put into a lane."""
    for j in range(0, n, LANES):
        v, left = j, (_padded(width) - j) // LANES
        if left == 2 and j + LANES < n:
            corner(X, s, L, j, v, lane)
            return
        while left > 0:
            # Two tiles of 2 vectors in place of 3 and 1: a lonely vector waits for its own sums.
            count = 2 if left == 4 or left == 2 else min(left, 3)
            if v == j:
                if count == 3:
                    head3(X, s, L, j, v, lane)
                elif count == 2:
                    head2(X, s, L, j, v, lane)
                else:
                    head1(X, s, L, j, v, lane)
            elif count == 3:
                tail3(X, s, L, j, v, lane)
            elif count == 2:
                tail2(X, s, L, j, v, lane)
            else:
                tail1(X, s, L, j, v, lane)
            v += count * LANES
            left -= count


@compiled(**_inner)
def _gather_columns(p, top, lo, s, X):
    """X[q, k] = U[rows[lo + k], q] / sqrt(penalty[q] / top), for the dual system."""
    for q in range(p.U.shape[1]):
        scale = 1.0 / np.sqrt(p.penalty[q] / top)
        for k in range(s):
            X[q, k] = p.U[p.rows[lo + k], q] * scale


@compiled(**_inner)
def _settle(p, g, code):
    """Give a code to all columns of a group that cannot be solved."""
    for k in range(p.bounds[g], p.bounds[g + 1]):
        p.status[p.members[k]] = code
        for q in range(p.U.shape[1]):
            p.Z[p.members[k], q] = 0.0 if code == PRIOR_ONLY else np.nan


@compiled(**_inner)
def _largest_weight(p, lo, s):
    """Of s entries, or 1 without weights."""
    top = np.float64(p.weights[lo]) if p.weights.size else 1.0
    for k in range(lo, lo + s if p.weights.size else lo):
        top = max(top, np.float64(p.weights[k]))
    return top


@compiled(**_inner)
def _run_abreast(p, g, stop):
    """Whether the next `LANES` groups are columns with entries for all directions, and of similar length."""
    r, most, total = p.U.shape[1], 0, 0
    if r < 2 or r > MOST_ABREAST or g + LANES > stop:
        return False
    for k in range(g, g + LANES):
        s = _span(p, k)[1]
        if s < r or p.bounds[k + 1] - p.bounds[k] > 1:
            return False
        most, total = max(most, s), total + s
    return most * LANES <= LONGEST * total


@compiled(**_inner)
def _center_and_weigh(p, f, b, begin, count, lane):
    """Take the center off the values in `abreast`, and multiply its rows by sqrt(w_k / top)."""
    for k in range(count):
        for c in range(LANES):
            at = b.firsts[c] + begin + k
            is_there = begin + k < b.counts[c]
            if is_there and p.center.size:
                b.abreast[k, p.U.shape[1], c] -= np.float64(p.center[p.rows[at]])
            b.roots[c] = np.sqrt(p.weights[at] / f.top[lane + c]) if is_there and p.weights.size else 1.0
        for q in range(p.U.shape[1] + 1 if p.weights.size else 0):
            for c in range(LANES):
                b.abreast[k, q, c] *= b.roots[c]


@compiled(**_whole)
def _fill_abreast(p, f, b, g, stop, lane):
    """Put the systems of the `LANES` groups from g on into the lanes from `lane` on."""
    r, most = p.U.shape[1], 0
    for c in range(LANES):
        lo, s = _span(p, g + c)
        b.firsts[c], b.counts[c], most = lo, s, max(most, s)
        f.group[lane + c], f.size[lane + c], f.top[lane + c] = g + c, r, _largest_weight(p, lo, s)
        if g + LANES + c < stop:  # The next ones take turns in memory, which processors do not foresee.
            lo, s = _span(p, g + LANES + c)
            ask_for(p.values, lo, lo + s)
            ask_for(p.rows, lo, lo + s)
    for begin in range(0, most, CHUNK):
        count = min(CHUNK, most - begin)
        gather_abreast(p.U, p.rows, p.values, b.firsts, b.counts, begin, count, b.nothing, b.abreast)
        if p.center.size or p.weights.size:
            _center_and_weigh(p, f, b, begin, count, lane)
        add_products(b.abreast, count, begin == 0, f.L, lane)


@compiled(**_whole)
def _fill_lane(p, f, b, g, c, is_dual):
    """Put the system of group g into lane c, with all of its right-hand sides."""
    r, first, count = p.U.shape[1], p.bounds[g], p.bounds[g + 1] - p.bounds[g]
    lo, s = _span(p, g)
    top, n = _largest_weight(p, lo, s), s if is_dual else r
    f.group[c], f.size[c], f.top[c] = g, n, top
    if is_dual:
        _gather_columns(p, top, lo, s, b.X)
    else:
        _gather_rows(p, top, lo, s, b.X)
    for t in range(count):
        at = p.indptr[p.members[first + t]]
        for k in range(s):
            x = np.float64(p.values[at + k]) - (np.float64(p.center[p.rows[lo + k]]) if p.center.size else 0.0)
            if is_dual:
                f.sides[t, k, c] = x
            else:
                b.X[k, r + t] = x * np.sqrt(p.weights[lo + k] / top) if p.weights.size else x
    _put_gram(b.X, r if is_dual else s, n, n if is_dual else r + count, c, f.L)
    at = 0
    for i in range(n if is_dual else 0):
        f.L[(at + i) * BATCH + c] += 1.0 if p.weights.size == 0 else top / p.weights[lo + i]
        at += i + 1


@compiled(**_inner)
def _take_sides(p, f, count, start, stop):
    """Add the penalties to the lanes from `start` to `stop`, and take out what lies below their triangles."""
    r = p.U.shape[1]
    for c in range(start, stop):
        at = 0
        for i in range(r):
            if p.n_penalised:
                f.L[(at + i) * BATCH + c] += p.penalty[i] / f.top[c]
            at += i + 1
        for t in range(count):
            for i in range(r):
                f.sides[t, i, c] = f.L[(at + i) * BATCH + c]
            at += r + t + 1


@compiled(**_whole)
def _fill_lanes(p, f, b, g, stop):
    """Put the systems of the groups from g on and their right-hand sides into the lanes.

    Returns the first group that is left, the number of lanes, the largest system and the most right-hand sides.
    """
    r, c, largest, most = p.U.shape[1], np.int64(0), 0, 0  # not a constant, for which numba would compile anew
    while g < stop and c < BATCH:
        if c % LANES == 0 and _run_abreast(p, g, stop):
            _fill_abreast(p, f, b, g, stop, c)
            _take_sides(p, f, np.int64(1), c, c + LANES)
            g, c, largest, most = g + LANES, c + LANES, r, max(most, 1)
            continue
        s, count = _span(p, g)[1], p.bounds[g + 1] - p.bounds[g]
        if s == 0 or (s < r and p.n_penalised == 0):
            _settle(p, g, TOO_FEW if s else PRIOR_ONLY if p.n_penalised == r else NO_OBSERVATION)
            g += 1
            continue
        is_dual = s < r and p.n_penalised == r
        _fill_lane(p, f, b, g, c, is_dual)
        if not is_dual:
            _take_sides(p, f, count, c, c + 1)
        g, c, largest, most = g + 1, c + 1, max(largest, f.size[c]), max(most, count)
    return g, c, largest, most


@compiled(**_inner)
def _pad(f, count, n):
    """Rows that change nothing, so that all lanes have n: their pivots are those of row 0."""
    for c in range(BATCH):
        size = f.size[c] if c < count else 0
        for i in range(size, n):
            at = i * (i + 1) // 2
            for k in range(i):
                f.L[(at + k) * BATCH + c] = 0.0
            f.L[(at + i) * BATCH + c] = f.L[c] if size else 1.0
            for t in range(f.sides.shape[0]):
                f.sides[t, i, c] = 0.0


@compiled(any_order=True, **_inner)
def _judge(p, f, b, count, n):
    """Say of every lane what its factor is good for.

    Of few directions, the pivots alone tell whether squaring has cost nothing worth mending: with all of them at least
    0.3 of the diagonal, the smallest eigenvalue of the scaled matrix is at least 0.3^r / e, and in practice far larger.
    Of more, an estimate is needed: z = R^-1 v with v of mixed signs leans towards the weakest direction, and
    |R^-T z| / |z| measures it; the unit is the largest pivot.
    """
    r = p.U.shape[1]
    extremes(f.L, f.inverse, n, b.found)
    estimated = False
    for c in range(count):
        is_dual = f.size[c] < r
        share, largest, smallest = b.found[0, c], b.found[1, c], b.found[2, c]
        sound = share * (SMALL_PIVOT if is_dual or r > FEW_DIRECTIONS else SAFE_PIVOT) < 1
        usable = smallest > LEAST_ROOT * largest and largest * p.floor < 1
        f.state[c] = EASY if sound and largest * p.floor < 1e-3 else USABLE if usable else HARD
        estimated |= f.state[c] == EASY and not is_dual and r > FEW_DIRECTIONS
    if not estimated:
        return
    signs = np.uint64(0x9E3779B97F4A7C15)
    for i in range(n):
        for c in range(BATCH):
            b.Y[i, c] = 1.0 if (signs >> np.uint64(i % 64)) & np.uint64(1) else -1.0
    backward(f.L, f.inverse, n, b.Y)
    for i in range(n):
        for c in range(BATCH):
            b.step[i, c] = b.Y[i, c]
    forward(f.L, f.inverse, n, b.step)
    for c in range(count):
        before = after = 0.0
        for i in range(f.size[c]):
            before += b.Y[i, c] * b.Y[i, c]
            after += b.step[i, c] * b.step[i, c]
        limit = WELL_CONDITIONED * b.found[2, c]
        if f.size[c] == r and not after <= limit * limit * before:
            f.state[c] = min(f.state[c], USABLE)


@compiled(**_inner)
def _expand(p, top, lo, s, a, z):
    """z = Lambda^-1 U_O' a, from the solution of the dual system to the coefficients."""
    r = p.U.shape[1]
    for q in range(r):
        z[q] = 0.0
    for k in range(s):
        for q in range(r):
            z[q] += p.U[p.rows[lo + k], q] * a[k]
    for q in range(r):
        z[q] /= p.penalty[q] / top


@compiled(any_order=True, **_inner)
def _residual(p, i, at, z):
    """x - c - u'z of the entry at place `at`, in row i."""
    total = np.float64(p.values[at]) - (np.float64(p.center[i]) if p.center.size else 0.0)
    for q in range(z.size):
        total -= p.U[i, q] * z[q]
    return total


@compiled(**_inner)
def _put_residual(p, f, b, c, column, lane):
    """Lane c of `step` becomes the right-hand side less the matrix times `a`, from the rows themselves."""
    r, n, top, at = p.U.shape[1], f.size[lane], f.top[lane], p.indptr[column]
    lo, s = _span(p, f.group[lane])
    if n < r:
        _expand(p, top, lo, s, b.a, b.z)
        for k in range(s):
            noise = top / p.weights[lo + k] if p.weights.size else 1.0
            b.step[k, c] = _residual(p, p.rows[lo + k], at + k, b.z) - noise * b.a[k]
    else:
        for q in range(r):
            b.z[q] = -p.penalty[q] / top * b.a[q]
        for k in range(s):
            i = p.rows[lo + k]
            factor = _residual(p, i, at + k, b.a[:r]) * (p.weights[lo + k] / top if p.weights.size else 1.0)
            for q in range(r):
                b.z[q] += p.U[i, q] * factor
        for q in range(r):
            b.step[q, c] = b.z[q]
    for i in range(n, b.step.shape[0]):
        b.step[i, c] = 0.0


@compiled(any_order=True, **_inner)
def _add_step(n, most, b, c):
    """Add lane c of `step` to `a`; False if it is too large to be a correction."""
    moved = size = 0.0
    for i in range(n):
        moved += b.step[i, c] * b.step[i, c]
        size += b.a[i] * b.a[i]
        b.a[i] += b.step[i, c]
    return moved <= most * most * size and size < np.inf


@compiled(**_inner)
def _read_lane(Y, n, c, a):
    """a = lane c of Y; True if all of it is finite."""
    total = 0.0
    for i in range(n):
        a[i] = Y[i, c]
        total += 0.0 * a[i]
    return total == 0.0


@compiled(**_inner)
def _answer(p, f, b, factors, n, only, first, count):
    """Solve for `count` right-hand sides, side by side: one of every lane, or of `only` one lane those from `first` on.

    In the second case `factors` are the factor of that lane in all lanes.
    """
    L, inverse = factors
    r, to_correct = p.U.shape[1], False
    for i in range(n):
        for c in range(count):
            b.Y[i, c] = f.sides[first + c, i, only] if only >= 0 else f.sides[0, i, c]
    forward(L, inverse, n, b.Y)
    backward(L, inverse, n, b.Y)
    for c in range(count):
        lane, t = (only, first + c) if only >= 0 else (c, 0)
        if f.state[lane] == USABLE:
            _read_lane(b.Y, f.size[lane], c, b.a)
            _put_residual(p, f, b, c, p.members[p.bounds[f.group[lane]] + t], lane)
            to_correct = True
    if to_correct:
        forward(L, inverse, n, b.step)
        backward(L, inverse, n, b.step)
    for c in range(count):
        lane, t = (only, first + c) if only >= 0 else (c, 0)
        column, size = p.members[p.bounds[f.group[lane]] + t], f.size[lane]
        good = _read_lane(b.Y, size, c, b.a) and f.state[lane] != HARD
        if good and f.state[lane] == USABLE:
            good = _add_step(size, MENDED_DUAL if size < r else MENDED, b, c)
        if not good:
            p.status[column] = UNSETTLED
            continue
        lo, s = _span(p, f.group[lane])
        p.status[column] = SOLVED if s >= r else PRIOR
        if size < r:
            _expand(p, f.top[lane], lo, s, b.a, b.z)
        for q in range(r):
            p.Z[column, q] = b.z[q] if size < r else b.a[q]


@compiled(**_inner)
def _spread(f, b, c, n):
    """Put the factor of lane c into all lanes."""
    for i in range(n * (n + 1) // 2):
        for k in range(BATCH):
            b.spread_L[i * BATCH + k] = f.L[i * BATCH + c]
    for i in range(n):
        for k in range(BATCH):
            b.spread_inverse[i * BATCH + k] = f.inverse[i * BATCH + c]


@compiled(_nrt=False)
def solve_groups(p, f, b, start, stop):
    """Solve the columns of the groups ``start <= g < stop`` of a `Problem`, in the memory of a `workspace`."""
    g = start
    while g < stop:
        g, count, n, most = _fill_lanes(p, f, b, g, stop)
        if count == 0:
            return
        n = (n + 1) // 2 * 2
        _pad(f, count, n)
        factor(f.L, f.inverse, n)
        _judge(p, f, b, count, n)
        for c in range(count if most > 1 else 1):
            size, factors = count, (f.L, f.inverse)
            if most > 1:  # the right-hand sides of one lane after the other
                size, factors = p.bounds[f.group[c] + 1] - p.bounds[f.group[c]], (b.spread_L, b.spread_inverse)
                _spread(f, b, c, n)
            for first in range(0, size, BATCH):
                _answer(p, f, b, factors, n, c if most > 1 else -1, first, min(BATCH, size - first))


@compiled()
def residuals(U, Z, offsets, indptr, rows, values, first, last, result):
    """result[k] = x - z_j' u_i - offsets[j] for every entry k = (i, j), j in first:last; U is m x r, Z is n x r."""
    for j in range(first, last):
        take_off(U, rows, indptr[j], indptr[j + 1] - indptr[j], Z, j, offsets[j], values, result)


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
