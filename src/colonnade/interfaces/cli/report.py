"""`colonnade report`: a result as a page to read."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ._lines import say
from ._options import PAGES, Place, check_output, located, progress, storage_option


@click.command()
@storage_option
@click.argument("result", type=Place())
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="HTML file to write. Default: RESULT.html, beside the result.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary of the result as JSON. Default: plain text.")
@click.option("--force", is_flag=True, help="Replace the report if it exists. Default: stop with an error.")
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
