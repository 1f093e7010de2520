"""Columns of a matrix so tall that its basis does not fit into memory: what rows contribute adds up, block by block.

    G = sum over blocks of U_O' U_O,    b = sum over blocks of U_O'(x_O - c_O),    (G + Lambda) z = b

Squaring costs digits, so a second pass over the blocks sums U_O' times the residuals and corrects z by them (Bjorck
1987); then the answer is as good as that of a QR factorisation up to a condition of U_O of about 1e4. Columns of a
worse condition, or moved too far by the correction, are compressed by QR, block by block, to r + 1 rows that pose the
same problem, and handed to `solve_columns`, which also decides whether their rows determine them.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from .._support.storage import Url
from .._support.threads import default_threads, in_threads, one_blas_thread
from ..data.observations import Observations, pointers_of
from ..files.results.block_files import Block, array_path
from ..files.results.checkpoints import read_array
from ..files.results.disk_columns import RowFile, opened_basis
from ..model.column_space import ColumnSpace
from ..model.full_columns.column_outliers import unused_entries, variances_of_rows
from ..model.full_columns.learn import FullColumnModel
from ..model.full_columns.outlier_screening import Screening, in_partial_columns
from ..model.solve import Status, solve_columns

_ROWS = 1024  # of which blocks of rows are multiples, as the sums of full columns are
_SAFE = 1e-9  # least eigenvalue of the scaled G + Lambda, beside the largest, for which the sums are trusted
_MENDED = 1e-8  # a correction of more than this share of the answer: compress by QR


def exceeds_memory(shape, memory: float) -> bool:
    """Whether a basis of this shape, and a copy of it, need more than half of the memory."""
    return 16.0 * shape[0] * shape[1] > memory / 2


def groups_of_blocks(entries: list[dict], todo: list[int], r: int, memory: float) -> Iterator[list[int]]:
    """Blocks that are solved in one pass over the basis: as many as a quarter of the memory holds the sums of."""
    group, size = [], 0.0
    for k in todo:
        needed = 8.0 * (entries[k]["stop"] - entries[k]["first"]) * (2 * r * r + 8 * r + 8)
        if group and size + needed > memory / 4:
            yield group
            group, size = [], 0.0
        group, size = [*group, k], size + needed
    if group:
        yield group


@dataclass
class _Part:
    """A block of columns: its entries, which stay on the disk, and what is known of its solution."""

    indptr: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    unused: np.ndarray
    is_full: np.ndarray
    G: np.ndarray
    b: np.ndarray
    Z: np.ndarray
    status: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        return np.diff(self.indptr)

    def release(self) -> None:
        """Let the system take back the pages of the files that were read."""
        for array in (self.rows, self.values):
            if isinstance(array, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
                array._mmap.madvise(mmap.MADV_DONTNEED)


def solve_by_row_blocks(
    folder: Path, blocks: list[int], from_full: FullColumnModel, memory: float, screenings: list[Screening]
) -> list[tuple]:
    """Coefficients, shape (columns, r), and status of every block, with the basis read by blocks of rows.

    Also where in the values of the block entries stand that are not used; `screenings` are those of its columns.

    The bytes depend neither on the blocks of rows nor on which blocks of columns are solved together. They agree with
    those of `solve_columns` up to rounding: about eps times the condition of U_O.
    """
    m, r = from_full.space.basis.shape
    step = max(_ROWS, int(memory / 16 / (8 * r)) // _ROWS * _ROWS)
    with opened_basis(folder) as file, one_blas_thread():
        sweep = _Sweep(RowFile(file, m, r, from_full.space.basis.dtype, is_new=False), from_full.space.center, step)
        of_rows = np.concatenate([variances_of_rows(U, from_full.space.variances) for _, U, _ in sweep])
        parts = [_opened(folder, k, m, from_full, one, of_rows) for k, one in zip(blocks, screenings, strict=True)]
        _sum_up(sweep, parts, from_full.penalty)
        _correct(sweep, parts, from_full.penalty)
        _solve_the_rest(sweep, parts, from_full)
        _fill_empty(sweep, parts, from_full.space)
    dtype = from_full.space.basis.dtype
    return [(_finished(part, dtype), part.status, part.unused) for part in parts]


def _opened(folder: Path, k: int, m: int, from_full: FullColumnModel, screening: Screening, of_rows) -> _Part:
    """Block k without the entries of partial columns that are not used."""
    indptr = read_array(array_path(folder, k, "indptr"))
    rows, values = (read_array(array_path(folder, k, name), mapped=True) for name in ("rows", "values"))
    n, r = indptr.size - 1, from_full.space.rank
    o = Block(0, n, indptr, rows, values).observations(m)
    unused = unused_entries(from_full.space, o, from_full.penalty, screening, of_rows)
    gone = in_partial_columns(o, unused)
    if gone.size:
        indptr = indptr - np.searchsorted(gone, indptr)
        rows, values = (_without(array, gone, folder) for array in (rows, values))
    sums = np.zeros((n, r, r)), np.zeros((n, r)), np.zeros((n, r))
    return _Part(indptr, rows, values, unused, np.diff(o.indptr) == m, *sums, np.zeros(n, np.int8))


def _without(array, places, folder: Path) -> np.ndarray:
    """All but the entries at some places, in a file that is gone when it is no longer needed."""
    with TemporaryFile(dir=None if isinstance(folder, Url) else folder) as file:
        for lo, hi in pairwise([-1, *places.tolist(), array.size]):
            array[lo + 1 : hi].tofile(file)
        return np.memmap(file, array.dtype, "r", shape=(array.size - places.size,))


@dataclass(frozen=True)
class _Sweep:
    """Passes over the basis, by blocks of rows."""

    basis: RowFile
    center: np.ndarray | None
    step: int

    def __iter__(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """First row, rows of U, center (empty if there is none)."""
        for lo in range(0, self.basis.shape[0], self.step):
            U = self.basis[lo : lo + self.step]
            yield lo, U, np.zeros(0) if self.center is None else self.center[lo : lo + self.step]

    def over(self, parts: list[_Part], wanted: list[np.ndarray], work: Callable) -> None:
        """``work(part, lo, U, center, at, start, stop)`` for all blocks of rows and pieces of columns.

        Only of the wanted columns; ``at`` tells where the entries of each go on.
        """
        ats = [np.where(want, part.indptr[:-1], part.indptr[1:]) for part, want in zip(parts, wanted)]
        for lo, U, center in self:
            for part, at in zip(parts, ats):
                edges = np.linspace(0, at.size, min(at.size, 4 * default_threads()) + 1).astype(int)
                in_threads(lambda piece: work(part, lo, U, center, at, *piece), pairwise(edges.tolist()))  # noqa: B023
                part.release()


def _sum_up(sweep: _Sweep, parts: list[_Part], penalty) -> None:
    """First pass: the sums, the full columns, and a first answer of the others."""
    from ..model.kernels.column_kernels import project
    from ..model.kernels.gram_kernels import add_grams

    def work(part, lo, U, center, at, start, stop):
        add_grams(U, lo, center, part.indptr, part.rows, part.values, at, start, stop, part.G, part.b)
        for j in np.flatnonzero(part.is_full[start:stop]) + start:
            project(U, center, part.values, part.indptr[j] + lo, part.Z[j])

    sweep.over(parts, [~part.is_full & (part.counts > 0) for part in parts], work)
    for part in parts:
        _judge(part, penalty)
        part.Z[part.is_full] /= 1 + penalty
        sound = part.status == Status.SOLVED
        part.Z[sound] = _solved(part.G[sound], part.b[sound])


def _judge(part: _Part, penalty) -> None:
    """Add the penalty; give every column a status, UNDETERMINED where the sums are not to be trusted."""
    r, s = penalty.size, part.counts
    part.G += np.diag(penalty)
    diagonal = np.einsum("kqq->kq", part.G)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = part.G / np.sqrt(diagonal[:, :, None] * diagonal[:, None, :])
    usable = np.isfinite(scaled).all(axis=(1, 2)) & (diagonal > 1e-20).all(axis=1) & np.isfinite(part.b).all(axis=1)
    values = np.zeros((s.size, r))
    values[usable] = np.linalg.eigvalsh(scaled[usable])
    sound = usable & (values[:, 0] > _SAFE * values[:, -1])
    part.status[:] = np.where(sound, Status.SOLVED, Status.UNDETERMINED)
    few = (s < r) & ~penalty.any()
    part.status[few] = Status.TOO_FEW
    part.status[s == 0] = Status.PRIOR_ONLY if penalty.all() else Status.NO_OBSERVATION
    part.status[part.is_full] = Status.FULL


def _solved(G, b) -> np.ndarray:
    """z with G z = b, for a stack of matrices with scales brought together."""
    scale = 1 / np.sqrt(np.einsum("kqq->kq", G))
    scaled = G * scale[:, :, None] * scale[:, None, :]
    return np.linalg.solve(scaled, (b * scale)[:, :, None])[:, :, 0] * scale


def _correct(sweep: _Sweep, parts: list[_Part], penalty) -> None:
    """Second pass: the residuals of the rows themselves, and a step by them."""
    from ..model.kernels.gram_kernels import add_residuals

    sound = [part.status == Status.SOLVED for part in parts]
    for part in parts:
        part.b[:] = -penalty * part.Z

    def work(part, lo, U, center, at, start, stop):
        add_residuals(U, lo, center, part.indptr, part.rows, part.values, at, start, stop, part.Z, part.b)

    sweep.over(parts, sound, work)
    for part, which in zip(parts, sound):
        step = _solved(part.G[which], part.b[which])
        moved, size = np.linalg.norm(step, axis=1), np.linalg.norm(part.Z[which], axis=1)
        part.Z[which] += step
        part.status[np.flatnonzero(which)[~(moved <= _MENDED * size)]] = Status.UNDETERMINED


def _solve_the_rest(sweep: _Sweep, parts: list[_Part], from_full: FullColumnModel) -> None:
    """Third pass, if it is needed: columns that the sums do not settle, compressed by QR."""
    r = from_full.space.rank
    rest = [(part, j) for part in parts for j in np.flatnonzero(part.status == Status.UNDETERMINED)]
    compressed = [np.zeros((0, r + 1))] * len(rest)
    for lo, U, center in sweep if rest else ():
        compressed = [_with_entries(rows, *one, lo, U, center) for rows, one in zip(compressed, rest)]
    if rest:
        stack = np.concatenate(compressed)
        pointers, index = pointers_of([rows.shape[0] for rows in compressed]), np.arange(stack.shape[0], dtype=np.int32)
        values, none = stack[:, r].copy(), np.zeros(0, np.int64)
        o = Observations((stack.shape[0], len(rest)), pointers, index, values, None, none)
        space = ColumnSpace(np.ascontiguousarray(stack[:, :r]), np.ones(r), None, np.ones(r), np.nan)
        Z, status = solve_columns(space, o, penalty=from_full.penalty, typical=float(r))
        for k, (part, j) in enumerate(rest):
            part.Z[j], part.status[j] = Z[:, k], status[k]


def _fill_empty(sweep: _Sweep, parts: list[_Part], space: ColumnSpace) -> None:
    """Columns without an entry are the mean of the full ones, in one more pass if there are any."""
    empty = [part.status == Status.PRIOR_ONLY for part in parts]
    if space.mean is not None and space.center is None and any(which.any() for which in empty):
        from ..model.kernels.column_kernels import project

        mean = np.zeros(space.rank)
        for lo, U, _ in sweep:
            project(U, np.zeros(0), space.mean, lo, mean)
        for part, which in zip(parts, empty):
            part.Z[which] = mean


def _with_entries(rows, part: _Part, j: int, lo: int, U, center) -> np.ndarray:
    """Rows [U_i, x_i - c_i] of a column, those of one more block added; more than r + 1 are turned into r + 1."""
    own = part.rows[part.indptr[j] : part.indptr[j + 1]]
    at = part.indptr[j] + np.searchsorted(own, (lo, lo + U.shape[0]))
    here = part.rows[at[0] : at[1]] - lo
    x = part.values[at[0] : at[1]].astype(np.float64) - (center[here] if center.size else 0.0)
    joined = np.vstack([rows, np.column_stack([U[here].astype(np.float64), x])])
    return joined if joined.shape[0] <= joined.shape[1] else np.linalg.qr(joined, mode="r")


def _finished(part: _Part, dtype) -> np.ndarray:
    """Coefficients in their type, NaN where there are none."""
    r, s = part.Z.shape[1], part.counts
    part.status[(part.status == Status.SOLVED) & (s < r)] = Status.PRIOR
    limit = float(np.finfo(dtype).max)
    with np.errstate(invalid="ignore", over="ignore"):
        too_large = ~(np.abs(part.Z).max(axis=1, initial=0) * np.sqrt(r) < limit) & (part.status != Status.FULL)
    filled = np.isin(part.status, [status for status in Status if status.is_filled])
    part.status[too_large & filled] = Status.OVERFLOW
    part.Z[(too_large & filled) | ~filled] = np.nan
    with np.errstate(over="ignore"):
        return part.Z.astype(dtype)
