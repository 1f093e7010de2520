"""Folders that are ours: each has a record and a lock, and only such folders are ever removed, renamed or written to.

The record, run.json, is in the folder before the folder is found under its name. The lock is held as long as a run
lasts; the operating system lifts it even after kill -9.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .printable import printable

RECORD, LOCK, REPLACED = MARKS = "run.json", "lock", "replaced"
_FORMAT = "colonnade run 1"
_RESULT = "result"


class RunRefused(FileExistsError):
    """A folder is not ours, holds another run, or belongs to one that still works."""


def record_of(folder: Path) -> dict | None:
    """What the record of a folder says; None of a folder that is not ours, of a link, and of anything else."""
    record = folder / RECORD
    if folder.is_symlink() or not record.is_file():
        return None
    try:
        content = json.loads(record.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
        return None
    return content


def begun_folder(path: Path, facts: dict, name: Path | None = None) -> Path:
    """Make a folder of ours beside `path`, under a hidden name of its own until its record is on the disk.

    Parameters
    ----------
    path : path
        The file or folder that will be made in it. What killed runs for it have left is removed.
    facts : dict
        The content of the record.
    name : path, optional
        The name to give it at the end; nothing may have it. Default: the hidden one.
    """
    remove_left_behind(path)
    folder, old = _hidden_name(path), path if name is not None and path.is_dir() else None
    folder.mkdir(mode=0o777 if name is not None and old is None else 0o700)
    try:
        with open(folder / RECORD, "w", encoding="utf-8") as file:
            file.write(json.dumps({"format": _FORMAT, _RESULT: path.name, **facts}, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if old is not None:
            like(old, folder)
        if name is not None:
            os.rename(folder, name)
    except BaseException:
        remove_folder(folder)
        raise
    return folder if name is None else name


def _hidden_name(path: Path) -> Path:
    return path.absolute().parent / f".{path.name[:50]}.{secrets.token_hex(4)}.partial"


def like(old: Path, new: Path) -> None:
    """Give a file or folder the owner and the mode of the one that it will replace, as far as one may."""
    facts, own = old.stat(), new.stat()
    mode = stat.S_IMODE(facts.st_mode)
    if (facts.st_uid, facts.st_gid) != (own.st_uid, own.st_gid):
        try:
            os.chown(new, facts.st_uid, facts.st_gid)
        except OSError:
            mode &= ~stat.S_IRWXG  # The group was not meant to read it.
    os.chmod(new, mode)


def remove_left_behind(path: Path) -> None:
    """Remove the hidden folders of killed runs that were to make `path`; a result that one had set aside returns."""
    ours = re.compile(re.escape(f".{path.name[:50]}.") + r"[0-9a-f]{8}\.partial")
    parent = path.absolute().parent
    with suppress(OSError):
        for name in [name for name in os.listdir(parent) if ours.fullmatch(name)]:
            _remove_one_left_behind(parent / name, path)


def _remove_one_left_behind(folder: Path, path: Path) -> None:
    record = record_of(folder)
    if record is None:  # The run was killed before it wrote the record: the folder is empty, or its record is.
        with suppress(OSError):
            if not folder.is_symlink() and (folder / RECORD).stat().st_size == 0 and os.listdir(folder) == [RECORD]:
                (folder / RECORD).unlink()
        with suppress(OSError):
            folder.rmdir()
    elif record.get(_RESULT) == path.name:
        with suppress(OSError), locked(folder):
            discard(folder, path)


def discard(folder: Path, path: Path) -> None:
    """Remove a folder of ours that will not become `path`; a result that it had set aside returns.

    It gets another name first, so that no worker of a cluster writes into it any more.
    """
    if (folder / REPLACED).exists() and not os.path.lexists(path):
        os.rename(folder / REPLACED, path)
    hidden = _hidden_name(path)
    with suppress(OSError):
        os.rename(folder, hidden)
    for left in (hidden, folder):
        remove_folder(left)


def remove_folder(folder: Path) -> None:
    """Remove a folder of ours; its record goes last, so that after kill -9 the rest is still known as ours."""
    with suppress(OSError):
        for found in [found for found in os.scandir(folder) if found.name != RECORD]:
            if found.is_dir(follow_symlinks=False):
                shutil.rmtree(found)
            else:
                os.unlink(found)
        (folder / RECORD).unlink(missing_ok=True)
        folder.rmdir()


def set_aside(path: Path, folder: Path) -> None:
    """Move what has the name `path` into the folder of ours that will replace it."""
    shutil.rmtree(folder / REPLACED, ignore_errors=True)
    os.rename(path, folder / REPLACED)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder of ours; the system lifts the lock when this process ends."""
    refused = f"another run works in {printable(folder)}; wait until it ends, or choose another name"
    try:
        file = open(folder / LOCK, "ab")  # noqa: SIM115
    except FileNotFoundError:
        raise RunRefused(refused) from None
    with file:
        try:
            _lock(file)
            is_there = os.path.samestat(os.fstat(file.fileno()), os.stat(folder / LOCK))
        except OSError:
            is_there = False
        if not is_there:
            raise RunRefused(refused)
        yield


def _lock(file) -> None:
    try:
        import fcntl
    except ModuleNotFoundError:
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # Windows only.
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
