"""`colonnade harness`: evaluate a model on a fraction of a benchmark, with the logs of lm-evaluation-harness."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from ._lines import say
from ._logs import in_words, log_options, read_answers, write_answers
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


@command.command("read")
@log_options
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="A csv or Parquet file to write.")
@click.option("--force", is_flag=True, help="Replace an output that exists.")
def read_command(inputs, tasks, metric, filter, output, force) -> None:
    """Write the logs as a table: questions as rows, models as columns.

    Example: colonnade harness read logs -o table.parquet
    """
    write_answers(inputs, tasks, metric, filter, output, force)


@command.command("select")
@log_options
@click.option("--questions", "-k", required=True, type=click.IntRange(1), help="How many.")
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="The file for --samples.")
@click.option("--force", is_flag=True, help="Replace an output that exists.")
def select_command(inputs, tasks, metric, filter, questions, output, force) -> None:
    """Choose the questions to ask a new model.

    Example: colonnade harness select logs --questions 100 -o samples.json
    """
    from ..._support.atomic_writing import refuse_existing
    from ...measuring.harness import write_samples
    from ...measuring.leaderboard import select_questions

    refuse_existing(output, force)
    observations = read_answers(inputs, tasks, metric, filter)
    with progress("choosing"):
        rows = select_questions(observations, questions)
    samples = write_samples(observations, rows, output, force=force)
    say(f"{in_words(observations)} Written: {output}")
    tasks = shlex.quote("".join(c for c in ",".join(samples) if c.isprintable()))
    say(f"Run the new model with: --tasks {tasks} --samples {shlex.quote(str(output))} --log_samples")


@command.command("score")
@log_options
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
    from ...measuring.leaderboard import scores

    observations = read_answers(inputs, tasks, metric, filter)
    with progress("completing"):
        table = scores(observations, level=level, chosen="auto" if chosen is None else chosen)
    if as_json:
        say(json.dumps(records_of(observations, table), allow_nan=False))
        return
    for line in [in_words(observations), *lines_of(observations, table, level)]:
        say(line)
    if observations.full_columns.size == table.size:
        say("Every model answered every question; there is nothing to predict.")
