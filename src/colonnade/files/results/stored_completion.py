"""A completion that stays on the disk: blocks of columns in files, read when they are asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..._support.arguments import printable
from ..._support.ownership import MARKS, record_of
from ..._support.storage import StorageFailed
from ...completion import Completion
from ...data.observations import Observations, pointers_of
from ...model.full_columns.trials import ErrorScales, trials
from ...uncertainty.calibration import Calibration
from ...uncertainty.means import MOST_FULL, means_and_ends
from ..tables.kinds import memory_size
from .block_files import ENTRIES, SOLUTION, Block, array_path, records
from .checkpoints import publish, publish_json, read_array
from .disk_columns import evenly, partial_choice
from .lessons import read_lesson
from .manifests import FACTS, NAMES, checksum_of_names, names_as_json, read_facts, read_names, sealed

BLOCK_FORMAT = "colonnade completion in blocks 2"
_OPEN_BLOCKS = 4
_ASKED_COLUMNS = 2_000  # of the calibration of intervals
_ASKED_FULL_CELLS = 20_000_000  # of full columns, on which those of means are calibrated too


@dataclass(frozen=True, repr=False, eq=False)
class _Part(Completion):
    """Some columns of a whole, which tells how large errors are."""

    whole: Completion | None = None

    @property
    def _error_scales(self) -> ErrorScales:
        return self.whole._error_scales

    @property
    def _calibration(self) -> Calibration:
        return self.whole._calibration

    @property
    def _trials_of_columns(self) -> None:
        return None


class StoredCompletion(Completion):
    """A completion in a folder, with only some blocks in memory at a time.

    It does what a `Completion` does. The checksum of a block is compared when it is first read. `observations`,
    `coefficients` and `status` are those of all columns, read when first asked for, and must fit into memory; the
    methods do without the first two.

    Attributes
    ----------
    n_blocks : int
    starts : int64 array of shape (n_blocks + 1,)
        Block k has the columns from ``starts[k]`` to the one before ``starts[k + 1]``.
    """

    def __init__(self, folder: Path, facts: dict):
        size = 8.0 * facts["shape"][0] * facts["rank"]
        lesson = read_lesson(folder, facts["space"], mapped=True, verify=size < memory_size())
        bounds = None if facts["bounds"] is None else tuple(float(b) for b in facts["bounds"])
        starts = np.array([block["first"] for block in facts["blocks"]] + [facts["shape"][1]], np.int64)
        values = {
            "space": lesson.space,
            "noise_variance": lesson.noise_variance,
            "bounds": bounds,
            "choices": lesson.choices,
            "by_columns": True,
            "optimism": float(facts["space"]["optimism"]),
            "run": facts["run"],
            "moved_rows": lesson.moved_rows,
            "starts": starts,
            "_folder": folder,
            "_facts": facts,
            "_open": OrderedDict(),
        }
        self.__dict__.update(values)  # the class is frozen

    @property
    def shape(self) -> tuple[int, int]:
        return tuple(self._facts["shape"])

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self._facts["dtype"])

    @property
    def n_blocks(self) -> int:
        return self.starts.size - 1

    def block(self, k: int) -> Completion:
        """The completion of the columns of block k alone."""
        if k not in self._open:
            self._open[k] = self._read(k)
            if len(self._open) > _OPEN_BLOCKS:
                self._open.popitem(last=False)
        self._open.move_to_end(k)
        return self._open[k]

    def _read(self, k: int) -> Completion:
        first, stop = self.starts[k], self.starts[k + 1]
        arrays = {name: self._array(k, name) for name in (*ENTRIES, *SOLUTION)}
        block = Block(int(first), int(stop), *(arrays[name] for name in ENTRIES))
        Z, status = arrays["coefficients"].T, arrays["status"]
        entries = block.observations(self.shape[0])
        return self._completion(entries, Z, status, arrays["unused"])

    def _completion(self, entries: Observations, Z: np.ndarray, status: np.ndarray, unused: np.ndarray) -> Completion:
        """Of some columns, with all that they have in common."""
        common = self.noise_variance, self.bounds, self.choices, True, self.optimism, self.run, self.moved_rows
        return _Part(entries, self.space, Z, status, *common, unused, whole=self)

    def _array(self, k: int, name: str) -> np.ndarray:
        """An array of block k, compared with its checksum."""
        try:
            return read_array(array_path(self._folder, k, name), self._facts["blocks"][k]["sha256"][name])
        except StorageFailed:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{printable(self._folder)} is damaged: {error}; compute it again") from error

    @cached_property
    def status(self) -> np.ndarray:
        return np.concatenate([self._array(k, "status") for k in range(self.n_blocks)])

    @cached_property
    def n_observed(self) -> np.ndarray:
        return np.concatenate([np.diff(self._array(k, "indptr")) for k in range(self.n_blocks)])

    @property
    def row_names(self) -> np.ndarray | None:
        return self.names.get("row_names")

    @property
    def column_names(self) -> np.ndarray | None:
        return self.names.get("column_names")

    @cached_property
    def coefficients(self) -> np.ndarray:
        return np.concatenate([self.block(k).coefficients.T for k in range(self.n_blocks)]).T

    @cached_property
    def observations(self) -> Observations:
        parts = [self.block(k).observations for k in range(self.n_blocks)]
        return Observations(
            self.shape,
            pointers_of(np.concatenate([o.n_observed for o in parts])),
            np.concatenate([o.rows for o in parts]),
            np.concatenate([o.values for o in parts]),
            None,
            np.concatenate([o.full_columns + first for o, first in zip(parts, self.starts)]),
            **self.names,
        )

    @cached_property
    def names(self) -> dict:
        """Row names and column names, as keywords of `Observations`; none if they have none."""
        return read_names(self._folder, self._facts)

    @cached_property
    def unused(self) -> np.ndarray:
        sizes = [block["entries"] for block in self._facts["blocks"]]
        return np.concatenate([self._array(k, "unused") + start for k, start in enumerate(pointers_of(sizes)[:-1])])

    def _parts(self) -> Iterator[Completion]:
        return map(self.block, range(self.n_blocks))

    def _taught_full(self) -> Observations:
        full = np.flatnonzero(self.n_observed == self.shape[0])
        full = full[evenly(full.size, self._facts["space"]["full_columns"])]
        lost = np.searchsorted(pointers_of(self.n_observed), self.unused, side="right") - 1
        return self._joined(self._pieces_of(full[~np.isin(full, lost)])).observations

    def _column_means(self, level: float, unbiased: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        half = self._mean_errors(unbiased).half_width(level)
        parts = [means_and_ends(self.block(k), half, unbiased) for k in range(self.n_blocks)]
        return tuple(np.concatenate(part) for part in zip(*parts))

    def _asked_columns(self) -> Completion:
        return self.some_columns(_ASKED_COLUMNS, n_full=min(MOST_FULL, _ASKED_FULL_CELLS // self.shape[0]))

    def _by_blocks(self, columns):
        """The blocks that have some of these columns: which of them, and the block."""
        owner = np.searchsorted(self.starts, columns, side="right") - 1
        for k in np.unique(owner):
            at = np.flatnonzero(owner == k)
            yield at, columns[at] - self.starts[k], self.block(k)

    def _fill(self, target, which) -> None:
        for at, columns, block in self._by_blocks(which):
            part = np.empty((target.shape[0], at.size), target.dtype, order="F")
            block._fill(part, columns)
            target[:, at] = part

    def _entries(self, rows, columns) -> np.ndarray:
        result = np.empty(rows.size, self.dtype)
        for at, here, block in self._by_blocks(columns):
            result[at] = block._entries(rows[at], here)
        return result

    def _sizes(self, rows, columns) -> np.ndarray:
        result = np.empty(rows.size)
        for at, here, block in self._by_blocks(columns):
            result[at] = block._sizes(rows[at], here)
        return result

    def _column_factors(self, columns) -> np.ndarray:
        result = np.empty(columns.size)
        for at, here, block in self._by_blocks(columns):
            result[at] = block._column_factors(here)
        return result

    def _n_used(self, columns) -> np.ndarray:
        result = np.empty(columns.size, np.int64)
        for at, here, block in self._by_blocks(columns):
            result[at] = block._n_used(here)
        return result

    def _deviations(self, rows, columns) -> np.ndarray:
        result = np.empty(rows.size)
        for at, here, block in self._by_blocks(columns):
            result[at] = block._deviations(rows[at], here)
        return result

    @cached_property
    def _trials(self):
        return trials(self._asked_columns())

    def some_columns(self, count: int, n_full: int = 0) -> Completion:
        """The completion of some partial columns that intervals can be calibrated on, and of some full ones if wanted.

        Evenly chosen where there are more.
        """
        counts, m = self.n_observed, self.shape[0]
        least, _ = partial_choice(self._facts["blocks"], count)
        partial, full = np.flatnonzero((counts >= least) & (counts < m)), np.flatnonzero(counts == m)
        return self._joined(self._pieces_of(partial[evenly(partial.size, count)], full[evenly(full.size, n_full)]))

    def _pieces_of(self, *kinds) -> Iterator[Completion]:
        """Some columns of every block that has any: the same kinds one after the other."""
        for k, (first, end) in enumerate(pairwise(self.starts)):
            columns = np.concatenate([some[(some >= first) & (some < end)] - first for some in kinds])
            if columns.size:
                yield self.block(k)._only(columns)

    def _joined(self, parts) -> Completion:
        """Completions of some columns as one; the columns that are known in all rows count as full."""
        parts = list(parts)
        observations = [part.observations for part in parts]
        starts = pointers_of([o.values.size for o in observations])
        none = np.zeros(0, np.int64)
        counts = np.concatenate([none, *(o.n_observed for o in observations)])
        joined = Observations(
            (self.shape[0], counts.size),
            pointers_of(counts),
            np.concatenate([none.astype(np.int32), *(o.rows for o in observations)]),
            np.concatenate([none.astype(self.dtype), *(o.values for o in observations)]),
            None,
            np.flatnonzero(counts == self.shape[0]),
        )
        Z = np.concatenate([np.zeros((self.rank, 0)), *(part.coefficients for part in parts)], axis=1)
        codes = np.concatenate([none.astype(np.int8), *(part.status for part in parts)])
        unused = np.concatenate([none, *(part.unused + start for part, start in zip(parts, starts))])
        return self._completion(joined, Z, codes, unused)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<Completion of a {m:,} x {n:,} matrix, rank {self.rank}; in {self.n_blocks:,} blocks on the disk>"


def write_manifest(folder: Path, shape, dtype, names, lesson_facts: dict, bounds, run: dict) -> None:
    """The facts of a completion all of whose blocks are there: from now on the folder can be loaded."""
    entries, solutions = records(folder, "entries"), records(folder, "solution")
    blocks = [{**entry, "sha256": {**entry["sha256"], **solved["sha256"]}} for entry, solved in zip(entries, solutions)]
    written = names_as_json(*names)
    if written is not None:
        publish(folder / NAMES, written)
    facts = {
        "format": BLOCK_FORMAT,
        "shape": list(shape),
        "dtype": np.dtype(dtype).str,
        "rank": lesson_facts["shape"][1],
        "bounds": None if bounds is None else [repr(b) for b in bounds],
        "space": lesson_facts,
        "sha256_of_names": checksum_of_names(written),
        "blocks": blocks,
        "run": run,
    }
    publish_json(folder / FACTS, sealed(facts))


def manifest_of(folder: Path) -> dict | None:
    """The facts of a completion in blocks; None if there is none."""
    try:
        facts = read_facts(folder)
    except StorageFailed:
        raise
    except (OSError, ValueError):
        return None
    return facts if facts.get("format") == BLOCK_FORMAT else None


def holds_only_blocks(folder: Path) -> bool:
    """Whether a folder holds a completion in blocks and nothing else."""
    facts = manifest_of(folder)
    if facts is None:
        return False
    arrays = {f"{name}.npy" for name in facts["space"]["sha256"]}
    blocks = {array_path(folder, k, name) for k in range(len(facts["blocks"])) for name in (*ENTRIES, *SOLUTION)}
    there = set((folder / "blocks").iterdir()) if (folder / "blocks").is_dir() else set()
    marks = MARKS if record_of(folder) is not None else ()
    return there <= blocks and {path.name for path in folder.iterdir()} <= {FACTS, NAMES, "blocks", *arrays, *marks}
