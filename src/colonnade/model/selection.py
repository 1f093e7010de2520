"""Learning the factor model of a table: the few settings that hidden entries decide, then the fit to all entries.

A tenth of the entries is hidden once. Each setting is judged by the errors there, in units of the spread of the entry's
row and of its column, so that neither side's units count. The standardised errors of the winner calibrate the
intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ..data.observations import Observations
from .exact import exact_fit
from .factor_model import FactorModel, Settings
from .gap_pattern import held_out_like_gaps
from .hidden_entries import (
    COMPLETE,
    FEW,
    HIDDEN_SHARE,
    OUTLIER,
    Fold,
    far_places,
    folds_of,
    hidden_places,
    in_gappy_columns,
    rows_decide,
)
from .learned import HeldOutEntries, Learned
from .leaving_out import is_no_chance
from .sweeps import Sweeps
from .table import ScaledTable, scaled_table, side_of_units

_BETTER = 0.997  # Of the error so far, which another setting must reach.
_BETTER_UNITS = 0.99  # Likewise for another side or one unit for all rows: equal tables in other units stay equal.
_CLEARLY_BETTER = 0.9  # Likewise for Student-t noise, which is for tables with outliers: it costs 2 to 10 % on others.
_LARGE = 300_000  # Entries beyond which fewer settings are tried, with fewer sweeps: time before the last 2 % of error.
_FIRST_DIRECTIONS = 25  # With which the other settings are tried;
_FIRST_OF_LARGE = 8  # of a large table, where each sweep costs 1/6 of one with 25 directions.
_MOST_DIRECTIONS = 50  # 25 costs up to 60 % on spectra with little noise, 100 gains nothing on the open sets.
_MOST_MEMORY = 1.5e9  # Bytes of all packed covariances; beyond it there are fewer directions.
_MOST_WORK = 2e10  # Multiplications of a sweep; likewise.
_SHORT_TAIL = 2e-4  # Of the prior's spectrum, for tables of truly low rank: there `TAIL` costs up to 10 %.
_LONG_TAIL = 0.2  # Likewise for tables whose spectrum hardly falls, such as pictures of digits: saves up to 6 % there.
_LITTLE_FIRST_NOISE = 0.01  # Variance of the noise, in units of a row's spread, with which sweeps may begin.
_DEGREES = 4.0  # Of Student-t noise where it predicts better than Gaussian noise.
_STOPS = 15, 30, 60, 120, 240  # Sweeps after which hidden entries are predicted, as long as that makes them better.
_TRIAL_STOPS = 2  # Of these, for a setting that is only tried.
_UNTESTED_SWEEPS = 80  # Where nothing is hidden.
_WARM_SWEEPS = 10  # Of a large table that begin at a model of it.
_TOLERANCE = 1e-4  # Relative change of the squared error in a sweep at which the sweeps end.
_LITTLE_NOISE = 1e-3  # Noise variance in units of the spread below which an exact fit is tried.


def first_trial(o: Observations, seed: int) -> HeldOutEntries | None:
    """Hidden entries of columns with gaps as the better of the first two settings predicts them.

    None if these columns have too few entries to hide some.
    """
    if in_gappy_columns(o).sum() * HIDDEN_SHARE < FEW:
        return None
    hidden = hidden_places(o, np.random.default_rng(seed))
    trials = _Trials(o, [hidden], False, lambda done, total: None)
    first = Settings(min(_most_directions(o, "auto"), _FIRST_DIRECTIONS))
    found = [trials.judge(False, settings) for settings in (first, replace(first, whiten=True))]
    return min(found, key=lambda c: c.error).held_out


def learn_table(
    o: Observations,
    *,
    rank="auto",
    orientation="auto",
    seed: int = 0,
    progress=None,
    memory: float = _MOST_MEMORY,
    may_be_exact: bool = True,
) -> Learned:
    """Choose the settings by hidden entries, then fit all of them.

    Parameters
    ----------
    o : Observations
        With at least one entry.
    rank : int or "auto"
        The largest number of directions.
    orientation : {"auto", "columns", "rows"}
        Which side has units, levels and noise of its own: "columns" fills columns and gives these to the rows.
    seed : int
        Which entries are hidden.
    progress : function, optional
        Called as ``progress(done, total)`` after each fit.
    memory : float
        Bytes of all packed covariances, which bound the rank that is found.
    may_be_exact : bool
        Whether a fit to rounding is tried; not if other columns, which are not there, may not fit.
    """
    report = progress or (lambda done, total: None)
    far, rng = far_places(o), np.random.default_rng(seed)
    folds = folds_of(o, far, rng)
    mixed = side_of_units(o) if orientation == "auto" else None
    sides = _sides(o, orientation, mixed)
    if folds:
        trials = _Trials(o, folds, far.size > 0, report, memory, mixed)
        winner = _choose(trials, sides, rank, orientation == "auto" and mixed is None)
    else:
        winner = _Candidate(sides[0], Settings(_most_directions(o, rank, memory)), None, None)
    report(4, 6)
    whole = o.transposed() if winner.is_turned else o
    table = scaled_table(whole, one_unit=winner.settings.one_unit)
    start = None if winner.start is None else _in_other_units(winner.start, table)
    sweeps = Sweeps(table, winner.settings, start)
    model = sweeps.run(winner.n_more, 0.0) if folds else sweeps.run(_UNTESTED_SWEEPS, _TOLERANCE)
    is_close = may_be_exact and float(np.median(model.noise)) < _LITTLE_NOISE
    exact = exact_fit(table, model, o.values.dtype) if is_close else None
    if winner.held_out is not None and exact is None:
        like_gaps = held_out_like_gaps(o, model, winner.is_turned, _LARGE, rng)
        winner = winner if like_gaps is None else replace(winner, held_out=like_gaps)
    report(6, 6)
    words = _in_words(winner, model, exact, orientation, rank, mixed, o)
    return Learned(exact or model, winner.is_turned, winner.held_out, exact is not None, words)


@dataclass(eq=False)
class _Candidate:
    """A setting, the model that it led to without the hidden entries, and its errors there.

    The final fit makes `n_more` sweeps from `start`, as the trial did: every sweep follows the entries a little closer,
    and scores of held-out entries hold only for a fit that has gone as far.
    """

    is_turned: bool
    settings: Settings
    model: FactorModel | None
    held_out: HeldOutEntries | None
    start: FactorModel | None = None
    n_more: int = 0
    sweeps: list[Sweeps] | None = None

    @property
    def error(self) -> float:
        """Of hidden entries in units of the side that has units of its own."""
        return self.held_out.by_column if self.is_turned else self.held_out.by_row

    def ratio(self, other: _Candidate) -> float:
        """Error of this candidate over that of the other; of two sides the geometric mean in units of either."""
        if self.is_turned is other.is_turned:
            return self.error / max(other.error, 1e-300)
        a, b = self.held_out, other.held_out
        return float(np.sqrt(a.by_row * a.by_column / max(b.by_row * b.by_column, 1e-300)))


class _Trials:
    """Fits to the entries that are not hidden, judged by those that are; of a small table for several folds."""

    def __init__(self, o: Observations, folds, has_far: bool, report, memory: float = _MOST_MEMORY, mixed=None):
        self.folds, self.is_large = [Fold(o, hidden) for hidden in folds], o.values.size > _LARGE
        self.seen, self.has_far, self.report = self.folds[0].seen[False], has_far, report
        self.memory, self.mixed = memory, mixed

    def most_directions(self, rank) -> int:
        return _most_directions(self.seen, rank, self.memory)

    def judge(self, is_turned: bool, settings: Settings, start: FactorModel | None = None) -> _Candidate:
        sweeps = [Sweeps(fold.table(is_turned, settings.one_unit), settings, start) for fold in self.folds]
        if not self.is_large:
            return self._best_stop(is_turned, sweeps, _STOPS[:_TRIAL_STOPS])
        model = sweeps[0].run(_STOPS[0] if start is None else _WARM_SWEEPS, 10 * _TOLERANCE)
        # The final fit of a large table begins where the trial ended.
        return replace(self._judged(is_turned, [model]), start=model, n_more=_WARM_SWEEPS)

    def is_better(self, other: _Candidate, best: _Candidate) -> bool:
        """Whether the other candidate takes the place of the best.

        Against the side that seems to have units of its own, only errors in these units count, and only if their
        difference is no chance.
        """
        if self.mixed is None or other.is_turned is best.is_turned:
            return other.ratio(best) < _needed(best, other)
        unit = np.concatenate([fold.units[self.mixed == "columns"] for fold in self.folds])
        with np.errstate(over="ignore"):
            before, after = (np.minimum(c.held_out.sizes / unit, OUTLIER) ** 2 for c in (best, other))
        return is_no_chance(before - after)

    def finished(self, best: _Candidate) -> _Candidate:
        """The best candidate after further sweeps, if these predict hidden entries better."""
        stops = [stop for stop in _STOPS if stop > best.model.n_sweeps]
        return self._best_stop(best.is_turned, best.sweeps, stops, best)

    def _best_stop(self, is_turned: bool, sweeps: list[Sweeps], stops, best: _Candidate | None = None) -> _Candidate:
        """The fit after as many sweeps as predict the hidden entries best.

        Noise that is not Gaussian, or more directions than the table bears out, are followed closer with every sweep.
        """
        for stop in stops:
            if best is not None and sweeps[0].n_sweeps > best.model.n_sweeps:
                break  # These further sweeps were tried and were worse.
            before = None if best is None else best.model
            models = [each.run(stop - each.n_sweeps, _TOLERANCE) for each in sweeps]
            found = self._judged(is_turned, models)
            n_more = models[0].n_sweeps - (0 if before is None else before.n_sweeps)
            found = replace(found, start=before, n_more=n_more, sweeps=sweeps)
            if best is None or found.ratio(best) < _BETTER:
                best = found
            if models[0].n_sweeps < stop:
                break
        return best

    def _judged(self, is_turned: bool, models: list[FactorModel]) -> _Candidate:
        found = [fold.predicted(is_turned, model) for fold, model in zip(self.folds, models)]
        return _Candidate(is_turned, models[0].settings, models[0], reduce(HeldOutEntries.joined, found))


def _sides(o: Observations, orientation: str, mixed: str | None) -> tuple[bool, ...]:
    """Whether the model is turned: as given, as complete rows say, or both, which hidden entries decide.

    A side whose lines seem to differ in unit comes first, and stays where there are few entries to test it.
    Gaps beside complete rows may follow a pattern, as where an instrument reads some wavelengths only. Hidden entries
    lie where it reads, and tell nothing of the other wavelengths.
    """
    if orientation != "auto":
        return (orientation == "rows",)
    if mixed is not None:
        return mixed == "columns", mixed != "columns"
    if o.full_columns.size >= COMPLETE:
        return (False,)
    return (True,) if rows_decide(o) else (False, True)


def _choose(trials: _Trials, sides, rank, may_share_unit: bool) -> _Candidate:
    """The setting with the least error: each side with common noise, then one change after the other."""
    most = trials.most_directions(rank)
    degrees = _DEGREES if trials.has_far else np.inf
    few = _FIRST_OF_LARGE if trials.is_large else _FIRST_DIRECTIONS
    first = Settings(min(most, few) if rank == "auto" else most, degrees=degrees)
    best = trials.judge(sides[0], first)
    trials.report(1, 6)
    for change in _changes(sides, trials, may_share_unit):
        side, settings = change(best)
        # The sweeps of a large table begin where the best ones ended, which saves most of them.
        start = best.model if trials.is_large and side is best.is_turned else None
        other = trials.judge(side, settings, start)
        if trials.is_better(other, best):
            best = other
    if rank == "auto":
        best = (_with_more_directions if trials.is_large else _with_other_rank)(trials, best)
    trials.report(3, 6)
    return best if trials.is_large else trials.finished(best)


def _changes(sides, trials: _Trials, may_share_unit: bool) -> Iterator:
    """Other sides and settings than those of the best candidate; of a large table only those that matter most."""
    for side in sides[1:]:
        yield lambda c, side=side: (side, c.settings)
    if trials.is_large:
        yield lambda c: (c.is_turned, replace(c.settings, row_noise=True))
        return
    if may_share_unit:  # A side that was asked for has units of its own.
        yield lambda c: (c.is_turned, replace(c.settings, one_unit=True))
    n_full = _n_complete(trials.seen, sides)
    if 2 < n_full <= _FIRST_DIRECTIONS:
        yield lambda c: (c.is_turned, replace(c.settings, rank=n_full - 1))
    if n_full:
        yield lambda c: (c.is_turned, replace(c.settings, whiten=True))
    yield lambda c: (c.is_turned, replace(c.settings, first_noise=_LITTLE_FIRST_NOISE))
    yield lambda c: (c.is_turned, replace(c.settings, tail=_SHORT_TAIL))
    yield lambda c: (c.is_turned, replace(c.settings, row_noise=True))
    yield lambda c: (c.is_turned, replace(c.settings, degrees=np.inf if np.isfinite(c.settings.degrees) else _DEGREES))


def _needed(best: _Candidate, other: _Candidate) -> float:
    """Ratio of the errors below which the other candidate takes the place of the best."""
    if np.isfinite(other.settings.degrees) and not np.isfinite(best.settings.degrees):
        return _CLEARLY_BETTER
    same = best.is_turned is other.is_turned and best.settings.one_unit == other.settings.one_unit
    return _BETTER if same else _BETTER_UNITS


def _with_more_directions(trials: _Trials, best: _Candidate) -> _Candidate:
    """Twice as many directions, as long as they predict a large table better."""
    most = trials.most_directions("auto")
    while best.settings.rank < most:
        more = replace(best.settings, rank=min(most, 2 * best.settings.rank))
        other = trials.judge(best.is_turned, more, best.model)
        if other.ratio(best) >= _BETTER:
            break
        best = other
    return best


def _with_other_rank(trials: _Trials, best: _Candidate) -> _Candidate:
    """Twice as many directions, also with a longer tail, if they predict better; else half as many if these do."""
    most, first = trials.most_directions("auto"), best.settings.rank
    n_full = _n_complete(trials.seen, (best.is_turned,))
    twice = min(most, max(2 * first, n_full - 1)) if first >= _FIRST_DIRECTIONS or not n_full else first
    more = [replace(best.settings, rank=twice, tail=tail) for tail in (best.settings.tail, _LONG_TAIL)]
    fewer = [replace(best.settings, rank=max(1, first // 2))]
    for some in (more, fewer):
        others = [trials.judge(best.is_turned, settings) for settings in some if settings.rank != first]
        other = min(others, key=lambda c: c.error, default=best)
        if other.ratio(best) < _BETTER:
            return other
    return best


def _most_directions(o: Observations, rank, memory: float = _MOST_MEMORY) -> int:
    """The bound on the rank: what was asked for, or what the table, memory and time allow."""
    m, n = o.shape
    most = max(1, min(m, n) - 1)
    if rank != "auto":
        return min(rank, most)
    by_memory = np.sqrt(memory / (8 * (m + n)))
    n_full = o.full_columns.size
    # Sums over full columns are shared by all rows.
    by_work = np.sqrt(_MOST_WORK / max(1, o.values.size - n_full * m))
    return max(1, int(min(most, max(_MOST_DIRECTIONS, n_full - 1), by_memory, by_work)))


def _n_complete(o: Observations, sides) -> int:
    """Number of complete columns of the model's table."""
    if sides[0]:
        return int(np.count_nonzero(np.bincount(o.rows, minlength=o.shape[0]) == o.shape[1]))
    return int(o.full_columns.size)


def _in_other_units(model: FactorModel, table: ScaledTable) -> FactorModel:
    """A model learned in nearly the same units, as a start for a table that has its own."""
    known = (table.unit > 0) & (model.unit > 0)
    divisor = np.where(known, table.unit, 1.0)
    with np.errstate(over="ignore"):
        ratio = np.where(known, model.unit / divisor, 1.0)
        moved = np.where(known, (model.shift - table.shift) / divisor, 0.0)
    ratio, moved = np.clip(ratio, 0.1, 10.0), np.clip(moved, -10.0, 10.0)  # It is only a start.
    U = model.U * ratio[:, None]
    U[:, -1] += moved
    return replace(model, U=U, row_covariance=model.row_covariance * (ratio**2)[:, None])


def _in_words(winner: _Candidate, model: FactorModel, exact, orientation, rank, mixed, o: Observations) -> dict:
    """What `choices` says."""
    filled, other = ("rows", "columns") if winner.is_turned else ("columns", "rows")
    why = "as given" if orientation != "auto" else "chosen by cross-validation" if winner.model is not None else ""
    if mixed == other:
        why = f"because {mixed} differ in unit"
    elif orientation == "auto" and mixed is None and rows_decide(o):
        why = "because some rows and no columns are complete"
    own = "level" if winner.settings.one_unit else "unit and level"
    noise = f"each {other[:-1]} has its own variance" if winner.settings.row_noise else f"one variance for all {other}"
    most = f"at most {model.rank}" + ("" if rank == "auto" else ", as given")
    words = {
        "method": "factor model learned from all columns"
        + (", because every column has gaps" if o.full_columns.size == 0 else ""),
        "orientation": f"{filled}; each {other[:-1]} has its own {own}" + (f" ({why})" if why else ""),
        "rank": most if exact is None else f"{exact.rank}",
        "noise": noise + (", with Student-t tails for outliers" if np.isfinite(winner.settings.degrees) else ""),
        "sweeps": f"{model.n_sweeps}",
    }
    if exact is not None:
        words["noise"] = "none"
        words["fit"] = "the known values fit exactly, up to rounding"
    elif winner.held_out is not None:
        words["fit"] = (
            f"cross-validation: the typical error is {100 * winner.error:.3g} % of the data's standard deviation"
        )
    else:
        words["fit"] = f"not tested, because {o.values.size} known values are too few to hide some"
    return words
