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
_WILD = 0.01  # of the errors of a bin, at either end, do not count in full
_MIDDLE = np.linspace(0.1, 0.9, 41)  # shares of the errors of a bin that may be below the likeliest one


class Curve(NamedTuple):
    """Numbers at some predicted values, shape (b,) each; linear between them."""

    places: np.ndarray
    numbers: np.ndarray

    def at(self, predicted) -> np.ndarray:
        return np.interp(predicted, self.places, self.numbers)


class Sides(NamedTuple):
    """Where intervals lie whose half-widths h are known: from likeliest - (2 - above) h to likeliest + above h.

    That is relative to the predictions, and they are stretched to hold these too. Shape (k,) each.
    """

    likeliest: np.ndarray
    above: np.ndarray

    def sizes(self, errors) -> np.ndarray:
        """The half-widths of the intervals that just hold these errors."""
        beyond = errors - self.likeliest
        on_the_way = (np.minimum(self.likeliest, 0) <= errors) & (errors <= np.maximum(self.likeliest, 0))
        return np.where(on_the_way, 0.0, np.where(beyond > 0, beyond / self.above, -beyond / (2 - self.above)))

    def ends(self, half) -> tuple[np.ndarray, np.ndarray]:
        """None of the first is positive, none of the second negative."""
        low, high = self.likeliest - (2 - self.above) * half, self.likeliest + self.above * half
        return np.minimum(low, 0.0), np.maximum(high, 0.0)


class Shape(NamedTuple):
    """The sides at any predicted value."""

    likeliest: Curve
    above: Curve

    def at(self, predicted) -> Sides:
        return Sides(self.likeliest.at(predicted), self.above.at(predicted))


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
    places, bins = _bins(predicted)
    if not bins:
        return SYMMETRIC
    likeliest, above = np.transpose([_two_sides(np.sort(errors[entries])) for entries in bins])
    return Shape(Curve(places, likeliest), Curve(places, above))


def _bins(predicted) -> tuple[np.ndarray, list[np.ndarray]]:
    """The mean predicted value and the entries of each bin, about equally many; none if there are too few."""
    n_bins = min(_BINS, predicted.size // _BIN_ENTRIES)
    if n_bins == 0:
        return np.zeros(0), []
    size = float(np.abs(predicted).max()) or 1.0
    coarse = np.round(predicted / size, 9)  # what differs by rounding is the same value, and in the same bin
    edges = np.unique(np.quantile(coarse, np.arange(1, n_bins) / n_bins, method="higher"))
    of = np.searchsorted(edges, coarse, side="right")
    order = np.argsort(of, kind="stable")
    bins = np.split(order, np.searchsorted(of[order], np.arange(1, edges.size + 1)))
    bins = [entries for entries in bins if entries.size]
    return np.array([coarse[entries].mean() * size for entries in bins]), bins


def _two_sides(errors) -> tuple[float, float]:
    """The likeliest of rising errors, and how far intervals of half-width 1 go above it."""
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
