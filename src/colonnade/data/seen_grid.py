"""The coverage of a matrix: which parts of it were seen, as a small grid of shares and as characters."""

from __future__ import annotations

import numpy as np

from .._support.numbers import BLOCK_CELLS
from .observations import Observations

SHADES, PLAIN_SHADES = " ░▒▓█", " .:*#"


def seen_shares(observations: Observations, n_rows: int = 60, n_columns: int = 120) -> np.ndarray:
    """The share of entries seen in each cell of a grid laid over the matrix, its columns sorted, the fullest first.

    Parameters
    ----------
    observations : Observations
        Of an m x n matrix.
    n_rows, n_columns : int
        The most cells of the grid.

    Returns
    -------
    array of shape (min(n_rows, m), min(n_columns, n))
    """
    return seen_shares_of_parts([observations], observations.shape, observations.n_observed, n_rows, n_columns)


def seen_shares_of_parts(parts, shape, n_observed, n_rows: int, n_columns: int) -> np.ndarray:
    """The same for a matrix whose columns come in several observations, one after the other."""
    m, n = shape
    R, C = min(n_rows, m), min(n_columns, n)
    place = np.empty(n, np.int64)
    place[np.argsort(-n_observed, kind="stable")] = np.arange(n)
    seen, first = np.zeros(R * C), 0
    for o in parts:
        step = max(1, BLOCK_CELLS // max(1, int(o.n_observed.max(initial=1))))
        for lo in range(0, o.shape[1], step):
            indptr = o.indptr[lo : lo + step + 1]
            here = place[first + lo : first + lo + indptr.size - 1]
            columns = np.repeat(here * C // n, np.diff(indptr))
            rows = o.rows[indptr[0] : indptr[-1]].astype(np.int64) * R // m
            seen += np.bincount(rows * C + columns, minlength=R * C)
        first += o.shape[1]
    return seen.reshape(R, C) / np.outer(_sizes(m, R), _sizes(n, C))


def _sizes(n: int, k: int) -> np.ndarray:
    """How many of n numbers i have each value of i k // n."""
    edges = -(-np.arange(k + 1) * n // k)  # Rounded up.
    return np.diff(edges)


def as_characters(shares: np.ndarray, shades: str = SHADES) -> list[str]:
    """A line for every row of the grid; only what was not seen at all is blank, only what was seen in full is solid."""
    last = len(shades) - 1
    inner = 1 + np.minimum((shares * (last - 1)).astype(int), last - 2)
    levels = np.where(shares <= 0, 0, np.where(shares >= 1, last, inner))
    return ["".join(shades[k] for k in row) for row in levels]
