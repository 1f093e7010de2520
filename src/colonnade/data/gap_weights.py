"""Weights of hidden entries that stand for the gaps of a table: the number of gaps for each of them.

Rows and columns have gaps in different shares. If entries of row i and column j are seen with odds a_i b_j, a
hidden entry stands for 1 / (a_i b_j) gaps. Errors that are weighted so are those to be expected in the gaps (weighted
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
    """Weights of known entries at (rows[k], columns[k]) that are hidden together.

    A hidden entry counts as what it is while it is hidden: a gap among the entries that its row and column have left.
    All weights are 1 where a few of them would count for all.
    """
    m, n = o.shape
    in_row = np.bincount(o.rows, minlength=m) - np.bincount(rows, minlength=m)
    in_column = o.n_observed - np.bincount(columns, minlength=n)
    share = 1 - (o.values.size - rows.size) / (m * n)
    weights = _odds(in_row[rows], n, share) * _odds(in_column[columns], m, share)
    if weights.sum() ** 2 < _FEW * (weights**2).sum() or not weights.any():
        return np.ones(weights.size)
    return weights
