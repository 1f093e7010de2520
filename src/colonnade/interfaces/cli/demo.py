"""`colonnade demo`: a photograph completed."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ._lines import say


@click.command()
@click.option(
    "--out",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default="colonnade-demo.png",
    show_default=True,
    help="Picture to write.",
)
@click.option(
    "--columns",
    type=click.IntRange(1),
    default=None,
    help="Number of columns that are kept in full. Default: 128.",
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=None,
    help="Share of the other pixels that is kept. Default: 0.2.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed for choosing columns and pixels."
)
@click.option("--force", is_flag=True, help="Replace the picture if it exists. Default: stop with an error.")
def command(out: Path, columns: int | None, share: float | None, seed: int, force: bool) -> None:
    """Fill a photograph from some of its columns and a few of its other pixels.

    Example: colonnade demo --out picture.png
    """
    from ..demo import complete_photograph

    arguments = {name: value for name, value in (("n_full_columns", columns), ("share", share)) if value is not None}
    if os.path.lexists(out) and not force:
        raise click.UsageError(f"{out} exists; choose another name with --out, or replace it with --force")
    for line in complete_photograph(out, seed=seed, **arguments):
        say(line)
