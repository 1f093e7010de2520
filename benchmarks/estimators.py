"""New samples filled by the imputers, beside one numpy.linalg.lstsq of the same size for each of them."""

from __future__ import annotations

import argparse

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.machine import best_of, count, facts, processor_seconds
from colonnade import CompleteColumnsImputer, CompleteRowsImputer

RANK, KNOWN, LEARNED, COMPLETE = 50, 200, 300, 100
CASES = ((1, 400), (1, 3_000), (10_000, 400), (10_000, 3_000))  # samples, features
WANTED = {1: 3.0, 10_000: 0.1}  # times a least-squares solve, for each sample


def samples_of(rng, n_samples, V, noise):
    return rng.standard_normal((n_samples, RANK)) @ V + noise * rng.standard_normal((n_samples, V.shape[1]))


def with_gaps(rng, samples):
    """All but `KNOWN` features of every sample unknown, others in each."""
    for x in samples:
        x[rng.permutation(x.size)[KNOWN:]] = np.nan
    return samples


def from_complete_rows(n_samples, n_features, noise=0.1):
    """A fitted imputer and new samples for it."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((RANK, n_features))
    imputer = CompleteRowsImputer(rank=RANK).fit(samples_of(rng, LEARNED, V, noise))
    return imputer, with_gaps(rng, samples_of(rng, n_samples, V, noise))


def from_complete_columns(n_samples, n_features, noise=0.1):
    """The same for the other class: `COMPLETE` features are known of every sample."""
    rng = np.random.default_rng(0)
    V = rng.standard_normal((RANK, n_features))
    learned, new = samples_of(rng, LEARNED, V, noise), samples_of(rng, n_samples, V, noise)
    for table in (learned, new):
        table[:, COMPLETE:][rng.random((len(table), n_features - COMPLETE)) < 0.5] = np.nan
    return CompleteColumnsImputer(rank=RANK).fit(learned), new


def least_squares():
    """One dense problem of 200 entries in 50 directions, for the baseline."""
    rng = np.random.default_rng(1)
    B, x = rng.standard_normal((KNOWN, RANK)), rng.standard_normal(KNOWN)
    return lambda: np.linalg.lstsq(B, x, rcond=None)


def baseline(rounds) -> tuple[float, float]:
    """Seconds and processor seconds of one solve, with as many BLAS threads as serve it best."""
    solve = least_squares()
    as_it_is = best_of(rounds, solve)[0]
    with threadpool_limits(1, user_api="blas"):
        return min(as_it_is, best_of(rounds, solve)[0]), processor_seconds(rounds, solve)


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks estimators", description=__doc__)
    parser.add_argument("--rounds", type=count, default=5)
    options = parser.parse_args(arguments)
    print(facts())
    print(
        f"transform of new samples, {KNOWN} known features each, rank {RANK}, float64; warm, best of {options.rounds}\n"
    )
    print("class                   samples  features   transform     lstsq  ratio  wanted   ratio of processor time")
    missed = []
    for make in (from_complete_rows, from_complete_columns):
        for n_samples, n_features in CASES:
            imputer, new = make(n_samples, n_features)
            work = lambda: imputer.transform(new)  # noqa: B023, E731
            solve, solve_processor = baseline(options.rounds)
            ratio = best_of(options.rounds, work)[0] / n_samples / solve
            processor = processor_seconds(options.rounds, work) / n_samples / solve_processor
            print(
                f"{type(imputer).__name__:23} {n_samples:7,} {n_features:9,} {ratio * solve * n_samples * 1e3:8.1f} ms"
                f" {solve * 1e6:6.0f} us {ratio:6.3f} {WANTED[n_samples]:7} {processor:9.3f}"
            )
            if ratio > WANTED[n_samples]:
                missed.append(f"{type(imputer).__name__}, {n_samples:,} samples of {n_features:,} features")
    print("\nratio: transform, by sample, to a numpy.linalg.lstsq of 200 x 50 with its best number of BLAS threads;")
    print("the last column counts the time of all threads. " + ("All reached." if not missed else "Missed:"))
    print("\n".join(missed))
    return 1 if missed else 0
