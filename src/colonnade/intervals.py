"""Intervals: how far a filled entry may be from the truth.

The variance of an entry that is measured anew is that of its prediction under the model, plus the noise,

    t u_i' (U_O' W U_O + Lambda)^-1 u_i + t,

times factors where some rows are worse explained than others, or large values worse predicted than small ones. No
model is quite true, so the widths are those that hold the wanted share of known entries that were predicted as if they
were not (split conformal; see `trials`), each counted for as many unseen ones as it stands for: the coverage rests on
their errors, not on the model. How much wider intervals are where less is known (see `contours`), which factors, and
whether errors go farther to one side at some values (see `by_value`), is chosen on these entries too: at no usual level
wider than intervals of constant width, and besides as narrow as can be. Where far less is known than of any of these
only the model can tell how much less, and half-widths grow in proportion to the deviation; in columns without an entry
to leave out they are in proportion to it altogether, if that is more.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import stats

from .by_value import ONE, SYMMETRIC, Curve, Shape, deviation_factors, shape_of
from .contours import FAR, half_widths, log_thresholds
from .trials import ONE_DEVIATION, Trials

_JUDGED_ENTRIES = 10_000  # of these, whose widths are compared
_ROW_CAUTION = 10.0  # entries of a row that count for half, all others for the other half
_IN_PROPORTION, _CONSTANT = 2.0**-10, 2.0**30  # times the deviation: what widths then are
_SPREADS = np.array([*(2.0 ** np.arange(-4, 1.5, 0.5)), _CONSTANT])  # times this, of the contours that are tried
_TRIED = 2.0  # times the largest deviation of the entries left out: beyond it widths grow in proportion
_LEVELS = 0.5, 0.8, 0.9, 0.95  # whose widths count
_LEAST = 1e-300  # width that has a logarithm
_EQUAL = 0.005  # by which logarithms of widths may differ by chance, at each level
_ENOUGH = 200  # errors from which spread, factors and shape are chosen


class _Quantiles(NamedTuple):
    """Rising values, each with the weight of all up to it as a share of the whole and of one more; shape (k,) each."""

    values: np.ndarray
    shares: np.ndarray

    @classmethod
    def of(cls, values, weights) -> _Quantiles:
        order = np.argsort(values)
        whole = weights.sum() * (1 + 1 / _effective(weights)) if weights.size else 1.0
        return cls(values[order], np.cumsum(weights[order]) / whole)

    def at(self, level: float) -> float:
        """Infinite if there are too few for this level."""
        k = int(np.searchsorted(self.shares, level - 1e-12))
        return float(self.values[k]) if k < self.values.size else np.inf


def _effective(weights) -> float:
    """To how many of equal weight they amount."""
    return float(weights.sum() ** 2 / (weights**2).sum())


@dataclass(frozen=True)
class Calibration:
    """What leaving out observed entries has shown.

    Attributes
    ----------
    log_thresholds : _Quantiles
        Of the entries left out: those of the contours that just hold them.
    ratios : _Quantiles
        The sizes of their errors, as `shape` has them, in deviations.
    largest : float
        Of their deviations.
    spread : float
        By which deviations are multiplied for the contours; all deviations here have their factors.
    row_factors : array of shape (m,)
        By which the deviation of each row is multiplied.
    value_factors : Curve
        By which it is multiplied for an entry's predicted value.
    shape : Shape
        How much of an interval lies below the prediction and how much above.
    is_noise_known : bool
        Without which deviations mean nothing if no entry was left out.
    """

    log_thresholds: _Quantiles
    ratios: _Quantiles
    largest: float
    spread: float
    row_factors: np.ndarray
    value_factors: Curve
    shape: Shape
    is_noise_known: bool

    def ends(self, rows, predicted, deviations, level: float, untried=False) -> tuple[np.ndarray, np.ndarray]:
        """Of intervals, relative to the predictions, shape (k,) each.

        They are 0 where there is no deviation, and infinite if too few entries were left out for this level. `untried`
        are entries of columns of which none could be left out.
        """
        return self.shape.at(predicted).ends(self._half_widths(rows, predicted, deviations, level, untried))

    def _half_widths(self, rows, predicted, deviations, level: float, untried) -> np.ndarray:
        own = deviations * self.row_factors[rows] * self.value_factors.at(predicted)
        if self.ratios.values.size == 0:
            return own * stats.norm.ppf(0.5 + level / 2) if self.is_noise_known else np.where(own == 0, 0.0, np.inf)
        tried = np.minimum(own, _TRIED * self.largest)
        with np.errstate(invalid="ignore", divide="ignore"):
            result = half_widths(self.log_thresholds.at(level), self.spread * tried) * (own / tried)
            by_model = own * self.ratios.at(level)
        return np.where(own == 0, 0.0, np.where(untried, np.maximum(result, by_model), result))


class _Setting(NamedTuple):
    """What intervals may depend on, and the sizes of errors and the deviations that the entries left out then have."""

    sizes: np.ndarray
    deviations: np.ndarray
    row_factors: np.ndarray
    value_factors: Curve
    shape: Shape


@np.errstate(over="ignore")  # of wild entries, whose scores are cut off
def calibrate(entries: Trials, m: int, *, is_noise_known: bool) -> Calibration:
    """What trials teach of m rows; without any the model is believed, and nothing if not even the noise is known."""
    entries = Trials(*(figures[entries.weights > 0] for figures in entries))
    best = _setting(entries, m)
    size = _size(best.sizes, best.deviations)
    if best.sizes.size == 0 or _effective(entries.weights) < _ENOUGH:
        return _calibration(best, entries.weights, _IN_PROPORTION * size, is_noise_known)
    some = np.linspace(0, best.sizes.size - 1, min(best.sizes.size, _JUDGED_ENTRIES)).astype(int)
    weights = entries.weights[some]
    quantiles = _Quantiles.of(best.sizes[some], weights)
    constant = np.log([max(quantiles.at(level), _LEAST) for level in _LEVELS])
    spread, least = _CONSTANT * size, np.inf
    for by in product((False, True), repeat=3):
        setting = _setting(entries, m, *by)
        for tried in _size(setting.sizes, setting.deviations) * _SPREADS:
            widths = _log_widths(setting.sizes[some], setting.deviations[some], weights, tried)
            dearer = widths.sum() + sum(by) * _EQUAL * len(_LEVELS)  # lest chance alone makes them narrower
            if (widths <= constant + _EQUAL).all() and dearer < least:
                best, spread, least = setting, tried, dearer
    return _calibration(best, entries.weights, spread, is_noise_known)


def _setting(entries: Trials, m: int, by_shape=False, by_value=False, by_row=False) -> _Setting:
    predicted, own = entries.predicted, entries.deviations
    shape = shape_of(predicted, entries.errors) if by_shape else SYMMETRIC
    sizes = shape.at(predicted).sizes(entries.errors)
    value_factors, row_factors = ONE, np.ones(m)
    if by_value:
        value_factors = deviation_factors(predicted, _squares(sizes, own))
        own = own * value_factors.at(predicted)
    if by_row:
        row_factors, of_entries = _row_factors(entries.rows, _squares(sizes, own), m)
        own = own * of_entries
    return _Setting(sizes, own, row_factors, value_factors, shape)


def _calibration(setting: _Setting, weights, spread: float, is_noise_known: bool) -> Calibration:
    sizes, own, *rest = setting
    thresholds = _Quantiles.of(log_thresholds(sizes, spread * own), weights)
    ratios = _Quantiles.of(sizes / own, weights)
    return Calibration(thresholds, ratios, float(own.max(initial=0)), spread, *rest, is_noise_known)


def _size(errors, deviations) -> float:
    """One deviation of the errors, in units of those predicted; of errors that are 0 nothing can be said."""
    ratios = np.minimum(errors / deviations, FAR)[errors > 0]
    return float(np.quantile(ratios, ONE_DEVIATION)) if ratios.size else 1.0


def _log_widths(sizes, deviations, weights, spread: float) -> np.ndarray:
    """Of the intervals of the entries left out the logarithm of the mean half-width, at every level that counts."""
    thresholds = _Quantiles.of(log_thresholds(sizes, spread * deviations), weights)
    widths = [np.average(half_widths(thresholds.at(x), spread * deviations), weights=weights) for x in _LEVELS]
    return np.log(np.maximum(widths, _LEAST))


def _squares(errors, deviations) -> np.ndarray:
    return np.minimum(errors / deviations, FAR) ** 2


def _row_factors(rows, squares, m) -> tuple[np.ndarray, np.ndarray]:
    """The factor of every row, shape (m,), and for every entry left out the one that its row has without it."""
    typical = float(np.mean(squares))
    if typical == 0:
        return np.ones(m), np.ones(rows.size)
    sums, counts = np.bincount(rows, squares, m), np.bincount(rows, minlength=m)

    def factors(sums, counts):
        means = (sums + typical) / ((counts + 1) * typical)  # with an average one, lest all be 0
        return means ** (counts / (counts + _ROW_CAUTION) / 2)

    return factors(sums, counts), factors(np.maximum(sums[rows] - squares, 0), counts[rows] - 1)
