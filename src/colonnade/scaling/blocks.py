"""Out of core: triples in files of any size to a completion in a folder, by blocks of columns.

    triples --group--> blocks of entries --learn--> column space --solve_block--> blocks of coefficients

It is the computation of `complete` on slices; there are no numerics here. Every finished block stays, so that a run
that was killed goes on where it was.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from .._support.arguments import OR_AUTO, as_choice, as_count, as_real, as_shape, as_stages, is_auto, printable, shown
from .._support.atomic_writing import in_bytes, remove_unfinished
from .._support.logs import logged
from .._support.ownership import record_of
from .._support.storage import Url, as_path, remove_tree
from .._support.threads import InBackground, ahead, in_threads, patiently
from ..completion import (
    OWN_METHODS,
    Completion,
    Settings,
    checked_bounds,
    checked_method,
    data_in_words,
    every_column_is_full,
    outliers_in_words,
    refuse_idle_settings,
)
from ..data.observations import Observations, index_dtype
from ..files.results.block_files import (
    fullest_columns,
    missing,
    read_block,
    records,
    remove_damaged,
    remove_records,
    typical_entries,
    unbroken,
    write_entries,
    write_solution,
)
from ..files.results.checkpoints import (
    fingerprints,
    partial_folder,
    publish_json,
    remove_marks,
    remove_unneeded,
    working_folder,
)
from ..files.results.disk_columns import Blocks
from ..files.results.lessons import lesson_on_disk, read_lesson, read_model, read_screening, write_lesson
from ..files.results.manifests import manifest_of, write_manifest
from ..files.results.remote_runs import working_address
from ..files.results.saving import is_result
from ..files.tables.dialects import DialectOptions
from ..files.tables.kinds import memory_size
from ..files.tables.reading import checked_fields, paths_of
from ..model.column_space import ColumnSpace
from ..model.full_columns.learn import Lesson
from ..model.full_columns.nothing_full import leave_out, no_full_column, nothing_known
from ..model.full_columns.out_of_line import unused_entries
from ..model.full_columns.wild_entries import NOTHING, Screening, in_partial_columns, screened
from ..model.learned import outliers
from ..model.shared import SharedModel
from ..model.solve import solve_columns
from .block_learning import learn_from_blocks
from .model_learning import learned_model
from .tall import exceeds_memory, groups_of_blocks, solve_by_row_blocks
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
from .triples.labels import Names, TripleFiles, numbered, recounted

MEMORY_SHARE = 0.6  # of the machine, unless told
LEAST_MEMORY, OWN_MEMORY = 600_000_000, 250_000_000
_BYTES_OF_A_ROW = 100  # of a full column, in memory several times while it is cut, written and learned from; measured
BLOCK_ENTRIES = 1 << 22  # of a block; about 100 bytes for each are needed, for several are on their way at a time
_SMALL_BLOCK_ENTRIES, _SMALL_MEMORY = 1 << 19, 2_000_000_000  # where there is less memory


@dataclass(frozen=True)
class Engine:
    """Who does the parts of a run: functions of this module, or such that let a cluster do the same.

    Attributes
    ----------
    verify : function of (folder)
        Removes the records of damaged files.
    group : function of (run, folder)
        Writes the entries that are not there yet; returns the triples, the names, and the records of all blocks.
    learn : function of (run, folder, triples, entries)
        Learns, if that is not done yet; returns the record of the lesson.
    solve : function of (run, folder, m, entries, facts)
        Writes the solutions that are not there yet.
    finish : function of (run, folder, triples, names, entries, facts, identity)
        Writes the manifest.
    """

    verify: Callable
    group: Callable
    learn: Callable
    solve: Callable
    finish: Callable


@dataclass(frozen=True)
class Run:
    """What is asked for, and who does it."""

    given: TripleFiles
    duplicates: str
    settings: dict
    bounds: tuple[float, float] | None
    memory: int
    block_entries: int
    progress: Callable
    engine: Engine

    def identity(self) -> dict:
        """What decides the numbers and where they are cut."""
        given = self.given
        return {
            "input": fingerprints(given.paths),
            "reading": [given.fields, given.shape, given.header, astuple(given.dialect), self.duplicates],
            "settings": {**self.settings, "bounds": self.bounds},
            "size of blocks": self.block_entries,
        }


@logged
def complete_triples(
    paths,
    out,
    *,
    row: str | None = None,
    column: str | None = None,
    value: str | None = None,
    header="auto",
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    shape: tuple[int, int] | None = None,
    duplicates: str = "error",
    transpose: bool = False,
    rank="auto",
    center="auto",
    shrinkage="auto",
    refine="auto",
    bounds=None,
    random_state: int | None = None,
    method: str = "auto",
    memory_limit: float | None = None,
    block_entries: int | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Callable | None = None,
    engine: Engine | None = None,
    storage_options: dict | None = None,
) -> Completion:
    """Complete a matrix given by triples in files that need not fit into memory, into a folder.

    The triples may come in any order. They are grouped by columns on the disk. Where columns turn out to be full, the
    column space is learned from these, and settings that are "auto" also from a sample of the others. Where none is
    full, a factor model is learned from a sample of the columns that shows every row. Then blocks of columns
    are solved and written one after the other.

    Parameters
    ----------
    paths : path or several of them
        Parquet or csv files with the columns row, column and value, or a folder of such files. Addresses such as
        ``s3://bucket/folder`` and ``s3://bucket/*.parquet`` are read by fsspec.
    out : path
        The folder to write. While the run lasts it is called OUT.partial. At an address its manifest is written last.
    row, column, value, header, delimiter, decimal, encoding, shape, duplicates, transpose
        As in `colonnade.read`.
    rank, center, shrinkage, refine, bounds
        As in `complete`, learned from the full columns and a sample of the others. Where that needs too much memory
        for all rows, nothing is refined.
    random_state : int, optional
        For which columns are asked about the settings.
    memory_limit : float, optional
        Bytes, at least 6e8. Default: 60 % of the machine's memory.
    block_entries : int, optional
        Entries after which a block ends. It changes how the result is cut into files, and no number in it.
    resume : bool
        Continue a run of the same input and settings that was interrupted. The result is the same bytes.
    force : bool
        Replace a folder that holds a completion, when the new one is complete.
    progress : function, optional
        Called as ``progress(stage, done, total)`` now and then.
    engine : Engine, optional
        Who does the work; `colonnade.dask.complete` gives a cluster. Default: this process.
    storage_options : dict, optional
        For the stores of addresses such as ``s3://bucket/folder``, in `paths` and `out`. Default: their environment
        variables and files of configuration.

    Returns
    -------
    Completion
        Whose arrays stay in the folder and are read when they are needed.
    """
    fields = checked_fields(row, column, value) or ("row", "column", "value")
    if as_choice("transpose", transpose, (True, False)):
        fields = fields[1], fields[0], fields[2]
    shape = None if shape is None else as_shape(shape)
    if transpose and shape is not None:
        shape = shape[1], shape[0]
    as_choice("duplicates", duplicates, ("error", "mean", "last"))
    out = as_path(out, storage_options)
    dialect = DialectOptions(delimiter, decimal, None, encoding)
    memory = checked_memory(memory_limit)
    run = Run(
        TripleFiles(tuple(paths_of(paths, storage_options)), fields, shape, header, dialect),
        duplicates,
        checked_settings(rank, center, shrinkage, refine, random_state, method),
        checked_bounds(bounds),
        memory,
        _block_entries(block_entries, memory, partial_folder(out) if resume else None),
        as_stages(progress),
        engine or Engine(remove_damaged, grouped, _learned, solve_here, _finished),
    )
    return carried_out(run, out, run.identity(), resume=resume, force=force)


def carried_out(run: Run, out: Path, identity: dict, *, resume: bool, force: bool) -> Completion:
    """The completion in the folder `out`, after whatever of the work is not done yet."""
    if resume and _is_complete(out, identity):
        if not isinstance(out, Url):
            remove_marks(out)
            remove_unneeded(out, identity)
    else:
        with _folder_of_run(out, identity, resume=resume, force=force) as folder:
            _work(run, folder, identity)
    return Completion.load(out)


def _folder_of_run(out, identity: dict, *, resume: bool, force: bool):
    """The folder in which a run works until its result is complete."""
    if isinstance(out, Url):
        return working_address(out, identity, resume=resume, force=force)
    return working_folder(out, identity, resume=resume, force=force, is_ours=is_result)


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
    lesson, shared = read_lesson(folder, facts, verify=False), read_model(folder, facts)
    if shared is not None:
        return partial(_solve_by_model, lesson.space, shared)
    return partial(solve_used, lesson, read_screening(facts))


def _solve_by_model(
    space: ColumnSpace, shared: SharedModel, first: int, entries: Observations, *, typical: float, n_threads=None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients and status of a block of columns, and where in its values outliers stand, which hardly count."""
    learned = shared.of_columns(np.arange(first, first + entries.shape[1]), entries)
    return *shared.solution(space, learned, entries), outliers(learned, entries)


def solve_used(
    lesson: Lesson, screening: Screening, first: int, entries: Observations, *, typical: float, n_threads=None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients and status of a block of columns, and where in its values entries stand that are not used.

    Parameters
    ----------
    lesson : Lesson
    screening : Screening
        Of all columns.
    first : int
        The number of the first column of the block.
    entries, typical, n_threads
        As of `solve_block`.
    """
    here = screening.of(np.arange(first, first + entries.shape[1]))
    unused = unused_entries(lesson.space, entries, lesson.penalty, here)
    likely = entries.without(in_partial_columns(entries, unused))
    return *solve_block(lesson.space, lesson.penalty, likely, typical=typical, n_threads=n_threads), unused


def checked_memory(limit) -> int:
    """Bytes that may be used."""
    if limit is None:
        size = memory_size()
        return int(MEMORY_SHARE * size) if np.isfinite(size) else 8_000_000_000
    return int(as_real("memory_limit", limit, LEAST_MEMORY))


def memory_for_data(limit) -> float | None:
    """What a limit leaves for the data; None if there is none."""
    return None if limit is None else checked_memory(limit) - OWN_MEMORY


def sorting_memory(memory: int) -> int:
    """What DuckDB may have of it: two thirds of what the program itself and its libraries leave."""
    return (memory - OWN_MEMORY) * 2 // 3


def _block_entries(asked, memory: int, folder: Path | None) -> int:
    if asked is not None:
        return as_count("block_entries", asked, 1)
    begun = None if folder is None or isinstance(folder, Url) else record_of(folder)
    if begun is not None:  # blocks stay as they were begun
        return begun.get("size of blocks")
    return BLOCK_ENTRIES if memory >= _SMALL_MEMORY else _SMALL_BLOCK_ENTRIES


def checked_settings(rank, center, shrinkage, refine, random_state, method="auto") -> dict:
    given = Settings(rank, center, shrinkage, refine)
    method = checked_method(method)
    if method not in OWN_METHODS:
        raise ValueError(f"method {method!r} needs data that fit into memory; use colonnade.complete (--engine memory)")
    refuse_idle_settings(method, "columns", None, given)
    return {
        "method": method,
        "rank": rank if is_auto(rank) else as_count("rank", rank, 1, why=OR_AUTO),
        "center": as_choice("center", center, (True, False, "auto")),
        "shrinkage": shrinkage if is_auto(shrinkage) else as_real("shrinkage", shrinkage, 0, why=OR_AUTO),
        "refine": refine if is_auto(refine) else as_count("refine", refine, 0, why=OR_AUTO),
        "random_state": None if random_state is None else as_count("random_state", random_state, 0),
    }


def _is_complete(out: Path, identity: dict) -> bool:
    """Whether a run like this one has ended already."""
    facts = manifest_of(out)
    return facts is not None and facts["run"] == json.loads(json.dumps(identity))


def _work(run: Run, folder: Path, identity: dict) -> None:
    """Everything between an empty or half-filled folder and a complete one."""
    if manifest_of(folder) is None:
        engine = run.engine
        engine.verify(folder)
        triples, names, entries = engine.group(run, folder)
        _refuse_changed(run, identity)
        facts = engine.learn(run, folder, triples, entries)
        engine.solve(run, folder, triples.shape[0], entries, facts)
        engine.finish(run, folder, triples, names, entries, facts, identity)
    for left in (folder / "sorting", folder / "discarded", folder / "runs"):
        remove_tree(left)
    for left in ("triples.parquet", "coded.parquet", "copied.json", "labels.json", "space.json"):
        (folder / left).unlink(missing_ok=True)
    remove_records(folder)
    remove_unfinished(folder)


def _finished(run: Run, folder: Path, triples: Triples, names: Names, entries: list[dict], facts, identity) -> None:
    finish_blocks(folder, triples, (names.rows, names.columns), entries, facts, run.bounds, identity)


def finish_blocks(folder: Path, triples: Triples, names, entries: list[dict], facts: dict, bounds, identity) -> None:
    """Write the manifest of blocks that are solved, with what is to be said of the data."""
    facts = _with_words(facts, Blocks(folder, entries, triples.shape[0]), names, bounds)
    solutions = records(folder, "solution")
    blocks = [{**entry, "sha256": {**entry["sha256"], **solved["sha256"]}} for entry, solved in zip(entries, solutions)]
    write_manifest(folder, triples.shape, triples.dtype, names, facts, blocks, bounds, identity)


def _with_words(facts: dict, whole: Blocks, names, bounds) -> dict:
    """The record of the lesson with what is to be said of the data."""
    noise, found, more = float(facts["noise_variance"]), whole.unused(), {}
    if facts["model"] is not None:
        found, more = NOTHING, outliers_in_words(found, names)
    words = data_in_words(whole, read_screening(facts), found, names, noise, bounds) | more
    return {**facts, "choices": {**facts["choices"], **words}}


def _refuse_changed(run: Run, identity: dict) -> None:
    for path, now, before in zip(run.given.paths, fingerprints(run.given.paths), identity["input"]):
        if now != before:
            raise ValueError(f"{printable(path)} has changed while it was read; start again when it is finished")


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


def _learned(run: Run, folder: Path, triples: Triples, entries: list[dict]) -> dict:
    """The record of the lesson, which is learned and written if it is not there yet."""
    facts = lesson_on_disk(folder)
    if facts is None:
        run.progress("learning", 0, 1)
        patiently(partial(learn_blocks, folder, triples, entries, run.settings, run.memory))
        facts = lesson_on_disk(folder)
        run.progress("learning", 1, 1)
    return facts


def learn_blocks(
    folder: Path, triples: Triples, entries: list[dict], settings: dict, memory: int, mapped: Callable = in_threads
) -> None:
    """Learn from blocks of entries within a limit of memory, and write the lesson.

    ``mapped(work, pieces)`` calls a function for pieces of rows, where all rows do not fit into memory.
    """
    (m, n), d, rank = triples.shape, sum(record["full"] for record in entries), settings["rank"]
    if not any(record["entries"] for record in entries):
        raise ValueError(nothing_known((m, n)))
    screening, memory = screened(Blocks(folder, entries, m)), memory - OWN_MEMORY
    if d == n and is_auto(rank):
        write_lesson(folder, every_column_is_full(m, triples.dtype), screening)
        return
    if learned_model(folder, entries, (m, n), memory, settings, screening):
        return
    if d == 0:
        given = Settings(**{name: settings[name] for name in ("rank", "center", "shrinkage", "refine")}).given
        fullest = list(fullest_columns(folder, entries).items())
        raise ValueError(no_full_column((m, n), fullest, [leave_out(given or ["method"])]))
    if not is_auto(rank):
        as_count("rank", rank, 1, min(m, d), f", the smaller of {m:,} rows and {d:,} full columns{OR_AUTO}")
    of_full = {name: value for name, value in settings.items() if name != "method"}
    learn_from_blocks(folder, entries, m, memory, of_full, screening, mapped)


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
    lesson = read_lesson(folder, facts, mapped=True, verify=False)
    whole = read_screening(facts)
    screenings = [whole.of(np.arange(entries[k]["first"], entries[k]["stop"])) for k in group]
    for k, solution in zip(group, solve_by_row_blocks(folder, group, lesson, memory, screenings)):
        write_solution(folder, k, *solution)
