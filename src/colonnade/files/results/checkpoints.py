"""Files of a long run: each is whole or absent, and a run that was killed can be continued.

A run works in the folder NAME.partial beside its result NAME. Every file is written under a temporary name, brought to
the disk and renamed; small JSON records say which files are finished and what their checksums are. At the end the
folder gets its final name. The record of the run and a lock tell whose folder it is (`_support/ownership.py`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tokenize import TokenError

import numpy as np

from ..._support.arguments import printable
from ..._support.atomic_writing import publish, refuse_existing, remove_unfinished, sync
from ..._support.ownership import (
    LOCK,
    RECORD,
    REPLACED,
    RunRefused,
    begun_folder,
    discard,
    like,
    locked,
    record_of,
    remove_left_behind,
    set_aside,
)
from ..._support.storage import REQUESTS, Url, opened_file
from ..tables.partitions import partition_of

_SAMPLE_BYTES, _SAMPLES = 65_536, 64  # Bytes of a sample, and samples of a file, for its fingerprint.


def publish_array(path: Path, array: np.ndarray) -> str:
    """Write an .npy file; returns the checksum of the array."""
    array = np.ascontiguousarray(array)
    publish(path, npy_header(array.shape, array.dtype), array.data.cast("B") if array.size else b"")
    return checksum(array)


def npy_header(shape, dtype) -> bytes:
    """With what an .npy file of a C-ordered array begins."""
    header = io.BytesIO()
    facts = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(header, facts)
    return header.getvalue()


def publish_json(path: Path, facts: dict) -> None:
    publish(path, (json.dumps(facts, indent=1) + "\n").encode())


def checksum(array: np.ndarray) -> str:
    """SHA-256 of the type, the shape and the numbers of an array."""
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).data if array.size else b"")
    return digest.hexdigest()


def checksum_of_file(path: Path) -> str:
    """The same of an .npy file that is read a little at a time."""
    with opened_file(path) as file:
        shape, dtype = _declared(file, path)
        digest = hashlib.sha256(f"{dtype.str}{shape}".encode())
        while part := file.read(1 << 24):
            digest.update(part)
    return digest.hexdigest()


def read_array(path: Path, expected: str | None = None, *, mapped: bool = False) -> np.ndarray:
    """An array that `publish_array` wrote; its checksum is compared if there is one to compare with.

    A header that declares another size than the file has is refused before anything is allocated.
    """
    if isinstance(path, Url):
        return _read_whole(path, expected)
    if mapped and expected is not None and checksum_of_file(path) != expected:
        raise ValueError(f"the checksum of {path.name} does not agree")
    with open(path, "rb") as file:
        shape, dtype = _declared(file, path)
        if mapped and 0 not in shape:
            return np.memmap(path, dtype, "r", file.tell(), shape)
        array = np.empty(shape, dtype)
        if array.size and file.readinto(array.data.cast("B")) != array.nbytes:
            raise ValueError(f"{path.name} ends too early")
    if expected is not None and checksum(array) != expected:
        raise ValueError(f"the checksum of {path.name} does not agree")
    return array


def place_of_array(path) -> tuple[np.dtype, int]:
    """The type of the array in an .npy file, and the byte at which its numbers begin."""
    with opened_file(path) as file:
        _, dtype = _declared(file, path)
        return dtype, file.tell()


def _read_whole(path: Url, expected: str | None) -> np.ndarray:
    """An array from one request, which may be written to like any other."""
    content = bytearray(path.read_bytes())
    file = io.BytesIO(content)
    shape, dtype = _declared(file, path)
    array = (
        np.frombuffer(content, dtype, offset=file.tell()).reshape(shape) if 0 not in shape else np.empty(shape, dtype)
    )
    if expected is not None and checksum(array) != expected:
        raise ValueError(f"the checksum of {path.name} does not agree")
    return array


def _declared(file, path) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of the array in an open .npy file, if the file has just the size that its header declares."""
    name = path.name
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{name} is not of the version of .npy that is written here")
    try:
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    except (
        TokenError,
        SyntaxError,
    ) as error:  # NumPy looks for the numbers of Python 2 in a header that it cannot read.
        raise ValueError(f"{name} has a damaged header") from error
    at = file.tell()
    room, size = file.seek(0, 2) - at, int(np.prod(shape, dtype=object))
    file.seek(at)
    if dtype.hasobject or (fortran and len(shape) > 1) or dtype.itemsize * size != room:
        raise ValueError(f"{name} is not what its header declares, {dtype} of shape {shape}")
    return shape, dtype


def read_json(path: Path) -> dict:
    content = json.loads(path.read_text("utf-8"))
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} does not hold facts")
    return content


def fingerprint(path: Path) -> dict:
    """What tells whether a file has changed: its size, its time, and a checksum of its two ends and parts between."""
    if isinstance(path, Url):
        return _fingerprint_of_url(path)
    facts = path.stat()
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for at in np.unique(np.linspace(0, max(0, facts.st_size - _SAMPLE_BYTES), _SAMPLES).astype(np.int64)):
            file.seek(at)
            digest.update(file.read(_SAMPLE_BYTES))
    return {"name": path.name, "size": facts.st_size, "time": facts.st_mtime_ns, "sha256": digest.hexdigest()}


def fingerprints(paths) -> list[dict]:
    """Of some files; a store is asked for several at a time."""
    with ThreadPoolExecutor(REQUESTS if any(isinstance(path, Url) for path in paths) else 1) as pool:
        found = list(pool.map(fingerprint, paths))
    parts = [partition_of(path) for path in paths]
    return [one if part is None else {**one, "folders": part.values} for one, part in zip(found, parts)]


def _fingerprint_of_url(path: Url) -> dict:
    """What the store says of a file: its size, and its checksum or time."""
    facts = path.facts()
    if facts is None:
        path.stat()  # says that there is no such file
    known = {name: str(facts[name]) for name in ("ETag", "etag", "md5Hash", "LastModified", "mtime") if facts.get(name)}
    return {"name": path.name, "size": facts.get("size"), "store": known}


def partial_folder(out: Path) -> Path:
    """Where a run works until its result is complete."""
    return out.with_name(out.name + ".partial")


@contextmanager
def working_folder(out: Path, identity: dict, *, resume: bool, force: bool = False, is_ours=lambda path: False):
    """The locked folder of a run, which gets the name `out` when the block of the `with` statement ends well.

    After an interrupt or an error of the disk the finished files stay, to be continued; after another error, which
    would only come again, the folder is removed.

    Parameters
    ----------
    out : path
        Of the result, which must not exist unless `force` says so.
    identity : dict
        What decides the numbers: fingerprints of the input, and settings. A run is continued with the same only.
    resume : bool
        Continue the run that an earlier process began, if there is one.
    force, is_ours : bool, function of a path
        Replace a folder `out` that is ours at the end.
    """
    folder, identity = partial_folder(out), json.loads(json.dumps(identity))
    remove_left_behind(out)
    refuse_existing(out, force, is_ours)
    if not os.path.lexists(folder):
        begun_folder(out, identity, folder)
    elif not resume and record_of(folder) is not None:
        raise RunRefused(
            f"an unfinished run is in {printable(folder)}; continue it with --resume (resume=True),"
            " or remove that folder"
        )
    _refuse_another_run(folder, identity)
    with locked(folder):
        _refuse_another_run(folder, identity)
        remove_unfinished(folder)
        try:
            yield folder
            sync(folder)
            refuse_existing(out, force, is_ours)
            if out.exists():
                like(out, folder)
                set_aside(out, folder)
            os.replace(folder, out)
        except (ValueError, TypeError, IndexError):
            discard(folder, out)
            raise
        except BaseException:
            if (folder / REPLACED).exists() and not os.path.lexists(out):
                os.rename(folder / REPLACED, out)
            raise
        remove_marks(out)
        sync(out.absolute().parent)


def remove_marks(out: Path) -> None:
    """Remove what a run has in its result until its very end, at which it may have been killed."""
    if record_of(out) is not None:
        remove_unfinished(out)  # of a worker that had not heard that its task was no longer wanted
        shutil.rmtree(out / REPLACED, ignore_errors=True)
        (out / LOCK).unlink(missing_ok=True)
        (out / RECORD).unlink()


def remove_unneeded(out: Path, identity: dict) -> None:
    """Remove what is left of a run whose result is complete already, unless it still works."""
    remove_left_behind(out)
    folder = partial_folder(out)
    if _other_facts(folder, json.loads(json.dumps(identity))) == []:
        with suppress(RunRefused), locked(folder):
            discard(folder, out)


def _other_facts(folder: Path, identity: dict) -> list[str] | None:
    """In what a run differs from the one in a folder; None if the folder is not ours."""
    before = record_of(folder)
    if before is None:
        return None
    return sorted(key for key in {*before, *identity} - {"result"} if before.get(key) != identity.get(key))


def _refuse_another_run(folder: Path, identity: dict) -> None:
    """Refuse to continue another run, or to touch a folder that is not ours."""
    changed = _other_facts(folder, identity)
    if changed is None:
        raise RunRefused(
            f"{printable(folder)} is not a folder of an unfinished run, and a run would work under this name: rename or"
            " remove it, or choose another name for the result"
        )
    if changed:
        raise RunRefused(
            f"the unfinished run in {printable(folder)} was begun with other {' and other '.join(changed)}: repeat it"
            " as it was, or remove that folder and start anew"
        )
