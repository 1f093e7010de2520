"""How far the predictions of a solution are off: what its held-out entries show, and the intervals that follow."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .._support.numbers import BLOCK_CELLS
from ..model.column_space import no_variances
from ..model.full_columns.trials import ErrorScales, Trials, error_scales, noise_of, trials
from ..model.leverage import whole_and_noise
from ..model.posterior import deviations, plain_noise
from ..model.prediction import entries_at, filled_columns, keep_in_bounds, sizes_of_terms
from ..model.solution import AnySolution
from .calibration import Calibration, calibrate
from .draws import LEVEL, NORMAL, column_deviations, drawn_tables, model_deviations, refuse_infinite
from .factor_posterior import mean_deviations, noise_std
from .held_out import scores_of_columns, scores_of_trials
from .means import MOST_FULL, mean_errors, means_and_ends
from .student import from_normal
from .table_calibration import TableCalibration, calibrate_table

_CALIBRATION_COLUMNS = 2_000  # Partial columns of a solution on the disk that are read to calibrate intervals.
_CALIBRATION_FULL_CELLS = 20_000_000  # Cells of its full columns that are read for those of means: 160 MB.


class Accuracy:
    """What known entries that were predicted without themselves show of a solution; computed when first needed.

    Attributes
    ----------
    solution : AnySolution
    n_columns_learned_from : int or None
        The first columns, from which something was learned; None means all.
    """

    def __init__(self, solution: AnySolution, n_columns_learned_from: int | None = None):
        self.solution, self.n_columns_learned_from = solution, n_columns_learned_from
        self._mean_errors: dict = {}

    def calibration_columns(self):
        """The solution of the columns on which intervals are calibrated: some of those on the disk, else all."""
        n_full = min(MOST_FULL, _CALIBRATION_FULL_CELLS // self.solution.shape[0])
        return self.solution.some_columns(_CALIBRATION_COLUMNS, n_full=n_full)

    @cached_property
    def trials(self) -> Trials:
        return trials(self.calibration_columns())

    @cached_property
    def error_scales(self) -> ErrorScales:
        able = self.solution.by_columns and self.solution.has_variances
        return error_scales(self.trials) if able else ErrorScales()

    @property
    def noise_std(self) -> float:
        """See `Completion.noise_std`."""
        s = self.solution
        if s.learned is not None:
            return noise_std(s.learned)
        if s.noise_variance or not s.by_columns or np.isfinite(s.space.noise_std):
            return noise_of(s, self.error_scales.of_left_out_squares)
        return self.error_scales.of_left_out_squares if self.error_scales.are_told else np.nan

    @property
    def predicted_noise(self) -> float:
        """Deviation of the noise in predicted deviations, before calibration."""
        return float(np.sqrt(self.solution.noise_variance)) or plain_noise(self.solution)

    @cached_property
    def calibration(self) -> Calibration | TableCalibration:
        s = self.solution
        if s.learned is not None:
            return calibrate_table(s.learned, s.observations, self.n_columns_learned_from)
        known = s.noise_variance > 0 or np.isfinite(s.space.noise_std)
        by_column = bool(self.trials.is_left_out.all())
        scores = scores_of_trials(self.trials)
        return calibrate(scores, s.shape[0], noise=self.predicted_noise, is_noise_known=known, by_column=by_column)

    def deviations(self, rows, columns) -> np.ndarray:
        """Predicted deviations of entries at (rows[k], columns[k]), 0 of those observed."""
        result = np.empty(rows.size)
        for at, here, block in self.solution.by_blocks(columns):
            found = deviations(block, rows[at], here)
            found[block.observations.locate(rows[at], here) >= 0] = 0.0
            result[at] = found
        return result

    def column_factors(self, columns) -> np.ndarray:
        """By how much entries of these columns are farther off than predicted, as those held out tell."""
        calibration = self.calibration
        if isinstance(calibration, TableCalibration):
            return calibration.column_factors[columns]
        known = None if self.solution.is_on_disk else self.trials
        result = np.empty(columns.size)
        for at, here, block in self.solution.by_blocks(columns):
            which, places = np.unique(here, return_inverse=True)
            result[at] = calibration.factors_of_columns(scores_of_columns(block, which, known), which)[places]
        return result

    def _factors(self, rows, columns) -> np.ndarray:
        """By what deviations with their parts are multiplied at (rows[k], columns[k])."""
        calibration = self.calibration
        if isinstance(calibration, TableCalibration):
            return calibration.factors_at(rows, columns)
        return calibration.row_factors[rows] * self.column_factors(columns)

    def _calibrated_deviations(self, rows, columns) -> np.ndarray:
        """Predicted deviations times the factors of rows and columns; 0 of observed entries."""
        learned, parts = self.solution.learned, self.calibration.parts
        if learned is None:
            spread = parts.deviations(self.deviations(rows, columns), self.predicted_noise)
        else:
            places = learned.at(rows.astype(np.int64), columns.astype(np.int64))
            spread = parts.deviations(*whole_and_noise(learned.model, *places))
            spread[self.solution.observations.locate(rows, columns) >= 0] = 0.0
        with np.errstate(over="ignore"):
            return spread * self._factors(rows, columns)

    def interval(self, rows, columns, level: float) -> tuple[np.ndarray, np.ndarray]:
        """See `Completion.interval`; rows and columns are numbers of one shape."""
        centers = entries_at(self.solution, rows, columns)
        rows, columns = rows.ravel(), columns.ravel()
        spread = self._calibrated_deviations(rows, columns)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.calibration.ends_at(level, rows, columns)
            below, above = (np.where(spread == 0, 0.0, score * spread) for score in scores)
            sizes = sizes_of_terms(self.solution, rows, columns)
            rounding = _rounding(self.solution.rank, centers.dtype, sizes, above - below)
            shifts = (below - rounding).reshape(centers.shape), (above + rounding).reshape(centers.shape)
            ends = [np.asarray((centers + shift).astype(centers.dtype)) for shift in shifts]
        observed = ((spread == 0) & (sizes == 0)).reshape(centers.shape)
        for end in ends:
            keep_in_bounds(self.solution.bounds, end)
            end[observed] = centers[observed]
        low, high = ends
        return low, high

    def draw(self, n: int, rows, columns, rng) -> np.ndarray:
        """See `Completion.sample`; rows and columns are arrays of numbers."""
        s, parts = self.solution, self.calibration.parts
        predictions = filled_columns(s, columns)[rows]
        is_gap, known = ~np.isnan(predictions), s.observations.take(columns)
        is_seen = np.zeros((s.shape[0], columns.size), bool)
        is_seen[known.rows, known.entry_columns] = True
        is_gap &= ~is_seen[rows]
        if not is_gap.any():
            return np.repeat(predictions[None], n, axis=0)
        if s.learned is not None:
            drawn = model_deviations(s.learned, n, rows, columns, rng, parts)
        else:
            given = s.space, s.used, s.noise_variance, plain_noise(s)
            drawn = column_deviations(*given, n, rows, columns, rng, parts)
        factors = self._factors(rows[:, None], columns)
        refuse_infinite(self.calibration.half_width(LEVEL))
        low, high = self.calibration.ends_at(LEVEL, rows[:, None], columns)
        drawn *= (high - low) / (2 * NORMAL) * factors
        return drawn_tables(predictions, drawn, is_gap, s.bounds)

    def means(self, level: float, unbiased: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `Completion.column_means`."""
        s = self.solution
        found = self._means_of_blocks(level, unbiased) if s.learned is None else self._means_of_model(level)
        partial = s.n_observed < s.shape[0]
        for values in found:
            inside = values[partial]
            keep_in_bounds(s.bounds, inside)
            values[partial] = inside
        return found

    def _means_of_blocks(self, level: float, unbiased: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if unbiased not in self._mean_errors:
            self._mean_errors[unbiased] = mean_errors(self.calibration_columns(), self, unbiased)
        half = self._mean_errors[unbiased].half_width(level)
        parts = [means_and_ends(block, self, half, unbiased) for block in self.solution.blocks()]
        means, low, high = (np.concatenate(part) for part in zip(*parts))
        return means, low, high

    def _means_of_model(self, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s, calibration = self.solution, self.calibration
        assert s.learned is not None and isinstance(calibration, TableCalibration)
        n, step = s.shape[1], max(1, BLOCK_CELLS // s.shape[0])
        pieces = (np.arange(lo, min(lo + step, n)) for lo in range(0, n, step))
        means, factors, rows = np.empty(n), np.empty(n), np.arange(s.shape[0])[:, None]
        for some in pieces:
            means[some] = filled_columns(s, some).mean(axis=0, dtype=np.float64)
            factors[some] = np.sqrt(np.mean(calibration.factors_at(rows, some) ** 2, axis=0))
        half = from_normal(calibration.half_width(level), calibration.column_degrees)
        half = half * factors * mean_deviations(s.learned, s.observations, calibration.parts)
        return means, means - half, means + half


def refuse_without_intervals(solution: AnySolution, method: str) -> None:
    """Raise ValueError where a method has no intervals, or the numbers no variances."""
    if not solution.by_columns and solution.learned is None:
        raise ValueError(f"{method} has no intervals; complete(completion.observations) has them")
    if not solution.has_variances:
        raise ValueError(no_variances(solution.observations.values))


def _rounding(rank: int, dtype, sizes, widths) -> np.ndarray:
    """By how much predictions may differ between ways to compute them.

    A sum of r products and a center, in whatever order, is off by at most (r + 1) eps times the sum of their sizes.
    """
    eps = float(np.finfo(dtype).eps)
    with np.errstate(over="ignore"):
        return np.sqrt(eps) * widths + (2 * rank + 16) * eps * sizes
