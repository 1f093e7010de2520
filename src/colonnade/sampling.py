"""Stage 1, the drawing: Algorithm 1's sampling of columns and entries."""

from __future__ import annotations

import numpy as np

from ._arguments import as_count, as_generator, as_probabilities
from .observations import Observations, index_dtype, pointers_of
from .sources import as_source

_BLOCK_DRAWS = 4_000_000  # how many entries are drawn and read at a time; the answer does not depend on it


def observe(source, *, n_full_columns: int, n_entries: int, probabilities=None, random_state=None) -> Observations:
    """Draw observations the way of Algorithm 1.

    d columns are drawn with replacement by `probabilities` and read in full; of every other column s rows are drawn
    with replacement and read. What is drawn twice is read once: the repeats are kept as `full_scales` and `weights`.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    n_full_columns : int
        d, the number of draws of columns.
    n_entries : int
        s, the number of draws of rows in each other column.
    probabilities : array of shape (n,), optional
        Of drawing each column; uniform unless told.
    random_state : None, int or numpy Generator
    """
    source = as_source(source)
    m, n = source.shape
    d = as_count("n_full_columns", n_full_columns, 1)
    s = as_count("n_entries", n_entries, 1)
    p = as_probabilities(probabilities, n)
    rng = as_generator(random_state)
    full, times = np.unique(rng.choice(n, size=d, p=p), return_counts=True)
    # Drawn k times with scale 1/sqrt(d p) gives the same A A' as drawn once with sqrt(k / (d p)).
    scales = np.sqrt(times / (d * p[full]))

    room = full.size * m + (n - full.size) * min(s, m)
    rows, values, weights = (
        np.empty(room, index_dtype(m)),
        np.empty(room, source.dtype),
        np.ones(room, np.float32),
    )
    counts = np.full(n, m)
    at = 0
    for start, stop, is_full in _pieces(n, full, max(1, _BLOCK_DRAWS // s)):
        if is_full:
            drawn, repeats, known = np.arange(m), 1, source.columns([start])[:, 0]
        else:
            drawn, repeats, counts[start:stop] = _distinct_draws(rng, m, stop - start, s)
            known = source.entries(drawn, np.repeat(np.arange(start, stop), counts[start:stop]))
        here = slice(at, at + drawn.size)
        rows[here], weights[here], values[here] = drawn, repeats, known
        at += drawn.size
    if at < 0.9 * room:  # many repeats: give the spare room back
        rows, values, weights = rows[:at].copy(), values[:at].copy(), weights[:at].copy()
    rows, values, weights = rows[:at], values[:at], weights[:at]
    return Observations(
        (m, n), pointers_of(counts), rows, values, weights if (weights != 1).any() else None, full, scales
    )


def _pieces(n, full, step):
    """The columns in order, as (start, stop, is_full): every full one by itself, the others up to `step` at a time."""
    start = 0
    for j in [*full.tolist(), n]:
        for lo in range(start, j, step):
            yield lo, min(lo + step, j), False
        if j < n:
            yield j, j + 1, True
        start = j + 1


def _distinct_draws(rng, m, n_columns, s):
    """s rows with replacement for each column: the distinct ones in order, how often each, how many per column."""
    drawn = np.sort(rng.integers(0, m, size=(n_columns, s)), axis=1)
    new = np.ones(drawn.shape, bool)
    new[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
    at = np.flatnonzero(new)
    repeats = np.diff(at, append=drawn.size)  # a column's last run ends where the next column begins
    return drawn.ravel()[at], repeats, new.sum(axis=1)
