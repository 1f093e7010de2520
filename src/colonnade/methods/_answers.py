"""A completion from any two factors: directions put in order, a status for every column."""

from __future__ import annotations

import numpy as np

from ..completion import Completion
from ..data.observations import Observations
from ..model.column_space import ColumnSpace
from ..model.solution import Solution
from ..model.solve import Status, name_overflows


def completion_of(observations: Observations, U, Z, choices: dict, *, unit=1.0, known=None) -> Completion:
    """The completion U Z * unit, whose directions are turned to be its left singular vectors.

    Parameters
    ----------
    observations : Observations
        Kept as they are.
    U : array of shape (m, t)
        Orthonormal.
    Z : float64 array of shape (t, n)
        NaN in the columns that the data do not determine.
    choices : dict of str
    unit : float or array of shape (n,)
        In which Z is measured.
    known : bool array of shape (n,), optional
        Which columns the data determine. Default: those without NaN.
    """
    n, dtype = observations.shape[1], observations.values.dtype
    known, largest = ~np.isnan(Z).any(axis=0) if known is None else known, np.max(unit)
    turn, sizes, _ = np.linalg.svd((Z * (unit / largest))[:, known], full_matrices=False)
    turn = turn * _signs(U @ turn)
    with np.errstate(over="ignore", invalid="ignore"):
        coefficients = ((turn.T @ Z) * unit).T.astype(dtype, order="C")  # The coefficients of a column lie together.
        values = sizes * largest
        variances = values**2 / max(1, known.sum())
    coefficients[~known] = np.nan
    status = np.full(n, Status.SOLVED, np.int8)
    status[~known] = Status.UNDETERMINED
    status[~known & (observations.n_observed == 0)] = Status.NO_OBSERVATION
    status[observations.full_columns] = Status.FULL
    space = ColumnSpace(np.ascontiguousarray(U @ turn, dtype=dtype), values, None, variances, float("nan"))
    solution = Solution(observations, space, coefficients.T, status, by_columns=False)
    return without_overflows(Completion(solution, choices))


def without_overflows(completion: Completion) -> Completion:
    """The same, with NaN and a status in the columns whose predictions leave the range of their type."""
    name_overflows(completion.basis, completion.center, completion.coefficients.T, completion.status)
    return completion


def _signs(U) -> np.ndarray:
    """-1 for every vector whose entry of largest size is negative, else 1."""
    top = U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])] if U.size else np.zeros(U.shape[1])
    return np.where(top < 0, -1.0, 1.0)
