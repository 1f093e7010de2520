"""On a Dask cluster: the computation of `complete` and `complete_triples`, with blocks of columns solved by workers.

What is small is learned here, once; a block is solved wherever there is a worker, and begun again if that one dies.
The numbers are those of the local functions, to the last bit on processors of the same kind.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ..._support.arguments import as_choice, as_names, as_real, as_stages
from ..._support.storage import Url, as_path
from ...completion import Completion, Settings, checked_bounds, completed_by
from ...completion import complete as complete_in_memory
from ...data.observations import Observations
from ...files import FileForm, is_zarr, read
from ...files.tables.kinds import needed_module
from ...files.tables.reading import paths_of
from ...files.tables.zarr import opened_zarr
from ..blocks import carried_out, checked_settings, complete_triples
from ..memory import LEAST_MEMORY, MEMORY_SHARE, checked_memory
from ..run import Run
from ..triples.labels import TripleFiles
from .cluster import ClusterFailed, Work, connected
from .runs import Gathered, solve_parts, store_chunks
from .triples import engine_of
from .versions import refuse_other_versions

__all__ = ["ClusterFailed", "complete"]

_CHUNK_BYTES = "128 MiB"  # of columns, when chunks of rows are turned into such


def complete(
    x,
    client=None,
    *,
    out=None,
    rank="auto",
    center="auto",
    shrinkage="auto",
    refine="auto",
    bounds=None,
    random_state: int | None = None,
    method: str = "auto",
    key: str | None = None,
    transpose: bool = False,
    resume: bool = False,
    force: bool = False,
    memory_limit: float | None = None,
    worker_timeout: float = 60.0,
    progress: Callable | None = None,
    storage_options: dict | None = None,
    hive: bool = False,
    **reading,
) -> Completion:
    """Complete a matrix with the help of a Dask cluster.

    Without `out` the result is that of ``complete``, in memory. With `out` it is written by the workers, each block of
    columns into files of its own, and is that of ``complete_triples``, which learns from the full columns and a sample
    of the others. The folder must be one that all workers see.

    Parameters
    ----------
    x : Dask array of shape (m, n), path, several paths, or Observations
        An array has NaN where nothing is known; chunks of whole columns are taken as they are, others are turned into
        such. A path or an address names a Zarr array, or files of triples; without `out` any file that `read` takes,
        which this process reads. With `out` workers read and group the triples; this process sees no entry.
    client : distributed.Client or str, optional
        Or the address of a scheduler. Name only a scheduler you trust: Dask runs arbitrary code, here and on the
        workers, for whoever can reach it. Default: that of this process; if there is none, workers are started that
        listen on loopback only, and stopped at the end.
    out : path, optional
        The folder to write.
    rank, center, shrinkage, refine, bounds, random_state
        As in `complete`; with `out` a seed must be a number.
    method : {"auto", "factor model", "full columns"}
        "auto" learns from the full columns, or from all columns where none is full. With `out` it also does so where
        full columns hold less than a tenth of the entries and predict hidden entries worse.
    key, transpose
        As in `read`, for files.
    resume : bool
        With `out`: continue a run of the same input and settings that was interrupted. An array is recognised by its
        name, ``x.name``.
    force : bool
        Replace a folder that holds a completion, when the new one is complete.
    memory_limit : float, optional
        With `out`: bytes that a worker may use for a task, at least 6e8. Default: 60 % of the memory of the smallest
        worker.
    worker_timeout : float
        Seconds without any worker, or without an answer of the scheduler, after which to give up. A worker without a
        heartbeat for as long, such as a suspended one, is started anew, and others do its work.
    progress : function, optional
        Called as ``progress(stage, done, total)`` now and then.
    storage_options : dict, optional
        For the stores of addresses such as ``s3://bucket/folder``, in `x` and `out`; workers get them in memory only.
        Default: environment variables and files of configuration of this process and of the workers.
    hive : bool
        As in `read`: folders such as ``year=2020`` are columns of files of triples.
    reading
        Further keywords of `read`, or with `out` of `complete_triples`, for triples: row, column, value, ...

    Raises
    ------
    ClusterFailed
        If blocks, workers or the scheduler failed for good. Blocks in `out` that are finished stay, for `resume`.
    """
    settings = {"rank": rank, "center": center, "shrinkage": shrinkage, "refine": refine}
    settings |= {"bounds": bounds, "random_state": random_state, "method": method}
    timeout = as_real("worker_timeout", worker_timeout, 0, np.inf, "()")
    as_choice("transpose", transpose, (True, False))
    if isinstance(x, str):
        x = as_path(x, storage_options)
    array, names = _as_dask_array(x, key, transpose)
    report = as_stages(progress)
    if out is None:
        if resume or force or memory_limit is not None:
            raise ValueError("resume, force and memory_limit are for a run that writes into a folder; name it with out")
        if array is None and not isinstance(x, Observations):
            x = read(x, key=key, transpose=transpose, storage_options=storage_options, hive=hive, **reading)
        with connected(client, timeout) as found:
            work = Work(found, timeout)
            return _in_memory(work, x if array is None else array, names, report, **settings)
    if isinstance(x, Observations):
        raise TypeError("observations are in memory: complete them without out, and save the result")
    more = {"out": as_path(out, storage_options).absolute(), "resume": resume, "force": force, "progress": report}
    with connected(client, timeout) as found:
        refuse_other_versions(found)
        work = Work(found, timeout)
        more |= {"memory_limit": memory_of_task(work, memory_limit)}
        if array is None:
            more |= {"engine": engine_of(work), "storage_options": storage_options}
            paths = [
                path.absolute() for path in paths_of(x, storage_options, hive=hive)
            ]  # Workers run in folders of their own.
            return complete_triples(paths, transpose=transpose, **settings, **more, **reading)
        run = _run_of_chunks(work, array, names, settings, more["memory_limit"], report)
        asked = {"input": _identity(x, array, key, transpose), "settings": {**run.settings, "bounds": run.bounds}}
        return carried_out(run, more["out"], asked, resume=resume, force=force)


def memory_of_task(work: Work, limit) -> float | None:
    """Bytes that a task may use: the limit of the user, or the usual share of the smallest worker's memory."""
    found = work.memory()
    return limit if limit is not None or found is None else max(MEMORY_SHARE * found, LEAST_MEMORY)


def _in_memory(
    work: Work, data, names: dict, report: Callable, *, bounds, random_state, method, **settings
) -> Completion:
    """The completion of a Dask array or of observations; this process learns, and a factor model solves here too."""
    checked_settings(random_state=None, method=method, **settings)
    if isinstance(data, Observations):
        o, solve = data, partial(solve_parts, work, report)
    else:
        gathered = Gathered(work, data, names, report)
        o, solve = gathered.observations, gathered.solve
    free = Settings(**settings).given == []
    if method == "factor model" or (method == "auto" and free and not o.full_columns.size):
        more = {"rank": settings["rank"], "bounds": bounds, "random_state": random_state}
        return complete_in_memory(o, method="factor model", **more)
    return completed_by(solve, o, Settings(**settings), bounds, random_state, None)


def _run_of_chunks(work: Work, array, names: dict, settings: dict, memory_limit, progress: Callable) -> Run:
    """A run over a Dask array, every chunk a block."""
    bounds = checked_bounds(settings["bounds"])
    return Run(
        TripleFiles((), shape=array.shape),
        "error",
        checked_settings(**{name: value for name, value in settings.items() if name != "bounds"}),
        bounds,
        checked_memory(memory_limit),
        0,
        progress,
        replace(engine_of(work), group=partial(store_chunks, work, array, names)),
    )


def _as_dask_array(x, key, transpose: bool):
    """A Dask array in chunks of whole columns and the names of rows and columns; None if x is something else."""
    if isinstance(x, (os.PathLike, Url)) and is_zarr(as_path(x)):
        array, key, names = opened_zarr(as_path(x), key)
        da = needed_module("dask.array", "dask")
        x, form = da.from_zarr(array), FileForm("zarr", key=key, transposed=transpose)
        if transpose:
            x, names = x.T, {"row_names": names["column_names"], "column_names": names["row_names"]}
        checked = {
            side: as_names(side, names[side], size) for side, size in zip(("row_names", "column_names"), x.shape)
        }
        return _in_columns(x), {**checked, "origin": form}
    if not type(x).__module__.startswith("dask.array"):
        return None, {}
    if transpose:
        raise ValueError("transpose is for files; give x.T")
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"the array must have two dimensions, rows and columns, none of them 0; got shape {x.shape}")
    if any(np.isnan(size) for sizes in x.chunks for size in sizes):
        raise ValueError("the sizes of some chunks are not known: call x.compute_chunk_sizes() first")
    if x.dtype.kind not in "fiub":
        raise TypeError(f"the array must hold real numbers; got dtype {x.dtype}: convert it, for example astype(float)")
    return _in_columns(x), {}


def _in_columns(x):
    """The same array in chunks of whole columns."""
    if x.numblocks[0] == 1:
        return x
    import dask

    with dask.config.set({"array.chunk-size": _CHUNK_BYTES}):
        return x.rechunk({0: -1, 1: "auto"}, method="tasks")  # not p2p, which begins anew when a worker dies


def _identity(x, array, key, transpose: bool) -> list:
    """What tells whether the input has changed: the name of an array, or names, sizes and times of a Zarr's files."""
    if not isinstance(x, (os.PathLike, Url)):
        return [x.name, [int(size) for size in array.chunks[1]]]
    digest = hashlib.sha256()
    if isinstance(x, Url):
        for name, facts in x.facts_below():
            digest.update(f"{name} {facts.get('size')} {facts.get('ETag') or facts.get('mtime')}\n".encode())
        return [x.name, digest.hexdigest(), key, transpose, [int(size) for size in array.chunks[1]]]
    for path in sorted(path for path in Path(x).rglob("*") if path.is_file()):
        facts = path.stat()
        digest.update(os.fsencode(f"{path.relative_to(x)} {facts.st_size} {facts.st_mtime_ns}\n"))
    return [Path(x).name, digest.hexdigest(), key, transpose, [int(size) for size in array.chunks[1]]]
