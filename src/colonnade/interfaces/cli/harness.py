"""`colonnade harness`: evaluate a model on a fraction of a benchmark, with the logs of lm-evaluation-harness."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ._lines import say
from ._logs import in_words, log_options, read_answers, write_answers
from ._options import FILE, force_option, json_option, level_option, progress
from ._scores import lines_of, records_of
from .evaluate import write_harness_samples


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
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write, csv or Parquet.",
)
@force_option("the output")
def read_command(inputs, tasks, metric, filter, output, force) -> None:
    """Write the logs as a table: questions as rows, models as columns.

    Example: colonnade harness read logs -o table.parquet
    """
    write_answers(inputs, tasks, metric, filter, output, force)


@command.command("select")
@log_options
@click.option(
    "--questions",
    "-k",
    required=True,
    type=click.IntRange(1),
    help="Number of questions to draw.",
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write, for --samples.",
)
@force_option("the output")
def select_command(inputs, tasks, metric, filter, questions, output, force) -> None:
    """Draw the questions to ask a new model.

    Example: colonnade harness select logs --questions 100 -o samples.json

    Beside samples.json, samples-design.json records the design and the probabilities, for `score --questions`.
    """
    from ..._support.atomic_writing import refuse_existing
    from ...measuring.evaluation import draw
    from ...measuring.harness import samples_of

    record = output.with_name(f"{output.stem}-design.json")
    for path in (output, record):
        refuse_existing(path, force)
    observations = read_answers(inputs, tasks, metric, filter)
    with progress("drawing"):
        found = draw(observations, questions)
    samples_of(observations, found.rows)  # Names that are not the harness's are refused before anything is written.
    found.save(record, force=force)
    say(f"{in_words(observations)} Written: {output}, {record}")
    write_harness_samples(observations, found.rows, output, force)


@command.command("score", short_help="Score and rank new models.")
@log_options
@level_option("Probability with which an interval holds the score.")
@click.option(
    "--chosen/--random", default=None, help="How the questions were taken. Default: recognised from the logs."
)
@click.option("--questions", type=FILE, help="File *-design.json that `harness select` wrote. Default: no such file.")
@json_option("the scores of all models")
def score_command(inputs, tasks, metric, filter, level, chosen, questions, as_json) -> None:
    """Score and rank the models that answered only some of the questions.

    Example: colonnade harness score logs

    The score is the mean over all questions; the rank is the one among the models that answered all of them.
    `colonnade evaluate score` also has tasks, weights and a report.
    """
    from ..._support.arguments import shown
    from ...measuring.evaluation import score

    observations = read_answers(inputs, tasks, metric, filter)
    with progress("scoring"):
        design = "random" if chosen is False else "auto"
        found = score(observations, level=level, design=design, questions=questions)
    if as_json:
        say(json.dumps(records_of(observations, found.table), allow_nan=False))
        return
    for line in [in_words(observations), *lines_of(observations, found.table, level)]:
        say(line)
    for column, words in found.remarks:
        say(f"{shown(found.names[column])}: {words}.")
    if not found.new.size:
        say("Every model answered every question; there is nothing to predict.")
