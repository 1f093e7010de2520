"""Entries of partial columns that are out of line, such as typos and codes like -999.

The prior tells how far from the center entries of each row usually are. An entry is suspected if it is over twenty
times as far, over twenty times as far as half of its own column, and not foretold by the others of the column. Where
these, each left out in turn, are better predicted without the suspected ones, those have no part in filling the column.
In plain least squares every entry counts.
"""

from __future__ import annotations

import numpy as np

from .column_space import ColumnSpace
from .leaving_out import leave_one_out
from .observations import Observations
from .solve import solve_columns

_FAR = 20.0  # deviations of the prior, and times what is usual in the column
_FORETOLD = 0.5  # of its distance, by which an entry is off at most that others of its column foretell
_WORTHWHILE = 1.1  # times the errors of the others without it, which they have at least with it
_PIECE_ENTRIES = 1_000_000


def in_line(space: ColumnSpace, observations: Observations, penalty) -> Observations:
    """Without the entries that are out of line; the same object if there are none.

    Parameters
    ----------
    space : ColumnSpace
    observations : Observations
        Full columns keep all entries.
    penalty : array of shape (r,)
        Noise over the variances of the directions; without it, in plain least squares, every entry counts.
    """
    places = out_of_line(space, observations, penalty)
    if places.size == 0:
        return observations
    kept = np.ones(observations.values.size, bool)
    kept[places] = False
    return observations.only(kept)


def out_of_line(space: ColumnSpace, observations: Observations, penalty) -> np.ndarray:
    """Where in `values` entries stand that are out of line, rising."""
    if space.rank == 0 or not np.all(penalty):
        return np.zeros(0, np.int64)
    noise = float(penalty[0] * space.variances[0])  # the same in every direction
    of_rows = (space.basis.astype(np.float64) ** 2) @ space.variances
    places = [_out_of_line(space, observations, columns, of_rows, noise) for columns in _pieces(observations)]
    return np.concatenate([np.zeros(0, np.int64), *places])


def _pieces(o: Observations) -> list[np.ndarray]:
    """Partial columns of at least two entries, so that one can be told from another; not too many entries at a time."""
    columns = o.partial_columns[o.n_observed[o.partial_columns] > 1]
    at = np.cumsum(o.n_observed[columns]) // _PIECE_ENTRIES
    return np.split(columns, np.flatnonzero(np.diff(at)) + 1) if columns.size else []


def _out_of_line(space, o: Observations, columns, of_rows, noise: float) -> np.ndarray:
    part = o.take(columns)
    sizes = _sizes(space, part, of_rows, noise)
    far = np.flatnonzero(np.maximum.reduceat(sizes, part.indptr[:-1]) > _FAR)
    if far.size == 0:
        return far
    columns, part = columns[far], part.take(far)
    sizes = _sizes(space, part, of_rows, noise)
    usual = np.array([max(1.0, np.sort(own)[(own.size - 1) // 2]) for own in np.split(sizes, part.indptr[1:-1])])
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.abs(leave_one_out(space, part, [noise])[0][:, 0]) / _deviations(part, of_rows, noise)
        suspected = (sizes > _FAR * usual[part.entry_columns]) & ~(errors < _FORETOLD * sizes)
    better = _are_better_without(space, part, suspected, errors[~suspected], of_rows, noise)
    out = suspected & better[part.entry_columns]
    starts = o.indptr[columns] - part.indptr[:-1]
    return np.flatnonzero(out) + starts[part.entry_columns[out]]


def _sizes(space, o: Observations, of_rows, noise: float) -> np.ndarray:
    """How far entries are from the center, in deviations of the prior and the noise, shape (nnz,)."""
    x = o.values.astype(np.float64)
    with np.errstate(over="ignore"):
        return np.abs(x if space.center is None else x - space.center[o.rows]) / _deviations(o, of_rows, noise)


def _deviations(o: Observations, of_rows, noise: float) -> np.ndarray:
    return np.sqrt(of_rows[o.rows] + (noise if o.weights is None else noise / o.weights))


def _are_better_without(space, o: Observations, suspected, errors, of_rows, noise: float) -> np.ndarray:
    """Of every column, whether its other entries, with these errors, are better predicted without; shape (n,)."""
    rest = o.only(~suspected)
    with np.errstate(over="ignore", invalid="ignore"):
        alone = np.abs(leave_one_out(space, rest, [noise])[0][:, 0]) / _deviations(rest, of_rows, noise)
        gains = np.bincount(rest.entry_columns, errors - _WORTHWHILE * alone, o.shape[1])
    return ~(gains <= 0)  # what overflows is no better


def solve_in_line(
    space: ColumnSpace, observations: Observations, *, penalty, typical=None, n_threads=None, progress=None
) -> tuple[np.ndarray, np.ndarray]:
    """`solve_columns` without the entries that are out of line."""
    typical = typical_entries_of(observations) if typical is None else typical
    likely = in_line(space, observations, penalty)
    return solve_columns(space, likely, penalty=penalty, typical=typical, n_threads=n_threads, progress=progress)


def typical_entries_of(o: Observations) -> float:
    """The median number of entries of the partial columns."""
    counts = o.n_observed[o.partial_columns]
    return float(np.median(counts)) if counts.size else 0.0
