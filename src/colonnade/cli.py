"""The command line: a thin layer of words over the library."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from . import __version__

COMMANDS = {
    "demo": "Complete a photograph from some of its columns and a few of its other pixels.",
    "reproduce": "Rerun the experiments of the paper and say whether its claims hold.",
}


class _Commands(click.Group):
    """Imports the file of a command only when that command is asked for, so that --help is quick."""

    def list_commands(self, context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context, name):
        return import_module(f".commands.{name}", __package__).command if name in COMMANDS else None

    def format_commands(self, context, formatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="colonnade")
def cli() -> None:
    """Complete a matrix of which some columns are known in full and the rest at a few entries each.

    Example: colonnade demo
    """


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
