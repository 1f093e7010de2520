"""A factor model that was learned from some columns and solves all others, which lie in blocks.

The posterior of the rows is shared. The posterior of a column, N(z_j, S_j), follows from its own entries, so that it
does not depend on which other columns stand in the block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data.observations import Observations
from .column_space import ColumnSpace
from .learned import Learned, solve_new_columns
from .solve import Status, name_overflows


@dataclass(frozen=True, eq=False)
class SharedModel:
    """A factor model and the columns that it was learned from.

    Attributes
    ----------
    learned : Learned
        Of the sample, whose columns are numbered from 0; it is not turned.
    sample : int64 array
        Numbers of its columns in the whole table, rising. Of an exact model they are all columns.
    """

    learned: Learned
    sample: np.ndarray

    def of_columns(self, numbers, o: Observations) -> Learned:
        """The model of the columns with these numbers in the table, whose entries are `o`."""
        model = self.learned.model
        if self.learned.is_exact:
            at = np.searchsorted(self.sample, numbers)
            Z, covariance = model.Z[at], model.column_covariance[at]
        else:
            Z, covariance = solve_new_columns(self.learned, o)
        return replace(self.learned, model=replace(model, Z=Z, column_covariance=covariance))

    def solution(self, space: ColumnSpace, found: Learned, o: Observations) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients in the basis of the space, shape (columns, r), and status of columns that were `found`."""
        model, r = self.learned.model, self.learned.model.rank
        turn = space.basis.astype(np.float64).T @ (model.unit[:, None] * model.U[:, :r])
        Z = found.model.Z[:, :r]
        with np.errstate(over="ignore", invalid="ignore"):
            # A loop over columns, not a matrix product, whose last digits depend on the number of columns.
            coefficients = np.einsum("jr,kr->jk", Z, turn).astype(space.basis.dtype)
        status = np.where(o.n_observed > 0, Status.SOLVED, Status.PRIOR_ONLY).astype(np.int8)
        status[o.n_observed == o.shape[0]] = Status.FULL
        center = None if space.center is None else np.nan_to_num(space.center)
        name_overflows(space.basis, center, coefficients, status)
        return coefficients, status
