"""Noisy triples without a complete column to a completion on the disk, beside what could be known at best.

The table has 2,000 rows and n columns with 40 entries each, of rank 10 with falling variances and noise of .5. The
yardstick knows the loadings and the noise, and solves every column by the one equation. Each size runs in a process of
its own, which first completes a small table to load the compiled code.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time

import numpy as np

from benchmarks.files import peak_gigabytes
from benchmarks.machine import count, facts, json_option, record

M, R, S, NOISE = 2_000, 10, 40, 0.5
ASKED = 20_000  # Entries by which errors and intervals are judged.


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks blocks", description=__doc__)
    parser.add_argument("--sizes", type=count, nargs="+", default=[100_000, 1_000_000], help="numbers of columns")
    parser.add_argument("--memory", type=float, default=6e9, help="bytes")
    json_option(parser)
    options = parser.parse_args(arguments)
    print(facts())
    figures = {}
    for n in options.sizes:
        command = [sys.executable, "-m", "benchmarks.blocks", str(n), str(options.memory)]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1])
        print(
            f"n = {n:,}, {S * n:,} triples: {found['processor']:.0f} s of processors ({found['words']}), peak"
            f" {found['gigabytes']:.2f} GB; error over the best possible {found['ratio']:.3f};"
            f" 90 % intervals hold {100 * found['coverage']:.1f} %",
            flush=True,
        )
        figures |= {f"{name}_{n}": found[name] for name in ("processor", "gigabytes", "ratio", "coverage")}
    record(options.json, "blocks", figures)
    return 0


def measure(n: int, memory: float) -> dict:
    """Complete triples in random order, and compare with the truth."""
    import pyarrow as pa
    from pyarrow import parquet

    from colonnade.scaling.blocks import complete_triples

    rng = np.random.default_rng(0)
    U = rng.standard_normal((M, R)) * 0.8 ** np.arange(R)
    Z = rng.standard_normal((n, R))
    rows = _distinct_rows(rng, n)
    columns = np.repeat(np.arange(n, dtype=np.int32), S)
    values = np.empty((n, S))
    for lo in range(0, n, 10_000):
        at = slice(lo, lo + 10_000)
        values[at] = np.einsum("ksr,kr->ks", U[rows[at]], Z[at])
    values += NOISE * rng.standard_normal(values.shape)
    order, spent = rng.permutation(values.size), {}
    with tempfile.TemporaryDirectory() as folder:
        arrays = rows.ravel()[order], columns[order], values.ravel()[order]
        parquet.write_table(pa.table(dict(zip(("row", "column", "value"), arrays))), f"{folder}/t.parquet")
        del order, arrays, columns
        begun = time.process_time()
        completion = complete_triples(
            f"{folder}/t.parquet",
            f"{folder}/out",
            shape=(M, n),
            memory_limit=memory,
            progress=lambda stage, done, total: spent.setdefault(stage, time.process_time() - begun),
        )
        processor, peak = time.process_time() - begun, peak_gigabytes()
        i, j = rng.integers(0, M, ASKED), rng.integers(0, n, ASKED)
        gaps = ~(rows[j] == i[:, None]).any(axis=1)
        i, j = i[gaps], j[gaps]
        truth = np.einsum("kr,kr->k", U[i], Z[j])
        low, high = completion.interval(i, j)
        error = completion.entries(i, j) - truth
    new = truth + NOISE * rng.standard_normal(truth.size)
    best = np.array([U[a] @ _solved(U[rows[b]], values[b]) for a, b in zip(i, j)]) - truth
    ends = [*spent.values(), processor]
    return {
        "processor": processor,
        "gigabytes": peak,
        "words": ", ".join(f"{stage} {b - a:.0f} s" for stage, a, b in zip(spent, ends, ends[1:])),
        "ratio": float(np.sqrt(np.mean(error**2) / np.mean(best**2))),
        "coverage": float(np.mean((low <= new) & (new <= high))),
    }


def _distinct_rows(rng, n: int) -> np.ndarray:
    """Rows of every column, shape (n, S); columns with a row drawn twice are drawn again."""
    rows = np.sort(rng.integers(0, M, (n, S), dtype=np.int32), axis=1)
    while (again := (np.diff(rows, axis=1) == 0).any(axis=1)).any():
        rows[again] = np.sort(rng.integers(0, M, (again.sum(), S), dtype=np.int32), axis=1)
    return rows


def _solved(U, x) -> np.ndarray:
    return np.linalg.solve(U.T @ U + NOISE**2 * np.eye(R), U.T @ x)


if __name__ == "__main__":
    size, limit = sys.argv[1:]
    measure(1_000, 6e8)
    print(json.dumps(measure(int(size), float(limit))))
