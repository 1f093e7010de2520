"""Which entries a method draws, and reading each of them once.

A place is one whole number for an entry: ``column * m + row``, so that places in order are compressed columns.
"""

from __future__ import annotations

import numpy as np

from .._support.numbers import BLOCK_CELLS
from ..data.observations import Observations, index_dtype, pointers_of
from ..data.sources import Source


def distinct(rng, size: int, count: int) -> np.ndarray:
    """`count` different whole numbers below `size`, all sets alike, in order; memory only for what is drawn."""
    if 2 * count > size:
        rest = np.ones(size, bool)
        rest[distinct(rng, size, size - count)] = False
        return np.flatnonzero(rest)
    drawn = np.zeros(0, np.int64)
    while drawn.size < count:  # The first different ones of a sequence of draws are taken.
        more = rng.integers(0, size, int(1.1 * (count - drawn.size)) + 16)
        drawn = np.concatenate([drawn, more])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return np.sort(drawn[:count])


def by_chance(rng, size: int, share: float) -> np.ndarray:
    """Each whole number below `size` with probability `share`, in order: the steps between them are geometric."""
    pieces, last = [np.zeros(0, np.int64)], -1
    while last < size - 1 and share > 0:
        expected = (size - 1 - last) * share
        steps = rng.geometric(share, int(expected + 4 * np.sqrt(expected)) + 16)
        places = last + np.cumsum(np.minimum(steps, size + 1))
        pieces.append(places[places < size])
        last = int(places[-1])
    return np.concatenate(pieces)


def union(*pieces) -> np.ndarray:
    """All places of some arrays, in order, each once."""
    places = np.sort(np.concatenate(pieces), kind="stable")
    return places[np.diff(places, prepend=-1) > 0]


def places_of_columns(m: int, columns) -> np.ndarray:
    return (columns[:, None] * m + np.arange(m)).ravel()


def places_of_rows(m: int, n: int, rows) -> np.ndarray:
    return (np.arange(n)[:, None] * m + rows).ravel()


def rows_of_every_column(rng, m: int, n: int, s: int) -> np.ndarray:
    """Places of s different rows of every column, in order."""
    return np.concatenate([j * m + distinct(rng, m, s) for j in range(n)])


def read(source: Source, places) -> np.ndarray:
    """The entries at these places."""
    m = source.shape[0]
    values = np.empty(places.size, source.dtype)
    for lo in range(0, places.size, BLOCK_CELLS):
        block = places[lo : lo + BLOCK_CELLS]
        values[lo : lo + BLOCK_CELLS] = source.entries(block % m, block // m)
    return values


def read_more(source: Source, places, values, wanted) -> tuple[np.ndarray, np.ndarray]:
    """Places and values together with those that are wanted and not known yet; all in order."""
    new = np.setdiff1d(wanted, places, assume_unique=True)
    places, values = np.concatenate([places, new]), np.concatenate([values, read(source, new)])
    order = np.argsort(places, kind="stable")
    return places[order], values[order]


def whole_column(source: Source, j: int, rows, values) -> np.ndarray:
    """Column j with these rows known: the others are read."""
    column, rest = np.empty(source.shape[0], source.dtype), np.ones(source.shape[0], bool)
    column[rows], rest[rows] = values, False
    others = np.flatnonzero(rest)
    column[others] = source.entries(others, np.full(others.size, j))
    return column


def observations_of(shape, places, values, full=None, scales=None) -> Observations:
    """Observations from places in order; `full` are the columns that count as known in full, those that are if None."""
    m, n = shape
    columns = places // m
    counts = np.bincount(columns, minlength=n)
    rows = (places - columns * m).astype(index_dtype(m))
    full = np.flatnonzero(counts == m) if full is None else np.asarray(full, np.int64)
    return Observations((m, n), pointers_of(counts), rows, values, None, full, scales)


def observations_of_columns(shape, full, C, scales=None) -> Observations:
    """Observations of nothing but full columns, C of shape (m, d); `full` in order."""
    return observations_of(shape, places_of_columns(shape[0], full), C.ravel(order="F"), full, scales)
