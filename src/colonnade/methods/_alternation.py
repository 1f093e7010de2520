"""Rows and columns solved in turn, each by the compiled kernel: the sweep of alternating least squares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..data.observations import Observations
from ..model.column_space import ColumnSpace
from ..model.solve import solve_columns
from ._low_rank import Entries, Factors, distance


class Alternation:
    """The entries by columns and by rows, in some unit and less a center."""

    def __init__(self, o: Observations, unit: float, center=None):
        self.entries, none = Entries(o, unit, center), np.zeros(0, np.int64)
        self.by_columns = replace(o, values=self.entries.values, full_columns=none, full_scales=None)
        self.by_rows = replace(self.by_columns.transposed(), full_columns=none)

    def sweep(self, X: Factors, penalty: float) -> Factors:
        """The rows given V, then the columns given U."""
        V, d, U = _solved(Factors(X.V, X.d, X.U), self.by_rows, penalty)
        return _solved(Factors(U, d, V), self.by_columns, penalty)

    def run(self, X: Factors, penalty: float, tol: float, max_sweeps: int, progress) -> tuple[Factors, int, float]:
        """The end of the sweeps, how many there were, and how far the last one moved X, of its norm."""
        off, done = 0.0, 0
        while X.rank and done < max_sweeps:
            old, X, done = X, self.sweep(X, penalty), done + 1
            off = distance(X, old.U * old.d, old.V) / X.norm if X.norm else 0.0
            progress(done, max_sweeps)
            if off <= tol:
                break
        progress(max_sweeps, max_sweeps)
        return X, done, off


def _solved(X: Factors, o: Observations, penalty: float) -> Factors:
    """(U_O' W U_O + penalty / d) z = U_O' W x_O for every column, and the decomposition of U Z.

    A column that its entries do not determine counts as zero; directions that have died out are dropped.
    """
    alive = X.d > 1e-12 * X.d.max(initial=0)
    U, d = np.ascontiguousarray(X.U[:, alive]), X.d[alive]
    empty = np.zeros(d.size)
    with np.errstate(over="ignore"):
        penalties = np.minimum(penalty / d, np.finfo(np.float64).max)
    Z, _ = solve_columns(ColumnSpace(U, empty, None, empty, np.nan), o, penalty=penalties)
    P, d, Vt = np.linalg.svd(np.nan_to_num(Z), full_matrices=False)
    return Factors(U @ P, d, Vt.T)
