"""`colonnade complete`: fill the gaps of a file."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import click

from ._by_blocks import block_options, chosen_engine, complete_by_blocks, dry_run
from ._lines import say
from ._options import (
    FILE,
    PAGES,
    AutoOr,
    MethodName,
    Place,
    ReadingCommand,
    beside,
    check_output,
    command_line,
    input_options,
    json_option,
    level_option,
    progress,
    read_in_words,
    read_input,
)
from ._scores import lines_of

_SHOWN_SCORES = 10  # Lines on the terminal; the file has all.
_FEWEST_SCORED = 3  # Full columns that colonnade.leaderboard.scores needs.
_OWN_METHODS = "auto", "factor model", "full columns"  # These have intervals.
_SCORES_MODEL = (
    "Scores: computed by colonnade.leaderboard.scores, a separate model for column means. They differ from the means of"
    " the filled table. --rank, --center, --shrinkage, --refine and --bounds do not affect them."
)


@click.command(cls=ReadingCommand)
@input_options
@click.option(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    type=Place(),
    help="File to write, its format given by its ending, or a folder for the whole result. Can be repeated."
    " Default: NAME-filled in the folder of the input, with its ending.",
)
@click.option(
    "--entries",
    type=click.Path(path_type=Path),
    help="Write only the values listed in this csv or Parquet file, with their intervals. Default: the whole table.",
)
@click.option(
    "--scores",
    type=FILE,
    help="Write the mean of every column and its rank, with intervals, to this csv or Parquet file. A separate model"
    " computes them. Default: no scores.",
)
@click.option(
    "--method",
    type=MethodName(),
    default="auto",
    metavar="NAME",
    help="Method: factor-model learns from all columns, full-columns from the complete ones; als, soft-impute, svt,"
    " optspace and tall-project are published methods without intervals."
    " Default: auto, factor-model or full-columns, whichever predicts hidden values better.",
)
@click.option(
    "--orientation",
    type=click.Choice(["auto", "columns", "rows"]),
    default="auto",
    help="Side to fill: with columns, every row has its own unit and level; with rows, every column has."
    " Default: auto, chosen by cross-validation.",
)
@click.option(
    "--rank",
    type=AutoOr(click.IntRange(1)),
    default="auto",
    help="Maximum rank, the number of directions in which the table varies. Default: auto, chosen by cross-validation.",
)
@click.option(
    "--center",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    help="Subtract row means first; needs complete columns. Default: auto, yes under a prior.",
)
@click.option(
    "--shrinkage",
    type=AutoOr(click.FloatRange(0)),
    default="auto",
    help="Noise variance, 0 for plain least squares; needs complete columns. Default: auto, estimated from the data.",
)
@click.option(
    "--refine",
    type=AutoOr(click.IntRange(0)),
    default="auto",
    help="Number of sweeps that also learn from columns with gaps; needs complete columns."
    " Default: auto, three sweeps.",
)
@click.option(
    "--bounds",
    type=float,
    nargs=2,
    default=None,
    metavar="LOW HIGH",
    help="Keep filled values between these two numbers. Default: no bounds.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=None,
    help="Random seed for choosing the values that are hidden to tune settings. Default: a fixed choice.",
)
@level_option("Probability of the intervals that --entries, --scores and --intervals write.")
@block_options
@click.option(
    "--report",
    type=FILE,
    help="Write an HTML report to this file: verdict, pictures, and what to do next. Default: no report.",
)
@click.option(
    "--round",
    "rounding",
    type=click.Choice(["auto"]),
    help="Round filled values in csv and xlsx files to the digits that their uncertainty supports."
    " Default: all digits.",
)
@click.option(
    "--intervals",
    type=FILE,
    help="Write every filled value with the ends of its interval to this csv or Parquet file. The name of an xlsx"
    " output lists them in its second sheet instead. Default: no such file.",
)
@click.option(
    "--strict", is_flag=True, help="Exit with code 4 if a row or column could not be filled. Default: exit with 0."
)
@json_option("the summary")
@click.option("--force", is_flag=True, help="Replace existing outputs. Default: stop with an error.")
def command(inputs, outputs, entries, scores, report, strict, as_json, force, **options) -> None:
    """Fill the gaps of a file.

    Example: colonnade complete table.csv -o filled.csv

    INPUT is a csv, tsv, xlsx, Parquet, npy, npz or netCDF file or a Zarr folder. Empty cells, null and NaN are gaps;
    they may be anywhere. Several files, or a folder of files, are read as triples of row, column and value. Without
    --output, a table is written to NAME-filled with the ending of the input, and triples to the folder NAME-completed,
    both in the folder of the input.

    Triples that need more than --memory-limit are filled in blocks of columns on the disk. --resume continues an
    interrupted run. With --engine dask, the workers of a cluster fill the columns.
    INPUT and --output may be addresses such as s3://bucket/folder; * in an address stands for any name.
    """
    from ..summary import in_words, not_filled, summarise

    started = time.perf_counter()
    level, how = options.pop("level"), {name: options.pop(name) for name in ("rounding", "intervals")}
    intervals = how["intervals"]
    in_sheet = intervals is not None and intervals in outputs
    how["intervals"] = level if in_sheet else None
    options["center"] = {"auto": "auto", "yes": True, "no": False}[options["center"]]
    engine = chosen_engine(inputs, options)
    _refuse_method_of_memory(engine, options)
    _refuse_without_intervals(options["method"], entries, how["rounding"] or intervals)
    if options.pop("dry_run"):
        dry_run(inputs, options, engine)
        return
    listed = None if in_sheet else intervals
    _refuse_equal_names([*outputs, scores, report, listed])
    if listed is not None:
        _check_table(listed, "--intervals", engine, force)
    if report is not None:
        check_output(report, "--report", PAGES, force)
    if scores is not None:
        _check_table(scores, "--scores", engine, force)
    if engine == "memory":
        needs_full = 0 if scores is None else _FEWEST_SCORED
        written_as = {"level": level, "force": force, "how": how}
        outputs, completion, source = _in_memory(inputs, outputs, entries, options, needs_full, **written_as)
        summary = summarise(completion)
    else:
        _check_how(how, [Path("folder")], entries)
        outputs, completion, source = complete_by_blocks(inputs, outputs, entries, level, force, options)
        summary = summarise(completion, verdicts=False)
    scored = [] if scores is None else _write_scores(completion.observations, scores, level, force)
    if listed is not None:
        _write_intervals(completion, listed, level, force)
    if report is not None:
        _write_report(completion, report, _file_name(inputs), force)
    outputs = [*outputs, *(path for path in (scores, listed, report) if path is not None)]
    if as_json:
        facts: dict = {"inputs": [str(path) for path in inputs], "outputs": [str(path) for path in outputs]}
        facts |= {} if scores is None else {"scores": _SCORES_MODEL}
        say(json.dumps({**facts, **summary, "seconds": round(time.perf_counter() - started, 3)}, allow_nan=False))
    else:
        written = [*_numbers_only(summary, outputs), f"Written: {', '.join(map(str, outputs))}"]
        verdict, *words = in_words(summary)
        for line in [verdict, source, *words, *scored, *written]:
            say(line)
    if strict and (summary["n_unfilled_columns"] or summary["n_unfilled_rows"]):
        failure = click.ClickException(not_filled(summary)[0])
        failure.exit_code = 4
        raise failure


def _refuse_without_intervals(method: str, entries, is_interval_needed) -> None:
    """Refuse options that write intervals beside a method that has none."""
    if method in _OWN_METHODS:
        return
    if entries is not None:
        method = method.replace("_", "-")
        raise click.UsageError(f"--entries writes intervals, but {method} has none; leave out --method or --entries")
    if is_interval_needed:
        raise click.UsageError("--round and --intervals need uncertainties, but this --method has none; leave it out")


def _refuse_method_of_memory(engine: str, options: dict) -> None:
    """Refuse what blocks and clusters cannot do: they fill columns, by a method of colonnade's own."""
    if engine == "memory" and options.get("engine") != "dask":
        return
    if options["method"] not in _OWN_METHODS:
        method = options["method"].replace("_", "-")
        raise click.UsageError(f"--method {method} cannot be used in blocks or on a cluster; use --engine memory")
    if options["orientation"] == "rows":
        raise click.UsageError("--orientation rows cannot be used in blocks or on a cluster; use --transpose")


def _numbers_only(summary: dict, outputs) -> list[str]:
    """The outputs that lack the columns that were left out."""
    from ...files import SUFFIXES

    lacking = [path for path in outputs if SUFFIXES.get(path.suffix.lower()) in ("npy", "npz", "zarr", None)]
    lacking = [str(path) for path in lacking if path.suffix.lower() != ".html"]
    if "set aside" not in summary["choices"] or not lacking:
        return []
    return [f"Numbers only: {', '.join(lacking)}. Write csv or Parquet to keep the columns that were left out."]


def _in_memory(inputs, outputs, entries, options: dict, needs_full: int, *, level, force, how: dict) -> tuple:
    """Fill a table in memory; returns the outputs, the completion, and a line about the input.

    `needs_full` is the number of full columns that --scores needs, and `how` has the keywords of `files.write`.
    """
    from ...files import read_asked

    check_outputs(outputs, entries, force)
    with progress("reading"):
        observations = read_input(inputs, options)
        asked = None if entries is None else read_asked(observations, entries)
    n_full = observations.full_columns.size
    if n_full < needs_full:
        raise ValueError(
            f"--scores needs {needs_full} complete columns; {n_full} of {observations.shape[1]:,} are complete."
            " Leave --scores out."
        )
    if not outputs:
        outputs = [_default_output(inputs[0], entries, observations.origin)]
        check_outputs(outputs, entries, force)
    _check_how(how, outputs, entries)
    completion = _completed(observations, options, _file_name(inputs))
    for output in outputs:
        _write(completion, output, asked, level, force, how)
    return outputs, completion, read_in_words(observations)


def _completed(observations, options: dict, file: str):
    from ...completion import complete

    seed, scheduler = options.pop("seed"), options.pop("scheduler", None)
    if options.pop("engine", None) == "dask":
        from ...scaling import dask

        del options["orientation"]
        with progress() as report:
            completion = dask.complete(observations, scheduler, random_state=seed, progress=report, **options)
    else:
        with progress("completing") as report:
            completion = complete(observations, random_state=seed, progress=report, **options)
    return replace(completion, run={**completion.run, "command": command_line(), "file": file})


def _file_name(inputs) -> str:
    return inputs[0].absolute().name if len(inputs) == 1 else f"{len(inputs):,} files"


def _write_report(completion, report: Path, name: str, force: bool) -> None:
    from ..report.page import write_report

    with progress("reporting"):
        write_report(completion, report, command=command_line(), name=name, force=force)


def _check_how(how: dict, outputs, entries) -> None:
    """Refuse --round and --intervals where no output could show them."""
    from ...files import SUFFIXES

    kinds = set() if entries is not None else {SUFFIXES.get(output.suffix.lower()) for output in outputs}
    if how["rounding"] is not None and not kinds & {"csv", "xlsx"}:
        raise click.UsageError("--round needs a csv or xlsx output; name one with --output")
    if how["intervals"] is not None and "xlsx" not in kinds:
        raise click.UsageError("--intervals names an output that is no xlsx file; name another csv or Parquet file")


def _refuse_equal_names(paths) -> None:
    named = [path.absolute() for path in paths if path is not None]
    for path in named:
        if named.count(path) > 1:
            raise click.UsageError(f"{path.name} is named twice: every output needs a name of its own")


def _check_table(path: Path, option: str, engine: str, force: bool) -> None:
    """Refuse a csv or Parquet file that cannot be written beside the result."""
    from ...files import SUFFIXES

    if engine != "memory":
        raise click.UsageError(f"{option} needs the data in memory; leave it out, or raise --memory-limit")
    check_output(path, option, tuple(end for end, kind in SUFFIXES.items() if kind in ("csv", "parquet")), force)


def _write_intervals(completion, path: Path, level: float, force: bool) -> None:
    from ...files import filled_entries, write_entries

    with progress("writing"):
        write_entries(completion, filled_entries(completion), path, level=level, force=force)


def _write_scores(observations, path: Path, level: float, force: bool) -> list[str]:
    """Write the scores; returns the first lines, the best column with gaps first."""
    from ...files import write_scores
    from ...measuring.leaderboard import scores

    with progress("scoring"):
        table = scores(observations, level=level)
        write_scores(table, observations.column_names, path, force=force)
    lines = list(lines_of(observations, table, level, "rows", "columns"))
    more = len(lines) - _SHOWN_SCORES
    return [_SCORES_MODEL, *lines[:_SHOWN_SCORES]] + ([f"... and {more:,} more columns in {path}"] if more > 0 else [])


def _write(completion, output: Path, asked, level: float, force: bool, how: dict) -> None:
    from ...files import SUFFIXES, write, write_entries

    with progress("writing"):
        if not output.suffix:
            completion.save(output, force=force)
        elif asked is not None:
            write_entries(completion, asked, output, level=level, force=force)
        else:
            kind = SUFFIXES[output.suffix.lower()]
            rounding = how["rounding"] if kind in ("csv", "xlsx") else None
            write(completion, output, force=force, rounding=rounding, intervals=how["intervals"])


def _default_output(source: Path, entries: Path | None, form) -> Path:
    """The name of the output, in the folder of the input."""
    if entries is not None:
        return beside(entries, "-filled", entries.suffix)
    if form.fields is not None:
        return beside(source, "-completed")
    return beside(source, "-filled", source.suffix or f".{form.kind}")


def check_outputs(outputs, entries: Path | None, force: bool) -> None:
    """Refuse outputs that cannot be written, before any work is done."""
    from ..._support.atomic_writing import refuse_existing
    from ..._support.storage import Url
    from ...files import SUFFIXES, holds_one_zarr
    from ...files.results.remote_runs import refuse_occupied
    from ...files.results.saving import is_result

    for output in outputs:
        if str(output) == "-":
            raise click.UsageError("--output cannot be standard output; name a file or a folder")
        kind = SUFFIXES.get(output.suffix.lower()) if output.suffix else "result"
        if kind is None:
            raise click.UsageError(
                f"{output} must end in one of {', '.join(SUFFIXES)}, or be a folder name without an ending"
            )
        if entries is not None and kind not in ("csv", "parquet", "result"):
            raise click.UsageError(f"with --entries the output must be a csv or Parquet file; got {output}")
        is_far = isinstance(output, Url) and kind == "result"
        exists = output.exists() if isinstance(output, Url) else os.path.lexists(output)
        if (is_result(output) if is_far else exists) and not force:
            raise click.UsageError(f"{output} exists; choose another name with --output, or replace it with --force")
        if is_far:
            refuse_occupied(output, force=force)
        else:
            refuse_existing(output, force, is_result if kind == "result" else holds_one_zarr)
