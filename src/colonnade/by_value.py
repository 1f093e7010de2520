"""What the predicted value of an entry tells of its error.

Large values are often worse predicted than small ones. And where the numbers end, at 0 or at the best of a scale,
errors go farther to one side than to the other. Of entries with about the same predicted value, those that were left
out show both: the size of their errors, and the exponential to both sides

    exp(-(q - e) / l)  below q,   exp(-(e - q) / u)  above,

that makes their errors e likeliest. The intervals of equal likelihood go from q - l h to q + u h.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_BINS = 20  # at most
_BIN_ENTRIES = 100  # at least
_CAUTION = 20.0  # imaginary entries of average error about 0 with which those of a bin are diluted
_SAME = 1e-9  # of the spread of predicted values: what differs by less is the same
_WILD = 0.01  # of the errors of a bin, at either end, do not count in full
_FAR = 1e6  # times the usual size, beyond which predicted values are not told apart
_MIDDLE = np.linspace(0.1, 0.9, 41)  # shares of the errors of a bin that may be below the likeliest one


class Curve(NamedTuple):
    """Numbers at some predicted values, shape (b,) each; linear between them."""

    places: np.ndarray
    numbers: np.ndarray

    def at(self, predicted) -> np.ndarray:
        return np.interp(predicted, self.places, self.numbers)


class Sides(NamedTuple):
    """Where intervals lie whose half-widths h are known: from q - l h to q + u h, relative to the predictions.

    With l + u = 2 their width is 2 h. Those that would leave out the prediction are moved until they end there. Shape
    (k,) each.
    """

    q: np.ndarray
    u: np.ndarray

    def ends(self, half) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.q - (2 - self.u) * half, self.q + self.u * half
        return np.clip(low, -2 * half, 0.0), np.clip(high, 0.0, 2 * half)

    def sizes(self, errors) -> np.ndarray:
        """The half-widths of the intervals that just hold these errors."""
        beyond = errors - self.q
        between = (np.minimum(self.q, 0) <= errors) & (errors <= np.maximum(self.q, 0))
        unmoved = np.where(between, 0.0, np.where(beyond > 0, beyond / self.u, -beyond / (2 - self.u)))
        return np.maximum(unmoved, np.abs(errors) / 2)


class Shape(NamedTuple):
    """The sides at any predicted value."""

    q: Curve
    u: Curve

    def at(self, predicted) -> Sides:
        return Sides(self.q.at(predicted), self.u.at(predicted))


ONE = Curve(np.zeros(1), np.ones(1))
SYMMETRIC = Shape(Curve(np.zeros(1), np.zeros(1)), ONE)


def deviation_factors(predicted, squares) -> Curve:
    """By which deviations are multiplied, from the mean squares of the errors in deviations."""
    typical = float(np.mean(squares))
    if typical == 0:
        return ONE
    places, bins = _bins(predicted)
    means = [(squares[entries].sum() + _CAUTION * typical) / (entries.size + _CAUTION) for entries in bins]
    return Curve(places, np.sqrt(np.array(means) / typical)) if len(bins) > 1 else ONE


def shape_of(predicted, errors) -> Shape:
    """The likeliest one; symmetric if there are too few errors."""
    places, bins = _bins(predicted)
    if not bins:
        return SYMMETRIC
    q, u = np.transpose([_sides_of(np.sort(errors[entries])) for entries in bins])
    return Shape(Curve(places, q), Curve(places, u))


def _bins(predicted) -> tuple[np.ndarray, list[np.ndarray]]:
    """The mean predicted value and the entries of each bin, about equally many; none if there are too few."""
    n = predicted.size
    n_bins = min(_BINS, n // _BIN_ENTRIES)
    if n_bins == 0:
        return np.zeros(0), []
    size = float(np.quantile(np.abs(predicted), 0.9))  # but for a few that are far off
    spread = float(np.ptp(np.quantile(predicted, [0.1, 0.9])))
    grain = max(_SAME * spread, 64 * np.finfo(np.float64).eps * size) or 1.0
    within = _FAR * (size or np.abs(predicted).max())
    # What differs by rounding is the same value, and in the same bin.
    coarse = np.round(np.clip(predicted, -within, within) / grain)
    order = np.argsort(coarse, kind="stable")
    starts = [0]
    for edge in np.searchsorted(coarse[order], coarse[order][np.arange(1, n_bins) * n // n_bins]):
        if starts[-1] + _BIN_ENTRIES <= edge <= n - _BIN_ENTRIES:
            starts.append(int(edge))
    bins = np.split(order, starts[1:])
    return np.array([coarse[entries].mean() * grain for entries in bins]), bins


def _sides_of(errors) -> tuple[float, float]:
    """q and u of rising errors, with l + u = 2."""
    n, wild = errors.size, int(errors.size * _WILD)
    errors = np.clip(errors, errors[wild], errors[n - 1 - wild])
    unit = float(np.abs(errors).max()) or 1.0
    errors = errors / unit
    at = np.unique(np.rint(_MIDDLE * (n - 1)).astype(int))
    sums = np.concatenate([[0.0], np.cumsum(errors)])
    below = np.maximum(errors[at] * at - sums[at], 0)
    above = np.maximum(sums[n] - sums[at] - errors[at] * (n - at), 0)
    best = int(np.argmin(np.sqrt(below) + np.sqrt(above)))
    one_more = (below[best] + above[best]) / n or 1.0  # on each side, lest one be without any
    down, up = np.sqrt(below[best] + one_more), np.sqrt(above[best] + one_more)
    return errors[at[best]] * unit * n / (n + _CAUTION), 2 * up / (down + up)
