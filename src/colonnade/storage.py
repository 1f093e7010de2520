"""Completions in folders: arrays in an npz file without pickle, facts and checksums in a JSON file beside it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np

from .column_space import ColumnSpace
from .completion import Completion
from .observations import Observations

_FORMAT = "colonnade completion 1"
_ARRAYS, _FACTS = "arrays.npz", "facts.json"


def save_completion(completion: Completion, path) -> None:
    """Write a folder under its final name only when all of it is on the disk."""
    path = Path(path)
    if path.exists():
        raise FileExistsError(f"{path} exists; remove it or choose another name")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"the folder {path.absolute().parent} does not exist; create it first")
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
    }
    facts["sha256_of_facts"] = _facts_checksum(facts)
    working = Path(tempfile.mkdtemp(prefix=path.name + ".", dir=path.absolute().parent))
    try:
        with open(working / _ARRAYS, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        (working / _FACTS).write_text(json.dumps(facts, indent=1) + "\n")
        os.replace(working, path)
    except BaseException:
        shutil.rmtree(working, ignore_errors=True)
        raise


def load_completion(path) -> Completion:
    """Read what `save_completion` wrote, and compare every array with its checksum."""
    path = Path(path)
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder {path}; name one that Completion.save wrote")
    try:
        facts = json.loads((path / _FACTS).read_text())
        if facts.get("format") != _FORMAT:
            raise ValueError(f"its format is {facts.get('format')!r}, not {_FORMAT!r}")
        if facts.get("sha256_of_facts") != _facts_checksum(facts):
            raise ValueError(f"the checksum of {_FACTS} does not agree")
        with open(path / _ARRAYS, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            arrays = {name: archive[name] for name in facts["sha256"]}
        damaged = [name for name, a in arrays.items() if _checksum(a) != facts["sha256"][name]]
        if damaged:
            raise ValueError(f"the checksum of {', '.join(damaged)} does not agree")
        return _assemble(facts, arrays)
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a completion or is damaged: {error}; compute it again") from error


def _assemble(facts: dict, arrays: dict) -> Completion:
    o = Observations(
        tuple(facts["shape"]),
        *(arrays.get(k) for k in ("indptr", "rows", "values", "weights", "full_columns", "full_scales")),
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
