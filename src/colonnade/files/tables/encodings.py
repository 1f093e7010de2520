"""Text in any encoding as UTF-8: byte-order marks, Windows-1252 as Excel writes it, or what the user names."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from ..._support.arguments import printable
from .kinds import needed_module

_HEAD = 2**20  # Bytes that are looked at first; a later byte that is not UTF-8 raises NotUtf8 while reading.
_CHUNK = 2**24  # Bytes that are decoded at a time.
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # It begins like the mark of UTF-16, so it is looked for first.
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_UNMARKED = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}  # What they are without a mark.
# A character of UTF-8 outside of ASCII; text in Windows-1252 has hardly ever such a pair of letters.
_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_NAMES = {"utf-8": "UTF-8", "cp1252": "Windows-1252", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}
_REMEDY = "name its encoding with --encoding (encoding=...)"


class NotUtf8(ValueError):
    """A text table that was taken for UTF-8 has bytes that are not."""

    def __init__(self, path):
        super().__init__(f"{printable(path)} is not text in UTF-8; {_REMEDY}")


@dataclass(frozen=True)
class Encoding:
    """How the characters of a text table are written.

    Attributes
    ----------
    codec : str
        As Python calls it.
    mark : bytes
        The byte-order mark with which the file begins.
    """

    codec: str = "utf-8"
    mark: bytes = b""

    @property
    def is_utf8(self) -> bool:
        return self.codec == "utf-8"

    def in_words(self) -> str:
        return _NAMES.get(self.codec, self.codec)

    def encoded(self, path, text: bytes) -> bytes:
        """UTF-8 text in this encoding."""
        try:
            return text if self.is_utf8 else text.decode().encode(self.codec)
        except UnicodeEncodeError as error:
            cell = error.object[error.start : error.end]
            raise ValueError(f"{printable(path)} cannot hold {cell!r} in {self.in_words()}; write Parquet") from None


UTF8 = Encoding()


def encoding_of(path: Path, given: str | None = None) -> Encoding:
    """The encoding of a text table: the given one, that of its byte-order mark, UTF-8, or else Windows-1252."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    mark = next((mark for mark in _MARKS if head.startswith(mark)), b"")
    if given is not None:
        return _given(given, mark)
    if mark:
        return Encoding(_MARKS[mark], mark)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return single_byte_encoding(path)
    return UTF8


def _given(name: str, mark: bytes) -> Encoding:
    try:
        info = codecs.lookup(name)
        is_text = info._is_text_encoding
    except (LookupError, TypeError):
        is_text = False
    if not is_text:
        raise ValueError(f"encoding {name!r:.40} is not known; use a name such as utf-8, cp1252, latin-1 or utf-16")
    if mark and _MARKS[mark].startswith(info.name.removesuffix("-sig")):
        return Encoding(_MARKS[mark], mark)  # The mark says which UTF-16 it is, and is no part of the first name.
    return Encoding(_UNMARKED.get(info.name, info.name))


def single_byte_encoding(path: Path) -> Encoding:
    """Windows-1252, if all bytes of a file are characters of it and none look like UTF-8."""
    decoder, rest = codecs.getincrementaldecoder("cp1252")(), b""
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            if b"\0" in chunk:
                raise ValueError(f"{printable(path)} is not a text table: it has bytes that are no text; {_REMEDY}")
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                raise NotUtf8(path) from None
            if _UTF8.search(rest + chunk):
                raise NotUtf8(path)
            rest = chunk[-3:]
    return Encoding("cp1252")


def opened_text(path: Path, encoding: Encoding, start: int = 0):
    """The file as a stream of UTF-8 bytes, from byte `start` of them; a mark of UTF-8 counts, others are left out."""
    if encoding.is_utf8:
        file = open(path, "rb")  # noqa: SIM115
        file.seek(start)
        return file
    pyarrow = needed_module("pyarrow", "cli")
    source = pyarrow.OSFile(str(path), "rb")
    source.seek(len(encoding.mark))
    stream = pyarrow.transcoding_input_stream(source, encoding.codec, "utf-8")
    while start > 0:
        start -= len(stream.read(min(start, _CHUNK)))
    return stream
