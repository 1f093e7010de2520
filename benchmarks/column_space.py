"""fit_column_space for tall and for wide A, beside LAPACK's SVD of the same A, in processor seconds of one thread."""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import linalg

from benchmarks.machine import best_of, count, facts, json_option, one_thread, record
from colonnade import fit_column_space


def angle(U, V) -> float:
    """Sine of the largest angle between two spaces."""
    return float(np.linalg.norm(V - U @ (U.T @ V), 2))


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks column_space", description=__doc__)
    parser.add_argument("--rounds", type=count, default=1)
    json_option(parser)
    options = parser.parse_args(arguments)
    print(facts())
    recorded = {}
    rng = np.random.default_rng(0)
    print("case                                    ours    LAPACK   ratio   angle between them   |U'U - I|")
    for m, d, r, noise in (
        (1_000_000, 60, 20, 1e-3),
        (1_000_000, 60, 20, 0),
        (10_000, 2_000, 20, 0.1),
        (10_000, 2_000, 20, 0),
    ):
        A = rng.standard_normal((m, r)) @ rng.standard_normal((r, d))
        A += noise * rng.standard_normal((m, d)) if noise else 0
        with one_thread():
            ours, lapack = best_of(
                options.rounds,
                lambda: fit_column_space(A, rank=r),  # noqa: B023
                lambda: linalg.svd(A, full_matrices=False, check_finite=False),  # noqa: B023
                clock=time.process_time,
            )
        recorded[f"times_{m}_{'noisy' if noise else 'exact'}"] = lapack / ours
        U, V = fit_column_space(A, rank=r).basis, linalg.svd(A, full_matrices=False)[0][:, :r]
        print(
            f"{m:,} x {d:,}, rank {r}, noise {noise:g}".ljust(38)
            + f"{ours:6.2f} s {lapack:7.2f} s {lapack / ours:6.1f}x   {angle(U, V):.1e}"
            f"              {np.abs(U.T @ U - np.eye(r)).max():.1e}"
        )
    record(options.json, "column_space", recorded)
    return 0
