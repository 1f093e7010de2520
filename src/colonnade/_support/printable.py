"""Text for the terminal; a module of its own because the command line needs it before anything that loads NumPy."""

from __future__ import annotations


def printable(text) -> str:
    """Text such as a path as it may stand in a message: what a terminal would obey is shown, not sent."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def counted(count: int, noun: str) -> str:
    """A number of things: 1 column, 2,000 columns."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"
