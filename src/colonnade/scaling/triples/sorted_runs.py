"""Triples grouped by columns by many processes: sorted runs, a plan of the blocks, and blocks merged from the runs.

    files --write_run--> runs --make_plan--> where blocks begin --merge_block--> blocks of entries

A run holds some lines of a file, sorted by columns. Every step writes files under names of their own, and its record
last, so that it may run twice, on any machine. The blocks have the bytes of `cutting.cut`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..._support.arguments import printable, shown
from ..._support.storage import read_ends, read_range
from ...data.observations import index_dtype
from ...files.results.block_files import write_entries
from ...files.results.checkpoints import npy_header, publish_array, publish_json, read_array, read_json
from ...files.tables.kinds import kind_of
from ...files.tables.parquet import opened
from ...files.tables.triples import refuse_other_types, refuse_rounded_values, refuse_unknown
from .cutting import MOST_COLUMNS, Checker
from .grouping import Batch, Labels, label_range, pieces

RUN_LINES = 1 << 22  # Lines of a run, about; 16 bytes for each, and about 100 while they are sorted.
_PLAN = "plan.json"
_HEADER = len(npy_header((1, 1), np.uint8))  # Bytes before the numbers of an .npy file with two dimensions.


@dataclass(frozen=True)
class Side:
    """How labels of rows or columns become numbers.

    Attributes
    ----------
    field : str
        The name of the column with the labels.
    low, length : int
        Labels are ``low`` to ``low + length - 1``; their numbers count from 0.
    is_exact : bool
        Whether all of them occur, or count although they do not.
    labels : (path, str) or None
        The file of all labels that occur, and its checksum; their numbers are their places in it.
    """

    field: str
    low: int
    length: int
    is_exact: bool
    labels: tuple | None = None

    def numbers(self, labels) -> np.ndarray:
        """Of an Arrow array of labels."""
        if labels.null_count:
            raise ValueError(f"some cells of the column {shown(self.field)} are empty; every entry needs its place")
        found = labels.to_numpy(zero_copy_only=False)
        if self.labels is not None:
            return _labels_at(*self.labels).positions(found)
        least, most = int(found.min(initial=self.low)), int(found.max(initial=self.low))
        if least < self.low or most >= self.low + self.length:
            raise IndexError(
                f"the column {shown(self.field)} must hold whole numbers in {self.low}..{self.low + self.length - 1:,};"
                f" it holds {least if least < self.low else most}"
            )
        return (found - self.low if self.low else found).astype(index_dtype(self.length), copy=False)


@dataclass(frozen=True)
class RunForm:
    """What all runs have in common.

    Attributes
    ----------
    fields : (str, str, str)
    sides : (Side, Side)
        Of rows and of columns.
    dtype : str
        Of the values.
    """

    fields: tuple[str, str, str]
    sides: tuple[Side, Side]
    dtype: str

    @property
    def record(self) -> np.dtype:
        """Of an entry in the file of a run."""
        rows, columns = (index_dtype(side.length) for side in self.sides)
        return np.dtype([("column", columns), ("row", rows), ("value", self.dtype)])


@lru_cache(maxsize=4)  # Labels of rows and columns, and those of them that occur.
def _labels_at(path, expected: str) -> Labels:
    return Labels(read_array(path, expected))


def facts_of_files(paths, fields) -> list[dict]:
    """What the footers of some files say: lines of each row group, types, and ranges of labels."""
    found: list[dict] = []
    read_ends([path for path in paths if kind_of(path) == "parquet"])
    for path in paths:
        if kind_of(path) != "parquet":
            found.append({"kind": kind_of(path)})
            continue
        file = opened(path)
        schema, metadata = file.schema_arrow, file.metadata
        refuse_unknown(path, fields, schema.names)
        refuse_other_types(schema, fields)
        lines = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
        types = [str(schema.field(name).type) for name in fields]
        ranges = [label_range([path], name) for name in fields[:2]] if sum(lines) else [None, None]
        found.append({"kind": "parquet", "lines": lines, "types": types, "ranges": ranges})
    return found


def pieces_of_files(paths, lines: list[list[int]], most: int | None = None) -> list[tuple]:
    """Pairs (path, row groups) with about `most` lines each."""
    found, most = [], most or RUN_LINES
    for path, sizes in zip(paths, lines):
        groups, total = [], 0
        for k, size in enumerate(sizes):
            if groups and total + size > most:
                found.append((path, groups))
                groups, total = [], 0
            groups, total = [*groups, k], total + size
        found += [(path, groups)] if groups else []
    return found


def _at(folder, k: int, name: str):
    return folder / "runs" / f"{k:06d}.{name}"


def runs_done(folder) -> set[int]:
    """The numbers of the runs that are there."""
    return {int(path.name.split(".")[0]) for path in (folder / "runs").glob("*.run.json")}


def write_run(folder, k: int, form: RunForm, path, groups: list[int]) -> None:
    """Write run k, the lines of some row groups of a file sorted by columns, and its record."""
    (row, column, value), parts = form.fields, []
    occurs = [None if side.is_exact else np.zeros(side.length, bool) for side in form.sides]
    for read in pieces(path, (column, row, value), groups):
        columns, rows, values = read.columns
        refuse_rounded_values(rows, columns, values)
        numbers = form.sides[0].numbers(rows), form.sides[1].numbers(columns)
        for seen, found in zip(occurs, numbers):
            if seen is not None:
                seen[found] = True
        values = values.to_numpy(zero_copy_only=False).astype(form.dtype, copy=False)
        part = np.empty(values.size, form.record)
        part["row"], part["column"], part["value"] = *numbers, values
        parts.append(part[~np.isnan(values)] if np.isnan(values).any() else part)
    entries = np.concatenate([np.zeros(0, form.record), *parts])
    if entries.size and (entries["column"][1:] < entries["column"][:-1]).any():
        entries = entries[order_of([entries["column"]])]
    columns, counts = _counted(entries["column"])
    _publish_records(_at(folder, k, "entries.npy"), entries)
    publish_array(_at(folder, k, "columns.npy"), columns)
    publish_array(_at(folder, k, "counts.npy"), counts.astype(np.int32))
    for side, seen in zip(("seen_rows.npy", "seen_columns.npy"), occurs):
        if seen is not None:
            publish_array(_at(folder, k, side), np.packbits(seen))
    publish_json(_at(folder, k, "run.json"), {"entries": int(entries.size)})


def _counted(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different columns of a sorted array, and how often each occurs."""
    begins = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]]) if columns.size else np.zeros(0, np.int64)
    return columns[begins], np.diff(np.r_[begins, columns.size])


def _publish_records(path, entries: np.ndarray) -> None:
    """Records as an array of bytes, of shape (entries, bytes of one)."""
    publish_array(path, entries.view(np.uint8).reshape(entries.size, entries.dtype.itemsize))


def order_of(keys: list[np.ndarray]) -> np.ndarray:
    """The stable order by some arrays of numbers from 0; the first array counts most.

    A key and a place fit into one whole number, and such numbers are sorted ten times as fast as places by their keys.
    """
    size = keys[0].size
    bits = max(1, int(size - 1).bit_length())
    widths = [int(key.max(initial=0)).bit_length() for key in keys]
    if sum(widths) + bits <= 63:
        packed = np.zeros(size, np.int64)
        for key, width in zip(keys, widths):
            packed = (packed << width) | key
        return _sorted_places(packed, bits)
    order = np.arange(size)
    for key, width in zip(reversed(keys), reversed(widths)):
        now = key[order]
        order = order[_sorted_places(now.astype(np.int64), bits) if width + bits <= 63 else now.argsort(kind="stable")]
    return order


def _sorted_places(keys: np.ndarray, bits: int) -> np.ndarray:
    packed = (keys << bits) | np.arange(keys.size)
    packed.sort()
    return packed & ((1 << bits) - 1)


def plan_there(folder) -> dict | None:
    """The plan, if it was made."""
    path = folder / "runs" / _PLAN
    return read_json(path) if path.is_file() else None


def make_plan(folder, n_runs: int, form: RunForm, target: int) -> dict:
    """Where blocks begin, and where the entries of each lie in the runs; written, and its small part returned.

    Returns
    -------
    dict
        starts : first columns of the blocks, and the number of columns; shape : of the matrix; named : whether rows and
        columns have labels that are no positions.
    """
    sides = [_occurring(folder, n_runs, side, name) for side, name in zip(form.sides, ("rows", "columns"))]
    sums = [
        None if labels is None else publish_array(folder / "runs" / f"{name}.npy", labels)
        for name, labels in zip(("rows", "columns"), sides)
    ]
    shape = [side.length if labels is None else labels.size for side, labels in zip(form.sides, sides)]
    counts = np.zeros(form.sides[1].length, np.int64)
    for k in range(n_runs):
        counts[read_array(_at(folder, k, "columns.npy"))] += read_array(_at(folder, k, "counts.npy"))
    starts = cut_by_counts(counts if sides[1] is None else counts[sides[1]], target)
    given = starts if sides[1] is None else np.r_[sides[1], form.sides[1].length][starts]
    offsets = np.zeros((starts.size, n_runs), np.int64)
    for k in range(n_runs):
        columns, counts = (read_array(_at(folder, k, f"{name}.npy")) for name in ("columns", "counts"))
        offsets[:, k] = np.r_[0, np.cumsum(counts)][np.searchsorted(columns, given)]
    publish_array(folder / "runs" / "offsets.npy", offsets)
    # Labels are positions if they count from 0 and all occur.
    named = [side.labels is not None or bool(side.low) or labels is not None for side, labels in zip(form.sides, sides)]
    plan = {"starts": starts.tolist(), "shape": shape, "named": named, "occurring": sums}
    publish_json(folder / "runs" / _PLAN, plan)
    return plan


def _occurring(folder, n_runs: int, side: Side, name: str) -> np.ndarray | None:
    """The numbers that occur in any run; None if all do, or count anyway."""
    if side.is_exact:
        return None
    seen = np.zeros(-(-side.length // 8), np.uint8)
    for k in range(n_runs):
        seen |= read_array(_at(folder, k, f"seen_{name}.npy"))
    found = np.flatnonzero(np.unpackbits(seen, count=side.length))
    return None if found.size == side.length else found


def cut_by_counts(counts: np.ndarray, target: int) -> np.ndarray:
    """Where blocks of columns begin, and the number of columns; as `cutting.cut` cuts entries."""
    sums, starts, n = np.cumsum(counts), [0], counts.size
    while starts[-1] < n:
        first = starts[-1]
        before = sums[first - 1] if first else 0
        full = int(np.searchsorted(sums, before + target)) + 1
        starts.append(min(full, first + MOST_COLUMNS, n))
    return np.array(starts, np.int64)


def merge_block(folder, k: int, n_runs: int, form: RunForm, plan: dict, duplicates: str) -> tuple | None:
    """Write block k from its parts of all runs; returns what cannot be taken, as `Checker.faults` does."""
    (m, _), (first, stop), record = plan["shape"], plan["starts"][k : k + 2], form.record
    content = read_range(folder / "runs" / "offsets.npy", _HEADER + 8 * n_runs * k, 16 * n_runs)
    offsets, parts = np.frombuffer(content, np.int64).reshape(2, n_runs), [np.zeros(0, record)]
    for run in range(n_runs):
        lo, hi = offsets[:, run].tolist()
        if hi > lo:
            path = _at(folder, run, "entries.npy")
            start, size = _HEADER + lo * record.itemsize, (hi - lo) * record.itemsize
            parts.append(np.frombuffer(read_range(path, start, size), record))
    entries = np.concatenate(parts)
    rows, columns = (
        _renumbered(folder / "runs" / f"{name}s.npy", found, entries[name])
        for name, found in zip(("row", "column"), plan["occurring"])
    )
    order = order_of([columns - columns.min(initial=stop), rows])
    checker = Checker(duplicates)
    batch = Batch(columns[order], rows[order], entries["value"][order])
    block = checker.block(first, stop, batch, index_dtype(m), np.dtype(form.dtype))
    if block is None:
        return checker.faults
    write_entries(folder, k, block, m)
    return None


def _renumbered(path, expected: str | None, numbers: np.ndarray) -> np.ndarray:
    """Numbers among those that occur, if some do not; `expected` is the checksum of the file that lists them."""
    return numbers if expected is None else _labels_at(path, expected).positions(numbers)


def names_of(folder, form: RunForm, plan: dict) -> list[list[str] | None]:
    """The names of rows and columns: labels as text, None where they are positions."""
    names: list[list[str] | None] = []
    for name, side, named, found in zip(("rows", "columns"), form.sides, plan["named"], plan["occurring"]):
        if not named:
            names.append(None)
            continue
        numbers = np.arange(side.length) if found is None else read_array(folder / "runs" / f"{name}.npy", found)
        labels = numbers + side.low if side.labels is None else read_array(*side.labels)
        names.append([str(label) for label in labels.tolist()])
    return names


def refuse_no_entry(paths, lines: list[list[int]]) -> None:
    if not sum(map(sum, lines)):
        raise ValueError(f"{printable(paths[0])} has no entry")
