"""Columns of a table that are no part of the matrix: text, dates, Booleans, and those that the user leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from itertools import chain
from typing import Any

import numpy as np

from .._support.arguments import shown
from .._support.numbers import are_numbers, reads_as_number

_LISTED = 20  # Columns that a sentence names; more are counted.
_COMPARED = 100  # Characters of a name that are compared with an unknown one; the cost grows with their square.
# The beginning of a dtype of pandas, polars or Arrow, and what such columns hold; the first that fits counts.
_KINDS = {
    ("str", "large_str", "utf8"): "text",
    ("bool",): "Booleans",
    ("datetime", "date", "timestamp", "period"): "dates",
    ("timedelta", "duration"): "durations",
    ("time",): "times",
    ("categor", "enum", "dictionary"): "categories",
    ("complex",): "complex numbers",
    ("binary", "large_binary", "fixed_size_binary", "bytes"): "bytes",
    ("list", "large_list", "fixed_size_list", "array"): "lists",
}
_STORED = "numbers stored as text"
_NUMERIC = "float", "double", "halffloat", "int", "uint", "decimal", "null"


@dataclass(frozen=True, eq=False)
class SetAside:
    """The columns of a table that are no part of the matrix and come back unchanged.

    Attributes
    ----------
    places : tuple of int
        Their positions among all columns of the table, increasing; row names do not count.
    names, kinds : tuples of str
        What they are called, and what they hold: "text", "dates", "Booleans", "ignored" and the like.
    columns : data frame or Arrow table
        They themselves, in a frame of the library that the table came from.
    types : tuple of Arrow types
        Of a Parquet file, the types of these columns; `columns` may hold dictionaries in place of text.
    """

    places: tuple[int, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    columns: Any = None
    types: tuple = ()

    def in_words(self) -> str:
        return listed(self.names, self.kinds)

    def matrix_places(self, count: int) -> list[int]:
        """The positions of the other columns, the `count` columns of the matrix."""
        aside = set(self.places)
        return [k for k in range(count + len(aside)) if k not in aside]


def listed(names, kinds) -> str:
    """Columns in words: 'city' (text), 'when' (dates)."""
    parts = [f"{shown(name)} ({kind})" for name, kind in zip(names[:_LISTED], kinds[:_LISTED])]
    more = len(names) - len(parts)
    return ", ".join(parts) + (f" and {more:,} more" if more > 0 else "")


def choices_of(origin) -> dict[str, str]:
    """What `Completion.choices` says of data that were set aside; `origin` is that of the observations."""
    aside, array = getattr(origin, "aside", None), getattr(origin, "array", origin)
    empty = array.empty_in_words() if hasattr(array, "empty_in_words") else None
    said = {"set aside": None if aside is None else aside.in_words(), "empty places": empty}
    return {about: words for about, words in said.items() if words is not None}


def other_kind(kind, column=None) -> str | None:
    """What a column of pandas, polars or Arrow holds other than numbers, in a word; None for a column of numbers.

    Parameters
    ----------
    kind : dtype
    column : sequence, optional
        Needed of columns of Python objects. They are numbers if all of them are, None apart; nothing but None counts.
    """
    word = str(kind).lower()
    if word.startswith("object") and column is not None:
        return _kind_of_objects(column.to_numpy() if hasattr(column, "iloc") else list(column))
    if word.startswith(_NUMERIC) and not word.startswith("interval"):
        return None
    found = next((name for beginnings, name in _KINDS.items() if word.startswith(beginnings)), None)
    if found == "text" and column is not None and _are_stored_numbers(column):
        return _STORED
    return found or shown(str(kind))[1:-1]


def _kind_of_objects(cells) -> str | None:
    known = [x for x in cells if not (x is None or type(x).__name__ == "NAType" or _is_nan(x))]
    if known and all(isinstance(x, (bool, np.bool_)) for x in known):
        return "Booleans"
    if known and all(isinstance(x, date) for x in known):
        return "dates"
    if are_numbers(known):
        return None
    if not any(isinstance(x, str) for x in known):
        return "objects"
    if any(are_numbers([x]) for x in known):
        return "text and numbers"
    return _STORED if _are_stored_numbers(known) else "text"


def _are_stored_numbers(cells) -> bool:
    """Whether texts are numbers such as "1.5", None and blanks apart; codes such as 01067 are none."""
    cells = (x.as_py() if hasattr(x, "as_py") else x for x in cells)  # Arrow has scalars of its own.
    texts = (x.strip() for x in cells if isinstance(x, str) and x.strip())
    first = next(texts, None)
    return first is not None and all(
        reads_as_number(x) and not (x.startswith("0") and x.isdigit() and len(x) > 1) for x in chain((first,), texts)
    )


def _is_nan(x) -> bool:
    return isinstance(x, (float, np.floating)) and x != x


def split(labels, kinds, ignore=(), only=None) -> tuple[list[int], SetAside | None]:
    """The positions of the columns that are the matrix, and the others, None if there are none.

    Parameters
    ----------
    labels : sequence of length n
        Names of the columns, which may repeat.
    kinds : list of str or None
        What `other_kind` says of each.
    ignore : name or sequence of names
        Columns that are no part of the matrix. A name stands for all columns that are called so.
    only : name or sequence of names, optional
        The only columns of the matrix. Default: all that hold numbers.
    """
    ignored = _places_of("ignore", labels, ignore)
    wanted = None if only is None else _places_of("only", labels, only)
    twice = sorted(ignored & (wanted or set()))
    if twice:
        raise ValueError(f"column {shown(labels[twice[0]])} is named in both ignore and only; name it in one of them")
    wrong = [k for k in sorted(wanted or ()) if kinds[k] is not None]
    if wrong:
        named = listed([labels[k] for k in wrong], [kinds[k] for k in wrong])
        raise TypeError(f"only names columns that do not hold numbers: {named}; convert them, or leave them out")
    left_out = [k in ignored or (wanted is not None and k not in wanted) for k in range(len(labels))]
    words = ["ignored" if out else kind for out, kind in zip(left_out, kinds)]
    aside = [k for k, word in enumerate(words) if word is not None]
    if len(aside) == len(labels):
        named = listed(labels, words) if len(labels) else "all are names of rows"
        raise TypeError(f"no column of numbers is left: {named}; convert columns that should be filled to numbers")
    if not aside:
        return list(range(len(labels))), None
    used = [k for k, word in enumerate(words) if word is None]
    return used, SetAside(tuple(aside), tuple(str(labels[k]) for k in aside), tuple(words[k] for k in aside))


def named_columns(given) -> list:
    """The names that `ignore` or `only` was given: one name, several, or None."""
    if given is None:
        return []
    return [given] if isinstance(given, str) or not hasattr(given, "__iter__") else list(given)


def _places_of(argument: str, labels, given) -> set[int]:
    """The positions of the columns that are named; an unknown name is refused with the nearest ones."""
    names = named_columns(given)
    if not names:
        return set()
    places: dict = {}
    for k, label in enumerate(labels):
        for key in {label, str(label)}:
            places.setdefault(key, set()).add(k)
    found: set[int] = set()
    for name in names:
        try:
            at = places.get(name) or places.get(str(name))
        except TypeError:  # A list cannot be looked up.
            raise TypeError(f"{argument} must be names of columns; got {name!r:.60}") from None
        if at is None:
            raise ValueError(f"{argument} names {shown(name)}, which is not a column; {_nearest(name, labels)}")
        found |= at
    return found


def _nearest(name, labels) -> str:
    known = {str(label)[:_COMPARED]: str(label) for label in labels}
    near = get_close_matches(str(name)[:_COMPARED], known, n=3)
    if near:
        return f"the nearest names are {', '.join(shown(known[one]) for one in near)}"
    first = list(known.values())[:5]
    return f"the columns are {', '.join(map(shown, first))}" + (", ..." if len(known) > 5 else "")
