"""A completion with further columns, filled by what was learned before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._support.arguments import shown
from .._support.threads import one_blas_thread
from ..data.frames import FrameForm
from ..data.observations import Observations
from ..data.xarrays import joined_origin, observations_like
from .extending import extended
from .full_columns.column_outliers import column_outliers, typical_entries_of
from .solve import Status, name_overflows, solve_columns


@one_blas_thread()
def extend_completion(completion, new_columns):
    """The completion of the table with the new columns appended; see `Completion.extend`."""
    _refuse_others(completion)
    o = completion.observations
    new = observations_like(o, new_columns)
    aside = getattr(new.origin, "aside", None)
    if aside is not None:
        raise ValueError(f"new columns must be numbers; {aside.in_words()} would be lost: leave them out")
    whole = append_columns(o, new)
    n_old, unused = o.shape[1], completion.unused
    if completion.learned is None:
        learned, (Z, status, places) = None, _by_full_columns(completion, whole.take(np.arange(n_old, whole.shape[1])))
        if unused is not None or places.size:
            old = np.zeros(0, np.int64) if unused is None else unused
            unused = np.concatenate([old, places + o.values.size])
    else:
        learned, Z, status = extended(completion.learned, _in_units_of(whole, o), n_old, completion.basis)
        with np.errstate(over="ignore"):
            Z = Z.astype(completion.coefficients.dtype)
        center = None if completion.center is None else np.nan_to_num(completion.center)
        name_overflows(completion.basis, center, Z.T, status)
    status[whole.n_observed[n_old:] == o.shape[0]] = Status.FULL
    count = whole.shape[1] - n_old
    words = f"{count:,} {'column' if count == 1 else 'columns'} added later; nothing was learned from them"
    solution = replace(
        completion.solution,
        observations=whole,
        coefficients=np.concatenate([completion.coefficients.T, Z.T]).T,  # A column's coefficients lie together.
        status=np.concatenate([completion.status, status]),
        unused=unused,
        learned=learned,
    )
    choices, run = completion.choices | {"extended": words}, {"n_columns_learned_from": n_old} | completion.run
    return replace(completion, solution=solution, choices=choices, run=run)


def _refuse_others(completion) -> None:
    if completion.solution.is_on_disk:
        raise ValueError("extend needs a completion in memory, not one in blocks on the disk; complete the whole again")
    if completion.learned is None and not completion.by_columns:
        method = completion.choices.get("method", "this method")
        raise ValueError(f"{method} cannot fill new columns by what it has learned; complete the whole table again")
    if completion.rank == 0:
        raise ValueError(
            "extend has nothing to fill new columns with, because no direction was learned; complete the whole table"
        )


def _by_full_columns(completion, new: Observations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients and status of new columns by the same space and penalty, and where entries have no part."""
    typical = typical_entries_of(completion.observations) or None
    unused = column_outliers(completion.space, new, completion.penalty, None)
    likely = new.without(unused)
    return *solve_columns(completion.space, likely, penalty=completion.penalty, typical=typical), unused


def _in_units_of(whole: Observations, o: Observations) -> Observations:
    """With weights in units of the usual one of the old columns, as the factor model was given them."""
    return whole.with_relative_weights(o.shape[1])


def append_columns(o: Observations, new: Observations) -> Observations:
    """The observations of both tables side by side; no new column counts as full, because nothing is learned from it.

    Names and the form of a frame go along where the first table has them.
    """
    if new.shape[0] != o.shape[0]:
        raise ValueError(f"new columns must have {o.shape[0]:,} rows as the table has; got {new.shape[0]:,}")
    if o.row_names is not None and new.row_names is not None and (o.row_names != new.row_names).any():
        i = int(np.argmax(o.row_names != new.row_names))
        raise ValueError(
            f"new columns must have the rows of the table in the same order; row {i} is {shown(o.row_names[i])} in the"
            f" table and {shown(new.row_names[i])} in the new columns"
        )
    with np.errstate(over="ignore"):
        values = new.values.astype(o.values.dtype)
    if not np.isfinite(values).all():
        raise ValueError(f"new columns have numbers that do not fit into {o.values.dtype}, the type of the table")
    names = _joined_names(o, new)
    return o.with_arrays(
        shape=(o.shape[0], o.shape[1] + new.shape[1]),
        indptr=np.concatenate([o.indptr, o.indptr[-1] + new.indptr[1:]]),
        rows=np.concatenate([o.rows, new.rows.astype(o.rows.dtype)]),
        values=np.concatenate([o.values, values]),
        weights=_joined_weights(o, new),
        column_names=names,
        origin=_joined_form(o, new, names),
    )


def _joined_weights(o: Observations, new: Observations) -> np.ndarray | None:
    if o.weights is None and new.weights is None:
        return None
    parts = [np.ones(x.values.size) if x.weights is None else x.weights for x in (o, new)]
    return np.concatenate(parts)


def _joined_names(o: Observations, new: Observations) -> np.ndarray | None:
    """Names of all columns; new ones without a name are called by their number. None if the table has no names."""
    if o.column_names is None:
        return None
    n, k = o.shape[1], new.shape[1]
    added = [str(n + j) for j in range(k)] if new.column_names is None else new.column_names.tolist()
    there = set(o.column_names)
    for name in added:
        if name in there:
            raise ValueError(f"new columns must have names of their own; the table has {shown(name)} already")
        there.add(name)
    names = np.empty(n + k, object)
    names[:n], names[n:] = o.column_names, added
    return names


def _joined_form(o: Observations, new: Observations, names):
    """The frame that came in, with the new columns as its last ones; of a file its form as it was."""
    form, other = o.origin, new.origin
    if not isinstance(form, FrameForm):
        return joined_origin(o, new)
    first, k = len(form.columns), new.shape[1]
    labels = range(first, first + k) if names is None else names[-k:].tolist() if k else []
    if form.library != "pandas":
        return replace(form, columns=[*form.columns, *map(str, labels)])
    import pandas

    if isinstance(other, FrameForm) and other.library == "pandas" and other.aside is None and names is not None:
        labels = other.columns
    added = labels if isinstance(labels, pandas.Index) else pandas.Index(labels)
    return replace(form, columns=form.columns.append(added))
