"""How many questions an accuracy needs, before any is asked.

For k of m questions and a model whose left-out residuals have the mean square s^2, the variance of its score is
s^2 (1 / k - 1 / m) where its own answers count in full, and less where the known models vouch for the prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._support.arguments import as_generator, as_indices, as_real
from ..._support.html import html_lines
from ..._support.threads import one_blas_thread
from ...data.observations import as_observations
from .answers import Answers, as_answers
from .design import balanced_sample, inclusion_probabilities
from .item_model import ItemModel, fit_item_model
from .sampling import Sampling
from .selecting import as_cost
from .tasks import as_tasks
from .trust import combine, hide_in_turn, learned_trust, score_range, t_quantile

_SIZES = 8  # Numbers of questions that are tried on hidden models; widths between them are interpolated.


@dataclass(frozen=True)
class QuestionPlan:
    """How half the width of an interval falls with the number of questions.

    Attributes
    ----------
    questions : int array of shape (q,)
    like_known, beyond : float arrays of shape (q,)
        Half widths for models like the known ones, and for models beyond them.
    needed, needed_beyond : int
        Fewest questions with the half width that was asked for.
    cost, cost_beyond : float or None
        Expected cost of these questions, if every question has the same chance.
    least_cost, least_cost_beyond : float or None
        The same if cheaper questions are drawn more often, which `draw` does if it knows the costs. With chances that
        fall with the root of the cost c, the cost for the same interval falls by the factor mean(sqrt(c))^2 / mean(c).
    """

    half_width: float
    level: float
    n_rows: int
    questions: np.ndarray
    like_known: np.ndarray
    beyond: np.ndarray
    needed: int
    needed_beyond: int
    cost: float | None
    cost_beyond: float | None
    least_cost: float | None
    least_cost_beyond: float | None

    def __str__(self) -> str:
        pairs = (self.cost, self.least_cost), (self.cost_beyond, self.least_cost_beyond)
        prices = [
            "" if c is None else f" (expected cost {c:,.4g}, or {least:,.4g} if cheaper ones are drawn more often)"
            for c, least in pairs
        ]
        return (
            f"For +-{self.half_width:g} at the level {100 * self.level:.3g} %: {self.needed:,} of {self.n_rows:,}"
            f" questions{prices[0]} for a model like the known ones, {self.needed_beyond:,}{prices[1]} for one"
            " beyond them."
        )

    def _repr_html_(self) -> str:
        return html_lines([self])


@one_blas_thread()
def plan(data, half_width: float = 0.02, *, level: float = 0.9, cost=None, known=None, random_state=None):
    """How many questions to ask a new model.

    Parameters
    ----------
    data : Observations, array or data frame of shape (m, n)
        Questions as rows, known models as columns.
    half_width : float
        Wanted half width of the interval of the score, in the unit of the answers: 0.02 is 2 points.
    level : float
        Level of the interval.
    cost : positive array of shape (m,), optional
        Cost of every question.
    known, random_state
        As in `select`.

    Returns
    -------
    QuestionPlan
    """
    o = as_observations(data)
    half_width = as_real("half_width", half_width, 0, ends="()")
    level = as_real("level", level, 0, 1, "()")
    prices = None if cost is None else as_cost(cost, o.shape[0])
    answers = as_answers(o, None if known is None else np.unique(as_indices("known", known, o.shape[1])))
    rng = as_generator(0 if random_state is None else random_state)
    m = o.shape[0]
    most = max(m // 2, 1)  # With all questions an interval has no width.
    sizes = np.unique(np.geomspace(min(10, most), most, _SIZES).astype(int))
    model = fit_item_model(answers.Y[:, answers.known], answers.weights[:, answers.known], answers.scale)
    widths, widening = zip(*(_half_widths(answers, model, int(k), level, rng) for k in sizes))
    # Few hidden models say little about the widening at one size; it does not depend on the size.
    halves = np.array(widths) * np.mean(widening) * answers.scale.width
    needed = [_needed(sizes, halves[:, column], half_width, m) for column in (0, 1)]
    costs = [None if prices is None else float(n * prices.mean()) for n in needed]
    saved = None if prices is None else float(np.mean(np.sqrt(prices)) ** 2 / np.mean(prices))
    least = [None if saved is None else saved * c for c in costs]
    return QuestionPlan(half_width, level, m, sizes, halves[:, 0], halves[:, 1], *needed, *costs, *least)


def _half_widths(answers: Answers, model: ItemModel, k: int, level: float, rng) -> tuple[tuple[float, float], float]:
    """Root mean square half widths of hidden known models, combined with the prediction and by own answers alone.

    The factor by which intervals are widened comes second, it is not in the half widths.
    """
    m = answers.Y.shape[0]
    tasks = as_tasks(m, None, "micro")
    pattern = np.zeros((m, 1), bool)
    pattern[balanced_sample(model, inclusion_probabilities(tasks.shares, tasks.strata, k), tasks.strata, rng)] = True
    hidden = [one for _, _, one in hide_in_turn(answers, model, pattern, [tasks.weights], Sampling(tasks.strata), rng)]
    trust = learned_trust(hidden, 0, score_range(answers, answers.known, tasks.weights), level)
    squares = [combine(h.parts[0], trust.bias_variances, *h.ranges[0]).variance for h in hidden]
    quantile = float(t_quantile(level, k))
    own = [h.parts[0].own_variance for h in hidden]
    combined, alone = (quantile * float(np.sqrt(np.mean(np.concatenate(v)))) for v in (squares, own))
    return (combined, alone), trust.widening


def _needed(sizes, halves, wanted: float, m: int) -> int:
    """Half widths squared are linear in 1 / k - 1 / m between the sizes that were tried, and beyond them."""
    x, y = 1 / sizes - 1 / m, np.minimum.accumulate(halves**2)  # More questions never widen an interval.
    if wanted**2 >= y[0]:
        return int(np.ceil(1 / (1 / m + x[0] * wanted**2 / y[0]))) if y[0] > 0 else 1
    if wanted**2 < y[-1]:
        return int(np.ceil(1 / (1 / m + x[-1] * wanted**2 / y[-1])))
    return int(np.ceil(1 / (1 / m + np.interp(wanted**2, y[::-1], x[::-1]))))
