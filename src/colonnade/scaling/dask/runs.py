"""Blocks of columns worked off by a cluster: from a Dask array, from observations, or from file to file."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from ...data.observations import Observations, pointers_of
from ...data.sources import real_dtype
from ...files.results.block_files import absent
from ...model.full_columns.column_outliers import typical_entries_of
from ..run import Run
from ..triples.grouping import Triples
from ..triples.labels import Names
from .cluster import Work
from .tasks import observations_of, on_cluster, records_there, solve_part, store_chunk

_PART_ENTRIES = 1 << 18  # of observations that are sent to a worker
_PART_COLUMNS = 1 << 16


def _edges(array) -> np.ndarray:
    """Where the chunks of columns begin, and where the last ends."""
    return pointers_of(array.chunks[1])


def _named(edges) -> dict:
    return {k: f"columns {lo:,} to {hi - 1:,}" for k, (lo, hi) in enumerate(pairwise(edges))}


class Gathered:
    """The entries of a Dask array: here in one piece, and in blocks on the workers, where they are solved."""

    def __init__(self, work: Work, array, names: dict, report: Callable):
        import dask

        self._work, self._report, self._edges = work, report, _edges(array)
        chunks = array.to_delayed().ravel()
        first = self._edges.tolist()
        read_chunk = dask.delayed(observations_of, pure=False)

        def submit(keys):
            return work.client.compute([read_chunk(chunks[k], first[k]) for k in keys])

        self._blocks, parts = {}, {}
        for k, future in work.finished(_named(self._edges), submit):
            self._blocks[k], parts[k] = future, work.result(future)
            report("reading", len(parts), len(chunks))
        parts = [parts[k] for k in sorted(parts)]
        self.observations = _joined(array.shape, parts, first, names)

    def solve(self, space, observations, unused, *, penalty, progress=None):
        """Of the observations that were gathered, without those at some places; as `completed_by` calls it."""
        client = self._work.client
        common = on_cluster(client, space), penalty, typical_entries_of(observations)
        starts = observations.indptr[self._edges]

        def submit(keys):
            places = {k: unused[(unused >= starts[k]) & (unused < starts[k + 1])] - starts[k] for k in keys}
            return [client.submit(solve_part, *common, self._blocks[k], places[k], pure=False) for k in keys]

        return _solved(self._work, _named(self._edges), submit, self._report)


def _joined(shape, parts: list[Observations], first: list[int], names: dict) -> Observations:
    """Observations of neighbouring blocks of columns as one."""
    return Observations(
        tuple(int(size) for size in shape),
        pointers_of(np.concatenate([o.n_observed for o in parts])),
        np.concatenate([o.rows for o in parts]),
        np.concatenate([o.values for o in parts]),
        None,
        np.concatenate([o.full_columns + lo for o, lo in zip(parts, first)]),
        **names,
    )


def solve_parts(work: Work, report: Callable, space, observations, unused, *, penalty, progress=None):
    """The same; the observations travel with the tasks."""
    o, client, none = observations.without(unused), work.client, np.zeros(0, np.int64)
    edges = _parts(o)
    common = on_cluster(client, space), penalty, typical_entries_of(observations)

    def submit(keys):
        parts = (_columns(o, edges[k], edges[k + 1]) for k in keys)
        return [client.submit(solve_part, *common, part, none, pure=False) for part in parts]

    return _solved(work, _named(edges), submit, report)


def _parts(o: Observations) -> list[int]:
    """Where to cut the columns, so that no part has many more entries or columns than it should."""
    edges, n = [0], o.shape[1]
    while edges[-1] < n:
        lo = edges[-1]
        hi = int(np.searchsorted(o.indptr, o.indptr[lo] + _PART_ENTRIES))
        edges.append(min(max(hi, lo + 1), lo + _PART_COLUMNS, n))
    return edges


def _columns(o: Observations, lo: int, hi: int) -> Observations:
    """The observations of the columns lo..hi-1, without names."""
    at, first, last = slice(o.indptr[lo], o.indptr[hi]), *np.searchsorted(o.full_columns, [lo, hi])
    weights = None if o.weights is None else o.weights[at]
    indptr, full = o.indptr[lo : hi + 1] - o.indptr[lo], o.full_columns[first:last] - lo
    return Observations((o.shape[0], hi - lo), indptr, o.rows[at], o.values[at], weights, full)


def _solved(work: Work, names: dict, submit: Callable, report: Callable) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of all blocks, shape (r, n), and their status."""
    parts = {}
    for k, future in work.finished(names, submit):
        parts[k] = work.result(future)
        report("solving", len(parts), len(names))
    coefficients, status = zip(*(parts[k] for k in sorted(parts)))
    return np.concatenate(coefficients).T, np.concatenate(status)


def store_chunks(work: Work, array, names: dict, run: Run, folder: Path) -> tuple[Triples, Names, list[dict]]:
    """Let the workers write the blocks of entries that are not there yet; what `blocks.grouped` returns."""
    import dask

    (folder / "blocks").mkdir(exist_ok=True)
    edges, chunks = _edges(array).tolist(), array.to_delayed().ravel()
    todo = absent(records_there(work, folder, "entries"), len(chunks))
    store = dask.delayed(store_chunk, pure=False)

    def submit(keys):
        return work.client.compute([store(chunks[k], folder, k, edges[k]) for k in keys])

    done = len(chunks) - len(todo)
    named = _named(edges)
    for _ in work.finished({k: named[k] for k in todo}, submit):
        done += 1
        run.progress("reading", done, len(chunks))
    shape = tuple(int(size) for size in array.shape)
    triples = Triples((), run.given.fields, shape, real_dtype(array.dtype), 0)
    return triples, Names(names.get("row_names"), names.get("column_names")), records_there(work, folder, "entries")
