"""Versions of the libraries here, on the scheduler and on the workers of a cluster, compared before anything runs."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue

from ... import __version__
from .cluster import ClusterFailed, connected

PACKAGES = "colonnade", "numpy", "scipy", "numba", "pyarrow", "duckdb", "fsspec", "s3fs"
_PATIENCE = 20.0  # Seconds for an answer; a suspended worker gives none, and the run itself deals with it.
_DECIDE_BYTES = "colonnade", "numpy", "scipy", "numba"  # Other versions of these may change the last digits.


def versions_on(client) -> dict | None:
    """By place, "client", "scheduler" or the address of a worker: versions by package, None where it is not installed.

    None if the cluster does not answer in time.
    """
    answers: SimpleQueue = SimpleQueue()

    def ask():
        try:
            answers.put(client.get_versions(packages=list(PACKAGES)))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        found = answers.get(timeout=_PATIENCE)
    except Empty:
        return None
    if isinstance(found, Exception):
        return None
    places = {"client": found["client"], "scheduler": found["scheduler"], **found["workers"]}
    wanted = "python", "dask", "distributed", *PACKAGES
    return {
        place: {name: {**facts["host"], **facts["packages"]}.get(name) for name in wanted}
        for place, facts in places.items()
        if facts
    }


def differences(versions: dict) -> list[str]:
    """One line for each package whose versions differ, with the places that have another one than this process."""
    here, lines = versions["client"], []
    for name, own in here.items():
        others = {place: found[name] for place, found in versions.items() if _short(found[name]) != _short(own)}
        optional = name in ("duckdb", "fsspec", "s3fs", "numba", "pyarrow")
        others = {place: one for place, one in others.items() if not (place == "scheduler" and optional)}
        if others:
            place, one = next(iter(others.items()))
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            lines.append(f"{name}: {_short(own) or 'missing'} here, {_short(one) or 'missing'} at {place}{more}")
    return lines


def _short(version) -> str | None:
    """Without the build of Python."""
    return None if version is None else str(version).split(".final")[0]


def refuse_other_versions(client) -> None:
    """Refuse a cluster whose workers lack this version of the package."""
    versions = versions_on(client)
    for place, found in (versions or {}).items():
        if place != "scheduler" and found["colonnade"] != __version__:
            there = f"has colonnade {found['colonnade']}" if found["colonnade"] else "has no colonnade"
            raise ClusterFailed(
                f"the worker at {place} {there}, and this process has {__version__}: install colonnade {__version__}"
                " with the same extras where the workers run"
            )


def facts_of_cluster(address: str, timeout: float = 60.0) -> dict:
    """Of the cluster at an address: workers, threads, memory, versions and their differences."""
    with connected(address, timeout) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        versions = versions_on(client)
        limits = [facts["memory_limit"] for facts in workers.values() if facts.get("memory_limit")]
        return {
            "address": address,
            "workers": len(workers),
            "threads": sum(facts["nthreads"] for facts in workers.values()),
            "smallest_memory": min(limits, default=None),
            "versions": versions,
            "differences": None if versions is None else differences(versions),
            "same_bytes": versions is not None
            and not any(line.split(":")[0] in _DECIDE_BYTES for line in differences(versions)),
        }
