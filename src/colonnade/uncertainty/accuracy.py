"""How far the predictions of a solution are off: what its held-out entries show, and the intervals that follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from .._support.numbers import BLOCK_CELLS
from ..model.column_space import no_variances
from ..model.full_columns.held_out_predictions import (
    ErrorScales,
    HeldOutPredictions,
    error_scales,
    noise_of,
    predict_held_out,
)
from ..model.leverage import whole_and_noise
from ..model.posterior import deviations, plain_noise
from ..model.prediction import entries_at, filled_columns, keep_in_bounds, sizes_of_terms
from ..model.solution import AnySolution, Solution
from .calibration import Calibration, calibrate
from .draws import LEVEL, NORMAL, column_deviations, drawn_tables, model_deviations, refuse_infinite
from .factor_posterior import mean_deviations, noise_std
from .held_out import scores_of_columns, scores_of_predictions
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
    def held_out(self) -> HeldOutPredictions:
        return predict_held_out(self.calibration_columns())

    @cached_property
    def error_scales(self) -> ErrorScales:
        able = self.solution.by_columns and self.solution.has_variances
        return error_scales(self.held_out) if able else ErrorScales()

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
            sample = s.learned_columns()
            return calibrate_table(sample.learned, sample.observations, self.n_columns_learned_from)
        known = s.noise_variance > 0 or np.isfinite(s.space.noise_std)
        by_column = bool(self.held_out.is_left_out.all())
        scores = scores_of_predictions(self.held_out)
        return calibrate(scores, s.shape[0], noise=self.predicted_noise, is_noise_known=known, by_column=by_column)

    def deviations(self, rows, columns) -> np.ndarray:
        """Predicted deviations of entries at (rows[k], columns[k]), 0 of those observed."""
        result = np.empty(rows.size)
        for at, here, block in self.solution.by_blocks(columns):
            found = deviations(block, rows[at], here)
            found[block.observations.locate(rows[at], here) >= 0] = 0.0
            result[at] = found
        return result

    def _by_model(self, columns) -> Iterator[tuple[slice | np.ndarray, np.ndarray, Solution, TableCalibration]]:
        """Parts of a table that the factor model has filled, as `AnySolution.by_parts`, each with its calibration."""
        whole = self.calibration
        assert isinstance(whole, TableCalibration)
        for at, here, part in self.solution.by_parts(columns):
            assert part.learned is not None
            own = whole
            if part is not self.solution:
                places = np.empty(part.shape[1], np.int64)
                places[here] = self.solution.places_learned_from(columns[at])
                own = whole.of_columns(places, part.learned, part.observations)
            yield at, here, part, own

    def column_factors(self, columns) -> np.ndarray:
        """By how much entries of these columns are farther off than predicted, as those held out tell."""
        calibration = self.calibration
        if isinstance(calibration, TableCalibration):
            return self._calibration_of(columns).column_factors
        known = None if self.solution.is_on_disk else self.held_out
        result = np.empty(columns.size)
        for at, here, block in self.solution.by_blocks(columns):
            which, places = np.unique(here, return_inverse=True)
            result[at] = calibration.factors_of_columns(scores_of_columns(block, which, known), which)[places]
        return result

    def _calibration_of(self, columns) -> TableCalibration:
        """Of a table that the factor model has filled: that of these columns, in this order."""
        assert isinstance(self.calibration, TableCalibration)
        factors, degrees, open = np.empty((3, columns.size))
        for at, here, _, own in self._by_model(columns):
            factors[at], degrees[at] = own.column_factors[here], own.column_degrees[here]
            open[at] = own.lines.columns[here]
        lines = self.calibration.lines.of_columns(columns, open)
        return replace(self.calibration, column_factors=factors, column_degrees=degrees, lines=lines)

    def _calibrated(self, rows, columns, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Deviations with the factors of rows and columns, 0 of observed entries, and the ends in such deviations."""
        parts = self.calibration.parts
        if self.solution.learned is None:
            spread = parts.deviations(self.deviations(rows, columns), self.predicted_noise)
            with np.errstate(over="ignore"):
                spread = spread * self.calibration.row_factors[rows] * self.column_factors(columns)
            return spread, *self.calibration.ends_at(level, rows, columns)
        spread, low, high = (np.empty(rows.size) for _ in range(3))
        for at, here, part, own in self._by_model(columns):
            i, j = rows[at].astype(np.int64), here.astype(np.int64)
            found = parts.deviations(*whole_and_noise(part.learned.model, *part.learned.at(i, j)))
            found[part.observations.locate(i, j) >= 0] = 0.0
            with np.errstate(over="ignore"):
                spread[at] = found * own.factors_at(i, j)
            low[at], high[at] = own.ends_at(level, i, j)
        return spread, low, high

    def interval(self, rows, columns, level: float) -> tuple[np.ndarray, np.ndarray]:
        """See `Completion.interval`; rows and columns are numbers of one shape."""
        centers = entries_at(self.solution, rows, columns)
        rows, columns = rows.ravel(), columns.ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            spread, *scores = self._calibrated(rows, columns, level)
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
        is_gap = ~np.isnan(predictions)
        is_seen = np.zeros((s.shape[0], columns.size), bool)
        for at, here, block in s.by_blocks(columns):
            known = block.observations.take(here)
            is_seen[known.rows, np.arange(columns.size)[at][known.entry_columns]] = True
        is_gap &= ~is_seen[rows]
        if not is_gap.any():
            return np.repeat(predictions[None], n, axis=0)
        if s.learned is not None:
            calibration, which = self._calibration_of(columns), np.arange(columns.size)
            drawn = model_deviations(*s.model_of(columns), n, rows, rng, parts)
            factors = calibration.factors_at(rows[:, None], which)
        else:
            calibration, which = self.calibration, columns
            given = s.space, s.used, s.noise_variance, plain_noise(s)
            drawn = column_deviations(*given, n, rows, columns, rng, parts)
            factors = calibration.row_factors[rows][:, None] * self.column_factors(columns)
        refuse_infinite(calibration.half_width(LEVEL))
        low, high = calibration.ends_at(LEVEL, rows[:, None], which)
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
        s, n = self.solution, self.solution.shape[1]
        step, means, half = max(1, BLOCK_CELLS // s.shape[0]), np.empty(n), np.empty(n)
        for lo in range(0, n, step):
            some = np.arange(lo, min(lo + step, n))
            means[some] = filled_columns(s, some).mean(axis=0, dtype=np.float64)
            for at, here, part, own in self._by_model(some):
                factors = np.sqrt(np.mean(own.factors_at(np.arange(s.shape[0])[:, None], here) ** 2, axis=0))
                deviations = mean_deviations(part.learned, part.observations, own.parts, here)
                half[some[at]] = from_normal(own.half_width(level), own.column_degrees[here]) * factors * deviations
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
