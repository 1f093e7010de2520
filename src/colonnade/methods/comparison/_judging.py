"""One method run on a task, and its answer held against the hidden entries."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...completion import Completion
from .. import tall_project_errors
from ._hiding import Hidden, rms
from ._methods import Task, row_means
from ._results import Finished, Result, one_line, percent

_ASKED_INTERVALS = 20_000  # Hidden entries whose intervals are computed; more change the share by less than 1 %.
_NORMAL = 1.6449  # Standard errors of a 90 % interval.
_LARGEST = np.finfo(np.float64).max


def judged(name: str, run, task: Task, hidden: Hidden) -> tuple[Result, np.ndarray]:
    """The result of a method, and its mean square error in every column, or row, that has hidden entries."""
    before = 0 if task.source is None else task.source.entries_read
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = run(task)
            seconds = time.perf_counter() - start
            predicted = _predictions(answer, task, hidden)
    except Exception as error:
        return Result(name, remark=one_line(error)), np.zeros(0)
    remarks = [one_line(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)][:1]
    read = 0 if task.source is None else task.source.entries_read - before
    entries = int(read or task.observations.rows.size)
    left_open = ~np.isfinite(predicted)
    if left_open.any():
        remarks.append(
            f"{percent(left_open.mean())} of the hidden entries were left open, and count as row mean and offset"
        )
        usual = row_means(task.observations).entries(hidden.rows[left_open], hidden.columns[left_open])
        predicted[left_open] = np.where(np.isfinite(usual), usual, 0.0)
    with np.errstate(over="ignore"):
        off = np.clip(predicted - hidden.values, -_LARGEST, _LARGEST)
    coverage, remark = _coverage(answer, hidden)
    relative = _in_units(off, hidden)
    result = Finished(name, rms(off), coverage, seconds, entries, "; ".join([*remarks, *remark]), rms(relative))
    return result, _losses(relative, hidden)


def _predictions(answer, task: Task, hidden: Hidden) -> np.ndarray:
    """What an answer says of the hidden entries, as float64 of its own."""
    if isinstance(answer, Completion):
        return answer.entries(hidden.rows, hidden.columns).astype(np.float64)
    array = np.asarray(answer)
    if array.shape != task.observations.shape or array.dtype.kind not in "fiub":
        what = f"{type(answer).__name__} of shape {array.shape}" if array.ndim else type(answer).__name__
        raise TypeError(f"it must return a Completion or numbers of shape {task.observations.shape}; got {what}")
    return array[hidden.rows, hidden.columns].astype(np.float64)


def _coverage(answer, hidden: Hidden) -> tuple[float | None, list[str]]:
    """The share of the hidden entries, or of some, that lie in their interval, if there are any; and remarks."""
    if not isinstance(answer, Completion):
        return None, []
    unseen = np.flatnonzero(answer.observations.locate(hidden.rows, hidden.columns) < 0)
    some = unseen[:: max(1, -(-unseen.size // _ASKED_INTERVALS))]
    values = hidden.values[some]
    try:
        low, high = _intervals(answer, hidden.rows[some], hidden.columns[some])
    except Exception as error:
        return None, [f"its intervals failed: {one_line(error)}"]
    known = np.isfinite(low) & np.isfinite(high)
    return (float(((low <= values) & (values <= high))[known].mean()) if known.any() else None), []


def _intervals(answer: Completion, rows, columns):
    """The ends of 90 % intervals, NaN where there are none."""
    if answer.by_columns or answer.learned is not None:
        return answer.interval(rows, columns, 0.9)
    if answer.choices.get("method") != "Tall-Project":
        return np.full((2, rows.size), np.nan)
    half = _NORMAL * tall_project_errors(answer, rows, columns, measured_anew=True)
    fitted = answer.entries(rows, columns)
    return fitted - half, fitted + half


def _in_units(off, hidden: Hidden) -> np.ndarray:
    """Sizes of errors in units of the spread of their rows or columns."""
    with np.errstate(over="ignore"):
        return np.minimum(np.abs(off) / hidden.units, 1e100)


def _losses(relative, hidden: Hidden) -> np.ndarray:
    """Mean square error of every column that has hidden entries, in units of the spread of rows or columns.

    Where the entries lie in more rows than columns, that of every row: few columns are too few to judge by.
    """
    sides = [np.unique(side, return_inverse=True)[1] for side in (hidden.columns, hidden.rows)]
    side = max(sides, key=lambda side: side.max())
    return np.bincount(side, relative**2) / np.bincount(side)
