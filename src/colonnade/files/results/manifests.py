"""The manifest of a result: its facts in JSON, sealed by a checksum, and the names of rows and columns beside them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..._support.arguments import as_names
from ..._support.atomic_writing import publish
from ..._support.ownership import MARKS, record_of
from ..._support.storage import StorageFailed
from .block_files import array_path
from .checkpoints import publish_json

FACTS, NAMES = "facts.json", "names.json"
SEAL, FOLDER = "sha256_of_facts", "folder"  # Facts: the checksum of the others; where the files are, at an address.
_FORMAT = "colonnade completion 4"


def sealed(facts: dict) -> dict:
    """The facts with a checksum of themselves."""
    return {**facts, SEAL: _checksum_of(facts)}


def read_facts(folder: Path) -> dict:
    """The facts of a result; damaged ones are refused."""
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    rest = {name: value for name, value in facts.items() if name != SEAL}
    if facts.get(SEAL) != _checksum_of(rest):
        raise ValueError(f"the checksum of {FACTS} does not agree")
    if facts.get("format") != _FORMAT:
        raise ValueError(f"its format is {facts.get('format')!r}, not {_FORMAT!r}")
    return facts


def _checksum_of(facts: dict) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def names_as_json(row_names, column_names) -> bytes | None:
    """Names, lists of str or None, as they are written; None if there are none."""
    if row_names is None and column_names is None:
        return None
    names = {"rows": row_names, "columns": column_names}
    return json.dumps({side: None if one is None else list(one) for side, one in names.items()}).encode()


def checksum_of_names(names: bytes | None) -> str | None:
    return None if names is None else hashlib.sha256(names).hexdigest()


def read_names(folder: Path, facts: dict) -> dict:
    """Names as keywords of `Observations`."""
    if facts.get("sha256_of_names") is None:
        return {}
    content = (folder / NAMES).read_bytes()
    if checksum_of_names(content) != facts["sha256_of_names"]:
        raise ValueError(f"the checksum of {NAMES} does not agree")
    names = json.loads(content)
    m, n = facts["shape"]
    rows, columns = as_names("row_names", names["rows"], m), as_names("column_names", names["columns"], n)
    return {"row_names": rows, "column_names": columns}


class TableFacts(NamedTuple):
    """What a manifest says of the table: names are lists of rows and of columns, or None."""

    shape: tuple[int, int]
    dtype: np.dtype
    names: tuple
    bounds: tuple[float, float] | None


def write_manifest(
    folder: Path, table: TableFacts, space: dict, blocks: list[dict], run: dict, whole: dict | None = None
) -> None:
    """The facts of a result all of whose blocks are there: from now on the folder can be loaded.

    Parameters
    ----------
    folder : path
    table : TableFacts
    space : dict
        What `learned_files` writes of what was learned.
    blocks : list of dict
        Of each block its columns, counts and checksums.
    run : dict
    whole : dict, optional
        More facts of a result in memory, which is one block; None for blocks that are read one by one.
    """
    written = names_as_json(*table.names)
    if written is not None:
        publish(folder / NAMES, written)
    facts = {
        "format": _FORMAT,
        "shape": list(table.shape),
        "dtype": np.dtype(table.dtype).str,
        "rank": space["shape"][1],
        "bounds": None if table.bounds is None else [repr(b) for b in table.bounds],
        "space": space,
        "sha256_of_names": checksum_of_names(written),
        "blocks": blocks,
        "run": run,
        "whole": whole,
    }
    publish_json(folder / FACTS, sealed(facts))


def manifest_of(folder: Path) -> dict | None:
    """The facts of the result in a folder; None if there is none."""
    try:
        return read_facts(folder)
    except StorageFailed:
        raise
    except (OSError, ValueError):
        return None


def holds_only_a_result(folder: Path) -> bool:
    """Whether a folder holds a result and nothing else."""
    facts = manifest_of(folder)
    if facts is None:
        return False
    files = files_of(folder, facts)
    blocks = {path for path in files if path.parent != folder}
    there = set((folder / "blocks").iterdir()) if (folder / "blocks").is_dir() else set()
    marks = MARKS if record_of(folder) is not None else ()
    names = {path.name for path in files if path not in blocks}
    return there <= blocks and {path.name for path in folder.iterdir()} <= {FACTS, NAMES, "blocks", *names, *marks}


def files_of(folder: Path, facts: dict) -> list[Path]:
    """All files of the result in a folder but the facts themselves."""
    sums = dict(facts["space"]["sha256"])
    if facts["whole"] is not None and facts["whole"]["learned"] is not None:
        sums |= facts["whole"]["learned"]["sha256"]
    named = [NAMES] if facts["sha256_of_names"] is not None else []
    files = [folder / name for name in (*named, *(f"{name}.npy" for name in sums))]
    return files + [array_path(folder, k, name) for k, block in enumerate(facts["blocks"]) for name in block["sha256"]]
