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

_FEWEST = 2  # Answers in a stratum that give it a sampling rate of its own; strata with fewer are pooled.


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


def estimate_parts(prediction: Prediction, Y, weights, population, strata, clusters, dispersion: float) -> Parts:
    """Parts of the scores of n columns; `population` (m, n) holds the weights of the questions, 0 for none."""
    seen = (weights > 0) & (population > 0)
    rates = sampling_rates(seen, population > 0, strata)
    w = 1 / np.where(seen, rates, 1.0)
    predicted = np.where(seen, population * Y, population * prediction.mean).sum(axis=0)
    correction = np.where(seen, population * (w - 1) * prediction.residual, 0.0)
    influence = np.where(seen, population * np.sqrt(w * (w - 1)), 0.0)
    n_answers = seen.sum(axis=0)
    return Parts(
        predicted,
        correction.sum(axis=0),
        _own_variance(influence, prediction.residual, n_answers, clusters, dispersion),
        _model_variance(prediction, np.where(seen, 0.0, population)),
        n_answers,
        influence * prediction.residual,
    )


def sampling_rates(seen, inside, strata) -> np.ndarray:
    """Share of the questions of a stratum that were asked, shape (m, n): the inclusion probabilities given the counts.

    Strata with fewer than two answers form one, and everything is one where even that has no answer.
    """
    n_strata = int(strata.max()) + 1
    member = np.zeros((n_strata, strata.size))
    member[strata, np.arange(strata.size)] = 1.0
    asked, size = member @ seen, member @ inside
    few = asked < _FEWEST
    rest_asked, rest_size = np.where(few, asked, 0).sum(axis=0), np.where(few, size, 0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(few, rest_asked / rest_size, asked / size)
        whole = asked.sum(axis=0) / size.sum(axis=0)
    bad = (few & (size > 0)).any(axis=0) & (rest_asked == 0)
    return np.where(bad, whole, rates)[strata] if n_strata > 1 else np.broadcast_to(whole, seen.shape)


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
