"""``python -m benchmarks NAME [options]``."""

import importlib
import sys

NAMES = {
    "all": "every benchmark that README and docs quote; key figures into one file",
    "kernel": "solve_columns against the machine's matrix product and two NumPy ways",
    "trillion": "a million by a million matrix of rank 20 from 140 million entries",
    "column_space": "fit_column_space for tall and for wide A, against LAPACK's SVD",
    "real": "complete(M) on a folder of real matrices, against other imputers: errors, times, intervals",
    "learners": "the choice of complete(M) between full columns and all entries, over full columns alone",
    "gaps": "complete(M) on tables without a complete column, against other imputers: errors, times, intervals",
    "coverage": "how often hidden entries lie inside their intervals: overall, by width, by value, by row and column",
    "evaluation": "scores of new models from few questions, on a folder of real benchmarks, against averaging and AIPW",
    "ablation": "the model with each of its constants changed: error over the error as it is",
    "noisy": "complete(M) on noisy data of low rank, against converged alternating least squares",
    "estimators": "new samples filled by the imputers, against a least-squares solve for each",
    "dask": "the same triples by the local engine and by 1 and 2 workers of a Dask cluster",
    "select_rows": "which rows to measure: against random rows and python-sensors",
    "files": "triples in Parquet files to a completion on the disk, against DuckDB's sort of them",
    "blocks": "triples without a complete column to a completion on the disk, against the best possible error",
    "acquire": "measuring under a budget: against Algorithm 1 with the best fixed numbers",
    "mutants": "small faults put into the package at random: the share that the tests notice",
    "growth": "processor time of every public function as the number of columns grows",
    "random_tables": "random small tables through every public function: nothing but answers and refusals",
    "rivals": "all methods on the same problems: error and time, beside cmfrec and a dense SoftImpute",
    "torture": "kill -9 of the command line and of workers at random moments: equal bytes, and nothing left behind",
}


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        print(
            "usage: python -m benchmarks NAME\n" + "\n".join(f"  {name:14} {what}" for name, what in NAMES.items()),
            file=sys.stderr,
        )
        return 2
    return importlib.import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
