"""Predictions of a solution, center + basis @ coefficients, with every observed entry as it was."""

from __future__ import annotations

import numpy as np

from .._support.numbers import BLOCK_CELLS
from .._support.threads import in_threads, one_blas_thread
from .solve import Status

_PIECE_CELLS = 1_000_000  # Cells that a thread predicts at a time: 8 MB.
# Columns of every matrix product; with as many in each, further columns change no byte of the others.
_PRODUCT_COLUMNS = 64


def filled_columns(solution, which) -> np.ndarray:
    """Filled columns with these numbers, shape (m, k); of a whole table they need not fit into memory at once."""
    m = solution.shape[0]
    result = np.empty((m, which.size), solution.dtype, order="F")
    step = max(1, BLOCK_CELLS // m)
    for lo in range(0, which.size, step):
        target, some = result[:, lo : lo + step], which[lo : lo + step]
        for at, here, block in solution.by_blocks(some):
            if isinstance(at, slice):
                _fill(block, target[:, at], here)
            else:
                part = np.empty((m, at.size), target.dtype, order="F")
                _fill(block, part, here)
                target[:, at] = part
    return result


@one_blas_thread()
def _fill(solution, target, which) -> None:
    """Write the filled columns of a solution in memory into an array of shape (m, k)."""
    U, Z, c = solution.basis, solution.coefficients, solution.center
    width = min(_PRODUCT_COLUMNS, max(1, _PIECE_CELLS // solution.shape[0]))
    step = width * max(1, _PIECE_CELLS // solution.shape[0] // width)

    def predict(first: int) -> None:
        for lo in range(first, min(first + step, which.size), width):
            some = which[lo : lo + width]
            z = np.zeros((solution.rank, width), Z.dtype)
            z[:, : some.size] = Z[:, some]
            with np.errstate(over="ignore", invalid="ignore"):
                target[:, lo : lo + width] = (U @ z)[:, : some.size]
                if c is not None:
                    target[:, lo : lo + width] += c[:, None]

    in_threads(predict, range(0, which.size, step))
    keep_in_bounds(solution.bounds, target)
    target[:, ~is_filled(solution.status[which])] = np.nan
    known = solution.observations.take(which)
    target[known.rows, known.entry_columns] = known.values


def entries_at(solution, rows, columns) -> np.ndarray:
    """Entries at (rows[k], columns[k]), numbers of one shape."""
    result = np.empty(rows.shape, solution.dtype)
    flat, rows, columns = result.reshape(-1), rows.ravel(), columns.ravel()
    step = max(1, BLOCK_CELLS // max(1, solution.rank))
    for lo in range(0, flat.size, step):
        i, j, piece = rows[lo : lo + step], columns[lo : lo + step], flat[lo : lo + step]
        for at, here, block in solution.by_blocks(j):
            piece[at] = _entries(block, i[at], here)
    return result


def _entries(solution, rows, columns) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.einsum("kr,kr->k", solution.basis[rows], solution.coefficients.T[columns])
        if solution.center is not None:
            result += solution.center[rows]
    keep_in_bounds(solution.bounds, result)
    result[~is_filled(solution.status[columns])] = np.nan
    at = solution.observations.locate(rows, columns)
    result[at >= 0] = solution.observations.values[at[at >= 0]]
    return result


def sizes_of_terms(solution, rows, columns) -> np.ndarray:
    """``|center| + |basis| @ |coefficients|`` at (rows[k], columns[k]); 0 of observed entries."""
    result = np.empty(rows.size)
    for at, here, block in solution.by_blocks(columns):
        i = rows[at]
        with np.errstate(over="ignore"):
            U, Z = block.basis[i].astype(np.float64), block.coefficients.T[here].astype(np.float64)
            sizes = np.einsum("kr,kr->k", np.abs(U), np.abs(Z))
            if block.center is not None:
                sizes += np.abs(block.center[i].astype(np.float64))
        sizes[block.observations.locate(i, here) >= 0] = 0.0
        result[at] = sizes
    return result


def keep_in_bounds(bounds: tuple[float, float] | None, predictions) -> None:
    """Clip an array in place to the bounds, in its own type."""
    if bounds is not None:
        limits = np.finfo(predictions.dtype)
        low, high = (np.clip(b, limits.min, limits.max) if np.isfinite(b) else b for b in bounds)
        np.clip(predictions, low, high, out=predictions)


def is_filled(status) -> np.ndarray:
    """Whether columns with these codes have predictions."""
    return np.isin(status, [s for s in Status if s.is_filled])


def filled_mask(solution) -> np.ndarray:
    """True where an entry was not observed and has been filled, shape (m, n)."""
    o = solution.observations
    mask = np.empty(solution.shape, bool)
    mask[:] = is_filled(solution.status)
    mask[o.rows, o.entry_columns] = False
    if solution.center is not None:
        mask[np.isnan(solution.center)] = False  # A row without any entry stays NaN.
    return mask
