"""Where sweeps begin: factors of the table filled by offsets, of its full columns, or of a model and its residuals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._support.threads import one_blas_thread
from .factor_model import FactorModel
from .packed import as_int64, unpacked_all
from .table import ScaledTable

FIRST_VARIANCE = 1e-3  # Variance of the loadings of all directions together, because a start is not quite sure of them.
LEAST_NOISE = 1e-8  # Variance in units of a row's spread: with less the small systems are lost in rounding.
_SIGNAL_PART = 4  # The first quarter of the full columns' directions is left out of the first noise variance.


def first_factors(table: ScaledTable, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """U of shape (m, q), Z of shape (n, q) and a noise variance: the table filled by column offsets, decomposed.

    The filled table is a sparse matrix plus one of rank 2, and is never formed. More full columns than directions tell
    these by themselves.
    """
    if np.count_nonzero(table.by_column.counts == table.shape[0]) > rank:
        return _factors_of_full_columns(table, rank)
    from scipy import sparse

    from .kernels import sweep_kernels

    m, n = table.shape
    e = table.by_column
    counts = e.counts
    column = e.groups()
    offset = _column_offsets(column, e.values, counts)
    rest = sparse.csc_array((e.values - offset[column], e.others, e.begins), shape=(m, n))
    level = np.asarray(rest.sum(axis=1)).ravel() / n + offset.mean()
    r = max(1, min(rank, m - 1, n - 1))
    U, Z = _decomposed(rest, offset, level, r, seed)
    U, Z = np.column_stack([U, level]), np.column_stack([Z, np.ones(n)])
    fitted = np.empty(e.values.size)
    sweep_kernels.predictions(*as_int64(e.others, column), U, Z, fitted)
    noise = float(np.mean((e.values - fitted) ** 2)) if e.values.size else 1.0
    return U, Z, max(noise, 0.05)


def _decomposed(rest, offset, level, r: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """U and Z of the r largest directions of the sparse matrix plus 1 offset' less level 1', by random projections."""
    m, n = rest.shape
    across = rest.T.tocsr()

    def times(B):
        return rest @ B + np.outer(np.ones(m), offset @ B) - np.outer(level, B.sum(axis=0))

    def transposed_times(B):
        return across @ B + np.outer(offset, B.sum(axis=0)) - np.outer(np.ones(n), level @ B)

    width = min(r + 10, m, n)
    Q = np.linalg.qr(times(np.random.default_rng(seed).standard_normal((n, width))))[0]
    for _ in range(4):
        Q = np.linalg.qr(times(np.linalg.qr(transposed_times(Q))[0]))[0]
    left, s, right = np.linalg.svd(transposed_times(Q).T, full_matrices=False)
    # In rows, the one order for which the kernels are compiled.
    return (Q @ left[:, :r]) * (s[:r] / np.sqrt(n)), np.ascontiguousarray(right[:r].T) * np.sqrt(n)


def widened(model: FactorModel, table: ScaledTable, rank: int, seed: int) -> FactorModel:
    """The model with further directions: those of its residuals, with zeros for the entries that are not seen."""
    from scipy import sparse

    from .kernels import sweep_kernels

    (m, n), e, r = table.shape, table.by_column, model.rank
    more = min(rank, m - 1, n - 1) - r
    if more <= 0:
        return model
    fitted, q = np.empty(e.values.size), r + more + 1
    sweep_kernels.predictions(*as_int64(e.others, e.groups()), model.U, model.Z, fitted)
    rest = sparse.csc_array((e.values - fitted, e.others, e.begins), shape=(m, n))
    U, Z = _decomposed(rest, np.zeros(n), np.zeros(m), more, seed)
    covariance = np.zeros((m, q, q))
    old = np.r_[:r, q - 1]
    covariance[:, old[:, None], old] = unpacked_all(model.row_covariance, r + 1)
    covariance[:, range(r, q - 1), range(r, q - 1)] = FIRST_VARIANCE / rank
    return replace(
        model,
        U=np.column_stack([model.U[:, :r], U, model.U[:, r]]),
        Z=np.column_stack([model.Z[:, :r], Z, model.Z[:, r]]),
        row_covariance=covariance[(slice(None), *np.tril_indices(q))],
    )


def _factors_of_full_columns(table: ScaledTable, rank: int) -> tuple[np.ndarray, np.ndarray, float]:
    """U, Z and a noise variance from the full columns about their row means; the other columns begin at 0."""
    (m, n), e = table.shape, table.by_column
    full = np.flatnonzero(e.counts == m)
    X = np.empty((m, full.size))
    for k, j in enumerate(full):
        X[e.others[e.begins[j] : e.begins[j + 1]], k] = e.values[e.begins[j] : e.begins[j + 1]]
    level = X.mean(axis=1)
    with one_blas_thread():
        left, s, right = np.linalg.svd(X - level[:, None], full_matrices=False)
    r = max(1, min(rank, m - 1, n - 1))
    U, Z = np.zeros((m, r + 1)), np.zeros((n, r + 1))
    U[:, :r], U[:, r] = left[:, :r] * (s[:r] / np.sqrt(full.size)), level
    Z[full, :r], Z[:, r] = right[:r].T * np.sqrt(full.size), 1.0
    rest = float((s[s.size // _SIGNAL_PART :] ** 2).sum()) / X.size
    return U, Z, max(rest, LEAST_NOISE)


def _column_offsets(column, values, counts) -> np.ndarray:
    """Means of the columns, shrunk to 0 as far as entries of a column differ.

    The variance of the offsets is the mean product of two entries of a column. Without shrinkage the start would have
    all rows rise together, and sweeps that must first turn a row around may end at a model without directions.
    """
    n = counts.size
    values = np.clip(values, -10.0, 10.0)  # Spreads: outliers must not set the offsets, nor their squares overflow.
    total, squares = np.bincount(column, values, n), float(np.sum(values**2))
    pairs = float(np.sum(counts * (counts - 1.0)))
    between = max(0.0, (float(np.sum(total**2)) - squares) / max(pairs, 1.0))
    within = max(squares / max(values.size, 1) - between, 0.0)
    return total * between / np.maximum(counts * between + within, 1e-300)
