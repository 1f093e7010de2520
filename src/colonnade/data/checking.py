"""Checks of the entries that observations are made from, and the order in which they are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._support.arguments import as_count, as_indices, names_of, refuse_mask
from .._support.numbers import BLOCK_CELLS, numbers_of

if TYPE_CHECKING:
    from .observations import Observations


def matrix_and_mask(M):
    """Numbers of a dense matrix and where they are known; the input is not touched."""
    values, mask = numbers_of("the data", M)
    if values.ndim != 2 or 0 in values.shape:
        got = "None" if M is None else f"shape {values.shape}"
        raise ValueError(f"the data must have two dimensions, rows and columns, none of them 0; got {got}")
    seen = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(values.shape, bool)
    return values, seen if mask is None else seen & ~mask


def refuse_other_kinds(dtype, name) -> None:
    if dtype.kind not in "fiub":
        raise TypeError(f"{name} must be real numbers; got dtype {dtype}: convert them, for example astype(float)")


def checked_weights(weights, seen) -> np.ndarray:
    refuse_mask("weights", weights)
    weights = np.asarray(weights)
    refuse_other_kinds(weights.dtype, "weights")
    if weights.shape != seen.shape:
        raise ValueError(f"weights must have the shape of the data, {seen.shape}; got {weights.shape}")
    weights = weights.astype(np.float64)
    good = (weights > 0) & (weights < np.inf) | ~seen
    if not good.all():
        at = np.unravel_index(int(np.argmin(good)), good.shape)
        place = ", ".join(str(int(k)) for k in at)
        raise ValueError(
            f"weights of observed entries must be positive and finite; weights[{place}] is {weights[at]}:"
            " leave an entry out (NaN) instead of giving it no weight"
        )
    return weights


def place_of(row, column, names) -> str:
    """Row and column of an entry for a message, by number and by name."""
    numbered = zip(("row", "column"), (row, column), names, strict=True)
    found = ((side, k, ", ".join(names_of(given, k))) for side, k, given in numbered)
    return ", ".join(f"{side} {k}" + (f" ({name})" if name else "") for side, k, name in found)


def place_in(indptr, rows, at: int) -> tuple[int, int]:
    """Row and column of the entry at a place in `values`."""
    return int(rows[at]), int(np.searchsorted(indptr, at, side="right")) - 1


def refuse_infinite(values, place_at, names=(None, None)) -> None:
    """Refuse infinite values; `place_at` takes the number of a value and returns its row and column."""
    bad = np.isinf(values)
    if bad.any():
        at = int(np.argmax(bad))
        row, column = place_at(at)
        raise ValueError(
            f"the entry at {place_of(row, column, names)} is {values.flat[at]} ({int(bad.sum()):,} infinite in all);"
            " use NaN for what is not known"
        )


def order_by_columns(rows, columns, m, n) -> np.ndarray:
    """The order by columns, then by rows; it is stable: equal places stay in the order given."""
    if m * n < 2**62:  # One key sorts in less than half the time.
        return np.argsort(columns * m + rows, kind="stable")
    return np.lexsort((rows, columns))


def _given_twice(count: int) -> str:
    return "1 entry is given twice," if count == 1 else f"{count:,} entries are given twice, the first"


def merge_duplicates(rows, columns, values, weights, first, duplicates, names=(None, None)):
    """Entries in order with one for each place; `first` tells where a place is named for the first time."""
    starts = np.flatnonzero(first)
    if duplicates == "error":
        second = int(np.flatnonzero(~first)[0])
        raise ValueError(
            f"{_given_twice(first.size - starts.size)} at"
            f" {place_of(rows[second], columns[second], names)}: choose duplicates='mean' or 'last' (--duplicates)"
        )
    if duplicates == "last":
        keep = np.append(starts[1:], first.size) - 1
        return rows[keep], columns[keep], values[keep], weights[keep] if weights is not None else None
    w = weights if weights is not None else np.ones(values.size)
    with np.errstate(over="ignore"):
        total = np.add.reduceat(w, starts)
    if np.isinf(total).any():
        raise ValueError(
            "the weights of an entry that is given twice add up to infinity: divide all weights by a number"
        )
    # Divided before it is summed: two values near the largest number have a mean, though not a sum.
    mean = np.add.reduceat(values * (w / np.repeat(total, np.diff(starts, append=first.size))), starts)
    return rows[starts], columns[starts], mean.astype(values.dtype), total if weights is not None else None


def check_arrays(o: Observations) -> None:
    """Refuse arrays that the compiled loops could not trust."""
    m, n, nnz = as_count("shape[0]", o.shape[0], 1), as_count("shape[1]", o.shape[1], 0), np.size(o.values)
    parts = {"indptr": (o.indptr, "i", n + 1), "rows": (o.rows, "i", nnz), "values": (o.values, "f", nnz)}
    if o.weights is not None:
        parts["weights"] = o.weights, "f", nnz
    for name, (array, kind, size) in parts.items():
        is_usual = isinstance(array, np.ndarray) and array.dtype.kind == kind and array.dtype.isnative
        if not is_usual or array.shape != (size,) or (kind == "f" and array.itemsize not in (4, 8)):
            word = {"i": "integers", "f": "floats of 4 or 8 bytes"}[kind]
            raise TypeError(
                f"{name} must be an array of {size:,} {word}; use Observations.from_triplets for other input"
            )
    if o.indptr[0] != 0 or o.indptr[-1] != nnz or (np.diff(o.indptr) < 0).any():
        raise ValueError(f"indptr must rise from 0 to the number of values, {nnz:,}")
    if nnz and not (o.rows.min() >= 0 and o.rows.max() < m):
        raise IndexError(f"rows must lie in 0..{m - 1:,}; they reach from {o.rows.min()} to {o.rows.max()}")
    for lo in range(0, nnz - 1, BLOCK_CELLS):  # Rows rise within a column, so that an entry can be found.
        falls = np.flatnonzero(np.diff(o.rows[lo : lo + BLOCK_CELLS + 1]) <= 0) + lo + 1
        if not (o.indptr[np.searchsorted(o.indptr, falls)] == falls).all():
            raise ValueError("rows must rise within each column; use Observations.from_triplets for other input")
    for name, names, size in (("row_names", o.row_names, m), ("column_names", o.column_names, n)):
        if names is not None and (not isinstance(names, np.ndarray) or names.dtype != object or names.shape != (size,)):
            raise TypeError(f"{name} must be an array of {size:,} str objects; the from_... functions take any list")
    if o.weights is not None and not ((o.weights > 0) & (o.weights < np.inf)).all():
        raise ValueError("weights must be positive and finite: leave out entries that are not to count")
    full = as_indices("full_columns", o.full_columns, n)
    if not (o.n_observed[full] == m).all():
        raise ValueError("full_columns must be observed in every row")
