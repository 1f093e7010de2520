"""`colonnade compare`: methods side by side on your own data."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ._lines import say
from ._options import given_input, input_options, progress, read_input, set_aside_fact, set_aside_line

_KINDS = ".png", ".svg", ".pdf"
_AS_OPTIONS = {"complete": "--method auto", "algorithm1": "--center no --shrinkage 0 --refine 0"}
_AS_OPTIONS |= {name: f"--method {name}" for name in ("als", "soft_impute", "svt", "optspace", "tall_project")}


@click.command()
@input_options
@click.option("--methods", metavar="A,B,...", help="Names of methods, separated by commas; all that apply by default.")
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
    help="Share of the entries of every partial column that is hidden.",
)
@click.option("--rank", type=click.IntRange(1), default=None, help="The most directions; chosen by default.")
@click.option("--full-columns", type=click.IntRange(1), default=None, help="Of a file without gaps: columns to show.")
@click.option("--entries", type=click.IntRange(1), default=None, help="Of a file without gaps: entries of each other.")
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the errors to this PNG, SVG or PDF file."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For what is hidden.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--force", is_flag=True, help="Replace the picture if it exists.")
def command(inputs, methods, holdout, rank, full_columns, entries, plot, seed, as_json, force, **options) -> None:
    """Hide some known entries of a file, let several methods predict them, and say which one to use.

    Example: colonnade compare table.csv --plot errors.png

    INPUT is what `colonnade complete` takes. The method complete is what `colonnade complete` does without settings.
    Quick methods are complete, algorithm1, row_means and tall_project; algorithm1 and tall_project need full columns.
    Those that iterate over all entries are slow, minutes for millions of them: als, soft_impute, optspace, svt.

    Errors are also given in standard deviations of the rows, so that the units of the rows do not count. The last line
    is the command that fills the file by the best method.

    Of a file without gaps, --full-columns and --entries say how much the methods may read of it, and these choose what
    they read: acquire, nystrom, nystrom_r, cur_plus, adaptive_completion, lifelong_completion, active_columns,
    entrywise_subsampling; and, only if named, norm_sampling and adaptive_column_sampling, which read all of it.

    Ctrl-C ends it with the methods that have finished.
    """
    from ...methods.comparison import compare

    if plot is not None:
        _check_picture(plot, force)
    with progress("reading"):
        data = read_input(inputs, options)
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    numbers = {"rank": rank, "n_full_columns": full_columns, "n_entries": entries, "random_state": seed}
    with progress("comparing") as report:
        comparison = compare(data, names, holdout=holdout, progress=report, **numbers)
    if plot is not None and comparison.finished:
        _write_picture(comparison, plot, force)
    following = _next_command(comparison.method, rank)
    if as_json:
        aside = set_aside_fact(data)
        say(json.dumps({**comparison.to_dict(), **aside, "next": following}, allow_nan=False))
    else:
        then = [] if following is None else [f"Next: {following}"]
        for line in [*set_aside_line(data), *str(comparison).split("\n"), *then]:
            say(line)
    if comparison.interrupted:
        sys.exit(130)


def _next_command(method: str | None, rank: int | None) -> str | None:
    """The command that fills the file by the method that is best; None if `colonnade complete` does not have it."""
    if method not in _AS_OPTIONS:
        return None
    return f"colonnade complete {given_input()} {_AS_OPTIONS[method]}" + ("" if rank is None else f" --rank {rank}")


def _check_picture(path: Path, force: bool) -> None:
    """Say before any work is done that the picture cannot be written."""
    from ..._support.atomic_writing import refuse_existing

    if path.suffix.lower() not in _KINDS:
        raise click.UsageError(f"--plot must end in {', '.join(_KINDS)}; got {path.name}")
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; choose another name with --plot, or replace it with --force")
    refuse_existing(path, force)


def _write_picture(comparison, path: Path, force: bool) -> None:
    from ..._support.atomic_writing import new_file

    with new_file(path, force=force) as working:
        comparison.plot().figure.savefig(working, format=path.suffix[1:].lower(), dpi=150)
