"""`Completion`, the filled table: its values, how far they are off, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._support.arguments import as_choice, as_count, as_generator, as_places, as_real
from ..data.frames import FrameForm, frame_of
from ..data.xarrays import array_of, dataset_of
from ..model.extension import extend_completion
from ..model.full_columns.learn import penalty_of
from ..model.prediction import entries_at, filled_columns, filled_mask
from ..model.solution import AnySolution
from ..model.solve import Status
from ..uncertainty.accuracy import Accuracy, refuse_without_intervals
from ..uncertainty.certificate_table import Certificates
from ..uncertainty.certificates import certify
from ..uncertainty.diagnostics import verdict_on
from ..uncertainty.explaining import explain_entry
from ..uncertainty.explanation import Explanation
from ..uncertainty.long_frame import certificate_frame, long_frame, values_and_ends
from ..uncertainty.verdict import Verdict
from .view import SolutionView

_SUSPICIOUS = "suspicious values"  # The key in `choices` of what is said of suspicious values.


@dataclass(frozen=True, repr=False, eq=False)
class Completion(SolutionView):
    """A filled matrix: ``center + basis @ coefficients``, with every observed entry as it was.

    Attributes
    ----------
    solution : Solution or StoredSolution
        What was learned, which entries were used, and the coefficients of every column. Of a result on the disk it is
        read when it is needed.
    choices : dict of str
        What was chosen, in words.
    run : dict
        With which settings and versions it was computed, if that is known; what JSON can hold.

    Notes
    -----
    The attributes of the solution are attributes of the completion too, among them

    - `observations`, what was known, and `used`, the entries that fill columns: under a prior all but the outliers;
    - `space`, `basis`, `center`, `rank` and `coefficients` of shape (r, n), NaN where the data determine none;
    - `status`, the `Status` of every column, `n_observed`, `row_names` and `column_names`;
    - `noise_variance`, for which the prior was weighed against the entries; 0 means plain least squares;
    - `bounds` that predictions are kept within, and `learned`, the factor model if one filled the table.
    """

    solution: AnySolution
    choices: dict = field(default_factory=dict)
    run: dict = field(default_factory=dict)

    @property
    def penalty(self) -> np.ndarray:
        """Lambda, the penalty of each direction, shape (r,)."""
        return penalty_of(self.space, self.noise_variance if self.learned is None else self.noise_std**2)

    @cached_property
    def accuracy(self) -> Accuracy:
        """How far predictions are off, as entries that were held out show."""
        return Accuracy(self.solution, self.run.get("n_columns_learned_from"))

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise of an entry. Under a prior, errors of entries left out determine it.

        In plain least squares, the full columns do if they are enough; otherwise it is NaN.
        """
        return self.accuracy.noise_std

    def columns(self, which) -> np.ndarray:
        """Filled columns, shape (m, k) for k numbers or names."""
        which = np.atleast_1d(as_places("columns", which, self.column_names, self.shape[1]))
        if which.ndim != 1:
            raise ValueError(f"columns must be a number or a list of numbers; got shape {which.shape}")
        return filled_columns(self.solution, which)

    def to_dense(self) -> np.ndarray:
        """The whole filled matrix, shape (m, n). It must fit into memory; `columns` and `entries` need not."""
        return self.columns(np.arange(self.shape[1]))

    def filled_mask(self) -> np.ndarray:
        """True where an entry was not observed and has been filled, shape (m, n); NaN stays where it is False."""
        return filled_mask(self.solution)

    def to_frame(self, interval: float | None = None):
        """The filled matrix as the kind of frame that came in, with its index and names; else of pandas or polars.

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
        return entries_at(self.solution, *self._places(rows, columns))

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
        return self.accuracy.interval(*self._places(rows, columns), level)

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
        return self.accuracy.draw(n, np.atleast_1d(rows), np.atleast_1d(columns), rng)

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
        return self.accuracy.means(level, as_choice("unbiased", unbiased, (True, False)))

    def _refuse_without_intervals(self) -> None:
        refuse_without_intervals(self.solution, self.choices.get("method", "this method"))

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
        return certify(self)

    @cached_property
    def verdict(self) -> Verdict:
        """Whether to use the filled table: "use it", "use it with care" or "do not use it", and why in a sentence."""
        return verdict_on(self)

    def summary(self) -> str:
        """What was seen and filled, the choices that were made, and how far to trust the columns, in words."""
        from ..interfaces.summary import in_words, summarise

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
        from ..interfaces.plots import plot_completion

        return plot_completion(self, what, ax)

    def _repr_html_(self) -> str:
        from ..interfaces.summary import notebook_html

        return notebook_html(self)

    def save(self, path, *, force: bool = False) -> None:
        """Write the completion into a new folder: arrays, names, facts and checksums, readable without pickle.

        With `force` a folder that `save` wrote before is replaced.
        """
        from ..files.results.saving import save_completion

        save_completion(self, path, force=force)

    @staticmethod
    def load(path, *, storage_options: dict | None = None) -> Completion:
        """Read a completion that `save` wrote; a damaged one is refused.

        `path` may be an address such as ``s3://bucket/result``, with options for its store.
        """
        from ..files.results.saving import load_completion

        return load_completion(path, storage_options)

    def __repr__(self) -> str:
        m, n = self.shape
        found = f"Completion of a {m:,} x {n:,} matrix, rank {self.rank}"
        if self.solution.is_on_disk:
            return f"<{found}; in {self.n_blocks:,} blocks on the disk>"
        counts = [f"{int((self.status == s).sum()):,} {s.name.lower()}" for s in Status if (self.status == s).any()]
        suspicious = f"; suspicious values: see choices[{_SUSPICIOUS!r}]" if _SUSPICIOUS in self.choices else ""
        return f"<{found}; columns: {', '.join(counts)}{suspicious}>"
