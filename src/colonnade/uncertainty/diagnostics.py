"""What a finished completion shows for itself: how well it predicts entries left out, and what it was learned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.gap_weights import gap_weights
from ..model.column_space import fit_column_space
from ..model.full_columns.held_out_predictions import HeldOutPredictions, predict_held_out
from ..model.leaving_out import FEW_ENTRIES
from ..model.prediction import entries_at, keep_in_bounds
from ..model.solve import Status
from .calibration import Calibration, Scores, calibrate, ends_of, sides_of
from .held_out import scores_of_held_out, scores_of_predictions
from .verdict import (
    EXACT,
    EXACT_IN_PART,
    LEVEL,
    NOT_JUDGED,
    NOTHING_FILLED,
    NOTHING_TO_FILL,
    Verdict,
    judge,
    not_judged_by,
)

LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
_MOST_WORK = 2e9  # Multiplications, about 2 s; the spectrum of all full columns is left out if it takes more.
_STORED_COLUMNS = 2_000  # Columns of a completion on the disk that are read.
_NEGLIGIBLE = 1e-6  # Share of the largest deviation; smaller ones would only stretch the axis of the spectrum.
_ROUNDING = 100  # Times the precision of a number of the usual size: errors up to here are rounding.


@dataclass(frozen=True)
class HeldOut:
    """Observed entries, predicted without them: from the rest of their column, or of the table by the factor model.

    Attributes
    ----------
    truth, predicted : float64 arrays of shape (k,)
    error : float
        Root mean square of their difference; 0 where that is rounding.
    spread : float
        Root mean square of the known entries about the means of their rows or columns, whichever is smaller: the error
        of filling in means. For the factor model, the error over its relative error, in units of rows (or columns).
    levels, coverage : arrays of shape (l,)
        The share of the entries within their intervals of each level. The intervals of one half (of the columns, or of
        the entries) were calibrated on the other half, so that no entry counts for its own interval.
    rows, columns : int64 arrays of shape (k,)
        Where the entries stand. The columns of a completion on the disk are None, because only some of them are read.
    low, high : float64 arrays of shape (k,)
        Ends of their calibrated 90 % intervals; no entry has a part in the factors of its row and column.
    """

    truth: np.ndarray
    predicted: np.ndarray
    error: float
    spread: float
    levels: np.ndarray
    coverage: np.ndarray
    rows: np.ndarray | None = None
    columns: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None


@dataclass(frozen=True)
class Spectrum:
    """How much the columns vary in each direction; the rows, of a factor model that fills rows.

    Attributes
    ----------
    deviations : array of shape (r,)
        Standard deviation of a column's coefficient along each direction in use.
    of_full_columns : array of shape (k,) or None
        The same for all directions of the full columns, about the same center; None where that is a long computation,
        or where all columns were learned from.
    noise_std : float
        Of an entry, which is also that of a coefficient of a column seen in full.
    blurred : float
        That of a coefficient of a column with the median number of entries: directions below are decided by the prior.
    side : {"column", "row"}
        What varies.
    is_relative : bool
        Whether the numbers are in standard deviations of each row (of each column, if rows vary), because their units
        differ. Else they are in the unit of the data.
    """

    deviations: np.ndarray
    of_full_columns: np.ndarray | None
    noise_std: float
    blurred: float
    side: str = "column"
    is_relative: bool = False

    @property
    def n_in_use(self) -> int:
        """Number of directions whose deviation is not negligible beside the largest."""
        return int((self.deviations > _NEGLIGIBLE * self.deviations.max(initial=0)).sum())

    @property
    def n_above_noise(self) -> int:
        """Number of directions that a column with the median number of entries tells by itself."""
        return int((self.deviations > self.blurred).sum())


def hold_out(completion) -> HeldOut | None:
    """The entries left out; None where leaving out has no closed form or no variances, or too few can be."""
    if completion.learned is not None:
        return _of_factor_model(completion)
    if not (completion.by_columns and completion.has_variances):
        return None
    whole = completion.solution
    some = whole.some_columns(_STORED_COLUMNS)
    known = completion.accuracy.held_out if some is whole else predict_held_out(some)
    tried = HeldOutPredictions(*(figures[known.is_left_out] for figures in known))
    columns = np.unique(tried.columns)
    if tried.errors.size < FEW_ENTRIES or columns.size < 2:
        return None
    scores = scores_of_predictions(tried)
    scores = scores if scores.weights.any() else scores._replace(weights=np.ones(scores.errors.size))
    within, low, high = _tested(completion, scores, np.isin(tried.columns, columns[::2]))
    truth, predicted = entries_at(some, tried.rows, tried.columns).astype(np.float64), tried.predicted.copy()
    unit = float(np.abs(tried.errors).max()) or 1.0
    keep_in_bounds(completion.bounds, predicted)
    error = unit * float(np.sqrt(np.mean((tried.errors / unit) ** 2)))
    error = error if error > _rounding(completion, truth) else 0.0
    coverage = np.average(within, axis=0, weights=scores.weights)
    places = tried.rows.astype(np.int64), tried.columns.astype(np.int64) if some is whole else None
    ends = _ends_in_bounds(completion, predicted, low, high)
    return HeldOut(truth, predicted, error, _spread(some, columns), LEVELS, coverage, *places, *ends)


def _ends_in_bounds(completion, predicted, low, high) -> list[np.ndarray]:
    """Ends of intervals from their distances to the predictions."""
    with np.errstate(over="ignore"):
        ends = [predicted + low, predicted + high]
    for end in ends:
        keep_in_bounds(completion.bounds, end)
    return ends


def _of_factor_model(completion) -> HeldOut | None:
    """The entries that were hidden while the settings were chosen; each half is judged by the scores of the other."""
    found = completion.learned.held_out
    if found is None:
        return None
    sample = completion.solution.learned_columns()
    scores = scores_of_held_out(completion.learned, sample.observations)
    if scores.errors.size < FEW_ENTRIES:  # Deviations of numbers near 1e-300 are zero, and tell nothing.
        return None
    predicted = found.predicted.copy()
    keep_in_bounds(completion.bounds, predicted)
    errors = np.abs(found.truth - predicted)
    if completion.learned.is_exact:  # Nothing is calibrated: the deviations of the fit without the entries count.
        x, weights = scores.ratios, scores.weights
    else:
        x, weights = completion.accuracy.calibration.x, completion.accuracy.calibration.scores.weights
    if x.size < FEW_ENTRIES:  # Beside one entry near the end of floating point all deviations may be zero.
        return None
    coverage = _covered_by_the_other_half(x, weights)
    unit, of_gaps = float(errors.max()) or 1.0, gap_weights(sample.observations, found.rows, found.columns)
    error = unit * float(np.sqrt(np.average((errors / unit) ** 2, weights=of_gaps)))
    relative = found.by_column if completion.learned.is_turned else found.by_row
    spread = error / relative if relative > 0 else 0.0
    told = scores if completion.learned.is_exact else completion.accuracy.calibration.scores
    rows, columns = told.rows, told.columns
    truth = entries_at(sample, rows, columns).astype(np.float64)
    predicted = truth - told.errors
    keep_in_bounds(completion.bounds, predicted)
    with np.errstate(over="ignore", invalid="ignore"):
        distances = [end * told.deviations for end in completion.accuracy.calibration.ends_at(LEVEL, rows, columns)]
    ends = _ends_in_bounds(completion, predicted, *distances)
    places = rows, columns if sample is completion.solution else None
    return HeldOut(truth, predicted, error, spread, LEVELS, coverage, *places, *ends)


def _covered_by_the_other_half(x, weights) -> np.ndarray:
    """Share of the scores within their intervals at each of `LEVELS`; each half has the quantiles of the other."""
    within = np.empty((x.size, LEVELS.size), bool)
    for half, other in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        sides = sides_of(x[other], weights[other])
        for k, level in enumerate(LEVELS):
            low, high = ends_of(*sides, level)
            within[half, k] = (low <= x[half]) & (x[half] <= high)
    return np.average(within, axis=0, weights=weights)


def verdict_on(completion) -> Verdict:
    """Whether to use a completion, judged by its held-out entries."""
    learned = completion.learned
    if (completion.n_observed == completion.shape[0]).all():
        return NOTHING_TO_FILL
    if not _fills_any(completion):
        return NOTHING_FILLED
    if learned is None and not completion.by_columns:
        return not_judged_by(completion.choices.get("method", "This method"))
    if learned is not None and learned.is_exact:
        return EXACT_IN_PART if _has_estimates(learned.model) else EXACT
    found = hold_out(completion)
    if found is None:
        return NOT_JUDGED
    if learned is not None:  # In units of each row or column, as in `choices["fit"]`: one number for the fit.
        error = learned.held_out.by_column if learned.is_turned else learned.held_out.by_row
    else:
        error = found.error / found.spread if found.spread > 0 else np.inf if found.error > 0 else 0.0
    return judge(error, float(found.coverage[np.argmin(np.abs(LEVELS - LEVEL))]))


def _fills_any(completion) -> bool:
    m, filled = completion.shape[0], [status for status in Status if status.is_filled]
    n_empty_rows = 0 if completion.center is None else int(np.isnan(completion.center).sum())
    return bool((completion.n_observed[np.isin(completion.status, filled)] < m - n_empty_rows).any())


def _has_estimates(model) -> bool:
    """Whether known values leave a row or column of an exact model open, which then keeps a variance."""
    return bool(model.row_covariance.any() or model.column_covariance.any())


def _rounding(completion, truth) -> float:
    """The error that rounding may leave in numbers of this size: all rows, or columns, may repeat one another."""
    unit = float(np.abs(truth).max(initial=0)) or 1.0
    return _ROUNDING * float(np.finfo(completion.basis.dtype).eps) * unit * float(np.sqrt(np.mean((truth / unit) ** 2)))


def _tested(completion, scores: Scores, is_first) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each score lies in its intervals, calibrated by the other half of the columns, and where these end."""
    within, low, high = np.empty((is_first.size, LEVELS.size), bool), np.empty(is_first.size), np.empty(is_first.size)
    for half in (is_first, ~is_first):
        one, other = (Scores(*(figures[some] for figures in scores)) for some in (half, ~half))
        calibration = calibrate(other, completion.shape[0], noise=completion.accuracy.predicted_noise)
        within[half] = _within(calibration, one)
        low[half], high[half] = _distances(calibration, one)
    return within, low, high


def _within(calibration: Calibration, scores: Scores) -> np.ndarray:
    """Whether each score lies within its interval at each of `LEVELS`, shape (k, l)."""
    x = calibration.standardised(scores)
    ends = np.array([calibration.ends(level) for level in LEVELS])
    return (ends[:, 0] <= x[:, None]) & (x[:, None] <= ends[:, 1])


def _distances(calibration: Calibration, scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """Distances from each prediction to the low and high ends of its interval at `LEVEL`, shape (k,) each."""
    x = calibration.standardised(scores)
    unit = np.divide(
        scores.errors, x, out=calibration.scaled(scores).deviations, where=x != 0
    )  # Deviation times its factors.
    low, high = calibration.ends(LEVEL)
    with np.errstate(over="ignore", invalid="ignore"):
        return low * unit, high * unit


def _spread(completion, columns) -> float:
    """Root mean square of the known entries about the means of their rows or of their columns, whichever is smaller.

    A level that all entries share would hide that nothing else is explained.
    """
    o = completion.used.take(columns)
    x = o.values.astype(np.float64)
    if completion.center is not None:
        x = x - completion.center[o.rows]
    unit = float(np.abs(x).max(initial=0)) or 1.0
    x /= unit
    about = [x]
    for side in (o.rows, o.entry_columns):
        counts, sums = np.bincount(side)[side], np.bincount(side, x)[side]
        several = counts > 1  # An entry that is alone has no mean beside it.
        deviations = (x - sums / counts)[several] * np.sqrt(counts[several] / (counts[several] - 1))
        about += [deviations] if several.any() else []
    return unit * min(float(np.sqrt(np.mean(deviations**2))) for deviations in about)


def spectrum(completion) -> Spectrum:
    """The directions in use, beside all that the full columns have."""
    if completion.learned is not None:
        return _spectrum_of_model(completion)
    space, seen, m = completion.space, completion.n_observed, completion.shape[0]
    d, partial = int((seen == m).sum()), seen[(seen > 0) & (seen < m)]
    everything = None
    if not completion.solution.is_on_disk and d and space.rank and float(m) * d * min(m, d) <= _MOST_WORK:
        with np.errstate(over="ignore"):
            fitted = fit_column_space(completion.solution.learned_from, center=space.center is not None)
            everything = np.sqrt(fitted.variances)
    usual = float(np.median(partial)) if partial.size else float(m)
    noise = completion.noise_std
    return Spectrum(np.sqrt(space.variances), everything, noise, noise * np.sqrt(m / usual))


def _spectrum_of_model(completion) -> Spectrum:
    """In the units in which the model was learned: coefficients have covariance I, so U U' is that of its columns."""
    learned, o = completion.learned, completion.observations
    f, m = learned.model, learned.model.U.shape[0]
    is_relative = not f.settings.one_unit
    unit = 1.0 if is_relative else float(np.median(f.unit))
    counts = np.bincount(o.rows, minlength=o.shape[0]) if learned.is_turned else o.n_observed
    noise = 0.0 if learned.is_exact else unit * float(np.sqrt(np.mean(f.own_noise)))
    blurred = noise * np.sqrt(m / float(np.median(counts[counts > 0])))
    deviations = unit * np.linalg.svd(f.U[:, : f.rank], compute_uv=False)
    return Spectrum(deviations, None, noise, blurred, "row" if learned.is_turned else "column", is_relative)
