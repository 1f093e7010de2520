"""The table of answers as the estimates need it: dense, on the unit scale, known models told from new ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._support.printable import counted
from ...data.observations import Observations
from .answer_scale import AnswerScale, answer_scale

FEWEST_KNOWN = 3  # Models from which questions can be learned at all.
_KNOWN_SHARE = 0.5  # Of the answers of the fullest column; columns with more are known models.


@dataclass(frozen=True)
class Answers:
    """Y (m, n) on the unit scale, 0 in gaps; weights (m, n), 0 in gaps; `known` are the columns to learn from."""

    Y: np.ndarray
    weights: np.ndarray
    scale: AnswerScale
    known: np.ndarray

    @property
    def seen(self) -> np.ndarray:
        return self.weights > 0

    @property
    def full(self) -> np.ndarray:
        """Which columns have no gap, shape (n,)."""
        return self.seen.all(axis=0)


def well_answered(o: Observations) -> np.ndarray:
    """Columns with more than half as many answers as the fullest."""
    return np.flatnonzero(o.n_observed > _KNOWN_SHARE * o.n_observed.max(initial=0))


def as_answers(observations: Observations, known=None) -> Answers:
    """Known models are given, or those with more than half as many answers as the fullest column."""
    o = observations
    known = well_answered(o) if known is None else known
    if known.size < FEWEST_KNOWN:
        raise ValueError(
            f"{counted(known.size, 'known model')} cannot tell others; three are the fewest:"
            " add models that answered more than half of the questions"
        )
    scale = answer_scale(o.values.astype(np.float64))
    Y, weights = np.zeros(o.shape), np.zeros(o.shape)
    Y[o.rows, o.entry_columns] = scale.to_unit(o.values)
    weights[o.rows, o.entry_columns] = 1.0 if o.weights is None else o.weights / np.mean(o.weights)
    return Answers(Y, weights, scale, np.asarray(known))
