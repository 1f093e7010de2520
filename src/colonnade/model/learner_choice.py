"""Which learner fills a table that has full columns: the prior of the full columns, or the factor model of all entries.

Both are limits of one model: with many full columns the posteriors of all rows are nearly alike, and the prior of the
full columns is the faster way. A tenth of the entries of the other columns is hidden once, and both predict them.
"""

from __future__ import annotations

import numpy as np

from .._support.numbers import HUGE
from ..data.observations import Observations
from .full_columns.column_outliers import solve_without_outliers
from .full_columns.learn import fits_exactly
from .full_columns.outlier_screening import Whole, screened
from .full_columns.refine import learn_and_refine
from .hidden_entries import OUTLIER
from .learned import HeldOutEntries, Learned
from .leaving_out import column_losses, is_no_chance
from .selection import first_trial, learn_table
from .table import scaled_table, side_of_units

_MOST_ENTRIES = 300_000  # Entries beyond which a trial of the factor model takes longer than filling the table.
FEW_FULL = 0.1  # Share of a large table's entries in full columns below which all entries together say more.
_MOST_FULL = 0.5  # Share of the entries in full columns from which these are trusted, if nothing speaks against it.


def better_factor_model(o: Observations, orientation="auto", seed: int = 0, progress=None, **limits) -> Learned | None:
    """The factor model if it is to fill a table that has full columns; None if these are to.

    The learner of most entries is taken, unless the other one predicts hidden entries clearly better. Exactly low-rank
    data need the full columns only. Parameters are those of `learn_table`.
    """
    given = {"orientation": orientation, "seed": seed, "progress": progress, **limits}
    if o.partial_columns.size == 0 or not _are_comparable(o.values) or fits_exactly(o):
        return None
    units = side_of_units(o)
    if units is not None:
        return _because(f"the {units} differ in unit", learn_table(o, **given))
    in_full = o.full_columns.size * o.shape[0] / o.values.size
    is_large = o.values.size > _MOST_ENTRIES
    has_most = in_full >= (FEW_FULL if is_large else _MOST_FULL)
    reason = f"the complete columns hold only {100 * in_full:.2g} % of the known values"
    if has_most:
        reason = "it predicts hidden values better than the complete columns do"
    trial = None if is_large else first_trial(o, seed)
    if trial is None:
        return None if has_most else _because(reason, learn_table(o, **given))
    gains = _gains(o, trial)
    if is_no_chance(-gains) or (has_most and not is_no_chance(gains)):
        return None
    learned = _because(reason, learn_table(o, **given))
    if learned.is_exact or learned.held_out is None:
        return learned
    gains = _gains(o, learned.held_out)
    is_better = is_no_chance(gains) if has_most else not is_no_chance(-gains)
    return learned if is_better else None


def _because(reason: str, learned: Learned) -> Learned:
    learned.choices["method"] += f", because {reason}"
    return learned


def _are_comparable(values) -> bool:
    """Whether squares of the numbers are numbers, beside each other too; full columns do without."""
    sizes = np.abs(values[values != 0].astype(np.float64))
    if sizes.size == 0:
        return False
    usual = float(np.median(sizes))
    return bool(1 / HUGE < usual < HUGE and sizes.max() / HUGE < usual)


def _gains(o: Observations, found: HeldOutEntries) -> np.ndarray:
    """Squared errors of the full columns' prior less those of the factor model, by column."""
    seen = o.without(o.locate(found.rows, found.columns))
    by_full = _predicted_by_full_columns(seen, found.rows, found.columns)
    units = scaled_table(o).unit[found.rows], scaled_table(o.transposed()).unit[found.columns]
    unit = np.minimum(*(np.where(u > 0, u, np.inf) for u in units))  # Neither side may be far off in its own unit.
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = [np.nan_to_num(np.abs(found.truth - p) / unit, nan=OUTLIER) for p in (by_full, found.predicted)]
    squares = [np.minimum(each, OUTLIER) ** 2 for each in sizes]
    return column_losses(squares[0] - squares[1], found.columns)


def _predicted_by_full_columns(seen: Observations, rows, columns) -> np.ndarray:
    auto = dict.fromkeys(("rank", "center", "shrinkage", "refine"), "auto")
    screening = screened(Whole(seen))
    from_full, _ = learn_and_refine(seen, screening, **auto, random_state=None)
    space = from_full.space
    coefficients, *_ = solve_without_outliers(space, seen, penalty=from_full.penalty, code=screening.code)
    with np.errstate(over="ignore", invalid="ignore"):
        fitted = np.einsum("kr,kr->k", space.basis[rows], np.nan_to_num(coefficients.T[columns]))
        return fitted if space.center is None else fitted + space.center[rows]
