"""Runs that write to a store without renaming, such as S3: blocks first, the manifest last.

    OUT/run-1f0c.../    everything that the run writes, under a name that its input and settings decide
    OUT/facts.json      the manifest, written in one step at the end; it names the folder of the run

Readers see the old result or none until the manifest is there. Two processes with the same input and settings write the
same bytes under the same names, so that no lock is needed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..._support.arguments import printable
from ..._support.atomic_writing import EXISTS
from ..._support.ownership import RECORD, RunRefused
from ..._support.storage import Url
from .checkpoints import publish_json, read_json
from .manifests import FACTS, FOLDER, SEAL, read_facts, sealed

_NAME = re.compile(r"run-[0-9a-f]{16}")


def folder_of(out, facts: dict):
    """Where the files of a result are: the folder itself, or the one that its manifest names."""
    name = facts.get(FOLDER)
    if name is None:
        return out
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{FACTS} names a folder that no run makes")
    return out / name


def run_name(identity: dict) -> str:
    """The name of the folder of a run, which its input and its settings decide."""
    return "run-" + hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def working_address(out: Url, identity: dict, *, resume: bool, force: bool) -> Iterator[Url]:
    """The folder of a run, whose manifest is published when the block of the `with` statement ends well.

    As `checkpoints.working_folder`: finished files stay after an interrupt or an error of the network, and are removed
    after an error that would only come again.
    """
    identity = json.loads(json.dumps(identity))
    folder, before = out / run_name(identity), _published(out)
    _refuse_others(out, folder, before, identity, resume=resume, force=force)
    publish_json(folder / RECORD, identity)
    try:
        yield folder
    except (ValueError, TypeError, IndexError):
        with suppress(OSError):
            folder.remove_tree()
        raise
    facts = read_facts(folder)
    del facts[SEAL]
    publish_json(out / FACTS, sealed({**facts, FOLDER: folder.name}))
    (folder / FACTS).unlink(missing_ok=True)
    (folder / RECORD).unlink(missing_ok=True)
    if before is not None and before.get(FOLDER) != folder.name:
        folder_of(out, before).remove_tree() if FOLDER in before else None


def _published(out: Url) -> dict | None:
    """The manifest of a result that is there; None if there is none."""
    return read_facts(out) if (out / FACTS).is_file() else None


def _refuse_others(out: Url, folder: Url, before: dict | None, identity: dict, *, resume: bool, force: bool) -> None:
    """Refuse to replace a result that nobody has forced, to touch other files, and to begin beside another run."""
    if before is not None and not force:
        raise FileExistsError(errno.EEXIST, EXISTS, str(out))
    result = None if before is None else before.get(FOLDER)
    found = [one.name for one in out.iterdir() if one.name not in (FACTS, result)]
    others = [name for name in found if not _NAME.fullmatch(name)]
    if others and result is None:
        raise FileExistsError(errno.EEXIST, "it is a folder with other things; choose another name", str(out))
    for name in [name for name in found if _NAME.fullmatch(name)]:
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
