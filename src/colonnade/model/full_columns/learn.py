"""Learning from full columns: which column space, center and noise variance predict the other columns best.

Every choice is judged by leaving out observed entries of the partial columns, one at a time: predicted from the others
of its column, how far is it off?
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from ..._support.arguments import as_generator, is_auto
from ..._support.threads import one_blas_thread
from ...data.observations import Observations
from ..column_space import ColumnSpace, fit_about_means, fit_column_space, rank_ladder, truncated, with_offset
from ..leaving_out import FEW_ENTRIES, MANY_COLUMNS, is_no_chance, leave_one_out
from ..solve import solve_columns
from .outlier_screening import without_outliers
from .validation import ValidationColumns, best_noise, losses_with_midpoints, with_midpoints

_ASKED_ENTRIES = 4_000  # Entries of partial columns that are left out.
_ASKED_COLUMNS = 20, 200  # Columns of these entries, at least and at most.
_PRETENDED = 4, 200  # A quarter of the full columns becomes partial; a half of up to 200.
_NOISE_SHARES = 10.0 ** np.arange(-10, 1.6, 0.5)  # Noise variances that are tried, as shares of an entry's variance.
_OFFSET_SHARES = 0.0, 0.01, 1.0  # Variances of an offset of whole columns that are tried, in variances of an entry.
_AS_GOOD = 1.006  # Times the mean square error of all directions that those before a drop may have.
_STEP = 0.5  # Share to which the variance of directions falls at a drop, at most.
_LIKELY = 0.5  # Standard errors by which another center or offset must predict better than the usual one.
_ALL_DIRECTIONS = "the maximum available"
_TOO_SHORT = 0.25  # Share of the columns that may have fewer entries than there are directions in exact data.
# Largest residuals of exact data, relative to the column.
ROUNDING = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}
# Largest errors of their left-out entries, which are larger.
_ROUNDING_LEFT_OUT = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 2e-4}
_OF_SPREAD = 1e-3  # Share of a column's distance from the row means; larger errors are noise beside an offset.
_SURELY_ROUNDING = 1e3  # Times the machine epsilon; errors up to here are rounding.


@dataclass(frozen=True)
class FullColumnModel:
    """What was learned before any column is filled.

    Attributes
    ----------
    space : ColumnSpace
    noise_variance : float
        Of an entry about the column space; 0 means plain least squares, without a prior.
    choices : dict of str
        What was chosen, in words.
    is_exact : bool
        Whether the data fit to rounding without a prior.
    has_chosen_rank : bool
        Whether fewer directions than there are were chosen by leaving out.
    moved_rows : bool
        Whether sweeps have moved the rows of the basis, so that it is not learned from the full columns alone.
    """

    space: ColumnSpace
    noise_variance: float
    choices: dict
    is_exact: bool = False
    has_chosen_rank: bool = False
    moved_rows: bool = False

    @property
    def penalty(self) -> np.ndarray:
        """Lambda = noise variance / variance of each direction, shape (r,)."""
        return penalty_of(self.space, self.noise_variance)


def with_mean(from_full: FullColumnModel, cleaned: Observations) -> FullColumnModel:
    """The model that also knows the mean of the full columns, where a prior about zero would make it zero.

    `cleaned` are the observations from which something is learned.
    """
    if not from_full.noise_variance or from_full.space.center is not None:
        return from_full
    return replace(from_full, space=replace(from_full.space, mean=_row_means(cleaned)))


def penalty_of(space: ColumnSpace, noise_variance: float) -> np.ndarray:
    """Lambda = noise variance / variance of each direction, shape (r,)."""
    if noise_variance == 0:
        return np.zeros(space.rank)
    with np.errstate(over="ignore", divide="ignore"):
        return np.minimum(noise_variance / space.variances, np.finfo(np.float64).max)


@one_blas_thread()
def learn(
    observations: Observations,
    *,
    rank="auto",
    center="auto",
    shrinkage="auto",
    random_state=None,
    cleaned: Observations | None = None,
) -> FullColumnModel:
    """Learn the column space, and choose what is "auto" among rank, center and shrinkage (the noise variance).

    Exactly low-rank data are recognised by the partial columns, which then fit to rounding, and get the paper's plain
    least squares. Otherwise the choices with the least leave-one-out error are taken. Under a prior nothing is learned
    from outliers of full columns.

    Parameters
    ----------
    observations : Observations
        With at least one full column.
    rank : int or "auto"
    center : bool or "auto"
    shrinkage : float or "auto"
    random_state : None, int or numpy Generator
        Draws the partial columns whose entries are left out; None draws the same ones every time.
    cleaned : Observations, optional
        The same without outliers, if these are known from a whole that the observations belong to.
    """
    if cleaned is None:
        cleaned = without_outliers(observations) or observations
    if not is_auto(shrinkage) and shrinkage > 0:
        observations = cleaned
    if not any(is_auto(value) for value in (rank, center, shrinkage)):
        space = fit_column_space(observations, rank=rank, center=center)
        choices = choices_in_words(space, center, shrinkage, rank)
        return FullColumnModel(space, shrinkage, {**choices, "fit": "not tested, because every setting was given"})
    rng = as_generator(0 if random_state is None else random_state)
    asked = _asked_columns(observations, rng)

    shares_directions = is_auto(center) and is_auto(rank)  # Both centers are tried, with all directions.

    @cache
    def space_with(center: bool) -> ColumnSpace:
        if center and shares_directions:
            return fit_about_means(observations, space_with(center=False))
        return fit_column_space(observations, rank=None if rank == "auto" else rank, center=center)

    if center in (False, "auto") and shrinkage in (0, "auto"):
        exact = _exact_fit(space_with(center=False), observations, asked, rank)
        if exact is not None:
            return exact
    if is_auto(shrinkage) and cleaned is not observations:
        return learn(cleaned, rank=rank, center=center, shrinkage=shrinkage, random_state=rng, cleaned=cleaned)

    space, noise = space_with(center=center is True), 0.0 if is_auto(shrinkage) else shrinkage
    if space.rank and not 1e-280 < space.variances[0] < 1e280:
        return _untested(space, noise, rank, "squares of such numbers overflow; rescale the data")
    n_full = observations.full_columns.size
    # A few columns say little of others: half of many full ones, with entries hidden, say more.
    if observations.n_observed[asked].sum() < FEW_ENTRIES or asked.size < MANY_COLUMNS <= n_full // 2:
        pretended = _pretend(observations, rng)
        if pretended is not None:
            from_full = learn(
                pretended, rank=rank, center=center, shrinkage=shrinkage, random_state=rng, cleaned=pretended
            )
            return _again(from_full, observations, rank)
    if asked.size == 0:
        return _untested(space, noise, rank, "there are too few complete columns and entries")
    return _choose(space_with, ValidationColumns(observations.take(asked)), rank, center, shrinkage)


@one_blas_thread()
def fits_exactly(observations: Observations) -> bool:
    """Whether `learn` would find exactly low-rank data, with all settings "auto"; nothing is chosen."""
    rng, cleaned = as_generator(0), without_outliers(observations)
    for o in (observations, cleaned):
        if o is not None:
            asked = _asked_columns(o, rng)
            if _exact_fit(fit_column_space(o, rank=None, center=False), o, asked, "auto") is not None:
                return True
    return False


def _exact_fit(space: ColumnSpace, o: Observations, asked, rank) -> FullColumnModel | None:
    """Plain least squares without a center, if they leave nothing but rounding of the asked columns."""
    misfits = _misfits(space, o.take(asked), partial(_row_means, o)) if space.rank else 0
    if misfits is None:
        return None
    choices = choices_in_words(space, False, 0.0, rank, how="the numerical rank")
    fit = "the known values fit exactly, up to rounding"
    fit += f", except in {misfits} of {asked.size:,} columns that were tested" if misfits else ""
    if space.rank == 0 and o.values.any():
        fit = "the complete columns are zero, so they do not explain the others"
    return FullColumnModel(space, 0.0, {**choices, "fit": fit}, is_exact=True)


def _untested(space: ColumnSpace, noise: float, rank, why: str) -> FullColumnModel:
    choices = choices_in_words(space, space.center is not None, noise, rank, how="the numerical rank")
    return FullColumnModel(space, noise, {**choices, "fit": f"not tested, because {why}"})


def _asked_columns(o: Observations, rng) -> np.ndarray:
    """Partial columns with two entries or more, enough of them for `_ASKED_ENTRIES`."""
    partial = o.partial_columns
    able = partial[o.n_observed[partial] >= 2]
    if able.size == 0:
        return able
    low, high = _ASKED_COLUMNS
    count = int(np.clip(_ASKED_ENTRIES / np.median(o.n_observed[able]), low, high))
    return np.sort(rng.choice(able, count, replace=False)) if count < able.size else able


def _row_means(o: Observations) -> np.ndarray:
    """Row means of the full columns, one column after the other because they may be large."""
    m, d = o.shape[0], o.full_columns.size
    means = np.zeros(m)
    for j in o.full_columns:
        means += o.values[o.indptr[j] : o.indptr[j] + m] / np.float64(d)
    return means


def _misfits(space: ColumnSpace, o: Observations, row_means: Callable) -> int | None:
    """Number of columns where plain least squares leaves more than rounding errors; None if it is half of them or more.

    Only columns that could show such errors are looked at.
    If many columns have fewer entries than there are directions, the prior is asked instead: the spectrum may fall so
    fast that its end is lost in rounding, above all of float32.
    """
    if not (o.n_observed > space.rank).any() or np.mean(o.n_observed < space.rank) > _TOO_SHORT:
        return None
    coefficients, _ = solve_columns(space, o)
    column = o.entry_columns
    fitted = np.einsum("kr,kr->k", space.basis[o.rows].astype(np.float64), coefficients.T[column].astype(np.float64))
    starts = o.indptr[:-1]
    off = np.maximum.reduceat(np.abs(o.values - fitted), starts)
    size = np.maximum.reduceat(np.abs(o.values.astype(np.float64)), starts)
    checked = o.n_observed > space.rank
    checked &= (size > 0) | (size[checked].max() == 0)  # Zeros fit whatever the others do.
    fits = off <= ROUNDING[space.basis.dtype] * size
    if np.median(fits[checked]) < 1:
        return None
    # With hardly more entries than directions anything fits, but not the entries that are left out.
    errors = leave_one_out(replace(space, variances=np.ones(space.rank)), o, [0.0])[0][:, 0]  # Errors may overflow.
    off = np.maximum.reduceat(np.nan_to_num(np.abs(errors), nan=0.0), starts)
    if np.median((off <= _ROUNDING_LEFT_OUT[space.basis.dtype] * size)[checked]) < 1:
        return None
    spread = np.maximum.reduceat(np.abs(o.values - row_means()[o.rows]), starts)
    # Each entry has its own, because one may be huge.
    rounding = _SURELY_ROUNDING * np.finfo(space.basis.dtype).eps * np.abs(o.values)
    beyond = np.maximum.reduceat(np.nan_to_num(np.abs(errors), nan=0.0) - rounding, starts)
    return int((~fits)[checked].sum()) if np.median((beyond <= _OF_SPREAD * spread)[checked]) == 1 else None


def _pretend(o: Observations, rng) -> Observations | None:
    """Some of the full columns with entries hidden; None if there are too few for that.

    As many are left as the partial columns have, up to nearly all: columns that are still to come may have any number,
    and only those with more entries than directions tell how large the noise is.
    """
    m, d = o.shape[0], o.full_columns.size
    if d < 3 or m < 3:
        return None
    hidden = rng.choice(d, d // _PRETENDED[0] if d > _PRETENDED[1] else d // 2, replace=False)
    typical = np.median(o.n_observed[o.partial_columns]) if o.partial_columns.size else m / 4
    fewest = int(np.clip(typical, min(3, m - 1), m - 1))
    A = o.full_matrix()
    for k, s in zip(hidden, np.linspace(fewest, m - 1, hidden.size).astype(int)):
        A[rng.choice(m, m - s, replace=False), k] = np.nan
    return Observations.from_dense(A)


def _again(from_full: FullColumnModel, o: Observations, rank) -> FullColumnModel:
    """The settings of a model learned on pretended gaps, with the column space of all full columns."""
    center = from_full.space.center is not None
    limit = from_full.space.rank if from_full.has_chosen_rank or rank != "auto" else None
    limit = limit or None  # Equal columns about their means have no direction.
    space = fit_column_space(o, rank=limit, center=center)
    how = "chosen by cross-validation" if from_full.has_chosen_rank else _ALL_DIRECTIONS
    words = choices_in_words(space, center, from_full.noise_variance, rank, how)["rank"]
    return FullColumnModel(space, from_full.noise_variance, {**from_full.choices, "rank": words})


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A space with a noise variance, and its losses at the validation columns or, where these are few, entries."""

    losses: np.ndarray
    space: ColumnSpace
    noise_variance: float

    @property
    def error(self) -> float:
        return float(self.losses.mean()) if self.losses.size else 0.0


def _choose(space_with: Callable, asked: ValidationColumns, rank, center, shrinkage) -> FullColumnModel:
    """The center, offset, noise variance and rank with the least leave-one-out error."""
    centers = (True, False) if center == "auto" else (center,)
    offsets = _OFFSET_SHARES if center == rank == "auto" and shrinkage != 0 else (0.0,)
    spaces = [space for space in map(space_with, centers) if space.rank]
    if not spaces:
        return FullColumnModel(
            space_with(centers[0]), 0.0, choices_in_words(space_with(centers[0]), centers[0], 0.0, rank)
        )
    kinds = [(space, share) for space in spaces for share in offsets]
    # Beside the row means even numbers far from zero have a small variance, and the noise is a share of that.
    noise = _NOISE_SHARES * (spaces[0].entry_variance or 1.0) if is_auto(shrinkage) else np.array([float(shrinkage)])
    judged = [_judge(with_offset(*kind), asked, noise) for kind in kinds]
    whole = best = _best_of(judged)
    space, offset = whole.space, kinds[judged.index(whole)][1]
    if rank == "auto" and shrinkage == 0:  # All directions may have no prediction.
        shorter_ones = (_judge(truncated(space, r), asked, noise) for r in _ranks(space))
        best = min([whole, *shorter_ones], key=lambda c: c.error)
    elif rank == "auto" and (drop := _largest_drop(space)) is not None:
        shorter = _judge(truncated(space, drop), asked, noise)
        best = shorter if shorter.error <= _AS_GOOD * whole.error else whole
    how = _ALL_DIRECTIONS if best is whole else "chosen by cross-validation"
    choices = choices_in_words(best.space, space.center is not None, best.noise_variance, rank, how, offset)
    choices["fit"] = _fit_words(best, asked, spaces[0].center)
    has_chosen = rank == "auto" and best is not whole
    return FullColumnModel(best.space, best.noise_variance, choices, has_chosen_rank=has_chosen)


def _best_of(candidates: list[_Candidate]) -> _Candidate:
    """The first, unless a later one is better by more than chance; losses of all are at the same places."""
    best = candidates[0]
    for candidate in candidates[1:]:
        is_known = np.isfinite(best.error) and np.isfinite(candidate.error) and best.losses.size > 1
        is_better = is_no_chance(best.losses - candidate.losses, _LIKELY) if is_known else candidate.error < best.error
        best = candidate if is_better else best
    return best


def _judge(space: ColumnSpace, asked: ValidationColumns, noise) -> _Candidate:
    """The space with the best of some noise variances, and the losses with it."""
    losses, surprises = asked.judge(space, noise)
    noise = np.exp(with_midpoints(np.log(noise))) if noise.size > 1 else noise
    losses = losses_with_midpoints(losses)
    k = best_noise(losses, with_midpoints(surprises))
    return _Candidate(losses[:, k], space, float(noise[k]))


def _ranks(space: ColumnSpace) -> list[int]:
    """Ranks worth a try in plain least squares: a geometric ladder, and where the variances drop most."""
    return sorted({int(k) for k in [*rank_ladder(), *np.argsort(_steps(space))[:3] + 1] if 0 < k < space.rank})


def _largest_drop(space: ColumnSpace) -> int | None:
    """After how many directions the variances drop most, if they drop enough to be cut off there."""
    steps = _steps(space)
    return int(np.argmin(steps)) + 1 if steps.size and steps.min() < np.log(_STEP) else None


def _steps(space: ColumnSpace) -> np.ndarray:
    return np.diff(np.log(np.maximum(space.variances, 1e-300)))


def choices_in_words(space, center, noise_variance, rank, how="", offset=0.0) -> dict:
    """Rank, center and shrinkage in words."""
    count = f"{space.rank} direction{'' if space.rank == 1 else 's'}"
    reasons = ["as given" if rank != "auto" else how, "with a constant offset per column" if offset else ""]
    return {
        "rank": ", ".join([count, *filter(None, reasons)]),
        "center": "row means of the complete columns" if center else "none",
        "shrinkage": f"noise variance {noise_variance:.3g}" if noise_variance else "none, plain least squares",
    }


def _fit_words(best: _Candidate, asked: ValidationColumns, means) -> str:
    """How well the full columns explain the others, in words: beside the row means, or zero, if that is nearer."""

    def spread_about(center):
        return float(np.sqrt((asked.sizes(center) * asked.weights).mean()))

    about_means, about_zero = np.inf if means is None else spread_about(means), spread_about(None)
    spread, about = min((about_means, "the standard deviation about row means"), (about_zero, "a value's typical size"))
    share = np.sqrt(best.losses.mean()) / spread if spread else 0.0
    said = f"cross-validation: the typical error is {100 * share:.3g} % of {about}"
    if n_far := int(np.sum(asked.weights < 1)):
        what = "columns" if asked.by_columns else "entries"
        said += f" ({n_far} of {best.losses.size:,} {what} are predicted far worse and count less)"
    if share > 0.7:
        said += ": the complete columns explain little. The data are not of low rank, or need more complete columns"
    return said
