"""How many threads, and one piece of work on each of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor


def default_threads() -> int:
    """The processors this process may use, or fewer if OMP_NUM_THREADS says so."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(available, int(asked))) if asked.isdigit() else available


def in_threads(
    work: Callable, pieces: Iterable, n_threads: int | None = None, progress: Callable | None = None
) -> list:
    """``[work(piece) for piece in pieces]`` on several threads; `progress` hears (done, total) after every piece."""
    pieces = list(pieces)
    n_threads = min(n_threads or default_threads(), len(pieces))
    if n_threads <= 1:
        return _collect(map(work, pieces), len(pieces), progress)
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            return _collect(pool.map(work, pieces), len(pieces), progress)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait for what has not begun
            raise


def _collect(results: Iterable, total: int, progress: Callable | None) -> list:
    collected = []
    for result in results:
        collected.append(result)
        if progress is not None:
            progress(len(collected), total)
    return collected
