"""Scores of held-out entries: errors and predicted deviations of known entries that were predicted without them."""

from __future__ import annotations

import numpy as np

from ..data.observations import Observations
from ..model.full_columns.trials import Trials, left_out
from ..model.selection import Learned
from ..model.solve import Status
from .calibration import Scores

_FEW = 20  # Scores of columns with gaps below which those of all columns count: fewer have no 95 % quantile.


def scores_of_held_out(learned: Learned, o: Observations) -> Scores:
    """Of the entries that a factor model did not see while its settings were chosen.

    An entry of a column with many gaps stands for many unseen ones. Where hardly any column has gaps, all count alike.
    """
    found = learned.held_out
    known = found.deviations > 0
    n_observed = o.n_observed[found.columns[known]]
    weights = (o.shape[0] - n_observed) / np.maximum(1, n_observed)
    if weights.sum() ** 2 < _FEW * (weights**2).sum() or not weights.any():
        weights = np.ones(weights.size)
    errors = (found.truth - found.predicted)[known]
    return Scores(found.rows[known], found.columns[known], errors, found.deviations[known], weights)


def scores_of_trials(trials: Trials) -> Scores:
    """Of entries of partial columns that were left out, and of hidden full columns where these tell more."""
    return Scores(trials.rows, trials.columns, trials.errors, trials.deviations, trials.weights)


def scores_of_columns(completion, which) -> Scores:
    """Of all entries of some columns, each left out in turn."""
    o = completion.used
    counts = o.n_observed[which]
    able = np.flatnonzero((counts > 1) & (counts < o.shape[0]) & (completion.status[which] != Status.OVERFLOW))
    asked = o.take(which[able])
    errors, deviations = left_out(completion, asked)
    known = np.isfinite(errors) & (deviations > 0)
    columns = which[able[asked.entry_columns[known]]]
    errors = errors[known] * completion.optimism
    return Scores(asked.rows[known], columns, errors, deviations[known], np.ones(errors.size))


def no_scores() -> Scores:
    places, figures = np.zeros(0, np.int64), np.zeros(0)
    return Scores(places, places, figures, figures, figures)
