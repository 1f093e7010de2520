"""`colonnade complete`: the gaps of a file filled."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from ._by_blocks import block_options, chosen_engine, complete_by_blocks, dry_run, stages
from ._lines import say
from ._options import AutoOr, MethodName, input_options, progress, read_input
from ._scores import lines_of
from .report import check_report

_SHOWN_SCORES = 10
_FEWEST_SCORED = 3  # Full columns that colonnade.leaderboard.scores needs.
_SCORES_MODEL = (
    "Scores: from a model of their own, that of colonnade.leaderboard.scores, which is made for means of columns."
    " They are not the means of the filled table, and --rank, --center, --shrinkage, --refine and --bounds do not"
    " change them."
)


@click.command()
@input_options
@click.option(
    "--output",
    "-o",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file to write, its kind by its ending, or a folder for the factors; may be given twice.",
)
@click.option(
    "--entries",
    type=click.Path(path_type=Path),
    help="Write only the entries named in this csv or Parquet file, with the ends of their intervals.",
)
@click.option(
    "--scores",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every column's mean and its rank among the full ones, with intervals, to this csv or Parquet file."
    " They come from a model of their own, made for means; the settings and the filled table are not theirs.",
)
@click.option(
    "--method",
    type=MethodName(),
    default="auto",
    metavar="NAME",
    help="How the gaps are filled: factor-model learns from all columns; full-columns learns from complete ones only;"
    " als, soft-impute, svt, optspace and tall-project are published methods, without intervals."
    " Default: auto, which takes full-columns where enough columns are complete and factor-model elsewhere.",
)
@click.option(
    "--orientation",
    type=click.Choice(["auto", "columns", "rows"]),
    default="auto",
    help="For the factor model: columns gives every row its own unit and level, rows gives them to every column."
    " Default: auto, which takes what predicts hidden entries better.",
)
@click.option(
    "--rank",
    type=AutoOr(click.IntRange(1)),
    default="auto",
    help="The largest number of directions. Default: auto, chosen by hidden entries.",
)
@click.option(
    "--center",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    help="Subtract the row means of the full columns first; needs full columns."
    " Default: auto, chosen by hidden entries.",
)
@click.option(
    "--shrinkage",
    type=AutoOr(click.FloatRange(0)),
    default="auto",
    help="Variance of the noise, 0 for plain least squares; needs full columns. Default: auto, learned from the data.",
)
@click.option(
    "--refine",
    type=AutoOr(click.IntRange(0)),
    default="auto",
    help="Rounds in which partial columns improve what full columns have taught; needs full columns. Default: auto,"
    " as many as predict hidden entries better.",
)
@click.option(
    "--bounds",
    type=float,
    nargs=2,
    default=None,
    metavar="LOW HIGH",
    help="Keep predictions between these two numbers. Default: no bounds.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=None,
    help="Number that decides which entries are hidden to choose settings. Default: the same entries every time.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Of the intervals that --entries, --intervals and --scores write.",
)
@block_options
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an HTML page to this file: what was filled, and how far to trust it.",
)
@click.option(
    "--round",
    "rounding",
    type=click.Choice(["auto"]),
    help="Write filled numbers of csv and xlsx files with as many digits as their standard deviations support."
    " Default: all digits.",
)
@click.option(
    "--intervals",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write every filled entry with the ends of its interval to this csv or Parquet file. The name of an xlsx"
    " output lists them in its second sheet instead. Default: no such file.",
)
@click.option("--strict", is_flag=True, help="End with code 4 if a row or column could not be filled.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--force", is_flag=True, help="Replace outputs that exist.")
def command(inputs, outputs, entries, scores, report, strict, as_json, force, **options) -> None:
    """Fill the gaps of a file.

    Example: colonnade complete table.csv -o filled.csv

    INPUT is an npy, npz, csv, tsv, Parquet, xlsx or netCDF file or a Zarr folder. Empty cells, null and NaN are gaps,
    and they may be anywhere. Several files, or a folder of them, are read as triples. Without --output a table is
    written to NAME-filled with the ending of the input, triples to the folder NAME-completed.

    Triples that need more than --memory-limit are completed by blocks of columns with the help of the disk, into a
    folder; some columns must then be complete. Such a run can be continued with --resume after it was interrupted.
    With --engine dask workers solve the columns: of the cluster of --scheduler or, by default, processes of this
    machine that listen on loopback only.
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
    if entries is not None and options["method"] not in ("auto", "factor model", "full columns"):
        method = options["method"].replace("_", "-")
        raise click.UsageError(f"--entries writes intervals, and {method} has none; leave --method or --entries out")
    if (how["rounding"] or intervals) and options["method"] not in ("auto", "factor model", "full columns"):
        raise click.UsageError("--round and --intervals need uncertainties, which this --method has not; leave it out")
    if options.pop("dry_run"):
        dry_run(inputs, options, engine)
        return
    listed = None if in_sheet else intervals
    _refuse_equal_names([*outputs, scores, report, listed])
    if listed is not None:
        _check_intervals(listed, engine, force)
    if report is not None:
        check_report(report, force)
    if scores is not None:
        _check_scores(scores, engine, force)
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
        _write_report(completion, report, force)
    outputs = [*outputs, *(path for path in (scores, listed, report) if path is not None)]
    if as_json:
        facts = {"inputs": [str(path) for path in inputs], "outputs": [str(path) for path in outputs]}
        facts |= {} if scores is None else {"scores": _SCORES_MODEL}
        say(json.dumps({**facts, **summary, "seconds": round(time.perf_counter() - started, 3)}, allow_nan=False))
    else:
        written = [*_numbers_only(summary, outputs), f"Written: {', '.join(map(str, outputs))}"]
        words = in_words(summary)
        first = 0 if summary["verdict"] is None else 1  # The verdict leads.
        for line in [*words[:first], source, *words[first:], *scored, *written]:
            say(line)
    if strict and (summary["n_unfilled_columns"] or summary["n_unfilled_rows"]):
        failure = click.ClickException(not_filled(summary)[0])
        failure.exit_code = 4
        raise failure


def _refuse_method_of_memory(engine: str, options: dict) -> None:
    """--method and --orientation are for tables in memory; blocks and clusters always learn from full columns."""
    given = [name for name in ("method", "orientation") if options[name] != "auto"]
    in_memory = engine == "memory" and options.get("engine") != "dask"
    if given and not in_memory:
        names = " and ".join(f"--{name}" for name in given)
        raise click.UsageError(
            f"{names} cannot be used by blocks or on a cluster, where full columns are learned from;"
            f" leave {'it' if len(given) == 1 else 'them'} out, or say --engine memory if the table fits"
        )


def _numbers_only(summary: dict, outputs) -> list[str]:
    """Which outputs lack the columns that were set aside."""
    from ...files import SUFFIXES

    lacking = [path for path in outputs if SUFFIXES.get(path.suffix.lower()) in ("npy", "npz", "zarr", None)]
    lacking = [str(path) for path in lacking if path.suffix.lower() != ".html"]
    if "set aside" not in summary["choices"] or not lacking:
        return []
    return [f"Numbers only: {', '.join(lacking)}; the columns that were set aside are in csv and Parquet files."]


def _in_memory(inputs, outputs, entries, options: dict, needs_full: int, *, level, force, how: dict) -> tuple:
    """Everything at once; the outputs, the completion, and what was read in words.

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
            f"--scores ranks columns among the complete ones and needs {needs_full} of them; {n_full} of"
            f" {observations.shape[1]:,} are complete. Leave --scores out."
        )
    if not outputs:
        outputs = [_default_output(inputs[0], entries, observations.origin)]
        check_outputs(outputs, entries, force)
    _check_how(how, outputs, entries)
    completion = _completed(observations, options)
    for output in outputs:
        _write(completion, output, asked, level, force, how)
    return outputs, completion, _read_in_words(observations)


def _completed(observations, options: dict):
    from ...completion import complete

    seed, scheduler = options.pop("seed"), options.pop("scheduler", None)
    if options.pop("engine", None) == "dask":
        from ...scaling import dask

        del options["method"], options["orientation"]
        with stages() as report:
            completion = dask.complete(observations, scheduler, random_state=seed, progress=report, **options)
    else:
        with progress("completing") as report:
            completion = complete(observations, random_state=seed, progress=report, **options)
    return replace(completion, run={**completion.run, "command": _command_line()})


def _command_line() -> str:
    return shlex.join(["colonnade", *sys.argv[1:]])


def _write_report(completion, report: Path, force: bool) -> None:
    from ..report.page import write_report

    with progress("reporting"):
        write_report(completion, report, command=_command_line(), force=force)


def _check_how(how: dict, outputs, entries) -> None:
    """Refuse --round and --intervals where no output could show them."""
    from ...files import SUFFIXES

    kinds = set() if entries is not None else {SUFFIXES.get(output.suffix.lower()) for output in outputs}
    if how["rounding"] is not None and not kinds & {"csv", "xlsx"}:
        raise click.UsageError("--round is for tables that are written to csv or xlsx; name one with --output")
    if how["intervals"] is not None and "xlsx" not in kinds:
        raise click.UsageError("--intervals names an output that is no xlsx file; name another csv or Parquet file")


def _refuse_equal_names(paths) -> None:
    named = [path.absolute() for path in paths if path is not None]
    for path in named:
        if named.count(path) > 1:
            raise click.UsageError(f"{path.name} is named twice: every output needs a name of its own")


def _check_scores(path: Path, engine: str, force: bool) -> None:
    from ..._support.atomic_writing import refuse_existing
    from ...files import check_scores_path

    if engine != "memory":
        raise click.UsageError("--scores needs the data in memory; leave it out, or raise --memory-limit")
    check_scores_path(path)
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; choose another name with --scores, or replace it with --force")
    refuse_existing(path, force)


def _check_intervals(path: Path, engine: str, force: bool) -> None:
    from ..._support.atomic_writing import refuse_existing
    from ...files import SUFFIXES

    if engine != "memory":
        raise click.UsageError("--intervals needs the data in memory; leave it out, or raise --memory-limit")
    if SUFFIXES.get(path.suffix.lower()) not in ("csv", "parquet"):
        raise click.UsageError(f"--intervals writes a csv or Parquet file, or the second sheet of an xlsx; got {path}")
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; choose another name with --intervals, or replace it with --force")
    refuse_existing(path, force)


def _write_intervals(completion, path: Path, level: float, force: bool) -> None:
    from ...files import filled_entries, write_entries

    with progress("writing"):
        write_entries(completion, filled_entries(completion), path, level=level, force=force)


def _write_scores(observations, path: Path, level: float, force: bool) -> list[str]:
    """The first lines of what was written, the partial column with the best score first."""
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


def _read_in_words(observations) -> str:
    form, names = observations.origin, (observations.row_names, observations.column_names)
    named = [side for side, found in zip(("rows", "columns"), form.oriented(names)) if found is not None]
    turned = "; its rows are called columns below" if form.transposed else ""
    written = form.dialect_in_words()
    return (
        f"Read: {form.kind}{f' ({written})' if written else ''} with"
        f" {'names of ' + ' and '.join(named) if named else 'no names'}{turned}."
    )


def _default_output(source: Path, entries: Path | None, form) -> Path:
    """A name in the folder where the command is run."""
    if entries is not None:
        return Path(f"{entries.stem}-filled{entries.suffix}")
    name = source.absolute().stem
    return Path(f"{name}-completed" if form.fields is not None else f"{name}-filled{source.suffix or '.' + form.kind}")


def check_outputs(outputs, entries: Path | None, force: bool) -> None:
    """Say before any work is done that an output cannot be written."""
    from ..._support.atomic_writing import refuse_existing
    from ...files import SUFFIXES, holds_one_zarr
    from ...files.results.saving import is_result

    for output in outputs:
        if str(output) == "-":
            raise click.UsageError("standard output is for the summary; name a file or a folder with --output")
        kind = SUFFIXES.get(output.suffix.lower()) if output.suffix else "result"
        if kind is None:
            raise click.UsageError(f"{output} must end in one of {', '.join(SUFFIXES)}, or be a folder without ending")
        if entries is not None and kind not in ("csv", "parquet", "result"):
            raise click.UsageError(f"with --entries the output is a csv or Parquet file; got {output}")
        if os.path.lexists(output) and not force:
            raise click.UsageError(f"{output} exists; choose another name with --output, or replace it with --force")
        refuse_existing(output, force, is_result if kind == "result" else holds_one_zarr)
