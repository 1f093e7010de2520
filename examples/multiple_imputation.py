"""How often do 95 % intervals from multiple imputation hold the value of the population?

200 rows are drawn from a population, and a quarter of the entries is deleted at random. Means, and slopes and
correlations of neighbouring columns, are estimated from 20 filled tables and combined by Rubin's rules. Beside them
stand the intervals that take the prediction for a measurement.

    python examples/multiple_imputation.py
"""

import numpy as np
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes

import colonnade as co

N_ROWS, N_TABLES, LEVEL = 200, 20, 0.95


def factors(rng):
    """8 variables of 5,000 people: three factors and noise."""
    return rng.standard_normal((5_000, 3)) @ rng.standard_normal((3, 8)) + rng.standard_normal((5_000, 8))


POPULATIONS = {
    "8 variables, 3 factors and noise": factors,
    "diabetes, 10 variables": lambda rng: load_diabetes().data,
    "breast cancer, 10 variables": lambda rng: load_breast_cancer().data[:, :10],
}


def estimates(table):
    """Means, slopes and Fisher's z of the correlations of neighbouring columns, and their squared standard errors."""
    n, x, y = len(table), table[:, :-1], table[:, 1:]
    u, v = x - x.mean(axis=0), y - y.mean(axis=0)
    slope = (u * v).sum(axis=0) / (u**2).sum(axis=0)
    error = ((v - slope * u) ** 2).sum(axis=0) / (n - 2) / (u**2).sum(axis=0)
    correlation = slope * u.std(axis=0) / v.std(axis=0)
    values = {"mean": x.mean(axis=0), "slope": slope, "correlation": np.arctanh(correlation)}
    return values, {"mean": x.var(axis=0, ddof=1) / n, "slope": error, "correlation": np.full(slope.size, 1 / (n - 3))}


def rubin(values, squares):
    """The combined estimates and half widths of their intervals; `values` has a row for each table."""
    n, within, between = len(values), np.mean(squares, axis=0), np.var(values, axis=0, ddof=1)
    error = within + (1 + 1 / n) * between
    degrees = (n - 1) * (1 + within / ((1 + 1 / n) * between)) ** 2
    return np.mean(values, axis=0), stats.t.ppf((1 + LEVEL) / 2, degrees) * np.sqrt(error)


def main(n_repetitions=100):
    shares = {}
    for name, population in POPULATIONS.items():
        everyone = population(np.random.default_rng(0))
        truth, _ = estimates(everyone)
        held = {figure: ([], []) for figure in truth}
        for seed in range(n_repetitions):
            rng = np.random.default_rng(seed)
            rows = everyone[rng.integers(len(everyone), size=N_ROWS)]
            known = np.where(rng.random(rows.shape) < 0.25, np.nan, rows)
            completion = co.complete(known, orientation="rows")
            drawn = [estimates(table) for table in completion.sample(N_TABLES, random_state=seed)]
            alone, squares = estimates(completion.to_dense())
            for figure, (imputed, predicted) in held.items():
                middle, half = rubin(*(np.array([each[k][figure] for each in drawn]) for k in (0, 1)))
                imputed.append(np.abs(middle - truth[figure]) <= half)
                half = stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(squares[figure])
                predicted.append(np.abs(alone[figure] - truth[figure]) <= half)
        shares[name] = {figure: tuple(float(np.mean(each)) for each in both) for figure, both in held.items()}
        words = (f"{figure} {100 * a:.0f} % ({100 * b:.0f} %)" for figure, (a, b) in shares[name].items())
        print(f"{name}: {', '.join(words)}", flush=True)
    return shares


if __name__ == "__main__":
    main()
