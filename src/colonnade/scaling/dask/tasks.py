"""What the workers of a cluster do: entries from dense chunks, and columns solved; in memory, or from file to file.

Each task runs on one thread, because a worker has as many tasks at a time as it has threads. Tasks may run twice, also
at the same time; they write the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from json import dumps, loads

import numpy as np

from ..._support.numbers import refuse_rounded
from ..._support.threads import one_blas_thread
from ...data.observations import Observations, place_of
from ...files.results.block_files import Block, read_block, records, write_entries, write_solution
from ...model.column_space import ColumnSpace
from ..block_solving import solve_block, solve_together, solver_of

_TASKS_OF_A_THREAD = 4  # So that threads end at about the same time.
_PIECE_BYTES = 1 << 23  # of an array, that a task carries


def records_there(work, folder, kind: str) -> list[dict | None]:
    """The records of the blocks, read by a worker, because there is one for each."""
    return work.call(f"the records of {kind}", records, folder, kind)


def observations_of(chunk, first: int) -> Observations:
    """What is known of a chunk of whole columns; the first has the number `first`."""
    refuse_rounded(chunk, first)
    try:
        return Observations.from_dense(chunk)
    except ValueError:
        infinite = np.isinf(np.asarray(chunk, np.float64))
        if not infinite.any():
            raise
        i, j = np.argwhere(infinite)[0]
        raise ValueError(
            f"the entry at {place_of(i, first + j, (None, None))} is {np.asarray(chunk)[i, j]}"
            f" ({int(infinite.sum()):,} infinite in its block of columns); use NaN for what is not known"
        ) from None


def store_chunk(chunk, folder, k: int, first: int) -> None:
    """Write the entries of a chunk of columns as block k."""
    o = observations_of(chunk, first)
    block = Block(first, first + o.shape[1], o.indptr, o.rows, o.values)
    write_entries(folder, k, block, o.shape[0])


def solve_part(
    space: ColumnSpace, penalty: np.ndarray, typical: float, part: Observations, unused: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients, shape (columns, r), and status of some columns without the entries at some places in `values`."""
    with one_blas_thread():
        return solve_block(_writable(space), penalty, _writable(part).without(unused), typical=typical, n_threads=1)


def solve_stored(folder, k: int, record: dict, facts: dict, typical: float, m: int) -> None:
    """Read block k, solve it and write the solution."""
    solve, block = _solver(folder, dumps(facts)), read_block(folder, k, record)
    with one_blas_thread():
        solution = solve(block.first, block.observations(m), typical=typical, n_threads=1)
    write_solution(folder, k, *solution)


def solve_stored_together(folder, group: list[int], entries: list[dict], facts: dict, memory: float) -> None:
    """Solve some blocks with a basis that is read by blocks of rows; tasks of one worker share the memory."""
    from distributed import get_worker

    solve_together(folder, group, entries, facts, memory / get_worker().state.nthreads)


@lru_cache(maxsize=1)  # A worker reads what was learned once.
def _solver(folder, facts: str) -> Callable:
    return solver_of(folder, loads(facts))


def _writable(value):
    """The same with arrays that may be written to: of others, which messages bring, the kernel has no compiled form."""
    for name, array in vars(value).items():
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            object.__setattr__(value, name, array.copy())
    return value


def on_cluster(client, space: ColumnSpace):
    """A future of the column space that outlives every worker: its pieces are parts of tasks, which no worker holds."""
    U, step = space.basis, max(1, _PIECE_BYTES // max(1, space.basis.itemsize * space.rank))
    pieces = [client.submit(_same, U[lo : lo + step], pure=False) for lo in range(0, U.shape[0], step)]
    rest = space.singular_values, space.center, space.variances, space.noise_std, space.mean
    return client.submit(_joined, pieces, rest, pure=False)


def _same(piece):
    return piece


def _joined(pieces, rest) -> ColumnSpace:
    return ColumnSpace(np.concatenate(pieces), *rest)


def on_cluster_threads(work, pieces) -> list:
    """What `work` returns for each piece, computed by all workers; called in a task, which waits for them."""
    from distributed import worker_client

    pieces = list(pieces)
    with worker_client() as client:
        n_tasks = min(len(pieces), _TASKS_OF_A_THREAD * sum(client.nthreads().values()))
        edges = np.linspace(0, len(pieces), n_tasks + 1).astype(int)
        tasks = [client.submit(_each, work, pieces[lo:hi], pure=False) for lo, hi in pairwise(edges)]
        return [one for part in client.gather(tasks) for one in part]


def _each(work, pieces) -> list:
    with one_blas_thread():
        return [work(piece) for piece in pieces]
