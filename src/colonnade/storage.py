"""Completions in folders: arrays in an npz file without pickle, facts and checksums in a JSON file beside it."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np

from ._arguments import as_names
from ._writing import new_folder
from .column_space import ColumnSpace
from .completion import Completion
from .files import checked_headers
from .observations import Observations

_FORMAT = "colonnade completion 1"
_ARRAYS, _FACTS, _NAMES = "arrays.npz", "facts.json", "names.json"


def save_completion(completion: Completion, path, *, force: bool = False) -> None:
    """Write a folder under its final name only when all of it is on the disk."""
    o, space = completion.observations, completion.space
    arrays = {
        "basis": space.basis,
        "singular_values": space.singular_values,
        "center": space.center,
        "variances": space.variances,
        "coefficients": completion.coefficients.T,  # a column's coefficients lie together
        "status": completion.status,
        "indptr": o.indptr,
        "rows": o.rows,
        "values": o.values,
        "weights": o.weights,
        "full_columns": o.full_columns,
        "full_scales": o.full_scales,
    }
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items() if a is not None}
    names = _names_as_json(o)
    facts = {
        "format": _FORMAT,
        "shape": list(completion.shape),
        "rank": completion.rank,
        "space_noise_std": repr(space.noise_std),
        "noise_variance": repr(completion.noise_variance),
        "bounds": None if completion.bounds is None else [repr(b) for b in completion.bounds],
        "choices": completion.choices,
        "by_columns": completion.by_columns,
        "sha256": {name: _checksum(a) for name, a in arrays.items()},
        "sha256_of_names": None if names is None else hashlib.sha256(names).hexdigest(),
    }
    facts["sha256_of_facts"] = _facts_checksum(facts)
    with new_folder(path, force=force, is_ours=is_result) as working:
        with open(working / _ARRAYS, "wb") as file:
            np.savez(file, **arrays)
        if names is not None:
            (working / _NAMES).write_bytes(names)
        (working / _FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def is_result(path) -> bool:
    """Whether a folder holds a completion and nothing else."""
    path = Path(path)
    found = {part.name for part in path.iterdir()} if path.is_dir() else set()
    return {_ARRAYS, _FACTS} <= found <= {_ARRAYS, _FACTS, _NAMES}


def load_completion(path) -> Completion:
    """Read what `save_completion` wrote, and compare every array with its checksum."""
    path = Path(path)
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder {path}; name one that Completion.save wrote")
    try:
        facts = json.loads((path / _FACTS).read_text(encoding="utf-8"))
        if facts.get("format") != _FORMAT:
            raise ValueError(f"its format is {facts.get('format')!r}, not {_FORMAT!r}")
        if facts.get("sha256_of_facts") != _facts_checksum(facts):
            raise ValueError(f"the checksum of {_FACTS} does not agree")
        checked_headers(path / _ARRAYS)
        with open(path / _ARRAYS, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            arrays = {name: archive[name] for name in facts["sha256"]}
        damaged = [name for name, a in arrays.items() if _checksum(a) != facts["sha256"][name]]
        if damaged:
            raise ValueError(f"the checksum of {', '.join(damaged)} does not agree")
        return _assemble(facts, arrays, _read_names(path, facts))
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OSError,
        EOFError,
        zipfile.BadZipFile,
        MemoryError,
    ) as error:
        raise ValueError(f"{path} is not a completion or is damaged: {error}; compute it again") from error


def _names_as_json(o: Observations) -> bytes | None:
    if o.row_names is None and o.column_names is None:
        return None
    names = {"rows": o.row_names, "columns": o.column_names}
    return json.dumps({side: None if one is None else one.tolist() for side, one in names.items()}).encode()


def _read_names(path: Path, facts: dict) -> dict:
    checksum = facts.get("sha256_of_names")
    if checksum is None:
        return {}
    content = (path / _NAMES).read_bytes()
    if hashlib.sha256(content).hexdigest() != checksum:
        raise ValueError(f"the checksum of {_NAMES} does not agree")
    names = json.loads(content)
    m, n = facts["shape"]
    rows, columns = as_names("row_names", names["rows"], m), as_names("column_names", names["columns"], n)
    return {"row_names": rows, "column_names": columns}


def _assemble(facts: dict, arrays: dict, names: dict) -> Completion:
    o = Observations(
        tuple(facts["shape"]),
        *(arrays.get(k) for k in ("indptr", "rows", "values", "weights", "full_columns", "full_scales")),
        **names,
    )
    space = ColumnSpace(
        *(arrays.get(k) for k in ("basis", "singular_values", "center", "variances")), float(facts["space_noise_std"])
    )
    bounds = None if facts["bounds"] is None else tuple(float(b) for b in facts["bounds"])
    noise_variance = float(facts["noise_variance"])
    Z = arrays["coefficients"].T
    choices, by_columns = facts["choices"], facts["by_columns"]
    return Completion(o, space, Z, arrays["status"], noise_variance, bounds, choices, by_columns)


def _facts_checksum(facts: dict) -> str:
    rest = {name: value for name, value in facts.items() if name != "sha256_of_facts"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _checksum(array) -> str:
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).data if array.size else b"")
    return digest.hexdigest()
