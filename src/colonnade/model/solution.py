"""The solution of a table: what was learned from it, which entries were used, and the coefficients of every column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._support.delegation import shown_of
from ..data.observations import Observations
from .column_space import ColumnSpace
from .full_columns.column_outliers import moved_places
from .full_columns.learn import penalty_of
from .full_columns.outlier_screening import in_partial_columns
from .learned import Learned


class AnySolution:
    """What a solution in memory and one on the disk have in common: all that follows from their attributes."""

    observations: Observations
    space: ColumnSpace
    coefficients: np.ndarray
    status: np.ndarray
    noise_variance: float
    bounds: tuple[float, float] | None
    by_columns: bool
    optimism: float
    moved_rows: bool
    unused: np.ndarray | None
    learned: Learned | None
    starts: np.ndarray
    is_on_disk: bool
    shape: tuple[int, int]
    dtype: np.dtype
    n_observed: np.ndarray
    row_names: np.ndarray | None
    column_names: np.ndarray | None

    rank = shown_of("space")
    basis = shown_of("space")
    center = shown_of("space")
    has_variances = shown_of("space")

    @property
    def penalty(self) -> np.ndarray:
        """Lambda of the one equation where columns were solved by themselves, shape (r,)."""
        return penalty_of(self.space, self.noise_variance)

    @property
    def n_blocks(self) -> int:
        return self.starts.size - 1

    def block(self, k: int) -> Solution:
        """The solution of the columns of block k alone."""
        raise NotImplementedError

    def by_parts(self, columns) -> Iterator[tuple[slice | np.ndarray, np.ndarray, Solution]]:
        """Like `by_blocks`; a factor model of a part has at least these columns of its block."""
        raise NotImplementedError

    def places_learned_from(self, columns) -> np.ndarray:
        """Where these columns stand among those that the factor model was learned from; -1 if they do not."""
        raise NotImplementedError

    def blocks(self) -> Iterator[Solution]:
        """Solutions of neighbouring columns that together are this one."""
        return map(self.block, range(self.n_blocks))

    @cached_property
    def used(self) -> Observations:
        """The entries that fill columns: under a prior all but the outliers; see `column_outliers`."""
        o = self.observations
        return o if self.unused is None else o.without(in_partial_columns(o, self.unused))

    @cached_property
    def learned_from(self) -> Observations:
        """The entries from which something was learned; a full column with an unused entry counts as partial."""
        return self.observations if self.unused is None else self.observations.without(self.unused)


@dataclass(frozen=True, eq=False)
class Solution(AnySolution):
    """A solution in memory, of a whole table or of some of its columns.

    Attributes
    ----------
    observations : Observations
        What was known.
    space : ColumnSpace
        The column space that predictions lie in.
    coefficients : array of shape (r, n)
        NaN in the columns that the data do not determine.
    status : int8 array of shape (n,)
        The `Status` of every column.
    noise_variance : float
        The noise for which the prior was weighed against the entries; 0 means plain least squares.
    bounds : (float, float) or None
        Predictions are kept within them.
    by_columns : bool
        Whether the coefficients of every column come from its own entries by the one equation, so that leaving an
        entry out has a closed form. Methods that fit all columns together say False, and have no intervals.
    optimism : float
        By how much errors of entries left out are larger than they seem in the mean, because a refinement has seen the
        entries; >= 1.
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
    by_columns: bool = True
    optimism: float = 1.0
    moved_rows: bool = False
    unused: np.ndarray | None = None
    learned: Learned | None = None

    is_on_disk = False

    shape = shown_of("observations")
    n_observed = shown_of("observations")
    row_names = shown_of("observations")
    column_names = shown_of("observations")

    @property
    def dtype(self) -> np.dtype:
        """The type of predictions."""
        return self.observations.values.dtype

    @property
    def starts(self) -> np.ndarray:
        """The first columns of its blocks, and the end: one block."""
        return np.array([0, self.shape[1]])

    def block(self, k: int) -> Solution:
        """The solution of the columns of block k alone."""
        return self

    def by_blocks(self, columns) -> Iterator[tuple[slice | np.ndarray, np.ndarray, Solution]]:
        """The blocks that have some of these columns: their places among them, their numbers there, the block."""
        yield slice(None), columns, self

    def by_parts(self, columns) -> Iterator[tuple[slice | np.ndarray, np.ndarray, Solution]]:
        """Like `by_blocks`: one part."""
        yield slice(None), columns, self

    def some_columns(self, count: int, n_full: int = 0) -> Solution:
        """All columns: only of a solution on the disk are some chosen."""
        return self

    def learned_columns(self) -> Solution:
        """The solution of the columns that the factor model was learned from."""
        return self

    def places_learned_from(self, columns) -> np.ndarray:
        """Where these columns stand among those that the factor model was learned from."""
        return columns

    def model_of(self, columns) -> tuple[Learned | None, np.ndarray]:
        """A factor model that has these columns, and their numbers there."""
        return self.learned, columns

    def full_learned_from(self) -> Observations:
        """Observations whose full columns are those that were learned from."""
        return self.learned_from

    def only(self, columns) -> Solution:
        """The solution of some partial columns alone, by what was learned from all."""
        o = self.observations
        return replace(
            self,
            observations=o.take(columns),
            coefficients=self.coefficients[:, columns],
            status=self.status[columns],
            unused=None if self.unused is None else moved_places(o, columns, self.unused),
        )
