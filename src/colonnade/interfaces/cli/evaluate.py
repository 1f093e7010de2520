"""`colonnade evaluate`: models on a fraction of a benchmark, from the logs of any evaluation tool."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path

import click

from ..._support.printable import counted
from ._lines import say
from ._logs import in_words, log_options, read_answered, repeats_option, write_answers
from ._options import FILE, PAGES, check_output, force_option, json_option, level_option, progress, seed_option
from ._scores import lines_of, record_of_scores, task_lines_of

_level = level_option("Probability with which an interval holds the score.")
_questions = click.option(
    "--questions",
    type=FILE,
    help="File that `evaluate select` wrote, for models that were asked these questions. Default: no such file; the"
    " questions count as drawn at random.",
)


def average_options(function):
    """How questions and tasks are averaged; `_averaged` takes them."""
    for option in (
        click.option(
            "--task-weight",
            "weights",
            metavar="TASK=WEIGHT",
            multiple=True,
            help="Weight of a task in the score. Give one for every task. Default: as --average says.",
        ),
        click.option(
            "--average",
            type=click.Choice(["micro", "macro"]),
            default="micro",
            show_default=True,
            help="What the score is: micro, the mean over all questions, or macro, the mean over tasks.",
        ),
    ):
        function = option(function)
    return function


def _averaged(tasks: list | None, average: str, weights) -> dict:
    """groups and task_weights of `score`."""
    if tasks is None:
        if average != "micro" or weights:
            raise click.UsageError("the table does not name tasks: call its questions task/question")
        return {}
    given = {}
    for one in weights:
        name, _, number = one.rpartition("=")
        try:
            given[name] = float(number)
        except ValueError:
            raise click.UsageError(f"--task-weight {one} is not of the form TASK=WEIGHT") from None
    return {"groups": tasks, "task_weights": given or average}


@click.group()
def command() -> None:
    """Evaluate models on a fraction of a benchmark.

    \b
    Example:
      colonnade evaluate plan logs --half-width 0.02
      colonnade evaluate select logs --questions 100 -o questions.json
      (ask the new model these questions, and put its log beside the others)
      colonnade evaluate score logs --questions questions.json --report page.html
      colonnade evaluate compare logs NEW OLD --questions questions.json

    Logs are samples_TASK_DATE.jsonl of lm-evaluation-harness, .eval and .json of Inspect, per_instance_stats.json of
    HELM, and the instance-level .jsonl of Every Eval Ever; folders are searched at any depth. A csv or Parquet table,
    questions as rows and models as columns, can stand in place of logs.
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
    """Write logs as a table: questions as rows, models as columns.

    Example: colonnade evaluate read logs -o table.csv

    If answers are means of several repeats, their numbers are written to table-weights.csv.
    """
    write_answers(inputs, tasks, metric, filter, output, force)


@command.command("plan", short_help="Say how many questions to ask.")
@log_options
@repeats_option
@click.option(
    "--half-width",
    type=click.FloatRange(0, min_open=True),
    default=0.02,
    show_default=True,
    help="Wanted half width of the interval, in the unit of the answers: 0.02 is 2 points.",
)
@click.option(
    "--cost",
    type=FILE,
    help="Table with the cost of every question, in their order, csv or Parquet. Default: all cost the same.",
)
@_level
@json_option("the result")
def plan_command(inputs, tasks, metric, filter, repeats, half_width, cost, level, as_json) -> None:
    """Say how many questions a new model must be asked, before any is asked.

    Example: colonnade evaluate plan logs --half-width 0.02 --cost costs.csv
    """
    from ...measuring.evaluation import plan

    o = read_answered(inputs, tasks, metric, filter, repeats).observations
    with progress("planning"):
        found = plan(o, half_width, level=level, cost=_costs(cost, o))
    if as_json:
        say(json.dumps({name: getattr(value, "tolist", lambda v=value: v)() for name, value in vars(found).items()}))
        return
    say(in_words(o))
    say(str(found))
    for k, like, beyond in zip(found.questions, found.like_known, found.beyond):
        say(f"{k:,} questions: +-{like:.4f} for a model like the known ones, +-{beyond:.4f} for one beyond them.")


def _costs(path: Path | None, o):
    """Costs in the order of the questions; a file with names of questions may have another order."""
    from ...files import read

    if path is None:
        return None
    table = read(path)
    if table.shape != (o.shape[0], 1) or table.values.size != o.shape[0]:
        raise ValueError(f"{path} must have one column of numbers with {o.shape[0]:,} costs, one per question")
    costs = table.to_dense()[:, 0]
    if table.row_names is None or o.row_names is None:
        return costs
    place = {str(name): i for i, name in enumerate(table.row_names)}
    missing = [str(name) for name in o.row_names if str(name) not in place]
    if missing:
        raise ValueError(f"{path} has no cost of the question {missing[0]}")
    return costs[[place[str(name)] for name in o.row_names]]


@command.command("select")
@log_options
@repeats_option
@click.option(
    "--questions",
    "-k",
    required=True,
    type=click.IntRange(1),
    help="Number of questions to draw.",
)
@click.option(
    "--design",
    type=click.Choice(["balanced", "random", "chosen"]),
    default="balanced",
    show_default=True,
    help="How to draw: balanced spreads the random draw over difficulty and skills, and random does not. chosen takes"
    " the most telling questions. Use chosen only for models like the known ones.",
)
@average_options
@click.option(
    "--cost",
    type=FILE,
    help="Costs of the questions as in `plan`. Cheaper ones are drawn more often. Default: all cost the same.",
)
@seed_option("Random seed of the draw.")
@click.option(
    "--output",
    "-o",
    required=True,
    type=FILE,
    help="File of questions to write, for `score`.",
)
@click.option(
    "--samples", type=FILE, help="Write also this file for --samples of lm-evaluation-harness. Default: no such file."
)
@force_option("the output")
def select_command(
    inputs, tasks, metric, filter, repeats, questions, design, average, weights, cost, seed, output, samples, force
) -> None:
    """Draw the questions to ask a new model.

    Example: colonnade evaluate select logs --questions 100 -o questions.json

    The file records the questions, the design, and the probability with which each question was drawn.
    """
    from ..._support.atomic_writing import refuse_existing
    from ...measuring.evaluation import draw

    for path in (output, samples):
        if path is not None:
            refuse_existing(path, force)
    answered = read_answered(inputs, tasks, metric, filter, repeats)
    o, averaged = answered.observations, _averaged(answered.tasks, average, weights)
    with progress("drawing"):
        found = draw(o, questions, design=design, cost=_costs(cost, o), random_state=seed, **averaged)
    found.save(output, force=force)
    taken = "chosen" if design == "chosen" else "drawn"
    say(f"{in_words(o)} {counted(found.rows.size, 'question')} {taken}. Written: {output}")
    if samples is not None:
        write_harness_samples(o, found.rows, samples, force)


def write_harness_samples(o, rows, path: Path, force: bool) -> None:
    """Write the file for --samples and say how to use it."""
    from ...measuring.harness import write_samples

    names = shlex.quote("".join(c for c in ",".join(write_samples(o, rows, path, force=force)) if c.isprintable()))
    say(f"Run the new model with: --tasks {names} --samples {shlex.quote(str(path))} --log_samples")


@command.command("score")
@log_options
@repeats_option
@_questions
@average_options
@click.option("--by-task", is_flag=True, help="Print the score in every task, too. Default: only over all tasks.")
@_level
@click.option("--report", type=FILE, help="Write a page with the leaderboard to this .html file. Default: no page.")
@json_option("the result")
@force_option("the output")
def score_command(
    inputs, tasks, metric, filter, repeats, questions, average, weights, by_task, level, report, as_json, force
) -> None:
    """Score the models that answered only some of the questions.

    Example: colonnade evaluate score logs --questions questions.json --report page.html

    The rank is the one among the models that answered all questions.
    """
    from ...measuring.evaluation import score

    if report is not None:
        check_output(report, "--report", PAGES, force)
    answered = read_answered(inputs, tasks, metric, filter, repeats)
    o, averaged = answered.observations, _averaged(answered.tasks, average, weights)
    with progress("scoring"):
        found = score(o, level=level, questions=questions, **averaged)
    if report is not None:
        from ..report.evaluation_page import write_evaluation_report

        write_evaluation_report(found, report, command=shlex.join(["colonnade", *sys.argv[1:]]), force=force)
    if as_json:
        say(json.dumps(record_of_scores(found), allow_nan=False))
        return
    for line in [in_words(o), *lines_of(o, found.table, level), *_remarks(found, questions)]:
        say(line)
    if by_task:
        for line in task_lines_of(found):
            say(line)
    if report is not None:
        say(f"Written: {report}")


def _remarks(found, questions):
    from ..._support.arguments import shown

    for column, words in found.remarks:
        yield f"{shown(found.names[column])}: {words}."
    if not found.new.size:
        yield "Every model answered every question; there is nothing to predict."
    elif questions is None:
        yield "Note: without --questions FILE the questions of every task count as drawn at random."


@command.command("compare", short_help="Say whether one model is better than another.")
@log_options
@click.argument("a")
@click.argument("b")
@repeats_option
@_questions
@average_options
@click.option(
    "--drop",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Print also P(A is worse than B by more than this).",
)
@_level
@json_option("the result")
def compare_command(
    inputs, a, b, tasks, metric, filter, repeats, questions, average, weights, drop, level, as_json
) -> None:
    """Say by how much model A is better than model B, how sure that is, and how many more questions decide it.

    Example: colonnade evaluate compare logs NEW OLD --drop 0.01

    A and B are names of models. Questions that both answered are compared in pairs.
    """
    from ...measuring.evaluation import compare

    answered = read_answered(inputs, tasks, metric, filter, repeats)
    averaged = _averaged(answered.tasks, average, weights)
    with progress("comparing"):
        found = compare(answered.observations, a, b, level=level, questions=questions, **averaged)
    if as_json:
        chance = {"a_beats_b": found.a_beats_b, "drop": drop, "probability_of_drop": found.probability_of_drop(drop)}
        freedom = {"freedom": found.freedom if math.isfinite(found.freedom) else None}  # JSON has no infinity.
        say(json.dumps(vars(found) | freedom | chance, allow_nan=False))
        return
    say(str(found))
    if drop:
        say(f"P({a} is worse than {b} by more than {drop:g}) = {found.probability_of_drop(drop):.2f}.")
