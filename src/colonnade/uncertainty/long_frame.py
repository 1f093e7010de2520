"""Frames that are made of a completion: its entries with their intervals, and its certificates with names."""

from __future__ import annotations

import numpy as np

from .._support.numbers import BLOCK_CELLS
from ..data.frames import frame_of_columns


def long_frame(completion, level: float):
    """A frame with the columns row, column, value, low, high and kind, row after row.

    Parameters
    ----------
    completion : Completion
    level : float
        The probability with which an entry that is measured anew lies between low and high.

    Returns
    -------
    frame of m n lines
        Of the library that the data came from, else of pandas. `row` and `column` are names where there are names,
        else numbers from 0. `kind` is "observed", "filled", or "missing" where the value is NaN.
    """
    m, n = completion.shape
    value, low, high = values_and_ends(completion, level)
    kind = np.where(np.isnan(value), "missing", np.where(completion.filled_mask(), "filled", "observed"))
    lines = {
        "row": np.repeat(_labels(completion.row_names, m), n),
        "column": np.tile(_labels(completion.column_names, n), m),
        "value": value.ravel(),
        "low": low.ravel(),
        "high": high.ravel(),
        "kind": kind.ravel().astype(object),
    }
    return frame_of_columns(lines, completion.observations)


def values_and_ends(completion, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The filled matrix and the ends of the intervals of its entries, each of shape (m, n)."""
    m, n = completion.shape
    value, low, high = (np.empty((m, n), completion.dtype) for _ in range(3))
    rows, step = np.arange(m)[:, None], max(1, BLOCK_CELLS // m)
    for first in range(0, n, step):
        columns = np.arange(first, min(first + step, n))
        at = slice(first, first + columns.size)
        value[:, at] = completion.columns(columns)
        low[:, at], high[:, at] = completion.interval(rows, columns, level)
    return value, low, high


def certificate_frame(completion):
    """The certificates as a frame of the library that the data came from, else of pandas; first the column's name.

    Without names `name` is the number of the column.
    """
    table = completion.certificates(as_frame=False)
    lines = {"name": _labels(completion.column_names, table.size)}
    for field in table.dtype.names[1:]:
        values = table[field]
        lines[field] = values.astype(object) if values.dtype.kind == "U" else values
    return frame_of_columns(lines, completion.observations)


def _labels(names, count: int) -> np.ndarray:
    return np.arange(count) if names is None else names
