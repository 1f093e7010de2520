"""Kill -9 of the command line at random moments, and workers of a cluster killed or suspended: no byte may change.

Every command runs undisturbed once. Then it is killed, by the clock or at one of its calls that change the disk; once
or twice in a row. After each kill an output is absent, the old one, or complete. The same command, with --resume where
it takes that, must then give the bytes of the undisturbed run, leave nothing beside them, and not change its input.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import colonnade as co
from benchmarks.machine import facts

FIXED = "--rank", "3", "--center", "no", "--shrinkage", "0", "--refine", "0"
LOCAL = "--engine", "local"
_CHANGES = (
    "mkdir",
    "rename",
    "replace",
    "unlink",
    "rmdir",
    "fsync",
    "chmod",
    "open",
)  # calls of os at which a run may die
_PATIENCE = 120  # seconds after which an undisturbed run counts as a hang


@dataclass(frozen=True)
class Door:
    """A command, what it is after a kill, and what it finds in its folder.

    Attributes
    ----------
    first, again : tuple of str
        Arguments of the command line. `again` is run after a kill.
    before : tuple of str, optional
        A command whose outputs are there already and will be replaced.
    tall : bool
        Whether to work as if the basis did not fit into memory.
    """

    first: tuple
    again: tuple
    before: tuple | None = None
    tall: bool = False


def doors(inputs: Path) -> dict[str, Door]:
    """All ways through the command line that write something."""
    table, named = str(inputs / "table.npy"), str(inputs / "table.csv")
    shuffled, ordered, text = (str(inputs / name) for name in ("shuffled.parquet", "ordered.parquet", "named.csv"))

    def in_memory(*arguments, before=None) -> Door:
        return Door((*arguments, "--force"), (*arguments, "--force"), before)

    def by_blocks(*arguments, before=None, tall=False) -> Door:
        command = ("complete", *arguments, *LOCAL, *FIXED)
        return Door((*command, *(("--force",) if before else ())), (*command, "--force", "--resume"), before, tall)

    to_res = "complete", shuffled, "-o", "res", *LOCAL, "--rank", "2"
    both = "--scores", "scores.csv", "--report", "report.html"
    found = {
        "memory, npy": in_memory("complete", table, "-o", "filled.npy", *FIXED),
        "memory, csv with scores and report": in_memory("complete", named, "-o", "filled.csv", *both),
        "memory, replaced Parquet": in_memory(
            "complete", table, "-o", "f.parquet", *FIXED, before=("complete", named, "-o", "f.parquet")
        ),
        "memory, triples to a folder": in_memory("complete", shuffled, "-o", "res", "--engine", "memory", *FIXED),
        "memory, replaced folder": in_memory(
            "complete", shuffled, "-o", "res", "--engine", "memory", *FIXED, before=to_res
        ),
        "blocks, shuffled": by_blocks(shuffled, "-o", "res"),
        "blocks, in order": by_blocks(ordered, "-o", "res"),
        "blocks, text with names": by_blocks(text, "-o", "res"),
        "blocks, entries": by_blocks(shuffled, "-o", "res", "-o", "e.csv", "--entries", str(inputs / "wanted.csv")),
        "blocks, replaced": by_blocks(shuffled, "-o", "res", before=to_res),
        "blocks, repeated": by_blocks(ordered, "-o", "res", before=("complete", ordered, "-o", "res", *LOCAL, *FIXED)),
        "tall": by_blocks(shuffled, "-o", "res", tall=True),
        "report": in_memory("report", str(inputs / "result"), "-o", "r.html"),
        "harness": in_memory("harness", "select", named, "--questions", "5", "-o", "samples.json"),
    }
    if find_spec("zarr"):
        found["memory, replaced Zarr"] = in_memory(
            "complete", table, "-o", "f.zarr", *FIXED, before=("complete", named, "-o", "f.zarr")
        )
    return found


def write_inputs(folder: Path) -> None:
    """Small matrices of rank 3 in every form."""
    import pandas as pd

    rng = np.random.default_rng(0)
    M = matrix(rng)
    np.save(folder / "table.npy", M)
    rows, columns = [f"task/{i}" for i in range(M.shape[0])], [f"c{j:03d}" for j in range(M.shape[1])]
    pd.DataFrame(M, index=rows, columns=columns).to_csv(folder / "table.csv")
    j, i = np.nonzero(~np.isnan(M.T))
    triples = pd.DataFrame({"row": i, "column": j, "value": M[i, j]})
    triples.to_parquet(folder / "ordered.parquet", index=False)
    order = rng.permutation(len(triples))
    triples.iloc[order].to_parquet(folder / "shuffled.parquet", index=False)
    names = {"row": np.array(rows)[i[order]], "column": np.array(columns)[j[order]], "value": M[i, j][order]}
    pd.DataFrame(names).to_csv(folder / "named.csv", index=False)
    pd.DataFrame({"row": [3, 0], "column": [7, 80]}).to_csv(folder / "wanted.csv", index=False)
    co.complete(M, rank=3).save(folder / "result")


def matrix(rng, m=40, n=160, d=10, s=12) -> np.ndarray:
    M = rng.standard_normal((m, 3)) @ rng.standard_normal((3, n))
    seen = rng.random((m, n)).argsort(axis=0) < s
    seen[:, rng.choice(n, d, replace=False)] = True
    return np.where(seen, M, np.nan)


def contents(folder: Path) -> dict:
    """Every file and folder, hidden ones too, with checksums."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


def in_child(folder: str, arguments: tuple, tall: bool, die_at: int, count=None) -> None:
    """The command line in a process of its own, which may kill itself at a call that changes the disk."""
    os.chdir(folder)
    log = open(folder + ".log", "a")  # noqa: SIM115
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.argv = ["colonnade", *arguments]
    from colonnade.__main__ import main
    from colonnade.scaling import block_solving, blocks

    blocks.BLOCK_ENTRIES = blocks._SMALL_BLOCK_ENTRIES = 300
    if tall:
        block_solving.exceeds_memory = lambda shape, memory: True
        block_solving.groups_of_blocks = lambda entries, todo, r, memory: [
            part for part in (todo[:3], todo[3:]) if part
        ]
    calls = [0]

    def watched(function):
        def call(*given, **named):
            calls[0] += 1
            if calls[0] == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            if count is not None:
                count.value = calls[0]
            return function(*given, **named)

        return call

    for name in _CHANGES:
        setattr(os, name, watched(getattr(os, name)))
    main()


class Torturer:
    """Runs commands in processes, undisturbed or killed."""

    def __init__(self, rng):
        self.rng = rng
        self.context = multiprocessing.get_context("fork")  # what is loaded here need not be loaded by every command
        completion = co.complete(matrix(np.random.default_rng(1)))
        completion.certificates()
        completion.interval([0], [0])
        for name in ("scaling.blocks", "measuring.leaderboard", "interfaces.report.page"):
            import_module(f"colonnade.{name}")
        for command in ("complete", "report", "harness"):
            import_module(f"colonnade.interfaces.cli.{command}")

    def undisturbed(self, folder: Path, arguments: tuple, tall: bool) -> tuple[float, int]:
        """Seconds, and calls that change the disk."""
        count, start = self.context.Value("i", 0), time.monotonic()
        process = self.context.Process(target=in_child, args=(str(folder), arguments, tall, 0, count))
        process.start()
        process.join(_PATIENCE)
        if process.is_alive():
            process.kill()
            raise SystemExit(f"hangs: {' '.join(arguments)}, in {folder}")
        if process.exitcode:
            said = Path(f"{folder}.log").read_text()
            raise SystemExit(f"ends with {process.exitcode}: {' '.join(arguments)}, in {folder}\n{said}")
        return time.monotonic() - start, count.value

    def killed(self, folder: Path, arguments: tuple, tall: bool, seconds: float, calls: int) -> bool:
        """Whether the process was killed; one that was quicker is not counted."""
        by_clock = self.rng.random() < 0.5
        die_at = 0 if by_clock else int(self.rng.integers(1, calls + 1))
        process = self.context.Process(target=in_child, args=(str(folder), arguments, tall, die_at))
        process.start()
        process.join(self.rng.uniform(0, seconds) if by_clock else _PATIENCE)
        if process.is_alive():
            if not by_clock:
                raise SystemExit(f"hangs: {' '.join(arguments)}, in {folder}")
            process.kill()
        process.join()
        if process.exitcode not in (0, -signal.SIGKILL):
            said = Path(f"{folder}.log").read_text()
            raise SystemExit(f"ends with {process.exitcode}: {' '.join(arguments)}, in {folder}\n{said}")
        return process.exitcode != 0


def outputs_of(found: dict, names: set) -> dict:
    """Of the contents of a folder, those that belong to outputs."""
    return {path: sha for path, sha in found.items() if path.split("/")[0] in names}


def torture_commands(place: Path, kills: int, rng) -> None:
    inputs = place / "inputs"
    inputs.mkdir()
    writer = multiprocessing.get_context("spawn").Process(target=write_inputs, args=(inputs,))
    writer.start()
    writer.join()
    given, torturer = contents(inputs), Torturer(rng)
    expected, old, speed = {}, {}, {}
    found = doors(inputs)
    for k, (name, door) in enumerate(found.items()):
        folder = place / f"expected{k}"
        folder.mkdir()
        if door.before:
            torturer.undisturbed(folder, door.before, door.tall)
            old[name] = place / f"old{k}"
            shutil.copytree(folder, old[name], symlinks=True)
        torturer.undisturbed(folder, door.first, door.tall)  # compiles
        expected[name] = contents(folder)
        again = place / f"again{k}"
        shutil.copytree(old[name], again) if door.before else again.mkdir()
        speed[name] = torturer.undisturbed(again, door.first, door.tall)
        check(contents(again) == expected[name], f"{name}: two undisturbed runs differ", again)
    done, episodes, k = Counter(), Counter(), 0
    while sum(done.values()) < kills:
        name = list(found)[k % len(found)]
        door, folder, k = found[name], place / f"run{k}", k + 1
        shutil.copytree(old[name], folder) if door.before else folder.mkdir()
        before = contents(folder)
        names = {path.split("/")[0] for path in expected[name]}
        arguments = door.first
        for _ in range(int(rng.integers(1, 3))):
            done[name] += torturer.killed(folder, arguments, door.tall, *speed[name])
            arguments = door.again
            now = outputs_of(contents(folder), names)
            for output in names:
                states = (outputs_of(some, {output}) for some in (now, before, expected[name]))
                check_output(name, folder, *states)
        torturer.undisturbed(folder, door.again, door.tall)
        check(contents(folder) == expected[name], f"{name}: other bytes, or something is left", folder)
        check(contents(inputs) == given, f"{name}: the input has changed", folder)
        episodes[name] += 1
        shutil.rmtree(folder)
        Path(f"{folder}.log").unlink()
    for name in found:
        print(f"  {name:36} {done[name]:4} kills, {episodes[name]:3} times continued to equal bytes")
    print(f"{sum(done.values())} kills of the command line: equal bytes after each, nothing left behind.")


def check_output(name: str, folder: Path, now: dict, before: dict, expected: dict) -> None:
    """Under its final name an output is absent, the old one or complete; marks of the run may still be in it."""
    complete = expected.items() <= now.items()
    check(not now or now == before or complete, f"{name}: an output is broken", folder)


def check(holds: bool, words: str, folder: Path) -> None:
    if not holds:
        raise SystemExit(f"FAILED, {words}: see {folder}")


@contextmanager
def cluster_of_two():
    import dask
    import distributed

    calm = {"distributed.deploy.lost-worker-timeout": "1 h", "distributed.comm.timeouts.connect": "10 s"}
    options = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}, "silence_logs": 50}
    with (
        dask.config.set(calm),
        distributed.LocalCluster(host="127.0.0.1", n_workers=2, threads_per_worker=1, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def torture_workers(place: Path, how_many: int, rng) -> None:
    import dask.array as da

    fixed = {"rank": 3, "center": False, "shrinkage": 0.0, "refine": 0}
    M = matrix(rng)
    x, triples = da.from_array(M, chunks=(40, 4)), {"block_entries": 100}
    path = place / "inputs" / "shuffled.parquet"
    done = Counter()
    with cluster_of_two() as client:
        runs = {
            "array to memory": lambda **more: co.dask.complete(x, client, **fixed, **more),
            "array to a folder": lambda **more: co.dask.complete(x, client, out=place / "there", **fixed, **more),
            "triples to a folder": lambda **more: co.dask.complete(
                path, client, out=place / "there", **triples, **fixed, **more
            ),
        }
        answers = {name: _bytes(run(), place / "there") for name, run in runs.items()}
        k = 0
        while sum(done.values()) < how_many:
            name, k = list(runs)[k % 3], k + 1
            client.wait_for_workers(2, timeout=60)
            suspended = []
            hurt = _hurting(client, rng, done, suspended)
            answer = _bytes(runs[name](progress=hurt, worker_timeout=15.0), place / "there")
            for pid in suspended:  # one that nobody waited for at the end of a run
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            check(answer == answers[name], f"{name}: other bytes, or something is left", place)
    listed = ", ".join(f"{count} {how}" for how, count in sorted(done.items()))
    print(f"{sum(done.values())} workers hurt ({listed}) in {k} runs: equal bytes after each, nothing left behind.")


def _hurting(client, rng, done: Counter, suspended: list):
    """A progress function that kills or suspends workers at random moments."""
    stage = ("reading", "solving")[int(rng.integers(2))]
    moments = set(rng.integers(1, 30, 3).tolist())
    heard = [0]

    def progress(now, finished, total):
        if now != stage:
            return
        heard[0] += 1
        if heard[0] in moments:
            pids = [pid for pid in client.run(os.getpid, on_error="ignore").values() if isinstance(pid, int)]
            suspend = rng.random() < 0.25
            if pids:
                pid = pids[int(rng.integers(len(pids)))]
                os.kill(pid, signal.SIGSTOP if suspend else signal.SIGKILL)
                done["suspended" if suspend else "killed"] += 1
                if suspend:
                    suspended.append(pid)
                    moments.clear()  # a suspended worker would not answer the next question for its number

    return progress


def _bytes(completion, out: Path):
    """What must not change: the files of a folder, or the coefficients."""
    if not out.exists():
        return completion.basis.tobytes(), completion.coefficients.tobytes(), completion.status.tobytes()
    found = contents(out)
    check(not list(out.parent.glob("*there?*")), "something is left beside the result", out.parent)
    shutil.rmtree(out)
    return found


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of the command line")
    parser.add_argument("--workers", type=int, default=60, help="of a cluster, that are killed or suspended")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if os.environ.get("OMP_NUM_THREADS") != "1":  # commands are forked, which threads would not survive
        os.environ["OMP_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", "torture", *arguments])
    print(facts())
    place = Path(tempfile.mkdtemp(prefix="torture-"))  # stays after a failure, to be looked at
    start = time.monotonic()
    torture_commands(place, options.kills, np.random.default_rng([options.seed, 0]))
    print(f"{time.monotonic() - start:.0f} s", flush=True)
    if options.workers:
        torture_workers(place, options.workers, np.random.default_rng([options.seed, 1]))
        print(f"{time.monotonic() - start:.0f} s")
    shutil.rmtree(place)
    return 0
