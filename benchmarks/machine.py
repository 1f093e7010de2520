"""Facts about the machine, and timing that says what it timed."""

from __future__ import annotations

import argparse
import platform
import resource
import time

import numpy as np
from threadpoolctl import threadpool_info

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


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(rounds: int, *works) -> list[float]:
    """The least time of each work over some rounds, warm: in every round a work runs at least twice and for 0.2 s.

    Rounds, so that a slow moment of the machine hits all works alike; in a row, so that none pays for the caches and
    the spinning threads that another left behind.
    """
    return list(np.min([[_least(work) for work in works] for _ in range(rounds)], axis=0))


def _least(work) -> float:
    times = [seconds(work), seconds(work)]
    while sum(times) < 0.2:
        times.append(seconds(work))
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
