"""What was learned from blocks of columns, as files: the arrays of the column space and a record with the rest."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from ..._support.storage import StorageFailed
from ...model.column_space import ColumnSpace
from ...model.full_columns.learn import FullColumnModel
from ...model.full_columns.outlier_screening import Screening
from ...model.shared import SharedModel
from ...model.storing import arrays_of_learned, facts_of_learned, learned_from
from .checkpoints import publish_array, publish_json, read_array, read_json

_ARRAYS = "basis", "singular_values", "center", "variances", "mean", "pull"
_RECORD = "space.json"
_SAMPLE = "model_sample"  # Numbers of the columns that a factor model was learned from.


def write_full_column_model(
    folder: Path,
    from_full: FullColumnModel,
    screening: Screening,
    optimism: float = 1.0,
    words: dict | None = None,
    n_full: int = 0,
) -> None:
    """The arrays of the column space in files of their own, and a record with the rest and their checksums."""
    sums = {"basis": publish_array(folder / "basis.npy", from_full.space.basis)}
    write_record(folder, from_full, optimism, sums, words or {}, screening, n_full)


def write_record(
    folder: Path,
    from_full: FullColumnModel,
    optimism: float,
    sums: dict,
    words: dict,
    screening: Screening,
    n_full: int = 0,
    model: dict | None = None,
) -> None:
    """All arrays but the basis, and the record.

    `n_full` is the number of full columns that a refinement has seen, `model` what is said of a factor model.
    """
    facts = {
        **_write_rest(folder, from_full.space, sums),
        "noise_variance": repr(from_full.noise_variance),
        "choices": {**from_full.choices, **words},
        "optimism": repr(optimism),
        "moved_rows": from_full.moved_rows,
        "full_columns": n_full,
        "screening": asdict(screening),
        "model": model,
    }
    publish_json(folder / _RECORD, facts)


def write_model(folder: Path, space: ColumnSpace, shared: SharedModel, screening: Screening, words: dict) -> None:
    """A factor model that blocks are solved by: its arrays in files of their own, and the record."""
    arrays = {**arrays_of_learned(shared.learned), _SAMPLE: shared.sample, "basis": space.basis}
    sums = {name: publish_array(folder / f"{name}.npy", array) for name, array in arrays.items()}
    from_full = FullColumnModel(space, 0.0, shared.learned.choices)
    write_record(folder, from_full, 1.0, sums, words, screening, model=facts_of_learned(shared.learned))


def read_model(folder: Path, facts: dict) -> SharedModel | None:
    """The factor model that blocks are solved by; None where full columns were learned from."""
    model = facts.get("model")
    if model is None:
        return None
    sums = facts["sha256"]
    names = [name for name in sums if name.startswith(("model_", "held_out_"))]
    arrays = {name: read_array(folder / f"{name}.npy", sums[name]) for name in (*names, _SAMPLE)}
    return SharedModel(learned_from(model, arrays, facts["choices"]), arrays[_SAMPLE])


def write_space(folder: Path, space: ColumnSpace) -> dict:
    """Write the arrays of a column space in files of their own; its facts, with the checksums."""
    return _write_rest(folder, space, {"basis": publish_array(folder / "basis.npy", space.basis)})


def _write_rest(folder: Path, space: ColumnSpace, sums: dict) -> dict:
    """The same of a basis that is there; `sums` has its checksum."""
    for name in _ARRAYS[1:]:
        array = getattr(space, name)
        if array is not None:
            sums[name] = publish_array(folder / f"{name}.npy", array)
    return {"space_noise_std": repr(space.noise_std), "shape": list(space.basis.shape), "sha256": sums}


def read_full_column_model(folder: Path, facts: dict, *, mapped: bool = False, verify: bool = True) -> FullColumnModel:
    """What was written."""
    sums = facts["sha256"]
    arrays = [
        read_array(folder / f"{name}.npy", sums[name] if verify else None, mapped=mapped and name == "basis")
        if name in sums
        else None
        for name in _ARRAYS
    ]
    *arrays, mean, pull = arrays
    space = ColumnSpace(*arrays, float(facts["space_noise_std"]), mean, pull)
    noise, choices, moved = float(facts["noise_variance"]), facts["choices"], facts["moved_rows"]
    return FullColumnModel(space, noise, choices, moved_rows=moved)


def read_screening(facts: dict) -> Screening:
    """What was found over all columns, from the record of the model."""
    found = facts["screening"]
    return Screening(found["code"], tuple(found["rows"]), tuple(found["columns"]), found["is_enough"])


def learned_on_disk(folder: Path) -> dict | None:
    """The record of a model that is there and sound."""
    try:
        facts = read_json(folder / _RECORD)
        read_full_column_model(folder, facts, mapped=True)
        read_screening(facts)
        read_model(folder, facts)
    except StorageFailed:
        raise
    except (OSError, ValueError, KeyError):
        return None
    return facts
