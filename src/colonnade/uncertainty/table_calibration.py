"""Calibration of a table that the factor model has filled: deviations become intervals that hold row by row.

The error of entry (i, j), whose predicted deviation is s_ij, is

    e_ij = s_ij f_i g_j x_ij,      f_i^2 and g_j^2 inverse gamma, their strength learned from all rows and columns.

Held-out entries give the distribution of x, whose quantiles are the ends of intervals (split conformal prediction).
They are too few to give the factor of every row and column. All other entries, each left out in closed form, tell these
too: see `model.leverage`. An entry with residual e and leverage h counts as 1 - h scores of size e / (1 - h).

The leverages of column and row are added where the two sides are fitted to each other, as with gaps anywhere. They are
multiplied, 1 - h = (1 - h_j) (1 - h_i), where the sides are fitted one after the other, as with many full columns. The
interval score of the held-out entries decides between these two and factors from held-out entries alone.

The unit of a row and the two factors are themselves learned, from few entries where few are known. x is then Student-t,
with the degrees of freedom that these have together: see `student`. Quantiles are those of x on the normal scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._support.threads import one_blas_thread
from ..data.observations import Observations
from ..model.hidden_entries import lines_of_pattern
from ..model.inverse_gamma import InverseGamma
from ..model.learned import Learned
from ..model.leverage import LeftOut, leave_out, leave_out_entries
from ..model.table import unit_degrees
from .calibration import (
    ALL_ALIKE,
    JUDGED_AT,
    Quantiles,
    Scores,
    Spreads,
    ends_of,
    far_square,
    interval_scores,
    sides_of,
)
from .held_out import no_scores, scores_of_held_out
from .openness import Openness, noise_shares, open_columns, open_rows, spreads_about_levels
from .parts import EQUAL_PARTS, Parts, fit_parts
from .student import from_normal, to_normal, together

KINDS = "added", "multiplied", "held out"  # Where the factors come from.
_ROUNDS = 4  # Alternations between factors of rows and of columns; a fifth changes them by less than 1 %.
_ENOUGH = 100  # Held-out entries from which their score decides where the factors come from.


class Evidence(NamedTuple):
    """Scores that tell factors; arrays of shape (k,).

    Attributes
    ----------
    rows, columns : int64 arrays
    ratios : float64 array
        Errors in predicted deviations.
    counts : float64 array
        For how many scores each counts.
    """

    rows: np.ndarray
    columns: np.ndarray
    ratios: np.ndarray
    counts: np.ndarray

    @classmethod
    def of_left_out(cls, rows, columns, found: LeftOut, kind: str) -> Evidence:
        """Of entries that were left out in closed form."""
        rest = found.rest(kind)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            ratios = found.residuals / rest / found.deviations
        known = np.isfinite(ratios)
        return cls(rows, columns, np.where(known, ratios, 0.0), np.where(known, rest, 0.0))

    def squares(self, most: float) -> np.ndarray:
        with np.errstate(over="ignore"):
            return self.counts * np.minimum(self.ratios**2, most)


class Factors(NamedTuple):
    """f_i and g_j.

    Attributes
    ----------
    rows, columns : Spreads
    most : float
        Squares of scores count at most as this much.
    """

    rows: Spreads
    columns: Spreads
    most: float

    @classmethod
    def of(cls, e: Evidence, shape, alike: str | None = None) -> Factors:
        """From all evidence; the lines that are `alike`, "rows" or "columns", have the factor 1."""
        most = far_square(e.ratios[e.counts > 0])
        squares, g = e.squares(most), np.ones(shape[1])
        for _ in range(_ROUNDS):
            rows = Spreads.of(e.rows, squares / g[e.columns] ** 2, shape[0], e.counts)
            rows = rows._replace(prior=ALL_ALIKE) if alike == "rows" else rows
            columns = Spreads.of(e.columns, squares / rows.factors[e.rows] ** 2, shape[1], e.counts)
            columns = columns._replace(prior=ALL_ALIKE) if alike == "columns" else columns
            g = columns.factors
        # Rows get what a new row with the same entries would get: `factors_of_new_rows`.
        return cls(rows._replace(sums=np.bincount(e.rows, squares / g[e.columns] ** 2, shape[0])), columns, most)

    def without(self, e: Evidence) -> np.ndarray:
        """f_i g_j of some scores, each without its own part in them."""
        squares, f, g = e.squares(self.most), self.rows.factors, self.columns.factors
        of_rows = self.rows.factors_without(e.rows, squares / g[e.columns] ** 2, e.counts)
        return of_rows * self.columns.factors_without(e.columns, squares / f[e.rows] ** 2, e.counts)


class OpenLines(NamedTuple):
    """What rows and columns of a table leave open: see `openness`.

    Attributes
    ----------
    rows, columns : arrays of shape (m,) and (n,)
        Shares of the fit's variance.
    noise, spread : arrays of shape (m,), or (n,) if `is_turned`
        See `Openness`.
    is_turned : bool
        Whether the model's rows are the table's columns.
    """

    rows: np.ndarray
    columns: np.ndarray
    noise: np.ndarray
    spread: np.ndarray
    is_turned: bool

    @classmethod
    def of(cls, learned: Learned, spreads, shape) -> OpenLines:
        """From a table of this shape; further columns may have been added to it."""
        f, (n_rows, n_columns) = learned.model, learned.at(*shape)
        lines = learned.at(open_rows(f, n_rows, n_columns), open_columns(f, n_rows))
        return cls(*lines, noise_shares(f), spreads, learned.is_turned)

    def of_columns(self, which, open) -> OpenLines:
        """Those of some columns, which leave this open; only a table in memory is turned."""
        if not self.is_turned:
            return self._replace(columns=open)
        return self._replace(columns=open, noise=self.noise[which], spread=self.spread[which])

    def at(self, rows, columns) -> Openness:
        lines = columns if self.is_turned else rows
        open = 1 - (1 - self.rows[rows]) * (1 - self.columns[columns])
        return Openness(open, self.noise[lines], self.spread[lines])


@dataclass(frozen=True, eq=False)
class TableCalibration:
    """What held-out entries, and all others left out, say about unseen ones.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    row_factors, column_factors : arrays of shape (m,) and (n,)
    row_degrees, column_degrees : arrays of shape (m,) and (n,)
        Degrees of freedom of the factors, and of the units on the side that has them.
    parts : Parts
        Factors of the noise and of the rest in the squares of predicted deviations.
    row_prior, column_prior : InverseGamma
        Of the squares of the factors.
    most : float
        Squares of scores count at most as this much in the factors.
    lines : OpenLines
        What rows and columns leave open, where factors mean less.
    scores : Scores
        Held-out errors, with deviations times the factors that their rows and columns have without them.
    x : array of shape (k,)
        The ratios of these as normal scores.
    below, above : Quantiles
        Of x on either side of the prediction; one and the same, of sizes, where intervals are symmetric.
    """

    kind: str
    row_factors: np.ndarray
    column_factors: np.ndarray
    row_degrees: np.ndarray
    column_degrees: np.ndarray
    parts: Parts
    row_prior: InverseGamma
    column_prior: InverseGamma
    most: float
    lines: OpenLines
    scores: Scores
    x: np.ndarray
    below: Quantiles
    above: Quantiles

    def ends(self, level: float) -> tuple[float, float]:
        """Low and high end of an interval about a prediction as normal scores."""
        return ends_of(self.below, self.above, level)

    def ends_at(self, level: float, rows, columns) -> tuple[np.ndarray, np.ndarray]:
        """Low and high ends at (rows[k], columns[k]), in deviations times factors."""
        degrees = together(self.row_degrees[rows], self.column_degrees[columns])
        low, high = (from_normal(end, degrees) for end in self.ends(level))
        return low, high

    def factors_at(self, rows, columns) -> np.ndarray:
        """By what deviations with their `parts` are multiplied at (rows[k], columns[k])."""
        factors = self.row_factors[rows] * self.column_factors[columns]
        return factors * self.lines.at(rows, columns).widening(factors, self.parts)

    def factors_at_new_rows(self, factors, open_rows, columns) -> np.ndarray:
        """The same in rows that nothing was learned from, by their factors and what they leave open."""
        factors = factors * self.column_factors[columns]
        return factors * self.lines._replace(rows=open_rows).at(slice(None), columns).widening(factors, self.parts)

    def half_width(self, level: float) -> float:
        """Half the width of an interval, in deviations times factors."""
        low, high = self.ends(level)
        return (high - low) / 2

    def of_columns(self, places, learned: Learned, o: Observations) -> TableCalibration:
        """The same for columns that stand at these places among those learned from, or nowhere (-1).

        The factors of others follow from their own known entries, `o`.
        """
        g, degrees = np.ones(places.size), np.full(places.size, np.inf)
        is_known = places >= 0
        if self.scores.rows.size and not is_known.all():
            rows, columns, left_out = leave_out_entries(learned, o, o.shape[1])
            g, degrees = self.factors_of_new_columns(rows, columns, left_out, o.shape[1])
        g[is_known] = self.column_factors[places[is_known]]
        degrees[is_known] = self.column_degrees[places[is_known]]
        open = open_columns(learned.model)
        open[is_known] = self.lines.columns[places[is_known]]
        lines = self.lines._replace(columns=open)
        return replace(self, column_factors=g, column_degrees=degrees, lines=lines)

    def factors_of_new_rows(self, rows, columns, found: LeftOut, count: int) -> tuple[np.ndarray, np.ndarray]:
        """f of rows that nothing was learned from, by their known entries, and its degrees; shape (count,) each."""
        new = _new_spreads(self, self.row_prior, rows, self.column_factors[columns], found, count)
        return new.factors, new.degrees

    def factors_of_new_columns(self, rows, columns, found: LeftOut, count: int) -> tuple[np.ndarray, np.ndarray]:
        """g of columns that nothing was learned from, by their known entries, and its degrees; shape (count,) each."""
        new = _new_spreads(self, self.column_prior, columns, self.row_factors[rows], found, count)
        return new.factors, new.degrees


def _new_spreads(c: TableCalibration, prior: InverseGamma, groups, others, found: LeftOut, count: int) -> Spreads:
    if c.kind == "held out":
        return Spreads(prior, np.zeros(count), np.zeros(count))
    e = Evidence.of_left_out(groups, groups, _scaled(found, c.parts), c.kind)
    sums = np.bincount(groups, e.squares(c.most) / others**2, count)
    return Spreads(prior, np.bincount(groups, e.counts, count), sums)


@one_blas_thread()
def calibrate_table(learned: Learned, o: Observations, n_columns: int | None = None) -> TableCalibration:
    """Factors of all rows and columns, and quantiles, of a table that the factor model has filled.

    Parameters
    ----------
    learned : Learned
    o : Observations
    n_columns : int, optional
        The number of columns that were learned from; others stand after them. Default: all.
    """
    m, n = o.shape
    n_columns = n if n_columns is None else n_columns
    o = o.with_relative_weights(n_columns)
    if learned.held_out is None or learned.is_exact:
        return _nothing_held_out(m, n, learned)
    rows, columns, left_out = leave_out_entries(learned, o, n_columns)
    old = o if n_columns == n else o.take(np.arange(n_columns))
    alike = _lines_alike(learned, old)
    scores, of_scores, shrinkage = _scores(learned, old, alike)
    parts = fit_parts(scores.ratios, scores.deviations, of_scores.noise, scores.weights)
    side = learned.at(scores.rows, scores.columns)[0]
    spreads = spreads_about_levels(learned, old)
    of_entries = Openness.of_entries(learned.model, side, of_scores.deviations, of_scores.noise, spreads)
    deviations = parts.deviations(scores.deviations, of_scores.noise)
    left_out, of_scores = (_scaled(found, parts) for found in (left_out, of_scores))
    scores = scores._replace(deviations=deviations * shrinkage)
    tried = []
    # Errors that are hidden together depend on each other, so that they give no factors.
    for kind in KINDS[:2] if learned.held_out.like_gaps else KINDS:
        own = Evidence(scores.rows, scores.columns, scores.ratios, np.ones(scores.rows.size))
        everything = own
        if kind != "held out":
            own = Evidence.of_left_out(scores.rows, scores.columns, of_scores, kind)
            everything = Evidence.of_left_out(rows, columns, left_out, kind)
        factors = Factors.of(everything, (m, n_columns), alike)
        without = factors.without(own)
        without *= of_entries.widening(without, parts)
        tried.append((kind, factors, without, _degrees(learned, old, factors)))
    losses = [_loss(learned, scores, without, degrees) for *_, without, degrees in tried]
    kind, factors, without, degrees = tried[int(np.argmin(losses)) if scores.rows.size >= _ENOUGH else 0]
    scores = scores._replace(deviations=scores.deviations * without)
    x = to_normal(scores.ratios, _degrees_at(degrees, scores))
    f, g = factors.rows.factors, factors.columns.factors
    priors = factors.rows.prior, factors.columns.prior
    sides = sides_of(x, scores.weights)
    known = OpenLines.of(learned, spreads, (m, n_columns))
    found = TableCalibration(kind, f, g, *degrees, parts, *priors, factors.most, known, scores, x, *sides)
    return found if n_columns == n else _with_new_columns(found, learned, o, n_columns)


def _lines_alike(learned: Learned, o: Observations) -> str | None:
    """ "rows" or "columns" whose known entries tell nothing of their gaps, which follow a pattern."""
    if learned.held_out is not None and learned.held_out.like_gaps:
        return "rows" if learned.is_turned else "columns"
    return lines_of_pattern(o)


def _scaled(found: LeftOut, parts: Parts) -> LeftOut:
    return found._replace(deviations=parts.deviations(found.deviations, found.noise))


def _degrees(learned: Learned, o: Observations, factors: Factors) -> tuple[np.ndarray, np.ndarray]:
    """Degrees of freedom of the scales of rows and of columns, those of units among them."""
    rows, columns = factors.rows.degrees, factors.columns.degrees
    if learned.model.settings.one_unit:
        return rows, columns
    if learned.is_turned:
        return rows, together(columns, unit_degrees(o.transposed()))
    return together(rows, unit_degrees(o)), columns


def _degrees_at(degrees, scores: Scores) -> np.ndarray:
    return together(degrees[0][scores.rows], degrees[1][scores.columns])


def _with_new_columns(found: TableCalibration, learned: Learned, o: Observations, n_columns: int) -> TableCalibration:
    """The same with the factors of columns that were added later."""
    count = o.shape[1] - n_columns
    rows, columns, left_out = leave_out_entries(learned, o, o.shape[1])
    new = columns >= n_columns
    some = LeftOut(*(figures[new] for figures in left_out))
    g, degrees = found.factors_of_new_columns(rows[new], columns[new] - n_columns, some, count)
    if learned.is_turned and not learned.model.settings.one_unit:
        degrees = together(degrees, unit_degrees(o.transposed())[n_columns:])
    sides = np.append(found.column_factors, g), np.append(found.column_degrees, degrees)
    return replace(found, column_factors=sides[0], column_degrees=sides[1])


def _scores(learned: Learned, o: Observations, alike: str | None) -> tuple[Scores, LeftOut, np.ndarray]:
    """Held-out entries with deviations that the final fit has without them, what it says of them, and its shrinkage.

    With further entries and sweeps than in the trial, deviations become smaller. Errors do so less: by a factor between
    1 and that of the deviations. Its root is taken, the middle on the scale of logarithms. Where gaps follow a pattern,
    complete lines that were hidden in part keep the deviations of the trial: the final fit knows the rest of them,
    unlike that of a line with gaps. Entries that were hidden like gaps keep theirs for the same reason.
    """
    scores, found = scores_of_held_out(learned, o), learned.held_out
    places = o.locate(scores.rows, scores.columns)
    weights = None if o.weights is None else o.weights[places].astype(np.float64)
    truth = found.truth[found.deviations > 0]
    left_out = leave_out(learned.model, *learned.at(scores.rows, scores.columns), truth, weights)
    if alike is not None:
        turned, lines = (o, scores.columns) if alike == "columns" else (o.transposed(), scores.rows)
        is_full = (turned.n_observed == turned.shape[0])[lines]
        left_out = left_out._replace(deviations=np.where(is_full, scores.deviations, left_out.deviations))
    side = learned.at(scores.rows, scores.columns)[0]
    known = (left_out.deviations > 0) & (scores.weights > 0) & (learned.model.unit[side] > 0)
    scores, left_out = Scores(*(x[known] for x in scores)), LeftOut(*(x[known] for x in left_out))
    if found.like_gaps:
        return scores, left_out, np.ones(scores.rows.size)
    shrinkage = np.sqrt(scores.deviations / left_out.deviations)
    return scores._replace(deviations=left_out.deviations), left_out, shrinkage


def _loss(learned: Learned, scores: Scores, factors, degrees) -> float:
    """Sum of the interval scores of held-out entries in the model's units; each half has the quantiles of the other."""
    side, degrees = learned.at(scores.rows, scores.columns)[0], _degrees_at(degrees, scores)
    unit = learned.model.unit[side]
    size = scores.deviations * factors / np.where(unit > 0, unit, np.inf)  # A line that never varies has no unit.
    x, w, loss = scores.ratios / factors, scores.weights, 0.0
    y, halves = to_normal(x, degrees), (slice(0, None, 2), slice(1, None, 2))
    for a, b in (halves, halves[::-1]):
        ends = [from_normal(end, degrees[b]) for end in ends_of(*sides_of(y[a], w[a]), JUDGED_AT)]
        with np.errstate(over="ignore", invalid="ignore"):
            loss += float(np.sum(w[b] * size[b] * interval_scores(x[b], *ends)))
    return loss if np.isfinite(loss) else np.inf


def _nothing_held_out(m: int, n: int, learned: Learned) -> TableCalibration:
    none, ones = no_scores(), np.ones(learned.model.unit.size)
    sides = sides_of(none.ratios, none.weights)
    return TableCalibration(
        "held out",
        *map(np.ones, (m, n)),
        np.full(m, np.inf),
        np.full(n, np.inf),
        EQUAL_PARTS,
        ALL_ALIKE,
        ALL_ALIKE,
        np.inf,
        OpenLines(*map(np.zeros, (m, n)), ones, ones, learned.is_turned),
        none,
        none.ratios,
        *sides,
    )
