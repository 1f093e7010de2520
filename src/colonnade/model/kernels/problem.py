"""What the kernels of `column_kernels.py` and `stable.py` are given, and the codes that they answer with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .abreast import CHUNK
from .emitter import BATCH, LANES

# The codes of solve.Status, and one for a column that is left to `stable.py`.
SOLVED, PRIOR, NO_OBSERVATION, TOO_FEW, UNDETERMINED, OVERFLOW, PRIOR_ONLY = 1, 2, 3, 4, 5, 6, 7
UNSETTLED = -1

HARD, USABLE, EASY = 0, 1, 2  # What a factor is good for: nothing, an answer to be corrected, an answer.


class Problem(NamedTuple):
    """The columns ``members[bounds[g] : bounds[g + 1]]`` are group g, with the same rows and weights.

    `center` (m) and `weights` (nnz) may be empty. Row j of Z (n x r) and ``status[j]`` receive the answer of column j;
    Z holds NaN where the status says that there is none. A direction whose pivot has a root below `floor` is absent.
    """

    U: np.ndarray
    center: np.ndarray
    indptr: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    penalty: np.ndarray
    members: np.ndarray
    bounds: np.ndarray
    floor: float
    n_penalised: int  # directions with a penalty > 0
    Z: np.ndarray
    status: np.ndarray


class Factors(NamedTuple):
    """A batch of matrices and their factors, with what is known of every lane."""

    L: np.ndarray
    inverse: np.ndarray
    size: np.ndarray  # of the system
    group: np.ndarray
    top: np.ndarray  # largest weight, the unit of the weights
    state: np.ndarray
    sides: np.ndarray  # right-hand sides: of every lane the first, of every lane the second, ...


class Buffers(NamedTuple):
    X: np.ndarray
    Y: np.ndarray
    step: np.ndarray
    found: np.ndarray
    a: np.ndarray
    z: np.ndarray
    spread_L: np.ndarray  # the factor of one lane in all lanes
    spread_inverse: np.ndarray
    abreast: np.ndarray  # rows of `LANES` columns, see `abreast.py`
    firsts: np.ndarray  # the first entry of every lane
    counts: np.ndarray  # and how many
    roots: np.ndarray  # of the weights of one entry of every lane
    nothing: np.ndarray  # a row of zeros


def workspace(p: Problem, start: int, stop: int) -> tuple[Factors, Buffers]:
    """Memory for `solve_groups`, which allocates none."""
    r, some = p.U.shape[1], p.members[p.bounds[start] : p.bounds[stop]]
    entries = int((p.indptr[some + 1] - p.indptr[some]).max(initial=0))
    columns = int(np.diff(p.bounds[start : stop + 1]).max(initial=0))
    height, even = -(-(r + columns) // LANES) * LANES, -(-r // 2) * 2
    # An odd number of cache lines, so that one column of the buffer does not fall into few sets of the cache.
    stride = 8 * (-(-height // 8) | 1)
    triangle = height * (height + 1) // 2 * BATCH
    whole = np.zeros((3, BATCH), np.int64)
    f = Factors(
        np.zeros(triangle),
        np.zeros(even * BATCH),
        *whole[:2],
        np.zeros(BATCH),
        whole[2],
        np.zeros((columns, even, BATCH)),
    )
    spread = even * (even + 1) // 2 * BATCH if columns > 1 else 0
    return f, Buffers(
        np.zeros((max(entries, r), stride)),
        *np.zeros((2, even, BATCH)),
        np.zeros((3, BATCH)),
        *np.zeros((2, r)),
        np.zeros(spread),
        np.zeros(even * BATCH),
        np.zeros((CHUNK, r + 1, LANES)),
        *np.zeros((2, LANES), np.int64),
        np.zeros(LANES),
        np.zeros(r, p.U.dtype),
    )
