"""Stage 0, the source: where entries of M can be asked for, and how many were."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._support.arguments import as_indices, as_shape, refuse_mask
from .._support.numbers import first_rounded, rounded_words


class Source:
    """A matrix that is read by columns and by entries, and counts what was read.

    Parameters
    ----------
    data : array of shape (m, n), memory map, or function
        A function is called as ``data(rows, columns)`` with two int64 arrays of one length and returns as many numbers.
    shape : (int, int), optional
        Needed for a function.
    dtype : dtype, optional
        Type of the numbers that a function returns. Default: float64.

    Attributes
    ----------
    entries_read : int
        How many entries have been asked for so far.
    """

    def __init__(self, data, shape: tuple[int, int] | None = None, dtype=None):
        self._function: Callable | None = data if callable(data) and not hasattr(data, "shape") else None
        if self._function is not None:
            if shape is None:
                raise TypeError("a source made from a function needs shape=(n_rows, n_columns)")
            self.shape = as_shape(shape)
            self.dtype = np.dtype(np.float64 if dtype is None else dtype)
            if self.dtype not in (np.float32, np.float64):
                raise TypeError(f"the dtype of a source must be float32 or float64; got {self.dtype}")
        else:
            if shape is not None or dtype is not None:
                raise TypeError("shape and dtype are for a source made from a function; an array has its own")
            refuse_mask("a source", data)
            if not isinstance(data, (np.ndarray, list, tuple)) and not hasattr(data, "__array__"):
                raise TypeError(
                    f"a source must be an array or a function of rows and columns; got {type(data).__name__}"
                )
            self._array = data if hasattr(data, "shape") and hasattr(data, "dtype") else np.asarray(data)
            if len(self._array.shape) != 2 or 0 in self._array.shape:
                raise ValueError(f"a source must have rows and columns; its shape is {tuple(self._array.shape)}")
            if self._array.dtype.kind not in "fiub":
                raise TypeError(f"a source must hold real numbers; its dtype is {self._array.dtype}")
            m, n = self._array.shape
            self.shape = int(m), int(n)
            self.dtype = real_dtype(self._array.dtype)
        self.entries_read = 0

    def columns(self, which) -> np.ndarray:
        """Whole columns, shape (m, k) for k indices, in Fortran order."""
        which = as_indices("columns", which, self.shape[1])
        m = self.shape[0]
        result = np.empty((m, which.size), self.dtype, order="F")
        for k, j in enumerate(which):
            if self._function is not None:
                result[:, k] = self._call(np.arange(m), np.full(m, j))
            else:
                column = self._array[:, j]
                _refuse_rounded(column, np.arange(m), np.full(m, j))
                result[:, k] = column
        self.entries_read += result.size
        _refuse_gaps(result, np.arange(m)[:, None], which[None, :])
        return result

    def entries(self, rows, columns, *, allow_gaps: bool = False) -> np.ndarray:
        """Single entries, ``M[rows[k], columns[k]]``; those that are not finite are refused, or NaN if allowed."""
        rows, columns = as_indices("rows", rows, self.shape[0]), as_indices("columns", columns, self.shape[1])
        if self._function is not None:
            result = self._call(rows, columns)
        else:
            result = self._array[rows, columns]
            _refuse_rounded(result, rows, columns)
            result = np.asarray(result, dtype=self.dtype)
        self.entries_read += result.size
        if allow_gaps:
            return np.where(np.isfinite(result), result, result.dtype.type(np.nan))
        _refuse_gaps(result, rows, columns)
        return result

    def _call(self, rows, columns) -> np.ndarray:
        assert self._function is not None  # Only sources made from a function come here.
        result = self._function(rows, columns)
        refuse_mask("what the source function returned", result)
        result = np.asarray(result)
        if result.shape != rows.shape or result.dtype.kind not in "fiub":
            raise ValueError(
                f"the source function was asked for {rows.size:,} entries and returned {result.dtype} of shape"
                f" {result.shape}; it must return an array of as many real numbers"
            )
        _refuse_rounded(result, rows, columns)
        with np.errstate(over="ignore"):
            return result.astype(self.dtype, copy=False)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<Source {m:,} x {n:,} of {self.dtype}, {self.entries_read:,} entries read>"


def as_source(data) -> Source:
    """`data` itself if it is a Source, otherwise a Source of it."""
    return data if isinstance(data, Source) else Source(data)


def real_dtype(dtype) -> np.dtype:
    """float32 stays float32; all else is worked in float64."""
    return np.dtype(np.float32) if dtype.kind == "f" and dtype.itemsize == 4 else np.dtype(np.float64)


def _refuse_rounded(values, rows, columns) -> None:
    at = first_rounded(values)
    if at is not None:
        where = f"the entry at row {rows.flat[at]}, column {columns.flat[at]}"
        raise ValueError(rounded_words(where, np.asarray(values).flat[at]))


def _refuse_gaps(values, rows, columns) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        at = np.unravel_index(int(np.argmax(bad)), bad.shape)
        row, column = np.broadcast_to(rows, bad.shape)[at], np.broadcast_to(columns, bad.shape)[at]
        raise ValueError(
            f"the source gave {values[at]} at row {row}, column {column} ({int(bad.sum()):,} such);"
            " a source must know every entry that it is asked for: use Observations.from_dense for data with gaps"
        )
