"""Logs of evaluations on the command line: which are read, and how they become a file."""

from __future__ import annotations

from pathlib import Path

import click

from ._lines import say
from ._options import progress


def log_options(function):
    """Where the answers are, and which of them are read; `read_answers` takes them."""
    for option in (
        click.option("--filter", help="Which filter of lm-evaluation-harness. Default: for every task the first."),
        click.option("--metric", help="Which metric or scorer. Default: for every task the first that is a number."),
        click.option("--task", "tasks", multiple=True, help="Only this task of the logs; may be given several times."),
    ):
        function = option(function)
    path = click.Path(path_type=Path)
    return click.argument("inputs", metavar="LOGS...", nargs=-1, required=True, type=path)(function)


def read_answers(inputs, tasks, metric, filter):
    """Observations, questions by models: from logs, or from a single file that is a table."""
    from ...files import read
    from ...measuring.evaluation.logs import is_log, read_logs

    with progress("reading"):
        if len(inputs) == 1 and inputs[0].is_file() and not is_log(inputs[0]):
            if tasks or metric or filter:
                raise click.UsageError(f"--task, --metric and --filter are for logs; {inputs[0]} is a table")
            return read(inputs[0])
        table = read_logs(inputs, metric=metric, filter=filter, tasks=tasks or None)
    for note in table.notes:
        say(f"Note: {note}.", error=True)
    return table.observations


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
    return f"{o.shape[0]:,} questions; {o.shape[1]:,} models, of which {o.full_columns.size:,} answered all."
