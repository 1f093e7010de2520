"""The attributes of a solution as attributes of a `Completion`."""

from __future__ import annotations

import numpy as np

from .._support.delegation import shown_of
from ..data.observations import Observations
from ..model.column_space import ColumnSpace
from ..model.learned import Learned
from ..model.solution import AnySolution


class SolutionView:
    """What has a `solution` shows these attributes of it; `Solution` says what they mean."""

    solution: AnySolution

    observations: Observations = shown_of("solution")
    used: Observations = shown_of("solution")
    unused: np.ndarray | None = shown_of("solution")
    space: ColumnSpace = shown_of("solution")
    coefficients: np.ndarray = shown_of("solution")
    status: np.ndarray = shown_of("solution")
    noise_variance: float = shown_of("solution")
    bounds: tuple[float, float] | None = shown_of("solution")
    learned: Learned | None = shown_of("solution")
    by_columns: bool = shown_of("solution")
    optimism: float = shown_of("solution")
    moved_rows: bool = shown_of("solution")
    has_variances: bool = shown_of("solution")
    shape: tuple[int, int] = shown_of("solution")
    dtype: np.dtype = shown_of("solution")
    rank: int = shown_of("solution")
    basis: np.ndarray = shown_of("solution")
    center: np.ndarray | None = shown_of("solution")
    n_observed: np.ndarray = shown_of("solution")
    row_names: np.ndarray | None = shown_of("solution")
    column_names: np.ndarray | None = shown_of("solution")
    n_blocks: int = shown_of("solution")
    starts: np.ndarray = shown_of("solution")
