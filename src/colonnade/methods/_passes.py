"""Passes over the whole matrix, block by block: for the methods that may read everything."""

from __future__ import annotations

import numpy as np

from .._support.numbers import BLOCK_CELLS, unit_of
from ..data.sources import Source


class Passes:
    """A source that is read from end to end several times; `progress` hears of every block.

    Parameters
    ----------
    source : Source
    total : int
        How many passes there will be.
    progress : function or None

    Attributes
    ----------
    unit : float
        A power of two near the largest entry, known after the first pass; norms and projections are measured in it.
    """

    def __init__(self, source: Source, total: int, progress=None):
        self.source, self.progress = source, progress
        self.done, self.total = 0, total * source.shape[1]
        self.unit = 1.0

    def _blocks(self):
        m, n = self.source.shape
        step = max(1, BLOCK_CELLS // m)
        for lo in range(0, n, step):
            which = np.arange(lo, min(lo + step, n))
            yield which, self.source.columns(which).astype(np.float64, copy=False)
            self.done += which.size
            if self.progress is not None:
                self.progress(self.done, self.total)

    def residual_norms(self, Q) -> np.ndarray:
        """|m_j - Q Q'm_j| of all columns, shape (n,), for an orthonormal Q of shape (m, k)."""
        largest, norms = (np.empty(self.source.shape[1]) for _ in range(2))
        for which, X in self._blocks():
            largest[which] = np.abs(X).max(axis=0)
            X = X / np.where(largest[which] > 0, largest[which], 1.0)
            X = X - Q @ (Q.T @ X) if Q.shape[1] else X
            norms[which] = np.sqrt(np.einsum("ij,ij->j", X, X))
        self.unit = unit_of(largest)
        return norms * (largest / self.unit)

    def projection(self, Q) -> np.ndarray:
        """Q'M, shape (k, n)."""
        return np.hstack([Q.T @ (X / self.unit) for _, X in self._blocks()])
