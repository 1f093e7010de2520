"""The attributes of a solution as attributes of a `Completion`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.observations import Observations
from ..model.column_space import ColumnSpace
from ..model.selection import Learned
from ..model.solution import AnySolution


class _Shown:
    """An attribute of the solution under the same name; of a result on the disk it is read when it is needed."""

    def __set_name__(self, owner, name: str) -> None:
        self.name = name

    def __get__(self, completion, owner=None):
        return self if completion is None else getattr(completion.solution, self.name)


def _shown() -> Any:
    return _Shown()


class SolutionView:
    """What has a `solution` shows these attributes of it; `Solution` says what they mean."""

    solution: AnySolution

    observations: Observations = _shown()
    used: Observations = _shown()
    unused: np.ndarray | None = _shown()
    space: ColumnSpace = _shown()
    coefficients: np.ndarray = _shown()
    status: np.ndarray = _shown()
    noise_variance: float = _shown()
    bounds: tuple[float, float] | None = _shown()
    learned: Learned | None = _shown()
    by_columns: bool = _shown()
    optimism: float = _shown()
    moved_rows: bool = _shown()
    has_variances: bool = _shown()
    shape: tuple[int, int] = _shown()
    dtype: np.dtype = _shown()
    rank: int = _shown()
    basis: np.ndarray = _shown()
    center: np.ndarray | None = _shown()
    n_observed: np.ndarray = _shown()
    row_names: np.ndarray | None = _shown()
    column_names: np.ndarray | None = _shown()
    n_blocks: int = _shown()
    starts: np.ndarray = _shown()
