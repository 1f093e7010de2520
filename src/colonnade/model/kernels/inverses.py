"""Inverse of a symmetric positive definite matrix and solution of one system with it, in one pass.

The sweep operator on the lower triangle: after a sweep over pivot k,

    a_ij - a_ik a_kj / a_kk,     a_ik / a_kk,     -1 / a_kk

stand at (i, j), (i, k) and (k, k). After all pivots the matrix is minus its inverse. A right-hand side that is stored
as one more row becomes the solution. `BLOCK` pivots are applied at a time, so that each number of the triangle is
loaded and stored once for `BLOCK` multiplications. All loops run over whole vectors of `PAD` numbers.
"""

from __future__ import annotations

import math

import numpy as np

from ..._support.compiling import compiled

BLOCK = 4  # Pivots applied at a time; 8 need more registers than there are.
PAD = 8  # Numbers in a cache line, and in the longest vector.
_ROUNDING = 1e-15  # Share of the largest diagonal entry below which a pivot is rounding.

# Called by kernels only, which compiles faster. All but `workspace` allocate no memory and need no references counted.
_inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


@compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def workspace(r):
    """Zeros for `sweep`: the matrix with the right-hand side as row r, and three panels of `BLOCK` pivot rows."""
    width = (r + PAD) // PAD * PAD
    return np.zeros((r + 1, width)), np.zeros((3, BLOCK, width))


@compiled(**_inner)
def _apply(A, panel, scaled):
    """A -= scaled' panel in the lower triangle, two rows at a time; what stands beyond the diagonal is never read."""
    last = A.shape[0]
    p0, p1, p2, p3 = panel[0], panel[1], panel[2], panel[3]
    for a in range(0, last - 1, 2):
        f0, f1, f2, f3 = -scaled[0, a], -scaled[1, a], -scaled[2, a], -scaled[3, a]
        g0, g1, g2, g3 = -scaled[0, a + 1], -scaled[1, a + 1], -scaled[2, a + 1], -scaled[3, a + 1]
        first, second = A[a], A[a + 1]
        for b in range((a + 1 + PAD) // PAD * PAD):
            first[b] = first[b] + f0 * p0[b] + f1 * p1[b] + f2 * p2[b] + f3 * p3[b]
            second[b] = second[b] + g0 * p0[b] + g1 * p1[b] + g2 * p2[b] + g3 * p3[b]
    if last % 2:
        a = last - 1
        f0, f1, f2, f3 = -scaled[0, a], -scaled[1, a], -scaled[2, a], -scaled[3, a]
        first = A[a]
        for b in range((a + PAD) // PAD * PAD):
            first[b] = first[b] + f0 * p0[b] + f1 * p1[b] + f2 * p2[b] + f3 * p3[b]


@compiled(**_inner)
def _sweep_panel(current, panel, scaled, k, count, floor):
    """Sweep rows k : k + count of the matrix, held in `current`, over each other; returns the sum of log pivots."""
    width, total = current.shape[1], 0.0
    for t in range(count):
        c = k + t
        pivot = max(current[t, c], floor)
        total += math.log(pivot)
        inverse = 1.0 / pivot
        for b in range(width):
            panel[t, b] = current[t, b]
            scaled[t, b] = current[t, b] * inverse
        for s in range(count):
            if s != t:
                factor = current[s, c]
                for b in range(width):
                    current[s, b] -= factor * scaled[t, b]
                current[s, c] = factor * inverse
        for b in range(width):
            current[t, b] = scaled[t, b]
        current[t, c] = -inverse
    return total


@compiled(**_inner)
def sweep(A, panels):
    """Replace the lower triangle of A[:r] by minus the inverse and row r by the solution; returns log det A.

    Pivots that rounding has used up are replaced by rounding itself, as a slightly stronger prior would.
    """
    r = A.shape[0] - 1
    current, panel, scaled = panels[0], panels[1], panels[2]
    largest, total = 0.0, 0.0
    for k in range(r):
        largest = max(largest, A[k, k])
    for k in range(0, r, BLOCK):
        count = min(BLOCK, r - k)
        for t in range(count):
            c = k + t
            for b in range(c):
                current[t, b] = A[c, b]
            for a in range(c, r + 1):
                current[t, a] = A[a, c]
        for t in range(count, BLOCK):
            for b in range(scaled.shape[1]):
                scaled[t, b] = 0.0
        total += _sweep_panel(current, panel, scaled, k, count, _ROUNDING * largest)
        _apply(A, panel, scaled)
        for t in range(count):
            c = k + t
            for b in range(c + 1):
                A[c, b] = current[t, b]
            for a in range(c, r + 1):
                A[a, c] = current[t, a]
    return total
