"""All benchmarks whose figures README and docs quote, one after the other; their key figures go into one file.

The file of the project is ``benchmarks/figures.json``. `QUOTES` has the places that quote it, and a test compares them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

RECORDED = "kernel", "column_space", "select_rows", "noisy", "trillion", "files", "dask"
NEED_DATA = "real", "gaps"  # Without --data their figures stay in the file as they are.
OPTIONS = {"dask": ["--only-client", "--sizes", "10000", "100000", "1000000"]}

# Pages quote these benchmarks, and their figures were not recorded yet; a test keeps the list true.
UNRECORDED = {
    "ablation": "not run since the file is kept",
    "blocks": "not run since the file is kept",
    "column_space": "not run since the file is kept",
    "coverage": "needs the real matrices",
    "evaluation": "needs the real matrices",
    "gaps": "needs the real matrices",
    "learners": "needs the real matrices",
    "mutants": "the page states an aim and quotes no figure",
    "noisy": "not run since the file is kept",
    "real": "needs the real matrices",
    "rivals": "not run since the file is kept",
}

_SIZES = {10_000: "6.8", 100_000: "14", 1_000_000: "86"}  # Millions of triples by columns.

# By page: what stands in it, with figures in the place of {benchmark[name]}.
_CLUSTER = (
    "{dask[local_N]:.1f} | {dask[client_N]:.2f} | {dask[workers_N]:.1f} | {dask[sum_N]:.2f} |"
    " {dask[sum_with_idling_N]:.2f} | {dask[client_megabytes_N]:,.0f} MB | {dask[local_megabytes_N]:,.0f} MB |"
)
QUOTES = {
    "README.md": [
        "140 million entries | {trillion[processor]:.1f} processor seconds, {trillion[gigabytes]:.1f} GB |",
        "{files[complete_shuffled_1000000_processor]:.0f} processor seconds,"
        " {files[complete_shuffled_1000000_gigabytes]:.1f} GB |",
    ],
    "docs/how_big.md": [
        *(
            f"n = {n:,} | {size} million | {{files[{work}_{n}_processor]:.1f}} s |"
            f" {{files[{work}_{n}_gigabytes]:.1f}} GB |"
            for n, size in ((100_000, 14), (1_000_000, 140))
            for work in ("read_and_solve", "complete_sorted", "complete_shuffled", "sort")
        ),
        "Shuffled triples take {files[over_sort_1000000]:.2f} times",
        "and {files[over_sort_100000]:.2f} times with n = 100,000",
        "The largest error was {files[error_1000000]:.1e} of",
        "| {kernel[share_50]:.0f} % / {kernel[share_20]:.0f} % / {kernel[share_10]:.0f} % |",
        "| {kernel[batches_50]:.1f} / {kernel[batches_20]:.1f} / {kernel[batches_10]:.1f} times as fast |",
        "| {kernel[lstsq_50]:.0f} / {kernel[lstsq_20]:.0f} / {kernel[lstsq_10]:.0f} times as fast |",
        "| {trillion[processor]:.1f} processor seconds after the drawing, peak {trillion[gigabytes]:.1f} GB |",
    ],
    "docs/cluster.md": [
        *(f"| {n:,} | {size} million | " + _CLUSTER.replace("N", str(n)) for n, size in _SIZES.items()),
        "| {dask[workers_1000000]:.1f} |",
    ],
    "docs/plan_measurements.md": ["leave {select_rows[Gaussian_1000_x_20_40]:.2f} of the squared error of random ones"],
}


def figures_in(path: Path) -> dict[str, dict[str, float]]:
    """Key figures by benchmark and name."""
    return {name: found["figures"] for name, found in json.loads(path.read_text()).items()}


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks all", description=__doc__)
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="the file of figures, kept up to date")
    parser.add_argument("--data", metavar="DIR", help="folder with .npz files, for " + " and ".join(NEED_DATA))
    parser.add_argument("--only", nargs="+", choices=[*RECORDED, *NEED_DATA], help="only these benchmarks")
    options = parser.parse_args(arguments)
    missed = []
    for name in options.only or [*RECORDED, *NEED_DATA]:
        if name in NEED_DATA and options.data is None:
            print(f"{name}: figures stay as they are, because --data is not given", flush=True)
            continue
        more = [*OPTIONS.get(name, []), *(["--data", options.data] if name in NEED_DATA else [])]
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", "benchmarks", name, *more, "--json", str(options.json)]
        if subprocess.run(command).returncode:
            missed.append(name)
    print("\n" + (f"Failed, or figures missed: {', '.join(missed)}" if missed else "All figures reached."))
    return 1 if missed else 0
