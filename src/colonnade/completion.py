"""Stage 4, the completion: the filled matrix as two thin factors, and the two ways to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature

import numpy as np

from ._support.arguments import (
    OR_AUTO,
    as_choice,
    as_count,
    as_generator,
    as_places,
    as_progress,
    as_real,
    as_seed,
    is_auto,
    named,
)
from ._support.logs import logged, logger
from ._support.provenance import run_facts
from ._support.threads import in_threads, one_blas_thread
from .data.frames import FrameForm, frame_of
from .data.observations import Observations, as_observations, place_of
from .data.sampling import observe
from .data.set_aside import choices_of
from .data.sources import as_source
from .data.xarrays import array_of, dataset_of
from .model.column_space import ColumnSpace, fit_column_space, no_variances
from .model.extension import extend_completion
from .model.factors import thin_factors
from .model.full_columns.learn import Lesson, penalty_of
from .model.full_columns.nothing_full import IN_MEMORY, leave_out, nothing_known, refuse_nothing_full
from .model.full_columns.out_of_line import moved_places, typical_entries_of, unused_entries
from .model.full_columns.refine import learn_and_refine
from .model.full_columns.trials import ErrorScales, Trials, error_scales, noise_of, trials
from .model.full_columns.wild_entries import Found, Whole, found_at, in_partial_columns, screened, wild_words
from .model.learner_choice import better_factor_model
from .model.leverage import whole_and_noise
from .model.posterior import deviations, plain_noise
from .model.selection import Learned, learn_table, outliers
from .model.solve import Status, name_overflows, solve_columns
from .uncertainty.calibration import Calibration, calibrate
from .uncertainty.certificate_table import Certificates
from .uncertainty.diagnostics import verdict_on
from .uncertainty.draws import (
    LEVEL,
    NORMAL,
    column_deviations,
    drawn_tables,
    model_deviations,
    refuse_infinite,
)
from .uncertainty.explaining import explain_entry
from .uncertainty.explanation import Explanation
from .uncertainty.factor_posterior import mean_deviations, noise_std
from .uncertainty.held_out import scores_of_columns, scores_of_trials
from .uncertainty.long_frame import certificate_frame, long_frame, values_and_ends
from .uncertainty.means import mean_errors, means_and_ends
from .uncertainty.student import from_normal
from .uncertainty.table_calibration import TableCalibration, calibrate_table
from .uncertainty.verdict import Verdict

METHODS = "auto", "factor model", "full columns", "als", "soft_impute", "svt", "optspace", "tall_project"
_BLOCK_CELLS = 4_000_000
_PIECE_CELLS = 1_000_000  # that a thread predicts at a time
_PRODUCT_COLUMNS = 64  # Of every matrix product: with as many in each, further columns change no byte of the others.


@dataclass(frozen=True, repr=False, eq=False)
class Completion:
    """A filled matrix: ``center + basis @ coefficients``, with every observed entry as it was.

    Attributes
    ----------
    observations : Observations
        What was known.
    space : ColumnSpace
        The column space that the prediction lies in.
    coefficients : array of shape (r, n)
        NaN in the columns that the data do not determine.
    status : int8 array of shape (n,)
        The `Status` of every column.
    noise_variance : float
        With which the prior was weighed against the entries; 0 means plain least squares.
    bounds : (float, float) or None
        Predictions are kept within them.
    choices : dict of str
        What was chosen, in words.
    by_columns : bool
        Whether the coefficients of every column come from its own entries by the one equation, so that leaving an
        entry out has a closed form. Methods that fit all columns together say False, and have no intervals.
    optimism : float
        By how much errors of entries left out are larger than they seem in the mean, because a refinement has seen the
        entries; >= 1.
    run : dict
        With which settings and versions it was computed, if that is known; what JSON can hold.
    moved_rows : bool
        Whether a refinement has moved the rows of the basis, so that it differs from that of the full columns.
    unused : int64 array or None
        Where in ``observations.values`` entries stand that have no part in the answer, rising: outliers of partial
        columns, and of full ones from which nothing was learned. None means that there are none.
    learned : Learned or None
        The factor model that filled the table, with its posterior; None where full columns or another method did.
    """

    observations: Observations
    space: ColumnSpace
    coefficients: np.ndarray
    status: np.ndarray
    noise_variance: float = 0.0
    bounds: tuple[float, float] | None = None
    choices: dict = field(default_factory=dict)
    by_columns: bool = True
    optimism: float = 1.0
    run: dict = field(default_factory=dict)
    moved_rows: bool = False
    unused: np.ndarray | None = None
    learned: Learned | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.observations.shape

    @property
    def dtype(self) -> np.dtype:
        """Of what is returned."""
        return self.observations.values.dtype

    @property
    def n_observed(self) -> np.ndarray:
        """Number of observed rows of every column, shape (n,)."""
        return self.observations.n_observed

    @property
    def row_names(self) -> np.ndarray | None:
        return self.observations.row_names

    @property
    def column_names(self) -> np.ndarray | None:
        return self.observations.column_names

    @property
    def rank(self) -> int:
        return self.space.rank

    @property
    def basis(self) -> np.ndarray:
        return self.space.basis

    @property
    def center(self) -> np.ndarray | None:
        return self.space.center

    @property
    def penalty(self) -> np.ndarray:
        """Lambda, the penalty of each direction, shape (r,)."""
        noise = self.noise_variance if self.learned is None else self.noise_std**2
        return penalty_of(self.space, noise)

    @cached_property
    def used(self) -> Observations:
        """Those that fill columns: under a prior all but the outliers; see `out_of_line`."""
        o = self.observations
        return o if self.unused is None else o.without(in_partial_columns(o, self.unused))

    @cached_property
    def taught(self) -> Observations:
        """Those from which something was learned; a full column with an entry that is not used counts as partial."""
        return self.observations if self.unused is None else self.observations.without(self.unused)

    @property
    def noise_std(self) -> float:
        """Of an entry about the column space: under a prior as the errors of entries left out tell it.

        In plain least squares that of the full columns, if they can tell; NaN if nothing can.
        """
        if self.learned is not None:
            return noise_std(self.learned)
        if self.noise_variance or not self.by_columns or np.isfinite(self.space.noise_std):
            return noise_of(self, self._error_scales.of_left_out_squares)
        return self._error_scales.of_left_out_squares if self._error_scales.are_told else np.nan

    @cached_property
    def _trials(self) -> Trials:
        return trials(self)

    @cached_property
    def _error_scales(self) -> ErrorScales:
        return error_scales(self._trials) if self.by_columns and self.has_variances else ErrorScales()

    def columns(self, which) -> np.ndarray:
        """Filled columns, shape (m, k) for k numbers or names."""
        which = np.atleast_1d(as_places("columns", which, self.column_names, self.shape[1]))
        if which.ndim != 1:
            raise ValueError(f"columns must be a number or a list of numbers; got shape {which.shape}")
        result = np.empty((self.shape[0], which.size), self.dtype, order="F")
        step = max(1, _BLOCK_CELLS // self.shape[0])
        for lo in range(0, which.size, step):
            self._fill(result[:, lo : lo + step], which[lo : lo + step])
        return result

    def _blocks(self) -> Iterator[np.ndarray]:
        """Filled columns, some at a time."""
        step = max(1, _BLOCK_CELLS // self.shape[0])
        for lo in range(0, self.shape[1], step):
            yield self.columns(np.arange(lo, min(lo + step, self.shape[1])))

    def to_dense(self) -> np.ndarray:
        """The whole filled matrix, shape (m, n). It must fit into memory; `columns` and `entries` need not."""
        return self.columns(np.arange(self.shape[1]))

    def filled_mask(self) -> np.ndarray:
        """True where an entry was not observed and has been filled, shape (m, n); NaN stays where it is False."""
        o = self.observations
        mask = np.empty(self.shape, bool)
        mask[:] = _filled(self.status)
        mask[o.rows, o.entry_columns] = False
        if self.center is not None:
            mask[np.isnan(self.center)] = False  # A row without any entry stays NaN.
        return mask

    def to_frame(self, interval: float | None = None):
        """The filled matrix as the kind of frame that came in, with its index and names; else of pandas.

        Parameters
        ----------
        interval : float, optional
            A probability such as 0.9: the frame is then long, with a line for each entry and the columns row, column,
            value, low, high and kind ("observed", "filled", or "missing" where the value is NaN). Default: the table.
        """
        if interval is None:
            return frame_of(self.to_dense(), self.observations)
        return long_frame(self, as_real("interval", interval, 0, 1, "()"))

    def to_xarray(self, interval: float | None = None):
        """The filled matrix as a DataArray with the dimensions, coordinates and attributes of the one that came in.

        Other data become a DataArray with the dimensions row and column. Needs xarray.

        Parameters
        ----------
        interval : float, optional
            A probability such as 0.9: the result is then a Dataset with the variables value, low, high and filled
            (True where the value was filled). Default: the DataArray of values alone.
        """
        if interval is None:
            return array_of(self.to_dense(), self.observations)
        found = values_and_ends(self, as_real("interval", interval, 0, 1, "()"))
        matrices = dict(zip(("value", "low", "high"), found)) | {"filled": self.filled_mask()}
        return dataset_of(matrices, self.observations)

    def entries(self, rows, columns) -> np.ndarray:
        """Single entries at ``(rows[k], columns[k])``, numbers or names; the two are broadcast against each other."""
        rows, columns = self._places(rows, columns)
        result = np.empty(rows.shape, self.dtype)
        flat, rows, columns = result.reshape(-1), rows.ravel(), columns.ravel()
        step = max(1, _BLOCK_CELLS // max(1, self.rank))
        for lo in range(0, flat.size, step):
            i, j = rows[lo : lo + step], columns[lo : lo + step]
            flat[lo : lo + step] = self._entries(i, j)
        return result

    def _places(self, rows, columns) -> tuple[np.ndarray, np.ndarray]:
        """Numbers or names of rows and of columns as numbers of one shape."""
        m, n = self.shape
        rows = as_places("rows", rows, self.row_names, m)
        columns = as_places("columns", columns, self.column_names, n)
        try:
            i, j = np.broadcast_arrays(rows, columns)
        except ValueError:
            raise ValueError(f"rows of shape {rows.shape} and columns of shape {columns.shape} do not match") from None
        return i, j

    def interval(self, rows, columns, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Low and high ends between which entries at (rows[k], columns[k]), measured anew, lie with this probability.

        Observed entries are their own interval. The coverage is calibrated on observed entries of partial columns that
        were left out, so it holds for entries like those, on average over rows and columns. The prediction lies inside,
        but not in the middle where errors go farther to one side.
        """
        level = as_real("level", level, 0, 1, "()")
        self._refuse_without_intervals()
        rows, columns = self._places(rows, columns)
        centers = self.entries(rows, columns)
        rows, columns = rows.ravel(), columns.ravel()
        spread = self._calibrated_deviations(rows, columns)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._calibration.ends_at(level, rows, columns)
            below, above = (np.where(spread == 0, 0.0, score * spread) for score in scores)
            sizes = self._sizes(rows, columns)
            rounding = _rounding(self.rank, centers.dtype, sizes, above - below)
            shifts = (below - rounding).reshape(centers.shape), (above + rounding).reshape(centers.shape)
            ends = [np.asarray((centers + shift).astype(centers.dtype)) for shift in shifts]
        observed = ((spread == 0) & (sizes == 0)).reshape(centers.shape)
        for end in ends:
            self._keep_in_bounds(end)
            end[observed] = centers[observed]
        low, high = ends
        return low, high

    def _calibrated_deviations(self, rows, columns) -> np.ndarray:
        """Predicted deviations times the factors of rows and columns; 0 of observed entries."""
        if self.learned is None:
            spread = self._calibration.parts.deviations(self._deviations(rows, columns), self._predicted_noise)
        else:
            places = self.learned.at(rows.astype(np.int64), columns.astype(np.int64))
            spread = self._calibration.parts.deviations(*whole_and_noise(self.learned.model, *places))
            spread[self.observations.locate(rows, columns) >= 0] = 0.0
        with np.errstate(over="ignore"):
            return spread * self._calibration.row_factors[rows] * self._column_factors(columns)

    def _column_factors(self, columns) -> np.ndarray:
        """By how much entries of these columns are farther off than predicted, as those held out tell."""
        calibration = self._calibration
        if isinstance(calibration, TableCalibration):
            return calibration.column_factors[columns]
        which, places = np.unique(columns, return_inverse=True)
        return calibration.factors_of_columns(scores_of_columns(self, which, self._trials_of_columns), which)[places]

    @property
    def _trials_of_columns(self) -> Trials | None:
        return self._trials

    def sample(self, n: int, *, rows=None, columns=None, random_state=None) -> np.ndarray:
        """Filled tables drawn from the posterior predictive distribution, for multiple imputation.

        Observed entries are as they are. Filled ones are correlated within rows and columns as the model says, and
        spread about the prediction as the 90 % intervals do. Exact data have no spread beyond rounding.

        Parameters
        ----------
        n : int
            How many tables.
        rows, columns : numbers or names, optional
            The part of the table that is drawn. Default: all. Another part with the same seed has other draws.
        random_state : None, int or numpy Generator
            The same seed gives the same bytes.

        Returns
        -------
        array of shape (n, number of rows, number of columns)
        """
        n, rng = as_count("n", n, 1), as_generator(random_state)
        self._refuse_without_intervals()
        rows = np.arange(self.shape[0]) if rows is None else as_places("rows", rows, self.row_names, self.shape[0])
        every = np.arange(self.shape[1])
        columns = every if columns is None else as_places("columns", columns, self.column_names, self.shape[1])
        return self._drawn(n, np.atleast_1d(rows), np.atleast_1d(columns), rng)

    def _drawn(self, n: int, rows, columns, rng) -> np.ndarray:
        predictions = self.columns(columns)[rows]
        i, j = (x.ravel() for x in np.broadcast_arrays(rows[:, None], columns))
        is_filled = (self.observations.locate(i, j) < 0).reshape(predictions.shape) & ~np.isnan(predictions)
        if not is_filled.any():
            return np.repeat(predictions[None], n, axis=0)
        if self.learned is not None:
            deviations = model_deviations(self.learned, n, rows, columns, rng, self._calibration.parts)
        else:
            given = self.space, self.used, self.noise_variance, plain_noise(self)
            deviations = column_deviations(*given, n, rows, columns, rng, self._calibration.parts)
        factors = self._calibration.row_factors[rows][:, None] * self._column_factors(columns)
        refuse_infinite(self._calibration.half_width(LEVEL))
        low, high = self._calibration.ends_at(LEVEL, rows[:, None], columns)
        deviations *= (high - low) / (2 * NORMAL) * factors
        return drawn_tables(predictions, deviations, is_filled, self._keep_in_bounds)

    def column_means(self, level: float = 0.9, *, unbiased: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mean of every column over all m rows, with the ends of an interval; three arrays of shape (n,).

        Parameters
        ----------
        level : float
            The probability with which the interval holds the mean, on average over the columns.
        unbiased : bool
            Set the mean of the predictions right by the errors at the observed rows, which is unbiased whatever the
            data are, if the rows of each column were drawn at random. False trusts the prior: better if it is right
            or if the rows were chosen, but biased towards it. A table that the factor model filled has the
            posterior mean in both cases.
        """
        level = as_real("level", level, 0, 1, "()")
        self._refuse_without_intervals()
        means = self._column_means(level, as_choice("unbiased", unbiased, (True, False)))
        partial = self.n_observed < self.shape[0]
        for values in means:
            inside = values[partial]
            self._keep_in_bounds(inside)
            values[partial] = inside
        return means

    def _column_means(self, level: float, unbiased: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        learned = self.learned
        if learned is not None and isinstance(calibration := self._calibration, TableCalibration):
            means = np.concatenate([part.mean(axis=0, dtype=np.float64) for part in self._blocks()])
            factors = float(np.sqrt(np.mean(calibration.row_factors**2))) * calibration.column_factors
            half = from_normal(calibration.half_width(level), calibration.column_degrees)
            half = half * factors * mean_deviations(learned, self.observations, calibration.parts)
            return means, means - half, means + half
        return means_and_ends(self, self._mean_errors(unbiased).half_width(level), unbiased)

    def _mean_errors(self, unbiased: bool):
        if unbiased not in self._found_mean_errors:
            self._found_mean_errors[unbiased] = mean_errors(self._asked_columns(), unbiased)
        return self._found_mean_errors[unbiased]

    @cached_property
    def _found_mean_errors(self) -> dict:
        return {}

    def _asked_columns(self) -> Completion:
        return self

    @property
    def has_variances(self) -> bool:
        """Whether the squares of such numbers are floating-point numbers."""
        return self.space.has_variances

    def _refuse_without_intervals(self) -> None:
        if not self.by_columns and self.learned is None:
            method = self.choices.get("method", "this method")
            raise ValueError(f"{method} has no intervals; complete(completion.observations) has them")
        if not self.has_variances:
            raise ValueError(no_variances(self.observations.values))

    @cached_property
    def _calibration(self) -> Calibration | TableCalibration:
        if self.learned is not None:
            return calibrate_table(self.learned, self.observations, self.run.get("n_columns_learned_from"))
        known = self.noise_variance > 0 or np.isfinite(self.space.noise_std)
        by_column = bool(self._trials.is_left_out.all())
        scores, noise = scores_of_trials(self._trials), self._predicted_noise
        return calibrate(scores, self.shape[0], noise=noise, is_noise_known=known, by_column=by_column)

    @property
    def _predicted_noise(self) -> float:
        """Deviation of the noise in predicted deviations, before calibration."""
        return float(np.sqrt(self.noise_variance)) or plain_noise(self)

    def extend(self, new_columns) -> Completion:
        """The completion of the table with further columns, filled by what was learned; nothing is learned anew.

        The answers for the old columns stay as they are. New columns whose names the table has already are refused.

        Parameters
        ----------
        new_columns : array of shape (m, k), Observations or data frame
            NaN where an entry is not known; weights in the units of those of `observations`.
        """
        return extend_completion(self, new_columns)

    def explain(self, row, column, *, level: float = 0.9) -> Explanation:
        """Why an entry has its value: the level of its row, and the known entries of its column with their weights.

        The sum of these is the prediction, given the loadings that were learned. Of an observed entry it is the
        prediction without that entry. A factor model that was learned with rows and columns exchanged predicts from
        the known entries of the row; `Explanation.through` says which it is.

        Parameters
        ----------
        row, column : int or str
            A number from 0, or a name.
        level : float
            Probability of the interval.

        Returns
        -------
        Explanation
            With the most similar columns, the leverage, the interval and the verdict on the column. ``str`` gives
            words, ``to_frame()`` a line for each known entry, ``plot()`` a picture.
        """
        return explain_entry(self, row, column, level)

    def certificates(self, *, as_frame: bool | None = None):
        """How far each column can be trusted: see `certificates.certify`.

        Parameters
        ----------
        as_frame : bool, optional
            True: a frame with the names of the columns. False: a record array. Default: a frame if the data came as a
            frame, a record array else.
        """
        if as_frame is None:
            as_frame = isinstance(self.observations.origin, FrameForm)
        return certificate_frame(self) if as_frame else self._certificates.copy()

    @cached_property
    def _certificates(self) -> Certificates:
        from .uncertainty.certificates import certify

        return certify(self)

    def _parts(self) -> Iterator[Completion]:
        """Completions of neighbouring columns that together are this one."""
        yield self

    def _taught_full(self) -> Observations:
        """Observations whose full columns are those that were learned from."""
        return self.taught

    def _only(self, columns) -> Completion:
        """The completion of some partial columns alone, with the same choices."""
        o = self.observations
        unused = None if self.unused is None else moved_places(o, columns, self.unused)
        return replace(
            self,
            observations=o.take(columns),
            coefficients=self.coefficients[:, columns],
            status=self.status[columns],
            unused=unused,
        )

    @cached_property
    def verdict(self) -> Verdict:
        """Whether to use the filled table: "use it", "use it with care" or "do not use it", and why in a sentence."""
        return verdict_on(self)

    def summary(self) -> str:
        """What was seen and filled, the choices that were made, and how far to trust the columns, in words."""
        from .interfaces.summary import in_words, summarise

        return "\n".join(in_words(summarise(self)))

    def plot(self, what: str | None = None, ax=None):
        """Draw with matplotlib: "coverage", "spectrum", "prediction" or "calibration", or all four in one figure.

        Parameters
        ----------
        what : str, optional
            coverage: the share of entries seen; spectrum: the directions, with the noise; prediction: entries left out
            against the truth; calibration: how many of them lie within their intervals.
        ax : matplotlib Axes, optional
            Axes on which to draw one of them. Default: new ones.

        Returns
        -------
        matplotlib Axes, or Figure of all four
        """
        from .interfaces.plots import plot_completion

        return plot_completion(self, what, ax)

    def _repr_html_(self) -> str:
        from .interfaces.summary import notebook_html

        return notebook_html(self)

    def save(self, path, *, force: bool = False) -> None:
        """Write the completion into a new folder: arrays, names, facts and checksums, readable without pickle.

        With `force` a folder that `save` wrote before is replaced.
        """
        from .files.results.saving import save_completion

        save_completion(self, path, force=force)

    @staticmethod
    def load(path, *, storage_options: dict | None = None) -> Completion:
        """Read a completion that `save` wrote; a damaged one is refused.

        `path` may be an address such as ``s3://bucket/result``, with options for its store.
        """
        from .files.results.saving import load_completion

        return load_completion(path, storage_options)

    @one_blas_thread()
    def _fill(self, target, which) -> None:
        U, c = self.basis, self.center

        width = min(_PRODUCT_COLUMNS, max(1, _PIECE_CELLS // self.shape[0]))

        def predict(first: int) -> None:
            for lo in range(first, min(first + step, which.size), width):
                some = which[lo : lo + width]
                Z = np.zeros((self.rank, width), self.coefficients.dtype)
                Z[:, : some.size] = self.coefficients[:, some]
                with np.errstate(over="ignore", invalid="ignore"):
                    target[:, lo : lo + width] = (U @ Z)[:, : some.size]
                    if c is not None:
                        target[:, lo : lo + width] += c[:, None]

        step = width * max(1, _PIECE_CELLS // self.shape[0] // width)
        in_threads(predict, range(0, which.size, step))
        self._keep_in_bounds(target)
        target[:, ~_filled(self.status[which])] = np.nan
        known = self.observations.take(which)
        target[known.rows, known.entry_columns] = known.values

    def _entries(self, rows, columns) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            result = np.einsum("kr,kr->k", self.basis[rows], self.coefficients.T[columns])
            if self.center is not None:
                result += self.center[rows]
        self._keep_in_bounds(result)
        result[~_filled(self.status[columns])] = np.nan
        at = self.observations.locate(rows, columns)
        result[at >= 0] = self.observations.values[at[at >= 0]]
        return result

    def _sizes(self, rows, columns) -> np.ndarray:
        """Sizes of the terms of predictions, ``|center| + |basis| @ |coefficients|``; 0 of observed entries."""
        with np.errstate(over="ignore"):
            U, Z = self.basis[rows].astype(np.float64), self.coefficients.T[columns].astype(np.float64)
            result = np.einsum("kr,kr->k", np.abs(U), np.abs(Z))
            if self.center is not None:
                result += np.abs(self.center[rows].astype(np.float64))
        result[self.observations.locate(rows, columns) >= 0] = 0.0
        return result

    def _n_used(self, columns) -> np.ndarray:
        """How many entries have a part in filling these columns."""
        return self.used.n_observed[columns]

    def _deviations(self, rows, columns) -> np.ndarray:
        """Predicted deviations of entries, 0 of those observed."""
        result = deviations(self, rows, columns)
        result[self.observations.locate(rows, columns) >= 0] = 0.0
        return result

    def _keep_in_bounds(self, predictions) -> None:
        if self.bounds is not None:
            limits = np.finfo(predictions.dtype)
            low, high = (np.clip(b, limits.min, limits.max) if np.isfinite(b) else b for b in self.bounds)
            np.clip(predictions, low, high, out=predictions)

    def __repr__(self) -> str:
        m, n = self.shape
        counts = [f"{int((self.status == s).sum()):,} {s.name.lower()}" for s in Status if (self.status == s).any()]
        suspicious = "; suspicious values: see choices[{!r}]".format("wild") if "wild" in self.choices else ""
        return f"<Completion of a {m:,} x {n:,} matrix, rank {self.rank}; columns: {', '.join(counts)}{suspicious}>"


@logged
def complete(
    data,
    *,
    rank="auto",
    center="auto",
    shrinkage="auto",
    refine="auto",
    bounds=None,
    random_state=None,
    progress=None,
    ignore=(),
    only=None,
    orientation="auto",
    method="auto",
) -> Completion:
    """Fill the gaps of a table.

    With no settings the data decide. Exactly low-rank data are recovered exactly. Where no column is complete, or the
    rows have different units, a factor model is learned from all entries. Where some columns are complete, hidden
    entries choose between that model and a Gaussian prior estimated from the complete columns.
    ``complete(data, rank=r, center=False, shrinkage=0, refine=0)`` is exactly the paper's recovery: each column by
    least squares on its observed rows, in the space of the top r left singular vectors of the full columns.

    Parameters
    ----------
    data : Observations, array of shape (m, n), masked array, data frame or scipy sparse matrix
        NaN, masked and null entries are unseen; of a sparse matrix, those not stored.
    rank : int or "auto"
        The largest number of directions.
    center : bool or "auto"
        Take off the row means of the full columns first. "auto" does so under a prior, and adds an offset for each
        column. Like `shrinkage` and `refine` a setting of the method that learns from full columns.
    shrinkage : float or "auto"
        The variance of the noise, of an entry of weight 1 if there are weights: each direction is penalised by it over
        the direction's own variance. 0 is plain least squares. With 0 or "auto" only ratios of weights count, and the
        noise is that of an entry of the usual weight.
    refine : int or "auto"
        Number of sweeps over rows and columns, in which the partial columns improve the basis of the full ones.
        "auto" makes three, without the rows where these would take far longer than all else.
    bounds : (float, float), optional
        Keep predictions within them.
    random_state : None, int or numpy Generator
        Which entries are hidden to choose settings. None hides the same ones every time; rows or columns in another
        order may lead to other settings, about as good.
    progress : function or True, optional
        Called as ``progress(stage, done, total)`` now and then; True draws a bar, in a notebook or on a terminal.
    ignore : name or list of names
        Columns of a data frame that are no part of the matrix; `Completion.to_frame` returns them unchanged. So it
        does with columns of text, dates and Booleans, which need not be named.
    only : name or list of names, optional
        The only columns of a data frame that are the matrix. Default: all that hold numbers.
    orientation : {"auto", "columns", "rows"}
        Which side of the table is filled. "columns" gives every row its own unit and level, "rows" gives them to the
        columns. Default: what is complete decides, else the error of hidden entries.
    method : {"auto", "factor model", "full columns"} or a name in `colonnade.methods`
        "auto" chooses as described above; "full columns" always learns from full columns; "factor model" always learns
        from all entries; a name such as "als" runs that method with its own defaults.
    """
    settings = {"rank": rank, "center": center, "shrinkage": shrinkage, "refine": refine}
    orientation = as_choice("orientation", orientation, ("auto", "columns", "rows"))
    method = as_choice("method", _spelled(method), METHODS)
    _refuse_idle_settings(method, orientation, bounds, settings)
    observations, random_state = as_observations(data, ignore=ignore, only=only), as_seed(random_state)
    if method not in ("auto", "factor model", "full columns"):
        return _by_method(method, observations, rank, random_state, progress)
    if not _wants_factor_model(observations, method, orientation, settings):
        learned = None
        if method == "auto" and observations.full_columns.size and all(map(is_auto, settings.values())):
            learned = _better_factor_model(observations, orientation, random_state, progress)
        if learned is None:
            return completed_by(None, observations, bounds, random_state, progress, **settings)
    else:
        learned = None
    completion = _by_factor_model(observations, rank, orientation, bounds, random_state, progress, learned)
    if method == "factor model":
        completion.choices["method"] = "factor model learned from all columns, as given"
    return completion


def _given(settings: dict) -> list[str]:
    """Settings of the full-columns method that were not left to the data."""
    return [name for name in ("center", "shrinkage", "refine") if not is_auto(settings[name])]


def _refuse_idle_settings(method, orientation, bounds, settings: dict) -> None:
    """Raise ValueError where a setting would have no effect."""
    given, by_full = _given(settings), method in ("auto", "full columns")
    idle = [] if by_full else list(given)
    idle += ["orientation"] if orientation == "rows" and (given or method not in ("auto", "factor model")) else []
    idle += ["bounds"] if bounds is not None and not by_full and method != "factor model" else []
    if idle and method == "auto":
        raise ValueError(f"{', '.join(given)} cannot be combined with orientation='rows'; leave one of them out")
    if idle:
        it = "it" if len(idle) == 1 else "them"
        raise ValueError(f"method {method!r} does not use {', '.join(idle)}; leave {it} out")


def _spelled(method):
    """A method's name as it is listed; hyphens and blanks in it do not matter."""
    plain = {name.replace("_", " "): name for name in METHODS}
    return plain.get(method.replace("-", " ").replace("_", " "), method) if isinstance(method, str) else method


def _wants_factor_model(o: Observations, method: str, orientation: str, settings: dict) -> bool:
    """Whether only the model of all entries can do what was asked for."""
    if method != "auto":
        return method == "factor model"
    return not _given(settings) and o.values.size > 0 and (orientation == "rows" or o.full_columns.size == 0)


@one_blas_thread()
def _better_factor_model(o: Observations, orientation, random_state, progress) -> Learned | None:
    """The factor model, if it predicts hidden entries better than the full columns do."""
    return better_factor_model(o.with_relative_weights(), orientation, _seed(random_state), as_progress(progress))


def chosen_method(o: Observations) -> str:
    """The method with which `complete` fills a table without settings."""
    if o.full_columns.size == 0 and o.values.size:
        return "factor model"
    learned = _better_factor_model(o, "auto", None, None) if o.full_columns.size else None
    return "full columns" if learned is None else "factor model"


def _seed(random_state) -> int:
    return 0 if random_state is None else int(as_generator(random_state).integers(2**31))


@one_blas_thread()
def _by_factor_model(o: Observations, rank, orientation, bounds, random_state, progress, learned=None) -> Completion:
    """Learn from all entries, unless that has been done; see `model.selection`."""
    asked = {"rank": rank, "orientation": orientation, "method": "factor model"}
    m, n = o.shape
    rank = rank if is_auto(rank) else as_count("rank", rank, 1, min(m, n), OR_AUTO)
    bounds = checked_bounds(bounds)
    if o.values.size == 0:
        raise ValueError(nothing_known(o.shape))
    logger.debug("complete: learning from all columns")
    if learned is None:
        given = {"rank": rank, "orientation": orientation, "seed": _seed(random_state)}
        learned = learn_table(o.with_relative_weights(), **given, progress=as_progress(progress))
    space, coefficients, status = thin_factors(learned, o)
    name_overflows(space.basis, None if space.center is None else np.nan_to_num(space.center), coefficients.T, status)
    choices = choices_of(o.origin) | learned.choices | _empty_rows_in_words(o, learned.is_turned)
    choices |= _outliers_in_words(o, outliers(learned, o.with_relative_weights()))
    whole, names, none = Whole(o), (o.row_names, o.column_names), np.zeros(0, np.int64)
    choices |= data_in_words(whole, screened(whole), found_at(o, none), names, 0.0, bounds)
    run = run_facts(**asked, bounds=bounds, random_state=random_state)
    return Completion(o, space, coefficients, status, 0.0, bounds, choices, False, run=run, learned=learned)


def _outliers_in_words(o: Observations, at) -> dict:
    if at.size == 0:
        return {}
    first = place_of(o.rows[at[0]], o.columns_of(at[:1])[0], (o.row_names, o.column_names))
    value = f"{o.values[at[0]]:.9g}"
    if at.size == 1:
        return {"outliers": f"1 known value looks like an outlier and hardly counts; at {first}: {value}"}
    return {
        "outliers": f"{at.size:,} known values look like outliers and hardly count; the first is at {first}: {value}"
    }


def _empty_rows_in_words(o: Observations, are_filled: bool) -> dict:
    empty = np.flatnonzero(np.bincount(o.rows, minlength=o.shape[0]) == 0)
    if empty.size == 0:
        return {}
    some = ", ".join(str(named(o.row_names, i)) for i in empty[:3]) + (", ..." if empty.size > 3 else "")
    one = empty.size == 1
    what = "got typical values" if are_filled else f"{'stays' if one else 'stay'} NaN"
    return {"empty rows": f"{'row' if one else 'rows'} {some} without any value {what}"}


def _by_method(name: str, o: Observations, rank, random_state, progress) -> Completion:
    """A method of `colonnade.methods` that works on known entries."""
    from . import methods

    method = getattr(methods, name)
    seed = 0 if random_state is None else random_state  # None hides the same entries every time.
    given = {"rank": rank, "max_rank": rank, "random_state": seed, "progress": progress}
    accepted = signature(method).parameters
    return method(o, **{k: v for k, v in given.items() if k in accepted and not (v is None or is_auto(v))})


@one_blas_thread()
def completed_by(solve, observations, bounds, random_state, progress, *, rank, center, shrinkage, refine) -> Completion:
    """`complete`, with another way to solve the columns than `_solve_here` unless None, called like it."""
    asked = {"rank": rank, "center": center, "shrinkage": shrinkage, "refine": refine}
    m, n = observations.shape
    d = observations.full_columns.size
    refuse_nothing_full(observations, IN_MEMORY if solve else leave_out(_given(asked) or ["method"]))
    if is_auto(shrinkage) or shrinkage == 0:  # else it is the noise of an entry of weight 1
        observations = observations.with_relative_weights()
    if not is_auto(rank):
        rank = as_count("rank", rank, 1, min(m, d), f", the smaller of {m:,} rows and {d:,} full columns{OR_AUTO}")
    center = as_choice("center", center, (True, False, "auto"))
    shrinkage = shrinkage if is_auto(shrinkage) else as_real("shrinkage", shrinkage, 0, why=OR_AUTO)
    if not is_auto(refine):
        refine = as_count("refine", refine, 0, why=OR_AUTO)
    bounds = checked_bounds(bounds)
    progress = as_progress(progress)
    rng = None if random_state is None else as_generator(random_state)
    whole = Whole(observations)
    screening = screened(whole)
    if d == n and is_auto(rank):
        lesson, optimism = every_column_is_full(m, observations.values.dtype), 1.0
    else:
        logger.debug("complete: learning from %d full columns", d)
        lesson, optimism = learn_and_refine(
            observations, screening, rank=rank, center=center, shrinkage=shrinkage, refine=refine, random_state=rng
        )
    space, noise = lesson.space, lesson.noise_variance
    logger.debug("complete: solving the columns in %d directions", space.rank)
    unused = unused_entries(space, observations, lesson.penalty, screening)
    in_partial = in_partial_columns(observations, unused)
    coefficients, status = (solve or _solve_here)(
        space, observations, in_partial, penalty=lesson.penalty, progress=progress
    )
    run = run_facts(**asked, bounds=bounds, random_state=random_state)
    names = observations.row_names, observations.column_names
    choices = choices_of(observations.origin) | lesson.choices
    choices |= data_in_words(whole, screening, found_at(observations, in_partial), names, noise, bounds)
    more = True, optimism, run, lesson.moved_rows, unused
    return Completion(observations, space, coefficients, status, noise, bounds, choices, *more)


def _solve_here(space, observations, unused, *, penalty, progress):
    """Coefficients and status of all columns without the entries of partial ones at these places."""
    likely, typical = observations.without(unused), typical_entries_of(observations)
    return solve_columns(space, likely, penalty=penalty, typical=typical, progress=progress)


def data_in_words(whole, screening, unused: Found, names, noise: float, bounds) -> dict:
    """What `choices` says of the data: outliers, and entries where no prediction may be; nothing if there are none.

    Parameters
    ----------
    whole : Whole or Blocks
    screening : Screening
    unused : Found
        Entries of partial columns that had no part in the answer.
    names : (array or None, array or None)
        Of rows and of columns.
    noise : float
        The noise variance; 0 if every entry counts.
    bounds : (float, float) or None
    """
    said = {
        "wild": wild_words(whole, screening, unused, names, taught=noise == 0),
        "bounds": _bounds_words(whole, names, bounds),
    }
    return {about: words for about, words in said.items() if words}


def _bounds_words(whole, names, bounds) -> str | None:
    """What to say of entries that were observed where no prediction may be."""
    low, high = np.array((-np.inf, np.inf) if bounds is None else bounds, np.float64)  # not in the type of the values
    if whole.reach[0] >= low and whole.reach[1] <= high:
        return None
    outside = [found_at(o, np.flatnonzero((o.values < low) | (o.values > high)), first) for first, o in whole]
    found = Found(*map(np.concatenate, zip(*outside)))
    if found.rows.size == 0:
        return None
    one = found.rows.size == 1
    entries = "1 known value lies" if one else f"{found.rows.size:,} known values lie"
    return (
        f"{entries} outside the bounds {low:.9g} to {high:.9g},"
        f" {'' if one else 'the first '}at {place_of(found.rows[0], found.columns[0], names)}: {found.values[0]:.9g}"
    )


@logged
def algorithm1(
    source, *, rank: int, n_full_columns: int, n_entries: int, probabilities=None, random_state=None
) -> Completion:
    """Algorithm 1 of Wan, Yi and Zhang (2018), from the sampling to the answer.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    rank : int
        r, at most d.
    n_full_columns, n_entries : int
        d columns and, of every other column, s entries, each drawn with replacement.
    probabilities : array of shape (n,), optional
        p, the probability of drawing each column. Default: uniform.
    random_state : None, int or numpy Generator
    """
    source = as_source(source)
    d, s, p = as_count("n_full_columns", n_full_columns, 1), n_entries, probabilities
    r = as_count("rank", rank, 1, min(source.shape[0], d), ", the smaller of the rows and n_full_columns")

    # 1-5, 9: sample i_1 .. i_d by p, keep m_i and A = [m_i / sqrt(d p_i)]; of each other column sample Omega_i
    observations = observe(source, n_full_columns=d, n_entries=s, probabilities=p, random_state=random_state)
    # 6-7: r^ = min(r, rank(A)); U^ = the top r^ left singular vectors of A
    space = fit_column_space(observations, rank=r)
    # 8-11: m^_i = U^ (U_O' U_O)^-1 U_O' m_O
    coefficients, status = solve_columns(space, observations)
    # 12: M^ = [m^_1 .. m^_n]
    return Completion(observations, space, coefficients, status)


def _rounding(rank: int, dtype, sizes, widths) -> np.ndarray:
    """By how much predictions may differ between ways to compute them.

    A sum of r products and a center, in whatever order, is off by at most (r + 1) eps times the sum of their sizes.
    """
    eps = float(np.finfo(dtype).eps)
    with np.errstate(over="ignore"):
        return np.sqrt(eps) * widths + (2 * rank + 16) * eps * sizes


def _filled(status) -> np.ndarray:
    return np.isin(status, [s for s in Status if s.is_filled])


def every_column_is_full(m: int, dtype) -> Lesson:
    """A column space without a direction, for nothing is to be filled."""
    none = np.zeros(0)
    space = ColumnSpace(np.zeros((m, 0), dtype), none, None, none, np.nan)
    return Lesson(space, 0.0, {"rank": "0, because every column is complete"})


def checked_bounds(bounds):
    if bounds is None:
        return None
    if not isinstance(bounds, (tuple, list, np.ndarray)) or len(bounds) != 2:
        raise TypeError(f"bounds must be a pair (low, high) of numbers; got {bounds!r}")
    if any(isinstance(b, (bool, str)) or not isinstance(b, (int, float, np.number)) for b in bounds):
        raise TypeError(f"bounds must be a pair (low, high) of numbers, with -inf or inf for none; got {bounds!r}")
    low, high = (float(b) for b in bounds)
    if not low < high:
        raise ValueError(f"bounds must be (low, high) with low < high; got {bounds!r}")
    return low, high
