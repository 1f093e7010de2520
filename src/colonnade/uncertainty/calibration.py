"""Calibration: predicted deviations become intervals that hold, also for rows and columns that are worse explained.

Held-out entries show how far predictions are off. The error of entry (i, j), whose predicted deviation is s_ij, is

    e_ij = s_ij f_i g_j x_ij,      f_i^2 and g_j^2 inverse gamma, their strength learned from all rows and columns.

x has one distribution, which the held-out entries tell: ends of intervals are its quantiles (split conformal
prediction: Lei et al. 2018). On average over entries like those held out the coverage is therefore right whatever the
model is; the factors make it right for each row and column as far as the data tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from .._support.numbers import HUGE
from ..model.inverse_gamma import InverseGamma, fit_inverse_gamma
from .parts import EQUAL_PARTS, Parts, fit_parts

_FEWEST = 20  # Scores below which no interval is narrower than that of normal errors.
_ENOUGH = 100  # Scores from which the two sides of an interval may differ.
_FAR = 10.0  # Typical scores at which squares are cut: one outlier must not set the factor of its row or column.
_MOST_PREDICTED = 5_000  # Scores by which the strength of factors is learned; more change it by less than 3 %.
_MEDIAN_SQUARE = 0.4549  # Median square of a standard normal variable.
JUDGED_AT = 0.9  # Level of the intervals whose score decides whether their sides differ.
ALL_ALIKE = InverseGamma(1e12, 1e12)  # All groups have the factor 1, whatever their scores.


class Scores(NamedTuple):
    """Known entries that were predicted without them; arrays of shape (k,).

    Attributes
    ----------
    rows, columns : int arrays
    errors : float64 array
        Truth minus prediction.
    deviations : float64 array
        Predicted standard deviations, positive.
    weights : float64 array
        For how many unseen entries each stands.
    others : float64 array
        Squares of the other scores of the column, predicted without this entry too, over those predicted with it.
    """

    rows: np.ndarray
    columns: np.ndarray
    errors: np.ndarray
    deviations: np.ndarray
    weights: np.ndarray
    others: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """Errors in predicted deviations."""
        with np.errstate(over="ignore"):
            return np.clip(self.errors / self.deviations, -HUGE, HUGE)


class Quantiles(NamedTuple):
    """Rising values, each with the weight of all up to it as a share of the whole and one more; shape (k,) each.

    `are_sizes` says that the values are sizes of scores and not scores with their sign.
    """

    values: np.ndarray
    shares: np.ndarray
    are_sizes: bool

    @classmethod
    def of(cls, values, weights, *, are_sizes: bool) -> Quantiles:
        order = np.argsort(values, kind="stable")
        total = float(weights.sum())
        one_more = float((weights**2).sum()) / total if total else 1.0  # A new entry weighs as much as the usual one.
        return cls(values[order], np.cumsum(weights[order]) / (total + one_more), are_sizes)

    def at(self, share: float) -> float:
        """The quantile. With few values, and beyond the largest, at least that of normal scores."""
        if self.values.size == 0:
            return self._normal(share)
        place = int(np.searchsorted(self.shares, share - 1e-12))
        if place == self.values.size:
            last = max(self._normal(float(self.shares[-1])), 0.1 * self._normal(share))
            return self._normal(share) * max(1.0, float(self.values[-1]) / last)
        found = float(self.values[place])
        return max(found, self._normal(share)) if self.values.size < _FEWEST else found

    def _normal(self, share: float) -> float:
        return float(ndtri((1 + share) / 2 if self.are_sizes else share))


class Spreads(NamedTuple):
    """How far scores of each group, a row or a column, spread; a score of a group counts in the factors of others only.

    Attributes
    ----------
    prior : InverseGamma
        Of the squares of the factors.
    counts, sums : float64 arrays of shape (n_groups,)
        Number of scores, and the sum of their squares.
    """

    prior: InverseGamma
    counts: np.ndarray
    sums: np.ndarray

    @classmethod
    def of(cls, groups, squares, n: int, each=None, others=1.0) -> Spreads:
        """Learn from scores of these groups and their squares.

        Each counts as `each` scores, by default 1; without it the squares of the others are `others` times as large.
        Scores of a group depend on each other. The prior is therefore the one that predicts each from the others.
        """
        each = np.ones(groups.size) if each is None else each
        found = cls(ALL_ALIKE, np.bincount(groups, each, n).astype(np.float64), np.bincount(groups, squares, n))
        if not squares.any():
            return found._replace(prior=InverseGamma(1.0, 1.0))
        some = np.flatnonzero(each > 0)
        some = some[np.linspace(0, some.size - 1, min(some.size, _MOST_PREDICTED)).astype(int)]
        counts, sums = found._without(groups, squares, each, others)
        once, beside = np.ones(some.size), (counts[some], sums[some])
        prior = fit_inverse_gamma(once, squares[some] / each[some], beside=beside, weights=each[some])
        return found._replace(prior=prior)

    @property
    def factors(self) -> np.ndarray:
        """The factor of every group."""
        return np.sqrt(self.prior.variances(self.counts, self.sums))

    @property
    def degrees(self) -> np.ndarray:
        """Degrees of freedom of the squared factor of every group."""
        return 2 * self.prior.shape + self.counts

    def factors_without(self, groups, squares, each=1.0, others=1.0) -> np.ndarray:
        """The factor of each score's group without this score; `each` and `others` are those of `of`."""
        return np.sqrt(self.prior.variances(*self._without(groups, squares, each, others)))

    def _without(self, groups, squares, each, others) -> tuple[np.ndarray, np.ndarray]:
        counts = np.maximum(self.counts[groups] - each, 0.0)
        return counts, others * np.maximum(self.sums[groups] - squares, 0.0)


@dataclass(frozen=True, eq=False)
class Calibration:
    """What held-out entries tell of all others.

    Attributes
    ----------
    rows : Spreads
        f_i.
    column_prior : InverseGamma
        Of g_j^2.
    below, above : Quantiles
        Of the scores x on either side of the prediction; one and the same, of sizes, where intervals are symmetric.
    most, most_by_row : float
        Squares of scores, and of scores over the factors of their rows, count at most as this much in the factors.
    is_noise_known : bool
        False if deviations mean nothing until entries are held out.
    noise : float
        Deviation of the noise in every predicted deviation.
    parts : Parts
        Factors of the noise and of the rest in the squares of predicted deviations.
    """

    rows: Spreads
    column_prior: InverseGamma
    below: Quantiles
    above: Quantiles
    most: float
    most_by_row: float
    is_noise_known: bool = True
    noise: float = 0.0
    parts: Parts = EQUAL_PARTS

    @property
    def row_factors(self) -> np.ndarray:
        return self.rows.factors

    def factors_of_columns(self, scores: Scores, which) -> np.ndarray:
        """g_j of the columns `which`, rising, from all scores that they have; shape (k,)."""
        places = np.searchsorted(which, scores.columns)
        squares = np.minimum(self._by_row(scores) ** 2, self.most_by_row)
        counts = np.bincount(places, minlength=which.size)
        return np.sqrt(self.column_prior.variances(counts, np.bincount(places, squares, which.size)))

    def standardised(self, scores: Scores) -> np.ndarray:
        """x of some scores, with the factor that the column of each has without it."""
        x = self._by_row(scores)
        places = np.unique(scores.columns, return_inverse=True)[1]
        squares = np.minimum(x**2, self.most_by_row)
        counts, sums = np.bincount(places).astype(np.float64), np.bincount(places, squares)
        spreads = Spreads(self.column_prior, counts, sums)
        return x / spreads.factors_without(places, squares, others=scores.others)

    def deviations(self, predicted) -> np.ndarray:
        """Predicted deviations with the two parts of their squares set right."""
        return self.parts.deviations(predicted, self.noise)

    def scaled(self, scores: Scores) -> Scores:
        return scores._replace(deviations=self.deviations(scores.deviations))

    def _by_row(self, scores: Scores) -> np.ndarray:
        """Scores over the factors that their rows have without them."""
        x, r = self.scaled(scores).ratios, scores.rows
        counts = np.maximum(self.rows.counts[r] - 1, 0.0)
        sums = np.maximum(self.rows.sums[r] - np.minimum(x**2, self.most), 0.0)
        return x / np.sqrt(self.rows.prior.variances(counts, sums))

    def ends(self, level: float) -> tuple[float, float]:
        """Low and high end of an interval about a prediction, in deviations times factors."""
        if self.above.values.size == 0 and not self.is_noise_known:
            return -np.inf, np.inf
        return ends_of(self.below, self.above, level)

    def ends_at(self, level: float, rows, columns) -> tuple[float, float]:
        """The same for entries at (rows[k], columns[k]), which have one distribution."""
        return self.ends(level)

    def half_width(self, level: float) -> float:
        """Half the width of an interval, in deviations times factors."""
        low, high = self.ends(level)
        return (high - low) / 2


def calibrate(
    scores: Scores, m: int, *, noise: float = 0.0, is_noise_known: bool = True, by_column: bool = True
) -> Calibration:
    """Factors and quantiles from the scores of held-out entries of a table with m rows.

    Parameters
    ----------
    scores : Scores
    m : int
    noise : float
        Deviation of the noise in every predicted deviation.
    is_noise_known : bool
        False if deviations mean nothing until entries are held out.
    by_column : bool
        False gives all columns one factor: scores of some rows tell nothing of the others.
    """
    scores = Scores(*(figures[scores.weights > 0] for figures in scores))
    parts = fit_parts(scores.ratios, scores.deviations, noise, scores.weights)
    scores = scores._replace(deviations=parts.deviations(scores.deviations, noise))
    x = scores.ratios
    most = far_square(x)
    squares = np.minimum(x**2, most)
    rows = Spreads.of(scores.rows, squares, m)
    x = x / rows.factors_without(scores.rows, squares)
    columns, places = np.unique(scores.columns, return_inverse=True)
    most_by_row = far_square(x)
    squares = np.minimum(x**2, most_by_row)
    spreads = Spreads.of(places, squares, columns.size, others=scores.others)
    if not by_column:
        spreads = spreads._replace(prior=ALL_ALIKE)
    sides = sides_of(x / spreads.factors_without(places, squares, others=scores.others), scores.weights)
    return Calibration(rows, spreads.prior, *sides, most, most_by_row, is_noise_known, noise, parts)


def far_square(x) -> float:
    """The square of a score that is far beyond the typical one."""
    usual = float(np.median(np.abs(x))) ** 2 / _MEDIAN_SQUARE if x.size else 0.0
    return _FAR**2 * usual if usual > 0 else np.inf


def sides_of(x, weights) -> tuple[Quantiles, Quantiles]:
    """Quantiles below and above the prediction: of sizes, or of either side if that lowers the interval score."""
    if x.size >= _ENOUGH:
        halves = slice(0, None, 2), slice(1, None, 2)
        scores = [
            sum(
                float(
                    np.average(interval_scores(x[b], *ends_of(*sides(x[a], weights[a]), JUDGED_AT)), weights=weights[b])
                )
                for a, b in (halves, halves[::-1])
            )
            for sides in (_symmetric, _one_by_one)
        ]
        if scores[1] < scores[0]:
            return _one_by_one(x, weights)
    return _symmetric(x, weights)


def _symmetric(x, weights) -> tuple[Quantiles, Quantiles]:
    sizes = Quantiles.of(np.abs(x), weights, are_sizes=True)
    return sizes, sizes


def _one_by_one(x, weights) -> tuple[Quantiles, Quantiles]:
    return Quantiles.of(-x, weights, are_sizes=False), Quantiles.of(x, weights, are_sizes=False)


def ends_of(below: Quantiles, above: Quantiles, level: float) -> tuple[float, float]:
    """Ends with equal tails; where these would leave out the prediction itself, one end is there."""
    if above.are_sizes:
        half = above.at(level)
        return -half, half
    of_negative = float(np.interp(0.0, above.values, above.shares))
    low, high = (1 - level) / 2, (1 + level) / 2
    low, high = min(low, of_negative), max(high, of_negative)
    if high - low > level:  # One end has been moved to the prediction: the other keeps the level.
        low, high = (low, low + level) if low == of_negative else (high - level, high)
    return -max(0.0, below.at(1 - low)), max(0.0, above.at(high))


def interval_scores(x, low, high) -> np.ndarray:
    """Width plus 2 / (1 - level) times the miss (Gneiting and Raftery 2007)."""
    return high - low + 2 / (1 - JUDGED_AT) * np.maximum(0.0, np.maximum(low - x, x - high))
