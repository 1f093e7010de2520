"""Gaps anywhere: complete(M) on tables without a complete column, against other imputers.

Of every table a share of the known entries is kept (at least three of each column), and the rest is hidden. The error
is the Frobenius norm over the hidden entries divided by that of the truth there. "90 %" is the share of hidden entries
within their 90 % intervals, overall and in the worst and best tenth by predicted width. Without --data the tables are
those that scikit-learn ships; with it, every DIR/*.npz with a matrix X too. --large makes a table of the shape of
MovieLens-20M instead and compares with cmfrec, if it is installed.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from pathlib import Path

import numpy as np

import colonnade as co
from benchmarks.machine import facts, json_option, record

_MOST_COLUMNS, _MOST_ROWS = 400, 800


def shipped() -> dict[str, np.ndarray]:
    """Tables of scikit-learn, a column for each sample."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

    loaders = {"wine": load_wine, "breast_cancer": load_breast_cancer, "diabetes": load_diabetes, "digits": load_digits}
    return {name: load().data.T.astype(float) for name, load in loaders.items()}


def tables_in(folders) -> dict[str, np.ndarray]:
    """The matrix X of every *.npz file in these folders."""
    tables = {}
    for folder in folders:
        for path in sorted(folder.glob("*.npz")):
            with np.load(path, allow_pickle=False) as arrays:
                if "X" in arrays:
                    tables[path.stem] = arrays["X"]
    return tables


def problem(X, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The table with gaps, the truth, and what is hidden."""
    rng = np.random.default_rng(seed)
    X = X[:, np.sort(rng.permutation(X.shape[1])[:_MOST_COLUMNS])]
    X = X[np.sort(rng.permutation(X.shape[0])[:_MOST_ROWS])].astype(float)
    known = np.isfinite(X)
    kept = known & (rng.random(X.shape) < share)
    for j in np.flatnonzero(kept.sum(axis=0) < 3):
        kept[rng.permutation(np.flatnonzero(known[:, j]))[:3], j] = True
    return np.where(kept, X, np.nan), X, known & ~kept


def error(filled, truth, hidden) -> float:
    return float(np.linalg.norm((filled - truth)[hidden]) / np.linalg.norm(truth[hidden]))


def row_mean_and_offset(M) -> np.ndarray:
    mean = np.nanmean(M, axis=1)
    mean = np.where(np.isfinite(mean), mean, np.nanmean(M))
    offset = np.nan_to_num(np.nanmean(M - mean[:, None], axis=0))
    return np.where(np.isnan(M), mean[:, None] + offset, M)


def _standardised(impute):
    """An imputer of scikit-learn on standardised rows, whichever way."""

    def fill(M):
        mean, std = np.nanmean(M, axis=1, keepdims=True), np.nanstd(M, axis=1, keepdims=True)
        std[std == 0] = 1.0
        return impute(((M - mean) / std).T).T * std + mean

    return fill


def rivals() -> dict:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer

    keep = {"keep_empty_features": True}
    return {
        "mean + offset": row_mean_and_offset,
        "KNN": _standardised(KNNImputer(**keep).fit_transform),
        "iterative": _standardised(
            IterativeImputer(max_iter=5, n_nearest_features=30, random_state=0, **keep).fit_transform
        ),
        "als": lambda M: co.methods.als(M, random_state=0).to_dense(),
        "soft_impute": lambda M: co.methods.soft_impute(M, random_state=0).to_dense(),
    }


def coverage(completion, truth, hidden) -> tuple[float, float, float]:
    """Share of hidden entries within 90 % intervals: of all, in the worst tenth and in the best."""
    rows, columns = np.nonzero(hidden)
    low, high = completion.interval(rows, columns, level=0.9)
    within = (low <= truth[hidden]) & (truth[hidden] <= high)
    tenths = [part.mean() for part in np.array_split(within[np.argsort(high - low, kind="stable")], 10)]
    return float(within.mean()), min(tenths), max(tenths)


def compare(tables: dict, shares, seeds: int) -> list[float]:
    """Print errors, and return the error of `complete` over the best of the others, by problem."""
    others = rivals()
    print(f"{'table':18} seen  complete  s     90 % (tenths)      " + "  ".join(f"{name:>13}" for name in others))
    ratios = []
    for name, X in tables.items():
        for share in shares if np.isfinite(X).all() else (0.8,):
            errors, seconds, held = {one: [] for one in ("complete", *others)}, [], []
            for seed in range(seeds):
                M, truth, hidden = problem(X, share, seed)
                start = time.perf_counter()
                completion = co.complete(M)
                seconds.append(time.perf_counter() - start)
                errors["complete"].append(error(completion.to_dense(), truth, hidden))
                held.append(coverage(completion, truth, hidden))
                for one, fill in others.items():
                    errors[one].append(error(fill(M), truth, hidden))
            mean = {one: float(np.mean(found)) for one, found in errors.items()}
            ratios.append(mean["complete"] / min(mean[one] for one in others))
            share_held, worst, best = np.mean(held, axis=0)
            row = "  ".join(f"{mean[one]:13.5f}" for one in others)
            print(
                f"{name:18} {share:4.2f}  {mean['complete']:.5f}  {np.mean(seconds):5.1f}"
                f" {100 * share_held:3.0f} ({100 * worst:.0f}-{100 * best:.0f})  {row}  ratio to best {ratios[-1]:.3f}",
                flush=True,
            )
    print(f"ratio to the best: geometric mean {np.exp(np.mean(np.log(ratios))):.3f}, largest {max(ratios):.3f}")
    return ratios


def large(scale: float, seed: int = 0) -> None:
    """A table of the shape of MovieLens-20M times `scale`: decaying spectrum, popular columns, noise."""
    rng = np.random.default_rng(seed)
    m, n, count, rank = int(138_000 * scale), int(27_000 * scale), int(20_000_000 * scale**2), 60
    popularity = 1 / (np.arange(n) + 30.0)
    rows = rng.integers(0, m, int(1.2 * count))
    columns = rng.choice(n, rows.size, p=popularity / popularity.sum())
    places = np.unique(rows * np.int64(n) + columns)
    places = np.sort(rng.permutation(places)[: int(1.1 * count)])
    rows, columns = places // n, places % n
    spectrum = 0.9 ** np.arange(rank)
    U, V = rng.standard_normal((m, rank)) * spectrum, rng.standard_normal((n, rank))
    values = rng.standard_normal(rows.size) * 0.8 + V[columns, 0]
    # In pieces, so that the peak of memory is that of complete.
    for some in np.array_split(np.arange(rows.size), max(1, rows.size // 1_000_000)):
        values[some] += np.einsum("kr,kr->k", U[rows[some]], V[columns[some]]) / 3
    test = rng.random(rows.size) < 0.1
    o = co.Observations.from_triplets(rows[~test], columns[~test], values[~test], (m, n))
    start = time.perf_counter()
    completion = co.complete(o)
    seconds = time.perf_counter() - start
    found = completion.entries(rows[test], columns[test])
    rms = float(np.sqrt(np.mean((found - values[test]) ** 2)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{m:,} x {n:,}, {o.values.size:,} entries: complete {rms:.4f} in {seconds:.0f} s, peak {peak:.1f} GB")
    print(completion.choices)
    try:
        from cmfrec import CMF
        from scipy import sparse
    except ImportError:
        print("cmfrec is not installed")
        return
    S = sparse.coo_matrix((values[~test], (rows[~test], columns[~test])), shape=(m, n))
    for k, penalty in ((40, 10.0), (40, 30.0)):
        start = time.perf_counter()
        fitted = CMF(k=k, lambda_=penalty, verbose=False).fit(S)
        seconds = time.perf_counter() - start
        rms = float(np.sqrt(np.mean((fitted.predict(rows[test], columns[test]) - values[test]) ** 2)))
        print(f"cmfrec, rank {k}, penalty {penalty:g}: {rms:.4f} in {seconds:.0f} s")


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gaps", description=__doc__)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder with *.npz; may be repeated")
    parser.add_argument("--sets", nargs="*", help="only these tables")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.3, 0.1])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--large", type=float, metavar="SCALE", help="1 is the shape of MovieLens-20M")
    json_option(parser)
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    print(facts())
    if given.large:
        large(given.large)
        return 0
    tables = shipped() | tables_in(given.data)
    if given.sets:
        tables = {name: tables[name] for name in given.sets}
    ratios = sorted(compare(tables, given.shares, given.seeds))
    if given.data and not given.sets:
        figures = {"problems": len(ratios), "least": ratios[0], "second_largest": ratios[-2], "largest": ratios[-1]}
        record(given.json, "gaps", figures)
    return 0
