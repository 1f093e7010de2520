"""Full columns that are hidden in turn but for a few entries: of what is then unknown of them, all is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...data.observations import Observations

FULL_CELLS = 1_000_000  # Cells of the full columns that are used, in fewer rows if there are more.
_MOST_ENTRIES = 100  # Entries that are left of a hidden column, at most.
DRAWS = 3  # Draws of the entries that are left.


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


def some_of_the_full(o: Observations, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Some of the full columns in some rows, evenly chosen: the rows, float64 values, and weights if any."""
    m, full = o.shape[0], o.full_columns
    full = full[np.linspace(0, full.size - 1, min(full.size, most)).astype(int)]
    rows = np.linspace(0, m - 1, min(m, FULL_CELLS // max(1, full.size))).astype(int)
    at = o.indptr[full] + rows[:, None]
    return rows, o.values[at].astype(np.float64), None if o.weights is None else o.weights[at].astype(np.float64)


def hidden_in_turn(A, weights, counts, n_folds: int, most: int, rng) -> Iterator[Hidden]:
    """Some columns of A in folds, each column with one of the numbers of entries at random rows."""
    for fold in np.array_split(rng.permutation(A.shape[1])[:most], n_folds):
        truth = np.tile(A[:, fold], DRAWS)
        n_seen = np.minimum(rng.choice(counts, truth.shape[1]), min(_MOST_ENTRIES, A.shape[0] - 1))
        is_seen = rng.random(truth.shape).argsort(axis=0) < n_seen
        of_seen = None if weights is None else np.tile(weights[:, fold], DRAWS)
        seen = Observations.from_dense(np.where(is_seen, truth, np.nan), weights=of_seen)
        yield Hidden(np.delete(A, fold, axis=1), truth, seen)


def offset_beside(space, rows, A) -> float:
    """How much more than in the full columns the entries of a column may move together, as `with_offset` has it."""
    center = 0.0 if space.center is None else A.mean(axis=1, keepdims=True)
    together = A.shape[0] * np.mean((A - center).mean(axis=0) ** 2)
    in_the_prior = ((space.basis[rows].sum(axis=0, dtype=np.float64)) ** 2 * space.variances).sum() / rows.size
    everything = np.mean((A - center) ** 2) * A.shape[0]
    return float(max(0.0, in_the_prior - together) / everything) if everything else 0.0
