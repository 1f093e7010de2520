"""How the methods are run that work on what is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ... import methods
from ...completion import Completion, complete
from ...data.observations import Observations
from ...data.sources import Source
from ...model.column_space import ColumnSpace, fit_column_space
from ...model.solution import Solution
from ...model.solve import solve_columns
from .._fitting import row_means as means_of_rows
from ._hiding import rms


@dataclass(frozen=True)
class Task:
    """What a method is given.

    Attributes
    ----------
    observations : Observations
        What is known; of a source, a draw of d full columns and s entries of every other column.
    rank : int or None
        Maximum rank, if given.
    seed : int
    progress : function of (done, total), or None
    source : Source or None
        From which a method may read itself, about as many entries as were drawn.
    n_full_columns, n_entries : int
        d and s, if there is a source.
    """

    observations: Observations
    rank: int | None
    seed: int
    progress: Callable | None = None
    source: Source | None = None
    n_full_columns: int = 0
    n_entries: int = 0

    @property
    def budget(self) -> int:
        """Entries of d full columns and s of every other column."""
        (m, n), d = self.observations.shape, self.n_full_columns
        return d * m + (n - d) * self.n_entries

    @cached_property
    def plain_rank(self) -> int:
        """The rank, or the one with which plain least squares predicts entries best that are left out."""
        if self.rank is not None:
            return self.rank
        return max(1, _least_squares(self).rank)

    @cached_property
    def noise_std(self) -> float:
        """Deviation of an entry from the plain space of the full columns; 0 if they are too few."""
        d = self.observations.full_columns.size
        if d < 2:
            return 0.0
        noise = fit_column_space(self.observations, rank=min(self.plain_rank, d - 1)).noise_std
        return noise if np.isfinite(noise) else 0.0

    @property
    def noise_share(self) -> float:
        """The noise over the size of the entries of full columns."""
        size = rms(self.observations.full_matrix())
        return min(0.5, self.noise_std / size) if size else 0.0


def _rank_within(task: Task, most: int):
    return "auto" if task.rank is None else min(task.rank, max(1, most))


def _complete(task: Task) -> Completion:
    o = task.observations
    rank = _rank_within(task, o.full_columns.size or min(o.shape))  # Without full columns all of them are learned from.
    return complete(task.observations, rank=rank, random_state=task.seed, progress=task.progress)


def _least_squares(task: Task) -> Completion:
    rank = _rank_within(task, task.observations.full_columns.size)
    return complete(task.observations, rank=rank, center=False, shrinkage=0, refine=0, random_state=task.seed)


def row_means(o: Observations) -> Completion:
    """Each column as the row means plus an offset of its own: what a method must beat."""
    m, dtype, one = o.shape[0], o.values.dtype, np.ones(1)
    space = ColumnSpace(np.full((m, 1), m**-0.5, dtype), one, means_of_rows(o).astype(dtype), one, np.nan)
    return Completion(Solution(o, space, *solve_columns(space, o)), {"method": "row means and an offset"})


def column_means(o: Observations) -> Completion:
    """Each column as its mean: what a method must beat where columns have units of their own."""
    m, dtype, one = o.shape[0], o.values.dtype, np.ones(1)
    space = ColumnSpace(np.full((m, 1), m**-0.5, dtype), one, None, one, np.nan)
    return Completion(Solution(o, space, *solve_columns(space, o)), {"method": "column means"})


def _tall_project(task: Task) -> Completion:
    most = min(task.observations.full_columns.size, task.observations.shape[0] - 1)
    rank = min(task.plain_rank, max(1, most))  # Its own choice may be more than the entries of a column determine.
    return methods.tall_project(task.observations, rank=rank, random_state=task.seed, progress=task.progress)


def _with_rank(method):
    def run(task: Task) -> Completion:
        rank = _rank_within(task, min(task.observations.shape))
        return method(task.observations, rank=rank, random_state=task.seed, progress=task.progress)

    return run


def _soft_impute(task: Task) -> Completion:
    return methods.soft_impute(task.observations, max_rank=task.rank, random_state=task.seed, progress=task.progress)


def _svt(task: Task) -> Completion:
    return methods.svt(
        task.observations,
        noise_std=task.noise_std,
        max_rank=task.rank,
        random_state=task.seed,
        progress=task.progress,
    )


MEANS = "row_means", "column_means"
NEED_FULL_COLUMNS = "algorithm1", "tall_project"
ON_DATA = {
    "complete": _complete,
    "algorithm1": _least_squares,
    "row_means": lambda task: row_means(task.observations),
    "column_means": lambda task: column_means(task.observations),
    "tall_project": _tall_project,
    "als": _with_rank(methods.als),
    "soft_impute": _soft_impute,
    "optspace": _with_rank(methods.optspace),
    "svt": _svt,
}
