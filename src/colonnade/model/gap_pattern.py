"""Entries that are hidden in the pattern of the gaps, for tables whose gaps are harder to predict than single entries.

Where an instrument fails for hours, the neighbours of a gap are gaps too. Single hidden entries have their neighbours,
so their errors are too small to stand for such gaps. Here some columns get the gaps of others besides their own: those
of the column that stands a fixed number of places before. Blocks of rows, of columns and rectangles stay what they are.

The table is that of the model, whose rows have units and levels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..data.observations import Observations
from .factor_model import FactorModel
from .hidden_entries import FEW, HIDDEN_SHARE, MOST_HIDDEN, OUTLIER, Fold, leaving_two
from .learned import HeldOutEntries
from .leaving_out import is_no_chance
from .sweeps import Sweeps

_FEWEST_COLUMNS = 20  # Columns with gaps; two standard errors of fewer do not tell harder gaps from chance.
_GAPS = 2_000  # Cells without an entry at which two fits are compared, at most.


def held_out_like_gaps(
    o: Observations, model: FactorModel, is_turned: bool, most_entries: int, rng
) -> HeldOutEntries | None:
    """Entries in the pattern of the gaps, predicted without them; None if they are no harder than single ones.

    Harder means that their errors in predicted deviations are larger than those of as many entries of the same columns
    that are drawn singly, by more than chance. Columns count, not entries: errors in a block depend on each other.
    Of a table with more than `most_entries`, neighbouring columns with about as many stand for all.
    """
    part, first = _neighbours(o.transposed() if is_turned else o, most_entries, rng)
    places = _places(part, rng)
    if places.size < FEW:
        return None
    like_gaps, single = (_Trial.of(part, some, model) for some in (places, _drawn_singly(part, places, rng)))
    columns = np.intersect1d(like_gaps.found.columns, single.found.columns)
    if not is_no_chance(like_gaps.squares_by_column()[columns] - single.squares_by_column()[columns]):
        return None
    found = like_gaps.found
    sides, errors = (found.rows, found.columns + first), (found.by_row, found.by_column)
    deviations = found.deviations * _shrinkage(part, like_gaps.model, model, first, rng)
    if is_turned:
        sides, errors = sides[::-1], errors[::-1]
    return HeldOutEntries(*sides, found.truth, found.predicted, deviations, *errors, like_gaps=True)


class _Trial(NamedTuple):
    """A fit without some entries, and its predictions of these."""

    model: FactorModel
    found: HeldOutEntries

    @classmethod
    def of(cls, o: Observations, places, model: FactorModel) -> _Trial:
        """With the settings of a model and as many sweeps."""
        fold = Fold(o, places)
        trial = Sweeps(fold.table(False, model.settings.one_unit), model.settings).run(model.n_sweeps, 0.0)
        return cls(trial, fold.predicted(False, trial))

    def squares_by_column(self) -> np.ndarray:
        """Mean squared error of every column in predicted deviations; typing errors count as `OUTLIER`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.nan_to_num(self.found.sizes / self.found.deviations)
        columns = self.found.columns
        return np.bincount(columns, np.minimum(scores, OUTLIER) ** 2) / np.maximum(1, np.bincount(columns))


def _neighbours(o: Observations, most_entries: int, rng) -> tuple[Observations, int]:
    """Neighbouring columns with about as many entries, and the number of the first one."""
    if o.values.size <= most_entries:
        return o, 0
    count = max(1, int(o.shape[1] * most_entries / o.values.size))
    first = int(rng.integers(o.shape[1] - count + 1))
    return o.take(np.arange(first, first + count)), first


def _places(o: Observations, rng) -> np.ndarray:
    """Places of about a tenth of the entries, rising: those of neighbouring columns that the gaps of others cover.

    At most half of a column's entries are hidden. Complete columns stay complete.
    """
    columns = o.partial_columns[o.n_observed[o.partial_columns] > 1]
    if columns.size < _FEWEST_COLUMNS:
        return np.zeros(0, np.int64)
    donors = np.roll(columns, rng.integers(1, columns.size))
    most = min(HIDDEN_SHARE * o.n_observed[columns].sum(), MOST_HIDDEN)
    chosen: list[np.ndarray] = []
    for k in np.roll(np.arange(columns.size), rng.integers(columns.size)):
        own, other = (np.arange(o.indptr[j], o.indptr[j + 1]) for j in (columns[k], donors[k]))
        hidden = own[~np.isin(o.rows[own], o.rows[other])]
        if hidden.size > own.size // 2:
            hidden = rng.choice(hidden, own.size // 2, replace=False)
        chosen.append(hidden)
        most -= hidden.size
        if most <= 0:
            break
    places = np.sort(np.concatenate(chosen))
    places = leaving_two(places, o.columns_of(places), o.n_observed)
    return leaving_two(places, o.rows[places], np.bincount(o.rows, minlength=o.shape[0]))


def _drawn_singly(o: Observations, places, rng) -> np.ndarray:
    """As many entries of the same columns as at these places, drawn at random; rising."""
    columns, counts = np.unique(o.columns_of(places), return_counts=True)
    drawn = [o.indptr[j] + rng.choice(o.n_observed[j], k, replace=False) for j, k in zip(columns, counts)]
    return np.sort(np.concatenate(drawn))


def _shrinkage(o: Observations, trial: FactorModel, model: FactorModel, first: int, rng) -> float:
    """By how much deviations of the trial are too large for the final fit, which knows more entries.

    At gaps both are known. Errors shrink less than deviations, by a factor between theirs and 1: the root is its middle
    on the scale of logarithms.
    """
    m, n = o.shape
    rows, columns = rng.integers(m, size=_GAPS), rng.integers(n, size=_GAPS)
    gaps = o.locate(rows, columns) < 0
    before, after = trial.deviations(rows[gaps], columns[gaps]), model.deviations(rows[gaps], first + columns[gaps])
    told = (before > 0) & (after > 0)
    return float(np.sqrt(min(1.0, np.median(after[told] / before[told])))) if told.any() else 1.0
