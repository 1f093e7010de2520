"""All methods on the same problems with the same number of entries: error and time side by side.

The error is |U Z - C|_F / |C|_F, with C the exact low-rank part; where a column is left open, zero is counted. Seconds
include what a method reads and all that it tries in order to choose its settings; "processor" adds up all threads, and
depends less on what else the machine does. Methods that work on what is known get one draw of Algorithm 1: some full
columns, and some entries of each other. The others choose what they read, within as many entries; norm sampling and
adaptive column sampling read everything and are the yardstick. All are told the true rank that ask for one, and the
noise likewise; "auto" are those that find them by themselves.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy import sparse

import colonnade as co
from benchmarks.machine import chosen, count, facts, json_option, one_thread, record
from benchmarks.rival_problems import PROBLEMS, Problem, problems
from colonnade import methods

DENSE_CELLS = 1_500_000  # up to which the dense loop is run: every step of it is a full SVD
CMFREC_SWEEPS = 30  # its 10 are too few here
CMFREC_PENALTIES = 10.0 ** np.arange(-2.5, 1.1, 0.5)  # of standardised numbers


def product(completion: co.Completion) -> np.ndarray:
    center = 0 if completion.center is None else completion.center[:, None]
    return completion.basis @ completion.coefficients + center


def on_known(method: Callable, **settings) -> Callable:
    """A method that takes what is known."""

    def run(p: Problem):
        answer = method(p.observations, **{key: of(p) for key, of in settings.items()})
        return lambda: product(answer), p.budget, answer.choices.get("iteration", "")

    return run


def on_source(method: Callable, **settings) -> Callable:
    """A method that chooses what it reads."""

    def run(p: Problem):
        source = co.Source(p.M)
        answer = method(source, random_state=0, **{key: of(p) for key, of in settings.items()})
        return lambda: product(answer), source.entries_read, ""

    return run


def cmfrec(p: Problem):
    """cmfrec's ALS without side information, biases or centering; its penalty by a tenth of the partial entries."""
    from cmfrec import CMF

    o, columns = p.observations, p.column_of_entry
    values = o.values / o.values.std()
    hidden = (np.random.default_rng(0).random(columns.size) < 0.1) & ~np.isin(columns, o.full_columns)

    def fit(kept, penalty):
        S = sparse.coo_matrix((values[kept], (o.rows[kept], columns[kept])), shape=o.shape)
        plain = {"user_bias": False, "item_bias": False, "center": False, "verbose": False, "random_state": 0}
        return CMF(k=p.rank, lambda_=penalty, niter=CMFREC_SWEEPS, **plain).fit(S)

    def off(penalty):
        model = fit(~hidden, penalty)
        return np.linalg.norm((model.A_[o.rows[hidden]] * model.B_[columns[hidden]]).sum(axis=1) - values[hidden])

    best = min(CMFREC_PENALTIES, key=off)
    model = fit(np.ones(columns.size, bool), best)
    return lambda: o.values.std() * (model.A_ @ model.B_.T), p.budget, f"penalty {best:.2g}"


def dense_loop(p: Problem, steps=100, tol=1e-3):
    """SoftImpute the way of fancyimpute, with its defaults: dense, shrunk by 1/50 of the largest singular value."""
    o, columns = p.observations, p.column_of_entry
    X = np.zeros(o.shape)
    X[o.rows, columns] = o.values
    by = np.linalg.norm(X, 2) / 50
    missing = np.ones(o.shape, bool)
    missing[o.rows, columns] = False
    for step in range(1, steps + 1):
        U, sizes, Vt = np.linalg.svd(X, full_matrices=False)
        shrunk = np.maximum(sizes - by, 0)
        new = (U * shrunk) @ Vt
        moved = np.linalg.norm(new[missing] - X[missing]) / max(np.linalg.norm(X[missing]), 1e-300)
        X[missing] = new[missing]
        if step > 1 and moved < tol:
            break
    return lambda: X, p.budget, f"{step} steps"


DRAWS = {"n_full_columns": lambda p: p.d, "n_entries": lambda p: p.s}
RANK = {"rank": lambda p: p.rank}
SEED = {"random_state": lambda p: 0}
METHODS = {
    "complete (auto)": on_known(co.complete),
    "algorithm1": on_source(co.algorithm1, **RANK, **DRAWS),
    "als (auto)": on_known(methods.als, **SEED),
    "als, rank given": on_known(methods.als, **SEED, **RANK),
    "optspace (auto)": on_known(methods.optspace, **SEED),
    "optspace, rank given": on_known(methods.optspace, **SEED, **RANK),
    "soft_impute (auto)": on_known(methods.soft_impute, **SEED),
    "svt": on_known(methods.svt, **SEED, noise_std=lambda p: p.noise_std),
    "tall_project": on_known(methods.tall_project, **SEED, **RANK),
    "nystrom": on_source(methods.nystrom, **RANK, n_columns=lambda p: p.d, n_rows=lambda p: p.s),
    "cur_plus": on_source(
        methods.cur_plus,
        **RANK,
        n_columns=lambda p: p.d,
        n_rows=lambda p: p.s // 2,
        n_entries=lambda p: p.M.shape[1] * p.s // 2,
    ),
    "adaptive_completion": on_source(
        methods.adaptive_completion,
        n_entries=lambda p: p.s,
        tolerance=lambda p: min(1.5 * p.noise_share, 0.9) or None,
    ),
    "lifelong_completion": on_source(
        methods.lifelong_completion, n_entries=lambda p: p.s, noise_bound=lambda p: min(p.noise_share, 0.9)
    ),
    "active_columns, norm": on_source(methods.active_columns, by=lambda p: "norm", **RANK, **DRAWS),
    "active_columns, leverage": on_source(methods.active_columns, by=lambda p: "leverage", **RANK, **DRAWS),
    "active_columns, residual": on_source(methods.active_columns, by=lambda p: "residual", **RANK, **DRAWS),
    "entrywise_subsampling": on_source(methods.entrywise_subsampling, **RANK, share=lambda p: p.budget / p.M.size),
    "norm_sampling": on_source(methods.norm_sampling, **RANK, n_full_columns=lambda p: p.d),
    "adaptive_column_sampling": on_source(methods.adaptive_column_sampling, **RANK, n_full_columns=lambda p: p.d),
    "cmfrec, tuned": cmfrec,
    "dense SoftImpute loop": dense_loop,
}


def measure(p: Problem, run: Callable) -> tuple[str, dict]:
    """A line of the table, and its error and processor seconds; none if the method was not run."""
    nothing = f"{'-':>8} {'-':>9}   {'-':>9}   {'-':>9}   "
    if run is dense_loop and p.M.size > DENSE_CELLS:
        return nothing + "a dense SVD in every step: not at this size", {}
    elapsed, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the remark says it
        try:
            filled, n_read, remark = run(p)
        except ImportError:
            return nothing + "not installed", {}
    elapsed, processor = time.perf_counter() - elapsed, time.process_time() - processor
    X = filled()
    n_open = int(np.isnan(X).any(axis=0).sum())
    remark += f"{'; ' if remark else ''}{n_open:,} columns left open" if n_open else ""
    error = p.error(X)
    line = f"{error:8.1e} {elapsed:9.2f} s {processor:9.2f} s {n_read / p.M.size:9.1%}     {remark}"
    return line, {"error": error, "processor": processor}


def _among(names, what: str) -> Callable:
    return lambda asked: chosen(asked, names, what)


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks rivals", description=__doc__)
    parser.add_argument("--size", type=count, default=400, help="rows and columns")
    parser.add_argument("--rank", type=count, default=5)
    parser.add_argument("--full", type=count, help="full columns. Default: four times the rank")
    parser.add_argument("--entries", type=count, help="entries of each other column. Default: eight times the rank")
    parser.add_argument(
        "--methods", type=_among(METHODS, "method"), default="", help="only those whose name has one of these in it"
    )
    parser.add_argument(
        "--problems", type=_among(PROBLEMS, "problem"), default="", help="likewise; separated by commas"
    )
    json_option(parser)
    options = parser.parse_args(arguments)
    d, s = options.full or 4 * options.rank, options.entries or 8 * options.rank
    print(facts())
    warm = next(problems(60, 2, 8, 20))  # compiles what there is to compile
    for name in options.methods:
        measure(warm, METHODS[name])
    figures: dict[str, float] = {}
    for p in problems(options.size, options.rank, d, s, options.problems):
        print(
            f"\n{p.name}: {options.size:,} x {options.size:,}, rank {p.rank}, noise {p.noise_std:.2g}; {d} full columns"
            f" and {s} entries of each other column drawn, {p.budget / p.M.size:.1%} of the matrix"
        )
        print(f"{'':26}{'error':>8} {'time':>9}   {'processor':>9}   {'read':>9}")
        for name in options.methods:
            with one_thread():  # Threads that wait for each other would count.
                line, found = measure(p, METHODS[name])
            figures |= {f"{name}; {p.name}; {what}": value for what, value in found.items()}
            print(f"{name:26}{line}", flush=True)
    record(options.json, "rivals", figures)
    return 0
