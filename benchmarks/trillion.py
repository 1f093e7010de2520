"""A matrix of 10^12 cells that is never formed: 1,000,000 x 1,000,000 of rank 20 from d = 60, s = 80, in memory."""

from __future__ import annotations

import argparse
import time

import numpy as np

import colonnade as co
from benchmarks.machine import count, facts, json_option, peak_gigabytes, record, seconds
from colonnade.model.solution import Solution


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks trillion", description=__doc__)
    parser.add_argument("--size", type=count, default=1_000_000, help="rows and columns")
    parser.add_argument("--rank", type=count, default=20)
    json_option(parser)
    options = parser.parse_args(arguments)
    n, r, d, s = options.size, options.rank, 3 * options.rank, 4 * options.rank
    print(facts())
    rng = np.random.default_rng(0)
    L, R = rng.standard_normal((n, r)), rng.standard_normal((n, r))

    def entries(rows, columns):
        # by parts, for the gathered factors of millions of entries take gigabytes
        return np.concatenate(
            [
                np.einsum("kr,kr->k", L[rows[lo : lo + 100_000]], R[columns[lo : lo + 100_000]])
                for lo in range(0, rows.size, 100_000)
            ]
        )

    source = co.Source(entries, shape=(n, n))
    found = {}
    drawing = seconds(lambda: found.update(o=co.observe(source, n_full_columns=d, n_entries=s, random_state=1)))
    o = found["o"]
    print(f"drawn in {drawing:.1f} s: {o}; peak memory so far {peak_gigabytes():.2f} GB")
    begun = time.process_time()
    fitting = seconds(lambda: found.update(space=co.fit_column_space(o, rank=r)))
    solving = seconds(lambda: found.update(answer=co.solve_columns(found["space"], o)))
    processor = time.process_time() - begun
    completion = co.Completion(Solution(o, found["space"], *found["answer"]))
    rows, columns = rng.integers(0, n, 10_000), rng.integers(0, n, 10_000)
    truth = entries(rows, columns)
    error = np.abs(completion.entries(rows, columns) - truth).max() / np.abs(truth).max()
    print(f"column space {fitting:.2f} s, columns {solving:.2f} s ({n / solving:,.0f} columns per second)")
    print(f"both together {processor:.1f} s of processors")
    filled = int((completion.status <= 1).sum())
    print(f"completed {n:,} x {n:,} in {fitting + solving:.1f} s after the drawing; {filled:,} of {n:,} columns filled")
    print(f"largest error at 10,000 random entries: {error:.1e} of the largest of them (wanted: 1e-12)")
    figures = {"seconds": fitting + solving, "processor": processor, "gigabytes": peak_gigabytes(), "error": error}
    record(options.json if n == 1_000_000 else None, "trillion", figures)
    print(f"peak memory {peak_gigabytes():.2f} GB (wanted: under 4)")
    return 0 if error <= 1e-12 and filled == n and peak_gigabytes() < 4 else 1
