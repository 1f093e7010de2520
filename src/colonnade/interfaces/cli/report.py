"""`colonnade report`: a result as a page to read."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ._lines import say
from ._options import progress


@click.command()
@click.argument("result", type=click.Path(path_type=Path))
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

    folder = result.resolve() if result.name in ("", "..") else result
    output = folder.with_name(f"{folder.name}.html") if output is None else output
    check_report(output, force)
    with progress("reporting"):
        completion = Completion.load(result)
        name = completion.run.get("file") or folder.name
        write_report(completion, output, name=name, force=force)
    if as_json:
        say(json.dumps({"result": str(result), "report": str(output), **summarise(completion)}, allow_nan=False))
    else:
        say(f"Written: {output}")


def check_report(output: Path, force: bool) -> None:
    """Say before any work is done that a report cannot be written."""
    from ..._support.atomic_writing import refuse_existing

    if output.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"{output} must end in .html")
    if output.exists() and not force:
        raise click.UsageError(f"{output} exists; choose another name, or replace it with --force")
    refuse_existing(output, force)
