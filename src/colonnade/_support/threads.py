"""How many threads, and a list of pieces worked off by them."""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

_CHUNK = 16_000_000  # Multiplications of a chunk of `product`: enough to outweigh handing it to a thread.


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # This looks through all loaded libraries, which takes milliseconds.


class _OneBlasThread:
    """Counts the calls that want one BLAS thread: the first one sets it, the last one restores what was before.

    The number of BLAS threads belongs to the whole process. If every call restored what it found, a call that began
    during another one would restore 1 for good.
    """

    def __init__(self):
        self._lock, self._count, self._before = threading.Lock(), 0, None
        self._own = (
            threading.local()
        )  # Number of calls of this thread, which a fork takes along; the others' it does not.

    def enter(self) -> None:
        with self._lock:
            if self._count == 0:
                libraries = _controller().select(user_api="blas").lib_controllers
                self._before = [(library, library.num_threads) for library in libraries]
                for library in libraries:
                    _set_threads(library, 1)
            self._count += 1
        self._own.count = getattr(self._own, "count", 0) + 1

    def leave(self) -> None:
        self._own.count -= 1
        with self._lock:
            self._count -= 1
            self._restore_if_unused()

    def start_anew_in_child(self) -> None:
        """After a fork: another thread may have held the lock, and the calls of other threads never end here."""
        self._lock, self._count = threading.Lock(), getattr(self._own, "count", 0)
        self._restore_if_unused()

    def _restore_if_unused(self) -> None:
        if self._count == 0 and self._before is not None:
            for library, n_threads in self._before:
                _set_threads(library, n_threads)
            self._before = None


def _set_threads(library, n_threads: int) -> None:
    # threadpoolctl 3.8 ignores all but one Python thread here; older versions have no such method and need none.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


_blas = _OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.start_anew_in_child)


@contextmanager
def one_blas_thread():
    """A context, or a decorator, in which BLAS starts no threads, so that sums do not depend on how many it may use.

    Parallelism is ours: `in_threads` and `product` work on chunks that do not depend on the number of threads.
    """
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """``A @ B`` by threads of ours, in chunks of rows of A or columns of B that depend on the shapes only."""
    (m, k), n = A.shape, B.shape[1]
    result = np.empty((m, n), np.result_type(A, B))
    step = max(1, -(-_CHUNK // max(1, k * min(m, n))))

    def of_rows(lo):
        np.matmul(A[lo : lo + step], B, out=result[lo : lo + step])

    def of_columns(lo):
        np.matmul(A, B[:, lo : lo + step], out=result[:, lo : lo + step])

    with one_blas_thread():
        in_threads(of_rows if m >= n else of_columns, range(0, max(m, n), step))
    return result


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
    results: list = [None] * total
    failures: list[BaseException] = []

    def drain(report=None):
        while todo and not failures:
            try:
                k = todo.popleft()
            except IndexError:  # Another thread took the last item.
                return
            try:
                results[k] = work(pieces[k])
                if report is not None and todo:
                    report(total - len(todo), total)  # These are begun, but not all of them are finished.
            except BaseException as failure:
                failures.append(failure)

    n_helpers = min(n_threads or default_threads(), total) - 1 if total > 1 else 0
    helpers = [threading.Thread(target=drain, daemon=True) for _ in range(n_helpers)]
    for helper in helpers:
        helper.start()
    try:
        drain(progress)
    finally:  # After an interrupt, too, no thread goes on behind the caller's back.
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


def ahead(items: Iterable, depth: int = 2, stop: Callable = lambda: None) -> Iterator:
    """The items, fetched by a thread of their own up to `depth` ahead, so that the caller can be interrupted meanwhile.

    `stop` is called when the caller has had enough, and should make a fetch that takes long fail.
    """
    waiting: queue.Queue = queue.Queue(depth)
    ended = threading.Event()

    def fetch():
        try:
            for item in items:
                if not _put(waiting, (item, None), ended):
                    return
            _put(waiting, (None, StopIteration), ended)
        except BaseException as failure:
            _put(waiting, (None, failure), ended)

    helper = threading.Thread(target=fetch, daemon=True)
    helper.start()
    try:
        while True:
            with suppress(queue.Empty):
                item, failure = waiting.get(timeout=0.1)  # An interrupt is heard between two waits.
                if failure is StopIteration:
                    return
                if failure is not None:
                    raise failure
                yield item
    finally:
        ended.set()
        stop()
        helper.join(timeout=2)


def patiently(work: Callable):
    """What `work()` returns, computed by another thread, so that an interrupt need not wait for its end."""
    (result,) = ahead(call() for call in (work,))
    return result


def _put(waiting, item, ended) -> bool:
    """Hand over an item unless nobody wants it any more."""
    while not ended.is_set():
        with suppress(queue.Full):
            waiting.put(item, timeout=0.1)
            return True
    return False


class InBackground:
    """Calls that threads work off while the caller goes on; the first failure is raised by the next call or the end."""

    def __init__(self, n_threads: int = 2, most_waiting: int = 3):
        self._pool = ThreadPoolExecutor(n_threads)
        self._waiting: deque = deque()
        self._most = most_waiting

    def call(self, function: Callable, *arguments) -> None:
        """Begin when a thread is free; waits while too many calls do."""
        self._waiting.append(self._pool.submit(function, *arguments))
        while len(self._waiting) > self._most or (self._waiting and self._waiting[0].done()):
            self._waiting.popleft().result()

    def __enter__(self) -> InBackground:
        return self

    def __exit__(self, kind, *_) -> None:
        try:
            while self._waiting and kind is None:
                self._waiting.popleft().result()
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)
