"""The Nystrom-type CUR decomposition: some columns C, some rows R, and the pseudo-inverse of where they cross."""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_count, as_generator
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.observations import Observations
from ..data.sources import as_source
from ..model.column_space import ColumnSpace
from ..model.solution import Solution
from ..model.solve import Status
from ._answers import without_overflows
from ._reading import observations_of, places_of_columns, places_of_rows, read, union


@one_blas_thread()
def nystrom(source, *, n_columns: int, n_rows: int, rank: int | None = None, random_state=None) -> Completion:
    """Complete a matrix as M^ = C W+ R from c columns C, k rows R and their crossing W.

    Columns and rows are drawn uniformly and without replacement. This is the baseline of Wan, Yi, Zhang (2018).
    With W+ in full it is the recovery of Algorithm 1 at rank c when all columns are seen in the same k rows.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    n_columns, n_rows : int
        c and k.
    rank : int, optional
        r, at most c and k: W is cut to its top r singular triples before it is inverted. None inverts W in full.
    random_state : None, int or numpy Generator

    Returns
    -------
    Completion
        Observed entries are kept as observed; ``basis @ coefficients`` is C W+ R.

    Notes
    -----
    W+ is never formed. With the SVD W = P S Q', the answer is (C Q S^-1) (P'R), whose left factor is made orthonormal.
    Singular values below ``rcond = max(c, k) * eps`` times the largest count as zero, eps that of the data's type.

    References
    ----------
    P. Drineas, M. W. Mahoney, S. Muthukrishnan: Relative-error CUR matrix decompositions. SIAM Journal on Matrix
    Analysis and Applications 30 (2008). There rows and columns are drawn by leverage; here uniformly.
    """
    source = as_source(source)
    if rank is not None:
        rank = as_count("rank", rank, 1, min(source.shape))
    observations = observe_cross(source, n_columns=n_columns, n_rows=n_rows, random_state=random_state)
    return complete_cross(observations, rank=rank)


def observe_cross(source, *, n_columns: int, n_rows: int, random_state=None) -> Observations:
    """Draw c columns to be read in full and k rows that are read in every other column; parameters as of `nystrom`."""
    source = as_source(source)
    m, n = source.shape
    c = as_count("n_columns", n_columns, 1, n, ", the columns of the matrix")
    k = as_count("n_rows", n_rows, 1, m, ", the rows of the matrix")
    rng = as_generator(random_state)
    full = np.sort(rng.choice(n, size=c, replace=False))
    omega = np.sort(rng.choice(m, size=k, replace=False))
    places = union(places_of_columns(m, full), places_of_rows(m, n, omega))
    return observations_of((m, n), places, read(source, places), full)


@one_blas_thread()
def complete_cross(observations: Observations, *, rank: int | None = None) -> Completion:
    """C W+ R from full columns and shared rows, as `observe_cross` draws them; `rank` as of `nystrom`."""
    o, n, full, omega = observations, observations.shape[1], observations.full_columns, _shared_rows(observations)
    if rank is not None:
        rank = as_count("rank", rank, 1, min(full.size, omega.size), ", the smaller side of the crossing W")
    C = o.full_matrix().astype(np.float64)
    unit = unit_of(C)
    C /= unit
    W = C[omega]
    P, S, Qt = np.linalg.svd(W, full_matrices=False)
    floor = S[0] * max(W.shape) * np.finfo(o.values.dtype).eps
    t = min(int((floor < S).sum()), rank or S.size)
    # C W+ R = (C Q S^-1) (P'R) = U T (P'R), and U is turned so that its directions come in the order of C's energy
    U, T = np.linalg.qr(C @ (Qt[:t].T / S[:t]))
    turn, sizes, _ = np.linalg.svd(U.T @ C, full_matrices=False)
    U, T = U @ turn[:, :t], turn[:, :t].T @ T
    partial, Z = o.partial_columns, np.empty((n, t), o.values.dtype)
    R = o.take(partial).values.reshape(partial.size, omega.size) / unit
    with np.errstate(over="ignore", invalid="ignore"):
        Z[full] = (T @ (P[:, :t].T @ W)).T * unit
        Z[partial] = (R @ P[:, :t]) @ T.T * unit
    # Infinite terms may cancel to NaN; `without_overflows` finds infinite ones.
    Z[~np.isfinite(Z).all(axis=1)] = np.inf
    status = np.full(n, Status.SOLVED, np.int8)
    status[full] = Status.FULL
    space = _space_of(U, sizes[:t], C, unit, o.values.dtype)
    choices = {"method": "Nystrom", "rank": f"{t} directions"}
    return without_overflows(Completion(Solution(o, space, Z.T, status, by_columns=False), choices))


def _space_of(U, sizes, C, unit: float, dtype) -> ColumnSpace:
    """The space, of C and sizes in some unit."""
    (m, c), t = C.shape, sizes.size
    freedom = (m - t) * (c - t)
    noise = unit * np.linalg.norm(C - U @ (U.T @ C)) / np.sqrt(freedom) if freedom > 0 else np.nan
    with np.errstate(over="ignore"):
        sizes = sizes * unit
        variances = sizes**2 / c
    return ColumnSpace(np.ascontiguousarray(U, dtype=dtype), sizes, None, variances, float(noise))


def _shared_rows(o: Observations) -> np.ndarray:
    """The rows seen in every partial column; all rows if no column is partial."""
    partial = o.partial_columns
    j = partial[0] if partial.size else 0
    return o.rows[o.indptr[j] : o.indptr[j + 1]].astype(np.int64)
