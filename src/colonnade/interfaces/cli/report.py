"""`colonnade report`: a result as a page to read."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ._lines import say
from ._options import FILE, PAGES, Place, check_output, force_option, json_option, located, progress, storage_option


@click.command()
@click.argument("result", type=Place())
@click.option(
    "--output",
    "-o",
    type=FILE,
    help="HTML file to write. Default: RESULT.html, beside the result.",
)
@json_option("the summary of the result")
@force_option("the report")
@storage_option
def command(result: Path, output: Path | None, as_json: bool, force: bool) -> None:
    """Write an HTML report of a result: verdict, pictures, and what to do next.

    Example: colonnade report table-completed

    RESULT is a folder that `colonnade complete -o FOLDER` or Completion.save wrote. The report is one file that works
    offline.
    """
    from ...completion import Completion
    from ..report.page import write_report
    from ..summary import summarise

    folder = located(result)
    output = folder.with_name(f"{folder.name}.html") if output is None else output
    check_output(output, "--output", PAGES, force)
    with progress("reporting"):
        completion = Completion.load(result)
        name = completion.run.get("file") or folder.name
        write_report(completion, output, name=name, force=force)
    if as_json:
        say(json.dumps({"result": str(result), "report": str(output), **summarise(completion)}, allow_nan=False))
    else:
        say(f"Written: {output}")
