"""Symmetric matrices of shape (q, q) as their lower triangles: q (q + 1) / 2 numbers, row after row."""

from __future__ import annotations

import numpy as np


def as_int64(*places) -> tuple[np.ndarray, ...]:
    """The same places in the one type for which the kernels are compiled."""
    return tuple(np.asarray(at, np.int64) for at in places)


def diagonal(r: int) -> np.ndarray:
    """Where the first r diagonal entries stand in a packed matrix."""
    k = np.arange(r)
    return k * (k + 3) // 2


def unpacked(packed, q: int) -> np.ndarray:
    """The symmetric matrix of shape (q, q) whose lower triangle is `packed`."""
    full = np.zeros((q, q))
    full[np.tril_indices(q)] = packed
    return full + np.tril(full, -1).T


def unpacked_all(packed, q: int) -> np.ndarray:
    """Symmetric matrices of shape (q, q), one for each packed row."""
    full, (a, b) = np.empty((packed.shape[0], q, q)), np.tril_indices(q)
    full[:, a, b] = packed
    full[:, b, a] = packed
    return full
