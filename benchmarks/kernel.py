"""The kernel against the machine's limit (DGEMM) and against what one would write in NumPy.

All times are processor seconds of one thread, so that other work of the machine disturbs them little.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from benchmarks.machine import best_of, count, facts, json_option, one_thread, record
from colonnade import ColumnSpace, Observations, solve_columns
from colonnade.model.kernels.emitter import LANES

AVX2 = {  # Numba then compiles as for a processor without AVX-512.
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+64bit,+cmov,+cx16,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+f16c,+fma,+avx2,+bmi"
    ",+bmi2,+lzcnt,+movbe",
}
CASES = ((50, 200), (20, 100), (10, 30))  # r, s
WANTED = {50: 25, 20: 30, 10: 15}  # per cent of DGEMM
WANTED_BATCHES, WANTED_LOOP, WANTED_SHARED = 5, 35, 5  # times as fast; the last at r = 50 only


def problem(m, n, r, s, shared, seed=0):
    """An orthonormal basis, s rows for each column (its own, or the same for all) and exact values there."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((m, r)))[0]
    Z = rng.standard_normal((n, r))
    one = np.sort(rng.choice(m, s, replace=False))
    rows = [one if shared else np.sort(rng.choice(m, s, replace=False)) for _ in range(n)]
    rows = np.concatenate(rows).astype(np.int32)
    values = np.einsum("ksr,kr->ks", U[rows].reshape(n, s, r), Z).ravel()
    o = Observations((m, n), np.arange(n + 1) * s, rows, values, None, np.zeros(0, np.int64))
    return ColumnSpace(U, np.ones(r), None, np.ones(r), 0.0), o, Z


def numpy_in_batches(U, o, size=500):
    """(a): gather, matmul and linalg.solve for a batch of columns at a time."""
    n, s = o.shape[1], int(o.indptr[1])
    rows, values = o.rows.reshape(n, s), o.values.reshape(n, s)
    Z = np.empty((n, U.shape[1]))
    for lo in range(0, n, size):
        X = U[rows[lo : lo + size]]
        Xt = X.transpose(0, 2, 1)
        Z[lo : lo + size] = np.linalg.solve(Xt @ X, Xt @ values[lo : lo + size, :, None])[:, :, 0]
    return Z


def lstsq_loop(U, o, n_columns):
    """(b): numpy.linalg.lstsq column by column, for the first columns only."""
    s = int(o.indptr[1])
    for j in range(n_columns):
        at = slice(j * s, (j + 1) * s)
        np.linalg.lstsq(U[o.rows[at]], o.values[at], rcond=None)


def first_calls() -> tuple[float, float]:
    """Processor seconds of the first solve in a new process with numba's imports: compiled, and from its cache."""
    code = (
        "import time; from benchmarks.kernel import problem; from colonnade import solve_columns\n"
        "space, o, _ = problem(1000, 200, 10, 30, False); start = time.process_time()\n"
        "solve_columns(space, o); print(time.process_time() - start)"
    )
    with tempfile.TemporaryDirectory() as empty:
        how = {"env": {**os.environ, "NUMBA_CACHE_DIR": empty}, "capture_output": True, "text": True, "check": True}
        compiled, cached = (float(subprocess.run([sys.executable, "-c", code], **how).stdout) for _ in range(2))
    return compiled, cached


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks kernel", description=__doc__)
    parser.add_argument("--rounds", type=count, default=5)
    parser.add_argument("--rows", type=count, default=10_000)
    parser.add_argument("--columns", type=count, default=20_000)
    parser.add_argument("--name", default="kernel", help="under which the figures are recorded")
    json_option(parser)
    options = parser.parse_args(arguments)
    m, n = options.rows, options.columns
    print(f"{facts()}; vectors of {LANES} numbers")
    square = np.random.default_rng(0).standard_normal((3000, 3000))
    compiled, cached = first_calls()
    print(f"first call in a new process: compiled {compiled:.1f} s, from numba's cache {cached:.1f} s")
    print(f"m = {m:,}, n = {n:,}, float64; useful rate = n (s r^2 + r^3 / 3) / time; best of {options.rounds} rounds\n")
    print(
        " r    s   DGEMM GF/s  useful GF/s  % of DGEMM  wanted |      warm  (a) batches       (b) lstsq     shared rows"
    )
    missed, recorded = [], {"compiled": compiled, "cached": cached}
    for r, s in CASES:
        space, o, Z = problem(m, n, r, s, False)
        shared_space, shared, _ = problem(m, n, r, s, True)
        some = min(n, 500)
        works = (
            lambda: square @ square,
            lambda: solve_columns(space, o),  # noqa: B023
            lambda: numpy_in_batches(space.basis, o),  # noqa: B023
            lambda: lstsq_loop(space.basis, o, some),  # noqa: B023
            lambda: solve_columns(shared_space, shared),  # noqa: B023
        )
        with one_thread():
            gemm, warm, batches, loop, together = best_of(options.rounds, *works, clock=time.process_time)
        rate, useful = 2 * 3000**3 / gemm, n * (s * r**2 + r**3 / 3) / warm
        error = np.abs(solve_columns(space, o)[0].T - Z).max() / np.abs(Z).max()
        slow = loop * n / some
        print(
            f"{r:2} {s:4}  {rate / 1e9:10.1f}  {useful / 1e9:11.1f}  {100 * useful / rate:9.1f}%  {WANTED[r]:5}%"
            f" | {warm * 1e3:6.1f} ms  {batches * 1e3:7.0f} ms {batches / warm:5.1f}x  {slow * 1e3:7.0f} ms"
            f" {slow / warm:4.0f}x  {together * 1e3:6.1f} ms {warm / together:4.1f}x faster | {error:.0e}"
        )
        figures = (
            ("% of DGEMM", 100 * useful / rate, WANTED[r]),
            ("times (a)", batches / warm, WANTED_BATCHES),
            ("times (b)", slow / warm, WANTED_LOOP),
            ("times with shared rows", warm / together, WANTED_SHARED if r == 50 else 0),
        )
        names = "share", "batches", "lstsq", "shared"
        recorded |= {f"{name}_{r}": got for name, (_, got, _) in zip(names, figures)}
        missed += [f"r={r}: {got:.1f} {what}, wanted {want}" for what, got, want in figures if got < want]
    print(
        f"\n(b) is timed on {some} columns and multiplied up. " + ("All figures reached." if not missed else "Missed:")
    )
    print("\n".join(missed))
    record(options.json, options.name, recorded)
    others = _with_avx2(arguments) if LANES == 8 else 0
    return 1 if missed or others else 0


def _with_avx2(arguments) -> int:
    """The same for processors without AVX-512, recorded as kernel_avx2; the product of matrices stays as it is."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "benchmarks", "kernel", *arguments, "--name", "kernel_avx2"]
        environment = {**os.environ, **AVX2, "NUMBA_CACHE_DIR": cache}
        return subprocess.run(command, env=environment).returncode
