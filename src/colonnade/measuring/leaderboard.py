"""Models as columns, questions as rows: which questions to ask a new model, and what its score and rank will be.

The short way to `colonnade.evaluation`, where tasks, comparisons, plans and stopping rules are.
"""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_choice
from .evaluation.scoring import score
from .evaluation.selecting import select


def select_questions(data, n_questions: int, *, design: str = "balanced", random_state=None) -> np.ndarray:
    """Draw the questions to ask a new model.

    Parameters
    ----------
    data : Observations, array or data frame of shape (m, n)
        Questions as rows, known models as columns; three or more models, with or without gaps.
    n_questions : int
        k, from 1 to m.
    design : "balanced", "random" or "chosen"
        Balanced: a random sample in which every question has the same chance, spread evenly over difficulty and over
        what questions measure. Random: a plain one. Chosen: the most telling questions, for new models that are known
        to be like the known ones.
    random_state : None, int or numpy Generator
        None is the same draw every time.

    Returns
    -------
    int64 array of shape (k,)
        Different rows, rising.
    """
    return select(data, n_questions, design=design, random_state=random_state)


def scores(data, *, level: float = 0.9, chosen="auto", design: str = "auto", random_state=None) -> np.recarray:
    """Scores of all columns, which are their means, and their ranks, with intervals.

    Parameters
    ----------
    data : Observations, array or data frame of shape (m, n)
        Questions as rows and models as columns; a higher value is better. Three or more columns have more than half as
        many answers as the fullest; questions are learned from these.
    level : float
        Probability with which a score lies in its interval. The interval of the rank holds the rank at least as often.
    chosen : bool or "auto"
        Whether the rows of partial columns come from `select_questions`. False: they count as drawn at random. True and
        "auto" also look whether they are those of its design "chosen", which needs an estimate of its own.
    design : "auto", "balanced", "random" or "chosen"
        How the rows were taken, instead of `chosen`.
    random_state : None, int or numpy Generator
        Groups in which known columns are taken for new ones; None is the same every time.

    Returns
    -------
    record array of shape (n,)
        n_observed, score, low, high, rank, rank_low, rank_high, predicted, own_weight. The rank of a column is 1 plus
        the number of full columns with a larger score. Full columns are exact. `predicted` is what known columns alone
        predict, and `own_weight` how far the column's own answers correct it: 1 is in full, without any shrinkage.

    See Also
    --------
    colonnade.evaluation.score : the same with tasks, clusters, and remarks in words.
    """
    chosen = as_choice("chosen", chosen, (True, False, "auto"))
    if chosen is False and design == "auto":
        design = "random"
    return score(data, level=level, design=design, random_state=random_state).table
