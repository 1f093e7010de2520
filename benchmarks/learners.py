"""Complete columns or all entries: the choice of complete(M) between its two learners, over each of them.

    python -m benchmarks learners [--data DIR] [--full 4 15 50] [--shares 0.08 0.3 0.7] [--both]

Of every table 400 rows, some full columns and 150 others are drawn, and a share of the others is seen. Printed are the
error with full columns alone, and that of the choice over it. --both runs the factor model too, whatever is chosen.
Without --data the tables are those that scikit-learn ships; with it, every DIR/*.npz with a matrix X too.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import colonnade as co
from benchmarks.gaps import error, shipped
from benchmarks.machine import facts
from benchmarks.real_data import read_sets

_MOST_ROWS, _OTHERS = 400, 150


def problem(X, d: int, share: float, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The table with gaps, the truth, and what is hidden; None if too few columns are complete."""
    complete = np.flatnonzero(np.isfinite(X).all(axis=0))
    if complete.size < d or X.shape[1] < d + 2:
        return None
    full = rng.permutation(complete)[:d]
    others = rng.permutation(np.setdiff1d(np.arange(X.shape[1]), full))[:_OTHERS]
    rows = rng.permutation(X.shape[0])[:_MOST_ROWS]
    truth = X[np.ix_(rows, np.concatenate([full, others]))].astype(float)
    hidden = np.isfinite(truth) & (rng.random(truth.shape) > share)
    hidden[:, :d] = False
    return np.where(hidden, np.nan, truth), truth, hidden


def main(argv) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks learners", description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--full", type=int, nargs="+", default=[4, 15, 50])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.08, 0.3, 0.7])
    parser.add_argument("--both", action="store_true")
    options = parser.parse_args(argv)
    print(facts())
    tables = shipped() | ({name: X for name, (X, _) in read_sets(options.data).items()} if options.data else {})
    methods = ["full columns", "auto", *(["factor model"] if options.both else [])]
    rng, ratios = np.random.default_rng(0), []
    for name, X in tables.items():
        for d in options.full:
            for share in options.shares:
                drawn = problem(X, d, share, rng)
                if drawn is None:
                    continue
                errors, seconds = [], []
                for method in methods:
                    start = time.perf_counter()
                    errors.append(error(co.complete(drawn[0], method=method).to_dense(), *drawn[1:]))
                    seconds.append(time.perf_counter() - start)
                ratios.append(errors[1] / errors[0])
                told = "  ".join(f"{m} {e / errors[0]:.3f} in {s:.1f} s" for m, e, s in zip(methods, errors, seconds))
                print(f"{name:16} {d:3} full, {share:.2f} seen: error {errors[0]:.5f}; {told}", flush=True)
    mean = np.exp(np.mean(np.log(ratios)))
    print(
        f"{len(ratios)} problems, the choice over full columns: {min(ratios):.3f} to {max(ratios):.3f}, mean {mean:.3f}"
    )
    return 0
