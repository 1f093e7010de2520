"""Intervals: how far a filled entry may be from the truth.

The variance of an entry that is measured anew is that of its prediction under the model, plus the noise,

    t u_i' (U_O' W U_O + Lambda)^-1 u_i + t,

times factors where some rows are worse explained than others, or large values worse predicted than small ones. No
model is quite true, so half-widths are a power of this deviation times a quantile of the errors of observed entries of
partial columns that were left out, each in units of its own such power (split conformal): the coverage rests on these
errors, not on the model. Power and factors are those with which the intervals of the entries left out are narrowest.
Where less is known than of any of these, as in columns without an entry, only the model can tell how much less:
half-widths then are proportional to the deviation itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import linalg, stats

from ._threads import one_blas_thread
from .leaving_out import leave_one_out
from .solve import Status

_ASKED_ENTRIES = 20_000
_ROW_CAUTION = 10.0  # imaginary entries of average error with which a row's own are diluted
_VALUE_CAUTION = 20.0  # likewise for those of about the same value
_VALUE_BINS = 20  # at most
_BIN_ENTRIES = 100  # at least
_POWERS = 1.0, 0.75, 0.5, 0.25, 0.0  # of the deviation; 0 is an interval of constant width
_USUAL_LEVEL = 0.9  # at which intervals beyond are as wide as the model's own would be
_LEVELS = 0.5, 0.8, 0.9, 0.95  # whose widths count
_ENOUGH = 200  # errors from which power and factors are chosen


class _ValueFactors(NamedTuple):
    """By which deviations are multiplied at the predicted values `places`, both of shape (b,); linear between them."""

    places: np.ndarray
    factors: np.ndarray

    def at(self, predicted) -> np.ndarray:
        return np.interp(predicted, self.places, self.factors)


_WHATEVER_VALUE = _ValueFactors(np.zeros(1), np.ones(1))


class _Law(NamedTuple):
    """A power of the deviation, measured in some unit, up to the largest that was tried; beyond, in proportion."""

    power: float = 1.0
    unit: float = 1.0
    largest: float = np.inf
    slope: float = 1.0

    def of(self, deviations, untried=False) -> np.ndarray:
        """Of those `untried` whatever their size in proportion."""
        within = self.unit * (np.minimum(deviations, self.largest) / self.unit) ** self.power
        return np.where(untried | (deviations > self.largest), self.slope * deviations, within)


_PROPORTIONAL = _Law()


@dataclass(frozen=True)
class Calibration:
    """What leaving out observed entries has shown.

    Attributes
    ----------
    scores : array of shape (k,)
        Sorted errors of the entries left out, each in units of its own `reach`.
    row_factors : array of shape (m,)
        By which the deviation of each row is multiplied.
    value_factors : _ValueFactors
        By which it is multiplied for an entry's predicted value.
    law : _Law
        What half-widths are proportional to, of a deviation with its factors.
    """

    scores: np.ndarray
    row_factors: np.ndarray
    value_factors: _ValueFactors = _WHATEVER_VALUE
    law: _Law = _PROPORTIONAL

    def reach(self, rows, predicted, deviations, untried=False) -> np.ndarray:
        """What half-widths are proportional to, shape (k,); 0 where there is no deviation.

        `untried` are entries of columns of which none could be left out.
        """
        factors = self.row_factors[rows] * self.value_factors.at(predicted)
        return np.where(deviations == 0, 0.0, self.law.of(factors * deviations, untried))

    def half_width(self, level: float) -> float:
        """In units of the reach; infinite if too few entries were left out for this level."""
        if self.scores.size == 0:
            return float(stats.norm.ppf(0.5 + level / 2))
        return _quantile(self.scores, level)


def _quantile(scores, level: float) -> float:
    k = int(np.ceil((scores.size + 1) * level))
    return float(scores[k - 1]) if k <= scores.size else np.inf


@np.errstate(over="ignore")  # of wild entries, whose scores are cut off
def calibrate(completion) -> Calibration:
    """Leave out entries of partial columns."""
    m = completion.shape[0]
    asked = completion.observations.take(able_columns(completion))
    errors, deviations = left_out(completion, asked)
    known = np.isfinite(errors) & (deviations > 0)
    predicted = asked.values[known] - errors[known]
    errors, deviations, rows = np.abs(errors[known]), deviations[known], asked.rows[known]
    if errors.size < _ENOUGH:
        return Calibration(np.sort(np.minimum(errors / deviations, 1e100)) * completion.optimism, np.ones(m))
    unit = float(np.median(deviations))
    choices = []
    for by_value, by_row in product((False, True), repeat=2):
        values, row_factors, own = _WHATEVER_VALUE, np.ones(m), deviations
        if by_value:
            values = _value_factors(predicted, _squares(errors, own))
            own = own * values.at(predicted)
        if by_row:
            row_factors, of_entries = _row_factors(rows, _squares(errors, own), m)
            own = own * of_entries
        for power in _POWERS:
            law = _law_of(errors, own, power, unit)
            reach = law.of(own)
            scores = np.sort(np.minimum(errors / reach, 1e100)) * completion.optimism
            widths = [np.log(max(_quantile(scores, level) * reach.mean() / unit, 1e-300)) for level in _LEVELS]
            choices.append((sum(widths), Calibration(scores, row_factors, values, law)))
    return min(choices, key=lambda choice: choice[0])[1]


def _law_of(errors, deviations, power: float, unit: float) -> _Law:
    """This power, and for what was not tried intervals as wide as if all were proportional to their deviations."""
    law = _Law(power, unit, float(deviations.max()))
    ends = [_quantile(np.sort(errors / x), _USUAL_LEVEL) for x in (deviations, law.of(deviations))]
    least = float(law.of(law.largest)) / law.largest
    return law._replace(slope=max(ends[0] / ends[1], least) if ends[1] else least)


def _squares(errors, deviations) -> np.ndarray:
    return np.minimum(errors / deviations, 1e100) ** 2


def able_columns(completion) -> np.ndarray:
    """Partial columns of which entries can be left out, evenly chosen where there are many."""
    o = completion.observations
    partial = o.partial_columns
    able = partial[(o.n_observed[partial] > 1) & (completion.status[partial] != Status.OVERFLOW)]
    most = max(1, int(_ASKED_ENTRIES / max(1.0, np.median(o.n_observed[able])))) if able.size else 0
    return able[np.linspace(0, able.size - 1, most).astype(int)] if able.size > most else able


def _value_factors(predicted, squares) -> _ValueFactors:
    """From the mean squares of entries of about the same predicted value, about equally many each time."""
    typical = float(np.mean(squares))
    n_bins = min(_VALUE_BINS, predicted.size // _BIN_ENTRIES)
    if typical == 0 or n_bins < 2:
        return _WHATEVER_VALUE
    size = float(np.abs(predicted).max()) or 1.0
    coarse = np.round(predicted / size, 9)  # what differs by rounding is the same value, and in the same bin
    edges = np.unique(np.quantile(coarse, np.linspace(0, 1, n_bins + 1)[1:-1], method="higher"))
    of = np.searchsorted(edges, coarse, side="right")
    counts = np.bincount(of, minlength=edges.size + 1)
    sums, places = np.bincount(of, squares), np.bincount(of, coarse) / np.maximum(counts, 1) * size
    factors = np.sqrt((sums + _VALUE_CAUTION * typical) / ((counts + _VALUE_CAUTION) * typical))
    return _ValueFactors(places[counts > 0], factors[counts > 0])


def _row_factors(rows, squares, m) -> tuple[np.ndarray, np.ndarray]:
    """The factor of every row, shape (m,), and for every entry left out the one that its row has without it."""
    typical = float(np.mean(squares))
    if typical == 0:
        return np.ones(m), np.ones(rows.size)
    sums, counts = np.bincount(rows, squares, m), np.bincount(rows, minlength=m)
    factors = np.sqrt((sums + _ROW_CAUTION * typical) / ((counts + _ROW_CAUTION) * typical))
    others = np.maximum(sums[rows] - squares, 0) + _ROW_CAUTION * typical
    return factors, np.sqrt(others / ((counts[rows] - 1 + _ROW_CAUTION) * typical))


def left_out(completion, asked) -> tuple[np.ndarray, np.ndarray]:
    """Errors and predicted deviations of the entries left out, shape (nnz,) each."""
    noise = completion.noise_variance
    errors, deviations = leave_one_out(completion.space, asked, [noise])
    unit = 1.0 if noise else _plain_noise(completion)
    return errors[:, 0], deviations[:, 0] * unit


def _plain_noise(completion) -> float:
    noise = completion.noise_std
    return noise if np.isfinite(noise) else 1.0  # the scores then carry the scale


def deviations(completion, rows, columns) -> np.ndarray:
    """Predicted standard deviations of entries measured anew, without the factors of rows; shape (k,)."""
    o, space = completion.observations, completion.space
    noise = completion.noise_variance or _plain_noise(completion) ** 2
    scale = np.sqrt(space.variances) if completion.noise_variance else 1.0

    def F(i):
        return space.basis[i].astype(np.float64) * scale

    result = np.full(rows.size, np.nan)
    order = np.argsort(columns, kind="stable")
    starts = np.flatnonzero(np.diff(columns[order], prepend=-1))
    with one_blas_thread():
        for at in np.split(order, starts[1:]) if order.size else ():
            j = columns[at[0]]
            if completion.status[j] != Status.FULL and Status(completion.status[j]).is_filled:
                result[at] = np.sqrt(
                    noise + _prediction_variance(F, o, j, F(rows[at]), noise, completion.noise_variance > 0)
                )
    return result


def _prediction_variance(F, o, j, targets, noise, has_prior) -> np.ndarray:
    """Variance of the fitted values of column j at some rows."""
    here = slice(o.indptr[j], o.indptr[j + 1])
    w = np.ones(here.stop - here.start) if o.weights is None else o.weights[here].astype(np.float64)
    B = np.sqrt(w)[:, None] * F(o.rows[here])
    if has_prior and B.shape[0] < B.shape[1]:
        factor = linalg.cholesky(B @ B.T + noise * np.eye(B.shape[0]), lower=True, check_finite=False)
        explained = linalg.solve_triangular(factor, B @ targets.T, lower=True, check_finite=False)
        return np.maximum((targets**2).sum(axis=1) - (explained**2).sum(axis=0), 0.0)
    stacked = np.vstack([B, np.sqrt(noise) * np.eye(B.shape[1])]) if has_prior else B
    R = np.linalg.qr(stacked, mode="r")
    spread = linalg.solve_triangular(R, targets.T, trans="T", check_finite=False)
    return noise * (spread**2).sum(axis=0)
