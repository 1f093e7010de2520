"""CUR+: some columns, some rows, and entries from everywhere that connect the two."""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse

from .._support.arguments import as_count, as_generator
from .._support.numbers import BLOCK_CELLS, unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.observations import Observations
from ..data.sources import as_source
from ..model.column_space import fit_column_space
from ._answers import completion_of
from ._reading import distinct, observations_of, places_of_columns, places_of_rows, read, union

_MOST_DIRECTIONS = 100  # Directions: the normal matrix has the fourth power of them as entries, here 800 MB.


@one_blas_thread()
def cur_plus(source, *, rank: int, n_columns: int, n_rows: int, n_entries: int, random_state=None) -> Completion:
    """Complete a matrix as M^ = U Z V', U from d1 columns, V from d2 rows, and Z from entries O drawn everywhere.

    U holds the top r left singular vectors of the columns, V the top r right ones of the rows, and Z minimises the sum
    over O of (M_ij - u_i' Z v_j)^2. Columns, rows and entries are drawn uniformly and without replacement.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    rank : int
        r, at most d1, d2 and 100: Z has r^2 unknowns, whose normal matrix is formed.
    n_columns, n_rows : int
        d1 and d2.
    n_entries : int
        The size of O, over the whole matrix; r^2 at least, and more by a logarithm to be safe. Those that lie in the
        columns and rows are not read again.
    random_state : None, int or numpy Generator

    Returns
    -------
    Completion
        Observed entries are kept as observed; ``basis @ coefficients`` is U Z V'. If O does not determine Z, all
        columns that are not full are left NaN.

    Notes
    -----
    The normal matrix is the sum over the columns of (v_j v_j') x (U_O'U_O), a product of two thin matrices, so that it
    costs n r^4 and not |O| r^4 operations. The answer is corrected once by the residual of the entries themselves.

    References
    ----------
    M. Xu, R. Jin, Z.-H. Zhou: CUR algorithm for partially observed matrices. International Conference on Machine
    Learning (2015).
    """
    source = as_source(source)
    m, n = source.shape
    d1 = as_count("n_columns", n_columns, 1, n, ", the columns of the matrix")
    d2 = as_count("n_rows", n_rows, 1, m, ", the rows of the matrix")
    most = min(d1, d2, _MOST_DIRECTIONS)
    r = as_count("rank", rank, 1, most, f", the least of n_columns, n_rows and {_MOST_DIRECTIONS}")
    k = as_count("n_entries", n_entries, 1, m * n, ", the entries of the matrix")
    rng = as_generator(random_state)
    full, rows, drawn = distinct(rng, n, d1), distinct(rng, m, d2), distinct(rng, m * n, k)
    across = places_of_rows(m, n, rows)
    places = union(places_of_columns(m, full), across, drawn)
    o = observations_of((m, n), places, read(source, places), full)
    U = fit_column_space(o.full_matrix(), rank=r).basis.astype(np.float64)
    B = o.values[np.searchsorted(places, across)].reshape(n, d2)
    V = fit_column_space(B, rank=r).basis.astype(np.float64)
    unit = unit_of(o.values)
    everywhere = observations_of((m, n), drawn, o.values[np.searchsorted(places, drawn)] / np.float64(unit))
    choices = {"method": "CUR+", "rank": f"{U.shape[1]} by {V.shape[1]} directions"}
    return completion_of(o, U, _middle(U, V, everywhere) @ V.T, choices, unit=unit)


def _middle(U, V, o: Observations) -> np.ndarray:
    """Z of shape (r1, r2) that minimises the sum over o of (M_ij - u_i' Z v_j)^2; NaN if more than one does."""
    shape = U.shape[1], V.shape[1]
    if 0 in shape:
        return np.zeros(shape)
    H = _normal_matrix(U, V, o)
    scales = 1 / np.sqrt(np.maximum(np.diag(H), np.finfo(float).tiny))
    H *= scales
    H *= scales[:, None]
    size = np.abs(H).sum(axis=0).max()
    factor, failed = linalg.lapack.dpotrf(H.T, lower=1, overwrite_a=1)
    if failed or linalg.lapack.dpocon(factor, size, uplo="L")[0] <= scales.size * np.finfo(float).eps:
        return np.full(shape, np.nan)
    Z = np.zeros(shape)
    for _ in range(2):
        residual = o.values - _fitted(U @ Z, V, o)
        right = U.T @ (sparse.csc_array((residual, o.rows, o.indptr), shape=o.shape) @ V)
        step = linalg.cho_solve((factor, True), scales * right.T.ravel()) * scales
        Z += step.reshape(shape[::-1]).T
    return Z


def _normal_matrix(U, V, o: Observations) -> np.ndarray:
    """Normal matrix of vec(Z), the stacked columns: sum over j of (v_j v_j') x (U_O'U_O), O the rows of column j."""
    (r1, r2), n = (U.shape[1], V.shape[1]), o.shape[1]
    total = np.zeros((r2 * r2, r1 * r1))
    step = max(1, BLOCK_CELLS // max(r1, r2) ** 2)
    for lo in range(0, n, step):
        v = V[lo : lo + step]
        grams = np.empty((v.shape[0], r1, r1))
        for k in range(v.shape[0]):
            B = U[o.rows[o.indptr[lo + k] : o.indptr[lo + k + 1]]]
            np.matmul(B.T, B, out=grams[k])
        total += np.einsum("jb,jc->bcj", v, v).reshape(r2 * r2, -1) @ grams.reshape(-1, r1 * r1)
    return total.reshape(r2, r2, r1, r1).transpose(0, 2, 1, 3).reshape(r1 * r2, r1 * r2)


def _fitted(A, V, o: Observations) -> np.ndarray:
    """The entries of A V' at the places of o."""
    columns, fitted = o.entry_columns, np.empty(o.rows.size)
    step = max(1, BLOCK_CELLS // A.shape[1])
    for lo in range(0, fitted.size, step):
        here = slice(lo, lo + step)
        fitted[here] = np.einsum("kr,kr->k", A[o.rows[here]], V[columns[here]])
    return fitted
