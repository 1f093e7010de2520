"""What is learned before blocks are solved: from the full columns and some of the others, within a limit of memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ._arguments import as_generator, is_auto
from ._threads import one_blas_thread
from .block_files import array_path
from .checkpoints import publish_array, publish_json, read_array, read_json
from .column_space import ColumnSpace
from .learn import Lesson, learn
from .observations import Observations, index_dtype, pointers_of
from .refine import refine_lesson

_PARTIAL_COLUMNS = 20, 4_000  # that are looked at: at least and at most
_JUDGING_COLUMNS = 500  # of them, by which settings are judged on some of the rows
_PARTIAL_ENTRIES = 2_000_000  # that they have, about
_COPIES = 10  # of the full columns that choosing the settings may need
_JUDGING_ROWS = 100_000  # on which settings are judged where all rows need too much memory, about
_ARRAYS = "basis", "singular_values", "center", "variances"
_RECORD = "space.json"


def chosen_columns(folder: Path, entries: list[dict], m: int, memory: float) -> Observations:
    """The full columns, or as many as a quarter of the memory holds, and some partial ones; evenly chosen.

    Parameters
    ----------
    folder : path
    entries : list of dict
        The records of all blocks.
    m : int
        Rows of the matrix.
    memory : float
        Bytes.
    """
    n_full, n_usable = (sum(record[kind] for record in entries) for kind in ("full", "usable"))
    typical = sum(record["entries"] - m * record["full"] for record in entries) / max(1, n_usable)
    low, high = _PARTIAL_COLUMNS
    n_partial = int(np.clip(_PARTIAL_ENTRIES / max(1.0, typical), low, high))
    wanted = _evenly(n_full, max(1, int(memory / 4 / (12 * m)))), _evenly(n_usable, n_partial)
    parts, begun = [], [0, 0]
    for k, record in enumerate(entries):
        ends = begun[0] + record["full"], begun[1] + record["usable"]
        here = [ranks[(ranks >= lo) & (ranks < hi)] - lo for ranks, lo, hi in zip(wanted, begun, ends)]
        if here[0].size or here[1].size:
            parts += _columns_of(folder, k, m, *here)
        begun = ends
    rows, values = ([part[i] for part in parts] for i in (0, 1))
    counts = np.array([part.size for part in rows], np.int64)
    index = index_dtype(m)
    return Observations(
        (m, len(parts)),
        pointers_of(counts),
        np.concatenate(rows).astype(index, copy=False),
        np.concatenate(values),
        None,
        np.flatnonzero(counts == m),
    )


def _evenly(count: int, most: int) -> np.ndarray:
    """At most `most` of 0..count-1, evenly spread."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.int64)


def _columns_of(folder: Path, k: int, m: int, full, usable) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and values of some columns of block k, in order: the full and usable ones of these numbers."""
    indptr = read_array(array_path(folder, k, "indptr"))
    rows, values = (read_array(array_path(folder, k, name), mapped=True) for name in ("rows", "values"))
    counts = np.diff(indptr)
    columns = np.flatnonzero(counts == m)[full], np.flatnonzero((counts >= 2) & (counts < m))[usable]
    return [
        (np.array(rows[indptr[j] : indptr[j + 1]]), np.array(values[indptr[j] : indptr[j + 1]]))
        for j in np.sort(np.concatenate(columns))
    ]


def learn_within(
    o: Observations, memory: float, *, rank, center, shrinkage, refine, random_state
) -> tuple[Lesson, float]:
    """The lesson that `complete` would learn from these columns, and its optimism.

    Where all rows need too much memory, settings are judged on some of them, and nothing is refined. BLAS gets one
    thread, so that the bytes do not depend on how many there are.
    """
    m, d = o.shape[0], o.full_columns.size
    settings = {"rank": rank, "center": center, "shrinkage": shrinkage}
    rng = None if random_state is None else as_generator(random_state)
    affordable = int(memory / 2 / (8 * _COPIES * max(1, d)))
    with one_blas_thread():
        if m <= affordable:
            lesson = learn(o, **settings, random_state=rng)
            return refine_lesson(o, lesson, refine, as_generator(0) if rng is None else rng)
        if not any(map(is_auto, settings.values())):
            return learn(o, **settings), 1.0
        some = _thinned(o)
        rows = _rows_to_judge_by(some, affordable)
        judged = learn(_at_rows(some, rows), **settings, random_state=rng)
        fixed = max(1, judged.space.rank), judged.space.center is not None, judged.noise_variance
        lesson = learn(o, **dict(zip(settings, fixed)))
    words = {"settings": f"judged on {rows.size:,} of {m:,} rows, as many as the memory limit allows"}
    return replace(lesson, choices={**lesson.choices, **judged.choices, **words}), 1.0


def _thinned(o: Observations) -> Observations:
    """The full columns and some of the others."""
    columns = np.union1d(o.full_columns, o.partial_columns[_evenly(o.partial_columns.size, _JUDGING_COLUMNS)])
    some = o.take(columns)
    return replace(some, full_columns=np.flatnonzero(some.n_observed == o.shape[0]))


def _rows_to_judge_by(o: Observations, most: int) -> np.ndarray:
    """The rows that partial columns have, if these are few, and others by chance; at most `most`."""
    m = o.shape[0]
    is_seen = np.zeros(m, bool)
    for j in o.partial_columns:
        is_seen[o.rows[o.indptr[j] : o.indptr[j + 1]]] = True
    order = np.random.default_rng(0).permutation(m)
    if is_seen.sum() <= most // 2:
        order = np.concatenate([order[is_seen[order]], order[~is_seen[order]]])
    return np.sort(order[: min(most, max(_JUDGING_ROWS, 2 * is_seen.sum()))])


def _at_rows(o: Observations, rows: np.ndarray) -> Observations:
    """The observations at some rows, in increasing order."""
    position = np.full(o.shape[0], -1, np.int64)
    position[rows] = np.arange(rows.size)
    keep = position[o.rows] >= 0
    counts = np.diff(pointers_of(keep)[o.indptr])
    kept = position[o.rows[keep]].astype(index_dtype(rows.size))
    shape = rows.size, o.shape[1]
    return Observations(shape, pointers_of(counts), kept, o.values[keep], None, np.flatnonzero(counts == rows.size))


def write_lesson(folder: Path, lesson: Lesson, optimism: float) -> None:
    """The arrays of the column space in files of their own, and a record with the rest and their checksums."""
    arrays = {name: getattr(lesson.space, name) for name in _ARRAYS}
    sums = {name: publish_array(folder / f"{name}.npy", a) for name, a in arrays.items() if a is not None}
    facts = {
        "space_noise_std": repr(lesson.space.noise_std),
        "noise_variance": repr(lesson.noise_variance),
        "choices": lesson.choices,
        "optimism": repr(optimism),
        "sha256": sums,
    }
    publish_json(folder / _RECORD, facts)


def read_lesson(folder: Path, facts: dict, *, mapped: bool = False, verify: bool = True) -> Lesson:
    """What `write_lesson` wrote."""
    sums = facts["sha256"]
    arrays = [
        read_array(folder / f"{name}.npy", sums[name] if verify else None, mapped=mapped and name == "basis")
        if name in sums
        else None
        for name in _ARRAYS
    ]
    space = ColumnSpace(*arrays, float(facts["space_noise_std"]))
    return Lesson(space, float(facts["noise_variance"]), facts["choices"])


def lesson_on_disk(folder: Path) -> dict | None:
    """The record of a lesson that is there and sound."""
    try:
        facts = read_json(folder / _RECORD)
        read_lesson(folder, facts)
    except (OSError, ValueError, KeyError):
        return None
    return facts
