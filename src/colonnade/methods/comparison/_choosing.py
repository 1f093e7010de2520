"""How the methods are run that choose themselves what they read of a source, under a budget of entries."""

from __future__ import annotations

from ... import methods
from ...completion import Completion
from ...data.sources import Source
from ...measuring.acquisition import acquire
from ..nystrom import complete_cross
from ._hiding import have_same_rows
from ._methods import Task


def _source_of(task: Task) -> Source:
    if task.source is None:
        raise ValueError(
            "it chooses itself what is measured; compare it on a Source or a matrix without gaps, with n_full_columns"
            " and n_entries (--full-columns and --entries)"
        )
    return task.source


def _rank_within_d(task: Task) -> int:
    return min(task.plain_rank, task.n_full_columns)


def _acquire(task: Task) -> Completion:
    return acquire(_source_of(task), budget=task.budget, rank=task.rank, random_state=task.seed)


def _nystrom(task: Task, cut: bool) -> Completion:
    """c columns and k = r c rows with c m + k n = d m + s n; for a square matrix c + k = d + s, as in the paper."""
    if task.source is None:
        return _nystrom_of_known(task, cut)
    (m, n), r, s = task.source.shape, task.plain_rank, task.n_entries
    cells = task.n_full_columns * m + s * n
    c = min(max(1, round(cells / (m + r * n))), n)
    k = min(max(1, round((cells - c * m) / n)), m)
    return methods.nystrom(
        task.source, n_columns=c, n_rows=k, rank=min(r, c, k) if cut else None, random_state=task.seed
    )


def _nystrom_of_known(task: Task, cut: bool) -> Completion:
    o = task.observations
    if o.full_columns.size == 0 or not have_same_rows(o):
        raise ValueError("it needs full columns, and all the others seen in the same rows")
    side = min(o.full_columns.size, int(o.n_observed[o.partial_columns[0]]))
    return complete_cross(o, rank=min(task.plain_rank, side) if cut else None)


def _cur_plus(task: Task) -> Completion:
    """A third of the budget for columns, for rows and for entries."""
    source, third = _source_of(task), task.budget // 3
    m, n = source.shape
    c, k = min(max(1, third // m), n), min(max(1, third // n), m)
    numbers = {"n_columns": c, "n_rows": k, "n_entries": max(1, third)}
    return methods.cur_plus(source, rank=min(task.plain_rank, c, k), **numbers, random_state=task.seed)


def _adaptive(task: Task) -> Completion:
    source, s = _source_of(task), _entries_of_every_column(task)
    share = 1.5 * task.noise_share
    tolerance = share if share > 1e-7 else None  # Exact data are fitted to rounding.
    return methods.adaptive_completion(
        source, n_entries=s, tolerance=tolerance, random_state=task.seed, progress=task.progress
    )


def _lifelong(task: Task) -> Completion:
    source, s = _source_of(task), _entries_of_every_column(task)
    return methods.lifelong_completion(
        source, n_entries=s, noise_bound=task.noise_share, random_state=task.seed, progress=task.progress
    )


def _entries_of_every_column(task: Task) -> int:
    """s such that s columns in full and s entries of all are within the budget."""
    shape = task.observations.shape
    return max(1, min(shape[0], task.budget // sum(shape)))


def _active(task: Task) -> Completion:
    source, d, s = _source_of(task), task.n_full_columns, task.n_entries
    by, rank = "residual" if s > d else "leverage", _rank_within_d(task)
    return methods.active_columns(
        source, by=by, rank=rank, n_full_columns=d, n_entries=s, random_state=task.seed, progress=task.progress
    )


def _whole(method):
    def run(task: Task) -> Completion:
        source, d = _source_of(task), task.n_full_columns
        return method(
            source, rank=_rank_within_d(task), n_full_columns=d, random_state=task.seed, progress=task.progress
        )

    return run


def _entrywise(task: Task) -> Completion:
    source = _source_of(task)
    share = min(1.0, task.budget / (source.shape[0] * source.shape[1]))
    return methods.entrywise_subsampling(source, rank=task.plain_rank, share=share, random_state=task.seed)


CHOOSING = {
    "acquire": _acquire,
    "nystrom": lambda task: _nystrom(task, cut=False),
    "nystrom_r": lambda task: _nystrom(task, cut=True),
    "cur_plus": _cur_plus,
    "adaptive_completion": _adaptive,
    "lifelong_completion": _lifelong,
    "active_columns": _active,
    "entrywise_subsampling": _entrywise,
}
WHOLE = {
    "norm_sampling": _whole(methods.norm_sampling),
    "adaptive_column_sampling": _whole(methods.adaptive_column_sampling),
}
