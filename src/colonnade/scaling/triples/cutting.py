"""Ordered batches of entries, cut into blocks of whole columns. Where the cuts fall does not depend on the batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ...data.observations import merge_duplicates, place_of, pointers_of
from ...files.results.block_files import Block
from .grouping import Batch

MOST_COLUMNS = 1 << 18  # of a block


def cut(batches: Iterable[Batch], shape, first: int, target: int) -> Iterator[tuple[int, int, Batch]]:
    """The entries from column `first` on, as (first column, column after the last, entries).

    A block ends with the column that brings it to `target` entries, after `MOST_COLUMNS` columns, or with the matrix.
    """
    pending = _Pending(first, shape[1], target)
    for batch in batches:
        pending.add(batch)
        while pending.columns_seen > pending.stop:
            yield pending.take()
    while pending.first < shape[1]:
        yield pending.take()


class _Pending:
    """Entries that are not in a block yet."""

    def __init__(self, first: int, n_columns: int, target: int):
        self.first, self._n, self._target = first, n_columns, target
        self._restart([])

    def _restart(self, parts: list[Batch]) -> None:
        self._parts, self._size = [], 0
        self.columns_seen = self.first
        self.stop = min(self.first + MOST_COLUMNS, self._n)
        for part in parts:
            self.add(part)

    def add(self, batch: Batch) -> None:
        size = batch.columns.size
        if size == 0:
            return
        if self._size < self._target <= self._size + size:
            self.stop = min(self.stop, int(batch.columns[self._target - self._size - 1]) + 1)
        self._parts.append(batch)
        self._size += size
        self.columns_seen = int(batch.columns[-1]) + 1

    def take(self) -> tuple[int, int, Batch]:
        """The next block."""
        names = "columns", "rows", "values"
        joined = [np.concatenate([getattr(part, name) for part in self._parts] or [np.zeros(0)]) for name in names]
        first, stop = self.first, self.stop
        at = int(np.searchsorted(joined[0], stop))
        self.first = stop
        self._restart([Batch(*(array[at:] for array in joined))])
        return first, stop, Batch(*(array[:at] for array in joined))


class Checker:
    """Turns entries into blocks; those that cannot be taken are counted, and refused at the end.

    Parameters
    ----------
    m : int
    duplicates : {"error", "mean", "last"}
    names : (list of str or None, list of str or None)
        Of rows and columns, for the messages.
    """

    def __init__(self, duplicates: str, names=(None, None)):
        self._duplicates, self._names = duplicates, names
        self._repeated = self._infinite = 0
        self._first_repeated = self._first_infinite = None

    def block(self, first: int, stop: int, entries: Batch, index_type, value_type) -> Block | None:
        """The block, or None if a fault was found in this or an earlier one."""
        columns, rows = entries.columns, entries.rows.astype(index_type, copy=False)
        values = entries.values.astype(value_type, copy=False)
        self._note_infinite(columns, rows, values)
        is_first = np.ones(columns.size, bool)
        is_first[1:] = (columns[1:] != columns[:-1]) | (rows[1:] != rows[:-1])
        if not is_first.all():
            if self._duplicates == "error":
                self._note_repeated(columns, rows, is_first)
            else:
                rows, columns, values, _ = merge_duplicates(rows, columns, values, None, is_first, self._duplicates)
        if self._repeated or self._infinite:
            return None
        indptr = pointers_of(np.bincount(columns - first, minlength=stop - first)) if columns.size else None
        indptr = np.zeros(stop - first + 1, np.int64) if indptr is None else indptr
        return Block(first, stop, indptr, rows, values)

    def _note_infinite(self, columns, rows, values) -> None:
        bad = np.isinf(values)
        if bad.any():
            at = int(np.argmax(bad))
            self._first_infinite = self._first_infinite or (rows[at], columns[at], values[at])
            self._infinite += int(bad.sum())

    def _note_repeated(self, columns, rows, is_first) -> None:
        at = int(np.argmin(is_first))
        self._first_repeated = self._first_repeated or (rows[at], columns[at])
        self._repeated += int((~is_first).sum())

    @property
    def faults(self) -> tuple:
        """What was found: counts and first places, for `absorb`."""
        return self._infinite, self._first_infinite, self._repeated, self._first_repeated

    def absorb(self, faults: tuple) -> None:
        """Add what another one has found in later columns."""
        self._first_infinite, self._first_repeated = (
            self._first_infinite or faults[1],
            self._first_repeated or faults[3],
        )
        self._infinite, self._repeated = self._infinite + faults[0], self._repeated + faults[2]

    def refuse_faults(self) -> None:
        if self._infinite:
            row, column, value = self._first_infinite
            raise ValueError(
                f"the entry at {place_of(row, column, self._names)} is {value} ({self._infinite:,} infinite in all);"
                " use NaN for what is not known"
            )
        if self._repeated:
            raise ValueError(
                f"{self._repeated:,} entries are given twice, the first at"
                f" {place_of(*self._first_repeated, self._names)}: choose duplicates='mean' or 'last' (--duplicates)"
            )
