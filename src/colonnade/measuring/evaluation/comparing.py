"""The difference of two models: its interval, the chance that one beats the other, and how many questions decide it.

Questions that both answered are compared in pairs: the common part of the residuals cancels. With parts b_A e_A and
b_B e_B of the two corrections, the variance of the difference is v_A + v_B less twice the sum of
their products over common questions. Two models alone, or two that answered everything, are compared by their common
questions only (`pairs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature

import numpy as np
from scipy import stats

from ..._support.arguments import as_places, as_real
from ..._support.html import html_lines
from ...data.observations import as_observations
from .answers import FEWEST_KNOWN, well_answered
from .pairs import PairedDifference, paired_difference
from .scoring import Scores, score
from .tasks import as_clusters, as_tasks

_FEWEST_MORE = 1  # A decision needs at least one more question where the interval still holds 0.


@dataclass(frozen=True)
class Comparison:
    """Model `a` less model `b`.

    Attributes
    ----------
    a, b : str
    difference, low, high : float
        In the unit of the answers.
    standard_error : float
        0 if both answered every question.
    more_questions : int or None
        How many more questions both must answer until the interval of a difference like this leaves 0; 0 if it does
        already, None if all questions would not suffice.
    other_low, other_high, other_a_beats_b : float or None
        Interval of the difference and P(a beats b) over other questions of the same kind, where both models answered
        every question of these; None elsewhere.
    """

    a: str
    b: str
    difference: float
    low: float
    high: float
    level: float
    standard_error: float
    freedom: float
    n_common: int
    more_questions: int | None
    other_low: float | None = None
    other_high: float | None = None
    other_a_beats_b: float | None = None

    def probability_of_drop(self, drop: float = 0.0) -> float:
        """P(a is worse than b by more than `drop`), in the unit of the answers."""
        drop = as_real("drop", drop)
        if self.standard_error == 0 and drop != 0:
            return float(self.difference < -drop)
        return self._below(-drop)

    @property
    def a_beats_b(self) -> float:
        """P(a is better than b); 0.5 if they are known to be equal."""
        return 1 - self._below(0.0)

    def _below(self, limit: float) -> float:
        if self.standard_error == 0:
            return 0.5 if self.difference == limit else float(self.difference < limit)
        return float(stats.t.cdf((limit - self.difference) / self.standard_error, self.freedom))

    def __str__(self) -> str:
        if self.other_low is not None:
            return (
                f"{self.a} less {self.b}: {self.difference:+.4f}, exactly, because both answered every question. For"
                f" other questions of the same kind: {self.level:.0%} interval {self.other_low:+.4f} to"
                f" {self.other_high:+.4f}, P({self.a} beats {self.b}) = {self.other_a_beats_b:.2f}."
            )
        decided = (
            "The difference is decided."
            if self.more_questions == 0
            else "All questions would not decide it."
            if self.more_questions is None
            else f"About {self.more_questions:,} more questions to both would decide it."
        )
        return (
            f"{self.a} less {self.b}: {self.difference:+.4f}, {100 * self.level:.3g} % interval {self.low:+.4f} to"
            f" {self.high:+.4f}. P({self.a} beats {self.b}) = {self.a_beats_b:.2f}. {decided}"
        )

    def _repr_html_(self) -> str:
        return html_lines([self])


def compare(data, a, b, *, level: float = 0.9, **options) -> Comparison:
    """Compare two models.

    Models with gaps are compared by their scores, so three models must be known. With fewer, the questions that both
    answered count as a random draw. The difference of two models that answered everything is exact, and has an interval
    for other questions of the same kind.

    Parameters
    ----------
    data : Scores, Observations, array or data frame of shape (m, n)
        What `score` returned, or its data.
    a, b : int or str
        Columns, by number or name.
    level : float
        Probability with which the interval holds the difference.
    **options
        Passed to `score` if `data` is a table.

    Returns
    -------
    Comparison
    """
    level = as_real("level", level, 0, 1, "()")
    if isinstance(data, Scores):
        found, o, tasks, clusters = data, data.observations, data.population, data.clusters
    else:
        given = signature(score).bind(as_observations(data), **options).arguments
        found, o, m = None, given["data"], given["data"].shape[0]
        tasks = as_tasks(m, given.get("groups"), given.get("task_weights", "micro"))
        clusters = as_clusters(m, given.get("clusters"))
    i, j = (int(as_places("the model", [one], o.column_names, o.shape[1])[0]) for one in (a, b))
    names = tuple(str(k) if o.column_names is None else str(o.column_names[k]) for k in (i, j))
    pair = o.take([i, j]).to_dense()
    complete = np.isfinite(pair[tasks.weights > 0]).all()
    if complete or (found is None and options.get("known") is None and well_answered(o).size < FEWEST_KNOWN):
        paired = paired_difference(pair[:, 0] - pair[:, 1], tasks, clusters)
        return _of_pairs(names, paired, complete, level, int((tasks.weights > 0).sum()))
    return _of_scores(names, found or score(o, level=level, **options), i, j, level)


def _of_pairs(names, paired: PairedDifference, complete: bool, level: float, m: int) -> Comparison:
    """Without a model of the questions; where both models answered everything, the difference is exact."""
    error, freedom = (0.0, np.inf) if complete else (paired.error_here, paired.freedom)
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    more = 0 if complete else _more_questions(abs(paired.difference), half, paired.n_common, m)
    low, high = paired.difference - half, paired.difference + half
    other = (*paired.interval_elsewhere(level), paired.positive_elsewhere) if complete else ()
    return Comparison(*names, paired.difference, low, high, level, error, freedom, paired.n_common, more, *other)


def _of_scores(names, found: Scores, i: int, j: int, level: float) -> Comparison:
    unit, e = found.answers.scale.width, found.estimates
    variance = _variance(e, i, j)
    widening = max(e.widening[i], e.widening[j])
    m, answered = found.n_counted
    counts = answered[[i, j]]
    freedom = float(min(e.freedom[i], e.freedom[j]))
    error = widening * float(np.sqrt(variance))
    difference = float(e.score[i] - e.score[j])
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    common = int((found.answers.seen[:, i] & found.answers.seen[:, j])[found.counted].sum())
    more = _more_questions(abs(difference), half, int(counts.min()), m)
    return Comparison(
        *names, unit * difference, unit * (difference - half), unit * (difference + half),
        level, unit * error, freedom, common, more,
    )  # fmt: skip


def _variance(e, i: int, j: int) -> float:
    """Variance of the difference of two scores on the unit scale."""
    if i == j:
        return 0.0
    paired = e.own_weight[i] * e.own_weight[j] * float(e.influence[:, i] @ e.influence[:, j])
    total = e.variance[i] + e.variance[j]
    return float(max(total - 2 * paired, 0.05 * total))  # Residuals that agree by chance do not make it exact.


def _more_questions(difference: float, half: float, k: int, m: int) -> int | None:
    """Questions until half a width, which falls as sqrt(1 / k - 1 / m), is below the difference."""
    if half <= difference:
        return 0
    if difference == 0:
        return None
    answered, k = k, max(k, 1)  # A model without an answer counts as if it had one: any has more to say.
    needed = 1 / (1 / m + (1 / k - 1 / m) * (difference / half) ** 2)
    return min(max(int(np.ceil(needed)) - answered, _FEWEST_MORE), m - answered)
