"""Active columns: a few entries of each column decide which are read in full."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._support.arguments import as_choice, as_count, as_generator, as_progress
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.observations import Observations
from ..data.sources import Source, as_source
from ..model.column_space import ColumnSpace, fit_column_space
from ..model.solution import Solution
from ..model.solve import Status, solve_columns
from ._answers import completion_of
from ._reading import (
    by_chance,
    observations_of,
    places_of_columns,
    read,
    read_more,
    rows_of_every_column,
    union,
    whole_column,
)
from ._scales import probabilities_of, rounding_share
from ._streaming import widened
from .column_probabilities import probe_leverage, probe_norms


@one_blas_thread()
def active_columns(
    source, *, by, rank: int, n_full_columns: int, n_entries: int, random_state=None, progress=None
) -> Completion:
    """Complete a matrix from d columns that its own entries choose, and about s entries of every other column.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    by : {"norm", "leverage", "residual"}
        "norm": half of the s entries of each column estimate its squared norm, in proportion to which the full columns
        are drawn; the other half is spent in proportion to it too, s / 2 on average, and M^ = U U'M~ with these
        entries divided by the share that was read, and zero elsewhere, as M~. Not exact for exact data, where its error
        is about sqrt(2 r / s) of the matrix.
        "leverage": s rows are read in all columns, and the full columns are drawn by their leverage in these rows; the
        others are filled by least squares on the rows.
        "residual": s rows of each column, its own; the full columns are drawn one after the other in proportion to the
        squared residual of each column on its rows, given the full columns so far; the others are filled by least
        squares on their rows. Where its rows do not determine a column, its norm stands for the residual. s must be
        larger than d.
    rank : int
        r, at most d: U holds the top r left singular vectors of the full columns, those drawn by fixed p_j scaled by
        1 / sqrt(d p_j). With r = d and "norm" the answer is C X, X = C+ M~, as in the paper.
    n_full_columns : int
        d. With "norm" and "leverage" draws with replacement. With "residual" fewer, if they explain all columns to
        rounding.
    n_entries : int
        s.
    random_state : None, int or numpy Generator
    progress : function, optional
        Called as ``progress(stage, done, total)`` with the full columns; used by "residual" only.

    Returns
    -------
    Completion
        Observed entries are kept as observed, and no entry is read twice.

    Notes
    -----
    The paper draws the s rows of a column by a coin for each entry; here they are a set of s different rows, so that no
    column has none. Its algorithms choose columns; "leverage" says nothing of the coefficients of the others, which
    here come from the rows that were read for the leverages. "residual" projects all columns anew for every full
    column that it draws: of the order of n s d^3 operations in all.

    References
    ----------
    Y. Wang, A. Singh: Column subset selection with missing data via active sampling. International Conference on
    Artificial Intelligence and Statistics (2015); Provably correct algorithms for matrix column subset selection with
    selectively sampled data. Journal of Machine Learning Research 18 (2018).
    """
    source = as_source(source)
    m, n = source.shape
    by = as_choice("by", by, ("norm", "leverage", "residual"))
    d = as_count("n_full_columns", n_full_columns, 1, n if by == "residual" else None)
    r = as_count("rank", rank, 1, min(m, d), ", the smaller of the rows and n_full_columns")
    least, why = {
        "norm": (2, ", the rows of the matrix: one for the norm and one for the rest"),
        "leverage": (r, ", from the rank to the rows of the matrix"),
        "residual": (d + 1, ", more than n_full_columns: on as many rows as columns no residual is left"),
    }[by]
    s = as_count("n_entries", n_entries, least, m, why)
    rng, progress = as_generator(random_state), as_progress(progress)
    if by == "norm":
        return _by_norm(source, r, d, s, rng)
    observations = _by_leverage(source, r, d, s, rng) if by == "leverage" else _by_residual(source, d, s, rng, progress)
    space = fit_column_space(observations, rank=r)
    coefficients, status = solve_columns(space, observations)
    choices = {"method": f"active columns by {by}", "rank": f"{space.rank} directions"}
    return Completion(Solution(observations, space, coefficients, status), choices)


def _draw(p, d, rng) -> tuple[np.ndarray, np.ndarray]:
    """Columns drawn d times by p, and their scales in A."""
    full, times = np.unique(rng.choice(p.size, size=d, p=p), return_counts=True)
    return full, np.sqrt(times / (d * p[full]))


def _by_norm(source: Source, r, d, s, rng) -> Completion:
    m, n = source.shape
    places, values, p = probe_norms(source, s // 2, rng)
    full, scales = _draw(p, d, rng)
    shares = np.minimum(1.0, (s - s // 2) * n * p / m)
    drawn = np.concatenate([j * m + by_chance(rng, m, share) for j, share in enumerate(shares)])
    places, values = read_more(source, places, values, union(drawn, places_of_columns(m, full)))
    o = observations_of((m, n), places, values, full, scales)
    space = fit_column_space(o, rank=r)
    U, unit = space.basis.astype(np.float64), unit_of(values)
    x = values[np.searchsorted(places, drawn)] / np.float64(unit) / shares[drawn // m]
    estimate = sparse.csc_array((x, (drawn % m, drawn // m)), shape=(m, n))
    Z = (estimate.T @ U).T
    Z[:, full] = U.T @ (o.full_matrix() / np.float64(unit))
    choices = {"method": "active columns by norm", "rank": f"{space.rank} directions"}
    return completion_of(o, U, Z, choices, unit=unit)


def _by_leverage(source: Source, r, d, s, rng) -> Observations:
    places, values, p = probe_leverage(source, s, r, rng)
    full, scales = _draw(p, d, rng)
    places, values = read_more(source, places, values, places_of_columns(source.shape[0], full))
    return observations_of(source.shape, places, values, full, scales)


def _by_residual(source: Source, d, s, rng, progress) -> Observations:
    m, n = source.shape
    places = rows_of_every_column(rng, m, n, s)
    values = read(source, places)
    unit = unit_of(values)
    probes = observations_of((m, n), places, values / np.float64(unit), np.zeros(0, np.int64))
    norms = np.linalg.norm(probes.values.reshape(n, s), axis=1)
    U = np.zeros((m, 0))
    full: list[int] = []
    columns: list[np.ndarray] = []
    for t in range(d):
        sizes = _residual_norms(U, probes, norms)
        sizes[full] = 0.0
        sizes[sizes < rounding_share(source.dtype) * norms] = 0.0
        if full and not sizes.any():
            break
        j = int(rng.choice(n, p=probabilities_of(sizes)))
        at = slice(j * s, (j + 1) * s)
        columns.append(whole_column(source, j, places[at] - j * m, values[at]))
        full.append(j)
        U = widened(U, columns[-1] / np.float64(unit))
        if progress is not None:
            progress(t + 1, d)
    rest = ~np.isin(places // m, full)
    places = np.concatenate([places[rest], places_of_columns(m, np.array(full))])
    values = np.concatenate([values[rest], *columns])
    order = np.argsort(places, kind="stable")
    return observations_of((m, n), places[order], values[order], np.sort(full))


def _residual_norms(U, probes: Observations, norms) -> np.ndarray:
    """|x_O - P x_O| of every column on its own rows O; where these do not determine it, its norm."""
    n = probes.shape[1]
    if U.shape[1] == 0:
        return norms.copy()
    none = np.zeros(U.shape[1])
    Z, status = solve_columns(ColumnSpace(U, none, None, none, np.nan), probes)
    s = probes.rows.size // n
    residual = probes.values.reshape(n, s).copy()
    step = max(1, 4_000_000 // (s * U.shape[1]))
    for lo in range(0, n, step):
        rows = probes.rows.reshape(n, s)[lo : lo + step]
        residual[lo : lo + step] -= np.matmul(U[rows], Z.T[lo : lo + step, :, None])[:, :, 0]
    return np.where(status == Status.SOLVED, np.linalg.norm(residual, axis=1), norms)
