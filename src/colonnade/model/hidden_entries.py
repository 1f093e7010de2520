"""Which known entries are hidden, to choose settings and to calibrate intervals: those that are like the gaps."""

from __future__ import annotations

import numpy as np

from ..data.gap_weights import gap_weights
from ..data.observations import Observations
from .factor_model import FactorModel
from .learned import HeldOutEntries
from .table import ScaledTable, scaled_table

HIDDEN_SHARE = 0.1  # Share of the entries; a twentieth or a fifth choose the same settings on most tables.
_PATTERN_SHARE = 0.2  # Share of the complete columns or rows that is hidden where gaps follow a pattern.
MOST_HIDDEN = 200_000  # Entries; more tell nothing new.
COMPLETE = 10  # Complete columns, or else complete rows, from which these and not hidden entries decide the side.
FEW = 60  # Entries below which nothing is hidden: the settings would be chosen by chance.
OUTLIER = 5.0  # Spreads beyond which a hidden error counts no more: typing errors must not choose the settings.
_ENOUGH = 200  # Hidden entries that choose settings and calibrate intervals well;
_MOST_FOLDS = 5  # Tenths that a small table hides for them, at most, one after the other.
_FAR = 10.0  # Spreads of its row and of its column by which an entry must be off to begin with Student-t noise.


class Fold:
    """Known entries that are hidden together, and the others."""

    def __init__(self, o: Observations, hidden):
        self.seen = {False: o.without(hidden)}
        self.tables: dict[tuple[bool, bool], ScaledTable] = {}
        self.rows, self.columns = o.rows[hidden].astype(np.int64), o.columns_of(hidden).astype(np.int64)
        self.values = o.values[hidden].astype(np.float64)
        self.weights = gap_weights(o, self.rows, self.columns)
        table, turned = self.table(False, False), self.table(True, False)
        self.units = [np.where(u > 0, u, np.inf) for u in (table.unit[self.rows], turned.unit[self.columns])]

    def table(self, is_turned: bool, one_unit: bool) -> ScaledTable:
        if is_turned not in self.seen:
            self.seen[True] = self.seen[False].transposed()
        key = is_turned, one_unit
        if key not in self.tables:
            self.tables[key] = scaled_table(self.seen[is_turned], one_unit=one_unit)
        return self.tables[key]

    def predicted(self, is_turned: bool, model: FactorModel) -> HeldOutEntries:
        at = (self.columns, self.rows) if is_turned else (self.rows, self.columns)
        predicted, deviations = model.predict(*at), model.deviations(*at)
        errors = np.abs(self.values - predicted)
        with np.errstate(over="ignore"):
            squares = [np.minimum(errors / unit, OUTLIER) ** 2 for unit in self.units]
        by_row, by_column = (float(np.sqrt(np.average(each, weights=self.weights))) for each in squares)
        return HeldOutEntries(self.rows, self.columns, self.values, predicted, deviations, by_row, by_column)


def folds_of(o: Observations, far, rng) -> list[np.ndarray]:
    """Places of the entries that are hidden together: a tenth, and further ones of a table that has few.

    Far entries stay: the settings must be chosen with them in sight.
    """
    folds: list[np.ndarray] = []
    used = far
    while sum(hidden.size for hidden in folds) < _ENOUGH and len(folds) < _MOST_FOLDS:
        hidden = np.setdiff1d(hidden_places(o, rng), used)
        if hidden.size == 0:
            break
        folds, used = [*folds, hidden], np.union1d(used, hidden)
    return folds


def hidden_places(o: Observations, rng) -> np.ndarray:
    """A tenth of the entries of columns with gaps, rising; of every row and column at least two stay.

    Full columns stay full, because their entries are easier to predict than those that are wanted. Where the other
    columns have too few entries to tell, all lose some. Where they never show some rows, `_hidden_by_pattern` adds
    entries of these. Where rows and no columns are complete, rows and columns change places.
    """
    total = o.values.size
    if total < FEW:
        return np.zeros(0, np.int64)
    if o.full_columns.size == 0 and rows_decide(o):
        turned = o.transposed()
        places = hidden_places(turned, rng)
        return np.sort(o.locate(turned.columns_of(places), turned.rows[places]))
    able = in_gappy_columns(o)
    if able.sum() * HIDDEN_SHARE < FEW:
        able[:] = True
    share = min(HIDDEN_SHARE, MOST_HIDDEN / able.sum())
    drawn = np.flatnonzero((rng.random(total) < share) & able)
    drawn = np.union1d(drawn, _hidden_by_pattern(o, rng))
    drawn = leaving_two(drawn, o.columns_of(drawn), o.n_observed)
    return leaving_two(drawn, o.rows[drawn], np.bincount(o.rows, minlength=o.shape[0]))


def _hide_rows(o: Observations) -> bool:
    """Whether there are ten full columns or more, and the others never show some rows."""
    in_partial = o.rows[in_gappy_columns(o)]
    return o.full_columns.size >= COMPLETE and 0 < np.unique(in_partial).size < min(o.shape[0], in_partial.size)


def lines_of_pattern(o: Observations) -> str | None:
    """Whether "columns" or "rows" with gaps never show some places of the others; None if neither do."""
    if o.full_columns.size == 0 and rows_decide(o):
        return "rows" if _hide_rows(o.transposed()) else None
    return "columns" if _hide_rows(o) else None


def in_gappy_columns(o: Observations) -> np.ndarray:
    return np.repeat(o.n_observed < o.shape[0], o.n_observed)


def _hidden_by_pattern(o: Observations, rng) -> np.ndarray:
    """What some full columns hide to look like columns with gaps, rising.

    Gaps may follow a pattern, as where a cheap instrument reads some wavelengths only. Then no column with gaps has an
    entry to hide at the other wavelengths, and full columns stand for them. Nothing is hidden where every wavelength is
    read in some column with gaps, or where few columns are full.
    """
    if not _hide_rows(o):
        return np.zeros(0, np.int64)
    m, full, partial = o.shape[0], o.full_columns, o.partial_columns[o.n_observed[o.partial_columns] > 0]
    n_hidden = max(2, min(int(_PATTERN_SHARE * full.size), MOST_HIDDEN // m))
    chosen, like = np.sort(rng.choice(full, n_hidden, replace=False)), rng.choice(partial, n_hidden)
    # The entry of row i of a full column stands at indptr + i.
    seen = [o.rows[o.indptr[j] : o.indptr[j + 1]] for j in like]
    return np.concatenate([o.indptr[j] + np.setdiff1d(np.arange(m), rows) for j, rows in zip(chosen, seen)])


def far_places(o: Observations) -> np.ndarray:
    """Entries that are far from the others of their row and of their column."""
    by_row, by_column = scaled_table(o).by_column.values, scaled_table(o.transposed()).by_row.values
    return np.flatnonzero(np.minimum(np.abs(by_row), np.abs(by_column)) > _FAR)


def leaving_two(drawn, groups, counts) -> np.ndarray:
    """Drawn places whose group keeps two entries or more."""
    left = counts - np.bincount(groups, minlength=counts.size)
    return drawn[left[groups] >= 2]


def rows_decide(o: Observations) -> bool:
    n_full_rows = np.count_nonzero(np.bincount(o.rows, minlength=o.shape[0]) == o.shape[1])
    return bool(n_full_rows >= COMPLETE and o.n_observed.max(initial=0) < o.shape[0])
