"""A score from few answers: the prediction for all questions plus a correction by the model's own residuals.

For weights w_i of the questions that sum to 1, inclusion probabilities p_i and a sample S:

    prediction   = sum of w_i y_i over S + sum of w_i E[y_i] over the rest
    correction   = sum over S of w_i (1 / p_i - 1) e_i        e_i: residual of answer i when it is left out

Their sum is the difference (GREG, AIPW) estimator. It is unbiased over draws of the sample, whatever the model is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .ability import Prediction
from .sampling import Sampling


@dataclass(frozen=True)
class Parts:
    """Arrays (n,) on the unit scale.

    `own_variance` is the variance of prediction plus correction over draws of the sample. `model_variance` is the
    variance of the prediction under the item model. `influence` (m, n) is every answer's part of the correction.
    """

    prediction: np.ndarray
    correction: np.ndarray
    own_variance: np.ndarray
    model_variance: np.ndarray
    n_answers: np.ndarray
    influence: np.ndarray

    @property
    def own(self) -> np.ndarray:
        return self.prediction + self.correction


def estimate_parts(prediction: Prediction, Y, weights, population, sampling: Sampling, dispersion: float) -> Parts:
    """Parts of the scores of n columns; `population` (m, n) holds the weights of the questions, 0 for none."""
    seen = (weights > 0) & (population > 0)
    rates = sampling.rates(weights > 0, population > 0)
    w = 1 / np.where(seen, rates, 1.0)
    predicted = np.where(seen, population * Y, population * prediction.mean).sum(axis=0)
    correction = np.where(seen, population * (w - 1) * prediction.residual, 0.0)
    influence = np.where(seen, population * np.sqrt(w * (w - 1)), 0.0)
    n_answers = seen.sum(axis=0)
    return Parts(
        predicted,
        correction.sum(axis=0),
        _own_variance(influence, prediction.residual, n_answers, sampling.clusters, dispersion),
        _model_variance(prediction, np.where(seen, 0.0, population)),
        n_answers,
        influence * prediction.residual,
    )


def _own_variance(influence, residual, n_answers, clusters, dispersion: float) -> np.ndarray:
    """Sampling variance from left-out residuals, with one surprising answer more: never 0 after a few right ones."""
    parts = influence * residual
    if clusters is not None:
        sums = np.zeros((int(clusters.max()) + 1, parts.shape[1]))
        np.add.at(sums, clusters, parts)
        n = np.maximum((sums != 0).sum(axis=0), 2)
        parts = sums * np.sqrt(n / (n - 1))
    squares = (parts**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        surprise = dispersion * (influence**2).sum(axis=0) / n_answers
    return np.where(n_answers > 0, squares + surprise, np.inf)


def _model_variance(prediction: Prediction, unseen) -> np.ndarray:
    """Variance of the weighted mean of unseen answers: abilities are common to all, noise is everyone's own."""
    g = np.einsum("ij,ij,ia->ja", unseen, prediction.slope, prediction.loadings)
    common = np.einsum("ja,jab,jb->j", g, prediction.ability_covariances, g)
    return common + (unseen**2 * prediction.noise).sum(axis=0)
