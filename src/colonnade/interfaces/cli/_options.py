"""Options that several commands share."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path

import click

from ..._support.storage import OPTION, as_path, options_of, without_secrets

_STORAGE = "colonnade.storage_options"  # The key under which the context of click keeps the options.
FILE = click.Path(dir_okay=False, path_type=Path)


class Place(click.Path):
    """A path, or an address such as s3://bucket/folder."""

    def __init__(self):
        super().__init__(path_type=Path)

    def convert(self, value, parameter, context):
        try:
            place = as_path(value, None if context is None else context.meta.get(_STORAGE))
        except ValueError as error:
            self.fail(str(error), parameter, context)
        return super().convert(value, parameter, context) if isinstance(place, Path) else place


def _kept_options(context, parameter, pairs):
    try:
        context.meta[_STORAGE] = options_of(pairs) or None
    except ValueError as error:
        raise click.UsageError(f"{OPTION}: {error}") from None


storage_option = click.option(
    OPTION,
    metavar="KEY=VALUE",
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=_kept_options,
    help="An option of the store of addresses such as s3://bucket/folder, for example endpoint_url=https://... . Can be"
    " repeated. Credentials are better given in the environment. Default: the environment and files of the store.",
)


def level_option(help: str):
    """The option --level; the default is 0.9."""
    kind = click.FloatRange(0, 1, min_open=True, max_open=True)
    return click.option("--level", type=kind, default=0.9, show_default=True, help=help)


def seed_option(help: str):
    """The option --seed; the default is 0."""
    return click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help=help)


def plot_option(what: str):
    """The option --plot, which draws something into a file."""
    help = f"Draw {what} into this png, svg or pdf file. Default: no picture."
    return click.option("--plot", type=FILE, help=help)


def json_option(what: str):
    """The option --json, which prints something as JSON."""
    help = f"Print {what} as JSON. Default: plain text."
    return click.option("--json", "as_json", is_flag=True, help=help)


def force_option(what: str):
    """The option --force, which replaces an output."""
    help = f"Replace {what} if it exists. Default: stop with an error."
    return click.option("--force", is_flag=True, help=help)


def save_picture(figure, path: Path, force: bool, **settings) -> None:
    """Write a figure, whole or not at all, in the format of the ending of the path."""
    from ..._support.atomic_writing import new_file

    with new_file(path, force=force) as working:
        figure.savefig(working, format=path.suffix[1:].lower(), **settings)


def command_line() -> str:
    """This command as it was typed, without secrets."""
    return shlex.join(["colonnade", *without_secrets(sys.argv[1:])])


_READ = (
    click.option(
        "--row", metavar="NAME", help="Column with the row labels, for triples. Default: the file is a table."
    ),
    click.option(
        "--column", metavar="NAME", help="Column with the column labels, for triples. Default: the file is a table."
    ),
    click.option("--value", metavar="NAME", help="Column with the values, for triples. Default: the file is a table."),
    click.option(
        "--key",
        "--variable",
        metavar="NAME",
        help="Array of an npz file or Zarr group, or variable of a netCDF file, to read. Default: the only one.",
    ),
    click.option("--sheet", metavar="NAME", help="Sheet to read from an xlsx file. Default: the first."),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of a text table holds names. Default: recognised from the file.",
    ),
    click.option(
        "--row-names/--no-row-names",
        default=None,
        help="Whether the first column of a table holds names. Default: recognised from the file.",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["error", "mean", "last"]),
        default="error",
        show_default=True,
        help="What to do if the same row and column occur twice: stop with an error, average, or keep the last.",
    ),
    click.option(
        "--missing",
        metavar="TEXT",
        multiple=True,
        help="A text or number that marks a missing value, such as -999 or '?'. Can be repeated."
        " Default: empty cells, NA, NaN, null and the like.",
    ),
    click.option(
        "--ignore",
        metavar="NAME",
        multiple=True,
        help="A column to leave out and write back unchanged, such as an identifier. Can be repeated."
        " Default: columns of text, dates and Booleans.",
    ),
    click.option(
        "--only",
        metavar="NAME",
        multiple=True,
        help="A column to use; all others are written back unchanged. Can be repeated."
        " Default: all columns of numbers.",
    ),
    click.option(
        "--delimiter",
        metavar="SIGN",
        help="The sign between the cells of a text table, such as ';' or '|'."
        " Default: comma, semicolon or tab, recognised from the first lines.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="The decimal sign of a text table. Default: recognised from its cells; if a number such as 1,234 can be"
        " read in two ways, the command stops.",
    ),
    click.option(
        "--thousands",
        metavar="SIGN",
        help="The sign between groups of three digits in a text table: ',', '.', ' ', an apostrophe, or none."
        " Default: recognised, except plain spaces.",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Encoding of a text table, such as latin-1. Default: UTF-8 or UTF-16 if recognised, else Windows-1252.",
    ),
    click.option("--transpose", is_flag=True, help="Exchange rows and columns after reading. Default: no."),
    click.option(
        "--hive",
        is_flag=True,
        help="Read folders such as year=2020 as columns of the Parquet files of triples in them. Default: no.",
    ),
)
PICTURES, PAGES = (".png", ".svg", ".pdf"), (".html", ".htm")
_READ_NAMES = (
    *("row", "column", "value", "key", "header", "row_names", "duplicates", "missing", "ignore", "only", "transpose"),
    *("sheet", "delimiter", "decimal", "thousands", "encoding", "hive"),
)


def input_options(command=None, *, required: bool = True):
    """The files to read and how; `read_input` takes them."""
    if command is None:
        return lambda command: input_options(command, required=required)
    for option in reversed(_READ):
        command = option(command)
    metavar = "INPUT..." if required else "[INPUT]..."
    return click.argument("inputs", metavar=metavar, nargs=-1, required=required, type=Place())(storage_option(command))


class ReadingCommand(click.Command):
    """A command whose help has its own options first, then those that say how the input is read."""

    def format_options(self, ctx, formatter) -> None:
        own: list[tuple[str, str]] = []
        reading: list[tuple[str, str]] = []
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            if record is not None:
                (reading if option.name in (*_READ_NAMES, "storage_option") else own).append(record)
        reading.sort(key=lambda record: record[0].startswith(OPTION))  # The rarest stands last.
        for title, records in (("Options", own), ("Options for reading", reading)):
            with formatter.section(title):
                formatter.write_dl(records)


def read_input(inputs, options: dict):
    """Read the files; the options for reading are removed from `options`."""
    from ...files import read

    given = {name: options.pop(name) for name in _READ_NAMES}
    for name in ("header", "row_names"):
        given[name] = "auto" if given[name] is None else given[name]
    given["only"] = given["only"] or None
    return read(inputs, **given, memory_limit=options.pop("memory_limit", None))


def located(source) -> Path:
    """An input as a path with a name; what is no path of this machine has its name in the working folder."""
    if not isinstance(source, Path):
        return Path(source.name)
    return source if source.stem and source.name != ".." else source.resolve()


def beside(source: Path, addition: str, ending: str = "") -> Path:
    """A default output: in the folder of an input, with its name, an addition and an ending."""
    source = located(source)
    return source.with_name(f"{source.stem}{addition}{ending}")


def given_input() -> str:
    """The input of this command with its options for reading, as one would type it again."""
    context = click.get_current_context()
    words = [str(path) for path in context.params["inputs"]]
    for option in context.command.params:
        value = context.params.get(option.name)
        if option.name not in _READ_NAMES or value == option.get_default(context) or value in (None, ()):
            continue
        if isinstance(value, bool):
            words.append((option.opts if value else option.secondary_opts)[0])
        else:
            for one in value if isinstance(value, tuple) else (value,):
                words += [option.opts[0], str(one)]
    return shlex.join(words)


def set_aside_fact(observations) -> dict[str, str]:
    """The columns that were left out, in words, under the key set_aside; empty if there are none."""
    from ...data.set_aside import choices_of

    words = choices_of(observations.origin).get("set aside")
    return {} if words is None else {"set_aside": words}


def set_aside_line(observations) -> list[str]:
    """The same as a line for people; no line if there are none."""
    return [f"Left out and returned unchanged: {words}." for words in set_aside_fact(observations).values()]


def read_in_words(observations) -> str:
    """What was recognised in the file, and how rows and columns without names are counted."""
    form, names = observations.origin, (observations.row_names, observations.column_names)
    sides = list(zip(("rows", "columns"), form.oriented(names)))
    named, counted = ([side for side, found in sides if (found is not None) == has] for has in (True, False))
    turned = "; transposed, so its rows are called columns below" if form.transposed else ""
    written = form.dialect_in_words()
    return (
        f"Read: {form.kind}{f' ({written})' if written else ''} with"
        f" {'names of ' + ' and '.join(named) if named else 'no names'}{turned}."
        + (f" Its {' and '.join(counted)} are counted from 0." if counted else "")
    )


def check_output(path: Path, option: str, endings: tuple[str, ...], force: bool) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    from ..._support.atomic_writing import refuse_existing

    if path.suffix.lower() not in endings:
        raise click.UsageError(f"{option} must end in {' or '.join(endings)}; got {path}")
    if path.exists() and not force:
        raise click.UsageError(f"{path} exists; choose another name with {option}, or replace it with --force")
    refuse_existing(path, force)


class MethodName(click.ParamType):
    """A method of `complete`; hyphens stand for blanks and underscores."""

    name = "method"
    known = "auto", "factor-model", "full-columns", "als", "soft-impute", "svt", "optspace", "tall-project"

    def convert(self, value, parameter, context):
        name = str(value).strip().lower().replace("_", "-").replace(" ", "-")
        if name not in self.known:
            self.fail(f"unknown method {value!r}; choose one of {', '.join(self.known)}", parameter, context)
        return name.replace("-", " " if name in ("factor-model", "full-columns") else "_")


class AutoOr(click.ParamType):
    """The word auto, or a value of another type."""

    name = "auto|number"

    def __init__(self, other: click.ParamType):
        self.other = other

    def convert(self, value, parameter, context):
        return value if value == "auto" else self.other.convert(value, parameter, context)


@contextmanager
def progress(title: str | None = None):
    """Bars on standard error if that is a terminal, one for each stage; gives a progress function, or None.

    With a title there is one bar, for the whole work.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {} if title is None else {title: bars.add_task(title, total=None)}

        def report(stage, done, total):
            name = stage if title is None else title
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield report
