"""Completions in folders: arrays in an npz file without pickle, facts and checksums in a JSON file beside it."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib

import numpy as np

from ..._support.arguments import printable
from ..._support.atomic_writing import new_folder
from ..._support.storage import StorageFailed, Url, as_path, opened_file
from ...completion import Completion
from ...data.observations import Observations
from ...model.column_space import ColumnSpace
from ...model.storing import arrays_of_learned, facts_of_learned, learned_from
from .. import checked_headers, write_arrays
from .checkpoints import checksum
from .manifests import FACTS, NAMES, checksum_of_names, names_as_json, read_facts, read_names, sealed
from .remote_runs import folder_of
from .stored_completion import BLOCK_FORMAT, StoredCompletion, holds_only_blocks

_FORMAT = "colonnade completion 3"
_ARRAYS = "arrays.npz"


def save_completion(completion: Completion, path, *, force: bool = False) -> None:
    """Write a folder under its final name only when all of it is on the disk."""
    o, space = completion.observations, completion.space
    arrays = {
        "basis": space.basis,
        "singular_values": space.singular_values,
        "center": space.center,
        "variances": space.variances,
        "mean": space.mean,
        "pull": space.pull,
        "coefficients": completion.coefficients.T,  # a column's coefficients lie together
        "status": completion.status,
        "indptr": o.indptr,
        "rows": o.rows,
        "values": o.values,
        "weights": o.weights,
        "full_columns": o.full_columns,
        "full_scales": o.full_scales,
        "unused": completion.unused,
        **({} if completion.learned is None else arrays_of_learned(completion.learned)),
    }
    arrays = {name: np.ascontiguousarray(a) for name, a in arrays.items() if a is not None}
    names = names_as_json(o.row_names, o.column_names)
    facts = {
        "format": _FORMAT,
        "shape": list(completion.shape),
        "rank": completion.rank,
        "space_noise_std": repr(space.noise_std),
        "noise_variance": repr(completion.noise_variance),
        "bounds": None if completion.bounds is None else [repr(b) for b in completion.bounds],
        "choices": completion.choices,
        "by_columns": completion.by_columns,
        "optimism": repr(completion.optimism),
        "run": completion.run,
        "moved_rows": completion.moved_rows,
        "learned": None if completion.learned is None else facts_of_learned(completion.learned),
        "sha256": {name: checksum(a) for name, a in arrays.items()},
        "sha256_of_names": checksum_of_names(names),
    }
    with new_folder(path, force=force, is_ours=is_result) as working:
        write_arrays(working / _ARRAYS, arrays)
        if names is not None:
            (working / NAMES).write_bytes(names)
        (working / FACTS).write_text(json.dumps(sealed(facts), indent=1) + "\n", encoding="utf-8")


def is_result(path) -> bool:
    """Whether a folder holds a completion and nothing else."""
    path = as_path(path)
    if isinstance(path, Url):
        return (path / FACTS).is_file()
    found = {part.name for part in path.iterdir()} if path.is_dir() else set()
    return {_ARRAYS, FACTS} <= found <= {_ARRAYS, FACTS, NAMES} or (path.is_dir() and holds_only_blocks(path))


def load_completion(path, storage_options: dict | None = None) -> Completion:
    """Read what `save_completion` wrote, and compare every array with its checksum."""
    path = as_path(path, storage_options)
    if isinstance(path, Url) and not (path / FACTS).is_file():
        raise FileNotFoundError(f"there is no result at {printable(path)}, or its run has not ended")
    if not isinstance(path, Url) and not path.is_dir():
        what = (
            f"{printable(path)} is a file, not a folder" if path.exists() else f"there is no folder {printable(path)}"
        )
        raise FileNotFoundError(f"{what}; name one that Completion.save or `colonnade complete FILE -o FOLDER` wrote")
    try:
        facts = read_facts(path)
        if facts.get("format") == BLOCK_FORMAT:
            return StoredCompletion(folder_of(path, facts), facts)
        if facts.get("format") != _FORMAT:
            raise ValueError(f"its format is {facts.get('format')!r}, not {_FORMAT!r}")
        checked_headers(path / _ARRAYS)
        with opened_file(path / _ARRAYS) as file:
            archive = np.load(file, allow_pickle=False)
            arrays = {name: archive[name] for name in facts["sha256"]}
        damaged = [name for name, a in arrays.items() if checksum(a) != facts["sha256"][name]]
        if damaged:
            raise ValueError(f"the checksum of {', '.join(damaged)} does not agree")
        return _assemble(facts, arrays, read_names(path, facts))
    except StorageFailed:
        raise
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OSError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        RuntimeError,  # An archive that seems to need a password or another program.
        MemoryError,
    ) as error:
        raise ValueError(f"{printable(path)} is not a completion or is damaged: {error}; compute it again") from error


def _assemble(facts: dict, arrays: dict, names: dict) -> Completion:
    o = Observations(
        tuple(facts["shape"]),
        *(arrays.get(k) for k in ("indptr", "rows", "values", "weights", "full_columns", "full_scales")),
        **names,
    )
    of_space = (arrays.get(k) for k in ("basis", "singular_values", "center", "variances"))
    space = ColumnSpace(*of_space, float(facts["space_noise_std"]), arrays.get("mean"), arrays.get("pull"))
    bounds = None if facts["bounds"] is None else tuple(float(b) for b in facts["bounds"])
    noise_variance = float(facts["noise_variance"])
    Z = arrays["coefficients"].T
    choices, by_columns, optimism = dict(facts["choices"]), facts["by_columns"], float(facts["optimism"])
    learned = None if facts["learned"] is None else learned_from(facts["learned"], arrays, choices)
    more = dict(facts["run"]), facts["moved_rows"], arrays.get("unused"), learned
    return Completion(o, space, Z, arrays["status"], noise_variance, bounds, choices, by_columns, optimism, *more)
