"""Multiple imputation by Rubin's rules: how often 95 % intervals of a mean, a slope and a correlation hold.

Rows are drawn from a population, a quarter of the entries is deleted at random, and the rest is filled 20 times. The
population is a normal one of three factors and noise, or a table that scikit-learn ships, drawn with replacement.
Printed are the shares of the intervals that hold the population's value, in brackets those of the prediction alone.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes

import colonnade as co
from benchmarks.machine import count, facts

_MISSING, _DRAWS, _LEVEL = 0.25, 20, 0.95
_LOADINGS = np.random.default_rng(99).standard_normal((8, 3))
_NOISE = 0.7  # Deviation of the noise of the made population.


def _normal(n: int, rng) -> np.ndarray:
    return 2 + rng.standard_normal((n, 3)) @ _LOADINGS.T + _NOISE * rng.standard_normal((n, 8))


def _sampler(X):
    return lambda n, rng: X[rng.integers(0, X.shape[0], n)]


def populations() -> dict:
    """Name to a function that draws rows, and the values that intervals should hold."""
    C = _LOADINGS @ _LOADINGS.T + _NOISE**2 * np.eye(8)
    made = np.array([2, C[0, 1] / C[1, 1], np.arctanh(C[1, 2] / np.sqrt(C[1, 1] * C[2, 2]))])
    found = {"8 variables, 3 factors and noise": (_normal, made)}
    diabetes = load_diabetes().data[:, [3, 2, 0, 1, 4, 5, 6, 7, 8, 9]]  # Blood pressure on body mass index.
    for name, X in (("diabetes", diabetes), ("breast cancer", load_breast_cancer().data[:, :10])):
        found[name] = _sampler(X), analysed(X)[:, 0]
    return found


def analysed(X) -> np.ndarray:
    """Mean of the first variable, its slope on the second, Fisher's z of the second and third; with squared errors."""
    n, (y, x) = X.shape[0], X[:, :2].T - X[:, :2].mean(axis=0)[:, None]
    slope = x @ y / (x @ x)
    of_slope = np.sum((y - slope * x) ** 2) / (n - 2) / (x @ x)
    z = np.arctanh(np.corrcoef(X[:, 1], X[:, 2])[0, 1])
    return np.array([(X[:, 0].mean(), X[:, 0].var(ddof=1) / n), (slope, of_slope), (z, 1 / (n - 3))])


def pooled(results) -> tuple[np.ndarray, np.ndarray]:
    """Ends of intervals by Rubin's rules, from estimates and squared errors of shape (n_tables, k, 2)."""
    n = len(results)
    within, between = results[:, :, 1].mean(axis=0), np.zeros(results.shape[1])
    degrees = np.full(between.size, np.inf)
    if n > 1:
        between = (1 + 1 / n) * results[:, :, 0].var(axis=0, ddof=1)
        degrees = (n - 1) * (1 + within / between) ** 2
    half = stats.t.ppf((1 + _LEVEL) / 2, degrees) * np.sqrt(within + between)
    middle = results[:, :, 0].mean(axis=0)
    return middle - half, middle + half


def held(draw, truth, n_rows: int, repetitions: int) -> np.ndarray:
    """Whether each interval holds its value, shape (repetitions, 2, k): of imputations, and of the prediction."""
    result = np.empty((repetitions, 2, truth.size), bool)
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        X = draw(n_rows, rng)
        completion = co.complete(np.where(rng.random(X.shape) < _MISSING, np.nan, X), random_state=seed)
        drawn = np.array([analysed(table) for table in completion.sample(_DRAWS, random_state=seed)])
        for k, results in enumerate((drawn, analysed(completion.to_dense())[None])):
            low, high = pooled(results)
            result[seed, k] = (low <= truth) & (truth <= high)
    return result


def main(arguments) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks imputations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repetitions", type=count, default=100)
    parser.add_argument("--rows", type=count, default=200)
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    print(facts())
    print(f"{'population':34} {'mean':12} {'slope':12} correlation")
    for name, (draw, truth) in populations().items():
        shares = 100 * held(draw, truth, given.rows, given.repetitions).mean(axis=0)
        print(f"{name:34} " + " ".join(f"{a:3.0f} ({b:.0f})".ljust(12) for a, b in shares.T), flush=True)
    return 0
