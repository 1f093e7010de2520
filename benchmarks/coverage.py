"""How often hidden entries lie inside their intervals, and whether these are narrower than one width for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.real_data import Problem

LEVELS = 0.5, 0.8, 0.9, 0.95
_MOST_ASKED = 20_000


@dataclass(frozen=True)
class Coverage:
    """Of the intervals of one completion, in the order of `LEVELS`.

    Attributes
    ----------
    shares : array of shape (4,)
        Of hidden entries inside their interval.
    widths : array of shape (4,)
        Mean width, relative to intervals of constant width about the same predictions with as many entries inside.
    """

    shares: np.ndarray
    widths: np.ndarray


def coverage_of(problem: Problem, completion) -> Coverage:
    """Asked at hidden entries, evenly chosen where there are many."""
    rows, columns = np.nonzero(problem.hidden)
    step = -(-rows.size // _MOST_ASKED)
    rows, columns = rows[::step], columns[::step]
    truth = problem.truth[rows, columns].astype(np.float64)
    off = np.abs(truth - completion.entries(rows, columns))
    shares, widths = [], []
    for level in LEVELS:
        low, high = completion.interval(rows, columns, level=level)
        share = float(((low <= truth) & (truth <= high)).mean())
        shares.append(share)
        widths.append(float((high.astype(np.float64) - low).mean() / (2 * np.quantile(off, share))))
    return Coverage(np.array(shares), np.array(widths))
