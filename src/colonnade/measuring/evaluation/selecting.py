"""Which questions to ask a new model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._support.arguments import as_array, as_choice, as_count, as_generator, as_indices
from ..._support.threads import one_blas_thread
from ...data.observations import as_observations
from .answers import as_answers
from .chosen import select_chosen
from .design import balanced_sample, inclusion_probabilities
from .item_model import fit_item_model
from .questions import DESIGNS, Questions
from .tasks import as_tasks

_SWEEPS = 12  # Of the fit: where questions lie is settled long before the scores are.


def select(
    data,
    n_questions: int,
    *,
    design: str = "balanced",
    groups=None,
    task_weights="micro",
    known=None,
    random_state=None,
) -> np.ndarray:
    """Draw the questions to ask a new model.

    Parameters
    ----------
    data : Observations, array or data frame of shape (m, n)
        Questions as rows, known models as columns, with or without gaps.
    n_questions : int
        k, from 1 to m.
    design : "balanced", "random" or "chosen"
        Balanced: a random sample, the same chance for every question, spread evenly over difficulty and over what
        questions measure. Random: a plain one. Chosen: the most telling questions, for models known to be like the
        known ones; scores of others may be off by any amount.
    groups, task_weights
        As in `score`. Every task gets its weight's share of the questions, to the nearest whole number.
    known : array of int, optional
        Columns to learn from. Default: those with more than half as many answers as the fullest.
    random_state : None, int or numpy Generator
        None is the same draw every time.

    Returns
    -------
    int64 array of shape (k,)
        Different rows, rising. Nothing else has to be kept if `score` has the same groups: the share of each task that
        was asked is the probability with which its questions were drawn. `draw` keeps the probabilities.
    """
    options = {"groups": groups, "task_weights": task_weights, "known": known, "random_state": random_state}
    return draw(data, n_questions, design=design, **options).rows


@one_blas_thread()
def draw(
    data,
    n_questions: int,
    *,
    design: str = "balanced",
    groups=None,
    task_weights="micro",
    cost=None,
    known=None,
    random_state=None,
) -> Questions:
    """Draw the questions to ask a new model, and keep the probabilities of the draw.

    Parameters
    ----------
    data, n_questions, design, groups, task_weights, known, random_state
        As in `select`.
    cost : positive array of shape (m,), optional
        Cost of every question. The chance of a question then falls with the root of its cost, which gives the
        narrowest interval for the money. `score` needs the result, or its file.

    Returns
    -------
    Questions
        Rows and probabilities; `save` writes the file that `score(..., questions=...)` takes.
    """
    o = as_observations(data)
    m = o.shape[0]
    k = as_count("n_questions", n_questions, 1, m, ", the questions that there are")
    design = as_choice("design", design, DESIGNS)
    tasks = as_tasks(m, groups, task_weights)
    known = None if known is None else np.unique(as_indices("known", known, o.shape[1]))
    rng = as_generator(0 if random_state is None else random_state)
    if design == "chosen":
        if cost is not None:
            raise ValueError('cost does not go with design="chosen", which leaves nothing to chance')
        if not tasks.is_uniform:
            raise ValueError('design="chosen" knows no weights of tasks; give task_weights="micro" or another design')
        rows, p = select_chosen(o, k, random_state), np.ones(m)
    else:
        answers = as_answers(o, known)
        p = inclusion_probabilities(tasks.shares, tasks.strata, k)
        if cost is not None:
            p = cheaper_more_often(p, tasks.strata, as_cost(cost, m))
        if design == "random" and len(tasks.names) == 1 and cost is None:
            rows = np.sort(rng.choice(m, k, replace=False))
        else:
            rows = balanced_sample(_places(answers, design), p, tasks.strata, rng)
    return Questions(rows, p[rows], design, m, None if o.row_names is None else o.row_names[rows].astype(np.str_))


def as_cost(cost, m: int) -> np.ndarray:
    prices = as_array("cost", cost, 1).astype(np.float64)
    if prices.shape != (m,) or not (np.isfinite(prices) & (prices > 0)).all():
        raise ValueError(f"cost must be {m} positive numbers, one per question")
    return prices


def cheaper_more_often(probabilities, strata, prices) -> np.ndarray:
    """Probabilities proportional to 1 / sqrt(price), none above 1, with the same sum in every stratum."""
    result = np.empty_like(probabilities)
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        wanted, free = probabilities[inside].sum(), np.ones(inside.size, bool)
        p, sizes = np.ones(inside.size), 1 / np.sqrt(prices[inside])
        while free.any():
            p[free] = (wanted - (~free).sum()) * sizes[free] / sizes[free].sum()
            over = free & (p > 1)
            if not over.any():
                break
            p[over], free = 1.0, free & ~over
        result[inside] = p
    return result


def _places(answers, design: str):
    """The model that says which questions are neighbours; all are at one place in a plain random sample."""
    used = answers.known
    model = fit_item_model(answers.Y[:, used], answers.weights[:, used], answers.scale, n_sweeps=_SWEEPS)
    return replace(model, loadings=np.zeros_like(model.loadings)) if design == "random" else model
