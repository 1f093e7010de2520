"""Triples completed by the workers of a cluster: this process sees footers, records and the plan, and no entry.

Each stage writes files and their records, so that a worker may die in any of them, and another cluster can go on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from ..._support.arguments import printable, shown
from ...files.results.block_files import (
    missing,
    records,
    remove_if_damaged,
    typical_entries,
)
from ...files.results.checkpoints import publish_array, read_json
from ...files.results.learned_files import learned_on_disk
from ..block_grouping import refuse_rows
from ..blocks import finish_blocks, learn_blocks
from ..memory import sorting_memory
from ..run import Engine, Run
from ..tall import exceeds_memory, groups_of_blocks
from ..triples.cutting import Checker
from ..triples.grouping import Triples, different_values
from ..triples.labels import COPY, COPY_FIELDS, COPY_RECORD, Names, TripleFiles, numbered
from ..triples.sorted_runs import (
    RunForm,
    Side,
    facts_of_files,
    make_plan,
    merge_block,
    names_of,
    pieces_of_files,
    plan_there,
    refuse_no_entry,
    runs_done,
    write_run,
)
from .cluster import Work
from .tasks import on_cluster_threads, solve_stored, solve_stored_together

_FILES = 8  # Whose footers a task reads.
_WHOLE = {*(f"int{bits}" for bits in (8, 16, 32, 64)), *(f"uint{bits}" for bits in (8, 16, 32))}
_VALUES = {"float", "double", "uint64"} | _WHOLE  # As Arrow calls the types that are taken as they are.
_TABLE = 4, 1_000_000  # A table of labels has at most so many places for each line, and so many more.


@dataclass(frozen=True)
class NamesThere:
    """Names of rows and columns that stay in files; a worker reads them when it writes the manifest."""

    form: RunForm
    plan: dict
    copied: bool

    def read(self, folder) -> list:
        names = names_of(folder, self.form, self.plan)
        known = read_json(folder / COPY_RECORD) if self.copied else {"rows": None, "columns": None}
        return [found if found is not None else listed for found, listed in zip(known.values(), names)]


def engine_of(work: Work) -> Engine:
    """All parts of a run, done by workers."""
    parts = verify_blocks, group_triples, learn_on_worker, solve_blocks, finish_on_worker
    return Engine(*(partial(part, work) for part in parts))


def _columns_in_words(starts) -> dict:
    return {k: f"columns {lo:,} to {hi - 1:,}" for k, (lo, hi) in enumerate(pairwise(starts))}


def verify_blocks(work: Work, folder) -> None:
    """Remove the records of damaged files, block by block."""
    found = [(kind, k, one) for kind in ("entries", "solution") for k, one in enumerate(records(folder, kind)) if one]
    tasks = {i: (remove_if_damaged, folder, *one) for i, one in enumerate(found)}
    work.results({i: f"the {kind} of block {k}" for i, (kind, k, _) in enumerate(found)}, tasks)


def group_triples(work: Work, run: Run, folder) -> tuple[Triples, NamesThere, list[dict]]:
    """Let the workers sort the triples by columns and write blocks of entries; what `blocks.grouped` returns."""
    for name in ("runs", "blocks"):
        (folder / name).mkdir(exist_ok=True)
    given, facts, copied = _plain(work, run, folder)
    lines = [one["lines"] for one in facts]
    refuse_no_entry(run.given.paths, lines)
    sides = tuple(_side(work, run, folder, given, facts, k, copied) for k in (0, 1))
    form = RunForm(given.fields, sides, "f4" if facts[0]["types"][2] == "float" else "f8")
    parts = pieces_of_files(given.paths, lines)
    plan = plan_there(folder)
    if plan is None or missing(folder, "entries", len(plan["starts"]) - 1):
        _write_runs(work, run, folder, form, parts)
        plan = work.call("the plan of the blocks", make_plan, folder, len(parts), form, run.block_entries)
        refuse_rows(run, plan["shape"][0])
        _merge_blocks(work, run, folder, form, parts, plan)
    names = NamesThere(form, plan, copied is not None)
    triples = Triples((), given.fields, tuple(plan["shape"]), np.dtype(form.dtype), sum(map(sum, lines)))
    return triples, names, records(folder, "entries")


def _plain(work: Work, run: Run, folder) -> tuple[TripleFiles, list[dict], list | None]:
    """Files with whole numbers for labels, what their footers say, and how many names rows and columns have.

    Names and text tables are numbered by one worker, which writes a copy.
    """
    given, facts = run.given, _footers(work, run.given)
    kinds = {one["kind"] for one in facts}
    if not kinds <= {"csv", "parquet"} or len(kinds) > 1:
        raise ValueError(f"triples are read from csv or from Parquet files; got {', '.join(sorted(kinds))}")
    types = {tuple(one.get("types", ())) for one in facts}
    (first, *_), is_one = types, len(types) == 1
    if kinds == {"parquet"} and is_one and {*first[:2]} <= _WHOLE and first[2] in _VALUES:
        return given, facts, None
    lengths = work.call("the names of rows and columns", _number, given, folder, sorting_memory(run.memory))
    copy = TripleFiles((folder / COPY,), COPY_FIELDS, given.shape)
    return copy, _footers(work, copy), lengths


def _footers(work: Work, given: TripleFiles) -> list[dict]:
    tasks = {k: (facts_of_files, given.paths[k : k + _FILES], given.fields) for k in range(0, len(given.paths), _FILES)}
    found = work.results({k: f"the footer of {printable(given.paths[k])}" for k in tasks}, tasks)
    return [one for part in found.values() for one in part]


def _number(given: TripleFiles, folder, memory: int) -> list[int | None]:
    """Write the copy with whole numbers; how many names rows and columns have, None where labels are whole numbers."""
    numbered(given, folder, memory)
    return [None if one is None else len(one) for one in read_json(folder / COPY_RECORD).values()]


def _side(work: Work, run: Run, folder, given: TripleFiles, facts: list[dict], k: int, copied: list | None) -> Side:
    """How the labels of rows (0) or columns (1) become numbers."""
    field, lines = given.fields[k], sum(sum(one["lines"]) for one in facts)
    if given.shape is not None:
        return Side(field, 0, given.shape[k], True)
    if copied is not None and copied[k] is not None:
        return Side(field, 0, copied[k], True)
    ranges = [one["ranges"][k] for one in facts if sum(one["lines"])]
    if None not in ranges:
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        if low < 0:
            raise ValueError(f"some labels of the column {shown(field)} are negative, the least is {low}")
        length = high - low + 1
        if length <= _TABLE[0] * lines + _TABLE[1]:
            return Side(field, low, length, False)
    path = folder / "runs" / f"labels{k}.npy"
    memory = sorting_memory(run.memory)
    expected, size = work.call(f"the labels of the column {shown(field)}", _write_labels, path, given, k, memory)
    return Side(field, 0, size, True, (path, expected))


def _write_labels(path, given: TripleFiles, k: int, memory: int) -> tuple[str, int]:
    """Write all different labels of rows or columns in increasing order; the checksum and the number of them."""
    import pyarrow

    field = given.fields[k]
    found = different_values(given.paths, field, pyarrow.int64(), memory, path.with_name("sorting"))
    if found.null_count:
        raise ValueError(f"some cells of the column {shown(field)} are empty; every entry needs its place")
    labels = found.to_numpy()
    if labels[0] < 0:
        raise ValueError(f"some labels of the column {shown(field)} are negative, the least is {labels[0]}")
    return publish_array(path, labels), labels.size


def _write_runs(work: Work, run: Run, folder, form: RunForm, parts: list[tuple]) -> None:
    done = runs_done(folder)
    tasks = {k: (write_run, folder, k, form, *part) for k, part in enumerate(parts) if k not in done}
    names = {k: f"part {k + 1} of {len(parts)}, in {printable(parts[k][0])}" for k in tasks}
    work.results(names, tasks, lambda count: run.progress("reading", count + len(done), len(parts)))


def _merge_blocks(work: Work, run: Run, folder, form: RunForm, parts: list[tuple], plan: dict) -> None:
    names = _columns_in_words(plan["starts"])
    todo = missing(folder, "entries", len(names))
    tasks = {k: (merge_block, folder, k, len(parts), form, plan, run.duplicates) for k in todo}
    n_done = len(names) - len(todo)
    report = partial(_report, run.progress, "grouping", n_done, len(names))
    faults = [found for found in work.results({k: names[k] for k in todo}, tasks, report).values() if found]
    if faults:
        listed = NamesThere(form, plan, (folder / COPY_RECORD).is_file()).read(folder)
        checker = Checker(run.duplicates, tuple(listed))
        for found in faults:
            checker.absorb(found)
        checker.refuse_faults()


def _report(progress, stage: str, before: int, total: int, count: int) -> None:
    progress(stage, before + count, total)


def learn_on_worker(work: Work, run: Run, folder, triples: Triples, entries: list[dict]) -> dict:
    """The record of the model, which a worker learns if it is not there yet; others help it with tall matrices."""
    run.progress("learning", 0, 1)
    facts = work.call("learning", _learned, folder, replace(triples, files=()), entries, run.settings, run.memory)
    run.progress("learning", 1, 1)
    return facts


def _learned(folder, triples: Triples, entries: list[dict], settings: dict, memory: int) -> dict:
    facts = learned_on_disk(folder)
    if facts is None:
        learn_blocks(folder, triples, entries, settings, memory, on_cluster_threads)
        facts = learned_on_disk(folder)
    return facts


def solve_blocks(work: Work, run: Run, folder, m: int, entries: list[dict], facts: dict) -> None:
    """Let the workers solve the blocks that are not solved yet; in place of `blocks.solve_here`."""
    todo = missing(folder, "solution", len(entries))
    if exceeds_memory(facts["shape"], run.memory):
        groups = list(groups_of_blocks(entries, todo, facts["shape"][1], run.memory))
        tasks = {
            i: (solve_stored_together, folder, group, entries, facts, run.memory) for i, group in enumerate(groups)
        }
    else:
        typical = work.call("the number of entries", typical_entries, folder, entries, m) if todo else 0.0
        groups = [[k] for k in todo]
        tasks = {i: (solve_stored, folder, k, entries[k], facts, typical, m) for i, k in enumerate(todo)}
    sizes = [record["stop"] - record["first"] for record in entries]
    named = {
        i: f"columns {entries[group[0]]['first']:,} to {entries[group[-1]]['stop'] - 1:,}"
        for i, group in enumerate(groups)
    }
    done = sum(sizes) - sum(sizes[k] for k in todo)

    for i, _ in work.finished(named, work.beginning(tasks)):
        done += sum(sizes[k] for k in groups[i])
        run.progress("solving", done, sum(sizes))


def finish_on_worker(work: Work, run: Run, folder, triples: Triples, names, entries, facts, identity) -> None:
    """Let a worker write the manifest, with what is to be said of the data."""
    small = replace(triples, files=())
    work.call("the manifest", _finish, folder, small, names, entries, facts, run.bounds, identity)


def _finish(folder, triples: Triples, names, entries: list[dict], facts: dict, bounds, identity: dict) -> None:
    listed = (names.rows, names.columns) if isinstance(names, Names) else tuple(names.read(folder))
    finish_blocks(folder, triples, listed, entries, facts, bounds, identity)
