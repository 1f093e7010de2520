"""`colonnade demo`: a photograph completed."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ._lines import say
from ._options import FILE, force_option, seed_option


@click.command()
@click.option(
    "--out",
    "-o",
    type=FILE,
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
@seed_option("Random seed for choosing columns and pixels.")
@force_option("the picture")
def command(out: Path, columns: int | None, share: float | None, seed: int, force: bool) -> None:
    """Fill a photograph from some of its columns and a few of its other pixels.

    Example: colonnade demo --out picture.png
    """
    from ..demo import complete_photograph

    given: dict = {"n_full_columns": columns, "share": share}
    arguments = {name: value for name, value in given.items() if value is not None}
    if os.path.lexists(out) and not force:
        raise click.UsageError(f"{out} exists; choose another name with --out, or replace it with --force")
    for line in complete_photograph(out, seed=seed, **arguments):
        say(line)
