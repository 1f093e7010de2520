"""Facts about the machine, and timing that says what it timed."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from colonnade._support.threads import default_threads


def facts() -> str:
    blas = next((f"{i['internal_api']} {i['version']}" for i in threadpool_info() if i["user_api"] == "blas"), "?")
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {default_threads()} threads; Python {platform.python_version()}, NumPy {np.__version__}, {blas}"


def record(path: Path | None, name: str, figures: dict) -> None:
    """Write the key figures of a benchmark, with the facts of this machine, into a file; other benchmarks stay in it.

    Parameters
    ----------
    path : Path or None
        A JSON file, made if it is not there. None: nothing is written.
    name : str
        Of the benchmark.
    figures : dict
        Numbers by name.
    """
    if path is None:
        return
    known = json.loads(path.read_text()) if path.exists() else {}
    known[name] = {
        "machine": facts(),
        "date": date.today().isoformat(),
        "load": round(os.getloadavg()[0], 1),  # Seconds by the clock count only if it is near 1 a processor or below.
        "figures": {key: float(f"{value:.4g}") for key, value in figures.items()},
    }
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the key figures into FILE, too")


@contextmanager
def one_thread():
    """BLAS and the package use one thread, so that the processor time of a work is that of its arithmetic."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        with threadpool_limits(1):
            yield
    finally:
        os.environ.pop("OMP_NUM_THREADS") if before is None else os.environ.update(OMP_NUM_THREADS=before)


def count(text: str) -> int:
    """An argument that is a whole number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def chosen(asked: str, names, what: str) -> list[str]:
    """The names that have `asked` in them, or one of its comma-separated parts; all if it is empty.

    A part that is in no name is an error.
    """
    parts = [asked] if any(asked in name for name in names) else [part.strip() for part in asked.split(",")]
    for part in parts:
        if not any(part and part in name for name in names) and asked:
            raise argparse.ArgumentTypeError(f"no {what} has {part!r} in its name; there are {', '.join(names)}")
    return [name for name in names if any(part in name for part in parts)]


def seconds(work, clock: Callable = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def best_of(rounds: int, *works, clock: Callable = time.perf_counter) -> list[float]:
    """The least time of each work over some rounds, warm: in every round a work runs at least twice and for 0.2 s.

    Rounds, so that a slow moment of the machine hits all works alike; in a row, so that none pays for the caches and
    the spinning threads that another left behind.
    """
    return list(np.min([[_least(work, clock) for work in works] for _ in range(rounds)], axis=0))


def _least(work, clock: Callable) -> float:
    times = [seconds(work, clock), seconds(work, clock)]
    while sum(times) < 0.2:
        times.append(seconds(work, clock))
    return min(times)


def processor_seconds(rounds: int, work) -> float:
    """The least time that all threads together spend on a work, over some rounds of at least 0.1 s, warm."""
    work()
    return min(_processor_mean(work) for _ in range(rounds))


def _processor_mean(work) -> float:
    begin, times = time.process_time(), 0
    while time.process_time() - begin < 0.1:
        work()
        times += 1
    return (time.process_time() - begin) / times


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
