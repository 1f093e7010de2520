"""Checks of arguments at the public door: each message names the value and what is allowed."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Callable
from datetime import date
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from .printable import printable as printable

MIDNIGHT = " 00:00:00"  # Ends the text of a date that has no time of day.


def as_count(name: str, value, low: int, high: int | None = None, why: str = "") -> int:
    """A whole number in ``low..high``; bool, float and NaN are refused."""
    allowed = f"a whole number from {low:,}" + (f" to {high:,}" if high is not None else " on") + why
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be {allowed}; got {value!r}")
    count = int(value)
    if count < low or (high is not None and count > high):
        raise ValueError(f"{name} must be {allowed}; got {value}")
    return count


def as_real(name: str, value, low: float = -math.inf, high: float = math.inf, ends: str = "[]", why: str = "") -> float:
    """A finite number between low and high; the brackets of `ends` say whether they are included."""
    allowed = f"a finite number in {ends[0]}{low:g}, {high:g}{ends[1]}"
    if math.isinf(high):
        at_least = f" from {low:g} on" if ends[0] == "[" else f" above {low:g}"
        allowed = "a finite number" + ("" if math.isinf(low) else at_least)
    allowed += why
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}; got {value!r}")
    number = float(value)
    above = number >= low if ends[0] == "[" else number > low
    below = number <= high if ends[1] == "]" else number < high
    if not (above and below and math.isfinite(number)):
        raise ValueError(f"{name} must be {allowed}; got {value!r}")
    return number


def as_delta(value) -> float:
    """A probability of failure."""
    return as_real("delta", value, 0, 1, "()")


def as_sizes(shape, rank) -> tuple[int, int, int]:
    """m, n and r of a shape and a rank of 1 to min(m, n)."""
    m, n = as_shape(shape)
    return m, n, as_count("rank", rank, 1, min(m, n))


def as_shape(shape) -> tuple[int, int]:
    """Two positive whole numbers."""
    try:
        m, n = shape
    except (TypeError, ValueError):
        raise TypeError(f"shape must be a pair (n_rows, n_columns); got {shape!r}") from None
    return as_count("shape[0]", m, 1), as_count("shape[1]", n, 1)


def as_array(name: str, value, n_dims: int) -> np.ndarray:
    """A complete array of finite real numbers, not empty, as float64."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries; a complete array is needed")
    a = np.asarray(value)
    if a.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be an array of real numbers; got dtype {a.dtype}")
    if a.ndim != n_dims or a.size == 0:
        raise ValueError(f"{name} must have {n_dims} dimensions, none of them empty; got shape {a.shape}")
    if not np.isfinite(a).all():
        raise ValueError(
            f"{name} must be finite; it has {int((~np.isfinite(a)).sum()):,} entries that are NaN or infinite"
        )
    return a.astype(np.float64)


def as_orthonormal(name: str, value) -> np.ndarray:
    """A basis of shape (m, r) as float64, with orthonormal columns up to rounding."""
    U = as_array(name, value, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs(U.T @ U - np.eye(U.shape[1])).max()
    allowed = min(100 * U.shape[0] * eps_of(value), 0.01)
    if not error <= allowed:
        raise ValueError(
            f"{name} must be orthonormal up to {allowed:.2g}; U'U differs from the identity by {error:.2g}:"
            " orthonormalise it with numpy.linalg.qr"
        )
    return U


def eps_of(value) -> float:
    """The rounding unit of an array's numbers."""
    dtype = np.asarray(value).dtype
    return float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)


def as_probabilities(value, n_columns: int) -> np.ndarray:
    """A probability per column, all positive; None means uniform."""
    if value is None:
        return np.full(n_columns, 1.0 / n_columns)
    p = np.asarray(value)
    if p.dtype.kind not in "fiu" or p.shape != (n_columns,):
        raise ValueError(
            f"probabilities must be {n_columns:,} real numbers, one per column; got {p.dtype} of shape {p.shape}"
        )
    p = p.astype(np.float64)
    if not (p > 0).all():  # NaN is refused too.
        j = int(np.flatnonzero(~(p > 0))[0])
        raise ValueError(f"probabilities must be positive; probabilities[{j}] is {p[j]}")
    if not abs(p.sum() - 1) <= min(max(n_columns, 8) * max(eps_of(value), 1e-12), 1e-3):
        raise ValueError(f"probabilities must sum to 1; they sum to {p.sum()!r}: divide them by their sum")
    return p / p.sum()


def as_generator(random_state) -> np.random.Generator:
    """A generator from None, an int, a SeedSequence, a Generator or a RandomState; never the global state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.Generator(random_state._bit_generator)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state must be None, a whole number >= 0 or a Generator; got {random_state!r}"
        ) from None


def as_seed(random_state) -> int | None:
    """A whole number that several purposes can share: a Generator is asked for one number, once; None stays None."""
    if random_state is None:
        return None
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(as_generator(random_state).integers(2**31))


def as_choice(name: str, value, allowed: tuple):
    if isinstance(value, np.bool_):
        value = bool(value)
    if not any(value is a or (isinstance(a, str) and isinstance(value, str) and value == a) for a in allowed):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")
    return value


def as_indices(name: str, value, length: int) -> np.ndarray:
    """Whole numbers in ``0..length-1`` as int64, of any shape; NaN, 3.7 and negative ones are refused."""
    refuse_mask(name, value)
    index = np.asarray(value)
    if index.size == 0:
        return index.astype(np.int64)
    if index.dtype.kind == "f":
        whole = np.isfinite(index) & (index == np.floor(index))
        if not whole.all():
            at = np.unravel_index(int(np.argmin(whole)), index.shape)
            raise ValueError(f"{name} must be whole numbers; {_element(name, at)} is {index[at]}")
    elif index.dtype.kind not in "iu":
        hints = {"b": ": of a mask take np.flatnonzero", "O": ": take np.arange" if isinstance(value, slice) else ""}
        got = index.dtype if index.ndim or index.dtype.kind != "O" else type(value).__name__
        raise TypeError(f"{name} must be whole numbers; got {got}{hints.get(index.dtype.kind, '')}")
    inside = (index >= 0) & (index < length)
    if not inside.all():
        at = np.unravel_index(int(np.argmin(inside)), index.shape)
        count = int(inside.size - inside.sum())
        raise IndexError(
            f"{name} must lie in 0..{length - 1:,}; {_element(name, at)} is {index[at]}"
            + (f" ({count:,} such)" if count > 1 else "")
            + (", and nothing is counted from the end" if index[at] < 0 else "")
        )
    return index.astype(np.int64)


def as_places(name: str, value, names, length: int) -> np.ndarray:
    """`as_indices`, or where the names given as `value` stand among `names`, which may be None.

    Dates go by their text, as the labels of data frames do.
    """
    given = np.asarray(value, dtype=object if isinstance(value, (list, tuple)) else None)
    if given.dtype.kind == "M":
        given = given.astype("datetime64[us]")  # numpy makes integers of nanoseconds, not dates.
    if given.dtype.kind in "OM":
        given = np.vectorize(_dates_as_text, otypes=[object])(given)
    text = [isinstance(one, str) for one in given.flat] if given.dtype.kind in "OU" else [False]
    if not any(text):
        try:
            return as_indices(name, value, length)
        except IndexError as error:
            label = next((str(one) for one in given.flat if names is not None and str(one) in names), None)
            hint = "" if label is None else f"; numbers are places from 0, and {label} is a name: write '{label}'"
            raise IndexError(f"{error}{hint}") from None
    if not all(text):
        raise TypeError(
            f"{name} must be all numbers or all names; got {shown(given.flat[text.index(False)])} beside names"
        )
    if names is None:
        raise TypeError(f"{name} must be whole numbers, because the data have no names; got {shown(given.flat[0])}")
    places = dict(zip(names, range(length)))
    twice = Counter(names) if len(places) < length else {}
    asked = [_day_among(one, places) for one in map(str, given.flat)]
    for one, full in zip(given.flat, asked):
        found = twice.get(full, 1) if full in places else 0
        if found != 1:
            there = ", ".join(shown(other) for other in names[:3]) + (", ..." if length > 3 else "")
            called = f"{found:,} are called" if found else "none is called"
            raise ValueError(f"{name} must be a number from 0 or one of the names {there}; {called} {shown(one)}")
    return np.array([places[full] for full in asked], np.int64).reshape(given.shape)


def _day_among(name: str, places) -> str:
    """A name, with the time of a day's beginning or without it as the other names have it."""
    other = name.removesuffix(MIDNIGHT) if name.endswith(MIDNIGHT) else name + MIDNIGHT
    return name if name in places or other not in places else other


def _dates_as_text(one):
    one = one.astype("datetime64[us]").item() if isinstance(one, np.datetime64) else one
    return str(one) if isinstance(one, date) else one


def _element(name: str, at) -> str:
    return f"{name}[{', '.join(str(int(k)) for k in at)}]" if len(at) else name


def as_names(name: str, value, length: int) -> np.ndarray | None:
    """Names as an array of str objects, shape (length,); None stays None."""
    if value is None:
        return None
    names = np.empty(length, object)
    listed = value.tolist() if hasattr(value, "tolist") else list(value)
    if len(listed) != length:
        raise ValueError(f"{name} must be {length:,} names; got {len(listed):,}")
    names[:] = listed
    wrong = next((k for k, one in enumerate(listed) if not isinstance(one, str)), None)
    if wrong is not None:
        raise TypeError(f"{name} must be text; {name}[{wrong}] is {listed[wrong]!r:.60}")
    return names


def shown(name, width: int = 40) -> str:
    """A name as it may stand in a message: quoted, shortened, nothing in it that a terminal would obey."""
    text = str(name)
    return repr(text) if len(text) <= width else repr(text[: width - 3] + "...")


class FileLines(NamedTuple):
    """Names, or None, with a function that says on which line of a file each stands, or None if it cannot."""

    names: Any
    line_of: Callable[[int], int | None]

    def in_words(self, k: int) -> list[str]:
        """Name and line, as far as they are known."""
        line = self.line_of(int(k))
        return [*names_of(self.names, k), *([] if line is None else [f"line {line:,}"])]


def names_of(names, k: int) -> list[str]:
    """The name of row or column k in a list, with its line if it is from a file; empty if it has none."""
    if isinstance(names, FileLines):
        return names.in_words(k)
    return [] if names is None else [shown(names[k])]


def named(names, k: int):
    """Row or column k for a message: its name if there are names, else its number; and its line in a file."""
    if isinstance(names, FileLines):
        found = [*([str(int(k))] if names.names is None else []), *names.in_words(k)]
        return " ".join([found[0], *(f"({line})" for line in found[1:])])
    return int(k) if names is None else shown(names[k])


def refuse_mask(name: str, value) -> None:
    """A mask that would be lost must not be ignored."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} has masked entries, which have no meaning here; fill or drop them")


NAMED = 3  # Rows, columns or names in a sentence; more are counted.
LISTED = 8  # Names in a list of those to choose from.
OR_AUTO = ", or 'auto'"  # Said of a setting that may be left to the data.


def is_auto(value) -> bool:
    return isinstance(value, str) and value == "auto"


def as_progress(value):
    """A function of (done, total), or None. `value` takes (stage, done, total) or (done, total); True is a bar."""
    if value is None or value is False:
        return None
    report = as_stages(value)
    return None if report is silent else partial(report, "filling")


def as_stages(value):
    """A function of (stage, done, total); `value` takes these or (done, total), True is a bar, None is silence."""
    if value is True:
        from .progress import progress_bar

        value = progress_bar()
    if value is None or value is False:
        return silent
    if not callable(value):
        raise TypeError(f"progress must be a function of (stage, done, total) or (done, total), or True; got {value!r}")
    return value if _takes_stage(value) else lambda stage, done, total: value(done, total)


def silent(stage: str, done, total) -> None:
    """Progress that nobody asked for."""


def _takes_stage(function) -> bool:
    """Whether a function takes three arguments; one that does not say how many gets two."""
    try:
        given = signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    required = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(required) == 3
