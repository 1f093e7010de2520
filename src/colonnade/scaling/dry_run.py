"""What a completion of large files will need, before it is begun: memory, disk and time, from footers and a sample."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._support.storage import read_ends
from ..data.observations import Observations, index_dtype
from ..files.tables.kinds import TIMES_TEXT, in_bytes, kind_of
from ..files.tables.parquet import is_text, opened
from ..files.tables.triples import BYTES_IN_MEMORY
from ..model.column_space import ColumnSpace
from .block_solving import solve_block
from .blocks import BLOCK_ENTRIES
from .memory import OWN_MEMORY
from .triples.grouping import Triples, asked_of_duckdb, label_range, may_be_ordered, pieces
from .triples.labels import TripleFiles
from .triples.sorted_runs import RUN_LINES

_BYTES_ON_DISK = 12  # of an entry of the result
_BYTES_OF_SORTING = 30  # of an entry on the disk while it is sorted
_SAMPLE = 1 << 20
_DISK_RATE = 2e8  # bytes a second that are written, assumed
_USUAL_RANK = 20  # where it is not given
WORKER_THREADS = 4  # Of a worker in the estimate for a cluster.
_BYTES_OF_A_TASK = 100  # Of an entry while a run is sorted or a block is merged; assumed, as for blocks on one machine.
_BYTES_OF_A_RUN = 20  # Of an entry in a run, with its counts of columns.
_GROUPING = 2.6e-7  # Processor seconds of an entry before solving: 6/7 of 4.2 s for 14 million, in one run.
_WANTED_SECONDS = 600.0  # In which the suggested workers finish.
_CLUSTER_SECONDS = 10.0  # Of the stages that one worker does, and of scheduling; assumed, not measured.


@dataclass(frozen=True)
class Estimate:
    """What a run will need.

    Attributes
    ----------
    n_entries : int
    shape : (int, int) or None
        None if it is not known before all labels have been read.
    is_ordered : bool
        Whether the entries seem to be in the order of columns and rows already.
    rank : int
        For which it holds.
    in_memory : float
        Bytes that all of it would need in memory.
    disk, scratch : float
        Bytes of the result, and more of them while it is made.
    seconds : float
    processor : float
        Seconds of one processor that the workers of a cluster need in all.
    """

    n_entries: int
    shape: tuple[int, int] | None
    is_ordered: bool
    rank: int
    in_memory: float
    disk: float
    scratch: float
    seconds: float
    processor: float = 0.0

    def in_words(self, memory: float) -> list[str]:
        size = (
            "of a shape not known yet" if self.shape is None else f"of a {self.shape[0]:,} x {self.shape[1]:,} matrix"
        )
        order = "in the order of columns" if self.is_ordered else "not in order, to be sorted"
        return [
            f"Input: {self.n_entries:,} entries {size}, {order}.",
            f"Memory: at most {in_bytes(memory)}; {in_bytes(self.in_memory)} would hold everything at once.",
            f"Disk: about {in_bytes(self.disk)} for the result at rank {self.rank},"
            f" and {in_bytes(self.scratch)} more while it is made.",
            f"Time: about {_duration(self.seconds)} on this machine.",
        ]

    def for_cluster(self) -> list[str]:
        """Memory of a worker, and how many workers fill the data in ten minutes."""
        m = 0 if self.shape is None else self.shape[0]
        memory = WORKER_THREADS * _BYTES_OF_A_TASK * max(RUN_LINES, BLOCK_ENTRIES) + 16.0 * m * self.rank + OWN_MEMORY
        n_workers = max(1, int(np.ceil(self.processor / _WANTED_SECONDS / WORKER_THREADS)))
        seconds = self.processor / (n_workers * WORKER_THREADS) + _CLUSTER_SECONDS
        scratch = in_bytes(_BYTES_OF_A_RUN * float(self.n_entries))
        return [
            f"Cluster: about {_duration(self.processor)} of processor time; {scratch} more in the store until the end.",
            f"Workers: {n_workers:,} with {WORKER_THREADS} threads and {in_bytes(memory)} of memory each, for about"
            f" {_duration(seconds)}.",
        ]


def bytes_in_memory(given: TripleFiles) -> float:
    """That completing these files at once would need, about."""
    kind = kind_of(given.paths[0])
    return BYTES_IN_MEMORY * float(_count(given, kind)) + TIMES_TEXT * _bytes_of_names(given, kind)


def _bytes_of_names(given: TripleFiles, kind: str) -> float:
    """Text of labels: in Parquet files as the footers tell, each name of a dictionary once; in others all there is."""
    if kind == "csv":
        return float(sum(path.stat().st_size for path in given.paths))
    size = 0.0
    for path in given.paths:
        file = opened(path)
        named = [name for name in given.fields[:2] if name in file.schema_arrow.names]
        text = [name for name in named if is_text(file.schema_arrow.field(name).type)]
        places = [j for j, name in enumerate(file.metadata.schema.names) if name in text]
        groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
        size += sum(group.column(j).total_uncompressed_size for group in groups for j in places)
    return size


def estimate(given: TripleFiles, rank: int | None = None) -> Estimate:
    """From footers, first lines, and a sample that is read, sorted and solved; nothing is left on the disk."""
    kind, r = kind_of(given.paths[0]), rank or _USUAL_RANK
    count = _count(given, kind)
    shape = given.shape or (_shape(given) if kind == "parquet" else None)
    m, n = shape or (0, 0)
    triples = Triples(given.paths, given.fields, (m, n), np.dtype(float), count)
    ordered = kind == "parquet" and shape is not None and may_be_ordered(triples)
    disk = _BYTES_ON_DISK * count + 8.0 * (n * (r + 2) + m * r)
    scratch = 0.0 if ordered else float(_BYTES_OF_SORTING * count)
    copied = 0.0 if kind == "parquet" and shape is not None else 12.0 * count
    solving, busy = _solving(r)
    seconds = count * (_seconds_before_solving(given, kind, ordered) + solving) + 1.5 * (disk + copied) / _DISK_RATE
    processor = count * (_GROUPING + busy)
    return Estimate(count, shape, ordered, r, bytes_in_memory(given), disk, scratch + copied, seconds, processor)


def _count(given: TripleFiles, kind: str) -> int:
    """Entries: lines of Parquet files; of text, as many as its size tells."""
    if kind == "parquet":
        read_ends(given.paths)
        return sum(opened(path).metadata.num_rows for path in given.paths)
    sizes = sum(path.stat().st_size for path in given.paths)
    starts = given.dialect.begin(given.paths[0]).starts
    return int(sizes / max(1.0, (starts[-1] - starts[0]) / max(1, len(starts) - 1)))


def _shape(given: TripleFiles) -> tuple[int, int] | None:
    ranges = [label_range(given.paths, field) for field in given.fields[:2]]
    if not all(found is not None and isinstance(found[1], int) for found in ranges):
        return None
    return tuple(high + 1 for _, high in ranges)


def _seconds_before_solving(given: TripleFiles, kind: str, ordered: bool) -> float:
    """Of an entry: reading and sorting, as a sample shows."""
    path = given.paths[0]
    if kind == "csv":
        return 1e-6
    sample, reading = _timed(lambda: next(pieces(path, given.fields, size=_SAMPLE), None))
    size = max(1, 0 if sample is None else sample.num_rows)
    return 3 * reading / size + (0.0 if ordered or sample is None else _sorting(sample))


def _sorting(sample) -> float:
    """Seconds for a row of an Arrow record batch of rows, columns and values."""
    import pyarrow

    named = pyarrow.RecordBatch.from_arrays(sample.columns, ["r", "c", "v"])
    query = "SELECT * FROM given ORDER BY c, r"
    with tempfile.TemporaryDirectory() as scratch:
        how = [named], 1_000_000_000, Path(scratch)
        _, seconds = _timed(lambda: list(asked_of_duckdb(query, named.schema, *how)))
    return 1.5 * seconds / max(1, named.num_rows)


def _timed(work: Callable) -> tuple:
    """What some work returns, and its seconds at the second time, when libraries are loaded."""
    work()
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def _solving(rank: int, columns: int = 500) -> tuple[float, float]:
    """Seconds by the clock and of processors for an entry of columns with four times as many entries as directions."""
    m, s = 8 * rank, 4 * rank
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((m, rank)))[0]
    rows = np.sort(rng.permuted(np.tile(np.arange(m), (columns, 1)), axis=1)[:, :s], axis=1)
    space = ColumnSpace(U, np.ones(rank), None, np.ones(rank), 0.0)
    indptr = np.arange(0, columns * s + 1, s)
    o = Observations(
        (m, columns), indptr, rows.ravel().astype(index_dtype(m)), rng.standard_normal(columns * s), None, indptr[:0]
    )
    times = []
    for _ in range(2):
        start, spent = time.perf_counter(), time.process_time()
        solve_block(space, np.zeros(rank), o, typical=s)
        times.append((time.perf_counter() - start, time.process_time() - spent))
    seconds, processor = np.min(times, axis=0) / o.rows.size
    return float(seconds), float(processor)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:,.0f} min" if seconds < 5400 else f"{seconds / 3600:,.1f} h"
