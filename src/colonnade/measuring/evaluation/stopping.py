"""Ask question by question until the interval is narrow enough.

The questions come in random order, and before each answer the known models and the answers so far predict it. With
|R| questions left, the answer to one drawn at random from them gives an unbiased estimate of the score,

    t = (sum of answers + sum of predictions for the rest + |R| (answer - prediction)) / m,

whatever was answered before. The mean of these estimates is a martingale, so its interval holds at all times at once if
it is made for that: the boundary is the normal mixture of Robbins (Waudby-Smith et al., Annals of Statistics 52, 2024),
valid asymptotically at any stopping time. One may look after every answer and stop when one likes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._support.arguments import as_count, as_generator, as_indices, as_real
from ...data.observations import as_observations
from .ability import predict
from .answers import as_answers
from .item_model import fit_item_model

_FEWEST = 20  # Answers before the first interval: the boundary is asymptotic.
_SURPRISE = 1.0  # Squared residuals, in units of the dispersion, that are added: a few right answers prove little.


@dataclass(frozen=True)
class Reached:
    """Score, its interval at this stopping time, and the number of answers."""

    score: float
    low: float
    high: float
    n_answers: int


class AdaptiveEvaluation:
    """A running evaluation; see `adaptive`. Iterate over it for the rows to ask, and call `tell` with each answer."""

    def __init__(self, model, half_width, level, best_at, order):
        self._model, self._half_width, self._level, self._best_at = model, half_width, level, best_at
        m = len(model.loadings)
        self._order = np.asarray(order, np.int64)
        self._Y, self._weights = np.zeros((m, 1)), np.zeros((m, 1))
        self._predicted = self._predict()
        self._estimates, self._squares, self._sizes = [], [], []

    @property
    def n_answers(self) -> int:
        return len(self._estimates)

    @property
    def done(self) -> bool:
        """Whether the interval is narrow enough, or every question was asked."""
        if self.n_answers == self._order.size:
            return True
        result = self.result()
        return self.n_answers >= _FEWEST and result.high - result.low <= 2 * self._half_width

    def __iter__(self):
        while not self.done:
            yield int(self._order[self.n_answers])

    def tell(self, row: int, answer: float) -> None:
        """The answer to the row that was asked last."""
        if self.n_answers == self._order.size:
            raise ValueError("every question has been answered")
        asked = int(self._order[self.n_answers])
        if int(as_indices("row", [row], self._order.size)[0]) != asked:
            raise ValueError(f"row {row} was not asked; the question to answer is row {asked}")
        y = float(self._model.scale.to_unit(as_real("answer", answer)))
        m, left = self._order.size, self._order.size - self.n_answers
        seen = self._weights[:, 0] > 0
        residual = y - self._predicted[asked]
        base = self._Y[seen, 0].sum() + self._predicted[~seen].sum()
        self._estimates.append((base + left * residual) / m)
        self._squares.append((left / m * residual) ** 2)
        self._Y[asked], self._weights[asked] = y, 1.0
        self._predicted = self._predict()

    def _predict(self) -> np.ndarray:
        return predict(self._model, self._Y, self._weights).mean[:, 0]

    def result(self) -> Reached:
        """Score and interval now; before 20 answers the interval is the whole scale."""
        n, scale = self.n_answers, self._model.scale
        ends = (0.0, 1.0) if scale.bounded else (-np.inf, np.inf)
        if n == self._order.size:
            score = float(self._Y.mean())
            return Reached(*(float(scale.from_unit(x)) for x in (score, score, score)), n)
        score = float(np.mean(self._estimates)) if n else float(self._predicted.mean())
        if n >= _FEWEST:
            variance = (np.sum(self._squares) + _SURPRISE * self._model.dispersion) / n
            half = float(np.sqrt(variance)) * mixture_boundary(n, 1 - self._level, self._best_at)
            ends = (max(ends[0], score - half), min(ends[1], score + half))
        score = float(np.clip(score, *ends))
        return Reached(*(float(scale.from_unit(x)) for x in (score, *ends)), n)


def mixture_boundary(n: int, alpha: float, best_at: int) -> float:
    """Half width of the confidence sequence for a mean of n terms of variance 1; narrowest near n = `best_at`."""
    rho2 = (-2 * np.log(alpha) + np.log(-2 * np.log(alpha) + 1)) / best_at
    return float(np.sqrt((n * rho2 + 1) / (n**2 * rho2) * np.log((n * rho2 + 1) / alpha**2)))


def adaptive(
    data, half_width: float = 0.03, *, level: float = 0.9, best_at: int = 200, known=None, random_state=None
) -> AdaptiveEvaluation:
    """Ask a new model one question after the other until its score is known well enough.

    Parameters
    ----------
    data : Observations, array or data frame of shape (m, n)
        Questions as rows, known models as columns.
    half_width : float
        Half width of the interval at which to stop, in the unit of the answers.
    level : float
        Probability with which the intervals hold the score at all times together.
    best_at : int
        Number of answers for which the interval is made narrowest; a guess is good enough.
    known
        As in `select`.
    random_state : None, int or numpy Generator
        Order of the questions; None is the same every time.

    Returns
    -------
    AdaptiveEvaluation

    Examples
    --------
    >>> import numpy as np, colonnade as co
    >>> rng = np.random.default_rng(0)
    >>> answers = (rng.random((400, 12)) < np.linspace(0.3, 0.8, 12)).astype(float)
    >>> evaluation = co.evaluation.adaptive(answers[:, :11], 0.1)
    >>> for row in evaluation:
    ...     evaluation.tell(row, answers[row, 11])
    >>> result = evaluation.result()
    >>> bool(result.high - result.low <= 0.2)
    True
    """
    start = prepared(data, half_width, level=level, best_at=best_at, known=known)
    rng = as_generator(0 if random_state is None else random_state)
    return start(rng.permutation(as_observations(data).shape[0]))


def prepared(data, half_width: float, *, level: float, best_at: int, known=None):
    """A function of a random order of the rows that gives the evaluation; parameters as of `adaptive`."""
    o = as_observations(data)
    half_width = as_real("half_width", half_width, 0, ends="()")
    level = as_real("level", level, 0, 1, "()")
    best_at = as_count("best_at", best_at, 1)
    answers = as_answers(o, None if known is None else np.unique(as_indices("known", known, o.shape[1])))
    model = fit_item_model(answers.Y[:, answers.known], answers.weights[:, answers.known], answers.scale)
    return lambda order: AdaptiveEvaluation(model, half_width / answers.scale.width, level, best_at, order)
