"""Make a completion from measurements, also where columns that were read in full have gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...completion import Completion, complete
from ...data.observations import Observations
from ...model.full_columns.column_outliers import solve_without_outliers
from ...model.full_columns.outlier_screening import Whole, rare_code
from ...model.leaving_out import leave_one_out, size_of
from ...model.solution import Solution
from ._measuring import Measurements

_ASKED = 200  # Partial columns that decide whether odd columns, read in full, are learned from.


def completion_of(measurements: Measurements, survey, rank=None, noise_std=None, **settings) -> Completion:
    """The completion of all that was read; `settings` are those of `complete`.

    The column space is learned from the columns of the survey. Those read in full because they were off it count too if
    the partial columns are then predicted better.
    """
    observations = measurements.observations()
    if survey.rows is not None and survey.is_done:
        k = survey.basis.shape[1]
        return complete(observations, rank=k, center=False, shrinkage=0, refine=0)
    settings |= {} if noise_std is None else {"shrinkage": noise_std**2}
    learned = np.array(sorted(survey.full), np.int64)
    if learned.size == 0:
        raise ValueError(
            f"no column could be read in full: the source gave {observations.rows.size:,} entries and too many gaps to"
            " learn a column space from; what was read is the attribute observations of this exception"
        )
    answers = [_learned_from(observations, learned, rank, settings)]
    odd = np.setdiff1d(observations.full_columns, learned)
    if odd.size:
        answers.append(_learned_from(observations, np.union1d(learned, odd), rank, settings))
    return min(answers, key=lambda answer: _error(answer, learned, odd))


def _error(completion: Completion, learned, odd) -> float:
    """Mean square error of the entries of some partial columns, each predicted from its column's others."""
    o = completion.observations
    able = np.flatnonzero(o.n_observed > 1)
    able = np.setdiff1d(able, np.union1d(learned, odd))
    if not odd.size or not able.size:
        return 0.0
    asked = o.take(able[np.linspace(0, able.size - 1, min(_ASKED, able.size)).astype(int)])
    errors = leave_one_out(completion.space, asked, [completion.noise_variance])[0]
    errors = errors[np.isfinite(errors)] / size_of(o)
    return float(np.mean(errors**2)) if errors.size else 0.0


def _learned_from(observations: Observations, learned, rank, settings) -> Completion:
    """The completion that is learned from these columns; their gaps are filled before."""
    m = observations.shape[0]
    gaps = observations.n_observed[learned] < m
    o = replace(observations, full_columns=learned[~gaps])
    settings = settings if rank is None else {**settings, "rank": min(rank, m, learned.size)}
    if not gaps.any():
        return complete(o, **settings)
    A = without_gaps(o.take(learned).to_dense())
    learner = complete(_with_columns(o, learned, A), **settings)
    code = rare_code(Whole(o))
    coefficients, status, unused = solve_without_outliers(learner.space, o, penalty=learner.penalty, code=code)
    unseen = np.setdiff1d(np.arange(m), o.rows)
    choices = {**learner.choices, "gaps": f"filled in {int(gaps.sum()):,} of {learned.size:,} full columns to learn"}
    space = learner.space
    if unseen.size:
        basis, center = space.basis.copy(), None if space.center is None else space.center.copy()
        basis[unseen] = np.nan  # Nothing is known of these rows.
        if center is not None:
            center[unseen] = np.nan
        space = replace(space, basis=basis, center=center)
        choices["rows"] = f"{unseen.size:,} rows could not be read anywhere and are NaN, the first is {unseen[0]}"
    solved = {"observations": o, "space": space, "coefficients": coefficients, "status": status, "unused": unused}
    # More was learned from than the full columns of `o`, so certificates cannot compare with these alone.
    assert isinstance(learner.solution, Solution)  # It is in memory.
    solution = replace(learner.solution, moved_rows=False, **solved)
    return replace(learner, solution=solution, choices=choices)


def without_gaps(A) -> np.ndarray:
    """A with its gaps filled: each row is a column of A', predicted from the rows without gaps, else by its mean."""
    seen = np.isfinite(A)
    if seen.all():
        return A
    filled = A
    if seen.all(axis=1).any():
        filled = complete(A.T).to_dense().T
    counts = seen.sum(axis=1)
    means = (np.where(seen, A, 0) / np.maximum(counts, 1)[:, None]).sum(axis=1)  # A mean exists where a sum overflows.
    means = np.where(counts > 0, means, (A[seen] / max(1, seen.sum())).sum())
    return np.where(np.isfinite(filled), filled, means[:, None]).astype(A.dtype)


def _with_columns(o: Observations, columns, A) -> Observations:
    """The observations with these columns known in full as A."""
    m, n = o.shape
    kept = ~np.isin(o.entry_columns, columns)
    owner = o.entry_columns[kept]
    rows = np.concatenate([o.rows[kept], np.tile(np.arange(m), len(columns))])
    owner = np.concatenate([owner, np.repeat(columns, m)])
    values = np.concatenate([o.values[kept], A.ravel(order="F")])
    return replace(Observations.from_triplets(rows, owner, values, (m, n)), full_columns=np.asarray(columns))
