"""acquire against Algorithm 1 under the same budget, which is told the rank and the best of many (d, s).

The best (d, s) of Algorithm 1 are those with the least mean error over the seeds, found by looking at the truth. Errors
are root mean squares over the whole matrix as the source has it, observed entries counted as exact.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.machine import count, facts
from colonnade import Source, acquire, algorithm1, complete, observe

PARTS = 0.1, 0.2, 0.3, 0.4, 0.5, 0.6  # of the budget, for full columns


def problems():
    """Name, shape, ranks that Algorithm 1 may use, and a function of a generator that makes the low-rank part."""
    normal = np.random.Generator.standard_normal
    for m, n in ((400, 600), (200, 2000)):
        yield "rank 8", (m, n), (8,), lambda g, m=m, n=n: normal(g, (m, 8)) @ normal(g, (8, n))
        yield (
            *("halving variances", (m, n), (4, 8, 12)),
            lambda g, m=m, n=n: (normal(g, (m, 40)) * (5 * 2.0 ** -np.arange(40) + 0.1)) @ normal(g, (40, n)),
        )
        yield (
            *("coherent rows, rank 8", (m, n), (8,)),
            lambda g, m=m, n=n: (normal(g, (m, 8)) * g.pareto(2.0, m)[:, None]) @ normal(g, (8, n)),
        )


def error(M, completion) -> float:
    return float(np.sqrt(np.mean((np.nan_to_num(completion.to_dense()) - M) ** 2)))


def best_fixed(matrices, budget, run) -> tuple[float, tuple]:
    """The least mean error of run(M, d, s, seed) over the ways to spend the budget, and the way."""
    m, n = matrices[0].shape
    ways = {}
    for part in PARTS:
        d = int(part * budget / m)
        s = (budget - d * m) // (n - d)
        for way in run.ways(d, s) if d and s else ():
            ways[way] = np.mean([error(M, run(M, *way, seed)) for seed, M in enumerate(matrices)])
    way = min(ways, key=ways.get)
    return ways[way], way


class Algorithm1:
    def __init__(self, ranks):
        self.ranks = ranks

    def ways(self, d, s):
        return [(d, s, r) for r in self.ranks if r <= min(d, s)]

    def __call__(self, M, d, s, r, seed):
        return algorithm1(M, rank=r, n_full_columns=d, n_entries=s, random_state=seed)


class Complete:
    def ways(self, d, s):
        return [(d, s)]

    def __call__(self, M, d, s, seed):
        return complete(observe(M, n_full_columns=d, n_entries=s, random_state=seed))


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks acquire", description=__doc__)
    parser.add_argument("--seeds", type=count, default=5)
    parser.add_argument("--sigma", type=float, default=0.5)
    options = parser.parse_args(arguments)
    print(facts())
    exact()
    print(f"noise {options.sigma:g}, mean of {options.seeds} seeds; (d, s, r) and (d, s) are the best fixed ones")
    for name, (m, n), ranks, low_rank in problems():
        generators = [np.random.default_rng(seed) for seed in range(options.seeds)]
        matrices = [low_rank(g) + options.sigma * g.standard_normal((m, n)) for g in generators]
        for share in (0.08, 0.2):
            budget, start = int(share * m * n), time.perf_counter()
            sources = [Source(M) for M in matrices]
            answers = [acquire(source, budget=budget, random_state=k) for k, source in enumerate(sources)]
            spent = (time.perf_counter() - start) / len(answers)
            measured = np.mean([error(M, answer) for M, answer in zip(matrices, answers)])
            theirs, way = best_fixed(matrices, budget, Algorithm1(ranks))
            ours, numbers = best_fixed(matrices, budget, Complete())
            print(
                f"{f'{name}, {m} x {n}, {share:.0%} read':42} acquire {measured:.3f} ({spent:.1f} s)"
                f"   Algorithm 1 {theirs:.3f} {way}   complete {ours:.3f} {numbers}",
                flush=True,
            )
    return 0


def exact() -> None:
    """Exact data of unknown rank: the entries that were read over r m + (n - r) r, the least possible."""
    for m, n, r in ((500, 800, 10), (1000, 1000, 30), (2000, 5000, 20)):
        rng = np.random.default_rng(0)
        M = rng.standard_normal((m, r)) @ rng.standard_normal((r, n))
        source, start = Source(M), time.perf_counter()
        found = acquire(source, budget=m * n, random_state=0)
        spent = time.perf_counter() - start
        off = np.linalg.norm(found.to_dense() - M) / np.linalg.norm(M)
        least = r * m + (n - r) * r
        print(
            f"exact, {m} x {n}, rank {r}: {source.entries_read:,} entries, {source.entries_read / least:.3f} times the"
            f" least possible; relative error {off:.1e}; {spent:.1f} s"
        )
