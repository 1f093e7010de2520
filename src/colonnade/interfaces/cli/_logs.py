"""Answers to questions on the command line: which logs are read, and how they become a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from ..._support.printable import counted
from ._lines import say
from ._options import FILE, progress


@dataclass(frozen=True)
class Answered:
    """Observations, questions by models, and the task of every question, or None if the names do not tell it."""

    observations: object
    tasks: list | None


def log_options(function):
    """Where the answers are, and which of them are read; `read_answers` takes them."""
    for option in (
        click.option("--filter", help="Filter of lm-evaluation-harness to read. Default: the first of every task."),
        click.option("--metric", help="Metric or scorer to read. Default: the first of every task that is a number."),
        click.option("--task", "tasks", multiple=True, help="Task of the logs to read. Can be repeated. Default: all."),
    ):
        function = option(function)
    path = click.Path(path_type=Path)
    return click.argument("inputs", metavar="LOGS...", nargs=-1, required=True, type=path)(function)


def repeats_option(function):
    """Numbers of attempts, for tables."""
    help = "Table like that of the answers, with the number of attempts behind each answer. Default: one attempt each."
    return click.option("--repeats", type=FILE, help=help)(function)


def read_answers(inputs, tasks, metric, filter):
    """Observations, questions by models: from logs, or from a single file that is a table."""
    return read_answered(inputs, tasks, metric, filter).observations


def read_answered(inputs, tasks, metric, filter, repeats: Path | None = None) -> Answered:
    """The same with the tasks of the questions, and with the numbers of attempts from a file."""
    from ...files import read
    from ...measuring.evaluation.logs import is_log, read_logs

    with progress("reading"):
        if len(inputs) == 1 and inputs[0].is_file() and not is_log(inputs[0]):
            if tasks or metric or filter:
                raise click.UsageError(f"--task, --metric and --filter are for logs; {inputs[0]} is a table")
            table = read(inputs[0])
            return Answered(table if repeats is None else _weighted(table, read(repeats), repeats), _tasks_of(table))
        if repeats is not None:
            raise click.UsageError("--repeats is for a table; logs hold their repeats")
        found = read_logs(inputs, metric=metric, filter=filter, tasks=tasks or None)
    for note in found.notes:
        say(f"Note: {note}.", error=True)
    return Answered(found.observations, list(found.tasks))


def _tasks_of(o) -> list | None:
    """What stands before the last slash of the names of questions; None if a name has none."""
    if o.row_names is None:
        return None
    parts = [str(name).rpartition("/") for name in o.row_names]
    return [task for task, _, _ in parts] if all(slash for _, slash, _ in parts) else None


def _weighted(o, counts, path: Path):
    """Answers with numbers of attempts as weights."""
    from ...data.observations import Observations

    if counts.shape != o.shape or not ((counts.rows == o.rows).all() and (counts.indptr == o.indptr).all()):
        raise ValueError(f"{path} must have a number of attempts where the table has an answer, and nowhere else")
    names = {"row_names": o.row_names, "column_names": o.column_names}
    return Observations.from_triplets(o.rows, o.entry_columns, o.values, o.shape, weights=counts.values, **names)


def write_answers(inputs, tasks, metric, filter, output: Path, force: bool) -> None:
    """Write the table, and beside it the numbers of repeats if some answers are means of several."""
    from ..._support.atomic_writing import refuse_existing
    from ...files import write_observed

    weights = output.with_name(f"{output.stem}-weights{output.suffix}")
    refuse_existing(output, force)
    observations = read_answers(inputs, tasks, metric, filter)
    written = [str(output)]
    if observations.weights is not None:
        refuse_existing(weights, force)
        write_observed(_repeats(observations), weights, force=force)
        written.append(f"{weights} (repeats)")
    write_observed(observations, output, force=force)
    say(f"{in_words(observations)} Written: {', '.join(written)}")


def _repeats(o):
    from ...data.observations import Observations

    names = {"row_names": o.row_names, "column_names": o.column_names}
    return Observations.from_triplets(o.rows, o.entry_columns, o.weights, o.shape, **names)


def in_words(o) -> str:
    """How many questions and models there are."""
    models, questions = counted(o.shape[1], "model"), counted(o.shape[0], "question")
    return f"{questions}; {models}; {o.full_columns.size:,} of them answered all."
