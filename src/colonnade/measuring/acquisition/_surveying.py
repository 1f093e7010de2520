"""The survey: columns read in full while they add directions, and a few entries of those that add none.

A column is looked at in a few rows first. If the space of the columns read so far explains it to rounding, it is done;
otherwise the rest of it is read too, so that looking costs nothing. Exactly low-rank data are all explained in the end,
by about as many entries as there are unknowns. On other data the survey goes on while more full columns pay.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..._support.threads import one_blas_thread
from ...model.column_space import ColumnSpace
from ...model.full_columns.learn import ROUNDING
from ...model.solve import Status, solve_columns
from ..row_selection import grow_rows, select_rows
from ._completing import without_gaps
from ._forecasting import more_columns_pay
from ._measuring import Measurements

_SPARE = 2  # Entries beyond the rank that must fit before a column counts as explained.
_SURE = 30  # Further entries of the first such column, because data of few different numbers fit by chance.
_GROWTH = 1.1  # Growth of the number of full columns between two tests of whether more pay.
_FEW = 4  # Full columns before the first such test, and half of what would balance both kinds of columns.
_MOST_GAPS = 0.2  # Share of a column that may be missing where it still counts as read in full.


class Survey:
    """What is known of the columns while they are read.

    Attributes
    ----------
    measurements : Measurements
    full : list of int
        The columns that were read in full, in the order of reading; some entries may be missing.
    rows : int64 array of shape (k,) or None
        Rows that determine a column in the space of the k directions so far, once a column has fitted to rounding.
    basis : float64 array of shape (m, k)
        Orthonormal, of the columns read in full that have no gap.
    is_done : bool
        Whether every column was read in full or is explained.
    """

    def __init__(self, measurements: Measurements, rng: np.random.Generator):
        m, n = measurements.shape
        self.measurements, self.rng = measurements, rng
        self.full: list[int] = []
        self.rows: np.ndarray | None = None
        self.basis = np.zeros((m, 0))
        self._waiting = deque(int(j) for j in rng.permutation(n))
        self._postponed: set[int] = set()
        self._explained: dict[int, int] = {}  # The number of directions with which
        self._n_with_gaps = 0
        self.is_done = False

    def matrix(self) -> np.ndarray:
        """The columns read in full, shape (m, d), NaN where an entry is missing."""
        return self.measurements.take(self.full).to_dense()

    def run(self) -> bool:
        """Read columns while that pays; whether all columns are explained or read in full in the end."""
        batch, question = 1, self._first_question()
        while columns := self._next(batch if self.rows is not None else 1):
            if not self._can_look(columns):
                return False
            off = self._unexplained(columns)
            batch = 2 * batch if not off else max(1, batch // 2)
            self._waiting.extendleft(off[:0:-1])
            if off and not self._read_in_full(off[0]):
                return False
            if len(self.full) >= question:
                question = int(np.ceil(_GROWTH * len(self.full)))
                A = without_gaps(self.matrix()).astype(np.float64)
                if not more_columns_pay(A, self.measurements.shape[1], self.measurements.left):
                    return False
        self.is_done = True
        return True

    def _first_question(self) -> int:
        """Half the full columns that make r/d + r/s least under the budget d m + n s."""
        m, n = self.measurements.shape
        return int(max(_FEW, min(n // 2, 0.5 * self.measurements.left / (m + np.sqrt(m * n)))))

    def _next(self, count: int) -> list[int]:
        """Columns to look at; last those that were explained when there were fewer directions."""
        if not self._waiting:
            k = self.basis.shape[1]
            self._waiting.extend(j for j, then in self._explained.items() if then < k)
        return [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]

    def _can_look(self, columns) -> bool:
        """Whether the budget has an entry for all the others too."""
        k = self.basis.shape[1]
        return self.measurements.left >= len(columns) * (k + _SPARE) + len(self._waiting) or not self.full

    def _unexplained(self, columns: list[int]) -> list[int]:
        """Look at the columns in a few rows; those that the space does not explain."""
        m, k = self.basis.shape
        mostly_gaps = self._n_with_gaps > _SPARE + len(self.full) - self._n_with_gaps
        cannot_fit = k == 0 or mostly_gaps or k + _SPARE >= m
        self._look(columns, None if cannot_fit else self.rows, _SPARE if cannot_fit else k + _SPARE)
        columns = [j for j in columns if not self.measurements.dead[j]]
        if cannot_fit or not columns:
            return columns
        return self._first_explained(columns[0]) if self.rows is None else self._without_explained(columns)

    def _first_explained(self, j: int) -> list[int]:
        """Whether it is the first column that is explained; then it is made sure of in rows that determine it."""
        k = self.basis.shape[1]
        fits, zero = self._fit([j])
        if fits[0] and zero[0] and j not in self._postponed and len(self._postponed) < len(self._waiting):
            self._postponed.add(j)  # Zeros show nothing, so other columns come first.
            self._waiting.append(j)
            return []
        if not fits[0] or zero[0]:
            return [j]
        rows = select_rows(self.basis, k)
        self._look([j], rows, k + _SPARE + _SURE)
        off = self._without_explained([j])
        self.rows = rows if not off else None
        return off

    def _without_explained(self, columns: list[int]) -> list[int]:
        fits, _ = self._fit(columns)
        self._explained |= {j: self.basis.shape[1] for j, fit in zip(columns, fits) if fit}
        return [j for j, fit in zip(columns, fits) if not fit]

    def _look(self, columns, rows, count: int) -> None:
        """Read the given rows of columns, and random ones until `count` are known."""
        first = () if rows is None else [rows] * len(columns)
        self.measurements.read_rows(columns, [count] * len(columns), self.rng, first)

    def _fit(self, columns) -> tuple[np.ndarray, np.ndarray]:
        """Whether columns fit the space to rounding, and whether all that is known of them is zero."""
        o, k = self.measurements.take(columns), self.basis.shape[1]
        ones = np.ones(k)
        space = ColumnSpace(self.basis.astype(o.values.dtype), ones, None, ones, np.nan)
        Z, status = solve_columns(space, o)
        owner = o.entry_columns
        fitted = np.einsum("kr,kr->k", self.basis[o.rows], Z.T[owner].astype(np.float64))
        off, size = np.zeros(len(columns)), np.zeros(len(columns))
        with np.errstate(invalid="ignore"):
            np.maximum.at(off, owner, np.abs(o.values - fitted))
        np.maximum.at(size, owner, np.abs(o.values.astype(np.float64)))
        # Rows that do not determine the column are no objection: select_rows will find better ones.
        open_still = (status == Status.UNDETERMINED) & (self.rows is None)
        checked = (status == Status.SOLVED) & (o.n_observed > k)
        return (checked & (off <= ROUNDING[o.values.dtype] * size)) | open_still, size == 0

    def _read_in_full(self, j: int) -> bool:
        """Read the rest of a column if the budget leaves an entry for every other one."""
        m = self.basis.shape[0]
        known = self.measurements.column(j)[0]
        rest = np.setdiff1d(np.arange(m), known)
        if self.full and self.measurements.left - rest.size < len(self._waiting):
            return False
        self.measurements.read(rest, np.full(rest.size, j))
        rows, values = self.measurements.column(j)
        if rows.size < (1 - _MOST_GAPS) * m:
            return True
        self.full.append(j)
        if rows.size == m:
            self._append(values[np.argsort(rows)].astype(np.float64))
        else:
            self._n_with_gaps += 1
        return True

    @one_blas_thread()
    def _append(self, x) -> None:
        """The direction that a column adds, if it adds one."""
        size = np.abs(x).max()
        if size == 0:
            return
        x = x / size
        length = np.linalg.norm(x)
        for _ in range(2):  # One pass leaves rounding errors, two are enough.
            x = x - self.basis @ (self.basis.T @ x)
        if np.linalg.norm(x) <= 0.1 * ROUNDING[self.measurements.dtype] * length:
            return
        self.basis = np.column_stack([self.basis, x / np.linalg.norm(x)])
        k = self.basis.shape[1]
        if self.rows is not None:
            self.rows = grow_rows(self.basis, self.rows, k)
