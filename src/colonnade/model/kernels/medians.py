"""Compiled medians of groups of numbers that stand together."""

from __future__ import annotations

import numpy as np

from ..._support.compiling import compiled


@compiled(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _place_smallest(x, count, k):
    """Order x[:count] so that x[k] is its k-th smallest number, with none larger before it (Hoare's selection).

    `numpy.sort` would do too, but numba needs a second to compile it.
    """
    lo, hi = 0, count - 1
    while lo < hi:
        pivot = x[(lo + hi) // 2]
        i, j = lo, hi
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            return


@compiled()
def group_medians(lo, hi, begins, values, result):
    """Medians of groups lo to hi, written to `result`; 0 for a group without numbers."""
    longest = 0
    for g in range(lo, hi):
        longest = max(longest, begins[g + 1] - begins[g])
    x = np.empty(longest)
    for g in range(lo, hi):
        count = begins[g + 1] - begins[g]
        result[g] = 0.0
        if count == 0:
            continue
        for k in range(count):
            x[k] = values[begins[g] + k]
        half = count // 2
        _place_smallest(x, count, half)
        result[g] = x[half]
        if count % 2 == 0:
            below = x[0]
            for k in range(1, half):
                below = max(below, x[k])
            result[g] = (below + x[half]) / 2
