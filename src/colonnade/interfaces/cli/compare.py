"""`colonnade compare`: test several methods on your own data."""

from __future__ import annotations

import json
import sys

import click

from ._lines import say
from ._options import (
    PICTURES,
    ReadingCommand,
    check_output,
    force_option,
    given_input,
    input_options,
    json_option,
    plot_option,
    progress,
    read_input,
    save_picture,
    seed_option,
    set_aside_fact,
    set_aside_line,
)

_AS_OPTIONS = {"complete": "", "algorithm1": " --center no --shrinkage 0 --refine 0"}
_AS_OPTIONS |= {name: f" --method {name}" for name in ("als", "soft_impute", "svt", "optspace", "tall_project")}


@click.command(cls=ReadingCommand)
@input_options
@click.option("--methods", metavar="A,B,...", help="Names of methods, separated by commas. Default: all that apply.")
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
    help="Share of the known values of every column with gaps that is hidden.",
)
@click.option(
    "--rank", type=click.IntRange(1), default=None, help="Maximum rank of every method. Default: each method chooses."
)
@click.option(
    "--full-columns",
    type=click.IntRange(1),
    default=None,
    help="For a file without gaps: complete columns that the methods may read. Needed there. Default: none.",
)
@click.option(
    "--entries",
    type=click.IntRange(1),
    default=None,
    help="For a file without gaps: values of every other column that they may read. Needed there. Default: none.",
)
@plot_option("the errors")
@seed_option("Random seed for choosing the values that are hidden.")
@json_option("the results")
@force_option("the picture")
def command(inputs, methods, holdout, rank, full_columns, entries, plot, seed, as_json, force, **options) -> None:
    """Test several methods on a file, and say which one to use.

    Example: colonnade compare table.csv --plot errors.png

    INPUT is any file that `colonnade complete` reads. Some known values are hidden, every method predicts them, and the
    errors are listed. The last line is a command to copy.

    The method complete is `colonnade complete` without settings. complete, algorithm1, row_means, column_means and
    tall_project are fast; algorithm1 and tall_project need complete columns. als, soft_impute, optspace and svt take
    minutes for millions of values. Errors are also given in standard deviations of the rows, or of the columns if these
    differ in unit.

    For a file without gaps, --full-columns and --entries limit what the methods read. These choose themselves: acquire,
    nystrom, nystrom_r, cur_plus, adaptive_completion, lifelong_completion, active_columns, entrywise_subsampling. Two
    read the whole file and run only if named: norm_sampling, adaptive_column_sampling.

    Ctrl-C stops the comparison and lists the finished methods.
    """
    from ...methods.comparison import compare

    if plot is not None:
        check_output(plot, "--plot", PICTURES, force)
    with progress("reading"):
        data = read_input(inputs, options)
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    numbers = {"rank": rank, "n_full_columns": full_columns, "n_entries": entries, "random_state": seed}
    with progress("comparing") as report:
        comparison = compare(data, names, holdout=holdout, progress=report, **numbers)
    if plot is not None and comparison.finished:
        save_picture(comparison.plot().figure, plot, force, dpi=150)
    following = _next_command(comparison.method, rank)
    if as_json:
        aside = set_aside_fact(data)
        say(json.dumps({**comparison.to_dict(), **aside, "next": following}, allow_nan=False))
    else:
        from ..inspection import about_outliers

        first = [*set_aside_line(data), *(f"Note: {sentence}" for sentence in about_outliers(data))]
        for line in [*first, *str(comparison).split("\n"), f"Next: {following}"]:
            say(line)
    if comparison.interrupted:
        sys.exit(130)


def _next_command(method: str | None, rank: int | None) -> str:
    """The command that fills the file by the best method.

    If no method is good enough it is `inspect`, and `plan` if the best one chooses what to measure.
    """
    from ...methods.comparison import MEANS

    if method not in _AS_OPTIONS:
        return f"colonnade {'inspect' if method in (None, *MEANS) else 'plan'} {given_input()}"
    return f"colonnade complete {given_input()}{_AS_OPTIONS[method]}" + ("" if rank is None else f" --rank {rank}")
