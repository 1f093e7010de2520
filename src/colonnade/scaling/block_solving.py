"""Blocks of entries to blocks of coefficients, by what was learned; the bytes do not depend on how columns are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from .._support.threads import InBackground, ahead
from ..data.observations import Observations
from ..files.results.block_files import missing, read_block, typical_entries, write_solution
from ..files.results.learned_files import read_full_column_model, read_model, read_screening
from ..model.column_space import ColumnSpace
from ..model.full_columns.column_outliers import unused_entries
from ..model.full_columns.learn import FullColumnModel
from ..model.full_columns.outlier_screening import Screening, in_partial_columns
from ..model.learned import outliers
from ..model.shared import SharedModel
from ..model.solve import solve_columns
from .run import Run
from .tall import exceeds_memory, groups_of_blocks, solve_by_row_blocks


def solve_block(
    space: ColumnSpace, penalty, entries: Observations, *, typical: float, n_threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and status of some columns, whose observations are `entries`.

    The bytes depend neither on which other columns are in the block nor on the number of threads.

    Parameters
    ----------
    space : ColumnSpace
    penalty : array of shape (r,)
    entries : Observations
        Of a matrix with as many rows as the basis; a column with all of them is full.
    typical : float
        The median number of entries of the partial columns of all blocks.
    n_threads : int, optional

    Returns
    -------
    coefficients : array of shape (columns, r)
    status : int8 array of shape (columns,)
    """
    coefficients, status = solve_columns(space, entries, penalty=penalty, typical=typical, n_threads=n_threads)
    return np.ascontiguousarray(coefficients.T), status


def solver_of(folder: Path, facts: dict) -> Callable:
    """What solves blocks by what was learned: a function like `solve_used` without its first two arguments."""
    from_full, shared = read_full_column_model(folder, facts, verify=False), read_model(folder, facts)
    if shared is not None:
        return partial(_solve_by_model, from_full.space, shared)
    return partial(solve_used, from_full, read_screening(facts))


def _solve_by_model(
    space: ColumnSpace, shared: SharedModel, first: int, entries: Observations, *, typical: float, n_threads=None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients and status of a block of columns, and where in its values outliers stand, which hardly count."""
    learned = shared.of_columns(np.arange(first, first + entries.shape[1]), entries)
    return *shared.solution(space, learned, entries), outliers(learned, entries)


def solve_used(
    from_full: FullColumnModel,
    screening: Screening,
    first: int,
    entries: Observations,
    *,
    typical: float,
    n_threads=None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients and status of a block of columns, and where in its values entries stand that are not used.

    Parameters
    ----------
    from_full : FullColumnModel
    screening : Screening
        Of all columns.
    first : int
        The number of the first column of the block.
    entries, typical, n_threads
        As of `solve_block`.
    """
    here = screening.of(np.arange(first, first + entries.shape[1]))
    unused = unused_entries(from_full.space, entries, from_full.penalty, here)
    likely = entries.without(in_partial_columns(entries, unused))
    return *solve_block(from_full.space, from_full.penalty, likely, typical=typical, n_threads=n_threads), unused


def solve_here(run: Run, folder: Path, m: int, entries: list[dict], facts: dict) -> None:
    """Write the solutions that are not there yet."""
    todo = missing(folder, "solution", len(entries))
    if exceeds_memory(facts["shape"], run.memory):
        for group in groups_of_blocks(entries, todo, facts["shape"][1], run.memory):
            solve_together(folder, group, entries, facts, run.memory)
            run.progress("solving", entries[group[-1]]["stop"], entries[-1]["stop"])
        return

    def read() -> Iterator:
        for k in todo:
            yield k, read_block(folder, k, entries[k])

    solve, typical = solver_of(folder, facts), typical_entries(folder, entries, m) if todo else 0.0
    with closing(ahead(read(), depth=1)) as blocks, InBackground() as writers:
        for k, block in blocks:
            solution = solve(block.first, block.observations(m), typical=typical)
            writers.call(write_solution, folder, k, *solution)
            run.progress("solving", block.stop, entries[-1]["stop"])


def solve_together(folder: Path, group: list[int], entries: list[dict], facts: dict, memory: float) -> None:
    """Write the solutions of some blocks where the basis does not fit into memory: it is read by blocks of rows."""
    from_full = read_full_column_model(folder, facts, mapped=True, verify=False)
    whole = read_screening(facts)
    screenings = [whole.of(np.arange(entries[k]["first"], entries[k]["stop"])) for k in group]
    for k, solution in zip(group, solve_by_row_blocks(folder, group, from_full, memory, screenings)):
        write_solution(folder, k, *solution)
