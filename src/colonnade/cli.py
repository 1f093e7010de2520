"""The command line: a thin layer of words over the library."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from . import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="colonnade")
def cli() -> None:
    """Complete a matrix of which some columns are known in full and the rest at a few entries each.

    Example: colonnade demo
    """


@cli.command()
@click.option(
    "--out", "-o", type=click.Path(dir_okay=False, path_type=Path), default="colonnade-demo.png", show_default=True
)
@click.option("--columns", type=click.IntRange(1), default=None, help="Columns that are kept in full.")
@click.option(
    "--share", type=click.FloatRange(0, 1, min_open=True), default=None, help="Share of the other pixels kept."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--force", is_flag=True, help="Replace the picture if it exists.")
def demo(out: Path, columns: int | None, share: float | None, seed: int, force: bool) -> None:
    """Complete a photograph from some of its columns and a few of its other pixels.

    Example: colonnade demo --out picture.png
    """
    from .demo import complete_photograph

    arguments = {name: value for name, value in (("n_full_columns", columns), ("share", share)) if value is not None}
    if out.exists() and not force:
        raise click.UsageError(f"{out} exists; choose another name with --out, or replace it with --force")
    for line in complete_photograph(out, seed=seed, **arguments):
        click.echo(line)


@cli.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice(["figure1", "figure2", "theory", "all"]))
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), default="reproduction", show_default=True, help="Folder of results."
)
@click.option("--quick", is_flag=True, help="Small sizes that take seconds; the paper's take about 15 minutes.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run; the results are the same bytes.")
@click.option("--force", is_flag=True, help="Replace results of other settings.")
def reproduce(names: tuple[str, ...], out: Path, quick: bool, resume: bool, force: bool) -> None:
    """Rerun the experiments of the paper and say whether its claims hold.

    Example: colonnade reproduce all --quick --out reproduction
    """
    from . import experiments

    verdicts = experiments.reproduce(names, out, quick=quick, resume=resume, force=force, progress=experiments.Lines())
    for line in experiments.verdict_lines(verdicts):
        click.echo(line)
    click.echo(f"Tables, facts and figures are in {out}")


def run() -> None:
    """The command line with its exit codes: 2 usage, 3 bad data, 5 files, 130 interrupted; an error is one line."""
    try:
        cli(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        _say(error.format_message())
        sys.exit(2)
    except OSError as error:
        _say(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
        sys.exit(5)
    except (ValueError, TypeError) as error:
        _say(str(error))
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)


def _say(message: str) -> None:
    click.echo(f"Error: {message}", err=True)
