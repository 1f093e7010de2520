"""The attributes of a solution as attributes of a `Completion`."""

from __future__ import annotations

import numpy as np

from ..data.observations import Observations
from ..model.column_space import ColumnSpace
from ..model.selection import Learned
from ..model.solution import AnySolution


class SolutionView:
    """Whatever has a `solution` shows what it holds; of a result on the disk it is read when it is needed."""

    solution: AnySolution

    @property
    def observations(self) -> Observations:
        """What was known."""
        return self.solution.observations

    @property
    def space(self) -> ColumnSpace:
        """The column space that predictions lie in."""
        return self.solution.space

    @property
    def coefficients(self) -> np.ndarray:
        """Of shape (r, n); NaN in the columns that the data do not determine."""
        return self.solution.coefficients

    @property
    def status(self) -> np.ndarray:
        """The `Status` of every column, shape (n,)."""
        return self.solution.status

    @property
    def noise_variance(self) -> float:
        """The noise for which the prior was weighed against the entries; 0 means plain least squares."""
        return self.solution.noise_variance

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Predictions are kept within them."""
        return self.solution.bounds

    @property
    def learned(self) -> Learned | None:
        """The factor model that filled the table; None where full columns or another method did."""
        return self.solution.learned

    @property
    def used(self) -> Observations:
        """The entries that fill columns: under a prior all but the outliers."""
        return self.solution.used

    @property
    def by_columns(self) -> bool:
        """Whether each column was solved by itself; methods that fit all columns together have no intervals."""
        return self.solution.by_columns

    @property
    def optimism(self) -> float:
        """By how much errors of entries left out are larger than they seem in the mean; >= 1."""
        return self.solution.optimism

    @property
    def moved_rows(self) -> bool:
        """Whether a refinement has moved the rows of the basis."""
        return self.solution.moved_rows

    @property
    def unused(self) -> np.ndarray | None:
        """Where in ``observations.values`` entries stand that have no part in the answer; None if none."""
        return self.solution.unused

    @property
    def has_variances(self) -> bool:
        """Whether the squares of such numbers are floating-point numbers."""
        return self.solution.has_variances

    @property
    def shape(self) -> tuple[int, int]:
        return self.solution.shape

    @property
    def dtype(self) -> np.dtype:
        """The type of what is returned."""
        return self.solution.dtype

    @property
    def n_observed(self) -> np.ndarray:
        """Number of observed rows of every column, shape (n,)."""
        return self.solution.n_observed

    @property
    def row_names(self) -> np.ndarray | None:
        return self.solution.row_names

    @property
    def column_names(self) -> np.ndarray | None:
        return self.solution.column_names

    @property
    def rank(self) -> int:
        return self.solution.rank

    @property
    def basis(self) -> np.ndarray:
        return self.solution.basis

    @property
    def center(self) -> np.ndarray | None:
        return self.solution.center

    @property
    def n_blocks(self) -> int:
        """Number of blocks of columns that are read one by one; 1 in memory."""
        return self.solution.n_blocks

    @property
    def starts(self) -> np.ndarray:
        """Block k has the columns from ``starts[k]`` to the one before ``starts[k + 1]``."""
        return self.solution.starts
