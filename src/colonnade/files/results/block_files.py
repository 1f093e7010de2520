"""A completion in blocks of columns: entries and coefficients of each block in files of their own.

Block k of a folder has the arrays ``blocks/k.indptr.npy``, ``.rows.npy``, ``.values.npy`` (its observed entries, a
column after the other) and ``.coefficients.npy``, ``.status.npy`` and ``.unused.npy`` (its solution, and where in the
values entries stand that have no part in it). A record beside them, written last, says that they are finished, and has
their checksums.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._support.storage import REQUESTS, StorageFailed, Url
from ...data.observations import Observations
from .checkpoints import publish_array, publish_json, read_array, read_json

ENTRIES, SOLUTION = ("indptr", "rows", "values"), ("coefficients", "status", "unused")


@dataclass(frozen=True)
class Block:
    """The entries of some columns of a matrix with m rows.

    Attributes
    ----------
    first, stop : int
        The columns, from `first` to the one before `stop`.
    indptr : int64 array of shape (stop - first + 1,)
    rows : integer array of shape (k,)
    values : float array of shape (k,)
    """

    first: int
    stop: int
    indptr: np.ndarray
    rows: np.ndarray
    values: np.ndarray

    def observations(self, m: int) -> Observations:
        """The same as observations of a matrix of shape (m, stop - first)."""
        full = np.flatnonzero(np.diff(self.indptr) == m)
        return Observations((m, self.stop - self.first), self.indptr, self.rows, self.values, None, full)


def array_path(folder: Path, k: int, name: str) -> Path:
    return folder / "blocks" / f"{k:06d}.{name}.npy"


def _record_path(folder: Path, k: int, kind: str) -> Path:
    return folder / "blocks" / f"{k:06d}.{kind}.json"


def write_entries(folder: Path, k: int, block: Block, m: int) -> None:
    """Write the entries of block k and their record. Writing it twice does no harm."""
    counts = np.diff(block.indptr)
    record = {
        "first": block.first,
        "stop": block.stop,
        "entries": int(block.values.size),
        "empty": int((counts == 0).sum()),
        "full": int((counts == m).sum()),
        "usable": int(((counts >= 2) & (counts < m)).sum()),
        "reach": [float(block.values.min(initial=0)), float(block.values.max(initial=0))],
    }
    _write(folder, k, "entries", record, {name: getattr(block, name) for name in ENTRIES})


def write_solution(folder: Path, k: int, coefficients: np.ndarray, status: np.ndarray, unused: np.ndarray) -> None:
    """Write the solution of block k and its record.

    Arrays of shape (columns, r) and (columns,), and where in its values entries stand that have no part in it.
    """
    _write(folder, k, "solution", {}, {"coefficients": coefficients, "status": status, "unused": unused})


def _write(folder: Path, k: int, kind: str, record: dict, arrays: dict) -> None:
    sums = {name: publish_array(array_path(folder, k, name), array) for name, array in arrays.items()}
    publish_json(_record_path(folder, k, kind), {**record, "sha256": sums})


def records(folder: Path, kind: str) -> list[dict | None]:
    """The records of the blocks 0, 1, 2, ... as far as there are any; None for a block without one."""
    known = {int(path.name.split(".")[0]): path for path in (folder / "blocks").glob(f"*.{kind}.json")}
    with ThreadPoolExecutor(REQUESTS if isinstance(folder, Url) else 1) as pool:
        read = dict(zip(known, pool.map(read_json, known.values())))
    return [read.get(k) for k in range(max(known, default=-1) + 1)]


def missing(folder: Path, kind: str, count: int) -> list[int]:
    """Which of the blocks 0..count-1 have no record."""
    found = records(folder, kind)
    return [k for k in range(count) if k >= len(found) or found[k] is None]


def unbroken(found: list[dict | None]) -> list[dict]:
    """The records before the first gap."""
    return found[: found.index(None)] if None in found else found


def remove_damaged(folder: Path) -> None:
    """Remove the records of files that are not what they were when they were written."""
    for kind in ("entries", "solution"):
        for k, record in enumerate(records(folder, kind)):
            if record is not None:
                remove_if_damaged(folder, kind, k, record)


def remove_if_damaged(folder: Path, kind: str, k: int, record: dict) -> None:
    """The same for one block."""
    if not _is_sound(folder, k, record):
        _record_path(folder, k, kind).unlink(missing_ok=True)


def _is_sound(folder: Path, k: int, record: dict) -> bool:
    try:
        for name, expected in record["sha256"].items():
            read_array(array_path(folder, k, name), expected)
    except StorageFailed:
        raise
    except (OSError, ValueError, KeyError):
        return False
    return True


def read_block(folder: Path, k: int, record: dict) -> Block:
    """The entries of block k."""
    return Block(record["first"], record["stop"], *(read_array(array_path(folder, k, name)) for name in ENTRIES))


def fullest_columns(folder: Path, entries: list[dict], count: int = 3) -> dict[int, int]:
    """The columns with most entries, and how many they have."""
    found = {}
    for k, record in enumerate(entries):
        counts = np.diff(read_array(array_path(folder, k, "indptr")))
        top = np.argsort(-counts, kind="stable")[:count]
        found.update({record["first"] + int(j): int(counts[j]) for j in top})
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:count])


def typical_entries(folder: Path, entries: list[dict], m: int) -> float:
    """The median number of entries of the partial columns; 0 if there are none."""
    counts = [np.diff(read_array(array_path(folder, k, "indptr"))).astype(np.int32) for k in range(len(entries))]
    counts = np.concatenate(counts)
    return float(np.median(counts[counts < m])) if (counts < m).any() else 0.0


def remove_records(folder: Path) -> None:
    """When their content stands in the manifest."""
    paths = sorted((folder / "blocks").glob("*.json"))
    with ThreadPoolExecutor(REQUESTS if isinstance(folder, Url) else 1) as pool:
        list(pool.map(lambda path: path.unlink(), paths))
