"""Lines for people on the terminal. Everything that the commands print goes through here."""

from __future__ import annotations

import click

from ..._support.printable import printable


def say(line: str, *, error: bool = False) -> None:
    """Print one line; control characters in it, as names of files may hold them, are shown and not sent."""
    try:
        click.echo(printable(line), err=error)
    except OSError as failure:
        failure.filename = failure.filename or ("standard error" if error else "standard output")
        raise
