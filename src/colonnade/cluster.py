"""A Dask cluster: reaching it, and waiting for its tasks without ever waiting for nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from . import __version__
from ._threads import default_threads
from .files._kinds import needed_module, one_line

_LOOK = 1.0  # seconds without news after which the cluster is looked at
_LARGE_GRAPH = {"distributed.admin.large-graph-warning-threshold": "100GB"}  # data in tasks are meant to be there
_WORKERS_RETURN = {"distributed.deploy.lost-worker-timeout": "1000 h"}  # none is given up while it is started again


class ClusterFailed(RuntimeError):
    """Blocks, workers or the scheduler failed for good."""

    exit_code = 6  # of the command line


@contextmanager
def connected(client, timeout: float):
    """A client: the given one, one for the given address, that of this process, or one with workers of its own.

    Workers of its own are processes of this machine, as many as it has processors, which listen on loopback only.

    Parameters
    ----------
    client : distributed.Client, str or None
    timeout : float
        Seconds that a cluster may be without a worker.
    """
    distributed = needed_module("distributed", "dask")
    if client is None:
        client = _client_of_this_process(distributed)
    if isinstance(client, str):
        with _reached(distributed, client) as made:
            yield made
    elif client is None:
        with _own_cluster(distributed, timeout) as cluster, distributed.Client(cluster, set_as_default=False) as made:
            yield made
    elif not isinstance(client, distributed.Client) or client.asynchronous:
        raise TypeError(f"client must be a synchronous distributed.Client or an address; got {client!r}")
    else:
        yield client


def _client_of_this_process(distributed):
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _reached(distributed, address: str):
    """TLS is configured as Dask is: ``distributed.comm.tls`` in its configuration, or variables of the environment."""
    try:
        return distributed.Client(address, set_as_default=False)
    except OSError as error:
        raise ClusterFailed(
            f"no scheduler answers at {address} ({one_line(error)}): start it, or name another"
        ) from error


@contextmanager
def _own_cluster(distributed, timeout: float):
    import dask

    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": f"{timeout} s", **_WORKERS_RETURN}),
        distributed.LocalCluster(
            host="127.0.0.1",
            n_workers=default_threads(),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.ERROR,
        ) as cluster,
    ):
        yield cluster


class Work:
    """Named tasks on a cluster, watched over.

    Parameters
    ----------
    client : distributed.Client
    timeout : float
        Seconds after which a cluster without workers, or a scheduler that does not answer, is given up.
    """

    def __init__(self, client, timeout: float):
        self.client, self._timeout = client, timeout
        self._alone_since = None
        self._address = client.scheduler.address

    def finished(self, names: dict, submit: Callable) -> Iterator[tuple]:
        """Pairs (key, future) of finished tasks, one for every key of `names`, in the order in which they finish.

        A task whose worker dies is begun again by the scheduler, some times. Those that it has given up are tried once
        more, one after the other, for a task may be blamed for a neighbour. If some are still without a result when all
        others have one, ClusterFailed names them. Any other error of a task is raised as it is.

        Parameters
        ----------
        names : dict of str
            What to call each task in messages.
        submit : function
            Takes a list of keys, returns as many futures; called anew it must begin new tasks.
        """
        killed = []
        yield from self._drained(self._submitted(submit, list(names)), killed)
        for key in list(killed):
            again = []
            yield from self._drained(self._submitted(submit, [key]), again)
            if not again:
                killed.remove(key)
        if killed:
            listed = ", ".join(names[key] for key in sorted(killed)[:5]) + (", ..." if len(killed) > 5 else "")
            raise ClusterFailed(
                f"{len(killed):,} of {len(names):,} blocks failed for good, each time with the worker that had it:"
                f" {listed}. The others are finished. Give the workers more memory, or make the blocks smaller"
            )

    def result(self, future):
        """The result of a future, brought here."""
        while True:
            try:
                return future.result(timeout=10 * _LOOK)
            except TimeoutError:
                if future.status == "error":
                    raise
                self._look()
            except Exception as error:
                if _is_of_the_cluster(error):
                    raise self._failure(error) from error
                raise

    def _submitted(self, submit: Callable, keys: list) -> dict:
        import dask

        with dask.config.set(_LARGE_GRAPH):
            try:
                return dict(zip(keys, submit(keys)))
            except OSError as error:
                raise self._gone() from error

    def _drained(self, futures: dict, killed: list) -> Iterator[tuple]:
        ready, lost = SimpleQueue(), []
        for key, future in futures.items():
            future.add_done_callback(lambda _, key=key: ready.put(key))
        try:
            while futures:
                key = self._next(ready, lost)
                if futures[key].status in ("lost", "pending"):  # its worker died with it: the scheduler begins it again
                    lost.append(key)
                    continue
                future = futures.pop(key)
                error = self._error_of(future)
                if error is None:
                    yield key, future
                elif _is_of_the_cluster(error):
                    killed.append(key)
                    self._forget(future)
                else:
                    raise self._unreadable(error) or error
        finally:
            if futures and self.client.status == "running":
                self.client.cancel(list(futures.values()))

    def _next(self, ready: SimpleQueue, lost: list):
        """The next finished key; those whose result was lost are asked for again whenever there is no other news."""
        while True:
            try:
                return ready.get(timeout=_LOOK)
            except Empty:
                self._look()
                while lost:
                    ready.put(lost.pop())

    def _error_of(self, future) -> Exception | None:
        if future.status == "cancelled":
            raise self._gone()
        return future.exception(timeout=self._timeout) if future.status == "error" else None

    def _forget(self, future) -> None:
        """Wait until the scheduler was told that nobody wants the task, so that it can be begun anew."""
        key = future.key
        future.release()
        for _ in range(100):
            if key not in self.client.futures:
                return
            time.sleep(0.02)

    def _look(self) -> None:
        """Whether there is still somebody to wait for."""
        if self.client.status != "running":
            raise self._gone()
        try:
            facts = self.client.sync(self.client.scheduler.identity, callback_timeout=self._timeout)
        except OSError as error:
            raise self._gone() from error
        if facts["workers"]:
            self._alone_since = None
            return
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        if now - self._alone_since > self._timeout:
            raise ClusterFailed(
                f"the cluster at {self._address} has had no worker for {self._timeout:g} seconds:"
                " start some and try again"
            )

    def _failure(self, error: Exception) -> ClusterFailed:
        if self.client.status != "running":
            return self._gone()
        return ClusterFailed(f"the cluster at {self._address} has failed: {one_line(error)}")

    def _unreadable(self, error: Exception) -> ClusterFailed | None:
        if not (isinstance(error, RuntimeError) and "deserialization" in str(error)):
            return None
        return ClusterFailed(
            f"the cluster at {self._address} cannot read its tasks: install colonnade {__version__} where its scheduler"
            " and its workers run"
        )

    def _gone(self) -> ClusterFailed:
        return ClusterFailed(f"the scheduler at {self._address} is gone or does not answer: start it and try again")


def _is_of_the_cluster(error: Exception) -> bool:
    """Whether an error is none of the task itself: its worker died, or there was none, or the scheduler is gone."""
    return type(error).__module__.split(".")[0] == "distributed"
