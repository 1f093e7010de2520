"""How far the prediction from known models is trusted, beside the new model's own answers.

A prediction is off by a bias of variance b more than the item model says. Known models that are taken for new ones tell
it. They are hidden at random, in blocks of neighbouring columns (often relatives or of one date; the last block is
often the newest), and the best and the worst fifth. There are two such variances: one for models within the range of
the known ones, and one for models beyond it, which hidden models beyond all others tell. The correction is shrunk as in
empirical Bayes, but the prediction never moves a score by more than one standard error of the correction (Efron and
Morris, limited translation, JASA 66, 1971). Beyond the range, an interval is as wide as that of the own answers alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from .ability import predict
from .answers import Answers
from .estimate import Parts, estimate_parts
from .item_model import ItemModel, fit_without
from .sampling import Sampling

FEWEST_HIDDEN = 6  # Known models from which a bias is learned; with fewer, scores rest on their own answers.
_FOLDS = 5  # Each of random groups and of blocks; a group holds a fifth of the models.
_TIMES_HIDDEN = 2 + 2 / _FOLDS  # How often a known model is hidden on average.
_TRANSLATION = 1.0  # Standard errors by which the prediction may move a score.
_LEAST_SHARE = 0.1  # Of a correction's own variance: noise that the item model explains is estimated itself.
_FEWEST_FOR_QUANTILE = 10  # Hidden models from which the widths of intervals are checked.


@dataclass(frozen=True)
class Trust:
    """`bias_variances`: of predictions within the range of the known models, and beyond it."""

    bias_variances: tuple[float, float]
    widening: float
    low: float
    high: float


@dataclass(frozen=True)
class Combined:
    """Scores, their variances, the weight of the own answers (1: no shrinkage), and P(beyond all known models)."""

    score: np.ndarray
    variance: np.ndarray
    own_weight: np.ndarray
    beyond: np.ndarray


def combine(parts: Parts, bias_variances, low, high) -> Combined:
    own, exact = parts.own_variance, parts.own_variance == 0  # Exact: every question was asked.
    has = np.isfinite(own) & ~exact
    noise = np.where(has, np.maximum(own - parts.model_variance, _LEAST_SHARE * np.where(has, own, 1.0)), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        inside, outside = (1 / (1 + noise / np.float64(variance)) for variance in bias_variances)
        deviation = np.sqrt(np.where(has, own, 1.0))
        above, below = (parts.own - high) / deviation, (low - parts.own) / deviation
        limit = 1 - _TRANSLATION * np.sqrt(noise) / np.abs(parts.correction)
    beyond = np.where(has, stats.norm.cdf(np.maximum(above, below)), 0.0)
    weight = np.maximum(beyond * outside + (1 - beyond) * inside, np.nan_to_num(limit, neginf=0.0))
    weight = np.where(has, np.clip(weight, 0.0, 1.0), np.where(exact, 1.0, 0.0))
    spread = (high - low) ** 2 / 4 if np.isinf(bias_variances[0]) else bias_variances[0]
    counts = np.maximum(weight, beyond)
    variance = parts.model_variance + np.where(has, counts * noise, np.where(exact, 0.0, spread))
    return Combined(parts.prediction + weight * parts.correction, variance, weight, beyond)


@dataclass(frozen=True)
class Hidden:
    """Known models taken for new ones: parts, true scores and the range of the others, one of each per domain."""

    parts: list[Parts]
    truth: list[np.ndarray]
    ranges: list[np.ndarray]


def hide_in_turn(answers: Answers, model: ItemModel, patterns, domains, sampling: Sampling, rng):
    """Yield (columns, model without them, Hidden) for every group.

    `model` has learned from all known models. `patterns` (m, q) are the gaps of the models to be scored; a hidden model
    gets one of them. A known model with gaps of its own stands for its answered questions only; a random share of them
    is kept.
    """
    known = answers.known
    for group in _groups(answers, domains[0], rng):
        if 0 < group.size <= known.size - 2:
            columns, others = known[group], np.delete(known, group)
            kept = np.delete(np.arange(known.size), group)
            without = fit_without(model, answers.Y[:, others], answers.weights[:, others], kept)
            yield columns, without, _hidden(answers, without, columns, others, patterns, domains, sampling, rng)


def _groups(answers: Answers, domain, rng) -> list[np.ndarray]:
    """Known models at random, in blocks of columns, the worst and the best; each is a group of places in `known`."""
    d = answers.known.size
    scores = (population_of(domain, answers.seen[:, answers.known]) * answers.Y[:, answers.known]).sum(axis=0)
    by_score = np.array_split(np.argsort(scores, kind="stable"), _FOLDS)
    random, blocks = np.array_split(rng.permutation(d), _FOLDS), np.array_split(np.arange(d), _FOLDS)
    return [*random, *blocks, by_score[0], by_score[-1]]


def _hidden(answers, model, columns, others, patterns, domains, sampling: Sampling, rng) -> Hidden:
    Y, seen = answers.Y[:, columns], answers.seen[:, columns]
    kept = patterns[:, rng.integers(patterns.shape[1], size=columns.size)]
    for j in np.flatnonzero(~seen.all(axis=0)):
        kept[:, j] = seen[:, j] & (rng.random(len(Y)) < max(kept[:, j].mean(), 1 / len(Y)))
    weights = np.where(kept, answers.weights[:, columns], 0.0)
    prediction = predict(model, Y, weights)
    result = Hidden([], [], [])
    for domain in domains:
        population = population_of(domain, seen)
        parts = estimate_parts(prediction, Y, weights, population, sampling, model.dispersion)
        result.parts.append(parts)
        result.truth.append((population * Y).sum(axis=0))
        result.ranges.append(score_range(answers, others, domain))
    return result


def population_of(domain, seen) -> np.ndarray:
    """Weights of the questions in every column: `domain` (m,) within those seen, with sum 1."""
    inside = np.where(seen, domain[:, None], 0.0)
    total = inside.sum(axis=0)
    return np.where(total > 0, inside / np.where(total > 0, total, 1.0), domain[:, None])


def score_range(answers: Answers, columns, domain) -> np.ndarray:
    """Lowest and highest score of known models; a partial one counts with the questions that it answered."""
    scores = (population_of(domain, answers.seen[:, columns]) * answers.Y[:, columns]).sum(axis=0)
    return np.array([scores.min(), scores.max()])


def learned_trust(hidden: list[Hidden], domain: int, known_range, level: float) -> Trust:
    """From the errors of the hidden models in one domain."""
    parts, d = [h.parts[domain] for h in hidden], sum(h.truth[domain].size for h in hidden) / _TIMES_HIDDEN
    if d < FEWEST_HIDDEN:
        return Trust((np.inf, np.inf), 1.0, *known_range)
    beyond = np.concatenate([combine(p, (0.0, 0.0), *h.ranges[domain]).beyond for p, h in zip(parts, hidden)])
    excess = np.concatenate([(p.prediction - h.truth[domain]) ** 2 - p.model_variance for p, h in zip(parts, hidden)])
    inside = _bias_variance(excess, 1 - beyond)
    bias = inside, max(inside, _bias_variance(excess, beyond))
    ratios = []
    for p, h in zip(parts, hidden):
        combined = combine(p, bias, *h.ranges[domain])
        quantile = t_quantile(level, p.n_answers) * np.sqrt(combined.variance)
        exact = p.own_variance == 0  # Every question was asked: only rounding is left.
        ratios.append(np.where(exact, 0.0, np.abs(combined.score - h.truth[domain]) / np.where(exact, 1.0, quantile)))
    # A new model among d like it: the level is reached at rank (d + 1) level, as in conformal prediction.
    rank = min((d + 1) / d * level, 1.0)
    at = np.quantile(np.concatenate(ratios), rank) if d >= _FEWEST_FOR_QUANTILE else 1.0
    return Trust(bias, max(1.0, float(at)), *known_range)


def _bias_variance(excess, shares) -> float:
    """Weighted mean of squared errors less what the item model explains, and one standard error more, to be safe."""
    total = shares.sum()
    if total == 0:
        return np.inf
    mean = shares @ excess / total
    error = np.sqrt(shares @ (excess - mean) ** 2 / total / (total / _TIMES_HIDDEN))
    return max(0.0, float(mean + error))


def degrees_of_freedom(n_answers) -> np.ndarray:
    """Of Student's t; models without an answer have the normal distribution."""
    n = np.asarray(n_answers)
    return np.where(n > 0, np.maximum(n - 1, 1), np.inf)


def t_quantile(level: float, n_answers) -> np.ndarray:
    """Two-sided quantile of Student's t."""
    return stats.t.ppf((1 + level) / 2, degrees_of_freedom(n_answers))
