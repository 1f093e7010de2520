"""Scores of new models from k questions, on real benchmarks: colonnade beside what people would use instead.

    python -m benchmarks evaluation --data DIR [--sets NAME ...] [--questions 50 100] [--seeds 10]
        [--split random better later gaps]

DIR holds NAME.npz files with X (questions by models, float, NaN in gaps) and columns (names of models). Only models
without a gap take part in random, better and later. random: a quarter of the models is new. better: the worse half is
known, the best 30 % are new. later: the last 30 % by name are new. gaps: models with gaps are known, the complete ones
are new. Errors are in points (100: every answer right). rank is Spearman's correlation of the new models, holds the
share of 90 % intervals with the truth, width that of the intervals.
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
    if how == "gaps":
        complete = np.isfinite(X).all(axis=0)
        return np.flatnonzero(~complete), np.flatnonzero(complete)
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


def logistic_factors(A, rank: int, decay: float, hidden=None, steps: int = 300):
    """Factors U (n, rank) and V (m, rank) of the logits without `hidden` entries, by AdamW as in the code of FAQ."""
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((A.shape[1], rank)), rng.standard_normal((A.shape[0], rank))]
    moments = [[np.zeros_like(p), np.zeros_like(p)] for p in parts]
    kept = np.ones(A.shape, bool) if hidden is None else ~hidden
    for step in range(1, steps + 1):
        rate = 1e-2 if step > steps // 4 else 5e-2  # They take 2,000 steps of 0.01.
        error = np.where(kept, 1 / (1 + np.exp(-parts[1] @ parts[0].T)) - A, 0.0) / kept.sum()
        for part, (first, second), gradient in zip(parts, moments, (error.T @ parts[1], error @ parts[0])):
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            part *= 1 - rate * decay
            part -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return parts


_FACTORS = {}  # Of the last table that was seen: later and better have one split only.


def best_factors(A):
    """The rank and the decay that predict a tenth of the answers best."""
    key = hash(A.tobytes())
    if key not in _FACTORS:
        hidden = np.random.default_rng(0).random(A.shape) < 0.1
        losses = {}
        for rank in (2, 4, 8):
            for decay in (0.1, 1.0):
                U, V = logistic_factors(A, rank, decay, hidden)
                logits = (V @ U.T)[hidden]
                losses[rank, decay] = np.mean(np.logaddexp(0, logits) - A[hidden] * logits)
        _FACTORS.clear()
        _FACTORS[key] = logistic_factors(A, *min(losses, key=losses.get))
    return _FACTORS[key]


def faq(A, T, k, seed, uniform=0.25):
    """Factorized Active Querying (Wu, Nair, Candes 2026), reimplemented: k questions one by one, with replacement.

    Questions are drawn in proportion to sqrt(p (1 - p)), mixed with a quarter of uniform draws. These are the settings
    that its authors found best for complete histories.
    """
    rng, (m, n) = np.random.default_rng(seed), T.shape
    U, V = best_factors(A)
    Z, S = np.tile(U.mean(axis=0), (n, 1)), np.tile(np.cov(U.T), (n, 1, 1))
    sums, squares, inner, totals, models = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((k, n)), np.arange(n)
    for s in range(k):
        p = np.clip(1 / (1 + np.exp(-Z @ V.T)), 1e-9, 1 - 1e-9)
        h = np.sqrt(p * (1 - p))
        q = (1 - uniform) * h / h.sum(axis=1, keepdims=True) + uniform / m
        i = np.minimum((q.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), m - 1)
        residual, weight, v = T[i, models] - p[models, i], 1 / q[models, i], V[i]
        totals[s] = p.sum(axis=1)
        sums += totals[s] + residual * weight
        squares += (residual * weight) ** 2
        inner += T[i, models] * weight
        Sv, w = np.einsum("nab,nb->na", S, v), h[models, i] ** 2
        S -= (w / (1 + w * np.einsum("na,na->n", v, Sv)))[:, None, None] * np.einsum("na,nb->nab", Sv, Sv)
        Z += np.einsum("nab,nb->na", S, v) * residual[:, None]
    variance = np.maximum(squares / k - ((inner / k - totals) ** 2).mean(axis=0), 0) / m**2
    found, half = sums / (k * m), stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(variance / k)
    return found, found - half, found + half


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
    "FAQ": faq,
    "ours": ours("balanced"),
    "ours, random": ours("random"),
    "ours, chosen": ours("chosen"),
}

LEARN_FROM_GAPS = "averaging", "ours", "ours, random"


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
        for how in options.split if not complete.all() else [one for one in options.split if one != "gaps"]:
            kept = np.ones_like(complete) if how == "gaps" else complete
            for k in sorted({min(k, len(X) // 2) for k in options.questions}):
                for method in [one for one in options.methods if how != "gaps" or one in LEARN_FROM_GAPS]:
                    result = measure(X[:, kept], names[kept], how, k, METHODS[method], options.seeds)
                    print(f"{name:22} {how:7} {k:4d} of {len(X):5d}  {method:12}  {result}", flush=True)
    return 0
