"""What is learned before blocks are solved: from the full columns and some of the others, within a limit of memory."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from ._arguments import as_generator, is_auto
from ._threads import one_blas_thread
from .checkpoints import checksum_of_file, publish_array, publish_json, publishing, read_array, read_json
from .column_space import ColumnSpace, fit_stored_column_space, is_tall
from .disk_columns import Blocks, FullColumns, RowFile, evenly, some_partial_columns
from .learn import Lesson, choices_in_words, learn, with_mean
from .observations import Observations, index_dtype, pointers_of
from .refine import learn_and_refine
from .wild_entries import Screening, code_places

_PARTIAL_COLUMNS = 20, 4_000  # that are looked at: at least and at most
_PARTIAL_ENTRIES = 2_000_000  # that they have, about
_COPIES = 10  # of the full columns that choosing the settings may need
_JUDGING_COLUMNS, _JUDGING_ROWS = 500, 100_000  # by which settings are judged where all need too much memory, about
_ARRAYS = "basis", "singular_values", "center", "variances", "mean"
_RECORD = "space.json"


def learn_from_blocks(
    folder: Path, entries: list[dict], m: int, memory: float, settings: dict, screening: Screening
) -> None:
    """Learn what `complete` would learn, from the full columns and a sample of the others, and write it.

    Where all rows need too much memory, settings are judged on some of them, nothing is refined, and the basis is
    computed and written by blocks of rows. BLAS gets one thread, so that the bytes do not depend on how many there are.

    Parameters
    ----------
    folder : path
    entries : list of dict
        The records of all blocks.
    m : int
        Rows of the matrix.
    memory : float
        Bytes.
    settings : dict
        rank, center, shrinkage, refine and random_state, as `complete` takes them.
    screening : Screening
        Of all columns.
    """
    n_full, n_usable = (sum(record[kind] for record in entries) for kind in ("full", "usable"))
    partial, numbers = some_partial_columns(folder, entries, m, _how_many(entries, m, n_usable))
    most = int(np.sqrt(memory / 4 / 64))  # for the small factors
    affordable = max(100, int(memory / 2 / (8 * _COPIES * min(n_full, most))))
    tall = is_tall(m, n_full)
    if m > affordable and not tall:  # A itself must fit
        most = min(most, max(1, int(memory / 4 / (12 * m))))
    full = FullColumns(folder, entries, m, most)
    words = {}
    if full.shape[1] < n_full:
        words["column space"] = f"from {full.shape[1]:,} of {n_full:,} full columns, as many as the memory limit allows"
    with one_blas_thread():
        if m <= affordable:
            together = np.concatenate([full.numbers, numbers])
            order = np.argsort(together)  # in which `complete` would see them
            here = screening.of(together[order])
            lesson, optimism = _learned_at_once(joined(full.observations(), partial, order), here, settings)
            _write(folder, lesson, optimism, words, screening, full.shape[1])
            return
        fixed, choices = _judged_settings(full, partial, numbers, affordable, settings, screening)
        choices |= words
        if fixed["shrinkage"]:
            full = full.without(_untaught(folder, entries, m, screening))
        if tall:
            _learn_by_row_blocks(folder, full, memory, fixed, choices, screening)
        else:
            observations = full.observations()
            lesson = with_mean(learn(observations, tame=observations, **fixed), observations)
            _write(folder, lesson, 1.0, choices, screening)


def _untaught(folder: Path, entries: list[dict], m: int, screening: Screening) -> np.ndarray:
    """The full columns from which nothing is learned."""
    if not screening.is_enough:
        return np.zeros(0, np.int64)
    has_code = [first + o.columns_of(code_places(o, screening.code)) for first, o in Blocks(folder, entries, m)]
    return np.concatenate([np.array(screening.columns, np.int64), *has_code])


def _how_many(entries: list[dict], m: int, n_usable: int) -> int:
    """Partial columns to look at."""
    typical = sum(record["entries"] - m * record["full"] for record in entries) / max(1, n_usable)
    return int(np.clip(_PARTIAL_ENTRIES / max(1.0, typical), *_PARTIAL_COLUMNS))


def joined(full: Observations, partial: Observations, order=None) -> Observations:
    """Full and partial columns as one matrix: the full ones first, or in this order."""
    both = full, partial
    o = Observations(
        (full.shape[0], full.shape[1] + partial.shape[1]),
        pointers_of(np.concatenate([o.n_observed for o in both])),
        np.concatenate([o.rows for o in both]),
        np.concatenate([o.values for o in both]).astype(full.values.dtype, copy=False),
        None,
        full.full_columns,
    )
    return o if order is None else replace(o.take(order), full_columns=np.flatnonzero(order < full.shape[1]))


def _learned_at_once(o: Observations, screening: Screening, settings: dict) -> tuple[Lesson, float]:
    """As `complete` does it."""
    seed = settings["random_state"]
    return learn_and_refine(o, screening, **{**settings, "random_state": None if seed is None else as_generator(seed)})


def _judged_settings(
    full: FullColumns, partial: Observations, numbers, affordable: int, settings: dict, screening: Screening
) -> tuple[dict, dict]:
    """Fixed settings for those that are "auto", judged on some of the rows; and the choices in words."""
    names = "rank", "center", "shrinkage"
    asked = {name: settings[name] for name in names}
    if not any(map(is_auto, asked.values())):
        return asked, {"refine": "none, for the memory limit"}
    judging = evenly(partial.shape[1], _JUDGING_COLUMNS)
    some = partial.take(judging)
    rows = _rows_to_judge_by(some, affordable)
    o = joined(Observations.from_dense(full.at_rows(rows)), at_rows(some, rows))
    tame = screening.of(np.concatenate([full.numbers, numbers[judging]])).at_rows(rows).tame(o)
    lesson = learn(o, tame=tame, **asked, random_state=settings["random_state"])
    found = max(1, lesson.space.rank), lesson.space.center is not None, lesson.noise_variance
    words = f"judged on {rows.size:,} of {full.shape[0]:,} rows, for the memory limit"
    return dict(zip(names, found)), {**lesson.choices, "settings": words, "refine": "none, for the memory limit"}


def _rows_to_judge_by(o: Observations, most: int) -> np.ndarray:
    """The rows that partial columns have, if these are few, and others by chance; at most `most`."""
    m = o.shape[0]
    is_seen = np.zeros(m, bool)
    is_seen[o.rows] = True
    order = np.random.default_rng(0).permutation(m)
    if is_seen.sum() <= most // 2:
        order = np.concatenate([order[is_seen[order]], order[~is_seen[order]]])
    return np.sort(order[: min(most, max(_JUDGING_ROWS, 2 * is_seen.sum()))])


def at_rows(o: Observations, rows: np.ndarray) -> Observations:
    """The observations at some rows, in increasing order."""
    position = np.full(o.shape[0], -1, index_dtype(rows.size))
    position[rows] = np.arange(rows.size)
    keep = position[o.rows] >= 0
    counts = np.diff(pointers_of(keep)[o.indptr])
    shape = rows.size, o.shape[1]
    none = np.zeros(0, np.int64)
    return Observations(shape, pointers_of(counts), position[o.rows[keep]], o.values[keep], None, none)


def _learn_by_row_blocks(
    folder: Path, full: FullColumns, memory: float, settings: dict, choices: dict, screening: Screening
) -> None:
    """The column space of full columns that stay on the disk, its basis written a block of rows at a time."""
    m, d = full.shape
    path, stored = folder / "basis.npy", []
    with publishing(path) as file:

        def store_of(r, dtype):
            stored.append(RowFile(file, m, r, dtype, is_new=True))
            return stored[0]

        space = fit_stored_column_space(
            full, store_of, rank=settings["rank"], center=settings["center"], block_rows=_block_rows(m, d, memory)
        )
    said = choices_in_words(space, settings["center"], settings["shrinkage"], settings["rank"])
    if settings["shrinkage"] and space.center is None:
        step = max(1, int(memory / 8 / (8 * d)))
        means = [full.read_rows(lo, min(lo + step, m)).mean(axis=1, dtype=np.float64) for lo in range(0, m, step)]
        space = replace(space, mean=np.concatenate(means))
    lesson = Lesson(space, settings["shrinkage"], {**said, **choices})
    _write_record(folder, lesson, 1.0, {"basis": checksum_of_file(path)}, {}, screening)


def _block_rows(m: int, d: int, memory: float) -> int | None:
    """Rows of a block such that the factors of all blocks, d x d each, fit; None if the usual ones do."""
    least = int(np.ceil(m * d * d * 8 / (memory / 8)))
    return max(least, 4 * d) if least > 4 * d and least > 80_000 // d else None


def _write(folder: Path, lesson: Lesson, optimism: float, words: dict, screening: Screening, n_full: int = 0) -> None:
    sums = {"basis": publish_array(folder / "basis.npy", lesson.space.basis)}
    _write_record(folder, lesson, optimism, sums, words, screening, n_full)


def write_lesson(folder: Path, lesson: Lesson, screening: Screening) -> None:
    """The arrays of the column space in files of their own, and a record with the rest and their checksums."""
    _write(folder, lesson, 1.0, {}, screening)


def _write_record(
    folder: Path, lesson: Lesson, optimism: float, sums: dict, words: dict, screening: Screening, n_full: int = 0
) -> None:
    """`n_full` is the number of full columns that a refinement has seen, evenly chosen."""
    for name in _ARRAYS[1:]:
        array = getattr(lesson.space, name)
        if array is not None:
            sums[name] = publish_array(folder / f"{name}.npy", array)
    facts = {
        "space_noise_std": repr(lesson.space.noise_std),
        "noise_variance": repr(lesson.noise_variance),
        "choices": {**lesson.choices, **words},
        "optimism": repr(optimism),
        "moved_rows": lesson.moved_rows,
        "full_columns": n_full,
        "screening": asdict(screening),
        "shape": list(lesson.space.basis.shape),
        "sha256": sums,
    }
    publish_json(folder / _RECORD, facts)


def read_lesson(folder: Path, facts: dict, *, mapped: bool = False, verify: bool = True) -> Lesson:
    """What was written."""
    sums = facts["sha256"]
    arrays = [
        read_array(folder / f"{name}.npy", sums[name] if verify else None, mapped=mapped and name == "basis")
        if name in sums
        else None
        for name in _ARRAYS
    ]
    *arrays, mean = arrays
    space = ColumnSpace(*arrays, float(facts["space_noise_std"]), mean)
    noise, choices, moved = float(facts["noise_variance"]), facts["choices"], facts["moved_rows"]
    return Lesson(space, noise, choices, moved_rows=moved)


def read_screening(facts: dict) -> Screening:
    """What was found over all columns, from the record of the lesson."""
    found = facts["screening"]
    return Screening(found["code"], tuple(found["rows"]), tuple(found["columns"]), found["is_enough"])


def lesson_on_disk(folder: Path) -> dict | None:
    """The record of a lesson that is there and sound."""
    try:
        facts = read_json(folder / _RECORD)
        read_lesson(folder, facts, mapped=True)
        read_screening(facts)
    except (OSError, ValueError, KeyError):
        return None
    return facts
