"""Outliers among the entries of partial columns, such as typos and codes like -999.

The prior says how far from the center entries of each row usually are. An entry is suspected if it is over twenty times
as far, and over twenty times as far as half of its own column. Besides, the others of the column must not predict it,
or it must be one of several equal ones. Each of the others is then left out in turn. If they are predicted better
without the suspected ones, these have no part in filling the column. In plain least squares every entry counts.
"""

from __future__ import annotations

import numpy as np

from ..._support.threads import one_blas_thread
from ...data.observations import Observations
from ..column_space import ColumnSpace
from ..leaving_out import leave_one_out
from ..solve import solve_columns
from .outlier_screening import Screening, code_places

_FAR = 20.0  # Deviations of the prior, and times the median of the column; nearer entries are no outliers.
_FORETOLD = 0.5  # Share of its distance; an entry that others predict to within it is no outlier.
_PIECE_ENTRIES = 1_000_000  # Entries of columns that are looked at together: 8 MB. No answer depends on it.
_ROWS = 65_536  # Rows of a basis that are squared at a time.


@one_blas_thread()
def column_outliers(
    space: ColumnSpace, observations: Observations, penalty, code: float | None, of_rows: np.ndarray | None = None
) -> np.ndarray:
    """Places in `values` of the outliers of partial columns, rising.

    Parameters
    ----------
    space : ColumnSpace
    observations : Observations
    penalty : array of shape (r,)
        Noise over the variances of the directions; without it, in plain least squares, every entry counts.
    code : float or None
        A number that stands for nothing, as all columns show: see `rare_code`. Default: each column is judged alone.
    of_rows : array of shape (m,), optional
        What `variances_of_rows` returns of the basis, if that is known.
    """
    noise = _noise(space, penalty)
    if not 0 < noise < np.inf:
        return np.zeros(0, np.int64)
    of_rows = variances_of_rows(space.basis, space.variances) if of_rows is None else of_rows
    codes = code_places(observations, code)
    codes = codes[~np.isin(observations.columns_of(codes), observations.full_columns)]
    if codes.size == 0 and _are_all_near(space.center, observations, of_rows, noise):
        return codes
    left = np.ones(observations.values.size, bool)
    left[codes] = False
    o = observations.without(codes)
    places = [_outliers_of(space, o, columns, of_rows, noise) for columns in _pieces(o)]
    left[np.flatnonzero(left)[np.concatenate([np.zeros(0, np.int64), *places])]] = False
    return np.flatnonzero(~left)


def variances_of_rows(basis, variances) -> np.ndarray:
    """The prior's variance of an entry of each row of a basis; the same bytes whatever rows are given together."""
    pieces = (basis[lo : lo + _ROWS].astype(np.float64) for lo in range(0, basis.shape[0], _ROWS))
    return np.concatenate([np.zeros(0), *(np.einsum("ij,ij,j->i", U, U, variances) for U in pieces)])


def _noise(space: ColumnSpace, penalty) -> float:
    """Variance of the noise, the same in every direction; 0 in plain least squares."""
    return float(penalty[0]) * float(space.variances[0]) if space.rank and np.all(penalty) else 0.0


def _are_all_near(center, o: Observations, of_rows, noise: float) -> bool:
    """Whether no entry can be far from the center, which the largest ones may show."""
    reach = max(abs(float(o.values.min(initial=0))), abs(float(o.values.max(initial=0))))
    reach += 0.0 if center is None else float(np.abs(center).max())
    least = noise if o.weights is None else noise / float(o.weights.max(initial=1))
    return reach <= _FAR * float(np.sqrt(of_rows.min(initial=np.inf) + least))


def _pieces(o: Observations) -> list[np.ndarray]:
    """Partial columns, not too many entries at a time."""
    columns = o.partial_columns
    at = np.cumsum(o.n_observed[columns]) // _PIECE_ENTRIES
    return np.split(columns, np.flatnonzero(np.diff(at)) + 1) if columns.size else []


def _outliers_of(space, o: Observations, columns, of_rows, noise: float) -> np.ndarray:
    """Places of the outliers of some columns that have at least two entries."""
    columns = columns[o.n_observed[columns] > 1]
    part = o.take(columns)
    sizes = _sizes(space, part, of_rows, noise)
    far = np.flatnonzero(np.maximum.reduceat(sizes, part.indptr[:-1]) > _FAR) if columns.size else columns
    if far.size == 0:
        return far
    columns, part = columns[far], part.take(far)
    sizes = _sizes(space, part, of_rows, noise)
    usual = np.array([max(1.0, np.sort(own)[(own.size - 1) // 2]) for own in np.split(sizes, part.indptr[1:-1])])
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.abs(leave_one_out(space, part, [noise])[0][:, 0]) / _deviations(part, of_rows, noise)
        distant = sizes > _FAR * usual[part.entry_columns]
        suspected = distant & (~(errors < _FORETOLD * sizes) | _is_repeated(part, distant))
    better = _are_better_without(space, part, suspected, errors[~suspected], of_rows, noise)
    out = suspected & better[part.entry_columns]
    starts = o.indptr[columns] - part.indptr[:-1]
    places = np.flatnonzero(out) + starts[part.entry_columns[out]]
    if places.size == 0:
        return places
    # What some of them hid may be seen without them.
    kept = np.flatnonzero(~out) + starts[part.entry_columns[~out]]
    left = _outliers_of(space, part.only(~out), np.arange(columns.size), of_rows, noise)
    return np.concatenate([places, kept[left]])


def _sizes(space, o: Observations, of_rows, noise: float) -> np.ndarray:
    """How far entries are from the center, in deviations of the prior and the noise, shape (nnz,)."""
    x = o.values.astype(np.float64)
    with np.errstate(over="ignore"):
        return np.abs(x if space.center is None else x - space.center[o.rows]) / _deviations(o, of_rows, noise)


def _deviations(o: Observations, of_rows, noise: float) -> np.ndarray:
    return np.sqrt(of_rows[o.rows] + (noise if o.weights is None else noise / o.weights))


def _is_repeated(o: Observations, among) -> np.ndarray:
    """Which of some entries stand several times in their column: equal codes predict each other for no reason."""
    result, places = np.zeros(among.size, bool), np.flatnonzero(among)
    pairs = np.stack([o.entry_columns[places], o.values[places].astype(np.float64)])
    _, which, counts = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
    result[places] = counts[which.ravel()] > 1
    return result


def _are_better_without(space, o: Observations, suspected, errors, of_rows, noise: float) -> np.ndarray:
    """Whether the other entries of each column, with these errors, are predicted better without; shape (n,)."""
    rest = o.only(~suspected)
    with np.errstate(over="ignore", invalid="ignore"):
        alone = np.abs(leave_one_out(space, rest, [noise])[0][:, 0]) / _deviations(rest, of_rows, noise)
        gains = np.bincount(rest.entry_columns, errors - alone, o.shape[1])
    return ~(gains <= 0)  # NaN, from errors that overflow, counts as better.


def moved_places(o: Observations, columns, places) -> np.ndarray:
    """Where the entries at some places in `values`, rising, stand in ``o.take(columns)``, if their column is taken."""
    at = np.searchsorted(places, (o.indptr[columns], o.indptr[np.asarray(columns) + 1]))
    starts = np.concatenate(([0], np.cumsum(o.n_observed[columns]))) - np.append(o.indptr[columns], 0)
    moved = [places[low:high] + start for low, high, start in zip(*at, starts)]
    return np.concatenate([np.zeros(0, np.int64), *moved])


def unused_entries(
    space: ColumnSpace, o: Observations, penalty, screening: Screening, of_rows: np.ndarray | None = None
) -> np.ndarray:
    """Places in `values` of entries that have no part in the answer, rising; none in plain least squares.

    Those of partial columns are outliers; from those of full columns nothing was learned.
    """
    if not 0 < _noise(space, penalty) < np.inf:
        return np.zeros(0, np.int64)
    unlearned = screening.unlearned(o)
    of_full = unlearned[np.isin(o.columns_of(unlearned), o.full_columns)]
    return np.union1d(of_full, column_outliers(space, o, penalty, screening.code, of_rows))


def solve_without_outliers(
    space: ColumnSpace, observations: Observations, *, penalty, code=None, n_threads=None
) -> tuple:
    """Solve the columns without their outliers; coefficients, status, and the places of the outliers."""
    unused = column_outliers(space, observations, penalty, code)
    typical = typical_entries_of(observations)
    likely = observations.without(unused)
    return *solve_columns(space, likely, penalty=penalty, typical=typical, n_threads=n_threads), unused


def typical_entries_of(o: Observations) -> float:
    """The median number of entries of the partial columns."""
    counts = o.n_observed[o.partial_columns]
    return float(np.median(counts)) if counts.size else 0.0
