"""How a text table is written: delimiter, encoding, decimal sign and groups of digits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .csv import Beginning, beginning
from .encodings import NotUtf8, single_byte_encoding
from .numerals import given_styles


@dataclass(frozen=True)
class DialectOptions:
    """What the user says of a text table; None is found out.

    Attributes
    ----------
    delimiter : str or None
        Between cells.
    decimal : {".", ","} or None
    thousands : str or None
        The sign between groups of three digits, or "none".
    encoding : str or None
        As Python calls it.
    """

    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None

    def begin(self, path: Path) -> Beginning:
        """The first lines of a file, with the ways of writing numbers that are left open."""
        begun = beginning(path, self.delimiter, self.encoding)
        return replace(begun, styles=given_styles(self.decimal, self.thousands))


FOUND_OUT = DialectOptions()


def with_encoding(path: Path, dialect: DialectOptions, read: Callable):
    """What `read` makes of the beginning; once more if a byte far behind it shows that the text is not UTF-8."""
    begun = dialect.begin(path)
    try:
        return read(begun)
    except NotUtf8:
        if dialect.encoding is not None or begun.encoding.mark:
            raise
    again = beginning(path, dialect.delimiter, single_byte_encoding(path))
    return read(replace(again, styles=begun.styles))
