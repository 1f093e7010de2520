"""For how many unseen entries a known one stands: its weight where known entries speak for the gaps of a table.

Rows and columns have gaps in different shares. If entries of row i and column j are seen with odds a_i b_j, a known
entry stands for 1 / (a_i b_j) unseen ones. Errors that are weighted so are those to be expected in the gaps (weighted
conformal prediction: Tibshirani et al. 2019).
"""

from __future__ import annotations

import numpy as np

from .observations import Observations

_PRIOR = 10.0  # Entries that the share of gaps in the whole table is worth in a row or column.
_FEW = 20  # Entries that the weights are worth at least: fewer have no 95 % quantile.


def _odds(seen, size: int, share: float) -> np.ndarray:
    """Odds of a gap where `seen` of `size` entries are known, shrunk to the share of gaps in the table."""
    gaps = size - seen + _PRIOR * share
    return gaps / (size + _PRIOR - gaps)


def gap_weights(o: Observations, rows, columns) -> np.ndarray:
    """Weights of known entries at (rows[k], columns[k]); all 1 where a few of them would count for all."""
    (m, n), seen = o.shape, np.bincount(o.rows, minlength=o.shape[0])
    share = 1 - o.values.size / (m * n)
    weights = _odds(seen[rows], n, share) * _odds(o.n_observed[columns], m, share)
    if weights.sum() ** 2 < _FEW * (weights**2).sum() or not weights.any():
        return np.ones(weights.size)
    return weights
