"""Real numbers out of arrays of any kind: what is masked, None or NA is missing, and what is no number is refused."""

from __future__ import annotations

import numbers
from decimal import Decimal

import numpy as np

from .arguments import shown

EXACT = 2**53  # Up to this size every whole number is a float64.
BLOCK_CELLS = 4_000_000  # Cells that are read, drawn or filled at a time: 32 MB. No answer depends on it.
CACHE_CELLS = 80_000  # Cells that a thread works on at a time: 640 kB, which stay in the second-level cache.
HUGE = 1e100  # Ratios from here on are not told apart; squares of larger numbers may overflow.


def numbers_of(name: str, data) -> tuple[np.ndarray, np.ndarray | None]:
    """An array of floats, integers or Booleans, and its mask if it has one; the input is not touched.

    Python objects may be numbers, None or pandas' NA; the last two become NaN.
    """
    if isinstance(data, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in data):
        data = np.ma.array(data)
    mask = np.ma.getmaskarray(data) if isinstance(data, np.ma.MaskedArray) else None
    values = array_of(name, data)
    if values.dtype.kind in "OUS":  # A list with one string makes strings of all.
        values = np.asarray(data, dtype=object)
    if values.dtype.kind == "O":
        values = _numbers_of_objects(name, values if mask is None else np.where(mask, np.array(None), values))
    elif values.dtype.kind not in "fiub":
        raise TypeError(_not_numbers(name, range(values.shape[-1] if values.ndim else 1), values.dtype))
    refuse_rounded(data)
    return values, mask


def refuse_rounded(data, first_column: int = 0) -> None:
    """Refuse a table with a whole number that float64 would change; its columns have numbers from `first_column` on."""
    values = before_rounding(data)
    at = first_rounded(values)
    if at is not None:
        row, column = np.unravel_index(at, values.shape) if values.ndim == 2 else (at, 0)
        where = f"the entry at row {row}, column {column + first_column}"
        raise ValueError(rounded_words(where, values.reshape(-1)[at]))


def unit_of(values, axis=None):
    """A power of two near the largest of the numbers: to divide by it rounds nothing, and no square overflows.

    With an axis, one for every row or column.
    """
    largest = np.abs(values).max(axis=axis, initial=0)
    return np.where(largest > 0, np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000)), 1.0)[()]


def before_rounding(data) -> np.ndarray:
    """The data as an array in which whole numbers are still whole; 0 stands for what is masked."""
    values = np.asarray(np.ma.filled(data, 0) if isinstance(data, np.ma.MaskedArray) else data)
    # The list may hold whole numbers beside NaN.
    was_list = isinstance(data, (list, tuple)) and values.dtype.kind == "f"
    return np.asarray(data, dtype=object) if was_list and (np.abs(values) >= EXACT).any() else values


def first_rounded(values) -> int | None:
    """Where the first whole number stands that float64 would change, counted by rows; None if there is none."""
    values = np.asarray(values)
    if values.dtype.kind == "O":
        return next((k for k, x in enumerate(values.flat) if _is_rounded(x)), None)
    if values.dtype.kind not in "iu" or values.itemsize < 8:
        return None
    at = np.flatnonzero((values > EXACT) | (values < -EXACT))
    large = values.reshape(-1)[at]
    back = large.astype(np.float64)
    rounded = back >= (2.0**63 if values.dtype.kind == "i" else 2.0**64)  # These are out of the range of integers.
    rounded[~rounded] = back[~rounded].astype(values.dtype) != large[~rounded]
    return int(at[np.argmax(rounded)]) if rounded.any() else None


def _is_rounded(x) -> bool:
    """Whether a Python object is a whole number that float64 would change."""
    if isinstance(x, Decimal):
        whole = x.is_finite() and abs(x) > EXACT and x == x.to_integral_value()
    else:
        whole = isinstance(x, numbers.Integral) and abs(int(x)) > EXACT
    try:
        return whole and int(float(x)) != int(x)
    except OverflowError:  # It is infinite as float64, which is refused as such.
        return False


def rounded_words(where: str, value) -> str:
    """What to say of a whole number that float64 would change."""
    return (
        f"{where} is {value}, which floating point would change to {int(float(value))}: whole numbers beyond 2^53 are"
        " not exact; subtract a number from all values, divide them, or leave this one out"
    )


def array_of(name: str, data) -> np.ndarray:
    """`np.asarray`, with a sentence of ours for a ragged list."""
    try:
        return np.asarray(data)
    except ValueError:
        raise ValueError(f"{name} must be a table: its rows have different lengths") from None


def _not_numbers(name: str, columns, kind, example: str = "") -> str:
    """What to say of columns that hold something else, Python objects of some type or a dtype of numpy."""
    some = ", ".join(str(j) for j in columns[:5]) + (", ..." if len(columns) > 5 else "")
    hint = ", and a string such as '1.5' is not a number" if isinstance(kind, str) else ""
    where, it = (f"column {some} holds", "it") if len(columns) == 1 else (f"columns {some} hold", "them")
    return f"{name} must be real numbers{hint}; {where} {kind}{example}: convert or drop {it}"


def are_numbers(objects) -> bool:
    """Whether Python objects are all numbers, None or NA."""
    return all(_is_missing(x) or _is_number(x) for x in objects)


def odd_one(objects) -> int:
    """Where the first stands that is no number; the first that does not even read as one, if there is such."""
    odd = [i for i, x in enumerate(objects) if not are_numbers([x])]
    return next((i for i in odd if not (isinstance(objects[i], str) and reads_as_number(objects[i]))), odd[0])


def reads_as_number(x) -> bool:
    """Whether a number, or a text, is one that is finite."""
    try:
        return bool(np.isfinite(float(x)))
    except ValueError:
        return False


def floats_of(objects) -> np.ndarray:
    """float64 of Python objects that are all numbers, None or NA; NaN for the last two."""
    flat = [np.nan if _is_missing(x) else x for x in objects.ravel()]
    try:
        return np.array(flat, dtype=np.float64).reshape(objects.shape)
    except OverflowError:
        raise ValueError("a whole number is too large for floating point: rescale the data") from None


def _numbers_of_objects(name, values) -> np.ndarray:
    flat = values.reshape(-1, values.shape[-1] if values.ndim > 1 else 1)
    wrong = [j for j in range(flat.shape[1]) if not are_numbers(flat[:, j])]
    if wrong:
        first = flat[:, wrong[0]]
        row = odd_one(first)
        example = f" (in row {row} of column {wrong[0]}: {shown(first[row])})"
        raise TypeError(_not_numbers(name, wrong, type(first[row]).__name__, example))
    return floats_of(values)


def _is_missing(x) -> bool:
    return x is None or type(x).__name__ == "NAType" or (isinstance(x, Decimal) and x.is_nan())


def _is_number(x) -> bool:
    return isinstance(x, (numbers.Real, Decimal, np.bool_))
