"""`complete`: from a table with gaps to a filled one, stage by stage."""

from __future__ import annotations

from inspect import signature

import numpy as np

from .._support.arguments import OR_AUTO, as_choice, as_count, as_generator, as_progress, as_seed, is_auto
from .._support.logs import logged, logger
from .._support.provenance import run_facts
from .._support.threads import one_blas_thread
from ..data.observations import Observations, as_observations
from ..data.set_aside import choices_of
from ..model.column_space import ColumnSpace
from ..model.factors import thin_factors
from ..model.full_columns.column_outliers import typical_entries_of, unused_entries
from ..model.full_columns.learn import FullColumnModel
from ..model.full_columns.nothing_full import leave_out, nothing_known, refuse_nothing_full
from ..model.full_columns.outlier_screening import NOTHING, Screening, Whole, found_at, in_partial_columns, screened
from ..model.full_columns.refine import learn_and_refine
from ..model.learned import Learned, outliers
from ..model.learner_choice import better_factor_model
from ..model.selection import learn_table
from ..model.solution import Solution
from ..model.solve import name_overflows, solve_columns
from .result import Completion
from .settings import OWN_METHODS, Settings, checked_bounds, checked_method, refuse_idle_settings
from .words import data_in_words, empty_rows_in_words, outliers_in_words


@logged
def complete(
    data,
    *,
    rank="auto",
    center="auto",
    shrinkage="auto",
    refine="auto",
    bounds=None,
    random_state=None,
    progress=None,
    ignore=(),
    only=None,
    orientation="auto",
    method="auto",
) -> Completion:
    """Fill the gaps of a table.

    With no settings the data decide. Exactly low-rank data are recovered exactly. Where no column is complete, or the
    rows have different units, a factor model is learned from all entries. Where some columns are complete, hidden
    entries choose between that model and a Gaussian prior estimated from the complete columns.
    ``complete(data, rank=r, center=False, shrinkage=0, refine=0)`` is exactly the paper's recovery: each column by
    least squares on its observed rows, in the space of the top r left singular vectors of the full columns.

    Parameters
    ----------
    data : Observations, array of shape (m, n), masked array, data frame or scipy sparse matrix
        NaN, masked and null entries are unseen; of a sparse matrix, those not stored.
    rank : int or "auto"
        The largest number of directions.
    center : bool or "auto"
        Take off the row means of the full columns first. "auto" does so under a prior, and adds an offset for each
        column. Like `shrinkage` and `refine` a setting of the method that learns from full columns.
    shrinkage : float or "auto"
        The variance of the noise, of an entry of weight 1 if there are weights: each direction is penalised by it over
        the direction's own variance. 0 is plain least squares. With 0 or "auto" only ratios of weights count, and the
        noise is that of an entry of the usual weight.
    refine : int or "auto"
        Number of sweeps over rows and columns, in which the partial columns improve the basis of the full ones.
        "auto" makes three, without the rows where these would take far longer than all else.
    bounds : (float, float), optional
        Keep predictions within them.
    random_state : None, int or numpy Generator
        Which entries are hidden to choose settings. None hides the same ones every time; rows or columns in another
        order may lead to other settings, about as good.
    progress : function or True, optional
        Called as ``progress(stage, done, total)`` now and then; True draws a bar, in a notebook or on a terminal.
    ignore : name or list of names
        Columns of a data frame that are no part of the matrix; `Completion.to_frame` returns them unchanged. So it
        does with columns of text, dates and Booleans, which need not be named.
    only : name or list of names, optional
        The only columns of a data frame that are the matrix. Default: all that hold numbers.
    orientation : {"auto", "columns", "rows"}
        Which side of the table is filled. "columns" gives every row its own unit and level, "rows" gives them to the
        columns. Default: what is complete decides, else the error of hidden entries.
    method : {"auto", "factor model", "full columns"} or a name in `colonnade.methods`
        "auto" chooses as described above; "full columns" always learns from full columns; "factor model" always learns
        from all entries; a name such as "als" runs that method with its own defaults.
    """
    settings = Settings(rank, center, shrinkage, refine)
    orientation = as_choice("orientation", orientation, ("auto", "columns", "rows"))
    method = checked_method(method)
    refuse_idle_settings(method, orientation, bounds, settings)
    observations = as_observations(data, ignore=ignore, only=only)
    random_state = as_seed(random_state)
    if method not in OWN_METHODS:
        return _by_method(method, observations, rank, random_state, progress)
    learned = None
    if not _needs_factor_model(observations, method, orientation, settings):
        if method == "auto" and settings.are_auto and observations.full_columns.size:
            learned = _better_factor_model(observations, orientation, random_state, progress)
        if learned is None:
            return completed_by(None, observations, settings, bounds, random_state, progress)
    completion = _by_factor_model(observations, rank, orientation, bounds, random_state, progress, learned)
    if method == "factor model":
        completion.choices["method"] = "factor model learned from all columns, as given"
    return completion


def chosen_method(o: Observations) -> tuple[str, str]:
    """The method with which `complete` fills a table without settings, and the reason in words if there are others."""
    if o.full_columns.size == 0 and o.values.size:
        return "factor model", ""
    learned = _better_factor_model(o, "auto", None, None) if o.full_columns.size else None
    return ("full columns", "") if learned is None else ("factor model", learned.choices["method"].partition(", ")[2])


def _needs_factor_model(o: Observations, method: str, orientation: str, settings: Settings) -> bool:
    """Whether only the model of all entries can do what was asked for."""
    if method != "auto":
        return method == "factor model"
    return not settings.given and o.values.size > 0 and (orientation == "rows" or o.full_columns.size == 0)


@one_blas_thread()
def _better_factor_model(o: Observations, orientation, random_state, progress) -> Learned | None:
    """The factor model, if it predicts hidden entries better than the full columns do."""
    return better_factor_model(o.with_relative_weights(), orientation, _seed(random_state), as_progress(progress))


def _seed(random_state) -> int:
    return 0 if random_state is None else int(as_generator(random_state).integers(2**31))


def _by_method(name: str, o: Observations, rank, random_state, progress) -> Completion:
    """A method of `colonnade.methods` that works on known entries."""
    from .. import methods

    method = getattr(methods, name)
    seed = 0 if random_state is None else random_state  # None hides the same entries every time.
    given = {"rank": rank, "max_rank": rank, "random_state": seed, "progress": progress}
    accepted = signature(method).parameters
    return method(o, **{k: v for k, v in given.items() if k in accepted and not (v is None or is_auto(v))})


@one_blas_thread()
def _by_factor_model(o: Observations, rank, orientation, bounds, random_state, progress, learned=None) -> Completion:
    """Learn from all entries, unless that has been done; see `model.selection`."""
    given = {"rank": rank, "orientation": orientation, "method": "factor model"}
    rank = rank if is_auto(rank) else as_count("rank", rank, 1, min(o.shape), OR_AUTO)
    bounds = checked_bounds(bounds)
    if o.values.size == 0:
        raise ValueError(nothing_known(o.shape))
    logger.debug("complete: learning from all columns")
    if learned is None:
        how = {"rank": rank, "orientation": orientation, "seed": _seed(random_state)}
        learned = learn_table(o.with_relative_weights(), **how, progress=as_progress(progress))
    solution = _solved_by_factor_model(learned, o, bounds)
    run = run_facts(**given, bounds=bounds, random_state=random_state)
    return Completion(solution, _words_of_factor_model(learned, solution), run)


def _solved_by_factor_model(learned: Learned, o: Observations, bounds) -> Solution:
    space, Z, status = thin_factors(learned, o)
    name_overflows(space.basis, None if space.center is None else np.nan_to_num(space.center), Z.T, status)
    return Solution(o, space, Z, status, bounds=bounds, by_columns=False, learned=learned)


def _words_of_factor_model(learned: Learned, solution: Solution) -> dict:
    o = solution.observations
    choices = choices_of(o.origin) | learned.choices | empty_rows_in_words(o, learned.is_turned)
    whole, names = Whole(o), o.names_in_messages
    choices |= outliers_in_words(found_at(o, outliers(learned, o.with_relative_weights())), names)
    return choices | data_in_words(whole, screened(whole), NOTHING, names, 0.0, solution.bounds)


@one_blas_thread()
def completed_by(solve, o: Observations, settings: Settings, bounds, random_state, progress) -> Completion:
    """Learn from full columns; `solve` is another way to solve the columns than `_solve_here`, called like it."""
    refuse_nothing_full(o, leave_out(settings.given or ["method"]))
    if settings.noise_is_relative:
        o = o.with_relative_weights()
    checked = settings.checked(o.shape[0], o.full_columns.size)
    bounds, progress = checked_bounds(bounds), as_progress(progress)
    screening = screened(Whole(o))
    from_full, optimism = _learned_from_full(o, screening, checked, random_state)
    logger.debug("complete: solving the columns in %d directions", from_full.space.rank)
    unused = unused_entries(from_full.space, o, from_full.penalty, screening)
    Z, status = (solve or _solve_here)(
        from_full.space, o, in_partial_columns(o, unused), penalty=from_full.penalty, progress=progress
    )
    solution = Solution(
        o,
        from_full.space,
        Z,
        status,
        from_full.noise_variance,
        bounds,
        optimism=optimism,
        moved_rows=from_full.moved_rows,
        unused=unused,
    )
    choices = choices_of(o.origin) | from_full.choices | _words_of_data(solution, screening)
    return Completion(solution, choices, run_facts(**vars(settings), bounds=bounds, random_state=random_state))


def _learned_from_full(
    o: Observations, screening: Screening, settings: Settings, random_state
) -> tuple[FullColumnModel, float]:
    """What is learned from the full columns, and how optimistic errors of entries left out are."""
    (m, n), d = o.shape, o.full_columns.size
    if d == n and is_auto(settings.rank):
        return every_column_is_full(m, o.values.dtype), 1.0
    logger.debug("complete: learning from %d full columns", d)
    rng = None if random_state is None else as_generator(random_state)
    return learn_and_refine(o, screening, **vars(settings), random_state=rng)


def every_column_is_full(m: int, dtype) -> FullColumnModel:
    """A column space without a direction, because nothing is to be filled."""
    none = np.zeros(0)
    space = ColumnSpace(np.zeros((m, 0), dtype), none, None, none, np.nan)
    return FullColumnModel(space, 0.0, {"rank": "0, because every column is complete"})


def _solve_here(space, observations, unused, *, penalty, progress):
    """Coefficients and status of all columns without the entries of partial ones at these places."""
    likely, typical = observations.without(unused), typical_entries_of(observations)
    return solve_columns(space, likely, penalty=penalty, typical=typical, progress=progress)


def _words_of_data(solution: Solution, screening: Screening) -> dict:
    o = solution.observations
    unused, names = found_at(o, in_partial_columns(o, solution.unused)), o.names_in_messages
    return data_in_words(Whole(o), screening, unused, names, solution.noise_variance, solution.bounds)
