"""Which entries the methods must predict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...data.observations import Observations
from ...data.sources import Source
from ...model.full_columns.nothing_full import nothing_known

_CLEARLY_MORE = 1.0  # Standard deviation of logarithms: columns of one unit rarely differ so much more than rows.
_KEPT = 2  # Entries that a column keeps at least.


class Hidden(NamedTuple):
    """Entries at ``(rows[k], columns[k])``, int64, and their values, all of shape (k,).

    `levels` and `units` are means and standard deviations of their rows, or of their columns where these differ far
    more from each other: then the columns have units of their own.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    levels: np.ndarray
    units: np.ndarray

    @property
    def relative_spread(self) -> float:
        """Root mean square of the values about the means of their rows, in units of the rows' spreads."""
        with np.errstate(over="ignore"):
            return rms(np.minimum(np.abs(self.values - self.levels) / self.units, 1e100))

    @property
    def spread(self) -> float:
        """Root mean square of the values about their mean."""
        unit = float(np.abs(self.values).max()) or 1.0
        return unit * float(np.std(self.values / unit))


def rms(x) -> float:
    """Root mean square of numbers, such that no square overflows."""
    unit = float(np.abs(x).max()) or 1.0
    return unit * float(np.sqrt(np.mean((x / unit) ** 2, dtype=np.float64)))


def levels_and_spreads(o: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the entries of every row, shape (m,) each.

    Rows without a spread, or with one entry, take the median of the others; where no row has one, the largest entry.
    """
    m, size = o.shape[0], float(np.abs(o.values).max(initial=0)) or 1.0
    x, counts = o.values.astype(np.float64) / size, np.bincount(o.rows, minlength=m)
    means = np.bincount(o.rows, x, m) / np.maximum(counts, 1)
    spreads = np.sqrt(np.bincount(o.rows, (x - means[o.rows]) ** 2, m) / np.maximum(counts, 1))
    own = spreads > counts * np.finfo(o.values.dtype).eps * np.abs(means)  # Rounding of a mean of so many entries.
    return size * means, size * np.where(own, spreads, np.median(spreads[own]) if own.any() else 1.0)


def hide(o: Observations, share: float, rng) -> tuple[Observations, Hidden]:
    """Hide a share of the entries of every partial column, which keeps at least two.

    If all partial columns are seen in the same rows, the same are hidden in all of them, so that what can be done with
    such data still can.
    """
    alike = have_same_rows(o)
    rounding = rng.random() if alike else rng.random(o.shape[1])
    quota = np.minimum(np.floor(share * o.n_observed + rounding).astype(np.int64), o.n_observed - _KEPT)
    quota[o.full_columns] = 0
    column = o.entry_columns
    lots = rng.random(o.shape[0])[o.rows] if alike else rng.random(column.size)
    order = np.lexsort((lots, column))  # The order within each column is random.
    hidden = np.zeros(column.size, bool)
    hidden[order[np.arange(column.size) - o.indptr[column] < quota[column]]] = True
    if not hidden.any():
        raise ValueError(_nothing_to_hide(o, share))
    rows = o.rows[hidden].astype(np.int64)
    values = o.values[hidden].astype(np.float64)
    return o.only(~hidden), Hidden(rows, column[hidden], values, *_levels_and_units(o, rows, column[hidden]))


def _levels_and_units(o: Observations, rows, columns) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the rows of some entries, or of their columns where these differ far more."""
    by_row, by_column = levels_and_spreads(o), levels_and_spreads(o.transposed())
    if np.std(np.log(by_column[1])) > np.std(np.log(by_row[1])) + _CLEARLY_MORE:
        return by_column[0][columns], by_column[1][columns]
    return by_row[0][rows], by_row[1][rows]


def _nothing_to_hide(o: Observations, share: float) -> str:
    partial = o.partial_columns
    if o.values.size == 0:
        return nothing_known(o.shape)
    if partial.size == 0:
        return (
            "every column is known in full, so there is nothing to predict. Give n_full_columns and n_entries"
            " (--full-columns and --entries): how much of the table the methods may read"
        )
    most = int(o.n_observed[partial].max())
    return (
        f"no known value can be hidden to compare methods: {_KEPT} must stay in every column with gaps, and the"
        f" fullest of these has {most:,}. "
        + ("Measure more values" if most <= _KEPT else f"Hide a larger share than holdout = {share:g}")
    )


def have_same_rows(o: Observations) -> bool:
    """Whether all partial columns are seen in the same rows."""
    partial = o.partial_columns
    counts = o.n_observed[partial]
    if partial.size == 0 or counts[0] == 0 or (counts != counts[0]).any():
        return False
    rows = o.rows[o.indptr[partial][:, None] + np.arange(counts[0])]
    return bool((rows == rows[0]).all())


def sample(source: Source, drawn: Observations, count: int, rng) -> Hidden:
    """About `count` entries at random, of the whole matrix and without repeats; all if that is half of them.

    The spreads of the rows are those of the entries that were drawn.
    """
    m, n = source.shape
    places = np.unique(rng.integers(0, m * n, count)) if count < m * n // 2 else np.arange(m * n)
    rows, columns = places % m, places // m
    of_rows = (side[rows] for side in levels_and_spreads(drawn))
    return Hidden(rows, columns, source.entries(rows, columns).astype(np.float64), *of_rows)
