"""How the processor time of every public function grows with the number of columns.

A table of 60 rows is filled at three widths. Its partial columns are known in a third of their rows; "half full" means
that every other column is known in full, elsewhere it is one of twenty. Each line shows the processor time of all
threads at the three widths and the exponent p of the fit  seconds ~ columns ** p  through them. A function that does
the same for every column has p = 1; more than 1.1 is marked. Below 1 a fixed part is still felt. BLAS has one thread,
because threads that wait spin and would be counted; and every array gets fresh memory from the system, because small
ones would otherwise be given used memory, which costs nothing, and large ones not.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

import colonnade as co
from benchmarks.machine import facts
from colonnade import files, leaderboard, methods, theory
from colonnade.interfaces.inspection import inspect_observations

SIZES = 10_000, 30_000, 100_000
ROWS, RANK = 60, 4
LEAST_SECONDS, MOST_SECONDS = 1.0, 10.0  # Of processor time, after which no further round is begun.
ENDS = "csv", "parquet", "npz", "npy"
MOST = 1.1  # A larger exponent is marked.


class Data:
    """A noisy table of low rank with gaps, in all the forms that functions take; each is made when first asked for."""

    def __init__(self, n: int, folder: Path, every: int = 20):
        self.n, self.folder, self.every = n, folder, every

    @cached_property
    def truth(self) -> np.ndarray:
        rng = np.random.default_rng(0)
        M = rng.standard_normal((ROWS, RANK)) @ rng.standard_normal((RANK, self.n))
        return M + 0.1 * rng.standard_normal(M.shape)

    @cached_property
    def dense(self) -> np.ndarray:
        M = self.truth.copy()
        gaps = np.random.default_rng(1).random(M.shape) > 1 / 3
        gaps[:, :: self.every] = False
        M[gaps] = np.nan
        return M

    @cached_property
    def observed(self) -> co.Observations:
        return co.Observations.from_dense(self.dense)

    @cached_property
    def named(self) -> co.Observations:
        names = {"row_names": [f"row {i}" for i in range(ROWS)], "column_names": [f"c{j}" for j in range(self.n)]}
        return co.Observations.from_dense(self.dense, **names)

    @cached_property
    def triplets(self) -> tuple:
        order = np.random.default_rng(2).permutation(self.observed.rows.size)
        o = self.observed
        return o.rows[order], o.entry_columns[order], o.values[order]

    @cached_property
    def sparse(self):
        rows, columns, values = self.triplets
        return sparse.csc_array((values, (rows, columns)), shape=self.observed.shape)

    @cached_property
    def pandas(self):
        import pandas

        return pandas.DataFrame(self.dense, columns=self.named.column_names)

    @cached_property
    def polars(self):
        import polars

        return polars.DataFrame({name: self.dense[:, j] for j, name in enumerate(self.named.column_names)})

    @cached_property
    def completion(self) -> co.Completion:
        return co.complete(self.named)

    @property
    def fresh(self) -> co.Completion:
        """Nothing computed yet of what a completion keeps."""
        return replace(self.completion, solution=replace(self.completion.solution))

    @cached_property
    def places(self) -> tuple:
        rng = np.random.default_rng(3)
        return rng.integers(ROWS, size=self.n), rng.integers(self.n, size=self.n)

    @cached_property
    def triples(self) -> Path:
        import pyarrow
        from pyarrow import parquet

        path = self.folder / "triples.parquet"
        parquet.write_table(pyarrow.table(list(self.triplets), names=["row", "column", "value"]), path)
        return path

    @cached_property
    def named_triples(self) -> Path:
        import pyarrow
        from pyarrow import csv

        rows, columns, values = self.triplets
        labels = [pyarrow.array([f"{side}{k}" for k in found]) for side, found in (("r", rows), ("c", columns))]
        csv.write_csv(pyarrow.table([*labels, values], names=["row", "column", "value"]), self.folder / "triples.csv")
        return self.folder / "triples.csv"

    def written(self, name: str) -> Path:
        """The filled table in a file of this name."""
        path = self.folder / name
        if not path.exists():
            files.write(self.completion, path)
        return path

    @cached_property
    def saved(self) -> Path:
        self.completion.save(self.folder / "saved")
        return self.folder / "saved"

    @cached_property
    def tall_projected(self) -> co.Completion:
        return methods.tall_project(self.observed, rank=RANK)

    @cached_property
    def half_known(self) -> np.ndarray:
        """Samples in rows; the first half of the features is always known."""
        X = self.truth.T.copy()
        X[:, ROWS // 2 :] = self.dense.T[:, ROWS // 2 :]
        return X

    @cached_property
    def columns_imputer(self) -> co.CompleteColumnsImputer:
        return co.CompleteColumnsImputer().fit(self.half_known)

    @cached_property
    def imputer(self) -> co.CompleteRowsImputer:
        return co.CompleteRowsImputer().fit(self.dense.T)


def by_blocks(data: Data) -> None:
    co.complete_triples(data.triples, data.folder / "blocks", force=True)


def names_by_blocks(data: Data) -> None:
    co.complete_triples(data.named_triples, data.folder / "blocks", force=True)


def read_all_methods() -> dict[str, Callable]:
    """Methods that choose what they read, with as much to read in a column at any width."""
    half = {"n_full_columns": 30, "random_state": 0}
    few = {"n_entries": 20, "random_state": 0}
    return {
        "nystrom": lambda d: methods.nystrom(d.truth, n_columns=30, n_rows=20, rank=RANK, random_state=0),
        "cur_plus": lambda d: methods.cur_plus(
            d.truth, rank=RANK, n_columns=30, n_rows=20, n_entries=20 * d.n, random_state=0
        ),
        "adaptive_completion": lambda d: methods.adaptive_completion(d.truth, tolerance=0.5, **few),
        "lifelong_completion": lambda d: methods.lifelong_completion(d.truth, noise_bound=0.5, **few),
        "active_columns": lambda d: methods.active_columns(d.truth, by="norm", rank=RANK, n_full_columns=30, **few),
        "norm_sampling": lambda d: methods.norm_sampling(d.truth, rank=RANK, **half),
        "adaptive_column_sampling": lambda d: methods.adaptive_column_sampling(d.truth, rank=RANK, **half),
        "entrywise_subsampling": lambda d: methods.entrywise_subsampling(d.truth, rank=RANK, share=0.5, random_state=0),
        "column_probabilities": lambda d: methods.column_probabilities(d.truth, by="norm", **few),
    }


def iterating_methods() -> dict[str, Callable]:
    """Methods that sweep over what is known, with the sweeps given."""
    return {
        "als, 5 sweeps": lambda d: methods.als(d.observed, rank=RANK, penalty=1.0, center=False, max_sweeps=5),
        "svt, 5 steps": lambda d: methods.svt(d.observed, max_iter=5),
        "soft_impute, 5 steps": lambda d: methods.soft_impute(d.observed, penalty=50.0, center=False, max_iter=5),
        "optspace, 5 steps": lambda d: methods.optspace(d.observed, rank=RANK, max_iter=5),
        "tall_project": lambda d: methods.tall_project(d.observed, rank=RANK),
        "tall_project_errors": lambda d: methods.tall_project_errors(d.tall_projected, *d.places),
    }


WORKS: dict[str, Callable[[Data], object]] = {
    "from_dense": lambda d: co.Observations.from_dense(d.dense),
    "from_triplets": lambda d: co.Observations.from_triplets(*d.triplets, (ROWS, d.n)),
    "from_sparse": lambda d: co.Observations.from_sparse(d.sparse),
    "Observations.to_dense": lambda d: d.observed.to_dense(),
    "observe": lambda d: co.observe(d.truth, n_full_columns=d.n // 20, n_entries=20, random_state=0),
    "algorithm1": lambda d: co.algorithm1(d.truth, rank=RANK, n_full_columns=d.n // 20, n_entries=20, random_state=0),
    "fit_column_space": lambda d: co.fit_column_space(d.observed, rank=RANK),
    "solve_columns": lambda d: co.solve_columns(d.completion.space, d.observed),
    "complete(array)": lambda d: co.complete(d.dense),
    "complete(pandas)": lambda d: co.complete(d.pandas),
    "complete(polars)": lambda d: co.complete(d.polars),
    "complete(Observations)": lambda d: co.complete(d.observed),
    "complete, refine=2": lambda d: co.complete(d.observed, refine=2),
    "complete, the paper's": lambda d: co.complete(d.observed, rank=RANK, center=False, shrinkage=0, refine=0),
    "to_dense": lambda d: d.completion.to_dense(),
    "to_frame": lambda d: d.completion.to_frame(),
    "columns": lambda d: d.completion.columns(d.places[1]),
    "columns by name": lambda d: d.completion.columns(d.named.column_names[d.places[1]]),
    "entries": lambda d: d.completion.entries(*d.places),
    "interval": lambda d: d.fresh.interval(*d.places),
    "column_means": lambda d: d.fresh.column_means(),
    "noise_std": lambda d: d.fresh.noise_std,
    "certificates": lambda d: d.fresh.certificates(),
    "summary": lambda d: d.fresh.summary(),
    "save": lambda d: d.completion.save(d.folder / "again", force=True),
    "load": lambda d: co.Completion.load(d.saved),
    "complete_triples": by_blocks,
    "complete_triples, names": names_by_blocks,
    "inspect": lambda d: inspect_observations(d.observed),
    "plan": lambda d: co.plan((ROWS, d.n), RANK, noise_std=0.1),
    "theory.coherence": lambda d: theory.coherence(d.truth, RANK),
    "select_rows": lambda d: co.select_rows(d.completion, 12),
    "leaderboard.select_questions": lambda d: leaderboard.select_questions(d.observed, 12, random_state=0),
    "leaderboard.scores": lambda d: leaderboard.scores(d.observed),
    "CompleteRowsImputer.fit": lambda d: co.CompleteRowsImputer().fit(d.dense.T),
    "CompleteRowsImputer.transform": lambda d: d.imputer.transform(d.dense.T),
    "CompleteColumnsImputer.fit": lambda d: co.CompleteColumnsImputer().fit(d.half_known),
    "CompleteColumnsImputer.transform": lambda d: d.columns_imputer.transform(d.half_known),
    **{f"write {end}": lambda d, end=end: files.write(d.completion, d.folder / f"w.{end}", force=True) for end in ENDS},
    **{f"read {end}": lambda d, end=end: co.read(d.written(f"table.{end}")) for end in ENDS},
    "read triples, Parquet": lambda d: co.read(d.triples),
    "read triples, csv with names": lambda d: co.read(d.named_triples),
    **{f"methods.{name}": work for name, work in {**read_all_methods(), **iterating_methods()}.items()},
}
HALF_FULL = "complete(array)", "complete, refine=2", "interval", "column_means", "certificates", "leaderboard.scores"


def measured(name: str, every: int, sizes) -> np.ndarray:
    """Processor seconds of one work at all widths.

    The speed of a shared machine changes by up to two within seconds. So the widths take turns, smaller ones are
    repeated until they have filled as many columns as the largest, and the median of several rounds counts.
    """
    work = WORKS[name]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), threadpool_limits(1, "blas"):
        warnings.simplefilter("ignore")  # about sweeps that were not enough
        tables = []
        for n in (500, *sizes):
            (Path(folder) / str(n)).mkdir()
            tables.append(Data(n, Path(folder) / str(n), every))
            work(tables[-1])  # The first compiles; the others make their data.
        rounds, begin = [], time.process_time()
        while len(rounds) < 3 or time.process_time() - begin < LEAST_SECONDS:
            rounds.append([processor_mean(partial(work, data), max(sizes) // data.n) for data in tables[1:]])
            if time.process_time() - begin > MOST_SECONDS:
                break
    return np.median(rounds, axis=0)


def processor_mean(work, times: int) -> float:
    """Mean time that all threads together spend on a work."""
    begin = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begin) / times


def exponent(sizes, seconds) -> float:
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(seconds, 1e-9)), 1)[0])


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__)
    parser.add_argument("--only", default="", help="functions whose name contains this")
    parser.add_argument("--sizes", type=int, nargs=3, default=SIZES, metavar="N", help="numbers of columns")
    options = parser.parse_args(arguments)
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        fresh = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", "growth", *arguments], fresh)
    print(facts())
    print(f"processor seconds, {ROWS} rows; exponents above {MOST} are marked")
    print(f"{'':44}" + "".join(f"{n:>11,}" for n in options.sizes) + "   exponent")
    lines = [(name, 20) for name in WORKS] + [(name, 2) for name in HALF_FULL]
    # Each has a process of its own: what an earlier one left in the heap changes the price of small arrays.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for name, every in lines:
            said = name + (", half full" if every == 2 else "")
            if options.only in said:
                seconds = pool.submit(measured, name, every, options.sizes).result()
                p = exponent(options.sizes, seconds)
                times = "".join(f"{s:11.4g}" for s in seconds)
                print(f"{said:44}{times}   {p:8.2f}{'  <--' if p > MOST else ''}", flush=True)
    return 0
