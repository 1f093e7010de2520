"""What the iterating methods share: the door, entries hidden for choosing, and the way from factors to a Completion."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._support.arguments import as_choice, as_count
from .._support.numbers import unit_of
from ..completion import Completion
from ..data.observations import Observations, as_observations, pointers_of
from ..data.sources import Source
from ..model.column_space import rank_ladder
from ..model.leaving_out import is_no_chance
from ..model.solution import Solution
from ..model.solve import Status
from ._answers import completion_of, without_overflows
from ._low_rank import Entries, Factors

_HIDDEN_SHARE = 0.1  # Share of the entries that is hidden to choose settings; the others fit as well without them.
CLOSER = 0.01  # Share of the tolerance of a trial where fewer directions may do: exact data show it only then.
BETTER = 0.999  # Share of the error so far that a larger rank must reach to be worth it.
_FEW = 100  # Directions that may all be kept: their singular values take less than a second.


def observed(data) -> Observations:
    """Observations with at least one entry; a source must be drawn from first, so that what is read is chosen."""
    if isinstance(data, Source):
        raise TypeError(
            "this method takes entries that are known already; draw them from the source with"
            " co.observe(source, n_full_columns=..., n_entries=...)"
        )
    o = as_observations(data)
    if o.values.size == 0:
        raise ValueError("no entry is observed, so there is nothing to fit")
    return o


def silent(done, total) -> None:
    """Progress that nobody wants to hear of."""


def in_halves(progress) -> tuple:
    """Two functions for the progress of two parts of a work, each counted as half of it."""
    return lambda done, total: progress(done, 2 * total), lambda done, total: progress(total + done, 2 * total)


def largest_rank(o: Observations) -> int:
    """The largest rank with no more numbers than entries: r (m + n - r) <= |O|, but 1 at least."""
    m, n = o.shape
    root = np.sqrt(max(0.0, ((m + n) / 2) ** 2 - o.values.size))
    return int(np.clip((m + n) / 2 - root, 1, min(m, n)))


def rank_limit(o: Observations, max_rank: int | None) -> int:
    """`max_rank`; if None, the most that is worth while where the rank is found by shrinking, all if they are few."""
    if max_rank is not None:
        return as_count("max_rank", max_rank, 1, min(o.shape))
    return min(o.shape) if min(o.shape) <= _FEW else largest_rank(o)


class Hidden(NamedTuple):
    """Entries taken out of the observations, by which settings are judged."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    def error(self, X: Factors, unit: float, center=None) -> float:
        """Mean square error of ``center + unit * X`` at these places, in units squared; 0 if there are none."""
        fitted = np.einsum("kr,kr->k", X.U[self.rows] * X.d, X.V[self.columns])
        off = self.values / unit - (0 if center is None else center[self.rows] / unit) - fitted
        return float(np.mean(off**2)) if off.size else 0.0


def hide(o: Observations, rng) -> tuple[Observations, Hidden]:
    """A tenth of the entries of partial columns (of all, if every one is full) taken out; no column loses its last."""
    column = o.entry_columns
    out = rng.random(column.size) < _HIDDEN_SHARE
    if o.full_columns.size < o.shape[1]:
        out &= ~np.isin(column, o.full_columns)
    out[o.indptr[:-1][o.n_observed > 0]] = False
    kept = ~out
    full = o.full_columns if o.full_columns.size < o.shape[1] else np.zeros(0, np.int64)
    indptr = pointers_of(np.bincount(column[kept], minlength=o.shape[1]))
    weights = None if o.weights is None else o.weights[kept]
    rest = Observations(o.shape, indptr, o.rows[kept], o.values[kept], weights, full)
    return rest, Hidden(o.rows[out].astype(np.int64), column[out], o.values[out].astype(np.float64))


def row_means(o: Observations) -> np.ndarray:
    """Means of the observed entries of every row, shape (m,); of all entries where a row has none."""
    w = np.ones(o.values.size) if o.weights is None else o.weights.astype(np.float64)
    sizes = np.bincount(o.rows, w, o.shape[0])
    # Divided before it is summed: entries near the largest number have a mean, though not a sum.
    means = np.bincount(o.rows, o.values * (w / sizes[o.rows]), o.shape[0])
    return np.where(sizes > 0, means, np.sum(o.values * (w / w.sum())))


def chosen_center(center, rest: Observations, hidden: Hidden) -> bool:
    """Whether to take off row means: as asked, or if they predict hidden entries clearly better than zero does."""
    center = as_choice("center", center, (True, False, "auto"))
    if center != "auto":
        return center
    unit = unit_of(rest.values)
    gain = (hidden.values / unit) ** 2 - ((hidden.values - row_means(rest)[hidden.rows]) / unit) ** 2
    return is_no_chance(gain)


def answer_of(o: Observations, X: Factors, unit: float, choices: dict, *, center=None, prior: bool) -> Completion:
    """``center + unit * X``; columns with fewer entries than directions are filled only if there is a `prior`."""
    Z, few, none = (X.V * X.d).T, o.n_observed < X.rank, o.n_observed == 0
    if not prior:
        Z[:, few | none] = np.nan
    unseen = o.shape[0] - np.unique(o.rows).size
    if unseen:
        choices = {**choices, "rows": f"{unseen:,} rows have no entry, and what is filled in there is arbitrary"}
    answer = completion_of(o, X.U, Z, choices, unit=unit)
    status, partial = answer.status, ~np.isin(answer.status, (Status.FULL, Status.OVERFLOW))
    status[few & partial] = Status.PRIOR if prior else Status.TOO_FEW
    status[none & partial] = Status.PRIOR_ONLY if prior else Status.NO_OBSERVATION
    center = None if center is None else center.astype(o.values.dtype)
    space = replace(answer.space, center=center, noise_std=_noise(o, X, unit, center))
    solution = Solution(o, space, answer.coefficients, status, by_columns=False)
    return without_overflows(replace(answer, solution=solution))


def _noise(o: Observations, X: Factors, unit: float, center) -> float:
    """Root mean square of what X leaves of the observed entries, per degree of freedom; NaN if there is none."""
    e = Entries(o, unit, center)
    freedom = o.values.size - X.rank * (sum(o.shape) - X.rank)
    square = np.sum(e.weights * (e.values - e.fitted(X.U * X.d, X.V)) ** 2)
    return float(np.sqrt(square / freedom) * unit) if freedom > 0 else float("nan")


def ending_of(method: str, converged: bool, steps: int, reached: float, tol: float, word: str) -> str:
    """How the iteration ended, for `choices`; a warning too if it did not converge."""
    if converged:
        return f"converged after {steps:,} {word}: {reached:.1e}, at most {tol:.1e} asked for"
    said = f"did not converge in {steps:,} {word}: {reached:.1e} reached, {tol:.1e} asked for"
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(f"{method} {said}. Allow more {word} or a larger tol", ConvergenceWarning, stacklevel=3)
    return said


def ranks_to_try(limit: int) -> list[int]:
    """A geometric ladder from 1 to `limit`."""
    ladder = rank_ladder()
    return [*ladder[ladder < limit].tolist(), limit]


def ranks_at_drops(d) -> list[int]:
    """Where the singular values d (k,) fall most, the steepest two, largest rank first."""
    drops = np.argsort(np.diff(np.log(np.maximum(d, 1e-300))))[:2] + 1
    return sorted(drops.tolist(), reverse=True)
