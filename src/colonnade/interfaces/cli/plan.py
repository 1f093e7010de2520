"""`colonnade plan`: how many values to measure, and which rows."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import click

from ._lines import say
from ._options import ReadingCommand, input_options, json_option, progress, read_input, seed_option

_HIDDEN = 0.1  # Share of a table without gaps that is hidden: `complete` learns nothing where nothing is to be filled.


@click.command(cls=ReadingCommand)
@input_options(required=False)
@click.option(
    "--shape",
    type=click.IntRange(1),
    nargs=2,
    default=None,
    metavar="ROWS COLUMNS",
    help="Size of the table. Default: that of INPUT.",
)
@click.option(
    "--rank",
    type=click.IntRange(1),
    default=None,
    help="Rank, the number of directions in which the table varies. Default: the directions of INPUT above its noise.",
)
@click.option(
    "--coherence",
    type=float,
    default=None,
    help="Coherence mu(r) of the paper. Default: that of INPUT, else of a Gaussian matrix.",
)
@click.option("--delta", type=float, default=0.1, show_default=True, help="Probability of failure that you accept.")
@click.option(
    "--noise-std",
    type=float,
    default=None,
    help="Standard deviation of the noise of a value. Default: that of INPUT, else none.",
)
@click.option(
    "--entries",
    type=click.IntRange(1),
    default=None,
    help="Values per column for which to print the expected error. Default: those of the plan.",
)
@click.option(
    "--select-rows",
    type=click.IntRange(1),
    default=None,
    metavar="K",
    help="Print the K rows to measure in every new column. Default: print how many values to measure.",
)
@click.option(
    "--for-mean",
    is_flag=True,
    help="With --select-rows: the rows that predict the mean of a new column best. Default: all its values.",
)
@seed_option("Random seed of the simulations.")
@json_option("the plan")
def command(inputs, select_rows, for_mean, as_json, seed, **options) -> None:
    """Say how many values to measure in a new table, or which rows.

    \b
    Examples: colonnade plan --shape 10000 10000 --rank 50
              colonnade plan table.csv
              colonnade plan --select-rows 40 table.csv

    INPUT is a file that `colonnade complete` reads, or a folder that it wrote. The plan is then for new columns like
    those of the file. --select-rows prints the rows that predict the rest of a new column best, one per line. With
    --for-mean they predict its mean best, such as the score of a model over all questions.
    """
    planned = {name: options.pop(name) for name in ("shape", "rank", "coherence", "delta", "noise_std", "entries")}
    if select_rows is not None:
        _refuse_other_settings(planned, inputs)
        table, rows = (_rows_for_mean if for_mean else _rows_for_all)(inputs, options, select_rows)
        _print_rows(table, rows, as_json)
        return
    if for_mean:
        raise click.UsageError("--for-mean needs --select-rows K")
    if not inputs:
        if planned["shape"] is None or planned["rank"] is None:
            raise click.UsageError("give --shape ROWS COLUMNS and --rank, or a file")
        basis, remark = None, ""
    elif planned["shape"] is not None:
        raise click.UsageError("--shape cannot be used with a file, because the file has its own")
    else:
        completion = _completion(inputs, options)
        _refuse_no_pattern(completion)
        basis, remark = _learn_into(planned, completion), _as_it_is(completion)
    _print_plan(planned, basis, seed, as_json, remark)


def _refuse_no_pattern(completion) -> None:
    if not completion.rank:
        raise ValueError("this table shows no pattern to plan with: its values are all alike, or too few are known")


def _refuse_other_settings(planned: dict, inputs) -> None:
    given = [name for name, value in planned.items() if value is not None and name != "delta"]
    if given:
        raise click.UsageError(f"--{given[0].replace('_', '-')} cannot be used with --select-rows")
    if not inputs:
        raise click.UsageError("--select-rows K needs a file, or a folder that colonnade complete wrote")


def _rows_for_mean(inputs, options: dict, k: int):
    from ...completion import Completion
    from ...measuring.leaderboard import select_questions

    observations = Completion.load(inputs[0]).observations if _is_result(inputs) else _read(inputs, options)
    return observations, select_questions(observations, k).tolist()


def _rows_for_all(inputs, options: dict, k: int):
    from ...measuring.row_selection import select_rows

    completion = _completion(inputs, options)
    _refuse_no_pattern(completion)
    return completion, select_rows(completion, k).tolist()


def _is_result(inputs) -> bool:
    return len(inputs) == 1 and (inputs[0] / "facts.json").is_file()


def _read(inputs, options: dict):
    with progress("reading"):
        return read_input(inputs, options)


def _completion(inputs, options: dict):
    """The completion in a result folder, or that of a file; of one without gaps, a tenth is hidden to learn from it."""
    import numpy as np

    from ...completion import Completion, complete

    if _is_result(inputs):
        return Completion.load(inputs[0])
    observations = _read(inputs, options)
    if observations.full_columns.size == observations.shape[1]:
        size = observations.values.size
        observations = observations.without(np.flatnonzero(np.random.default_rng(0).random(size) < _HIDDEN))
    with progress("learning") as report:
        return complete(observations, progress=report)


def _learn_into(planned: dict, completion):
    """Set the shape, rank and noise that were not given, as the completion has them; returns the basis of that rank."""
    from numpy.linalg import qr

    space, noise = completion.space, completion.noise_std
    if planned["rank"] is None:  # Directions that a complete column tells from noise.
        above = int((space.variances > noise**2).sum()) if math.isfinite(noise) else completion.rank
        planned["rank"] = max(1, above)
    if planned["rank"] > completion.rank:
        raise click.UsageError(f"--rank must be at most {completion.rank:,}, the rank of the file")
    planned["shape"] = completion.shape
    if planned["noise_std"] is None and math.isfinite(noise):
        planned["noise_std"] = noise
    return qr(completion.basis[:, : planned["rank"]].astype(float))[0]  # Orthonormal to more digits than float32 has.


def _as_it_is(completion) -> str:
    """The fit of the file without any new measurement."""
    partial = completion.observations.partial_columns if completion.observations is not None else ()
    if not len(partial) or not completion.noise_variance:
        return ""
    typical = int(sorted(completion.observations.n_observed[partial])[len(partial) // 2])
    return (
        f"Today a column with gaps has {typical:,} known values (median). {completion.verdict.sentence} The plan is for"
        " plain least squares. With fewer values, `colonnade complete` relies on its prior."
    )


def _print_plan(planned: dict, basis, seed: int, as_json: bool, remark: str) -> None:
    from ...measuring.planning import plan

    planned["n_entries"] = planned.pop("entries")
    with progress("planning"):
        found = plan(**planned, basis=basis, random_state=seed)
    if as_json:
        say(json.dumps(_finite(asdict(found)), allow_nan=False))
    else:
        for line in str(found).split("\n"):
            say(line)
        if remark:
            say(remark)


def _finite(value):
    """A copy with None for numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print_rows(table, rows: list[int], as_json: bool) -> None:
    from ..._support.arguments import shown

    names = table.row_names
    if as_json:
        chosen = None if names is None else [str(names[i]) for i in rows]
        say(json.dumps({"shape": list(table.shape), "rows": rows, "names": chosen}))
        return
    for i in rows:
        say(str(i) if names is None else _plain(names[i], shown))


def _plain(name, shown) -> str:
    """A name as it is if it is one printable line, else quoted and shortened."""
    text = str(name)
    return text if text.isprintable() and len(text) <= 200 else shown(text)
