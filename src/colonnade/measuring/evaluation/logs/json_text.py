"""JSON of logs in bounded memory; whatever cannot be read is one sentence that names the file and the line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...._support.arguments import shown
from ...._support.numbers import first_rounded, rounded_words
from ...._support.printable import printable

LINE_BYTES = 1 << 28  # Bytes of one line. A transcript of an agent has a few million; no log has 256 MiB.
DOCUMENT_BYTES = 1 << 30  # Bytes of one JSON document. Parsed, it takes about ten times as much memory.
_DEPTH = 500  # Brackets within brackets at which a line is named; Python's parser gives up near 1,000.


def lines_of(path: Path) -> Iterator[tuple[int, str, dict]]:
    """Number, place in words and content of every line that is not blank; each must be a JSON object."""
    with open(path, "rb") as lines:
        number = 0
        while line := lines.readline(LINE_BYTES + 1):
            number += 1
            place = f"line {number} of {printable(path)}"
            if len(line) > LINE_BYTES:
                raise ValueError(
                    f"{place} has more than {LINE_BYTES:,} bytes, so it is no line of a log: drop the file"
                )
            if line.strip():
                yield number, place, an_object(parsed(line, place), place)


def document_of(path: Path) -> object:
    """The content of a file that is one JSON document."""
    with open(path, "rb") as file:
        data = file.read(DOCUMENT_BYTES + 1)
    refuse_large(len(data), printable(path))
    return parsed(data, printable(path), by_line=True)


def refuse_large(n_bytes: int, name: str) -> None:
    """Refuse a document before it is parsed."""
    if n_bytes > DOCUMENT_BYTES:
        raise ValueError(
            f"{name} has more than {DOCUMENT_BYTES:,} bytes, which is too large to read at once:"
            " write the log in another format (Inspect: inspect log convert --to eval) or in parts"
        )


def parsed(data: bytes, place: str, *, by_line: bool = False) -> object:
    """What some bytes say; with `by_line` errors name the line within the bytes, else only the place."""
    at = (lambda offset: f"line {data.count(10, 0, offset) + 1} of {place}") if by_line else (lambda offset: place)
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        where = at(error.start)
        raise ValueError(f"{where} is not UTF-8 text: convert the file, or run the model again") from None
    except RecursionError:
        where = at(_first_deep(data) if by_line else 0)
        raise ValueError(f"{where} has too many brackets within brackets: run the model again") from None
    except json.JSONDecodeError as error:
        where = at(len(error.doc[: error.pos].encode()) if by_line else 0)
        raise ValueError(f"{where} is not JSON ({error}): was the run interrupted?") from None
    except ValueError as error:  # A whole number with more digits than Python reads.
        raise ValueError(f"{place} is not JSON that can be read ({error}): drop this number") from None


def _first_deep(data: bytes) -> int:
    """The offset at which brackets are nested `_DEPTH` deep, counted without regard to quotes."""
    codes = np.frombuffer(data, np.uint8)
    step = ((codes == ord("[")) | (codes == ord("{"))).astype(np.int32)
    step -= (codes == ord("]")) | (codes == ord("}"))
    return int(np.argmax(np.cumsum(step) >= _DEPTH))


def an_object(value, place: str) -> dict:
    """A JSON object, or a sentence."""
    if not isinstance(value, dict):
        raise ValueError(f"{place} holds {_kind(value)} where a log has an object: is this a log?")
    return value


def field(record: dict, name: str, kind: type | tuple, place: str):
    """A field of some type that must be there."""
    value = record.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and bool not in np.atleast_1d(kind)):
        raise ValueError(f"{place} has {_kind(value)} under {name!r}, which no version of this log format has")
    return value


def text_of(value) -> str:
    """A name as text that every file can hold; a lone half of a surrogate pair is written out."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def is_number(value) -> bool:
    """Whether JSON has a number or a truth value here."""
    return isinstance(value, (bool, int, float))


def number_of(value, what: str, place: str) -> float:
    """A finite float64, or a sentence."""
    if not is_number(value):
        raise ValueError(f"{what} at {place} is {_kind(value)} and not a number: choose another metric")
    if first_rounded([value]) is not None:
        raise ValueError(rounded_words(f"{what} at {place}", value))
    try:
        number = float(value)
    except OverflowError:  # A whole number of more than 308 digits.
        number = np.inf
    if not np.isfinite(number):
        raise ValueError(f"{what} at {place} is not a finite number: choose another metric, or drop the line")
    return number


def _kind(value) -> str:
    if value is None:
        return "nothing"
    words = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return words.get(type(value), f"the text {shown(value)}")
