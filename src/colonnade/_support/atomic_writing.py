"""Writing in one step: under its final name a file or folder is absent, the old one, or complete.

A file or folder of the user is made in a hidden folder of ours beside it; one that a killed run has left is removed by
the next run. A file of a run, whose folder is ours already, is made under another name in that folder.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from .ownership import begun_folder, discard, like, locked, set_aside
from .storage import Url, as_path

EXISTS = "it exists; choose another name, or replace it with --force (force=True)"
_UNFINISHED = ".unfinished"


@contextmanager
def new_file(path, *, force: bool = False) -> Iterator[Path]:
    """A name to write to; it becomes `path` when the block ends well, and is gone when not.

    A file that is replaced leaves its mode to the new one.
    """
    path = as_path(path)
    if isinstance(path, Url):
        refuse_existing(path, force)
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / path.name
            path.upload(Path(folder) / path.name)
        return
    with _working_name(path, force) as working:
        yield working
        sync(working)
        refuse_existing(path, force)  # Another process may have come first.
        if path.exists():
            like(path, working)
        os.replace(working, path)
    sync(path.absolute().parent)


@contextmanager
def new_folder(path, *, force: bool = False, is_ours: Callable[[Path], bool] = lambda path: False) -> Iterator[Path]:
    """The same for a folder, which is made; with `force`, one that `is_ours` is replaced, never another."""
    path = as_path(path)
    if isinstance(path, Url):
        refuse_existing(path, force, is_ours)
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
            _upload(Path(folder), path)
        return
    with _working_name(path, force, is_ours) as working:
        working.mkdir()
        yield working
        for found in [working, *working.rglob("*")]:
            sync(found)
        refuse_existing(path, force, is_ours)
        if path.exists():
            like(path, working)
            set_aside(path, working.parent)
        os.rename(working, path)
    sync(path.absolute().parent)


@contextmanager
def publishing(path: Path):
    """A file of a run to write into, which gets its name only when all of it is on the disk."""
    if isinstance(path, Url):
        with tempfile.NamedTemporaryFile() as file:
            yield file
            file.flush()
            path.upload(file.name)
        return
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}{_UNFINISHED}")  # Two workers may write the same file.
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
    for left in () if isinstance(folder, Url) else folder.rglob("*" + _UNFINISHED):
        if re.search(rf"\.[0-9a-f]{{32}}{re.escape(_UNFINISHED)}$", left.name):
            left.unlink(missing_ok=True)


def publish(path: Path, *parts) -> None:
    """Write bytes-like parts, one after the other."""
    if isinstance(path, Url):
        path.write_bytes(b"".join(parts))
        return
    with publishing(path) as file:
        for part in parts:
            file.write(part)


@contextmanager
def _working_name(path: Path, force: bool, is_ours: Callable[[Path], bool] = lambda path: False) -> Iterator[Path]:
    """A name in a folder of ours that is removed at the end; after an error, what was set aside there returns."""
    refuse_existing(path, force, is_ours)
    folder = None
    try:
        folder = begun_folder(path, {})
        with locked(folder):
            try:
                yield folder / "content"
            finally:
                discard(folder, path)
    except OSError as error:
        name_file(error, path, folder or path)
        raise


def refuse_existing(path, force: bool = False, is_ours: Callable[..., bool] = lambda path: False) -> None:
    """Say early that `path` cannot be written."""
    path = as_path(path)
    if isinstance(path, Url):
        if path.exists() and not force:
            raise FileExistsError(errno.EEXIST, EXISTS, str(path))
        if path.is_dir() and not is_ours(path):
            raise FileExistsError(errno.EEXIST, "it is a folder with other things; choose another name", str(path))
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder does not exist, create it first", str(folder))
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, "the folder cannot be written to", str(folder))
    if not os.path.lexists(path):
        return
    if not force:
        raise FileExistsError(errno.EEXIST, EXISTS, str(path))
    if path.is_symlink():
        raise FileExistsError(errno.EEXIST, "it is a link; name what it points to, or remove the link", str(path))
    if not path.is_dir() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it is neither a file nor a folder; choose another name", str(path))
    if path.is_dir() and not is_ours(path):
        raise FileExistsError(errno.EEXIST, "it is a folder with other things; choose another name", str(path))


def _upload(folder: Path, url: Url) -> None:
    """Copy a folder into a store; the description of a Zarr array goes last, because it says that all else is there."""
    paths = [found for found in folder.rglob("*") if found.is_file()]
    for found in sorted(paths, key=lambda found: (found.name in ("zarr.json", ".zarray"), found)):
        (url / found.relative_to(folder).as_posix()).upload(found)


def refuse_without_room(path, needed: float) -> None:
    """Say early that the disk is too small."""
    if isinstance(path, Url):
        return
    folder = Path(path).absolute().parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        why = f"no room on the disk for about {in_bytes(needed)}, {in_bytes(free)} are free"
        raise OSError(errno.ENOSPC, why, str(path))


def sync(path: Path) -> None:
    """Bring a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # Some systems cannot do it for folders.
            raise
    finally:
        os.close(handle)


def in_bytes(size: float) -> str:
    """A size in words."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(size) < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def name_file(error: BaseException, path: Path, working: Path) -> None:
    """Let an error of the disk tell which file was to be written, not under which name it was begun."""
    if not isinstance(error, OSError) or error.errno is None:
        return
    if error.filename is None or str(error.filename).startswith(str(working)):
        error.filename = str(path)
