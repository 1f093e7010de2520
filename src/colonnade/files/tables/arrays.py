"""npy and npz files, also the sparse matrices of scipy; nothing is unpickled, nothing allocated that is not there."""

from __future__ import annotations

import errno
import struct
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from tokenize import TokenError

import numpy as np

from ..._support.arguments import printable
from ..._support.atomic_writing import in_bytes
from ..._support.storage import opened_file
from ...data.observations import Observations
from .kinds import TIMES_ARRAY, FileForm, one_line, refuse_beyond_memory, safe_key

_ROW_KEYS = "row_names", "rows"
_COLUMN_KEYS = "column_names", "columns", "cols"
# Of damaged archives: RuntimeError where one seems to need a password or an unknown way to unpack, KeyError where a
# part is not there.
_DAMAGE = zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, KeyError


def read_npy(path: Path, limit: float | None = None) -> Observations:
    """What an npy file holds; it is mapped, not read whole."""
    with open(path, "rb") as file:
        _check_header(file, path.stat().st_size, printable(path))
    refuse_beyond_memory(path, path.stat().st_size, times=TIMES_ARRAY, limit=limit)
    return Observations.from_dense(np.load(path, mmap_mode="r", allow_pickle=False), origin=FileForm("npy"))


def read_npz(path: Path, key: str | None, limit: float | None = None) -> Observations:
    """The sparse matrix, or the array under `key`, or the only one of two dimensions; with names if there are any."""
    try:
        headers = checked_headers(path, limit)
        with np.load(path, allow_pickle=False) as arrays:
            if {"format", "shape"} <= headers.keys():
                return _sparse(path, arrays, headers)
            key = _chosen(path, headers, key)
            refuse_beyond_memory(path, _size(*headers[key]), f", array {key!r:.60},", times=TIMES_ARRAY, limit=limit)
            names, name_keys = _names(arrays, headers, headers[key][0])
            form = FileForm("npz", key=key, name_keys=name_keys)
            return Observations.from_dense(arrays[f"{key}.npy"], **names, origin=form)
    except (*_DAMAGE, OSError) as error:
        # EINVAL is a place before the beginning of the file.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise ValueError(f"{printable(path)} is damaged or not an npz file: {one_line(error)}") from error


def _check_header(stream, size: int, name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype that an npy stream of `size` bytes declares, if they agree with its size and hold no objects."""
    try:
        version = np.lib.format.read_magic(stream)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise ValueError(f"its version {version[0]}.{version[1]} is for arrays with fields")
        shape, _, dtype = readers[version](stream)
    except (ValueError, SyntaxError, TokenError) as error:
        raise ValueError(f"{name} is damaged or not an npy array: {one_line(error)}") from error
    if dtype.hasobject:
        raise ValueError(f"{name} holds pickled Python objects, which are never loaded: save plain numbers")
    needed = _size(shape, dtype)
    if needed < 0 or stream.tell() + needed != size:
        raise ValueError(
            f"{name} is damaged: it declares {dtype} of shape {shape}, {in_bytes(needed)}, and holds"
            f" {in_bytes(size - stream.tell())}"
        )
    return shape, dtype


def _size(shape, dtype: np.dtype) -> int:
    """Bytes of an array."""
    size = dtype.itemsize
    for length in shape:
        size *= int(length)
    return size


def checked_headers(path: Path, limit: float | None = None) -> dict:
    """(shape, dtype) of every array in an npz file; each fits into memory and holds numbers or text."""
    headers = {}
    with opened_file(path) as file, zipfile.ZipFile(file) as archive:
        members = Counter(archive.namelist())
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                name = member.filename[:-4]
                if name in members or members[member.filename] > 1:  # numpy would take one of them.
                    raise ValueError(f"{printable(path)} holds two arrays {name!r:.60}; save it anew")
                refuse_beyond_memory(path, member.file_size, f", array {name!r:.60},", limit=limit)
                with archive.open(member) as stream:
                    headers[name] = _check_header(stream, member.file_size, f"{printable(path)}, array {name!r:.60},")
    if not headers:
        raise ValueError(f"{printable(path)} holds no array")
    return headers


def _chosen(path: Path, headers: dict, key: str | None) -> str:
    if key is not None:
        if key not in headers:
            raise ValueError(f"{printable(path)} has no array {key!r}; it has {_listed(headers)}")
        return safe_key(path, key)
    tables = [name for name, (shape, _) in headers.items() if len(shape) == 2]
    if len(tables) != 1:
        raise ValueError(
            f"{printable(path)} holds {len(tables)} arrays of two dimensions, so name one by its key;"
            f" it has {_listed(headers)}"
        )
    return safe_key(path, tables[0])


def _listed(headers: dict) -> str:
    parts = [f"{name!r:.60} of shape {shape}" for name, (shape, _) in list(headers.items())[:8]]
    return ", ".join(parts) + (", ..." if len(headers) > 8 else "")


def _names(arrays, headers: dict, shape) -> tuple[dict, tuple]:
    """Names of rows and columns that lie beside the matrix, and under which keys."""
    names: dict = {}
    keys: list[str | None] = [None, None]
    for side, (argument, candidates) in enumerate((("row_names", _ROW_KEYS), ("column_names", _COLUMN_KEYS))):
        for candidate in candidates:
            length, dtype = headers.get(candidate, (None, None))
            if length == tuple(shape[side : side + 1]) and dtype.kind == "U":
                names[argument], keys[side] = arrays[f"{candidate}.npy"], candidate
                break
    return names, tuple(keys)


def _sparse(path: Path, arrays, headers: dict) -> Observations:
    from scipy import sparse

    try:
        S = sparse.load_npz(path)
        names, name_keys = _names(arrays, headers, S.shape)
        form = FileForm("npz", name_keys=name_keys, sparse=True)
        return Observations.from_sparse(S, **names, origin=form)
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{printable(path)} is not a sound sparse matrix: {one_line(error)}") from error
