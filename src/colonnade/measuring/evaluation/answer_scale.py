"""The scale of answers: two ends that a logistic curve joins, or plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...model.column_space import no_variances

_ENDS_SHARE = 0.05  # Share of answers at the ends from which a scale counts as bounded.
_LARGEST = 1e150  # Squares of larger numbers overflow; squares of numbers below its inverse underflow.


@dataclass(frozen=True)
class AnswerScale:
    """Answers are `low + width * unit`; units of a bounded scale lie between 0 and 1."""

    low: float
    width: float
    bounded: bool

    def to_unit(self, values) -> np.ndarray:
        return (np.asarray(values, dtype=np.float64) - self.low) / self.width

    def from_unit(self, units) -> np.ndarray:
        return self.low + self.width * np.asarray(units)

    def mean(self, predictor, variance) -> np.ndarray:
        """Expected answer where the linear predictor is Gaussian, by the probit approximation of the logistic curve."""
        if not self.bounded:
            return predictor
        return logistic(predictor / np.sqrt(1 + np.pi / 8 * variance))

    def slope(self, mean, variance) -> np.ndarray:
        """Derivative of `mean` with respect to the predictor."""
        return mean * (1 - mean) / np.sqrt(1 + np.pi / 8 * variance) if self.bounded else np.ones_like(mean)

    def unit_variance(self, mean) -> np.ndarray:
        """Variance of an answer, up to the dispersion."""
        return mean * (1 - mean) if self.bounded else np.ones_like(mean)


def logistic(x) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))  # Beyond 30 the curve is 0 or 1 to 13 digits.


def answer_scale(values) -> AnswerScale:
    """The scale of finite answers; it does not depend on their unit or origin."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise ValueError("the columns known in full are all equal, so they tell nothing of others")
    if max(abs(low), abs(high)) > _LARGEST or high - low < 1 / _LARGEST:
        raise ValueError(no_variances(values))
    if np.mean((values == low) | (values == high)) >= _ENDS_SHARE:
        return AnswerScale(low, high - low, True)
    return AnswerScale(float(np.mean(values)), float(np.std(values)), False)
