"""A solution in a folder: what was learned in common files, and blocks of columns that are read when needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..._support.arguments import printable
from ..._support.atomic_writing import publish
from ..._support.storage import StorageFailed
from ...data.observations import Observations, pointers_of
from ...model.learned import Learned
from ...model.shared import SharedModel
from ...model.solution import AnySolution, Solution
from ...model.storing import learned_from
from ..tables.kinds import memory_size
from .block_files import array_path
from .checkpoints import publish_json, read_array
from .disk_columns import evenly, partial_choice, side_by_side
from .learned_files import read_full_column_model, read_model
from .manifests import FACTS, FOLDER, SEAL, files_of, read_names, sealed

_OPEN_BLOCKS = 4  # Blocks that stay in memory.


class StoredSolution(AnySolution):
    """A solution in a folder, with only some blocks in memory at a time.

    The checksum of a block is compared when it is first read. `observations`, `coefficients`, `status` and `unused` are
    those of all columns, read when first asked for, and must fit into memory; predictions do without them. A result
    that was saved from memory is one block, `whole`.
    """

    is_on_disk = True

    def __init__(self, folder: Path, facts: dict):
        self._folder, self._facts, self._open = folder, facts, OrderedDict()
        self.shape, self.dtype = tuple(facts["shape"]), np.dtype(facts["dtype"])
        is_small = 8.0 * facts["shape"][0] * facts["rank"] < memory_size()
        is_whole = facts["whole"] is not None
        from_full = read_full_column_model(folder, facts["space"], mapped=not is_whole, verify=is_whole or is_small)
        self.space, self.noise_variance, self.moved_rows = (
            from_full.space,
            from_full.noise_variance,
            from_full.moved_rows,
        )
        self.choices, self.run = from_full.choices, dict(facts["run"])
        self.optimism = float(facts["space"]["optimism"])
        self.bounds = None if facts["bounds"] is None else tuple(float(b) for b in facts["bounds"])
        self._shared: SharedModel | None = read_model(folder, facts["space"])
        self.learned = None if self._shared is None else self._shared.learned
        self.by_columns = self.learned is None
        self.starts = np.array([block["first"] for block in facts["blocks"]] + [facts["shape"][1]], np.int64)

    @cached_property
    def names(self) -> dict:
        """Row names and column names, as keywords of `Observations`; none if they have none."""
        return read_names(self._folder, self._facts)

    @property
    def row_names(self) -> np.ndarray | None:
        return self.names.get("row_names")

    @property
    def column_names(self) -> np.ndarray | None:
        return self.names.get("column_names")

    def whole(self) -> Solution:
        """The solution in memory, of a result that was saved from there."""
        facts = self._facts["whole"]
        learned = facts["learned"]
        if learned is not None:
            sums = learned["sha256"]
            arrays = {name: read_array(self._folder / f"{name}.npy", sums[name]) for name in sums}
            learned = learned_from(learned, arrays, self.choices)
        return self._read(0, self.names, by_columns=facts["by_columns"], learned=learned)

    def block(self, k: int) -> Solution:
        """The solution of the columns of block k alone."""
        if k not in self._open:
            self._open[k] = self._read(k, {})
            if len(self._open) > _OPEN_BLOCKS:
                self._open.popitem(last=False)
        self._open.move_to_end(k)
        return self._open[k]

    def by_blocks(self, columns) -> Iterator[tuple[np.ndarray, np.ndarray, Solution]]:
        """The blocks that have some of these columns: their places among them, their numbers there, the block."""
        owner = np.searchsorted(self.starts, columns, side="right") - 1
        for k in np.unique(owner):
            at = np.flatnonzero(owner == k)
            yield at, columns[at] - self.starts[k], self.block(k)

    def by_parts(self, columns) -> Iterator[tuple[np.ndarray, np.ndarray, Solution]]:
        """Like `by_blocks`, of only these columns of each block; the factor model of a part is that of its columns."""
        for at, here, block in self.by_blocks(columns):
            which, places = np.unique(here, return_inverse=True)
            part = block.only(which)
            if self._shared is not None:
                numbers = which + (columns[at[0]] - here[0])
                part = replace(part, learned=self._shared.of_columns(numbers, part.observations))
            yield at, places, part

    def learned_columns(self) -> Solution:
        """The solution of the columns that the factor model was learned from."""
        assert self._shared is not None
        return replace(self._joined(self._shared.sample), learned=self.learned)

    def places_learned_from(self, columns) -> np.ndarray:
        """Where these columns stand among those that the factor model was learned from; -1 if they do not."""
        assert self._shared is not None
        sample = self._shared.sample
        at = np.minimum(np.searchsorted(sample, columns), sample.size - 1)
        return np.where(sample[at] == columns, at, -1)

    def copy_to(self, folder: Path) -> None:
        """Copy all files of the result into an empty folder."""
        (folder / "blocks").mkdir()
        for path in files_of(self._folder, self._facts):
            place = folder / "blocks" if path.parent.name == "blocks" else folder
            publish(place / path.name, path.read_bytes())
        here = {name: fact for name, fact in self._facts.items() if name not in (FOLDER, SEAL)}
        publish_json(folder / FACTS, sealed(here))

    def model_of(self, columns) -> tuple[Learned | None, np.ndarray]:
        """A factor model of these columns, and their numbers there."""
        if self._shared is None:
            return None, columns
        f = self._shared.learned.model
        Z = np.empty((columns.size, f.Z.shape[1]))
        covariance = np.empty((columns.size, f.column_covariance.shape[1]))
        for at, here, part in self.by_parts(columns):
            Z[at], covariance[at] = part.learned.model.Z[here], part.learned.model.column_covariance[here]
        model = replace(f, Z=Z, column_covariance=covariance)
        return replace(self._shared.learned, model=model), np.arange(columns.size)

    def _read(self, k: int, names: dict, **more) -> Solution:
        arrays = {name: self._array(k, name) for name in self._facts["blocks"][k]["sha256"]}
        m, width = self.shape[0], int(self.starts[k + 1] - self.starts[k])
        full = arrays.get("full_columns")
        full = np.flatnonzero(np.diff(arrays["indptr"]) == m) if full is None else full
        entries = (arrays.get(name) for name in ("indptr", "rows", "values", "weights"))
        o = Observations((m, width), *entries, full, arrays.get("full_scales"), **names)
        more = {"by_columns": self.by_columns} | more
        return self._solution(o, arrays["coefficients"].T, arrays["status"], arrays.get("unused"), **more)

    def _solution(self, o: Observations, coefficients, status, unused, **more) -> Solution:
        """Of some columns, with all that they have in common."""
        common = {name: getattr(self, name) for name in ("noise_variance", "bounds", "optimism", "moved_rows")}
        return Solution(o, self.space, coefficients, status, **common, unused=unused, **more)

    def _array(self, k: int, name: str) -> np.ndarray:
        """An array of block k, compared with its checksum."""
        try:
            return read_array(array_path(self._folder, k, name), self._facts["blocks"][k]["sha256"][name])
        except StorageFailed:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{printable(self._folder)} is damaged: {error}; compute it again") from error

    def _of_all_blocks(self, name: str) -> list[np.ndarray]:
        return [self._array(k, name) for k in range(self.n_blocks)]

    @cached_property
    def status(self) -> np.ndarray:
        return np.concatenate(self._of_all_blocks("status"))

    @cached_property
    def n_observed(self) -> np.ndarray:
        return np.concatenate([np.diff(indptr) for indptr in self._of_all_blocks("indptr")])

    @cached_property
    def coefficients(self) -> np.ndarray:
        return np.concatenate([block.coefficients.T for block in self.blocks()]).T

    @cached_property
    def unused(self) -> np.ndarray:
        starts = pointers_of([block["entries"] for block in self._facts["blocks"]])
        return np.concatenate([places + start for places, start in zip(self._of_all_blocks("unused"), starts)])

    @cached_property
    def observations(self) -> Observations:
        parts = [block.observations for block in self.blocks()]
        full = np.concatenate([o.full_columns + first for o, first in zip(parts, self.starts)])
        return side_by_side(self.shape[0], parts, self.dtype, full, **self.names)

    def full_learned_from(self) -> Observations:
        """Observations whose full columns are those that were learned from."""
        full = np.flatnonzero(self.n_observed == self.shape[0])
        full = full[evenly(full.size, self._facts["space"]["full_columns"])]
        lost = np.searchsorted(pointers_of(self.n_observed), self.unused, side="right") - 1
        return self._joined(full[~np.isin(full, lost)]).observations

    def some_columns(self, count: int, n_full: int = 0) -> Solution:
        """The solution of some partial columns that intervals can be calibrated on, and of some full ones if wanted.

        Evenly chosen where there are more.
        """
        counts, m = self.n_observed, self.shape[0]
        least, _ = partial_choice(self._facts["blocks"], count)
        partial, full = np.flatnonzero((counts >= least) & (counts < m)), np.flatnonzero(counts == m)
        return self._joined(partial[evenly(partial.size, count)], full[evenly(full.size, n_full)])

    def _joined(self, *kinds) -> Solution:
        """The solution of some columns, of every block the same kinds one after the other.

        Columns that are known in all rows count as full.
        """
        parts = []
        for k, (first, end) in enumerate(pairwise(self.starts)):
            columns = np.concatenate([some[(some >= first) & (some < end)] - first for some in kinds])
            if columns.size:
                parts.append(self.block(k).only(columns))
        o = side_by_side(self.shape[0], [part.observations for part in parts], self.dtype)
        starts, none = pointers_of([part.observations.values.size for part in parts]), np.zeros(0, np.int64)
        Z = np.concatenate([np.zeros((self.rank, 0)), *(part.coefficients for part in parts)], axis=1)
        codes = np.concatenate([none.astype(np.int8), *(part.status for part in parts)])
        unused = np.concatenate([none, *(part.unused + start for part, start in zip(parts, starts))])
        return self._solution(o, Z, codes, unused, by_columns=self.by_columns)
