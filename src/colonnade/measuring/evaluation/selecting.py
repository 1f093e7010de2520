"""Which questions to ask a new model."""

from __future__ import annotations

import numpy as np

from ..._support.arguments import as_choice, as_count, as_generator, as_indices
from ..._support.threads import one_blas_thread
from ...data.observations import as_observations
from .answers import as_answers
from .chosen import select_chosen
from .design import balanced_sample, inclusion_probabilities
from .item_model import fit_item_model
from .scoring import DESIGNS
from .tasks import as_tasks

_SWEEPS = 12  # Of the fit: where questions lie is settled long before the scores are.


@one_blas_thread()
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
        Different rows, rising. Nothing else has to be kept: the share of each task that was asked is the probability
        with which its questions were drawn.
    """
    o = as_observations(data)
    m = o.shape[0]
    k = as_count("n_questions", n_questions, 1, m, ", the questions that there are")
    design = as_choice("design", design, DESIGNS)
    tasks = as_tasks(m, groups, task_weights)
    known = None if known is None else np.unique(as_indices("known", known, o.shape[1]))
    rng = as_generator(0 if random_state is None else random_state)
    if design == "chosen":
        return select_chosen(o, k, random_state)
    answers = as_answers(o, known)
    probabilities = inclusion_probabilities(tasks.shares, tasks.strata, k)
    if design == "random" and len(tasks.names) == 1:
        return np.sort(rng.choice(m, k, replace=False))
    used = answers.known
    model = fit_item_model(answers.Y[:, used], answers.weights[:, used], answers.scale, n_sweeps=_SWEEPS)
    if design == "random":
        model = _without_place(model)
    return balanced_sample(model, probabilities, tasks.strata, rng)


def _without_place(model):
    """The same model with all questions at one place: a sample that is balanced over tasks alone."""
    from dataclasses import replace

    return replace(model, loadings=np.zeros_like(model.loadings))
