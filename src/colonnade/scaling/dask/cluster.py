"""A Dask cluster: reaching it, and waiting for its tasks without ever waiting for nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

from ... import __version__
from ..._support.threads import default_threads
from ...files.tables.kinds import needed_module, one_line

_LOOK = 1.0  # Seconds to wait for news at a time.
_LOOKS = 20  # How often a cluster without news is looked at in the time after which it is given up.
_CLOSING = 5.0  # seconds that the end of a connection may take
_BEATS = 10  # heartbeats that a worker may miss in any case; as Dask's own deadline, which is 5 minutes or more
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
        with _closed_in_time(_reached(distributed, client, timeout)) as made:
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


def _reached(distributed, address: str, timeout: float):
    """TLS is configured as Dask is: ``distributed.comm.tls`` in its configuration, or variables of the environment.

    The client is made by another thread, because Dask waits for ever for the first words of a suspended scheduler.
    """
    answers = SimpleQueue()

    def reach():
        try:
            answers.put((distributed.Client(address, set_as_default=False), None))
        except BaseException as error:
            answers.put((None, error))

    threading.Thread(target=reach, daemon=True).start()
    try:
        client, error = answers.get(timeout=timeout)
    except Empty:
        client, error = None, TimeoutError(f"no word in {timeout:g} seconds")
    if isinstance(error, OSError):
        raise ClusterFailed(
            f"no scheduler answers at {address} ({one_line(error)}): start it, or name another"
        ) from error
    if error is not None:
        raise error
    return client


@contextmanager
def _closed_in_time(client):
    """A client that is closed at the end, also if its scheduler is suspended and does not hear of it."""
    try:
        yield client
    finally:
        with suppress(TimeoutError, AssertionError):
            client.close(timeout=_CLOSING)


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
        Seconds after which a cluster without workers, or a scheduler that does not answer, is given up, and a worker
        that was not heard of is started anew, so that others do its work.
    """

    def __init__(self, client, timeout: float):
        self.client, self._timeout = client, timeout
        self._alone_since = None
        self._looked = time.monotonic()
        self._heard = {}  # by worker: the time of its last heartbeat, by another clock, and when that was new here
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

    def results(self, names: dict, tasks: dict, report: Callable = lambda done: None) -> dict:
        """What tasks return, by their keys, in the order of the keys; each is a function and its arguments."""

        found = {}
        for key, future in self.finished(names, self.beginning(tasks)):
            found[key] = None if future.type is type(None) else self.result(future)  # Nothing has to be brought here.
            report(len(found))
        return {key: found[key] for key in names}

    def beginning(self, tasks: dict) -> Callable:
        """For `finished`: begins some of these tasks, in one message."""

        def submit(keys):
            begun = [tasks[key] for key in keys]
            return self.client.map(_called, begun, key=begun[0][0].__name__, pure=False) if begun else []

        return submit

    def call(self, what: str, function: Callable, *arguments):
        """What a function returns that runs on some worker."""
        return self.results({0: what}, {0: (function, *arguments)})[0]

    def memory(self) -> float | None:
        """Bytes that the smallest worker may use for one task; None if workers have no limit."""
        workers = self._asked(self.client.scheduler.identity)["workers"].values()
        limits = [one["memory_limit"] for one in workers if one.get("memory_limit")]
        return min(limits, default=None)

    def result(self, future):
        """The result of a future, brought here."""
        coming = asyncio.run_coroutine_threadsafe(_result(self.client, future), self.client.loop.asyncio_loop)
        try:
            while True:
                try:
                    return coming.result(timeout=_LOOK)
                except TimeoutError:
                    if coming.done():
                        raise
                    self._look()
        except Exception as error:
            if _is_of_the_cluster(error):
                raise self._failure(error) from error
            raise
        finally:
            coming.cancel()

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
            if time.monotonic() - self._looked > max(_LOOK, self._timeout / _LOOKS):
                self._look()
            try:
                return ready.get(timeout=_LOOK)
            except Empty:
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
        workers = self._asked(self.client.scheduler.identity)["workers"]
        now = time.monotonic()
        self._restart_silent(workers, now)
        if workers:
            self._alone_since = None
            return
        self._alone_since = self._alone_since or now
        if now - self._alone_since > self._timeout:
            raise ClusterFailed(
                f"the cluster at {self._address} has had no worker for {self._timeout:g} seconds:"
                " start some and try again"
            )

    def _asked(self, function: Callable, **arguments):
        """What the scheduler answers; none in time is an error."""
        try:
            return self.client.sync(function, callback_timeout=self._timeout, **arguments)
        except OSError as error:
            raise self._gone() from error

    def _restart_silent(self, workers: dict, now: float) -> None:
        """Start workers anew that send no heartbeats, such as suspended ones; the scheduler gives their work to others.

        One without a nanny is only removed.
        """
        if now - self._looked > self._timeout:  # nobody listened, perhaps because all of this machine was suspended
            self._heard.clear()
        self._looked = now
        before, self._heard = self._heard, {}
        for address, facts in workers.items():
            beat, since = before.get(address, (None, now))
            self._heard[address] = (beat, since) if beat == facts["last_seen"] else (facts["last_seen"], now)
        patience = max(self._timeout, _BEATS * _seconds_of_a_beat(len(workers)))
        silent = [address for address, (_, since) in self._heard.items() if now - since > patience]
        if silent:
            how = {"timeout": self._timeout / 2, "wait_for_workers": False, "on_error": "return"}
            how["stimulus_id"] = "colonnade-silent-worker"
            self._asked(self.client.scheduler.restart_workers, workers=silent, **how)

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


def _called(task):
    """What a function and its arguments return; on a worker."""
    function, *arguments = task
    return function(*arguments)


async def _result(client, future):
    return await client.gather(future, asynchronous=True)


def _seconds_of_a_beat(n_workers: int) -> float:
    from distributed.scheduler import heartbeat_interval

    return heartbeat_interval(n_workers)
