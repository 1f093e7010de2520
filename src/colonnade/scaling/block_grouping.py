"""Triples in any order to blocks of columns on the disk: labels become numbers, entries are sorted and cut."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from .._support.arguments import printable, shown
from .._support.atomic_writing import in_bytes
from .._support.storage import Url, remove_tree
from .._support.threads import InBackground, ahead
from ..data.observations import index_dtype
from ..files.results.block_files import records, remove_records, unbroken, write_entries
from ..files.results.checkpoints import publish_json
from .memory import OWN_MEMORY, sorting_memory
from .run import Run
from .triples.cutting import Checker, cut
from .triples.grouping import (
    NotOrdered,
    Triples,
    batches_as_they_are,
    interrupt,
    may_be_ordered,
    n_labels,
    sorted_batches,
)
from .triples.labels import Names, numbered, recounted

_BYTES_OF_A_ROW = 100  # Of a full column, in memory several times while it is cut, written and learned from; measured.


def grouped(run: Run, folder: Path) -> tuple[Triples, Names, list[dict]]:
    """The blocks of entries, and the labels that they were cut by."""
    memory, marker = sorting_memory(run.memory), folder / "labels.json"
    triples, names = numbered(run.given, folder, memory)
    triples = replace(triples, keep_order=run.duplicates != "error")
    if marker.exists():
        triples, names = recounted(triples, names, folder, memory)
    _refuse_too_tall(run, triples)
    entries = _group(run, folder, triples, names)
    if run.given.shape is None and not marker.exists():
        suspicious = not any(record["full"] for record in entries) or any(record["empty"] for record in entries)
        again, listed = recounted(triples, names, folder, memory) if suspicious else (triples, names)
        if again.shape != triples.shape:  # some labels do not occur, so that rows and columns have other positions
            _discard_blocks(folder)
            publish_json(marker, {})
            return again, listed, _group(run, folder, again, listed)
    return triples, names, entries


def _refuse_too_tall(run: Run, triples: Triples) -> None:
    """Refuse a matrix if a full column, in memory as a whole, exceeds the limit; rows that occur are counted."""
    m, limit = triples.shape[0], run.memory - OWN_MEMORY
    if _BYTES_OF_A_ROW * m > limit and run.given.shape is None and triples.labels[0] is None:
        m = triples.n_lines if m > limit else n_labels(triples, 0)  # labels with large gaps between them
    refuse_rows(run, m)


def refuse_rows(run: Run, m: int) -> None:
    """Refuse a matrix of so many rows if a full column, in memory as a whole, exceeds the limit."""
    limit = run.memory - OWN_MEMORY
    if _BYTES_OF_A_ROW * m > limit:
        needed = in_bytes(1e8 * np.ceil((_BYTES_OF_A_ROW * m + OWN_MEMORY) / 1e8))
        raise MemoryError(
            f"{printable(run.given.paths[0])}, column {shown(run.given.fields[0])}, has {m:,} different rows: a full"
            f" column needs about {in_bytes(_BYTES_OF_A_ROW * m)}, and the memory limit leaves {in_bytes(limit)};"
            f" raise --memory-limit (memory_limit=...) to {needed}, or transpose the data (--transpose, transpose=True)"
        )


def _discard_blocks(folder: Path) -> None:
    """In one step on a disk; on a store the records go first."""
    if isinstance(folder, Url):
        remove_records(folder)
        remove_tree(folder / "blocks")
        return
    shutil.rmtree(folder / "discarded", ignore_errors=True)
    os.replace(folder / "blocks", folder / "discarded")
    shutil.rmtree(folder / "discarded", ignore_errors=True)


def _group(run: Run, folder: Path, triples: Triples, names: Names) -> list[dict]:
    """Write the blocks of entries that are not there yet; the records of all."""
    done = unbroken(records(folder, "entries"))
    first = done[-1]["stop"] if done else 0
    if first < triples.shape[1] and may_be_ordered(triples):
        try:
            _write_blocks(run, folder, triples, names, len(done), first, batches_as_they_are(triples, first))
            return records(folder, "entries")
        except NotOrdered:
            _discard_blocks(folder)
            done, first = [], 0
    if first < triples.shape[1]:
        run.progress("sorting", 0, triples.n_lines)
        connected = []
        batches = sorted_batches(triples, first, sorting_memory(run.memory), folder / "sorting", connected.append)
        stop = partial(interrupt, connected)
        _write_blocks(run, folder, triples, names, len(done), first, batches, stop)
    return records(folder, "entries")


def _write_blocks(run: Run, folder, triples: Triples, names: Names, k: int, first: int, batches, stop=lambda: None):
    (folder / "blocks").mkdir(exist_ok=True)
    checker = Checker(run.duplicates, (names.rows, names.columns))
    m, done = triples.shape[0], 0
    with closing(ahead(batches, stop=stop)) as read, InBackground() as writers:
        for lo, hi, entries in cut(read, triples.shape, first, run.block_entries):
            block = checker.block(lo, hi, entries, index_dtype(m), triples.dtype)
            if block is not None:
                writers.call(write_entries, folder, k, block, m)
            k, done = k + 1, done + entries.values.size
            run.progress("grouping", done, triples.n_lines)
    checker.refuse_faults()
