"""Columns of blocks on the disk, and a basis: tall matrices with some rows in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path

import numpy as np

from ..._support.storage import Url, read_range
from ...data.observations import Observations, index_dtype, pointers_of
from ...model.full_columns.outlier_screening import NOTHING, Found, found_at, in_partial_columns
from .block_files import ENTRIES, Block, array_path
from .checkpoints import npy_header, place_of_array, read_array


class Blocks:
    """All columns, block by block from the disk; what `outlier_screening.Whole` is in memory."""

    def __init__(self, folder: Path, entries: list[dict], m: int):
        self._folder, self._entries, self._m = folder, entries, m
        self.size = sum(record["entries"] for record in entries)
        reach = [record["reach"] for record in entries]
        self.reach = min(low for low, _ in reach), max(high for _, high in reach)

    def _array(self, k: int, name: str) -> np.ndarray:
        return np.asarray(read_array(array_path(self._folder, k, name), mapped=True))

    def __iter__(self) -> Iterator[tuple[int, Observations]]:
        return map(self._block, range(len(self._entries)))

    def _block(self, k: int) -> tuple[int, Observations]:
        first, stop = self._entries[k]["first"], self._entries[k]["stop"]
        return first, Block(first, stop, *(self._array(k, name) for name in ENTRIES)).observations(self._m)

    @property
    def n_rows(self) -> int:
        return self._m

    def columns(self, numbers) -> Observations:
        """The columns with these numbers, rising, in memory; those that are known in all rows are full."""
        parts = [o.take(numbers[(numbers >= first) & (numbers < first + o.shape[1])] - first) for first, o in self]
        return side_by_side(self._m, parts, parts[0].values.dtype)

    def sample(self, step: int) -> np.ndarray:
        """Every step-th value."""
        starts = pointers_of([record["entries"] for record in self._entries])
        return np.concatenate([self._array(k, "values")[-start % step :: step] for k, start in enumerate(starts[:-1])])

    def unused(self) -> Found:
        """The entries of partial columns that have no part in the solution, column by column."""
        parts = [NOTHING]
        for k in range(len(self._entries)):
            places = self._array(k, "unused")
            if places.size:
                first, o = self._block(k)
                parts.append(found_at(o, in_partial_columns(o, places), first))
        return Found(*map(np.concatenate, zip(*parts)))


def side_by_side(m: int, parts: list[Observations], dtype, full=None, **names) -> Observations:
    """Observations of neighbouring columns as one; full columns are those known in all rows unless given."""
    counts = np.concatenate([np.zeros(0, np.int64), *(o.n_observed for o in parts)])
    return Observations(
        (m, counts.size),
        pointers_of(counts),
        np.concatenate([np.zeros(0, np.int32), *(o.rows for o in parts)]),
        np.concatenate([np.zeros(0, dtype), *(o.values for o in parts)]),
        None,
        np.flatnonzero(counts == m) if full is None else full,
        **names,
    )


class FullColumns:
    """Full columns in the files of their blocks, as `fit_stored_column_space` reads them.

    Attributes
    ----------
    shape : (int, int)
        m and d.
    dtype : float32 or float64
    numbers : int64 array of shape (d,)
        Of the columns in the whole matrix.
    """

    def __init__(self, folder: Path, entries: list[dict], m: int, most: int):
        self._places, numbers = [], []  # file and place in it of every column's first value
        chosen, begun = evenly(sum(record["full"] for record in entries), most), 0
        for k, record in enumerate(entries):
            here = chosen[(chosen >= begun) & (chosen < begun + record["full"])] - begun
            begun += record["full"]
            if here.size:
                indptr = read_array(array_path(folder, k, "indptr"))
                path = array_path(folder, k, "values")
                self.dtype, begin = place_of_array(path)
                columns = np.flatnonzero(np.diff(indptr) == m)[here]
                starts = begin + indptr[columns] * self.dtype.itemsize
                self._places += [(path, start) for start in starts.tolist()]
                numbers.append(columns + record["first"])
        self.shape, self.numbers = (m, len(self._places)), np.concatenate(numbers)

    def without(self, columns) -> FullColumns:
        """All but those with these numbers in the whole matrix."""
        left = np.flatnonzero(~np.isin(self.numbers, columns))
        result = copy(self)
        result._places, result.numbers = [self._places[k] for k in left], self.numbers[left]
        result.shape = self.shape[0], left.size
        return result

    def read_rows(self, lo: int, hi: int) -> np.ndarray:
        """Rows lo..hi, shape (hi - lo, d)."""
        return np.column_stack([self._read(place, lo, hi) for place in self._places])

    def at_rows(self, rows) -> np.ndarray:
        """Some rows, shape (k, d)."""
        return np.column_stack([self._read(place, 0, self.shape[0])[rows] for place in self._places])

    def _read(self, place, lo: int, hi: int) -> np.ndarray:
        path, start = place
        size = self.dtype.itemsize
        return np.frombuffer(read_range(path, start + lo * size, (hi - lo) * size), self.dtype)

    def observations(self) -> Observations:
        """All of them in memory."""
        m, d = self.shape
        values = np.concatenate([self._read(place, 0, m) for place in self._places])
        rows = np.tile(np.arange(m, dtype=index_dtype(m)), d)
        return Observations((m, d), pointers_of(np.full(d, m)), rows, values, None, np.arange(d))


def some_partial_columns(folder: Path, entries: list[dict], m: int, most: int) -> tuple[Observations, np.ndarray]:
    """Columns that are not full, and their numbers in the whole matrix.

    All if they are few, else evenly chosen ones with two entries or more.
    """
    least, sizes = partial_choice(entries, most)
    chosen, begun, parts, dtype = evenly(sum(sizes), most), 0, [], np.float64
    numbers = [np.zeros(0, np.int64)]
    for k, size in enumerate(sizes):
        here = chosen[(chosen >= begun) & (chosen < begun + size)] - begun
        begun += size
        if here.size:
            indptr = read_array(array_path(folder, k, "indptr"))
            rows, values = (read_array(array_path(folder, k, name), mapped=True) for name in ("rows", "values"))
            counts, dtype = np.diff(indptr), values.dtype
            columns = np.flatnonzero((counts >= least) & (counts < m))[here]
            numbers.append(columns + entries[k]["first"])
            for j in columns:
                at = slice(indptr[j], indptr[j + 1])
                parts.append((np.array(rows[at]), np.array(values[at])))
    none = np.zeros(0, index_dtype(m)), np.zeros(0, dtype)
    rows, values = (np.concatenate([none[i], *(part[i] for part in parts)]) for i in (0, 1))
    pointers = pointers_of([part[0].size for part in parts])
    return Observations((m, len(parts)), pointers, rows, values, None, np.zeros(0, np.int64)), np.concatenate(numbers)


def partial_choice(entries: list[dict], most: int) -> tuple[int, list[int]]:
    """The least number of entries of partial columns to choose from, and how many of them each block has."""
    sizes = [record["stop"] - record["first"] - record["full"] for record in entries]
    return (0, sizes) if sum(sizes) <= most else (2, [record["usable"] for record in entries])


def evenly(count: int, most: int) -> np.ndarray:
    """At most `most` of 0..count-1, evenly spread."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.int64)


@contextmanager
def opened_basis(folder) -> Iterator:
    """The file of the basis in a folder, as `RowFile` reads it."""
    if isinstance(folder, Url):
        yield folder / "basis.npy"
        return
    with open(folder / "basis.npy", "rb") as file:
        yield file


class RowFile:
    """A matrix in an .npy file, written and read in slices of rows; at an address it is only read."""

    def __init__(self, file, m: int, r: int, dtype, *, is_new: bool):
        self.shape, self.dtype = (m, r), np.dtype(dtype)
        self._handle = file if isinstance(file, Url) else file.fileno()
        header = npy_header(self.shape, self.dtype)
        self._start = len(header)
        if is_new:
            os.pwrite(self._handle, header, 0)
            os.truncate(self._handle, self._start + m * r * self.dtype.itemsize)

    def _at(self, row: int) -> int:
        return self._start + row * self.shape[1] * self.dtype.itemsize

    def __setitem__(self, rows: slice, values: np.ndarray) -> None:
        content, at = np.ascontiguousarray(values, self.dtype).data.cast("B"), self._at(rows.start)
        while len(content):  # the system may write a part
            written = os.pwrite(self._handle, content, at)
            content, at = content[written:], at + written

    def __getitem__(self, rows: slice) -> np.ndarray:
        lo, hi = rows.start, min(rows.stop, self.shape[0])
        values = np.empty((hi - lo, self.shape[1]), self.dtype)
        content, at = values.data.cast("B") if values.size else memoryview(b""), self._at(lo)
        if isinstance(self._handle, Url):
            content[:] = self._handle.read_bytes(at, at + len(content)) if len(content) else b""
            return values
        while len(content):
            read = os.preadv(self._handle, [content], at)
            if not read:
                raise ValueError("the file of the basis ends too early")
            content, at = content[read:], at + read
        return values
