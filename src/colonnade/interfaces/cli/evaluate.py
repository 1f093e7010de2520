"""`colonnade evaluate`: models on a fraction of a benchmark, from the logs of any evaluation tool."""

from __future__ import annotations

from pathlib import Path

import click

from ._logs import log_options, write_answers


@click.group()
def command() -> None:
    """Evaluate models on a fraction of a benchmark.

    Example: colonnade evaluate read logs -o table.csv

    Logs are samples_TASK_DATE.jsonl of lm-evaluation-harness, .eval and .json of Inspect, per_instance_stats.json of
    HELM, and the instance-level .jsonl of Every Eval Ever; folders are searched at any depth.
    """


@command.command("read")
@log_options
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="A csv or Parquet file to write.")
@click.option("--force", is_flag=True, help="Replace an output that exists.")
def read_command(inputs, tasks, metric, filter, output, force) -> None:
    """Write logs as a table: questions as rows, models as columns.

    Example: colonnade evaluate read logs -o table.csv

    If answers are means of several repeats, their numbers are written to table-weights.csv.
    """
    write_answers(inputs, tasks, metric, filter, output, force)
