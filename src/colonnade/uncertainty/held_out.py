"""Scores of held-out entries: errors and predicted deviations of known entries that were predicted without them."""

from __future__ import annotations

import numpy as np

from ..data.gap_weights import gap_weights
from ..data.observations import Observations
from ..model.full_columns.held_out_predictions import HeldOutPredictions, left_out
from ..model.full_columns.optimism import optimism_of
from ..model.learned import Learned
from ..model.solve import Status
from .calibration import Scores


def scores_of_held_out(learned: Learned, o: Observations) -> Scores:
    """Scores of the entries that a factor model did not see while its settings were chosen.

    An entry of a row and column with many gaps stands for many unseen ones: see `data.gap_weights`.
    """
    found = learned.held_out
    assert found is not None, "only a model whose settings were chosen by hidden entries has scores"
    known = found.deviations > 0
    weights = gap_weights(o, found.rows, found.columns)[known]
    errors = (found.truth - found.predicted)[known]
    others = np.ones(errors.size)
    return Scores(found.rows[known], found.columns[known], errors, found.deviations[known], weights, others)


def scores_of_predictions(held_out: HeldOutPredictions) -> Scores:
    """Scores of entries of partial columns that were left out, and of hidden full columns."""
    return Scores(
        held_out.rows, held_out.columns, held_out.errors, held_out.deviations, held_out.weights, held_out.others
    )


def scores_of_columns(completion, which, held_out: HeldOutPredictions | None = None) -> Scores:
    """Scores of all entries of some columns, each left out in turn, or its `held_out`."""
    if held_out is not None and held_out.is_left_out.all():
        own, tried = np.isin(held_out.columns, which), np.isin(which, held_out.columns)
        found = Scores(*(figures[own] for figures in scores_of_predictions(held_out)))
        found = found._replace(weights=np.ones(found.rows.size))
        if tried.all():
            return found
        return Scores(*map(np.concatenate, zip(found, scores_of_columns(completion, which[~tried]))))
    o = completion.used
    counts = o.n_observed[which]
    able = np.flatnonzero((counts > 1) & (counts < o.shape[0]) & (completion.status[which] != Status.OVERFLOW))
    asked = o.take(which[able])
    errors, deviations = left_out(completion, asked)
    known = np.isfinite(errors) & (deviations > 0)
    columns = which[able[asked.entry_columns[known]]]
    errors = (errors * np.repeat(optimism_of(completion, which[able]), asked.n_observed))[known]
    return Scores(asked.rows[known], columns, errors, deviations[known], *np.ones((2, errors.size)))


def no_scores() -> Scores:
    places, figures = np.zeros(0, np.int64), np.zeros(0)
    return Scores(places, places, figures, figures, figures, figures)
