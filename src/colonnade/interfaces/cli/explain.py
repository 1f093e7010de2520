"""`colonnade explain`: explain one value of a result."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ._lines import say
from ._options import (
    PICTURES,
    Place,
    check_output,
    force_option,
    json_option,
    level_option,
    plot_option,
    progress,
    save_picture,
    storage_option,
)


@click.command()
@click.argument("result", type=Place())
@click.argument("row")
@click.argument("column")
@level_option("Probability of the interval.")
@plot_option("the contributions")
@json_option("the explanation, with all known values,")
@force_option("the picture")
@storage_option
def command(result: Path, row: str, column: str, level: float, plot: Path | None, as_json: bool, force: bool) -> None:
    """Explain a filled value: the known values of its row or column that it follows from, with their weights.

    Example: colonnade explain table-completed row7 price

    RESULT is a folder that `colonnade complete -o FOLDER` or Completion.save wrote. ROW and COLUMN are names, or
    numbers from 0. For a known value, the prediction without it is explained.
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
    """A name where there are names, else a number; a number that is no name is a place."""
    if names is not None and (text in names or not text.isdecimal()):
        return text
    if not text.isdecimal():
        raise click.UsageError(f"{what} must be a number from 0, because the result has no names there; got {text!r}")
    return int(text)


def _draw(explanation, plot: Path, force: bool) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    explanation.plot(figure.subplots())
    save_picture(figure, plot, force)
