"""The columns that the kernel leaves unsettled, by Householder QR with column pivoting, compiled.

It squares nothing, scales what might overflow, and decides whether the rows of a column determine it at all.
"""

from __future__ import annotations

import numpy as np

from ..._support.compiling import compiled
from .problem import OVERFLOW, PRIOR, SOLVED, UNDETERMINED, UNSETTLED

_inner = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


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


@compiled()
def solve_stably(p, start, stop):
    """Solve the unsettled columns of the groups ``start <= g < stop`` of a `Problem`.

    By QR of sqrt(W) U_O with sqrt(Lambda) below it, in units of the largest weight.
    """
    r = p.U.shape[1]
    z = np.empty(r)
    for k in range(p.bounds[start], p.bounds[stop]):
        j = p.members[k]
        if p.status[j] != UNSETTLED:
            continue
        lo, s = p.indptr[j], p.indptr[j + 1] - p.indptr[j]
        B, b, top = np.zeros((s + r, r)), np.zeros(s + r), 0.0 if p.weights.size else 1.0
        for i in range(lo, lo + s if p.weights.size else lo):
            top = max(top, np.float64(p.weights[i]))
        for i in range(s):
            row, root = p.rows[lo + i], np.sqrt(p.weights[lo + i] / top) if p.weights.size else 1.0
            b[i] = root * (np.float64(p.values[lo + i]) - (np.float64(p.center[row]) if p.center.size else 0.0))
            for q in range(r):
                B[i, q] = root * p.U[row, q]
        for q in range(r):
            B[s + q, q] = np.sqrt(p.penalty[q] / top)
        code = _solve_by_qr(B, b, p.floor, z)
        p.status[j] = code if code != SOLVED or s >= r else PRIOR
        for q in range(r):
            p.Z[j, q] = z[q] if code == SOLVED else np.nan
