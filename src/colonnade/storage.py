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
        "noise_std": repr(completion.noise_std),
        "bounds": None if completion.bounds is None else [repr(b) for b in completion.bounds],
        "choices": completion.choices,
        "sha256": {name: _checksum(a) for name, a in arrays.items()},
    }
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
    try:
        facts = json.loads((path / _FACTS).read_text())
        if facts["format"] != _FORMAT:
            raise ValueError(f"its format is {facts['format']!r}, not {_FORMAT!r}")
        with open(path / _ARRAYS, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            arrays = {name: archive[name] for name in facts["sha256"]}
        damaged = [name for name, a in arrays.items() if _checksum(a) != facts["sha256"][name]]
        if damaged:
            raise ValueError(f"the checksum of {', '.join(damaged)} does not agree")
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a completion or is damaged: {error}; compute it again") from error
    o = Observations(
        tuple(facts["shape"]),
        *(arrays.get(k) for k in ("indptr", "rows", "values", "weights", "full_columns", "full_scales")),
    )
    space = ColumnSpace(
        *(arrays.get(k) for k in ("basis", "singular_values", "center", "variances")),
        float(facts["noise_std"]),
    )
    bounds = None if facts["bounds"] is None else tuple(float(b) for b in facts["bounds"])
    return Completion(o, space, arrays["coefficients"].T, arrays["status"], bounds, facts["choices"])


def _checksum(array) -> str:
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).data if array.size else b"")
    return digest.hexdigest()
