"""Members of a zip file in bounded memory, also those compressed with Zstandard (as Inspect does)."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path

from ...._support.printable import printable
from .json_text import DOCUMENT_BYTES, parsed, refuse_large

_ZSTANDARD = 93  # The number of the method in the zip format; Python's own zipfile reads it from 3.14 on.
_LOCAL_HEADER = struct.Struct("<4s5H3L2H")


class ZipMembers:
    """The JSON documents in a zip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
            raise ValueError(f"{printable(path)} is not a complete zip file ({error}): copy it again in full") from None
        self.names = self._zip.namelist()

    def __enter__(self) -> ZipMembers:
        return self

    def __exit__(self, *_) -> None:
        self._zip.close()

    def document(self, name: str) -> object:
        """A member as JSON."""
        info = self._zip.getinfo(name)
        place = f"{printable(name)} in {printable(self.path)}"
        refuse_large(info.file_size, place)
        try:
            data = self._zstandard(info) if info.compress_type == _ZSTANDARD else self._plain(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error) as error:
            raise ValueError(f"{place} cannot be unpacked ({error}): copy the file again in full") from None
        refuse_large(len(data), place)
        return parsed(data, place, by_line=True)

    def _plain(self, info: zipfile.ZipInfo) -> bytes:
        with self._zip.open(info) as member:
            return member.read(DOCUMENT_BYTES + 1)

    def _zstandard(self, info: zipfile.ZipInfo) -> bytes:
        """Unpack with pyarrow, and check what zipfile would check."""
        try:
            import pyarrow
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"{printable(self.path)} is compressed with Zstandard: pip install 'colonnade[cli]' to read it"
            ) from None
        with open(self.path, "rb") as file:
            file.seek(info.header_offset)
            header = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            file.seek(header[-2] + header[-1], 1)
            packed = file.read(min(info.compress_size, DOCUMENT_BYTES))
        try:
            with pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd") as stream:
                data = stream.read(DOCUMENT_BYTES + 1)
        except OSError as error:
            raise zipfile.BadZipFile(str(error)) from None
        if len(data) <= DOCUMENT_BYTES and zlib.crc32(data) != info.CRC:
            raise zipfile.BadZipFile("its checksum differs")
        return data
