"""What a Dask cluster costs and brings: the same triples by the local engine and by 1 and 2 worker processes."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import colonnade as co
from benchmarks.machine import count, facts, json_option, record


def write_triples(path: Path, m: int, n: int, r: int, s: int, d: int) -> int:
    """Exact triples in the order of columns: s of each column, and d full ones at the end; how many there are."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((m, r)))[0]
    kinds = {"row": pa.int32(), "column": pa.int32(), "value": pa.float64()}
    with parquet.ParquetWriter(path, pa.schema(kinds)) as file:

        def write(rows, first: int):
            """Columns from `first` on; row k of `rows` are those of one column."""
            columns = np.repeat(np.arange(first, first + rows.shape[0], dtype=np.int32), rows.shape[1])
            values = np.einsum("ksr,kr->ks", U[rows], rng.standard_normal((rows.shape[0], r)))
            file.write_table(pa.table(dict(zip(kinds, (rows.ravel(), columns, values.ravel())))))

        for first in range(0, n, 2_000):  # a row of each of s equal parts
            size = min(2_000, n - first)
            write((np.arange(s) * (m // s) + rng.integers(0, m // s, (size, s))).astype(np.int32), first)
        for j in range(n, n + d):
            write(np.arange(m, dtype=np.int32)[None], j)
    return n * s + d * m


@contextmanager
def threads(count: int):
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(count)
    try:
        yield
    finally:
        os.environ.pop("OMP_NUM_THREADS") if before is None else os.environ.update(OMP_NUM_THREADS=before)


def processor_seconds(client) -> np.ndarray:
    """Of this process and of each worker so far; they grow little with what else the machine does."""
    of_workers = client.run(time.process_time) if client else {}
    return np.array([time.process_time(), *(of_workers[address] for address in sorted(of_workers))])


def timed(work, client) -> tuple[float, float, float, float, bytes]:
    """Seconds of a run in all and of its solving; of the solving processor seconds in all and of the busiest worker;
    and the coefficients.

    `work` takes a folder and a function for progress.
    """
    learned = []

    def progress(stage, done, total):
        if stage == "learning" and done == total:
            learned.extend((time.perf_counter(), processor_seconds(client)))

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        completion = work(Path(folder) / "out", progress)
        end, spent = time.perf_counter(), processor_seconds(client)
        coefficients = completion.coefficients.tobytes()
    spent = spent - learned[1]
    return end - start, end - learned[0], spent.sum(), spent[1:].max(initial=0), coefficients


def cluster_of(count: int):
    from distributed import LocalCluster

    return LocalCluster(
        host="127.0.0.1",
        n_workers=count,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
    )


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks dask", description=__doc__)
    parser.add_argument("--rows", type=count, default=10_000)
    parser.add_argument("--columns", type=count, default=200_000)
    parser.add_argument("--rank", type=count, default=50)
    parser.add_argument("--block-entries", type=count, default=1 << 21)
    parser.add_argument("--rounds", type=count, default=2)
    parser.add_argument(
        "--sizes", type=count, nargs="+", default=[100_000, 1_000_000], help="columns, of the share of the client"
    )
    parser.add_argument("--only-client", action="store_true", help="measure the share of the client alone")
    parser.add_argument("--folder", type=Path, help="where the data go; default: a temporary folder")
    json_option(parser)
    options = parser.parse_args(arguments)
    if options.only_client:
        print(facts())
        return of_client(options.sizes, options.folder, options.json)
    m, n, r = options.rows, options.columns, options.rank
    s, d = 4 * r, 3 * r
    print(facts())
    settings = {"rank": r, "center": False, "shrinkage": 0.0, "refine": 0, "block_entries": options.block_entries}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        entries = write_triples(path, m, n, r, s, d)
        print(f"{m:,} x {n + d:,}, rank {r}, s = {s}, d = {d}: {entries:,} triples in the order of their columns\n")
        figures = measured(path, settings, options.rounds)
    n_blocks = figures.pop("blocks")
    print("engine                   all, s   solving, s   processors, s   busiest, s   columns per processor second")
    for name, (whole, solving, spent, busiest) in figures.items():
        print(f"{name:22} {whole:8.2f} {solving:12.2f} {spent:15.2f} {busiest:11.2f} {n / spent:30,.0f}")
    one, two = (figures[f"dask, {k} worker{'s' if k > 1 else ''}"] for k in (1, 2))
    alone, both = (figures[f"local, {k} thread{'s' if k > 1 else ''}"] for k in (1, 2))
    print("\noverhead of 1 worker against 1 thread:")
    for what, at in (("seconds", 1), ("processor seconds", 2)):
        more = one[at] - alone[at]
        share, each = one[at] / alone[at] - 1, 1e3 * more / n_blocks
        print(f"  {more:+.2f} {what} ({share:+.0%}), {each:.0f} ms for each of {n_blocks} blocks")
    print(
        f"from 1 to 2 workers {one[1] / two[1]:.2f} times as fast (from 1 to 2 threads {alone[1] / both[1]:.2f} times)"
    )
    print(f"the busiest worker computes {one[3]:.2f} and {two[3]:.2f} processor seconds: {one[3] / two[3]:.2f} times")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    return of_client(options.sizes, options.folder, options.json)


def of_client(sizes: list[int], folder: Path | None, kept: Path | None) -> int:
    from benchmarks.dask_client import report

    with tempfile.TemporaryDirectory(dir=folder) as place, cluster_of(2) as cluster:
        good, figures = report(sizes, cluster, Path(place))
    record(kept, "dask", figures)
    return 0 if good else 1


def measured(path: Path, settings: dict, rounds: int) -> dict:
    """The least seconds of every engine over some rounds, in turn; all must give the same bytes."""
    from distributed import Client

    found, sums = {}, set()
    with cluster_of(1) as first, cluster_of(2) as second, Client(first) as one, Client(second) as two:

        def local(out, progress):
            return co.complete_triples(path, out, progress=progress, **settings)

        def on(client):
            return lambda out, progress: co.dask.complete(path, client, out=out, progress=progress, **settings)

        for turn in range(rounds + 1):  # the first warms up: workers import and load the kernel
            for name, count, work, client in (
                ("local, 1 thread", 1, local, None),
                ("dask, 1 worker", 1, on(one), one),
                ("local, 2 threads", 2, local, None),
                ("dask, 2 workers", 2, on(two), two),
            ):
                with threads(count):
                    *times, coefficients = timed(work, client)
                sums.add(hash(coefficients))
                if turn:
                    found[name] = np.minimum(found.get(name, np.inf), times)
        with tempfile.TemporaryDirectory() as folder:
            blocks = co.complete_triples(path, Path(folder) / "out", **settings).n_blocks
    if len(sums) != 1:
        raise AssertionError("the engines differ in their bytes")
    return {**found, "blocks": blocks}
