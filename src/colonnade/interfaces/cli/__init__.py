"""The command line: a thin layer of words over the library."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

import click

from ... import __version__
from ._lines import say

COMMANDS = {
    "complete": "Fill the gaps of a file.",
    "inspect": "Say whether a file can be filled, what from, and what would help.",
    "compare": "Hide some known entries, let several methods predict them, and say which one to use.",
    "explain": "Say why a filled entry of a result has its value.",
    "plan": "Say how much to measure, or which rows.",
    "report": "Write a result as one HTML page: what was filled, and how far to trust it.",
    "evaluate": "Evaluate models on a fraction of a benchmark, from logs of any evaluation tool.",
    "harness": "Evaluate a model on a fraction of a benchmark of lm-evaluation-harness.",
    "demo": "Complete a photograph from some of its columns and a few of its other pixels.",
    "reproduce": "Rerun the experiments of the paper and say whether its claims hold.",
    "doctor": "Show versions, linear algebra, threads and the cache of compiled code.",
}


class _Commands(click.Group):
    """Imports the file of a command only when that command is asked for, so that --help is quick."""

    def list_commands(self, context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context, name):
        return import_module(f".{name}", __package__).command if name in COMMANDS else None

    def format_commands(self, context, formatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="colonnade")
@click.option("--debug", is_flag=True, expose_value=False, help="Show where in the program an error arose.")
def cli() -> None:
    """Fill the gaps of tables of numbers, and say how far to trust what was filled.

    Example: colonnade complete table.csv

    Exit codes: 2 usage, 3 bad data, 4 finished but some columns could not be filled (with --strict), 5 file or disk,
    6 a part of the work failed for good, 130 or 143 interrupted.
    """


def run() -> None:
    """The command line with its exit codes; an error is one line, unless --debug asks for more."""
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
    sys.exit(143)  # raised where the program is, so that temporary files are removed


def _explained(error: Exception) -> tuple[int, str]:
    """The exit code of an error and what to say."""
    if isinstance(error, click.ClickException):
        return error.exit_code if error.exit_code > 2 else 2, error.format_message()
    if getattr(error, "exit_code", None) == 6:  # of a cluster, whose module is not imported for this
        return 6, str(error)
    if isinstance(error, OSError):
        return 5, f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    if isinstance(error, ModuleNotFoundError):
        return 2, str(error)
    if isinstance(error, (ValueError, TypeError, IndexError, MemoryError)):
        return 3, str(error) or "not enough memory"
    return 1, f"unexpected {type(error).__name__}: {error}; run it again with --debug to see where"
