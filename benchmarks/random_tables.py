"""Random small tables through every public function, with warnings as errors; whatever should not happen is reported.

Allowed are an answer and a refusal: a ValueError, TypeError or RuntimeError that our own code (or scikit-learn's check
of arguments) raises with a sentence. Reported are all other exceptions and warnings, numbers that are not finite where
a column counts as filled, predictions outside of their interval or the bounds, observed entries that are not returned
as they were, and input that was changed.
"""

from __future__ import annotations

import argparse
import linecache
import pickle
import re
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import colonnade as co
from benchmarks.machine import count, facts
from benchmarks.random_data import Table, draw
from colonnade import leaderboard, methods, theory
from colonnade.data.observations import as_observations
from colonnade.interfaces.inspection import inspect_observations, inspection_in_words


class Finding(AssertionError):
    """A promise that an answer does not keep."""


def expect(kept, promise: str) -> None:
    if not np.all(kept):
        raise Finding(promise)


def check_completion(completion: co.Completion, rng, *, bounds=None, learned_from=None) -> None:
    """What every completion promises of its entries, however they are asked for."""
    filled, o = completion.to_dense(), completion.observations
    expect(np.array_equal(filled[o.rows, o.entry_columns], o.values), "observed entries are as they were")
    is_filled = np.isin(completion.status, [s for s in co.Status if s.is_filled])
    is_told = np.isfinite(filled[:, is_filled])
    if completion.learned is not None:  # A row without any entry may stay NaN.
        is_told |= np.bincount((learned_from or o).rows, minlength=o.shape[0])[:, None] == 0
    expect(is_told, "filled columns are finite")
    gaps = np.ones(filled.shape, bool)
    gaps[o.rows, o.entry_columns] = False
    expect((gaps & ~np.isnan(filled)) == completion.filled_mask(), "filled_mask is where something was filled")
    i, j = rng.integers(0, filled.shape[0], 20), rng.integers(0, filled.shape[1], 20)
    entries = completion.entries(i, j)
    expect(np.isnan(entries) == np.isnan(filled[i, j]), "entries and columns are known alike")
    if bounds is not None:
        gaps = np.ones(filled.shape, bool)
        gaps[o.rows, o.entry_columns] = False
        told = filled[gaps & np.isfinite(filled)]
        expect((told >= bounds[0]) & (told <= bounds[1]), "predictions are within the bounds")


def check_figures(completion: co.Completion, rng) -> None:
    """Intervals, means, certificates, words."""
    level = float(rng.choice([0.5, 0.9, 0.999]))
    filled = completion.to_dense()
    low, high = completion.interval(*np.indices(filled.shape), level=level)
    told = np.isfinite(filled)
    expect((low <= high)[told], "low <= high")
    expect((low <= filled)[told], "low <= prediction")
    expect((filled <= high)[told], "prediction <= high")
    mean, low, high = completion.column_means(level, unbiased=bool(rng.integers(2)))
    told = np.isfinite(mean)
    expect(told[completion.status == co.Status.FULL], "the mean of a full column is finite")
    expect((low <= mean)[told], "low <= mean")
    expect((mean <= high)[told], "mean <= high")


def completed(table: Table, rng) -> None:
    check_completion(co.complete(table.data), rng)


def with_figures(table: Table, rng) -> None:
    check_figures(co.complete(table.data), rng)


def by_factor_model(table: Table, rng) -> None:
    orientation = str(rng.choice(["auto", "columns", "rows"]))
    completion = co.complete(table.data, method="factor model", orientation=orientation)
    check_completion(completion, rng)
    check_figures(completion, rng)


def with_draws(table: Table, rng) -> None:
    completion = co.complete(table.data)
    filled, draws = completion.to_dense(), completion.sample(2, random_state=0)
    expect(np.isnan(draws) == np.isnan(filled), "draws are known where the prediction is")
    expect(~np.isinf(draws), "draws are finite")
    o = completion.observations
    expect(draws[:, o.rows, o.entry_columns] == o.values, "draws keep observed entries")
    expect(len(completion.to_frame(interval=0.9)) == filled.size, "a long frame has a line for each entry")
    str(completion.verdict)


def explained(table: Table, rng) -> None:
    completion = co.complete(table.data)
    filled = completion.to_dense()
    i, j = int(rng.integers(filled.shape[0])), int(rng.integers(filled.shape[1]))
    explanation = completion.explain(i, j)
    expect(not re.search(r"\bnan\b", str(explanation)) or np.isnan(filled[i, j]), "words hold no nan")
    explanation.to_frame()


def extended(table: Table, rng) -> None:
    completion = co.complete(table.data)
    m = completion.shape[0]
    largest = float(np.finfo(completion.dtype).max) / 10
    scale = min(float(np.abs(completion.observations.values.astype(np.float64)).max(initial=0)) or 1.0, largest)
    new = np.where(rng.random((m, 2)) < 0.5, scale * rng.standard_normal((m, 2)), np.nan)
    longer = completion.extend(new.astype(completion.dtype))
    old = np.arange(completion.shape[1])
    expect(longer.columns(old).tobytes() == completion.to_dense().tobytes(), "old columns stay as they are")
    check_completion(longer, rng, learned_from=completion.observations)


def evaluated(table: Table, rng) -> None:
    scores = co.evaluation.score(table.data).table
    told = np.isfinite(scores.score)
    expect((scores.low <= scores.score)[told] & (scores.score <= scores.high)[told], "low <= score <= high")
    m = as_observations(table.data).shape[0]
    k = int(rng.integers(1, m + 1))
    rows = co.evaluation.select(table.data, k, design=str(rng.choice(["balanced", "random", "chosen"])))
    expect(np.unique(rows).size == k, "as many different questions as asked for")


def with_words(table: Table, rng) -> None:
    completion = co.complete(table.data)
    certificates = completion.certificates(as_frame=False)
    expect(certificates.verdict != "", "every column has a verdict")
    expect(certificates.n_observed == completion.n_observed, "certificates count the entries")
    words = completion.summary() + repr(completion) + completion._repr_html_()
    expect(not re.search(r"\bnan\b", words), "words hold no nan")
    expect(completion.noise_std >= 0 or np.isnan(completion.noise_std), "noise_std >= 0")
    completion.to_frame()


def with_settings(table: Table, rng) -> None:
    o = as_observations(table.data)
    size = float(np.abs(o.values).max(initial=0)) or 1.0
    bounds = None if rng.random() < 0.5 else (-size / 2, size / 3)
    completion = co.complete(
        o,
        rank=rng.choice(["auto", 1, 2, 3]) if rng.random() < 0.5 else "auto",
        center=[True, False, "auto"][rng.integers(3)],
        shrinkage=["auto", 0, 1e-3, size][rng.integers(4)],
        refine=["auto", 0, 2][rng.integers(3)],
        bounds=bounds,
        random_state=[None, 3][rng.integers(2)],
    )
    check_completion(completion, rng, bounds=bounds)
    check_figures(completion, rng)


def with_rank(table: Table, rng) -> None:
    """The paper's recovery."""
    completion = co.complete(table.data, rank=int(rng.integers(1, 4)), center=False, shrinkage=0, refine=0)
    check_completion(completion, rng)
    check_figures(completion, rng)
    completion.certificates()


def saved(table: Table, rng) -> None:
    completion = co.complete(table.data)
    with tempfile.TemporaryDirectory() as folder:
        completion.save(Path(folder) / "saved")
        loaded = co.Completion.load(Path(folder) / "saved")
    expect(loaded.to_dense().tobytes() == completion.to_dense().tobytes(), "a loaded completion is the saved one")
    check_completion(loaded, rng)


def inspected(table: Table, rng) -> None:
    o = as_observations(table.data)
    expect([isinstance(line, str) for line in inspection_in_words(inspect_observations(o))], "words")
    o.to_dense()


def spaces(table: Table, rng) -> None:
    o = as_observations(table.data)
    space = co.fit_column_space(o, center=bool(rng.integers(2)))
    expect(np.isfinite(space.basis), "a basis is finite")
    Z, status = co.solve_columns(space, o)
    is_filled = np.isin(status, [s for s in co.Status if s.is_filled and s != co.Status.FULL])
    expect(np.isfinite(Z[:, is_filled]), "coefficients are finite")
    rows = co.select_rows(space, int(rng.integers(1, o.shape[0] + 1)))
    expect(np.unique(rows).size == rows.size, "selected rows are different")
    co.select_rows(co.complete(o), 1)


def planned(table: Table, rng) -> None:
    o = as_observations(table.data)
    r = int(rng.integers(1, 4))
    space = co.fit_column_space(o, rank=r)
    str(co.plan(o.shape, r, noise_std=1.0, basis=space.basis if space.rank == r else None, random_state=0))


def of_leaderboard(table: Table, rng) -> None:
    result = leaderboard.scores(table.data)
    told = np.isfinite(result.score)
    expect(told[as_observations(table.data).full_columns], "scores of full columns are finite")
    result = result[told]
    expect((result.low <= result.score) & (result.score <= result.high), "low <= score <= high")
    expect((result.rank_low <= result.rank) & (result.rank <= result.rank_high), "rank_low <= rank <= rank_high")
    leaderboard.select_questions(table.data, 1)


def imputed(table: Table, rng) -> None:
    o = as_observations(table.data)
    X = o.to_dense() if rng.random() < 0.5 or isinstance(table.data, co.Observations) else table.data
    for imputer in (co.LowRankImputer(), co.CompleteRowsImputer(), co.CompleteColumnsImputer()):
        try:
            filled = np.asarray(imputer.fit_transform(X), dtype=np.float64)
        except Exception as error:
            if not is_refusal(error):
                raise
            continue
        known = o.to_dense()
        seen = ~np.isnan(known)
        expect(filled.shape == known.shape, "the shape is kept")
        expect(filled[seen] == known[seen], "observed entries are as they were")
        expect(~np.isinf(filled), "nothing is infinite")
        again = np.asarray(imputer.transform(X), dtype=np.float64)
        expect(again[seen] == known[seen], "observed entries are as they were, of new samples too")


def _source(table: Table, rng) -> np.ndarray:
    """The table without its gaps."""
    M = as_observations(table.data).to_dense()
    return np.where(np.isnan(M), float(rng.choice([0.0, 1.0])), M)


def acquired(table: Table, rng) -> None:
    M = _source(table, rng)
    budget = int(rng.integers(M.shape[0], M.size + 1))
    completion = co.acquire(M, budget=budget, rows=["auto", "random"][rng.integers(2)], random_state=0)
    check_completion(completion, rng)


def by_algorithm1(table: Table, rng) -> None:
    M = _source(table, rng)
    m, n = M.shape
    d, s = int(rng.integers(1, n + 1)), int(rng.integers(1, m + 1))
    completion = co.algorithm1(
        M, rank=int(rng.integers(1, min(m, d) + 1)), n_full_columns=d, n_entries=s, random_state=0
    )
    check_completion(completion, rng)
    check_figures(completion, rng)


def in_theory(table: Table, rng) -> None:
    M = _source(table, rng)
    for figure in (theory.coherence(M), theory.column_coherence(M), theory.vector_coherence(M[:, 0])):
        expect(figure >= 0, "a coherence is a number")


def of_rival(table: Table, rng) -> None:
    """A method that works on what is known."""
    run = [
        lambda: methods.als(table.data, random_state=0),
        lambda: methods.als(table.data, rank=1, penalty=0.1, center=False, random_state=0),
        lambda: methods.soft_impute(table.data, max_iter=50, random_state=0),
        lambda: methods.optspace(table.data, max_iter=50, random_state=0),
        lambda: methods.svt(table.data, max_iter=100, random_state=0),
        lambda: methods.tall_project(table.data, random_state=0),
    ][rng.integers(6)]
    completion = run()
    check_completion(completion, rng)
    completion.summary()


def of_reading_rival(table: Table, rng) -> None:
    """A method that chooses what it reads."""
    M = _source(table, rng)
    m, n = M.shape
    d, s = int(rng.integers(1, n + 1)), int(rng.integers(1, m + 1))
    r = int(rng.integers(1, min(d, s) + 1))
    seed = {"random_state": 0}
    run = [
        lambda: methods.nystrom(M, n_columns=d, n_rows=s, **seed),
        lambda: methods.nystrom(M, n_columns=d, n_rows=s, rank=r, **seed),
        lambda: methods.cur_plus(M, rank=r, n_columns=d, n_rows=s, n_entries=m * n, **seed),
        lambda: methods.active_columns(M, by="norm", rank=r, n_full_columns=d, n_entries=s, **seed),
        lambda: methods.active_columns(M, by="leverage", rank=r, n_full_columns=d, n_entries=s, **seed),
        lambda: methods.active_columns(M, by="residual", rank=r, n_full_columns=d, n_entries=s, **seed),
        lambda: methods.adaptive_completion(M, n_entries=s, **seed),
        lambda: methods.lifelong_completion(M, n_entries=s, noise_bound=0.1, **seed),
        lambda: methods.norm_sampling(M, rank=r, n_full_columns=d, **seed),
        lambda: methods.adaptive_column_sampling(M, rank=r, n_full_columns=d, **seed),
        lambda: methods.entrywise_subsampling(M, rank=r, share=0.5, **seed),
    ][rng.integers(11)]
    check_completion(run(), rng)
    by = [{"by": "norm"}, {"by": "leverage", "rank": 1}][rng.integers(2)]
    p = methods.column_probabilities(M, **by, n_entries=s, **seed)
    expect(np.isfinite(p) & (p >= 0) & (abs(p.sum() - 1) < 1e-9), "probabilities sum to 1")


def compared(table: Table, rng) -> None:
    comparison = co.compare(table.data, methods=["complete", "row_means", "als"], random_state=0)
    str(comparison)
    expect([result.error >= 0 for result in comparison.finished], "an error is a number")


# Every function with the share of the tables that it gets.
DOORS: dict[Callable, float] = {
    completed: 1.0,
    with_figures: 0.3,
    by_factor_model: 0.3,
    with_draws: 0.2,
    explained: 0.2,
    extended: 0.1,
    evaluated: 0.2,
    with_words: 0.2,
    with_settings: 0.3,
    with_rank: 0.2,
    saved: 0.1,
    inspected: 0.2,
    spaces: 0.2,
    planned: 0.1,
    of_leaderboard: 0.1,
    imputed: 0.2,
    acquired: 0.1,
    by_algorithm1: 0.2,
    in_theory: 0.1,
    of_rival: 0.1,
    of_reading_rival: 0.2,
    compared: 0.01,
}


def is_refusal(error: Exception) -> bool:
    """Whether our own code, or scikit-learn's check of arguments, raised it with a sentence."""
    if not isinstance(error, (ValueError, TypeError, RuntimeError, IndexError)) or " " not in str(error):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    if "sklearn" in last.filename and "validation" in last.filename:
        return True
    return "/colonnade/" in last.filename and linecache.getline(last.filename, last.lineno).lstrip().startswith("raise")


def where(error: Exception) -> str:
    """The deepest place in our code that an error came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/colonnade/" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "-"


def bytes_of(data) -> bytes:
    """What the input holds, to see whether it was changed."""
    if isinstance(data, co.Observations):
        arrays = [data.indptr, data.rows, data.values, data.weights, data.full_columns]
        return pickle.dumps([None if array is None else np.array(array) for array in arrays])
    if sparse.issparse(data):
        names = ("data", "indices", "indptr", "row", "col")
        return pickle.dumps([np.array(getattr(data, name)) for name in names if hasattr(data, name)])
    return repr(data.to_dict()).encode() if hasattr(data, "iloc") else pickle.dumps(data)


def try_door(door: Callable, table: Table, seed) -> str | None:
    """What a function does wrong with a table, in a line; None if nothing, "refused" if it refuses."""
    before = bytes_of(table.data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)  # a promise of the methods that iterate
            door(table, np.random.default_rng(seed))
    except Exception as error:
        if not is_refusal(error):
            words = " ".join(str(error).split())[:100]
            return f"{door.__name__}: {type(error).__name__} at {where(error)}: {words}"
        if bytes_of(table.data) == before:
            return "refused"
    return None if bytes_of(table.data) == before else f"{door.__name__}: the input was changed"


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks random_tables", description=__doc__)
    parser.add_argument("--tables", type=count, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first table")
    parser.add_argument("--doors", default="", help="only functions whose name has this in it, on every table")
    options = parser.parse_args(arguments)
    doors = {door: 1.0 if options.doors else share for door, share in DOORS.items() if options.doors in door.__name__}
    if not doors:
        parser.error(f"no function has {options.doors!r} in its name; there are {', '.join(d.__name__ for d in DOORS)}")
    print(facts())
    found, calls, refused, start = Counter(), 0, 0, time.perf_counter()
    for k in range(options.first, options.first + options.tables):
        rng = np.random.default_rng((options.seed, k))
        table = draw(rng)
        for number, (door, share) in enumerate(doors.items()):
            if np.random.default_rng((options.seed, k, number)).random() >= share:
                continue
            wrong = try_door(door, table, (options.seed, k, number, 1))
            calls, refused = calls + 1, refused + (wrong == "refused")
            if wrong not in (None, "refused"):
                found[wrong] += 1
                if found[wrong] == 1:
                    print(f"{wrong}\n    table {k}: {table.words}", flush=True)
    for wrong, times in found.most_common():
        print(f"{times} times {wrong}")
    print(
        f"{options.tables:,} tables, {calls:,} calls, {refused:,} of them refused with a sentence,"
        f" {found.total():,} wrong in {len(found):,} ways; {time.perf_counter() - start:.0f} s"
    )
    return 1 if found else 0
