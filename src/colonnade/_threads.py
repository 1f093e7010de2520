"""How many threads, and a list of pieces worked off by them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable


def default_threads() -> int:
    """The processors this process may use, or fewer if OMP_NUM_THREADS says so."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(available, int(asked))) if asked.isdigit() else available


def in_threads(
    work: Callable, pieces: Iterable, n_threads: int | None = None, progress: Callable | None = None
) -> list:
    """``[work(piece) for piece in pieces]`` by this thread and some more; `progress` hears (done, total) now and then.

    The first failure stops the others at their next piece and is raised here; so is an interrupt.
    """
    pieces = list(pieces)
    total, todo = len(pieces), deque(range(len(pieces)))
    results, failures = [None] * total, []

    def drain(report=None):
        while todo and not failures:
            try:
                k = todo.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                results[k] = work(pieces[k])
                if report is not None and todo:
                    report(total - len(todo), total)  # begun, not all of them finished
            except BaseException as failure:
                failures.append(failure)

    helpers = [
        threading.Thread(target=drain, daemon=True) for _ in range(min(n_threads or default_threads(), total) - 1)
    ]
    for helper in helpers:
        helper.start()
    try:
        drain(progress)
    finally:  # also after an interrupt nothing goes on behind the caller's back
        if failures:
            todo.clear()
        _join(helpers, todo)
    if failures:
        raise failures[0]
    if progress is not None:
        progress(total, total)
    return results


def _join(helpers, todo) -> None:
    """Wait for all; an interrupt meanwhile stops them at their next piece and is raised when they have."""
    interrupt = None
    for helper in helpers:
        while helper.is_alive():
            try:
                helper.join()
            except BaseException as failure:
                interrupt = failure
                todo.clear()
    if interrupt is not None:
        raise interrupt
