"""Measurements: what was read of a source that may fail, and how much may still be read."""

from __future__ import annotations

import numpy as np

from ...data.observations import Observations, index_dtype, pointers_of
from ...data.sources import Source

_CALL = 4096  # Entries of a call: few calls of an expensive function, and little lost if one is interrupted.
_SPLIT = 16  # Pieces into which a call that fails twice is cut, down to the entry that it fails for.
_TRIES = 3  # Attempts at an entry that is NaN.
_STRIKES = 3  # Entries of a column that failed before any came, after which it is given up.
_FAILURES = 60  # Calls that failed in a row, after which the source is given up.
_FRUITLESS = 4  # Requests in a row without a number, after which it is given up too.


class Measurements:
    """Entries of a source under a budget, column by column.

    A call that fails is made again, and then in pieces; what is NaN is asked for again. What cannot be had stays NaN,
    and a column that gave nothing is not asked for again. Calls that failed have read nothing, and cost nothing. When
    nothing comes any more, a RuntimeError says so.

    Attributes
    ----------
    left : int
        How many entries may still be read.
    dead : bool array of shape (n,)
        The columns that were asked for and gave nothing.
    avoided : int64 array
        Rows that are not chosen at random.
    failures : int
        Calls that failed.
    """

    def __init__(self, source: Source, budget: int):
        self.source, self.shape, self.dtype = source, source.shape, source.dtype
        self.dead = np.zeros(self.shape[1], bool)
        self.avoided = np.zeros(0, np.int64)
        self.failures = 0
        self._strikes = np.zeros(self.shape[1], np.int64)
        self._end = source.entries_read + budget
        self._known: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._failed_in_a_row = self._fruitless = 0
        self._last_failure = "gave nothing but NaN"

    @property
    def left(self) -> int:
        return self._end - self.source.entries_read

    def column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and values that are known of column j, in the order of reading."""
        return self._known.get(int(j), (np.zeros(0, np.int64), np.zeros(0, self.dtype)))

    def n_known(self, columns) -> np.ndarray:
        return np.array([self.column(j)[0].size for j in columns], np.int64)

    def read(self, rows, columns) -> np.ndarray:
        """Entries that are not known yet, as far as the budget goes; NaN for those that could not be had."""
        values = np.full(rows.size, np.nan, self.dtype)
        asked = np.flatnonzero(~self.dead[columns])[: self.left]
        for _ in range(_TRIES):
            missing = asked[np.isnan(values[asked])]
            for at in _pieces(missing[: self.left], _CALL):
                values[at] = self._ask(rows[at], columns[at])
            if np.isnan(values[missing]).all():  # Nothing new came, so nothing more will come.
                break
        if asked.size:
            self._judge(columns[asked], np.isfinite(values[asked]))
        return values

    def read_rows(self, columns, counts, rng, first=()) -> None:
        """Read columns until counts[k] entries of columns[k] are known: first[k] if given, and then random rows."""
        wanted = [
            self._rows_to_read(j, count, rng, first[k] if len(first) else None)
            for k, (j, count) in enumerate(zip(columns, counts))
        ]
        owners = np.repeat(np.asarray(columns, np.int64), [len(rows) for rows in wanted])
        self.read(np.array([i for rows in wanted for i in rows], np.int64), owners)

    def _rows_to_read(self, j, count, rng, first) -> list[int]:
        m = self.shape[0]
        taken = set(self.column(j)[0].tolist())
        missing = int(count) - len(taken)
        taken.update(self.avoided.tolist())
        rows = [i for i in (() if first is None else first.tolist()) if i not in taken]
        taken.update(rows)
        missing = min(missing, m - len(taken) + len(rows))
        if 2 * (len(taken) + missing) > m:  # Most rows are taken, so the others are drawn from.
            others = np.setdiff1d(np.arange(m), np.fromiter(taken, np.int64, len(taken)))
            return rows + rng.permutation(others)[: max(0, missing - len(rows))].tolist()
        while len(rows) < missing:
            i = int(rng.integers(m))
            if i not in taken:
                taken.add(i)
                rows.append(i)
        return rows

    def _judge(self, columns, came) -> None:
        """Columns that gave nothing are dead; a source that gives nothing any more ends the work."""
        for j in np.setdiff1d(columns, columns[came]):
            self.dead[j] = self.column(j)[0].size == 0
        self._fruitless = 0 if came.any() else self._fruitless + 1
        if self._fruitless == _FRUITLESS:
            self._give_up()

    def _give_up(self) -> None:
        raise RuntimeError(
            f"nothing comes from the source any more: it {self._last_failure}. The attribute observations of this"
            " exception is what was read"
        )

    def _ask(self, rows, columns) -> np.ndarray:
        """One call, and if it fails twice a call for each of its parts."""
        result = np.full(rows.size, np.nan, self.dtype)
        alive = np.flatnonzero(~self.dead[columns])
        for _ in range(2 if alive.size else 0):
            try:
                result[alive] = self.source.entries(rows[alive], columns[alive], allow_gaps=True)
            except Exception as error:  # The source is not ours, so any error may come.
                self._count_failure(error)
            else:
                self._failed_in_a_row = 0
                self._keep(rows[alive], columns[alive], result[alive])
                return result
        if alive.size == 1:
            j = columns[alive[0]]
            self._strikes[j] += 1
            self.dead[j] = self._strikes[j] >= _STRIKES and self.column(j)[0].size == 0
        for at in _pieces(alive, -(-alive.size // _SPLIT)) if alive.size > 1 else ():
            result[at] = self._ask(rows[at], columns[at])
        return result

    def _count_failure(self, error) -> None:
        self.failures += 1
        self._failed_in_a_row += 1
        self._last_failure = f"raised {type(error).__name__}: {error}"
        if self._failed_in_a_row == _FAILURES:
            self._give_up()

    def _keep(self, rows, columns, values) -> None:
        came = np.isfinite(values)
        order = np.flatnonzero(came)[np.argsort(columns[came], kind="stable")]
        if order.size == 0:
            return
        rows, columns, values = rows[order], columns[order], values[order]
        edges = np.flatnonzero(np.diff(columns, prepend=-1))
        for new_rows, new_values, j in zip(np.split(rows, edges[1:]), np.split(values, edges[1:]), columns[edges]):
            old_rows, old_values = self.column(j)
            self._known[int(j)] = np.concatenate([old_rows, new_rows]), np.concatenate([old_values, new_values])

    def take(self, columns) -> Observations:
        """What is known of some columns; none counts as full."""
        counts = self.n_known(columns)
        known = [self.column(j) for j in columns]
        rows = np.concatenate([np.zeros(0, np.int64), *(rows for rows, _ in known)])
        values = np.concatenate([np.zeros(0, self.dtype), *(values for _, values in known)])
        order = np.lexsort((rows, np.repeat(np.arange(len(columns)), counts)))
        rows, values = rows[order].astype(index_dtype(self.shape[0])), values[order]
        return Observations((self.shape[0], len(columns)), pointers_of(counts), rows, values, None, np.zeros(0, int))

    def observations(self) -> Observations:
        """All that was read; the columns known in every row are full."""
        o = self.take(range(self.shape[1]))
        return Observations(o.shape, o.indptr, o.rows, o.values, None, np.flatnonzero(o.n_observed == o.shape[0]))


def _pieces(indices, size):
    return [indices[lo : lo + size] for lo in range(0, indices.size, size)]
