"""The facts of a result in JSON, sealed by a checksum, and the names of rows and columns beside them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ..._support.arguments import as_names

FACTS, NAMES = "facts.json", "names.json"


def sealed(facts: dict) -> dict:
    """The facts with a checksum of themselves."""
    return {**facts, "sha256_of_facts": _checksum_of(facts)}


def read_facts(folder: Path) -> dict:
    """The facts of a result; damaged ones are refused."""
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    rest = {name: value for name, value in facts.items() if name != "sha256_of_facts"}
    if facts.get("sha256_of_facts") != _checksum_of(rest):
        raise ValueError(f"the checksum of {FACTS} does not agree")
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
