"""Files of a long run: each is whole or absent, and a run that was killed can be continued.

A run works in the folder NAME.partial beside its result NAME. Every file is written under a temporary name, brought to
the disk and renamed; small JSON records say which files are finished and what their checksums are. At the end the
folder gets its final name. A lock keeps a second run out, and the operating system lifts it even after kill -9.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import numpy as np

from ._arguments import printable
from ._writing import name_file, refuse_existing, sync

_UNFINISHED = ".unfinished"
_LOCK, _RUN = MARKS = "lock", "run.json"
_SAMPLE_BYTES, _SAMPLES = 65_536, 64  # of a file, that are read for its fingerprint


class RunRefused(FileExistsError):
    """A folder holds another run, or belongs to one that still works."""


@contextmanager
def publishing(path: Path):
    """A file to write into, which gets its name only when all of it is on the disk; after an error it is gone."""
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}{_UNFINISHED}")  # two workers may write the same file
    try:
        with open(unfinished, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        name_file(error, path, unfinished)
        raise


def remove_unfinished(folder: Path) -> None:
    """What processes that were killed have left."""
    for left in folder.rglob("*" + _UNFINISHED):
        left.unlink(missing_ok=True)


def publish(path: Path, *parts) -> None:
    """Write bytes-like parts, one after the other."""
    with publishing(path) as file:
        for part in parts:
            file.write(part)


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
    """The same of an .npy file, of which only a little is in memory at a time."""
    with open(path, "rb") as file:
        shape, dtype = _declared(file)
        digest = hashlib.sha256(f"{dtype.str}{shape}".encode())
        while part := file.read(1 << 24):
            digest.update(part)
    return digest.hexdigest()


def read_array(path: Path, expected: str | None = None, *, mapped: bool = False) -> np.ndarray:
    """An array that `publish_array` wrote; its checksum is compared if there is one to compare with.

    A header that declares another size than the file has is refused before anything is allocated.
    """
    if mapped and expected is not None and checksum_of_file(path) != expected:
        raise ValueError(f"the checksum of {path.name} does not agree")
    with open(path, "rb") as file:
        shape, dtype = _declared(file)
        if mapped and 0 not in shape:
            return np.memmap(path, dtype, "r", file.tell(), shape)
        array = np.empty(shape, dtype)
        if array.size and file.readinto(array.data.cast("B")) != array.nbytes:
            raise ValueError(f"{path.name} ends too early")
    if expected is not None and checksum(array) != expected:
        raise ValueError(f"the checksum of {path.name} does not agree")
    return array


def _declared(file) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of the array in an open .npy file, if the file has just the size that its header declares."""
    name = Path(file.name).name
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{name} is not of the version of .npy that is written here")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    room, size = os.fstat(file.fileno()).st_size - file.tell(), int(np.prod(shape, dtype=object))
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
    facts = path.stat()
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for at in np.unique(np.linspace(0, max(0, facts.st_size - _SAMPLE_BYTES), _SAMPLES).astype(np.int64)):
            file.seek(at)
            digest.update(file.read(_SAMPLE_BYTES))
    return {"name": path.name, "size": facts.st_size, "time": facts.st_mtime_ns, "sha256": digest.hexdigest()}


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
    folder = partial_folder(out)
    refuse_existing(out, force, is_ours)
    if (folder / _RUN).exists() and not resume:
        raise RunRefused(
            f"an unfinished run is in {printable(folder)}; continue it with --resume (resume=True),"
            " or remove that folder"
        )
    folder.mkdir(exist_ok=True)
    with _locked(folder):
        try:
            _check_identity(folder, json.loads(json.dumps(identity)))
            yield folder
            sync(folder)
            refuse_existing(out, force, is_ours)
            _replace(folder, out)
        except (ValueError, TypeError, IndexError):
            _remove(folder)
            raise
        except BaseException:
            if not (folder / _RUN).exists():
                shutil.rmtree(folder, ignore_errors=True)
            raise
        remove_marks(out)
        sync(out.absolute().parent)


def remove_marks(out: Path) -> None:
    """What a run leaves in and beside its result until its very end, at which it may have been killed."""
    for name in MARKS:
        (out / name).unlink(missing_ok=True)
    remove_unfinished(out)  # of a worker that had not heard that its task was no longer wanted
    shutil.rmtree(_replaced(out), ignore_errors=True)


def _replaced(out: Path) -> Path:
    return out.with_name(out.name + ".replaced")


def _replace(folder: Path, out: Path) -> None:
    """Give the folder its final name; a folder that had it is removed when it is out of the way."""
    old = _replaced(out)
    if out.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(out, old)
    try:
        os.replace(folder, out)
    except BaseException:
        if old.exists():
            os.replace(old, out)
        raise


def _remove(folder: Path) -> None:
    """Take the folder away in one step, for workers of a cluster may still write into it, and delete it."""
    removed = folder.with_name(folder.name + ".removed")
    with suppress(OSError):
        shutil.rmtree(removed, ignore_errors=True)
        os.replace(folder, removed)
    for left in (removed, folder):
        shutil.rmtree(left, ignore_errors=True)


def _check_identity(folder: Path, identity: dict) -> None:
    """Refuse to continue another run; note what this one is."""
    remove_unfinished(folder)
    path = folder / _RUN
    if not path.exists():
        publish_json(path, identity)
        return
    before = read_json(path)
    changed = sorted(key for key in {*before, *identity} if before.get(key) != identity.get(key))
    if changed:
        raise RunRefused(
            f"the unfinished run in {printable(folder)} was begun with other {' and other '.join(changed)}: repeat it"
            " as it was, or remove that folder and start anew"
        )


@contextmanager
def _locked(folder: Path):
    """Keep other processes out of the folder; a lock that the system lifts when this process ends, however it ends."""
    with open(folder / _LOCK, "ab") as file:
        try:
            _lock(file)
        except OSError:
            raise RunRefused(
                f"another run works in {printable(folder)}; wait until it ends, or choose another name"
            ) from None
        yield


def _lock(file) -> None:
    try:
        import fcntl
    except ModuleNotFoundError:
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
