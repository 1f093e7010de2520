"""The command line: options and messages over the functions of the library."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

import click

from ... import __version__
from ._lines import say

COMMANDS = {
    "complete": "Fill the gaps of a file.",
    "inspect": "Say whether a file can be filled, where its gaps are, and what would help.",
    "compare": "Test several methods on your file, and say which one to use.",
    "explain": "Explain a filled value of a result.",
    "plan": "Say how many values to measure, or which rows.",
    "report": "Write an HTML report of a result: verdict, pictures, and what to do next.",
    "evaluate": "Evaluate models on a fraction of a benchmark, from logs of any evaluation tool.",
    "harness": "Evaluate a model on a fraction of a benchmark of lm-evaluation-harness.",
    "demo": "Fill a photograph from a few of its pixels.",
    "reproduce": "Rerun the experiments of the paper and check its claims.",
    "doctor": "Show versions, threads and the compiler cache, for bug reports.",
}


class _Commands(click.Group):
    """A group that imports the module of a command only when it runs, so that --help is quick."""

    def list_commands(self, context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context, name):
        return import_module(f".{name}", __package__).command if name in COMMANDS else None

    def format_commands(self, context, formatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="colonnade")
@click.option(
    "--debug", is_flag=True, expose_value=False, help="Show a full traceback if an error occurs. Default: one line."
)
def cli() -> None:
    """Fill the gaps in tables of numbers, with an honest uncertainty for every filled value.

    Example: colonnade complete table.csv

    Exit codes: 0 success, 2 wrong usage, 3 bad data, 4 some columns could not be filled (with --strict), 5 file or
    disk error, 6 a worker or block failed, 130 or 143 interrupted.
    """


def run() -> None:
    """Run the command line with its exit codes; an error is one line, or a traceback with --debug."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    signal.signal(signal.SIGTERM, _terminated)
    try:
        cli(arguments, standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt) as interrupt:
        say(str(interrupt.__cause__ or interrupt) or "Interrupted.", error=True)
        sys.exit(130)
    except click.exceptions.NoArgsIsHelpError as help_asked_for:
        click.echo(help_asked_for.format_message(), err=True)
        sys.exit(2)
    except Exception as error:
        if len(arguments) < len(sys.argv) - 1:
            raise
        code, message = _explained(error)
        say(f"Error: {' '.join(message.split())}", error=True)
        sys.exit(code)


def _terminated(*_) -> None:
    sys.exit(143)  # An exception, so that temporary files are removed.


def _explained(error: Exception) -> tuple[int, str]:
    """The exit code of an error and its message."""
    if isinstance(error, click.ClickException):
        return error.exit_code if error.exit_code > 2 else 2, error.format_message()
    if getattr(error, "exit_code", None) == 6:  # An error of a cluster; its module is not imported here.
        return 6, str(error)
    if isinstance(error, OSError):
        return 5, f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    if isinstance(error, ModuleNotFoundError):
        return 2, str(error)
    if isinstance(error, (ValueError, TypeError, IndexError, MemoryError)):
        return 3, str(error) or "not enough memory"
    return 1, f"unexpected {type(error).__name__}: {error}; run the command again with --debug for details"
