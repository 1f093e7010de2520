"""`colonnade doctor`: versions and settings of this installation."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import click

from ._lines import say
from ._options import json_option

_NEEDED = "numpy", "scipy", "scikit-learn", "numba", "llvmlite", "threadpoolctl"
_OPTIONAL = {
    "click": "cli",
    "rich": "cli",
    "matplotlib": "cli",
    "pyarrow": "cli",
    "duckdb": "cli",
    "jinja2": "cli",
    "dask": "dask",
    "distributed": "dask",
    "zarr": "zarr",
    "fsspec": "remote",
    "s3fs": "remote",
    "polars": "polars",
    "openpyxl": "excel",
    "xarray": "xarray",
    "h5netcdf": "xarray",
    "pandas": None,
}


@click.command()
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Also compare the versions here with those of the Dask cluster at this address. Exit code 6 if a worker has"
    " another version of colonnade. Default: this machine only.",
)
@json_option("the facts")
def command(scheduler: str | None, as_json: bool) -> None:
    """Show versions, linear algebra libraries, threads and the compiler cache, for bug reports.

    Example: colonnade doctor
    """
    facts = facts_of_the_machine()
    if scheduler is not None:
        from ...scaling.dask.versions import facts_of_cluster

        facts["cluster"] = facts_of_cluster(scheduler)
    _show(facts, as_json)
    if any(line.startswith("colonnade:") for line in facts.get("cluster", {}).get("differences") or ()):
        failure = click.ClickException("install the same version of colonnade on the workers")
        failure.exit_code = 6
        raise failure


def _show(facts: dict, as_json: bool) -> None:
    if as_json:
        say(json.dumps(facts))
        return
    for line in _in_words(facts):
        say(line)


def facts_of_the_machine() -> dict:
    """Versions, machine, BLAS, threads, kernel and cache; all of it such that JSON can hold it."""
    from ... import __version__
    from ..._support.threads import default_threads
    from ...model.kernels.emitter import LANES

    return {
        "colonnade": __version__,
        "folder": str(Path(__file__).parents[2]),
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": os.cpu_count(),
        "threads": default_threads(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "kernel_lanes": LANES,
        "blas": _libraries(),
        "cache": _cache(),
        "versions": {name: _version(name) for name in _NEEDED},
        "optional": {name: _version(name) for name in _OPTIONAL},
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _libraries() -> list[dict]:
    """The linear algebra and thread libraries that numpy and scipy have loaded."""
    import numpy.linalg  # noqa: F401
    import scipy.linalg  # noqa: F401  its BLAS may be another one
    from threadpoolctl import threadpool_info

    wanted = "internal_api", "version", "num_threads", "architecture"
    return [{name: library.get(name) for name in wanted} for library in threadpool_info()]


def _cache() -> dict:
    """Where numba keeps the compiled kernel, whether it can, and whether it has."""
    asked = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(asked) if asked else Path(__file__).parents[2] / "model" / "kernels" / "__pycache__"
    if not asked and not os.access(folder if folder.is_dir() else folder.parent, os.W_OK):
        from numba.misc.appdirs import AppDirs

        folder = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    existing = next(path for path in (folder, *folder.parents) if path.is_dir())
    return {
        "folder": str(folder),
        "writable": os.access(existing, os.W_OK),
        "compiled": folder.is_dir() and any(folder.rglob("column_kernels.*.nbi")),
    }


def _in_words(facts: dict) -> list[str]:
    threads = f"{facts['threads']} of {facts['processors']} processors"
    if facts["omp_num_threads"] is not None:
        threads += f", OMP_NUM_THREADS is {facts['omp_num_threads']!r}"
    cache = facts["cache"]
    kept = "compiled code is there" if cache["compiled"] else "the first run compiles, which takes about 12 s"
    if not cache["writable"]:
        kept = "not writable, so every run compiles; set NUMBA_CACHE_DIR to a writable folder"
    return [
        f"colonnade {facts['colonnade']} in {facts['folder']}",
        f"Python {facts['python']} ({facts['executable']})",
        f"System: {facts['system']}",
        f"Threads: {threads}",
        f"Kernel: vectors of {facts['kernel_lanes']} numbers",
        *(_library_in_words(library) for library in facts["blas"]),
        f"Cache: {cache['folder']}; {kept}",
        "Needed: " + ", ".join(f"{name} {version or 'MISSING'}" for name, version in facts["versions"].items()),
        "Optional: " + ", ".join(_optional_in_words(*pair) for pair in facts["optional"].items()),
        *_cluster_in_words(facts.get("cluster")),
    ]


def _cluster_in_words(cluster: dict | None) -> list[str]:
    from ..._support.atomic_writing import in_bytes

    if cluster is None:
        return []
    memory = "no limit" if cluster["smallest_memory"] is None else in_bytes(cluster["smallest_memory"])
    size = f"{cluster['workers']:,} workers with {cluster['threads']:,} threads"
    lines = [f"Cluster: {size}; the smallest worker has {memory} of memory"]
    if cluster["differences"] is None:
        return [*lines, "Versions: the cluster did not answer; a worker may be suspended"]
    same = "the results have the same bytes as here" if cluster["same_bytes"] else "last digits of results may differ"
    found = cluster["differences"] or ["all versions are the same"]
    return [*lines, f"Versions: {'; '.join(found)}; {same} on processors of the same kind"]


def _library_in_words(library: dict) -> str:
    architecture = f" for {library['architecture']}" if library["architecture"] else ""
    version = f" {library['version']}" if library["version"] else ""
    return f"Library: {library['internal_api']}{version}{architecture}, {library['num_threads']} threads"


def _optional_in_words(name: str, version: str | None) -> str:
    if version is not None:
        return f"{name} {version}"
    extra = _OPTIONAL[name]
    return f"{name} missing" + (f" (pip install 'colonnade[{extra}]')" if extra else "")
