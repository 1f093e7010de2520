"""Known entries that are predicted as if they were not known, which shows how far predictions are off.

Entries of partial columns are left out one at a time; `optimism` makes up for what was learned from them. In rows that
no partial column shows, such as places without a sensor, there is none to leave out. Full columns stand in: each in
turn keeps only the rows that some partial column shows, and is filled from the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._support.arguments import as_generator
from ..._support.numbers import HUGE
from ..._support.threads import one_blas_thread
from ...data.observations import Observations
from ..column_space import fit_column_space, with_offset
from ..leaving_out import FEW_ENTRIES, leave_one_out, squares_of_others
from ..posterior import deviations_of, plain_noise
from ..solve import Status, solve_columns
from .hidden_columns import FULL_CELLS, offset_beside
from .learn import penalty_of
from .optimism import optimism_of

_ASKED_ENTRIES = 20_000  # Entries of partial columns that are left out, about; more take time.
_BEYOND_CHANCE = 0.05  # Share of the rows that no partial column shows, beyond the share that chance leaves.
_FEWEST_FULL, _MOST_HIDDEN = 8, 100  # Full columns that are needed to hide some, and those that are hidden at most.
_FOLDS = 5  # Parts of the hidden full columns; each part is predicted from all others.
_ONE_DEVIATION = 0.6827  # Share of Gaussian errors below one deviation.


class HeldOutPredictions(NamedTuple):
    """Known entries that were predicted, shape (k,) each.

    Attributes
    ----------
    rows, columns : int arrays
        Entries of hidden full columns have a column of their own each: nothing else is known of such a column.
    predicted, errors, deviations : arrays
        The prediction, what the truth is beyond it, and how far off it was expected to be.
    weights : array
        Number of unseen entries that each stands for; 0 for none.
    is_left_out : bool array
        Whether it belongs to a partial column; else to a full one that was hidden.
    others : array
        Squares of the other entries' standardised errors without this one too, over those with it: `squares_of_others`.
    """

    rows: np.ndarray
    columns: np.ndarray
    predicted: np.ndarray
    errors: np.ndarray
    deviations: np.ndarray
    weights: np.ndarray
    is_left_out: np.ndarray
    others: np.ndarray


@one_blas_thread()
def predict_held_out(completion) -> HeldOutPredictions:
    """Predict entries of the partial columns of a completion, and of full ones in rows that no partial column shows."""
    columns = able_columns(completion)
    asked = completion.used.take(columns)
    errors, deviations = left_out(completion, asked)
    errors = errors * np.repeat(optimism_of(completion, columns), asked.n_observed)
    known = np.isfinite(errors) & (deviations > 0)
    shown = _shown_rows(completion.used)
    hidden = None if shown.all() else _of_full_columns(completion, shown)
    weights = unseen_shares(asked, asked.shape[0] if hidden is None else int(shown.sum()))
    found = HeldOutPredictions(
        rows=asked.rows[known],
        columns=columns[asked.entry_columns[known]],
        predicted=asked.values[known] - errors[known],
        errors=errors[known],
        deviations=deviations[known],
        weights=weights[known],
        is_left_out=np.ones(int(known.sum()), bool),
        others=squares_of_others(completion.space, asked, completion.noise_variance)[known],
    )
    if hidden is None:
        return found
    stands_for = asked.shape[1] * float((~shown).sum()) / hidden.rows.size
    return HeldOutPredictions(
        *map(np.concatenate, zip(found, hidden._replace(weights=np.full(hidden.rows.size, stands_for))))
    )


def able_columns(completion) -> np.ndarray:
    """Partial columns whose entries can be left out, evenly chosen where there are many."""
    o = completion.used
    partial = o.partial_columns
    able = partial[(o.n_observed[partial] > 1) & (completion.status[partial] != Status.OVERFLOW)]
    most = max(1, int(_ASKED_ENTRIES / max(1.0, np.median(o.n_observed[able])))) if able.size else 0
    return able[np.linspace(0, able.size - 1, most).astype(int)] if able.size > most else able


def left_out(completion, asked: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Errors and predicted deviations of the entries left out, shape (nnz,) each."""
    noise = completion.noise_variance
    errors, deviations = leave_one_out(completion.space, asked, [noise])
    unit = 1.0 if noise else plain_noise(completion)
    return errors[:, 0], deviations[:, 0] * unit


def unseen_shares(o: Observations, n_rows: int) -> np.ndarray:
    """Number of unseen entries of its column in so many rows that each observed one stands for, shape (nnz,).

    1 if none is unseen at all.
    """
    s = o.n_observed
    shares = np.repeat((n_rows - s) / np.maximum(s, 1), s)
    return shares if shares.any() or n_rows < o.shape[0] else np.ones(shares.size)


def _shown_rows(o: Observations) -> np.ndarray:
    """The rows that some partial column shows, shape (m,); all if no more are missing than chance would miss."""
    m, partial = o.shape[0], o.partial_columns
    counts = np.bincount(o.rows, minlength=m) - o.full_columns.size
    by_chance = float(np.prod(1 - o.n_observed[partial] / m))
    shown = counts > 0
    return shown if 1 - shown.mean() > by_chance + _BEYOND_CHANCE else np.ones(m, bool)


def _of_full_columns(completion, shown) -> HeldOutPredictions | None:
    """Entries of hidden full columns in the rows that are not shown; None if too few full columns, or none, tell."""
    o = completion.learned_from
    full, partial = o.full_columns, o.partial_columns
    if full.size < _FEWEST_FULL or not partial.size:
        return None
    most = max(2, FULL_CELLS // full.size // 2)
    rows = np.sort(np.concatenate([_evenly(np.flatnonzero(kind), most) for kind in (shown, ~shown)]))
    A = o.values[o.indptr[full] + rows[:, None]].astype(np.float64)
    rng, center = as_generator(0), completion.space.center is not None
    offset = offset_beside(completion.space, rows, A)
    asked_rows = np.flatnonzero(~shown[rows])
    found = []
    for fold in np.array_split(rng.permutation(full.size)[:_MOST_HIDDEN], _FOLDS):
        like = [o.rows[o.indptr[j] : o.indptr[j + 1]] for j in rng.choice(partial, fold.size)]
        is_seen = np.stack([np.isin(rows, seen) for seen in like], axis=1)
        space = fit_column_space(np.delete(A, fold, axis=1), rank=max(1, completion.rank), center=center)
        seen = Observations.from_dense(np.where(is_seen, A[:, fold], np.nan))
        most = max(1, _ASKED_ENTRIES // (_FOLDS * fold.size))
        at = _evenly(asked_rows, most)
        found.append(_of_fold(completion, with_offset(space, offset), seen, A[:, fold], rows, at))
    held_out = HeldOutPredictions(*map(np.concatenate, zip(*found)))
    apart = completion.shape[1] + np.arange(held_out.rows.size)
    return held_out._replace(columns=apart) if held_out.rows.size else None


def _of_fold(completion, space, seen: Observations, truth, rows, at) -> HeldOutPredictions:
    """The entries of some hidden columns in the rows `at` of these rows."""
    noise = completion.noise_variance
    Z, status = solve_columns(space, seen, penalty=penalty_of(space, noise))
    i, j = (x.ravel() for x in np.meshgrid(at, np.arange(truth.shape[1]), indexing="ij"))
    predicted = np.einsum("kr,kr->k", space.basis[i], Z.T[j]) + (0 if space.center is None else space.center[i])
    filled = np.isin(status, [s for s in Status if s.is_filled and s != Status.FULL])
    deviations = deviations_of(seen, space, noise, plain_noise(completion), filled, i, j)
    errors = truth[i, j] - predicted
    known = np.isfinite(errors) & (deviations > 0)
    weights, others = np.ones((2, i.size))
    own = HeldOutPredictions(rows[i], j, predicted, errors, deviations, weights, np.zeros(i.size, bool), others)
    return HeldOutPredictions(*(figures[known] for figures in own))


def _evenly(places, most: int) -> np.ndarray:
    return places if places.size <= most else places[np.linspace(0, places.size - 1, most).astype(int)]


class ErrorScales(NamedTuple):
    """Sizes of the errors, in the deviations that were predicted; 1 if these are right.

    A prior is chosen for its predictions, which may hardly depend on the noise where many entries are known.

    Attributes
    ----------
    typical : float
        68 % of the errors are smaller, as with Gaussian ones; a few columns that are off do not matter.
    of_left_out, of_left_out_squares : float
        The same, and the root mean square, of entries left out in rows that are seen; they show the noise.
    are_told : bool
        False if there are too few entries; all scales are 1 then.
    """

    typical: float = 1.0
    of_left_out: float = 1.0
    of_left_out_squares: float = 1.0
    are_told: bool = False


def error_scales(held_out: HeldOutPredictions) -> ErrorScales:
    """Scales of all errors, each for the unseen entries that it stands for, and of those of entries left out."""
    with np.errstate(over="ignore"):
        ratios = np.minimum(np.abs(held_out.errors) / held_out.deviations, HUGE)
    told, ours = ratios > 0, held_out.is_left_out & (ratios > 0)
    counted = told & (held_out.weights > 0)
    if min(counted.sum(), ours.sum()) < FEW_ENTRIES:
        return ErrorScales()
    order = np.argsort(ratios[counted])
    shares = np.cumsum(held_out.weights[counted][order])
    typical = ratios[counted][order][np.searchsorted(shares, _ONE_DEVIATION * shares[-1])]
    of_ours = float(np.quantile(ratios[ours], _ONE_DEVIATION))
    return ErrorScales(float(typical), of_ours, float(np.sqrt(np.mean(ratios[ours] ** 2))), True)


def noise_of(completion, scale: float) -> float:
    """The deviation of an entry about the column space, given what errors of entries left out are in deviations.

    Entries that a refinement has seen are nearer to it than the noise by about as much as hidden ones are farther. In
    plain least squares that of the full columns, NaN if they cannot tell.
    """
    if completion.noise_variance:
        return float(np.sqrt(completion.noise_variance / completion.optimism)) * scale
    return completion.space.noise_std
