"""Facts about the machine, and timing that says what it timed."""

from __future__ import annotations

import platform
import resource
import time

import numpy as np
from threadpoolctl import threadpool_info

from colonnade._threads import default_threads


def facts() -> str:
    blas = next((f"{i['internal_api']} {i['version']}" for i in threadpool_info() if i["user_api"] == "blas"), "?")
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {default_threads()} threads; Python {platform.python_version()}, NumPy {np.__version__}, {blas}"


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(rounds: int, *works) -> list[float]:
    """The least time of each work over some rounds; in every round each work runs three times in a row, warm.

    Rounds, so that a slow moment of the machine hits all works alike; in a row, so that none pays for the caches and
    the spinning threads that another left behind.
    """
    times = [[min(seconds(work) for _ in range(3)) for work in works] for _ in range(rounds)]
    return list(np.min(times, axis=0))


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
