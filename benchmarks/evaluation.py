"""Scores of new models from k questions, on real benchmarks: colonnade beside what people would use instead.

    python -m benchmarks evaluation --data DIR [--sets NAME ...] [--questions 50 100] [--seeds 10]
        [--split random better later]

DIR holds NAME.npz files with X (questions by models, float, NaN in gaps) and columns (names of models). Only models
without a gap take part. random: a quarter of the models is new. better: the worse half is known, the best 30 % are new.
later: the last 30 % by name are new. Errors are in points (100: every answer right). rank is Spearman's correlation of
the new models, holds the share of 90 % intervals with the truth, width that of the intervals.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.linear_model import RidgeCV

import colonnade as co

LEVEL = 0.9


def split(X, names, how: str, rng):
    """Columns of known and of new models."""
    n = X.shape[1]
    if how == "random":
        order = rng.permutation(n)
        return np.sort(order[n // 4 :]), np.sort(order[: n // 4])
    order = np.argsort(X.mean(axis=0) if how == "better" else names, kind="stable")
    return np.sort(order[: n // 2 if how == "better" else int(0.7 * n)]), np.sort(order[-int(0.3 * n) :])


def averaging(A, T, k, seed):
    """Mean of random answers, Wald's interval."""
    rows = np.random.default_rng(seed).choice(len(A), k, replace=False)
    p = T[rows].mean(axis=0)
    half = stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(np.maximum(T[rows].var(axis=0), 1e-12) / k * (1 - k / len(A)))
    return p, p - half, p + half


def ridge(A, T, k, seed):
    """Scores of known models regressed on their answers to random questions."""
    rows = np.random.default_rng(seed).choice(len(A), k, replace=False)
    return RidgeCV().fit(A[rows].T, A.mean(axis=0)).predict(T[rows].T), None, None


def aipw(A, T, k, seed, folds=10):
    """Answers regressed on those of known models, with residuals of ten folds."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(A))[:k]
    rest = np.setdiff1d(np.arange(len(A)), rows)
    found, halves = [], []
    for y in T[rows].T:
        residual, predicted = np.empty(k), np.zeros(len(A))
        for fold in np.array_split(np.arange(k), folds):
            others = np.setdiff1d(np.arange(k), fold)
            model = RidgeCV(np.logspace(-1, 4, 16)).fit(A[rows[others]], y[others])
            residual[fold] = y[fold] - model.predict(A[rows[fold]])
            predicted += model.predict(A) / folds
        found.append((y.sum() + predicted[rest].sum() + rest.size * residual.mean()) / len(A))
        halves.append(1.645 * residual.std(ddof=1) / np.sqrt(k) * np.sqrt(1 - k / len(A)))
    found, halves = np.array(found), np.array(halves)
    return found, found - halves, found + halves


def ours(design: str):
    def run(A, T, k, seed):
        rows = co.leaderboard.select_questions(A, k, design=design, random_state=None if design == "chosen" else seed)
        asked = np.full(T.shape, np.nan)
        asked[rows] = T[rows]
        table = co.leaderboard.scores(np.hstack([A, asked]), level=LEVEL, design=design)[A.shape[1] :]
        return table.score, table.low, table.high

    return run


METHODS = {
    "averaging": averaging,
    "ridge": ridge,
    "AIPW": aipw,
    "ours": ours("balanced"),
    "ours, random": ours("random"),
    "ours, chosen": ours("chosen"),
}


def measure(X, names, how: str, k: int, method, seeds: int) -> str:
    errors, holds, widths, ranks, start = [], [], [], [], time.perf_counter()
    for seed in range(seeds):
        old, new = split(X, names, how, np.random.default_rng(seed))
        true = X[:, new].mean(axis=0)
        found, low, high = method(X[:, old], X[:, new], k, 1000 + seed)
        errors.append(found - true)
        ranks.append(stats.spearmanr(found, true).statistic)
        if low is not None:
            holds.append((low <= true + 1e-9) & (true <= high + 1e-9))
            widths.append(high - low)
    e = 100 * np.concatenate(errors)
    line = f"error {np.abs(e).mean():6.2f}  bias {e.mean():6.2f}  rank {np.nanmean(ranks):6.3f}"
    if holds:
        line += f"  holds {np.concatenate(holds).mean():.2f}  width {100 * np.concatenate(widths).mean():5.1f}"
    return f"{line}  {(time.perf_counter() - start) / seeds:.2f} s"


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks evaluation", description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--questions", nargs="+", type=int, default=[50, 100])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--split", nargs="+", default=["random", "better", "later"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    options = parser.parse_args(arguments)
    for name in options.sets or sorted(path.stem for path in options.data.glob("*.npz")):
        with np.load(options.data / f"{name}.npz", allow_pickle=False) as file:
            X, names = file["X"].astype(float), file["columns"]
        complete = np.isfinite(X).all(axis=0)
        X, names = X[:, complete], names[complete]
        for how in options.split:
            for k in sorted({min(k, len(X) // 2) for k in options.questions}):
                for method in options.methods:
                    result = measure(X, names, how, k, METHODS[method], options.seeds)
                    print(f"{name:22} {how:7} {k:4d} of {len(X):5d}  {method:12}  {result}", flush=True)
    return 0
