"""Stage 3, the solving: the coefficients of every column from its few entries."""

from __future__ import annotations

from enum import IntEnum
from itertools import pairwise

import numpy as np

from .._support.arguments import as_count
from .._support.threads import default_threads, in_threads, one_blas_thread
from ..data.observations import Observations
from .column_space import ColumnSpace

_GROUP = 64  # Right-hand sides that share one factorisation at a time.
_SMALL = 1e6  # Multiplications that are done before a second thread has begun.
_PIECE = 2e9  # Multiplications, about 1 s, after which a thread reports and can be stopped.


class Status(IntEnum):
    """What became of a column; `message` says it in words and ends in a remedy."""

    FULL = 0
    SOLVED = 1
    PRIOR = 2
    NO_OBSERVATION = 3
    TOO_FEW = 4
    UNDETERMINED = 5
    OVERFLOW = 6
    PRIOR_ONLY = 7

    @property
    def message(self) -> str:
        return _MESSAGES[self]

    @property
    def is_filled(self) -> bool:
        return self in (Status.FULL, Status.SOLVED, Status.PRIOR, Status.PRIOR_ONLY)


_MESSAGES = {
    Status.FULL: "is complete and returned unchanged; nothing to do",
    Status.SOLVED: "is filled from its known values; see certificates() for how well they determine it",
    Status.PRIOR: "has fewer known values than the rank, so the prior decides the rest; measure more values of it",
    Status.NO_OBSERVATION: "has no known value and stays NaN; measure at least as many values as the rank",
    Status.TOO_FEW: "has fewer known values than the rank and stays NaN; measure more values or lower the rank",
    Status.UNDETERMINED: "has known values that do not determine it and stays NaN; measure others or lower the rank",
    Status.PRIOR_ONLY: "has no known value and is filled by the mean of the complete columns; measure entries of it",
    Status.OVERFLOW: "exceeds the range of floating-point numbers and stays NaN; rescale the data",
}


@one_blas_thread()
def solve_columns(
    space: ColumnSpace,
    observations: Observations,
    *,
    penalty=None,
    typical: float | None = None,
    n_threads: int | None = None,
    progress=None,
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of all columns in the basis, by least squares on their observed rows.

    Parameters
    ----------
    space : ColumnSpace
        With basis U of shape (m, r).
    observations : Observations
        Of a matrix with m rows.
    penalty : array of shape (r,), optional
        The diagonal of Lambda, one non-negative number per direction. Default: zero.
    typical : float, optional
        How many entries a partial column has. Default: the median of these columns. It decides how directions are
        scaled, and so the last bits; columns that are solved in several calls should get the same number.
    n_threads : int, optional
        Default: as many as there are processors. The answer does not depend on it.
    progress : function, optional
        Called as ``progress(done, total)`` now and then.

    Returns
    -------
    coefficients : array of shape (r, n)
        NaN in the columns that the data do not determine.
    status : int8 array of shape (n,)
        The `Status` of every column.
    """
    if space.basis.shape[0] != observations.shape[0]:
        raise ValueError(
            f"the basis and the observations must have as many rows; got {space.basis.shape[0]:,}"
            f" and {observations.shape[0]:,}"
        )
    if space.center is not None and space.center.shape != (observations.shape[0],):
        raise ValueError(f"the center must have {observations.shape[0]:,} numbers; got shape {space.center.shape}")
    if n_threads is not None:
        n_threads = as_count("n_threads", n_threads, 1)
    U, r, n = np.ascontiguousarray(space.basis), space.rank, observations.shape[1]
    if U.dtype not in (np.float32, np.float64):
        raise TypeError(f"the basis must be of float32 or float64; got {U.dtype}")
    penalty = np.zeros(r) if penalty is None else np.asarray(penalty, dtype=np.float64)
    if penalty.shape != (r,) or not ((penalty >= 0) & np.isfinite(penalty)).all():
        raise ValueError(f"penalty must be {r} finite numbers >= 0, one per direction; got {penalty}")
    Z = np.zeros((n, r), U.dtype)  # The coefficients of a column lie together.
    status = np.full(n, Status.NO_OBSERVATION, np.int8)
    partial = observations.partial_columns
    if r == 0:
        _judge_zero_space(space.center, observations, status)
    elif partial.size:
        typical = float(np.median(observations.n_observed[partial])) if typical is None else typical
        scale = np.maximum(_scales_of(penalty, typical / observations.shape[0]), np.finfo(U.dtype).tiny).astype(U.dtype)
        V, scaled = (U, penalty) if (scale == 1).all() else (U * scale, penalty * scale.astype(np.float64) ** 2)
        _solve_partial(V, space.center, observations, scaled, partial, (Z, status), n_threads, progress)
        Z *= scale
    alone = status == Status.PRIOR_ONLY
    if space.mean is not None and space.center is None and alone.any():
        with np.errstate(over="ignore"):  # `name_overflows` finds it
            Z[alone] = _projected(U, space.mean)
    name_overflows(U, space.center, Z, status)
    _project_full(U, space.center, observations, penalty, Z, n_threads)
    status[observations.full_columns] = Status.FULL
    return Z.T, status


def _scales_of(penalty, share: float) -> np.ndarray:
    """Scales of the directions, so that penalties of many sizes do not look like a bad condition.

    `share` of the rows is observed.
    """
    return np.sqrt(share / (share + penalty)) if penalty.all() and share else np.ones(penalty.size)


def name_overflows(U, center, Z, status) -> None:
    """Coefficients, shape (n, r), that do not fit into their type, or whose predictions might not."""
    limit = float(np.finfo(U.dtype).max)
    is_small = center is None or np.abs(center).max() < 0.9 * limit
    if Z.size == 0 or (is_small and np.nanmax(np.abs(Z), initial=0) < 1e-3 * limit / U.shape[1]):
        return
    sizes = np.abs(Z.astype(np.float64)).max(axis=1)
    reach = np.abs(U).sum(axis=1).max() * (sizes / limit) + (0 if center is None else np.abs(center / limit).max())
    overflown = (reach >= 1) & ~np.isin(status, (Status.NO_OBSERVATION, Status.FULL))
    Z[overflown], status[overflown] = np.nan, Status.OVERFLOW


def _judge_zero_space(center, o: Observations, status) -> None:
    """The full columns are zero: a column that is zero too (less the center) is explained, another is not."""
    with np.errstate(over="ignore"):
        x = o.values if center is None else o.values - center[o.rows]
    seen = o.n_observed > 0
    status[seen] = Status.SOLVED
    status[o.entry_columns[x != 0]] = Status.UNDETERMINED


def _solve_partial(U, center, observations, penalty, partial, written, n_threads, progress) -> None:
    """Write coefficients and status of the partial columns into `written`."""
    from .kernels.column_kernels import solve_groups  # numba is imported only when there is something to solve.
    from .kernels.problem import UNSETTLED, Problem, workspace

    o, (Z, status) = observations, written
    # One type, because the solver takes seconds to be compiled for another.
    weights = np.zeros(0) if o.weights is None else o.weights.astype(np.float64, copy=False)
    center = np.zeros(0, U.dtype) if center is None else center
    members, bounds = _groups_of_equal_rows(o, weights, partial)
    n_penalised = int((penalty > 0).sum())
    floor = 0.0 if n_penalised == penalty.size else 8 * penalty.size * float(np.finfo(U.dtype).eps)
    entries = o.indptr, o.rows, o.values, weights
    problem = Problem(U, center, *entries, penalty, members, bounds, floor, n_penalised, Z, status)

    def work(piece):
        solve_groups(problem, *workspace(problem, *piece), *piece)
        if (status[members[bounds[piece[0]] : bounds[piece[1]]]] == UNSETTLED).any():
            from .kernels.stable import solve_stably  # Compiled only where a column needs it.

            solve_stably(problem, *piece)

    n_groups, n_threads = bounds.size - 1, n_threads or default_threads()
    flops = o.rows.size * U.shape[1] ** 2
    n_pieces = min(n_groups, max(4 * n_threads, int(flops / _PIECE))) if flops > _SMALL else 1
    edges = np.linspace(0, n_groups, n_pieces + 1).astype(int)
    in_threads(work, pairwise(edges.tolist()), n_threads, progress)


def _groups_of_equal_rows(o: Observations, weights, partial) -> tuple[np.ndarray, np.ndarray]:
    """The partial columns, those with the same rows and weights side by side, and where each group begins."""
    from .kernels import column_kernels

    bits = weights.view(np.uint64)
    alone = partial, np.arange(partial.size + 1)
    for most in (8, o.rows.size):  # The first few rows mostly show that no two columns are alike.
        hashes = column_kernels.row_set_hashes(o.indptr, o.rows, bits, partial, most)
        in_order = np.sort(hashes)
        if not (in_order[1:] == in_order[:-1]).any():
            return alone
    order = np.argsort(hashes, kind="stable")
    begins = np.flatnonzero(np.concatenate(([True], np.diff(hashes[order]) != 0)))
    sizes = np.diff(begins, append=partial.size)
    # Groups in the order of their first column, cut into pieces of at most _GROUP columns.
    first = np.empty(partial.size, np.int64)
    first[order] = np.repeat(order[begins], sizes)
    sequence = np.argsort(first, kind="stable")
    run_begins = np.flatnonzero(np.diff(first[sequence], prepend=-1))
    place = np.arange(partial.size) - np.repeat(run_begins, np.diff(run_begins, append=partial.size))
    members, bounds = partial[sequence], np.append(np.flatnonzero(place % _GROUP == 0), partial.size)
    return (members, bounds) if column_kernels.same_row_sets(o.indptr, o.rows, weights, members, bounds) else alone


def _project_full(U, center, o: Observations, penalty, Z, n_threads) -> None:
    """A full column has U_O = U, orthonormal: z = (I + Lambda)^-1 U'(x - c)."""
    if o.full_columns.size == 0 or U.shape[1] == 0:
        return
    from .kernels import column_kernels

    center = np.zeros(0, U.dtype) if center is None else center

    def work(columns):
        # One by one, not by a matrix product, whose rounding would depend on which columns are together.
        z = np.zeros((columns.size, U.shape[1]))
        column_kernels.project_each(U, center, o.values, o.indptr[columns], z)
        with np.errstate(over="ignore", invalid="ignore"):
            Z[columns] = z / (1 + penalty)

    n_pieces = min(o.full_columns.size, 4 * (n_threads or default_threads()))
    in_threads(work, np.array_split(o.full_columns, n_pieces), n_threads)


def _projected(U, x) -> np.ndarray:
    """U'x, summed row by row: the bytes of a matrix product depend on where its arrays lie in memory."""
    from .kernels import column_kernels

    z = np.zeros((1, U.shape[1]))
    column_kernels.project_each(U, np.zeros(0, U.dtype), np.ascontiguousarray(x), np.zeros(1, np.int64), z)
    return z[0]


def _is_singular(B, floor) -> bool:
    """Whether the columns of B, brought to norm 1, depend on each other, or B vanishes in some direction."""
    norms = np.linalg.norm(B, axis=0)
    if not (norms > floor).all() or not norms.all():
        return True
    smallest = np.linalg.svd(B / norms, compute_uv=False)[-1]
    return smallest <= max(B.shape) * np.finfo(float).eps or np.linalg.svd(B, compute_uv=False)[-1] <= floor


def solve_columns_in_numpy(
    space: ColumnSpace, observations: Observations, *, penalty=None
) -> tuple[np.ndarray, np.ndarray]:
    """The same as `solve_columns`, column by column and without compiled code: the reference."""
    U, r, o = space.basis.astype(np.float64), space.rank, observations
    penalty = np.zeros(r) if penalty is None else np.asarray(penalty, dtype=np.float64)
    Z = np.full((r, o.shape[1]), np.nan)
    status = np.full(o.shape[1], Status.SOLVED, np.int8)
    floor = 8 * r * np.finfo(space.basis.dtype).eps
    full = set(o.full_columns.tolist())
    for j in range(o.shape[1]):
        at = slice(o.indptr[j], o.indptr[j + 1])
        omega, s = o.rows[at], o.indptr[j + 1] - o.indptr[j]
        w = np.ones(s) if o.weights is None or j in full else o.weights[at].astype(np.float64)
        x = o.values[at].astype(np.float64) - (0 if space.center is None else space.center[omega])
        if s == 0 and not (r and penalty.min() > 0):
            status[j] = Status.NO_OBSERVATION
            continue
        if 0 < s < r and not penalty.any():
            status[j] = Status.TOO_FEW
            continue
        # Least squares with sqrt(Lambda) as further rows, so that nothing is squared.
        B = np.vstack([np.sqrt(w)[:, None] * U[omega], np.diag(np.sqrt(penalty))])
        if r and _is_singular(B, 0.0 if penalty.all() else floor * np.sqrt(w.max(initial=0))):
            status[j] = Status.UNDETERMINED
            continue
        norms = np.linalg.norm(B, axis=0)
        Z[:, j] = np.linalg.lstsq(B / norms, np.concatenate([np.sqrt(w) * x, np.zeros(r)]), rcond=None)[0] / norms
        if s < r:
            status[j] = Status.PRIOR if s else Status.PRIOR_ONLY
        if s == 0 and space.mean is not None and space.center is None:
            Z[:, j] = U.T @ space.mean
    status[o.full_columns] = Status.FULL
    return Z, status
