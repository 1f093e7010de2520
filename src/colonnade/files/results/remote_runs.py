"""Runs that write to a store without renaming, such as S3: blocks first, the manifest last.

    OUT/run-1f0c.../    everything that the run writes, under a name that its input and settings decide
    OUT/saved-9a2b.../  the same of a result that was in memory, under a name that its content decides
    OUT/facts.json      the manifest, written in one step at the end; it names the folder of the run

Readers see the old result or none until the manifest is there. Two processes with the same input and settings write the
same bytes under the same names, so that no lock is needed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..._support.arguments import printable
from ..._support.atomic_writing import EXISTS
from ..._support.ownership import RECORD, RunRefused
from ..._support.storage import Url
from .checkpoints import publish_json, read_json
from .manifests import FACTS, FOLDER, SEAL, files_of, read_facts, sealed

_NAME = re.compile(r"(run|saved)-[0-9a-f]{16}")


def folder_of(out, facts: dict):
    """Where the files of a result are: the folder itself, or the one that its manifest names."""
    name = facts.get(FOLDER)
    if name is None:
        return out
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{FACTS} names a folder that no run makes")
    return out / name


def run_name(identity: dict, kind: str = "run") -> str:
    """The name of the folder of a run, which its input and its settings decide."""
    return f"{kind}-" + hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def working_address(out: Url, identity: dict, *, resume: bool, force: bool) -> Iterator[Url]:
    """The folder of a run, whose manifest is published when the block of the `with` statement ends well.

    As `checkpoints.working_folder`: finished files stay after an interrupt or an error of the network, and are removed
    after an error that would only come again.
    """
    identity = json.loads(json.dumps(identity))
    folder, before = out / run_name(identity), refuse_occupied(out, force=force)
    _refuse_other_runs(folder, before, identity, resume=resume)
    publish_json(folder / RECORD, identity)
    try:
        yield folder
    except (ValueError, TypeError, IndexError):
        with suppress(OSError):
            folder.remove_tree()
        raise
    _publish(out, folder, read_facts(folder), before)
    (folder / FACTS).unlink(missing_ok=True)
    (folder / RECORD).unlink(missing_ok=True)


@contextmanager
def saved_address(out: Url, *, force: bool) -> Iterator[Path]:
    """A folder of this machine, whose content becomes the result at an address when the block ends well."""
    before = refuse_occupied(out, force=force)
    with tempfile.TemporaryDirectory() as working:
        yield Path(working)
        facts = read_facts(Path(working))
        folder = out / run_name(facts, "saved")
        for found in sorted(Path(working).rglob("*")):
            if found.is_file() and found.name != FACTS:
                (folder / found.relative_to(working).as_posix()).upload(found)
        _publish(out, folder, facts, before)


def _publish(out: Url, folder: Url, facts: dict, before: dict | None) -> None:
    """Write the manifest, and remove the files of the result that it replaces."""
    del facts[SEAL]
    publish_json(out / FACTS, sealed({**facts, FOLDER: folder.name}))
    if before is None or before.get(FOLDER) == folder.name:
        return
    if FOLDER in before:
        folder_of(out, before).remove_tree()
    else:  # Such as a result that was copied there.
        for left in files_of(out, before):
            left.unlink(missing_ok=True)


def _published(out: Url) -> dict | None:
    """The manifest of a result that is there; None if there is none."""
    return read_facts(out) if (out / FACTS).is_file() else None


def refuse_occupied(out: Url, *, force: bool) -> dict | None:
    """Refuse to replace a result that nobody has forced, and to write among other files.

    Returns the manifest of the result that will be replaced, None if there is none.
    """
    before = _published(out)
    if before is not None and not force:
        raise FileExistsError(errno.EEXIST, EXISTS, str(out))
    if before is None and not all(_NAME.fullmatch(one.name) for one in out.iterdir()):
        raise FileExistsError(errno.EEXIST, "it is a folder with other things; choose another name", str(out))
    return before


def _refuse_other_runs(folder: Url, before: dict | None, identity: dict, *, resume: bool) -> None:
    """Refuse to begin beside an unfinished run, and to continue another one."""
    out, result = folder.parent, None if before is None else before.get(FOLDER)
    found = [one.name for one in out.iterdir() if _NAME.fullmatch(one.name)]
    for name in [name for name in found if name.startswith("run") and name != result]:
        if not resume:
            raise RunRefused(
                f"an unfinished run is in {printable(out / name)}; continue it with --resume (resume=True),"
                " or remove that folder"
            )
        if name != folder.name:
            raise RunRefused(
                f"the unfinished run in {printable(out / name)} was begun with other {_changed(out / name, identity)}:"
                " repeat it as it was, or remove that folder and start anew"
            )


def _changed(folder: Url, identity: dict) -> str:
    try:
        begun = read_json(folder / RECORD)
    except (OSError, ValueError):
        return "input or settings"
    return " and other ".join(sorted(key for key in {*begun, *identity} if begun.get(key) != identity.get(key)))
