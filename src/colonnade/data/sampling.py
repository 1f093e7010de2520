"""Stage 1, the drawing: Algorithm 1's sampling of columns and entries."""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_count, as_generator, as_probabilities
from .._support.numbers import BLOCK_CELLS
from .observations import Observations, index_dtype, pointers_of
from .sources import as_source


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
        Probability of drawing each column. Default: uniform.
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
    is_full = np.zeros(n, bool)
    is_full[full] = True
    step = max(1, BLOCK_CELLS // s)
    for start in range(0, n, step):
        others = np.flatnonzero(~is_full[start : start + step]) + start
        drawn, repeats, counts[others] = _distinct_draws(rng, m, others.size, s)
        ends = at + np.cumsum(counts[start : start + step])
        here = slice(at, ends[-1])
        of_others = np.repeat(~is_full[start : start + step], counts[start : start + step])
        rows[here][of_others], weights[here][of_others] = drawn, repeats
        values[here][of_others] = source.entries(drawn, np.repeat(others, counts[others]))
        for j in np.flatnonzero(is_full[start : start + step]):
            whole = slice(ends[j] - m, ends[j])
            rows[whole], values[whole] = np.arange(m), source.columns([start + j])[:, 0]
        at = here.stop
    if at < 0.9 * room:  # After many repeats the spare room is given back.
        rows, values, weights = rows[:at].copy(), values[:at].copy(), weights[:at].copy()
    rows, values, weights = rows[:at], values[:at], weights[:at]
    return Observations(
        (m, n), pointers_of(counts), rows, values, weights if (weights != 1).any() else None, full, scales
    )


def _distinct_draws(rng, m, n_columns, s):
    """s rows with replacement for each column: the distinct ones in order, how often each, how many per column."""
    drawn = np.sort(rng.integers(0, m, size=(n_columns, s)), axis=1)
    new = np.ones(drawn.shape, bool)
    new[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
    at = np.flatnonzero(new)
    repeats = np.diff(at, append=drawn.size)  # The last run of a column ends where the next column begins.
    return drawn.ravel()[at], repeats, new.sum(axis=1)
