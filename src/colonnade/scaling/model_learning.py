"""The factor model of a table that lies in blocks: learned from a sample of its columns, within a limit of memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._support.arguments import as_generator, is_auto
from .._support.threads import one_blas_thread
from ..data.observations import Observations
from ..files.results.disk_columns import Blocks, evenly
from ..files.results.learned_files import write_model
from ..model.factors import thin_factors
from ..model.full_columns.outlier_screening import Screening
from ..model.learner_choice import FEW_FULL, better_factor_model
from ..model.selection import learn_table
from ..model.shared import SharedModel

_MOST_ENTRIES = 5_000_000  # Of the sample: learning from them takes about a minute of one processor.
_BYTES_OF_AN_ENTRY = 500  # Of the sample, while the model is learned; measured.
_COVARIANCES = 8  # Share of the memory, 1 / 8, for the covariances of the rows: three copies are in use at a time.


def learned_model(
    folder: Path, entries: list[dict], shape, memory: float, settings: dict, screening: Screening
) -> bool:
    """Learn the factor model of a sample of the columns and write it, if it is to solve the blocks.

    Parameters
    ----------
    folder : path
    entries : list of dict
        The records of all blocks.
    shape : (int, int)
    memory : float
        Bytes.
    settings : dict
        rank, center, shrinkage, refine, random_state and method, as `complete` takes them.
    screening : Screening
        Of all columns, for the record.

    Returns
    -------
    bool
        False if the full columns are to be learned from.
    """
    if not _is_considered(entries, shape, settings):
        return False
    o, numbers = _sample(folder, entries, shape, memory)
    seed = settings["random_state"]
    given = {
        "orientation": "columns",
        "seed": 0 if seed is None else int(as_generator(seed).integers(2**31)),
        "memory": memory / _COVARIANCES,
        "may_be_exact": numbers.size == shape[1],
    }
    with one_blas_thread():
        if settings["method"] == "auto" and o.full_columns.size:
            learned = better_factor_model(o, **given)
            if learned is None:
                return False
        else:
            learned = learn_table(o, rank=settings["rank"], **given)
        space, *_ = thin_factors(learned, o)
    write_model(folder, space, SharedModel(learned, numbers), screening, _in_words(o, shape))
    return True


def _is_considered(entries: list[dict], shape, settings: dict) -> bool:
    """Whether the factor model may be the better one: full columns hold few of the entries, or it was asked for."""
    if settings["method"] != "auto":
        return settings["method"] == "factor model"
    n_full = sum(record["full"] for record in entries)
    is_free = all(is_auto(settings[name]) for name in ("center", "shrinkage", "refine"))
    if n_full == 0 or not is_free:
        return is_free
    in_full = n_full * shape[0] / sum(record["entries"] for record in entries)
    return is_auto(settings["rank"]) and in_full < FEW_FULL


def _sample(folder: Path, entries: list[dict], shape, memory: float) -> tuple[Observations, np.ndarray]:
    """Columns to learn from, and their numbers: all if they fit, else evenly chosen ones that show every row."""
    (m, n), total = shape, sum(record["entries"] for record in entries)
    most = min(_MOST_ENTRIES, memory / _BYTES_OF_AN_ENTRY)
    blocks = Blocks(folder, entries, m)
    if total <= most:
        numbers = np.arange(n)
    else:
        numbers = evenly(n, max(2, int(n * most / total)))
        numbers = np.union1d(numbers, _columns_of_other_rows(blocks, numbers))
    return blocks.columns(numbers), numbers


def _columns_of_other_rows(blocks: Blocks, numbers: np.ndarray) -> np.ndarray:
    """For each row without an entry in these columns the first other column that has one."""
    is_seen, more = np.zeros(blocks.n_rows, bool), []
    for first, o in blocks:
        here = numbers[(numbers >= first) & (numbers < first + o.shape[1])] - first
        is_seen[o.take(here).rows] = True
    for first, o in blocks:
        at = np.flatnonzero(~is_seen[o.rows])
        rows, places = np.unique(o.rows[at], return_index=True)
        more.append(first + o.columns_of(at[places]))
        is_seen[rows] = True
    return np.unique(np.concatenate(more))


def _in_words(o: Observations, shape) -> dict:
    why = "because no column is complete" if o.full_columns.size == 0 else "because few columns are complete"
    m, n = shape
    words = {"method": f"factor model learned from all columns, {why}"}
    if o.shape[1] < n:
        words["method"] = f"factor model learned from {o.shape[1]:,} of {n:,} columns, {why}"
    unseen = int((np.bincount(o.rows, minlength=m) == 0).sum())
    if unseen:
        words["empty rows"] = f"{unseen:,} {'row' if unseen == 1 else 'rows'} without any value stay NaN"
    return words
