"""`colonnade explain`: explain one value of a result."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ._lines import say
from ._options import PICTURES, Place, check_output, progress, storage_option


@click.command()
@storage_option
@click.argument("result", type=Place())
@click.argument("row")
@click.argument("column")
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Probability of the interval.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the contributions into this png, svg or pdf file. Default: no picture.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the explanation as JSON, with all known values. Default: plain text."
)
@click.option("--force", is_flag=True, help="Replace the picture if it exists. Default: stop with an error.")
def command(result: Path, row: str, column: str, level: float, plot: Path | None, as_json: bool, force: bool) -> None:
    """Explain a filled value: the known values of its column that it follows from, with their weights.

    Example: colonnade explain table-completed row7 price

    RESULT is a folder that `colonnade complete -o FOLDER` or Completion.save wrote. ROW and COLUMN are names, or
    numbers from 0 if the table has no names. For a known value, the prediction without it is explained.
    """
    from ...completion import Completion

    if plot is not None:
        check_output(plot, "--plot", PICTURES, force)
    with progress("explaining"):
        completion = Completion.load(result)
        places = _place("ROW", row, completion.row_names), _place("COLUMN", column, completion.column_names)
        explanation = completion.explain(*places, level=level)
        if plot is not None:
            _draw(explanation, plot, force)
    if as_json:
        facts = {"result": str(result), **explanation.to_dict()}
        say(json.dumps(facts | ({} if plot is None else {"plot": str(plot)}), allow_nan=False))
        return
    for line in str(explanation).splitlines():
        say(line)
    if plot is not None:
        say(f"Written: {plot}")


def _place(what: str, text: str, names):
    """A name where there are names, else a number."""
    if names is not None:
        return text
    if not text.isdecimal():
        raise click.UsageError(f"{what} must be a number from 0, because the result has no names there; got {text!r}")
    return int(text)


def _draw(explanation, plot: Path, force: bool) -> None:
    from matplotlib.figure import Figure

    from ..._support.atomic_writing import new_file

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    explanation.plot(figure.subplots())
    with new_file(plot, force=force) as working:
        figure.savefig(working, format=plot.suffix[1:].lower())
