"""All benchmarks whose figures README and docs quote, one after the other; their key figures go into one file.

The file of the project is ``benchmarks/figures.json``. `QUOTES` has the places that quote it, and a test compares them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

RECORDED = "kernel", "column_space", "select_rows", "noisy", "rivals", "trillion", "files", "blocks", "dask"
NEED_DATA = "real", "gaps"  # Without --data their figures stay in the file as they are.
OPTIONS = {
    "dask": ["--only-client", "--sizes", "10000", "100000", "1000000"],
    "noisy": ["--seeds", "1"],
    "rivals": ["--size", "600"],
}
QUICK = {  # Smaller problems for --quick; pages quote none of them.
    "kernel": ["--rounds", "1", "--columns", "5000"],
    "noisy": ["--seeds", "1", "--size", "800", "--noise", "1"],
    "rivals": ["--size", "150"],
    "trillion": ["--size", "100000"],
    "files": ["--sizes", "100000"],
    "blocks": ["--sizes", "20000"],
    "dask": ["--only-client", "--sizes", "10000"],
}

# Pages quote these benchmarks, and their figures were not recorded yet; a test keeps the list true.
UNRECORDED = {
    "ablation": "not run since the file is kept",
    "coverage": "needs the real matrices",
    "evaluation": "needs the real matrices",
    "gaps": "needs the real matrices",
    "learners": "needs the real matrices",
    "mutants": "the page states an aim and quotes no figure",
    "real": "needs the real matrices",
}

EXACT = 1e-13  # Largest relative error that tables call exact.
_PROBLEMS = "exact", "noisy", "coherent", "spiked columns"  # Of the table of all methods.
_METHODS = (
    *("complete (auto)", "algorithm1", "als (auto)", "als, rank given", "optspace (auto)", "optspace, rank given"),
    *("soft_impute (auto)", "svt", "tall_project", "nystrom", "cur_plus", "adaptive_completion"),
    *("lifelong_completion", "active_columns, norm", "active_columns, leverage", "active_columns, residual"),
    *("entrywise_subsampling", "norm_sampling", "adaptive_column_sampling", "cmfrec, tuned", "dense SoftImpute loop"),
)
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
        "| {kernel_avx2[share_50]:.0f} % / {kernel_avx2[share_20]:.0f} % / {kernel_avx2[share_10]:.0f} %;"
        " {kernel_avx2[batches_50]:.1f} / {kernel_avx2[batches_20]:.1f} / {kernel_avx2[batches_10]:.1f} times |",
        "| {trillion[processor]:.1f} processor seconds after the drawing, peak {trillion[gigabytes]:.1f} GB |",
        "| {column_space[times_10000_noisy]:.0f} times as fast |",
        *(
            f"n = {n:,} | {size} million | {{blocks[processor_{n}]:.0f}} s | {{blocks[gigabytes_{n}]:.1f}} GB |"
            f" {{blocks[ratio_{n}]:.2f}} | {{blocks[coverage_{n}]:percent}} |"
            for n, size in ((100_000, 4), (1_000_000, 40))
        ),
    ],
    "docs/cluster.md": [
        *(f"| {n:,} | {size} million | " + _CLUSTER.replace("N", str(n)) for n, size in _SIZES.items()),
        "| {dask[workers_1000000]:.1f} |",
    ],
    "docs/comparison.md": [
        *(
            f"| {std} | {{noisy[complete, noise {std}]:.3f}} | {{noisy[plain, noise {std}]:.2f}} |"
            for std in ("0.1", "1")
        ),
        *(
            f"| {name} | "
            + " | ".join(f"{{rivals[{name}; {problem}; error]:error}}" for problem in _PROBLEMS)
            + f" | {{rivals[{name}; noisy; processor]:.2g}} |"
            for name in _METHODS
        ),
    ],
    "docs/plan_measurements.md": ["leave {select_rows[Gaussian_1000_x_20_40]:.2f} of the squared error of random ones"],
}


class Figure(float):
    """A number with two more ways to write it: as a share in percent, and as a relative error."""

    def __format__(self, form: str) -> str:
        if form == "percent":
            return f"{100 * float(self):.0f} %"
        if form == "error":
            return "exact" if self < EXACT else f"{float(self):{'.0e' if self < 1e-3 else '.2g'}}"
        return super().__format__(form)


def figures_in(path: Path) -> dict[str, dict[str, Figure]]:
    """Key figures by benchmark and name."""
    content = json.loads(path.read_text())
    return {name: {key: Figure(value) for key, value in found["figures"].items()} for name, found in content.items()}


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks all", description=__doc__)
    parser.add_argument("--json", type=Path, required=True, metavar="FILE", help="the file of figures, kept up to date")
    parser.add_argument("--data", metavar="DIR", help="folder with .npz files, for " + " and ".join(NEED_DATA))
    parser.add_argument("--only", nargs="+", choices=[*RECORDED, *NEED_DATA], help="only these benchmarks")
    parser.add_argument("--quick", action="store_true", help="smaller problems, to see that all benchmarks run")
    options = parser.parse_args(arguments)
    if options.quick and options.json.exists():
        parser.error(f"--quick writes figures that no page quotes: {options.json} exists, so name another file")
    missed, sizes = [], OPTIONS | QUICK if options.quick else OPTIONS
    for name in options.only or [*RECORDED, *NEED_DATA]:
        if name in NEED_DATA and options.data is None:
            print(f"{name}: figures stay as they are, because --data is not given", flush=True)
            continue
        more = [*sizes.get(name, []), *(["--data", options.data] if name in NEED_DATA else [])]
        print(f"\n== {name}", flush=True)
        command = [sys.executable, "-m", "benchmarks", name, *more, "--json", str(options.json)]
        if subprocess.run(command).returncode:
            missed.append(name)
    print("\n" + (f"Failed, or figures missed: {', '.join(missed)}" if missed else "All figures reached."))
    return 1 if missed else 0
