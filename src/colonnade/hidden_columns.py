"""Full columns that are hidden in turn but for a few entries: of what is then unknown of them, all is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .observations import Observations

_CELLS = 1_000_000  # of the full columns, in fewer rows if need be
DRAWS = 3  # of entries of each hidden column


class Hidden(NamedTuple):
    """Some full columns that are hidden.

    Attributes
    ----------
    others : array of shape (m, d - h)
        The full columns that are not.
    truth : array of shape (m, DRAWS h)
        Those that are, as often as entries of them are drawn.
    seen : Observations
        Of shape (m, DRAWS h): the entries drawn.
    """

    others: np.ndarray
    truth: np.ndarray
    seen: Observations


def some_of_the_full(o: Observations, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many of the full columns in some rows, evenly chosen: the rows, and a float64 array."""
    m, full = o.shape[0], o.full_columns
    full = full[np.linspace(0, full.size - 1, min(full.size, most)).astype(int)]
    rows = np.linspace(0, m - 1, min(m, _CELLS // max(1, full.size))).astype(int)
    A = np.empty((rows.size, full.size))
    for k, j in enumerate(full):
        A[:, k] = o.values[o.indptr[j] : o.indptr[j + 1]][rows]
    return rows, A


def hidden_in_turn(A, counts, n_folds: int, most: int, rng) -> Iterator[Hidden]:
    """At most so many of the columns of A, in folds, each with one of the numbers of entries at random rows."""
    for fold in np.array_split(rng.permutation(A.shape[1])[:most], n_folds):
        truth = np.tile(A[:, fold], DRAWS)
        n_seen = np.minimum(rng.choice(counts, truth.shape[1]), A.shape[0] - 1)
        is_seen = rng.random(truth.shape).argsort(axis=0) < n_seen
        yield Hidden(np.delete(A, fold, axis=1), truth, Observations.from_dense(np.where(is_seen, truth, np.nan)))
