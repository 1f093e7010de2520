"""Compiled medians of groups of numbers that stand together."""

from __future__ import annotations

import numpy as np

from ..._support.compiling import compiled


@compiled()
def group_medians(lo, hi, begins, values, result):
    """Medians of groups lo to hi, written to `result`; 0 for a group without numbers."""
    for g in range(lo, hi):
        count = begins[g + 1] - begins[g]
        if count == 0:
            result[g] = 0.0
            continue
        ordered = np.sort(values[begins[g] : begins[g + 1]])
        result[g] = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
