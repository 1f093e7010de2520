"""Triples in Parquet files to a completion on the disk, beside DuckDB's sort of them, and reading plus solving.

The matrix is n x n of rank 20, with d = 60 full columns and s = 80 entries of each other one: 140 n triples. Every
measurement is a process of its own, which first completes a small matrix to load the compiled code, and tells its time
and its peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.machine import count, facts, json_option, record

R, D, S = 20, 60, 80


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks files", description=__doc__)
    parser.add_argument("--sizes", type=count, nargs="+", default=[100_000, 1_000_000], help="rows and columns")
    parser.add_argument("--rounds", type=count, default=1, help="the least time of so many counts")
    parser.add_argument("--memory", type=float, default=6e9, help="bytes, for us and for DuckDB")
    parser.add_argument("--folder", type=Path, help="keep the data here; default: a temporary folder")
    json_option(parser)
    options = parser.parse_args(arguments)
    print(facts())
    good, costs = True, {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for n in options.sizes:
            measured = measure(folder / str(n), n, options.memory, options.rounds)
            good &= report(n, measured, options.memory)
            costs[n] = measured
    if len(costs) > 1:
        least, most = min(costs), max(costs)
        for work in ("complete shuffled", "complete sorted"):
            ratios = [costs[most][work][of] / costs[least][work][of] * least / most for of in ("seconds", "processor")]
            good &= ratios[0] <= 1.2
            print(
                f"{work}: cost of a column at n = {most:,} over that at n = {least:,}:"
                f" {ratios[0]:.2f} (wanted: up to 1.2); in processor seconds {ratios[1]:.2f}"
            )
    record(options.json, "files", figures_of(costs))
    return 0 if good else 1


def figures_of(costs: dict) -> dict:
    """Key figures by work and number of columns."""
    found = {}
    for n, works in costs.items():
        for work, values in works.items():
            named = f"{work.replace(' ', '_')}_{n}"
            found |= {f"{named}_{kind}": values[kind] for kind in ("seconds", "processor", "gigabytes")}
        ours, sort = works["complete shuffled"], works["sort"]
        found |= {f"over_sort_{n}": ours["processor"] / sort["processor"], f"error_{n}": ours["error"]}
    return found


def measure(folder: Path, n: int, memory: float, rounds: int) -> dict:
    """Seconds and gigabytes of every work, the least of some rounds."""
    if not (folder / "truth.npz").exists():
        folder.mkdir(parents=True, exist_ok=True)
        in_a_process("draw", folder, n, memory)
    best = {}
    for _ in range(rounds):
        for work in WORKS:
            found = in_a_process(work, folder, n, memory)
            if work not in best or found["seconds"] < best[work]["seconds"]:
                best[work] = found
    return best


def in_a_process(work: str, folder: Path, n: int, memory: float) -> dict:
    command = [sys.executable, "-m", "benchmarks.files", work, str(folder), str(n), str(memory)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1])


def report(n: int, measured: dict, memory: float) -> bool:
    sort, shuffled, ordered = (measured[work] for work in ("sort", "complete shuffled", "complete sorted"))
    read = measured["read and solve"]
    print(f"\nn = {n:,}, {(D + S) * n:,} triples, memory limit {memory / 1e9:g} GB")
    for work, found in measured.items():
        figures = (
            f"{found['seconds']:7.1f} s ({found['processor']:6.1f} s of processors)   peak {found['gigabytes']:.2f} GB"
        )
        print(f"  {work:18} {figures}   {found.get('words', '')}")
    ratios = shuffled["seconds"] / sort["seconds"], ordered["seconds"] / read["seconds"]
    peak = max(shuffled["gigabytes"], ordered["gigabytes"])
    print(f"  shuffled triples: {ratios[0]:.2f} times DuckDB's sort (wanted: up to 2.5)")
    print(f"  sorted triples: {ratios[1]:.2f} times reading with pyarrow and solving in memory (wanted: up to 1.5)")
    print(
        f"  peak {peak:.2f} GB (wanted: under {memory / 1e9:g}); largest error {shuffled['error']:.1e} (wanted: 1e-12)"
    )
    return ratios[0] <= 2.5 and ratios[1] <= 1.5 and peak < memory / 1e9 and shuffled["error"] <= 1e-12


def draw(folder: Path, n: int, memory: float) -> dict:
    """Write the triples in order and shuffled, and the factors."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((n, R)), rng.standard_normal((n, R))
    is_full = np.zeros(n, bool)
    is_full[rng.choice(n, D, replace=False)] = True
    parts = [_some_columns(rng, left, right, is_full, lo, min(lo + 20_000, n)) for lo in range(0, n, 20_000)]
    triples = [np.concatenate(part) for part in zip(*parts)]
    del parts
    for name, order in (("sorted", slice(None)), ("shuffled", rng.permutation(triples[0].size))):
        table = pa.table(dict(zip(("row", "column", "value"), (array[order] for array in triples))))
        parquet.write_table(table, folder / f"{name}.parquet", row_group_size=1 << 20)
    np.savez(folder / "truth.npz", left=left, right=right)
    return {}


def _some_columns(rng, left, right, is_full, first: int, stop: int):
    """Rows, columns and values of the columns from `first` on, in order."""
    n = left.shape[0]
    rows, columns = [], []
    drawn = np.sort(rng.integers(0, n, (stop - first, S)), axis=1)
    while (again := (np.diff(drawn, axis=1) == 0).any(axis=1)).any():
        drawn[again] = np.sort(rng.integers(0, n, (again.sum(), S)), axis=1)
    for j in range(first, stop):
        rows.append(np.arange(n) if is_full[j] else drawn[j - first])
        columns.append(np.full(rows[-1].size, j))
    rows, columns = np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32)
    return rows, columns, _entries(left, right, rows, columns)


def _entries(left, right, rows, columns):
    pieces = [slice(at, at + 100_000) for at in range(0, rows.size, 100_000)]
    return np.concatenate([np.einsum("kr,kr->k", left[rows[at]], right[columns[at]]) for at in pieces])


def sort(folder: Path, n: int, memory: float) -> dict:
    """By DuckDB, on the disk, into Parquet."""
    import duckdb

    out, scratch = folder / "by_duckdb.parquet", folder / "scratch"
    database = duckdb.connect()
    database.execute(f"SET memory_limit = '{memory / 1e6:.0f}MB'; SET temp_directory = '{scratch}'")
    query = f"""SELECT * FROM '{folder / "shuffled.parquet"}' ORDER BY "column", "row" """
    start = time.perf_counter()
    database.execute(f"COPY ({query}) TO '{out}' (FORMAT parquet)")
    seconds = time.perf_counter() - start
    out.unlink()
    return {"seconds": seconds}


def warm_up() -> None:
    """Load what both ways need, so that neither is timed for it."""
    import pyarrow as pa
    from pyarrow import parquet

    import colonnade as co

    rng = np.random.default_rng(0)
    M = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 40))
    M[rng.random(M.shape) < 0.5] = np.nan
    M[:, :5] = 1.0
    co.complete(M)
    rows, columns = np.nonzero(~np.isnan(M))
    with tempfile.TemporaryDirectory() as scratch:
        table = pa.table({"row": rows, "column": columns, "value": M[rows, columns]})
        parquet.write_table(table, Path(scratch) / "triples.parquet")
        co.complete_triples(Path(scratch) / "triples.parquet", Path(scratch) / "out")


def read_and_solve(folder: Path, n: int, memory: float) -> dict:
    """The time of reading and that of solving; what lies between, for which a user would write code, is not counted."""
    from pyarrow import parquet

    import colonnade as co

    start = time.perf_counter()
    table = parquet.read_table(folder / "sorted.parquet")
    reading = time.perf_counter() - start
    rows, columns, values = (table[name].to_numpy() for name in ("row", "column", "value"))
    del table
    counts = np.bincount(columns, minlength=n)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    o = co.Observations((n, n), indptr, rows, values, None, np.flatnonzero(counts == n))
    start = time.perf_counter()
    co.complete(o)
    solving = time.perf_counter() - start
    return {"seconds": reading + solving, "words": f"reading {reading:.1f} s, solving {solving:.1f} s"}


def complete(folder: Path, n: int, memory: float, order: str) -> dict:
    from colonnade.scaling.blocks import complete_triples

    out, stages = folder / f"completed-{order}", {}
    start, spent = time.perf_counter(), time.process_time()
    completion = complete_triples(
        folder / f"{order}.parquet",
        out,
        force=True,
        memory_limit=memory,
        progress=lambda stage, done, total: stages.setdefault(stage, time.perf_counter() - start),
    )
    seconds = time.perf_counter() - start
    begun = [*stages.values(), seconds]
    words = ", ".join(f"{stage} {after - at:.1f} s" for stage, at, after in zip(stages, begun, begun[1:]))
    peak, processor = peak_gigabytes(), time.process_time() - spent
    truth, rng = np.load(folder / "truth.npz"), np.random.default_rng(1)
    rows, columns = rng.integers(0, n, 10_000), rng.integers(0, n, 10_000)
    exact = _entries(truth["left"], truth["right"], rows, columns)
    error = float(np.abs(completion.entries(rows, columns) - exact).max() / np.abs(exact).max())
    shutil.rmtree(out)
    return {"seconds": seconds, "processor": processor, "gigabytes": peak, "words": words, "error": error}


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


WORKS = {
    "sort": sort,
    "complete shuffled": partial(complete, order="shuffled"),
    "read and solve": read_and_solve,
    "complete sorted": partial(complete, order="sorted"),
}

if __name__ == "__main__":
    name, where, size, limit = sys.argv[1:]
    warm_up()
    begun = time.process_time()
    result = {"draw": draw, **WORKS}[name](Path(where), int(size), float(limit))
    print(json.dumps({"gigabytes": peak_gigabytes(), "processor": time.process_time() - begun, **result}))
