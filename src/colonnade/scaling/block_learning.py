"""What is learned before blocks are solved: from the full columns and some of the others, within a limit of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from .._support.arguments import as_generator, is_auto
from .._support.atomic_writing import publishing
from .._support.threads import in_threads, one_blas_thread
from ..data.observations import Observations, index_dtype, pointers_of
from ..files.results.checkpoints import checksum_of_file
from ..files.results.disk_columns import Blocks, FullColumns, RowFile, evenly, some_partial_columns
from ..files.results.learned_files import write_full_column_model, write_record
from ..model.column_space import fit_stored_column_space, is_tall
from ..model.full_columns.learn import FullColumnModel, choices_in_words, learn, with_mean
from ..model.full_columns.outlier_screening import Screening, code_places
from ..model.full_columns.refine import learn_and_refine

_PARTIAL_COLUMNS = 20, 4_000  # that are looked at: at least and at most
_PARTIAL_ENTRIES = 2_000_000  # that they have, about
_COPIES = 10  # of the full columns that choosing the settings may need
_JUDGING_COLUMNS, _JUDGING_ROWS = 500, 100_000  # by which settings are judged where all need too much memory, about


def learn_from_blocks(
    folder: Path,
    entries: list[dict],
    m: int,
    memory: float,
    settings: dict,
    screening: Screening,
    mapped: Callable = in_threads,
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
    mapped : function of (work, pieces)
        Calls a function for pieces of rows, here or on a cluster, where all rows need too much memory.
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
            from_full, optimism = _learned_at_once(joined(full.observations(), partial, order), here, settings)
            write_full_column_model(folder, from_full, screening, optimism, words, full.shape[1])
            return
        fixed, choices = _judged_settings(full, partial, numbers, affordable, settings, screening)
        choices |= words
        if fixed["shrinkage"]:
            full = full.without(_untaught(folder, entries, m, screening))
        if tall:
            _learn_by_row_blocks(folder, full, memory, (fixed, choices), screening, mapped)
        else:
            observations = full.observations()
            from_full = with_mean(learn(observations, cleaned=observations, **fixed), observations)
            write_full_column_model(folder, from_full, screening, 1.0, choices)


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


def _learned_at_once(o: Observations, screening: Screening, settings: dict) -> tuple[FullColumnModel, float]:
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
        return asked, {"refine": "none, because of the memory limit"}
    judging = evenly(partial.shape[1], _JUDGING_COLUMNS)
    some = partial.take(judging)
    rows = _rows_to_judge_by(some, affordable)
    o = joined(Observations.from_dense(full.at_rows(rows)), at_rows(some, rows))
    cleaned = screening.of(np.concatenate([full.numbers, numbers[judging]])).at_rows(rows).cleaned(o)
    from_full = learn(o, cleaned=cleaned, **asked, random_state=settings["random_state"])
    found = max(1, from_full.space.rank), from_full.space.center is not None, from_full.noise_variance
    words = f"judged on {rows.size:,} of {full.shape[0]:,} rows, because of the memory limit"
    return dict(zip(names, found)), {
        **from_full.choices,
        "settings": words,
        "refine": "none, because of the memory limit",
    }


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
    folder: Path, full: FullColumns, memory: float, judged: tuple[dict, dict], screening: Screening, mapped: Callable
) -> None:
    """The column space of full columns that stay on the disk, its basis written a block of rows at a time."""
    (m, d), (settings, choices) = full.shape, judged
    path, stored = folder / "basis.npy", []
    with publishing(path) as file:

        def store_of(r, dtype):
            stored.append(RowFile(file, m, r, dtype, is_new=True))
            return stored[0]

        space = fit_stored_column_space(
            full,
            store_of,
            rank=settings["rank"],
            center=settings["center"],
            block_rows=_block_rows(m, d, memory),
            mapped=mapped,
        )
    said = choices_in_words(space, settings["center"], settings["shrinkage"], settings["rank"])
    if settings["shrinkage"] and space.center is None:
        step = max(1, int(memory / 8 / (8 * d)))
        means = [full.read_rows(lo, min(lo + step, m)).mean(axis=1, dtype=np.float64) for lo in range(0, m, step)]
        space = replace(space, mean=np.concatenate(means))
    from_full = FullColumnModel(space, settings["shrinkage"], {**said, **choices})
    write_record(folder, from_full, 1.0, {"basis": checksum_of_file(path)}, {}, screening)


def _block_rows(m: int, d: int, memory: float) -> int | None:
    """Rows of a block such that the factors of all blocks, d x d each, fit; None if the usual ones do."""
    least = int(np.ceil(m * d * d * 8 / (memory / 8)))
    return max(least, 4 * d) if least > 4 * d and least > 80_000 // d else None
