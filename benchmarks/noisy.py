"""Noisy data of low rank: complete(M) beside alternating least squares at the true rank, run until it stands still.

M = L R + noise, with L and R standard normal and noise of the given standard deviations. Known are d columns and s
entries of each other one. The error is that of the entries never shown, noise and all, of their norm. "als, NumPy" is
the method as it is mostly written, with the normal equations of all rows or columns solved in batches; cmfrec's is what
others use, if it is installed; "als" is that of colonnade.methods, whose sweeps run on the same kernel as `complete`.
"true U" solves every column in the true column space, which nobody knows.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from scipy import sparse

import colonnade as co
from benchmarks.machine import count, facts, json_option, record
from colonnade.model.solution import Solution

CMFREC_SWEEPS = 300


class Problem:
    """One draw, and what is known of it."""

    def __init__(self, size: int, rank: int, d: int, s: int, noise_std: float, seed: int):
        rng = np.random.default_rng(seed)
        self.L, self.rank, self.noise_std = rng.standard_normal((size, rank)), rank, noise_std
        self.M = self.L @ rng.standard_normal((rank, size)) + noise_std * rng.standard_normal((size, size))
        self.observations = co.observe(self.M, n_full_columns=d, n_entries=s, random_state=rng)
        self.hidden = np.ones(self.M.shape, bool)
        o = self.observations
        self.hidden[o.rows, np.repeat(np.arange(size), o.n_observed)] = False

    def error(self, filled) -> float:
        off = (filled - self.M)[self.hidden]
        return float(np.linalg.norm(off) / np.linalg.norm(self.M[self.hidden]))

    def with_true_space(self):
        basis = np.linalg.qr(self.L)[0]
        space = replace(co.fit_column_space(self.observations, rank=self.rank), basis=basis)
        coefficients, status = co.solve_columns(space, self.observations)
        return co.Completion(Solution(self.observations, space, coefficients, status))

    def by_cmfrec(self) -> np.ndarray | None:
        try:
            from cmfrec import CMF
        except ImportError:
            return None
        o = self.observations
        columns = np.repeat(np.arange(o.shape[1]), o.n_observed)
        S = sparse.coo_matrix((o.values, (o.rows, columns)), shape=o.shape)
        plain = {"user_bias": False, "item_bias": False, "center": False, "lambda_": 1e-3, "use_cg": False}
        model = CMF(k=self.rank, niter=CMFREC_SWEEPS, verbose=False, **plain).fit(S)
        return model.A_ @ model.B_.T


def als_in_numpy(p: Problem, tol: float = 1e-6, most: int = 500, seed: int = 0) -> np.ndarray:
    """Rows and columns in turn from a random start, until a sweep moves the answer by `tol` of its norm."""
    by_columns, by_rows = p.observations, p.observations.transposed()
    V = np.random.default_rng(seed).standard_normal((by_columns.shape[1], p.rank))
    U, last = None, None
    for _ in range(most):
        U = batched_least_squares(V, by_rows)
        V = batched_least_squares(U, by_columns)
        if last is not None and moved(U, V, *last) <= tol:
            break
        last = U, V
    return U @ V.T


def batched_least_squares(factors, o) -> np.ndarray:
    """Every column given the factors of the rows, those with about equally many entries together; shape (n, r)."""
    r = factors.shape[1]
    result = np.empty((o.shape[1], r))
    order = np.argsort(o.n_observed, kind="stable")
    for columns in np.array_split(order, max(1, order.size // 256)):
        s = int(o.n_observed[columns].max())
        at = np.minimum(o.indptr[columns][:, None] + np.arange(s), o.values.size - 1)
        there = np.arange(s) < o.n_observed[columns][:, None]
        B = factors[o.rows[at]] * there[:, :, None]
        gram = np.matmul(B.transpose(0, 2, 1), B)
        right = np.matmul(B.transpose(0, 2, 1), np.where(there, o.values[at], 0.0)[:, :, None])
        result[columns] = np.linalg.solve(gram, right)[:, :, 0]
    return result


def moved(U, V, U0, V0) -> float:
    """|U V' - U0 V0'|_F / |U V'|_F, by the small matrices."""

    def inner(A, B, C, D):
        return float(np.sum((A.T @ C) * (B.T @ D)))

    new, old, both = inner(U, V, U, V), inner(U0, V0, U0, V0), inner(U, V, U0, V0)
    return float(np.sqrt(max(new + old - 2 * both, 0.0) / new))


def ways(p: Problem) -> dict:
    o = p.observations
    return {
        "complete": lambda: co.complete(o),
        "als, converged": lambda: co.methods.als(
            o, rank=p.rank, penalty=0, center=False, tol=1e-6, max_sweeps=500, random_state=0
        ),
        "als, NumPy": lambda: als_in_numpy(p),
        f"cmfrec, {CMFREC_SWEEPS} sweeps": p.by_cmfrec,
        "plain": lambda: co.complete(o, rank=p.rank, center=False, shrinkage=0, refine=0),
        "true U": p.with_true_space,
    }


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks noisy", description=__doc__)
    parser.add_argument("--size", type=count, default=4000, help="rows and columns")
    parser.add_argument("--rank", type=count, default=20)
    parser.add_argument("--full", type=count, default=60, help="full columns")
    parser.add_argument("--entries", type=count, default=80, help="entries of each other column")
    parser.add_argument("--noise", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--seeds", type=count, default=3)
    json_option(parser)
    options = parser.parse_args(arguments)
    print(facts())
    for run in ways(Problem(200, 3, 20, 20, 0.1, 0)).values():
        run()  # compiles what there is to compile
    shape = options.size, options.rank, options.full, options.entries
    recorded = {}
    for noise_std in options.noise:
        print(
            f"\nnoise {noise_std:g}: {options.size:,} x {options.size:,}, rank {options.rank}; of {options.seeds} draws"
        )
        found = measured([Problem(*shape, noise_std, seed) for seed in range(options.seeds)])
        print_results(found)
        als = found["als, converged"][:, 0].mean()
        recorded |= {f"{name}, noise {noise_std:g}": rows[:, 0].mean() / als for name, rows in found.items()}
    record(options.json, "noisy", recorded)
    return 0


def measured(problems: list[Problem]) -> dict[str, np.ndarray]:
    """Error, elapsed and processor seconds of every way, of each problem."""
    found = {name: [] for name in ways(problems[0])}
    for p in problems:
        for name, run in ways(p).items():
            elapsed, processor = time.perf_counter(), time.process_time()
            answer = run()
            times = time.perf_counter() - elapsed, time.process_time() - processor
            if answer is not None:
                filled = answer.to_dense() if isinstance(answer, co.Completion) else answer
                found[name].append((p.error(filled), *times))
    return {name: np.array(rows) for name, rows in found.items() if rows}


def print_results(found: dict[str, np.ndarray]) -> None:
    als = found["als, converged"]
    print(f"{'':20}{'error':>9}{'of als':>8}{'seconds':>10}{'of als':>8}{'processor':>11}")
    for name, rows in found.items():
        error, elapsed, processor = rows.mean(axis=0)
        ratios = error / als[:, 0].mean(), elapsed / als[:, 1].mean()
        print(f"{name:20}{error:9.5f}{ratios[0]:8.3f}{elapsed:10.2f}{ratios[1]:8.3f}{processor:11.2f}", flush=True)
