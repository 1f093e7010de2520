"""`colonnade harness`: evaluate a model on a fraction of a benchmark, with the logs of lm-evaluation-harness."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from ._lines import say
from ._options import progress
from ._scores import lines_of, records_of


@click.group()
def command() -> None:
    """Evaluate a model on a fraction of a benchmark of lm-evaluation-harness.

    \b
    Example:
      lm-eval run --model ... --tasks T --log_samples --output_path logs     (some models, all questions)
      colonnade harness select logs --questions 100 -o samples.json
      lm-eval run --model ... --tasks T --log_samples --output_path logs --samples samples.json
      colonnade harness score logs
    """


def _source(function):
    """Where the answers are, and which of them are read."""
    for option in (
        click.option("--filter", help="Which filter of the logs; unless told, of every task the first."),
        click.option("--metric", help="Which metric of the logs; unless told, of every task the first."),
        click.option("--task", "tasks", multiple=True, help="Only this task of the logs; may be given several times."),
    ):
        function = option(function)
    return click.argument("inputs", metavar="LOGS...", nargs=-1, required=True, type=click.Path(path_type=Path))(
        function
    )


def _read(inputs, tasks, metric, filter):
    """Folders are logs; a single file is a table, questions as rows."""
    from ..files import read
    from ..harness import read_logs

    with progress("reading"):
        if len(inputs) > 1 or inputs[0].is_dir():
            return read_logs(inputs, metric=metric, filter=filter, tasks=tasks or None)
        if tasks or metric or filter:
            raise click.UsageError(f"--task, --metric and --filter are for folders of logs; {inputs[0]} is no folder")
        return read(inputs[0])


@command.command("read")
@_source
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="A csv or Parquet file to write.")
@click.option("--force", is_flag=True, help="Replace an output that exists.")
def read_command(inputs, tasks, metric, filter, output, force) -> None:
    """Write the logs as a table: questions as rows, models as columns.

    Example: colonnade harness read logs -o table.parquet
    """
    from .._writing import refuse_existing
    from ..files import write_observed

    refuse_existing(output, force)
    observations = _read(inputs, tasks, metric, filter)
    write_observed(observations, output, force=force)
    say(f"{_in_words(observations)} Written: {output}")


@command.command("select")
@_source
@click.option("--questions", "-k", required=True, type=click.IntRange(1), help="How many.")
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="The file for --samples.")
@click.option("--force", is_flag=True, help="Replace an output that exists.")
def select_command(inputs, tasks, metric, filter, questions, output, force) -> None:
    """Choose the questions to ask a new model.

    Example: colonnade harness select logs --questions 100 -o samples.json
    """
    from .._writing import refuse_existing
    from ..harness import write_samples
    from ..leaderboard import select_questions

    refuse_existing(output, force)
    observations = _read(inputs, tasks, metric, filter)
    with progress("choosing"):
        rows = select_questions(observations, questions)
    samples = write_samples(observations, rows, output, force=force)
    say(f"{_in_words(observations)} Written: {output}")
    tasks = shlex.quote("".join(c for c in ",".join(samples) if c.isprintable()))
    say(f"Run the new model with: --tasks {tasks} --samples {shlex.quote(str(output))} --log_samples")


@command.command("score")
@_source
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Of the intervals.",
)
@click.option("--chosen/--random", default=None, help="How the questions were taken; found out unless told.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores of all models as JSON.")
def score_command(inputs, tasks, metric, filter, level, chosen, as_json) -> None:
    """Predict score and rank of the models that answered only some of the questions.

    Example: colonnade harness score logs

    The score is the mean over all questions; the rank is the one among the models that answered all of them.
    """
    from ..leaderboard import scores

    observations = _read(inputs, tasks, metric, filter)
    with progress("completing"):
        table = scores(observations, level=level, chosen="auto" if chosen is None else chosen)
    if as_json:
        say(json.dumps(records_of(observations, table), allow_nan=False))
        return
    for line in [_in_words(observations), *lines_of(observations, table, level)]:
        say(line)
    if observations.full_columns.size == table.size:
        say("Every model answered every question; there is nothing to predict.")


def _in_words(o) -> str:
    return f"{o.shape[0]:,} questions; {o.shape[1]:,} models, of which {o.full_columns.size:,} answered all."
