"""Share of small faults in `src` that the tests notice: mutants drawn at random, each tried by the tests that run it.

A mutant differs from the package in one place: a comparison, an operator, a number, a condition, a dropped statement
or a return value. The draw orders all mutants by a hash of the seed and of their text, so an edit elsewhere leaves it
as it was. Tests that run the changed line are known from a traced run of all tests, which is kept in `--folder`. The
cheapest run first, and the first failure that repeats itself ends them. A mutant that hangs counts as noticed.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from benchmarks.mutations import ROOT, Mutant, draw

# Compiled lines leave no trace: their tests are known by name.
_KERNEL_FILES = "abreast", "column_kernels", "emitter", "lanes", "problem", "stable", "tiles"
COMPILED = tuple(f"colonnade/model/kernels/{name}.py" for name in _KERNEL_FILES)
COMPILED_TESTS = "test_solve", "test_other_machines", "test_tall", "test_faults", "test_exactness"
START = "import os\nif 'MUTANTS_CONTEXT' in os.environ:\n    from benchmarks.mutants_plugin import start\n    start()\n"


def tree(folder: Path) -> Path:
    """A copy of the repository with times kept, so that numba's and Python's caches stay valid."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", folder / "src"], check=True)
    return folder


def run(place: Path, arguments, timeout=None, **environment) -> int | None:
    """pytest in a copy of the repository: its exit code, or None if it hung."""
    here = {"PYTHONPATH": f"{place / 'start'}:{place}:{place / 'src'}", "NUMBA_CACHE_DIR": f"{place}.numba"}
    here |= {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    limit = ["sh", "-c", 'ulimit -v 16000000; exec "$@"', "sh"]  # A mutant may ask for any amount of memory.
    plugins = "-p", "benchmarks.mutants_plugin", "-p", "no:cacheprovider"
    command = [*limit, sys.executable, "-m", "pytest", "--seeds", "1", *plugins, *arguments]
    with open(f"{place}.log", "w") as log:
        options = {"cwd": place, "env": {**os.environ, **here, **environment}, "stdout": log, "stderr": log}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def record(path: Path, place: Path) -> dict:
    """Seconds of each test and the lines it runs: {file: {"hash", "seconds", "lines"}}; only changed files are run."""
    package = b"".join(f.read_bytes() for f in sorted((ROOT / "src").rglob("*.py")))
    known, new = json.loads(path.read_text()) if path.exists() else {}, {}
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        name, text = test.relative_to(ROOT).as_posix(), hashlib.sha256(package + test.read_bytes()).hexdigest()
        kept = known.get(name, {"hash": ""})
        new[name] = kept if kept["hash"] == text else {"hash": text, "seconds": {}, "slow": [], "lines": {}}
    missing = [name for name, entry in new.items() if not entry["seconds"]]
    if not missing:
        return new
    (place / "start").mkdir()
    (place / "start" / "sitecustomize.py").write_text(START)
    folder = Path(f"{place}.record")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    print(f"tracing {len(missing)} files of tests", flush=True)
    run(place, ["-n", "2", "--dist", "load", *missing], MUTANTS_RECORD=str(folder))
    runs, failed = defaultdict(set), []
    for file in folder.iterdir():
        context = ""
        for line in file.read_text().splitlines():
            if line.startswith("@"):
                context = line[1:]
            elif line.startswith("="):
                seconds, test = line[1:].split(" ", 1)
                new[test.split("::")[0]]["seconds"][test] = float(seconds)
            elif line.startswith("!"):
                failed.append(line[1:])
            elif line.startswith("~"):
                new[line[1:].split("::")[0]]["slow"].append(line[1:])
            elif context:
                runs[line].add(context)
    for test in set(failed):
        print(f"fails without a mutant, or because it is traced; left out: {test}")
        new[test.split("::")[0]]["seconds"].pop(test)
    for line, contexts in runs.items():
        for context in contexts:
            new[context.split("::")[0]]["lines"].setdefault(line, []).append(context)
    path.write_text(json.dumps(new))
    shutil.rmtree(place / "start")
    return new


def tests_of(mutant: Mutant, recorded: dict, most: float) -> list[str]:
    """Tests that can notice it, the cheapest first, up to so many seconds in all."""
    wanted = {f"{mutant.path}:{line}" for line in mutant.lines}
    if mutant.names:
        word = re.compile(r"\b(" + "|".join(map(re.escape, mutant.names)) + r")\b")
        for file in (ROOT / "src").rglob("*.py"):
            lines = enumerate(file.read_text().splitlines(), 1)
            wanted |= {f"{file.relative_to(ROOT / 'src')}:{k}" for k, line in lines if word.search(line)}
    found = {}
    for name, entry in recorded.items():
        contexts = {c for line in wanted & entry["lines"].keys() for c in entry["lines"][line]}
        if not mutant.lines and not mutant.names:
            contexts = {c for line, cs in entry["lines"].items() if line.startswith(f"{mutant.path}:") for c in cs}
        if mutant.path in COMPILED and Path(name).stem in COMPILED_TESTS:
            contexts |= {name}
        found |= {test: s for test, s in entry["seconds"].items() if test in contexts or name in contexts}
    order = sorted(found, key=found.get)
    spent = np.cumsum([found[test] for test in order])
    return order[: max(1, np.searchsorted(spent, most, side="right"))]


def untouched(recorded: dict) -> list[str]:
    """Modules with functions that no test without the marker "slow" runs."""
    run = {
        line
        for entry in recorded.values()
        for line, contexts in entry["lines"].items()
        if set(contexts) - set(entry["slow"])
    }
    missed = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        name, functions = file.relative_to(ROOT / "src"), (ast.FunctionDef, ast.AsyncFunctionDef)
        inside = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, functions)]
        lines = {f"{name}:{k}" for node in inside for k in range(node.body[0].lineno, node.end_lineno + 1)}
        if lines and not lines & run:
            missed.append(str(name))
    return missed


def verdict(mutant: Mutant, place: Path, recorded: dict, most: float) -> str:
    """What the tests say of a mutant: noticed, hung (noticed too), survived, or that no test runs it.

    A test that fails is run again with the same mutant. If it then passes, the mutant was not the reason, and the
    other tests go on without it.
    """
    tests = tests_of(mutant, recorded, most)
    original, changed = ROOT / "src" / mutant.path, place / "src" / mutant.path
    changed.write_text(mutant.apply(original.read_text()))
    unsteady = []
    try:
        while tests:
            code, name = attempt(mutant, place, tests, most)
            if code in (None, 0, 5):
                said = {None: "hung", 0: f"SURVIVED {len(tests)} tests", 5: "no test"}[code]
                return said + "".join(f"; unsteady: {test}" for test in unsteady)
            again = [test for test in tests if test.startswith(name)] if name else tests
            if attempt(mutant, place, again, most)[0] != 0:
                return f"noticed by {name or 'a crash'}"
            unsteady.append(name or "a crash")
            tests = [test for test in tests if name and test not in again]
    finally:
        shutil.copy2(original, changed)
    return "no test" + "".join(f"; unsteady: {test}" for test in unsteady)


def attempt(mutant: Mutant, place: Path, tests: list[str], most: float) -> tuple[int | None, str]:
    """The exit code of tests, None if they hung, and the name of the first that fails, without what follows a blank."""
    Path(f"{place}.tests").write_text("\n".join(tests))
    options = {"MUTANTS_TESTS": f"{place}.tests"}
    files = dict.fromkeys(test.split("::")[0] for test in tests)
    with tempfile.TemporaryDirectory() as cache:
        if mutant.path in COMPILED:  # numba's cache watches one file only.
            options["NUMBA_CACHE_DIR"] = cache
        code = run(place, ["-n", "0", "-x", *files], timeout=300 + 10 * most, **options)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S*)", Path(f"{place}.log").read_text(), re.M)
    return code, failed[0] if failed else ""


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the draw to try; default: all; empty: none")
    parser.add_argument("--seconds", type=float, default=60, help="of processor time for the tests of a mutant")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at a time")
    parser.add_argument("--wanted", type=float, default=85, help="per cent that must be noticed")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "colonnade-mutants")
    options = parser.parse_args(arguments)
    mutants = dict(enumerate(draw(options.count, options.seed)))
    options.folder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        free: SimpleQueue = SimpleQueue()
        for k in range(options.jobs):
            free.put(tree(options.folder / f"tree{k}"))
        place = free.get()
        recorded = record(options.folder / "record.json", place)
        free.put(place)
        print("Modules without a function that quick tests run:", *(untouched(recorded) or ["none"]), flush=True)

        def judge(number):
            place = free.get()
            try:
                said = verdict(mutants[number], place, recorded, options.seconds)
            finally:
                free.put(place)
            m = mutants[number]
            print(f"{number:3} {m.path}:{m.line}  {m.old} -> {m.new}  {said}".replace("\n", " "), flush=True)
            return said.startswith(("noticed", "hung"))

        noticed = list(pool.map(judge, mutants if options.only is None else options.only))
    if not noticed:
        return 0
    share = 100 * sum(noticed) / len(noticed)
    print(f"{sum(noticed)} of {len(noticed)} noticed: {share:.0f} %, wanted {options.wanted:.0f} %")
    return 0 if share >= options.wanted else 1
