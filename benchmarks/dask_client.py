"""What the process that calls a cluster has to do: its processor time and its peak memory, beside those of the workers.

The matrix has 100,000 rows, rank 20, 60 full columns and 80 entries of each other one, as triples in random order. Each
engine runs in a process of its own, after a small run that loads the compiled code.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

M, R, D, S = 100_000, 20, 60, 80
_IDLE = 15.0  # Seconds in which the cluster is watched while it has nothing to do.


def write_shuffled(path: Path, n: int, m: int = M, seed: int = 0) -> int:
    """Triples of n partial and D full columns, in random order of columns; how many there are."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, R)), rng.standard_normal((n + D, R))
    kinds = {"row": pa.int32(), "column": pa.int32(), "value": pa.float64()}
    with parquet.ParquetWriter(path, pa.schema(kinds)) as file:

        def write(rows, columns):
            for lo in range(0, rows.size, 1 << 20):
                i, j = rows[lo : lo + (1 << 20)], columns[lo : lo + (1 << 20)]
                file.write_table(pa.table(dict(zip(kinds, (i, j, np.einsum("kr,kr->k", U[i], V[j]))))))

        for t in range(S):  # a row of each of S equal parts for every column
            write(
                rng.integers(t * (m // S), (t + 1) * (m // S), n).astype(np.int32), rng.permutation(n).astype(np.int32)
            )
        places = rng.permutation(m * D)
        write((places % m).astype(np.int32), (n + places // m).astype(np.int32))
    return n * S + m * D


def measured(path: Path, small: Path, address: str | None) -> dict:
    """Of a process of its own: seconds, processor seconds and peak memory."""
    command = [sys.executable, "-m", "benchmarks.dask_client", str(path), str(small), address or ""]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1])


def _completed(path: str, out: Path, address: str) -> tuple[str, float]:
    import hashlib

    import colonnade as co

    settings = {"rank": R, "center": False, "shrinkage": 0.0, "refine": 0}
    if address:
        co.dask.complete(path, address, out=out, **settings)
    else:
        co.complete_triples(path, out, **settings)
    digest = hashlib.sha256()
    before = time.process_time()
    for file in sorted((out / "blocks").iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest(), time.process_time() - before


def _peak_memory() -> float:
    """Megabytes; not as getrusage tells, which counts the process that started this one."""
    (line,) = [one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM")]
    return float(line.split()[1]) / 1e3


def alone(path: str, small: str, address: str) -> dict:
    """What the process prints."""
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder, _watching(address) as processors:
        _completed(small, Path(folder) / "small", address)
        others, start, spent = processors(), time.perf_counter(), time.process_time()
        digest, of_digest = _completed(path, Path(folder) / "out", address)
        return {
            "seconds": time.perf_counter() - start,
            "processor": time.process_time() - spent - of_digest,
            "others": [after - before for after, before in zip(processors(), others)],
            "megabytes": _peak_memory(),
            "digest": digest,
        }


def _load_on_workers(address: str, small: str) -> None:
    """Let every worker load the compiled code of all stages; a small run has each stage on one of them only."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.run(_load, small)


def _load(small: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _completed(small, Path(folder) / "out", "")


@contextmanager
def _watching(address: str):
    """A function that tells the processor seconds of the scheduler, and of all workers together, so far."""
    if not address:
        yield lambda: [0.0, 0.0]
        return
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        yield lambda: [client.run_on_scheduler(time.process_time), sum(client.run(time.process_time).values())]


def report(sizes: list[int], cluster, folder: Path) -> tuple[bool, dict]:
    """Measure and print; whether the sum and the memory of the client are as wanted, and the key figures."""
    small, of_client, good, figures = folder / "small.parquet", {}, True, {}
    write_shuffled(small, 500, 200 * S // 8)
    measured(small, small, cluster.scheduler_address)
    _load_on_workers(cluster.scheduler_address, str(small))
    with _watching(cluster.scheduler_address) as processors:
        before = processors()
        time.sleep(_IDLE)
        idle = [(after - one) / _IDLE for after, one in zip(processors(), before)]
    print(f"\n{M:,} rows, rank {R}, {D} full columns, {S} entries of each other one, in random order; 2 workers")
    print(f"without work, scheduler and workers take {idle[0]:.3f} and {idle[1]:.3f} processors, which are deducted")
    print("processor seconds of each:")
    print(
        "columns    triples         local       client     scheduler      workers    sum/local   client, MB  local, MB"
    )
    for n in sizes:
        path = folder / f"{n}.parquet"
        entries = write_shuffled(path, n)
        local, there = measured(path, small, None), measured(path, small, cluster.scheduler_address)
        scheduler, workers = (max(0.0, x - rate * there["seconds"]) for x, rate in zip(there["others"], idle))
        ratio = (there["processor"] + scheduler + workers) / local["processor"]
        of_client[n] = there
        whole = (there["processor"] + sum(there["others"])) / local["processor"]
        good &= ratio <= 1.3
        figures |= {
            f"{kind}_{n}": value
            for kind, value in (
                ("local", local["processor"]),
                ("client", there["processor"]),
                ("workers", workers),
                ("sum", ratio),
                ("sum_with_idling", whole),
                ("client_megabytes", there["megabytes"]),
                ("local_megabytes", local["megabytes"]),
            )
        }
        print(
            f"{n:<10,} {entries:<12,} {local['processor']:8.1f} {there['processor']:12.2f} {scheduler:13.2f}"
            f" {workers:12.1f} {ratio:12.2f} {there['megabytes']:12.0f} {local['megabytes']:10.0f}"
            f"   (with idling {whole:.2f};"
            f" {there['seconds']:.0f} s and {local['seconds']:.0f} s by the clock)",
            flush=True,
        )
        if there["digest"] != local["digest"]:
            raise AssertionError("the engines differ in their bytes")
        path.unlink()
    least, most = of_client[min(sizes)], of_client[max(sizes)]
    print(
        f"client, largest over smallest n: {most['processor'] / least['processor']:.2f} of the processor time,"
        f" {most['megabytes'] / least['megabytes']:.2f} of the memory"
    )
    good &= most["megabytes"] <= 1.1 * least["megabytes"]
    return good, figures


if __name__ == "__main__":
    print(json.dumps(alone(*sys.argv[1:])))
