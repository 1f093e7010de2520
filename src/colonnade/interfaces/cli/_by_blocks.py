"""`colonnade complete` for triples larger than memory."""

from __future__ import annotations

import re
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace

import click

from ._lines import say
from ._options import beside, progress

_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


class Size(click.ParamType):
    """Bytes, as 6GB, 500MB or a number."""

    name = "size"

    def convert(self, value, parameter, context):
        found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?)b?\s*", str(value), re.IGNORECASE)
        if found is None:
            raise click.BadParameter(f"{value!r} is not a size such as 6GB or 500MB", context, parameter)
        number, unit, binary = found.groups()
        return float(number) * _UNITS[unit.lower()] * (1.024 ** list(_UNITS).index(unit.lower()) if binary else 1)


_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["auto", "memory", "local", "dask"]),
        default="auto",
        show_default=True,
        help="Where to compute: in memory, in blocks on the disk (local), or on a Dask cluster. auto chooses by"
        " --memory-limit.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Address of the Dask scheduler, such as tcp://10.0.0.1:8786 or tls://... . Default: processes of this"
        " machine, on loopback only. Use only a scheduler that you trust: anyone who can reach it can run code, and"
        " tcp:// is neither encrypted nor authenticated.",
    ),
    click.option(
        "--memory-limit", type=Size(), metavar="SIZE", help="Memory to use, such as 6GB. Default: 60 % of the memory."
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Continue an interrupted run in blocks; the result is identical. Default: start anew.",
    ),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Print the memory, disk and time that the run would need, and stop. Default: run.",
    ),
)
_ENGINE_NAMES = "engine", "memory_limit", "resume", "scheduler"
_SETTING_NAMES = "rank", "center", "shrinkage", "refine", "bounds", "method", "memory_limit", "resume"
_TRIPLE_NAMES = (
    "row",
    "column",
    "value",
    "header",
    "delimiter",
    "decimal",
    "encoding",
    "duplicates",
    "transpose",
    "hive",
)


def block_options(command):
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_engine(inputs, options: dict) -> str:
    """The engine: "memory", or "local" or "dask" for triples in blocks.

    For "memory", options of the others are removed. A table is read into memory even if a cluster fills
    its columns; then ``options["engine"]`` stays "dask".
    """
    from ...scaling.memory import checked_memory, memory_for_data

    engine, memory, resume, scheduler = (options[name] for name in _ENGINE_NAMES)
    if scheduler is not None and engine not in ("auto", "dask"):
        raise click.UsageError(f"--scheduler needs --engine dask; got {engine}")
    if scheduler is not None or engine == "dask":
        return _for_cluster(inputs, options)
    if engine == "auto":
        limit = checked_memory(memory)
        given = _triples(inputs, options)
        too_large = given is not None and _needed(given) > limit
        engine = "local" if too_large or (resume and given is not None) else "memory"
    if engine == "memory":
        if resume:
            raise click.UsageError("--resume needs triples in blocks; use --engine local")
        if not options["dry_run"]:
            for name in _ENGINE_NAMES:
                del options[name]
            options["memory_limit"] = memory_for_data(memory)
    elif _triples(inputs, options) is None:
        raise click.UsageError("--engine local needs triples; name their columns with --row, --column and --value")
    return engine


def _for_cluster(inputs, options: dict) -> str:
    from ...scaling.memory import memory_for_data

    options["engine"] = "dask"
    if not options["dry_run"] and _is_open_to_others(options["scheduler"]):
        say(
            "Note: this scheduler is on another machine, and tcp:// is neither encrypted nor authenticated. Anyone who"
            " can reach it can run code here and on its workers. Use tls:// on a network that you do not trust.",
            error=True,
        )
    if _triples(inputs, options) is not None:
        return "dask"
    if options["resume"]:
        raise click.UsageError("--resume needs triples, which are filled in blocks")
    if not options["dry_run"]:
        del options["resume"]
        options["memory_limit"] = memory_for_data(options["memory_limit"])
    return "memory"


def _is_open_to_others(scheduler: str | None) -> bool:
    """Whether an address leads to another machine, without TLS."""
    scheme, _, place = ("" if scheduler is None else scheduler).rpartition("://")
    host = place.rpartition(":")[0].strip("[]") if ":" in place else place
    if not host or scheme not in ("", "tcp", "ws"):
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return host.lower() != "localhost"


def _needed(given) -> float:
    from ...scaling.dry_run import bytes_in_memory

    return bytes_in_memory(given)


def _triples(inputs, options: dict):
    """The files of triples; None if they hold a table."""
    from ...files.tables.dialects import DialectOptions
    from ...files.tables.reading import checked_fields, fields_of_triples, paths_of
    from ...scaling.triples.labels import TripleFiles

    paths = tuple(paths_of(inputs, hive=options["hive"]))
    dialect = DialectOptions(*(options[name] for name in ("delimiter", "decimal", "thousands", "encoding")))
    fields = fields_of_triples(paths, checked_fields(options["row"], options["column"], options["value"]), dialect)
    header = "auto" if options["header"] is None else options["header"]
    return None if fields is None else TripleFiles(paths, fields, header=header, dialect=dialect)


def dry_run(inputs, options: dict, engine: str) -> None:
    """Print what a run would need."""
    from ...scaling.dry_run import estimate
    from ...scaling.memory import checked_memory

    given = _triples(inputs, options)
    if given is None:
        say("The input is a table and is filled in memory; --dry-run needs triples.")
        return
    rank = None if options["rank"] == "auto" else options["rank"]
    found = estimate(given, rank)
    lines = found.in_words(checked_memory(options["memory_limit"]))
    for line in [*lines, *(found.for_cluster() if engine == "dask" else [])]:
        say(line)
    how = {"memory": "in memory", "dask": "in blocks of columns, on a cluster"}
    say(f"It would be filled {how.get(engine, 'in blocks of columns, on the disk')}.")


def complete_by_blocks(inputs, outputs, entries, level: float, force: bool, options: dict) -> tuple:
    """Fill triples into a folder; returns the outputs, the completion, and a line about the input."""
    from ...files import FileForm, read_asked, write_entries
    from ...scaling.blocks import complete_triples
    from .complete import check_outputs

    if options["thousands"] is not None:
        raise click.UsageError(
            "--thousands needs data that fit into memory; write the triples without groups of digits"
        )
    if options["missing"]:
        raise click.UsageError("--missing needs data that fit into memory; leave these lines out of the triples")
    if options["ignore"] or options["only"]:
        raise click.UsageError("--ignore and --only need a table; of triples only three columns are read")
    given = _triples(inputs, options)
    outputs = outputs or [beside(inputs[0], "-completed")]
    folders = [output for output in outputs if not output.suffix]
    if len(folders) != 1 or (len(outputs) > 1 and entries is None):
        raise click.UsageError("a run in blocks writes one folder; name it with --output, without an ending")
    if not options["resume"]:
        check_outputs(outputs, entries, force)
    settings = {name: options[name] for name in _SETTING_NAMES}
    reading = {name: options[name] for name in _TRIPLE_NAMES}
    reading["header"] = given.header
    settings |= {"random_state": options["seed"], "force": force}
    with progress() as report, _told_how_to_go_on(folders[0]):
        if options["engine"] == "dask":
            from ...scaling import dask

            where = {"client": options["scheduler"], "out": folders[0]}
            completion = dask.complete(list(inputs), **where, progress=report, **reading, **settings)
        else:
            completion = complete_triples(inputs, folders[0], progress=report, **reading, **settings)
    form = FileForm("parquet", fields=given.fields, transposed=options["transpose"])
    if entries is not None:
        labelled = SimpleNamespace(
            origin=form, shape=completion.shape, row_names=completion.row_names, column_names=completion.column_names
        )
        for output in outputs:
            if output.suffix:
                write_entries(completion, read_asked(labelled, entries), output, level=level, force=force)
    named = given.paths[0].name if len(given.paths) == 1 else f"{len(given.paths):,} files"
    blocks = f"{completion.n_blocks:,} block{'s' if completion.n_blocks > 1 else ''}"
    return outputs, completion, f"Read: triples of {named}, in {blocks} of columns."


@contextmanager
def _told_how_to_go_on(folder: Path):
    """Add to an interrupt that the finished blocks are kept."""
    from ..._support.ownership import record_of
    from ..._support.storage import Url

    try:
        yield
    except KeyboardInterrupt:
        kept = folder if isinstance(folder, Url) else Path(f"{folder}.partial")
        if kept is not folder and record_of(kept) is None:
            raise
        words = f"Interrupted. Finished blocks are kept in {kept}; run the same command with --resume to continue."
        raise KeyboardInterrupt(words) from None
