"""Methods compared on your own data: hide what is known, let each predict it, and see who is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..._support.arguments import as_count, as_generator, as_progress, as_real, shown
from ..._support.threads import one_blas_thread
from ...completion import complete
from ...data.observations import as_observations
from ...data.sampling import observe
from ...data.sources import Source
from ._advice import advise
from ._choosing import CHOOSING, WHOLE
from ._hiding import Hidden, hide, sample
from ._judging import judged
from ._methods import MEANS, NEED_FULL_COLUMNS, ON_DATA, Task
from ._results import Comparison, Finished, Result

__all__ = ["MEANS", "METHODS", "Comparison", "Result", "compare"]

METHODS = ON_DATA | CHOOSING | WHOLE


@one_blas_thread()
def compare(
    data,
    methods=None,
    *,
    holdout: float = 0.1,
    rank: int | None = None,
    n_full_columns: int | None = None,
    n_entries: int | None = None,
    random_state=0,
    progress=None,
) -> Comparison:
    """Run methods on the same data and measure how well they predict entries that they were not shown.

    In data with gaps, a share of the entries of every partial column is hidden. A Source, or a matrix without gaps, is
    sampled: methods that work on known entries get d full columns and s entries of every other column, as `observe`
    draws them. Methods that choose read about as many. They are judged by entries drawn from the whole matrix; those
    that a method has read count as exact. That is the comparison of Section 4.2 of Wan, Yi and Zhang (2018), with
    ``methods=["algorithm1", "nystrom", "nystrom_r"]``.

    Parameters
    ----------
    data : Observations, array of shape (m, n), masked array, data frame, scipy sparse matrix or Source
    methods : list of names or functions, or a dict of them by the name to show; optional
        "complete", what `complete` does without settings; "algorithm1", plain least squares on full columns;
        "row_means", with an offset for each column; "column_means"; "acquire"; the names in `colonnade.methods`, and
        "nystrom_r", which is Nystrom cut to the rank. A function takes Observations and returns a Completion or an
        array of shape (m, n). Default: all that the data allow and that do not read the whole matrix.
    holdout : float in (0, 1)
        The share that is hidden; of a source, this share of the budget is read beyond it, to judge by.
    rank : int, optional
        Maximum rank. Default: chosen by each method, or by leaving out entries.
    n_full_columns, n_entries : int, optional
        d and s, for a Source or a matrix without gaps.
    random_state : None, int or numpy Generator
    progress : function, optional
        Called as ``progress(stage, done, total)`` now and then; of `total` methods, `done` with fractions.

    Returns
    -------
    Comparison
        Printing it gives the table. A method that fails has a line with the reason. After Ctrl-C it holds the methods
        that had finished.

    Examples
    --------
    >>> import numpy as np, colonnade as co
    >>> rng = np.random.default_rng(0)
    >>> M = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 80))
    >>> M[rng.random(M.shape) < 0.5] = np.nan
    >>> M[:, :8] = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 8))
    >>> comparison = co.compare(M, ["complete", "row_means"])
    >>> [result.method for result in comparison.results]
    ['complete', 'row_means']
    """
    rng = as_generator(random_state)
    holdout = as_real("holdout", holdout, 0, 1, "()")
    chosen, progress = _chosen(methods), as_progress(progress)
    seed = int(rng.integers(2**31))
    if isinstance(data, Source) or n_full_columns is not None or n_entries is not None:
        source = _source_of(data)
        task = _task_of_source(source, n_full_columns, n_entries, seed)
        hidden = sample(source, task.observations, max(1, int(holdout * task.budget)), rng)
    else:
        known, hidden = hide(as_observations(data), holdout, rng)
        task = Task(known, None, seed)
    if rank is not None:
        task = replace(task, rank=as_count("rank", rank, 1, min(task.observations.shape)))
    return _run(task, hidden, chosen or _usual(task), progress)


def _usual(task: Task) -> dict:
    """All methods that the data allow and that do not read the whole matrix."""
    if task.source is not None:
        return ON_DATA | CHOOSING
    able = task.observations.full_columns.size > 0
    return {name: run for name, run in ON_DATA.items() if able or name not in NEED_FULL_COLUMNS}


def _source_of(data) -> Source:
    """The data as a source; they must have no gaps."""
    if isinstance(data, Source):
        return data
    if type(data) in (np.ndarray, np.memmap):
        return Source(data)
    o = as_observations(data)
    if o.full_columns.size < o.shape[1]:
        raise ValueError(
            f"n_full_columns and n_entries (--full-columns and --entries) are for data without gaps, and"
            f" {o.shape[1] - o.full_columns.size:,} of {o.shape[1]:,} columns have some; leave them out"
        )
    return Source(o.full_matrix())


def _task_of_source(source: Source, n_full_columns, n_entries, seed: int) -> Task:
    if n_full_columns is None or n_entries is None:
        raise ValueError(
            "n_full_columns and n_entries (--full-columns and --entries) are needed together: they say how many"
            " entries of a source the methods may read"
        )
    m, n = source.shape
    d, s = as_count("n_full_columns", n_full_columns, 1, n), as_count("n_entries", n_entries, 1, m)
    drawn = observe(source, n_full_columns=d, n_entries=s, random_state=seed)
    return Task(drawn, None, seed, source=source, n_full_columns=d, n_entries=s)


def _chosen(methods) -> dict:
    """A function of a Task for each method by its name; none if methods is None."""
    if methods is None:
        return {}
    if isinstance(methods, str) or callable(methods):
        methods = [methods]
    if not isinstance(methods, (Mapping, list, tuple)) or not methods:
        raise TypeError(f"methods must be a list or dict of names or functions; got {shown(methods)}")
    pairs = methods.items() if isinstance(methods, Mapping) else [(None, method) for method in methods]
    chosen = {}
    for name, method in pairs:
        usual, run = _method(method)
        name = usual if name is None else str(name)
        if name in chosen:
            raise ValueError(f"two methods are called {shown(name)}; give a dict with a name for each")
        chosen[name] = run
    return chosen


def _method(method) -> tuple:
    """The usual name of a method, and a function of a Task."""
    if callable(method):
        return getattr(method, "__name__", type(method).__name__), lambda task: method(task.observations)
    if isinstance(method, str) and method in METHODS:
        return method, METHODS[method]
    raise ValueError(f"there is no method {shown(method)}; there are {', '.join(METHODS)}, or give a function")


def _run(task: Task, hidden: Hidden, chosen: dict, progress) -> Comparison:
    results: list[Result] = []
    losses, interrupted = {}, False
    try:
        _load_kernel(task.observations.values.dtype)
        for k, (name, run) in enumerate(chosen.items()):
            part = progress and (lambda done, total, k=k: progress(k + done / max(total, 1), len(chosen)))
            result, losses[name] = judged(name, run, replace(task, progress=part), hidden)
            results.append(result)
            if progress is not None:
                progress(k + 1, len(chosen))
    except KeyboardInterrupt:
        interrupted = True
        results += [Result(name, remark="interrupted") for name in list(chosen)[len(results) :]]
    finished = sorted((one for one in results if isinstance(one, Finished)), key=lambda one: one.relative_error)
    results = [*finished, *(one for one in results if not isinstance(one, Finished))]
    advice = advise(finished, losses, hidden.relative_spread)
    return Comparison(results, task.observations.shape, hidden.values.size, hidden.spread, *advice, interrupted)


def _load_kernel(dtype) -> None:
    """What is compiled is loaded before anything is timed."""
    tiny = np.ones((4, 4), dtype)
    tiny[0, 0] = np.nan
    complete(tiny)
