"""Completions in folders: arrays in .npy files, facts and checksums in a JSON file beside them."""

from __future__ import annotations

from ..._support.arguments import printable
from ..._support.atomic_writing import new_folder
from ..._support.storage import StorageFailed, Url, as_path
from ...completion import Completion
from ...model.storing import arrays_of_learned, facts_of_learned
from .block_files import array_path
from .checkpoints import publish_array
from .learned_files import write_space
from .manifests import FACTS, TableFacts, holds_only_a_result, read_facts, write_manifest
from .remote_runs import folder_of, saved_address
from .stored_solution import StoredSolution


def save_completion(completion: Completion, path, *, force: bool = False) -> None:
    """Write a folder under its final name only when all of it is on the disk."""
    if completion.learned is not None and isinstance(completion.solution, StoredSolution):
        with _new_result(path, force) as working:  # It may be larger than memory.
            completion.solution.copy_to(working)
        return
    o, s = completion.observations, completion.solution
    block = {
        "indptr": o.indptr,
        "rows": o.rows,
        "values": o.values,
        "weights": o.weights,
        "full_columns": o.full_columns,
        "full_scales": o.full_scales,
        "coefficients": s.coefficients.T,  # A column's coefficients lie together.
        "status": s.status,
        "unused": s.unused,
    }
    with _new_result(path, force) as working:
        (working / "blocks").mkdir()
        space = {
            **write_space(working, s.space),
            "noise_variance": repr(s.noise_variance),
            "choices": completion.choices,
            "optimism": repr(s.optimism),
            "moved_rows": s.moved_rows,
        }
        blocks = [{"first": 0, "sha256": _published(block, lambda name: array_path(working, 0, name))}]
        learned = None
        if s.learned is not None:
            sums = _published(arrays_of_learned(s.learned), lambda name: working / f"{name}.npy")
            learned = {**facts_of_learned(s.learned), "sha256": sums}
        whole = {"by_columns": s.by_columns, "learned": learned}
        table = TableFacts(o.shape, s.dtype, (o.row_names, o.column_names), s.bounds)
        write_manifest(working, table, space, blocks, completion.run, whole)


def _new_result(path, force: bool):
    """A folder to write to, which becomes the result when the block of the `with` statement ends well."""
    path = as_path(path)
    if isinstance(path, Url):
        return saved_address(path, force=force)
    return new_folder(path, force=force, is_ours=is_result)


def _published(arrays: dict, path_of) -> dict[str, str]:
    """The checksums of the arrays, which are written."""
    return {name: publish_array(path_of(name), array) for name, array in arrays.items() if array is not None}


def is_result(path) -> bool:
    """Whether a folder holds a completion and nothing else."""
    path = as_path(path)
    if isinstance(path, Url):
        return (path / FACTS).is_file()
    return path.is_dir() and holds_only_a_result(path)


def load_completion(path, storage_options: dict | None = None) -> Completion:
    """Read a result: one that was saved from memory with all checksums compared, blocks when they are needed."""
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
        stored = StoredSolution(folder_of(path, facts), facts)
        solution = stored if facts["whole"] is None else stored.whole()
        return Completion(solution, dict(stored.choices), stored.run)
    except StorageFailed:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, IndexError, MemoryError) as error:
        raise ValueError(f"{printable(path)} is not a completion or is damaged: {error}; compute it again") from error
