"""`colonnade reproduce`: the experiments of the paper."""

from __future__ import annotations

from pathlib import Path

import click

from ._lines import say


@click.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice(["figure1", "figure2", "theory", "all"]))
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default="reproduction",
    show_default=True,
    help="Folder for the results.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Use small sizes that take seconds. Default: the sizes of the paper, about 15 minutes.",
)
@click.option(
    "--resume", is_flag=True, help="Continue an interrupted run; the results are identical. Default: start anew."
)
@click.option("--force", is_flag=True, help="Replace results of other settings. Default: stop with an error.")
def command(names: tuple[str, ...], out: Path, quick: bool, resume: bool, force: bool) -> None:
    """Rerun the experiments of the paper and check its claims.

    Example: colonnade reproduce all --quick --out reproduction
    """
    from ... import experiments

    verdicts = experiments.reproduce(names, out, quick=quick, resume=resume, force=force, progress=experiments.Lines())
    for line in experiments.verdict_lines(verdicts):
        say(line)
    say(f"Tables, facts and figures are in {out}")
