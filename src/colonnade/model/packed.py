"""Symmetric matrices of shape (q, q) as their lower triangles: q (q + 1) / 2 numbers, row after row."""

from __future__ import annotations

from functools import cache

import numpy as np


def as_int64(*places) -> tuple[np.ndarray, ...]:
    """The same places in the one type for which the kernels are compiled."""
    return tuple(np.asarray(at, np.int64) for at in places)


def diagonal(r: int) -> np.ndarray:
    """Where the first r diagonal entries stand in a packed matrix."""
    k = np.arange(r)
    return k * (k + 3) // 2


@cache
def places(q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row and column of every number of a packed matrix, and where each number of the whole one stands in it."""
    a, b = np.tril_indices(q)
    whole = np.empty((q, q), np.int64)
    whole[a, b] = whole[b, a] = np.arange(a.size)
    return a, b, whole


def unpacked(packed, q: int) -> np.ndarray:
    """The symmetric matrix of shape (q, q) whose lower triangle is `packed`."""
    return packed[places(q)[2]]


def unpacked_all(packed, q: int) -> np.ndarray:
    """Symmetric matrices of shape (q, q), one for each packed row."""
    return np.take(packed, places(q)[2], axis=1)
