"""Questions chosen for what they tell about models like the known ones, and scores from them.

A column is Gaussian about the row means of the full ones, with the covariance F F' + t I. Only directions beyond what
noise alone would give are kept, with their variances less what noise adds. Chosen questions give the smallest errors
for new models that are like the known ones, and errors without bound for others: nothing in them is drawn at random.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._support.arguments import as_generator
from ...completion import Completion
from ...data.observations import Observations
from ...model.column_space import ColumnSpace, fit_column_space, no_variances
from ...model.full_columns.column_outliers import solve_without_outliers
from ...model.full_columns.outlier_screening import Whole, rare_code
from ...model.solution import Solution
from ...uncertainty.means import mean_errors, means_and_ends

_FOLDS = 5  # Groups in which the known models are taken for new ones.
_FEWEST_KNOWN = 10  # Known models from which caution and widths are learned.
_CAUTION = 1.0, 3.0, 10.0, 30.0  # Factors of the noise that are tried: the directions are not quite the right ones.
_POOL = 8  # Questions per known model in the random pool; the best of more would be so by chance.


def select_chosen(observations: Observations, k: int, random_state=None) -> np.ndarray:
    """Rows, rising, after which the sum over a new column is known best, if it is like the known ones.

    Rows are taken one by one, each time the one after which the sum over the column is known best. With d full columns
    and more than 8 d rows they are chosen from a random pool of 8 d, or 2 k if that is more: what few columns say about
    a row is uncertain, and the seemingly best of many rows would be so by chance.
    """
    return np.sort(_chosen_rows(observations, _prior(observations), k, random_state))


def recognised(observations: Observations) -> np.ndarray:
    """Which partial columns have the rows that `select_chosen` gives, shape (n,)."""
    o, found = observations, np.zeros(observations.shape[1], bool)
    if o.full_columns.size < 3 or not o.partial_columns.size:
        return found
    patterns = {
        j: o.rows[o.indptr[j] : o.indptr[j + 1]] for j in o.partial_columns if 2 * o.n_observed[j] <= o.shape[0]
    }
    sizes = {rows.size for rows in patterns.values() if rows.size}
    best_rows = _choices(o, sizes)
    for j, rows in patterns.items():
        found[j] = _is_chosen(rows, best_rows, o.shape[0])
    return found


def scores_of_chosen(observations: Observations, level: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Scores of all columns and half the widths of their intervals, where partial columns have chosen rows.

    How far scores are off is seen on the full columns: each is taken for a new one, with rows chosen without it. With
    fewer than 10 of them nothing checks the intervals.
    """
    (caution, unbiased), factor = _learned_from_known(observations, level, rng)
    mean, half = _means(_completion(observations, _prior(observations), caution), level, unbiased)
    return mean, np.where(half > 0, half, 0.0) * factor if factor < np.inf else np.where(half > 0, np.inf, 0.0)


def _prior(observations: Observations) -> ColumnSpace:
    """The directions of the full columns that noise alone would not give, their variances, and the noise."""
    m, d = observations.shape[0], observations.full_columns.size
    if d < 3:
        raise ValueError(f"{d} columns are known in full; three are the fewest from which others can be told")
    space = fit_column_space(observations, center=True)
    if space.rank == 0:
        raise ValueError("the columns known in full are all equal, so they tell nothing of others")
    if not space.has_variances:
        raise ValueError(no_variances(observations.values))
    n = d - 1  # for the center is taken off
    squares = np.append(space.singular_values, np.zeros(2)) ** 2
    floor, r = 1e-10 * squares.sum() / (m * n), 1
    while True:
        t = max((squares.sum() - squares[:r].sum()) / max(1, (m - r) * (n - r)), floor)
        if r + 1 >= min(m, n) or r == space.rank or squares[r] <= t * (np.sqrt(m) + np.sqrt(n)) ** 2:
            break
        r += 1
    # Noise lifts the variance v of a direction to t (1 + x)(1 + m / n / x) with x = v / t.
    q = np.maximum(squares[:r] / (t * n) - m / n - 1, 2 * np.sqrt(m / n))
    variances = t * (q + np.sqrt(np.maximum(q**2 - 4 * m / n, 0))) / 2
    return replace(
        space,
        basis=space.basis[:, :r],
        singular_values=space.singular_values[:r],
        variances=variances,
        noise_std=float(np.sqrt(t)),
    )


def _chosen_rows(observations: Observations, prior: ColumnSpace, k: int, random_state=None) -> np.ndarray:
    """k rows in the order of choosing."""
    m, d = observations.shape[0], observations.full_columns.size
    rng = as_generator(0 if random_state is None else random_state)
    n_pool = min(m, max(_POOL * d, 2 * k))
    pool = np.arange(m) if n_pool == m else np.sort(rng.choice(m, n_pool, replace=False))
    F = prior.basis.astype(np.float64) * (np.sqrt(prior.variances) / prior.noise_std)
    return pool[_rows_for_the_sum(F[pool], F.sum(axis=0), k)]


def _choices(observations: Observations, sizes) -> dict[int, np.ndarray]:
    """The rows that would be chosen, for every number of them."""
    prior = _prior(observations)
    return {k: _chosen_rows(observations, prior, k) for k in sizes}


def _rows_for_the_sum(F, g, k: int) -> np.ndarray:
    """Greedily: P is the covariance of z given the rows so far, g the sum of all others, g'P g its variance.

    F and g are in units of the noise, so that no square overflows.
    """
    P, free, chosen = np.eye(F.shape[1]), np.ones(F.shape[0], bool), []
    for _ in range(k):
        FP = F @ P
        q, h = np.einsum("ij,ij->i", FP, F), FP @ g
        # after a row f is known: (g - f)'(P - P f f'P / (1 + f'P f))(g - f), less g'P g
        change = q - 2 * h - (h - q) ** 2 / (1 + q)
        j = int(np.argmin(np.where(free, change, np.inf)))
        chosen.append(j)
        free[j] = False
        P = P - np.outer(FP[j], FP[j]) / (1 + q[j])
        g = g - F[j]
    return np.array(chosen, np.int64)


def _completion(observations: Observations, prior: ColumnSpace, caution: float) -> Completion:
    noise = caution * prior.noise_std**2
    code = rare_code(Whole(observations))
    coefficients, status, unused = solve_without_outliers(
        prior, observations, penalty=noise / prior.variances, code=code
    )
    return Completion(Solution(observations, prior, coefficients, status, noise, unused=unused))


def _means(completion: Completion, level: float, unbiased: bool) -> tuple[np.ndarray, np.ndarray]:
    """Means of the columns and half the widths of their intervals, shape (n,) each."""
    solution, accuracy = completion.solution, completion.accuracy
    errors = mean_errors(solution, accuracy, unbiased, hide_full=False)
    mean, low, high = means_and_ends(solution, accuracy, errors.half_width(level), unbiased)
    return mean, (high - low) / 2


def _learned_from_known(o: Observations, level: float, rng) -> tuple[tuple[float, bool], float]:
    """Caution, whether to unbias, and the factor by which intervals must be wider, that serve the known models best."""
    d, partial = o.full_columns.size, o.partial_columns
    if d < _FEWEST_KNOWN or partial.size == 0:
        return (_CAUTION[0], True), 1.0
    A = o.full_matrix().astype(np.float64)
    truth, patterns = A.mean(axis=0), [o.rows[o.indptr[j] : o.indptr[j + 1]] for j in partial]
    sizes = {rows.size for rows in patterns if rows.size}
    settings = [(caution, unbiased) for caution in _CAUTION for unbiased in (True, False)]
    errors, halves = np.empty((len(settings), d)), np.empty((len(settings), d))
    asked = rng.permutation(np.resize(np.arange(partial.size), d))
    for fold in np.array_split(rng.permutation(d), _FOLDS):
        others = Observations.from_dense(np.delete(A, fold, axis=1))
        anew = _choices(others, sizes)
        rows = {j: anew.get(patterns[k].size, patterns[k]) for j, k in zip(fold, asked[fold])}
        known = Observations.from_dense(_with_gaps(A, rows))
        prior = _prior(known)
        for k, (caution, unbiased) in enumerate(settings):
            mean, half = _means(_completion(known, prior, caution), level, unbiased)
            errors[k, fold], halves[k, fold] = np.abs(mean - truth)[fold], half[fold]
    best = int(np.argmin((errors**2).mean(axis=1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.sort(np.where(errors[best] > 0, errors[best] / halves[best], 0.0))
    at = int(np.ceil((d + 1) * level))
    return settings[best], float(ratios[at - 1]) if at <= d else np.inf


def _is_chosen(rows, best_rows: dict, m: int) -> bool:
    """Whether more of the rows would be chosen again than halfway from what chance gives to all."""
    k = rows.size
    return bool(k and np.isin(rows, best_rows[k]).sum() > k * (1 + k / m) / 2)


def _with_gaps(A, rows: dict) -> np.ndarray:
    """A, of whose column j only rows[j] are left."""
    result = A.copy()
    for j, seen in rows.items():
        result[:, j] = np.nan
        result[seen, j] = A[seen, j]
    return result
