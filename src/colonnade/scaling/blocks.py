"""Out of core: triples in files of any size to a completion in a folder, by blocks of columns.

    triples --group--> blocks of entries --learn--> column space --solve_block--> blocks of coefficients

It is the computation of `complete` on slices; there are no numerics here. Every finished block stays, so that a run
that was killed goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .._support.arguments import OR_AUTO, as_choice, as_count, as_real, as_shape, as_stages, is_auto, printable
from .._support.atomic_writing import remove_unfinished
from .._support.logs import logged
from .._support.ownership import record_of
from .._support.storage import Url, as_path, remove_tree
from .._support.threads import in_threads, patiently
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
from ..files.results.block_files import (
    fullest_columns,
    records,
    remove_damaged,
    remove_records,
)
from ..files.results.checkpoints import (
    fingerprints,
    partial_folder,
    remove_marks,
    remove_unneeded,
    working_folder,
)
from ..files.results.disk_columns import Blocks
from ..files.results.learned_files import learned_on_disk, read_screening, write_full_column_model
from ..files.results.manifests import TableFacts, manifest_of, write_manifest
from ..files.results.remote_runs import working_address
from ..files.results.saving import is_result
from ..files.tables.dialects import DialectOptions
from ..files.tables.reading import checked_fields, paths_of
from ..model.full_columns.nothing_full import leave_out, no_full_column, nothing_known
from ..model.full_columns.outlier_screening import NOTHING, screened
from .block_grouping import grouped
from .block_learning import learn_from_blocks
from .block_solving import solve_here
from .memory import OWN_MEMORY, checked_memory
from .model_learning import learned_model
from .run import Engine, Run
from .triples.grouping import (
    Triples,
)
from .triples.labels import Names, TripleFiles

BLOCK_ENTRIES = 1 << 22  # Of a block. Each needs about 100 bytes, because several blocks are on their way at a time.
_SMALL_BLOCK_ENTRIES, _SMALL_MEMORY = 1 << 19, 2_000_000_000  # Entries of a block where there are fewer bytes.


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
    hive: bool = False,
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
    hive : bool
        As in `colonnade.read`: folders such as ``year=2020`` are columns.

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
        TripleFiles(tuple(paths_of(paths, storage_options, hive=hive)), fields, shape, header, dialect),
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
    write_manifest(folder, TableFacts(triples.shape, triples.dtype, names, bounds), facts, blocks, identity)


def _with_words(facts: dict, whole: Blocks, names, bounds) -> dict:
    """The record of the model with what is to be said of the data."""
    noise, found, more = float(facts["noise_variance"]), whole.unused(), {}
    if facts["model"] is not None:
        found, more = NOTHING, outliers_in_words(found, names)
    words = data_in_words(whole, read_screening(facts), found, names, noise, bounds) | more
    return {**facts, "choices": {**facts["choices"], **words}}


def _refuse_changed(run: Run, identity: dict) -> None:
    for path, now, before in zip(run.given.paths, fingerprints(run.given.paths), identity["input"]):
        if now != before:
            raise ValueError(f"{printable(path)} has changed while it was read; start again when it is finished")


def _learned(run: Run, folder: Path, triples: Triples, entries: list[dict]) -> dict:
    """The record of the model, which is learned and written if it is not there yet."""
    facts = learned_on_disk(folder)
    if facts is None:
        run.progress("learning", 0, 1)
        patiently(partial(learn_blocks, folder, triples, entries, run.settings, run.memory))
        facts = learned_on_disk(folder)
        run.progress("learning", 1, 1)
    return facts


def learn_blocks(
    folder: Path, triples: Triples, entries: list[dict], settings: dict, memory: int, mapped: Callable = in_threads
) -> None:
    """Learn from blocks of entries within a limit of memory, and write the model.

    ``mapped(work, pieces)`` calls a function for pieces of rows, where all rows do not fit into memory.
    """
    (m, n), d, rank = triples.shape, sum(record["full"] for record in entries), settings["rank"]
    if not any(record["entries"] for record in entries):
        raise ValueError(nothing_known((m, n)))
    screening, memory = screened(Blocks(folder, entries, m)), memory - OWN_MEMORY
    if d == n and is_auto(rank):
        write_full_column_model(folder, every_column_is_full(m, triples.dtype), screening)
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
