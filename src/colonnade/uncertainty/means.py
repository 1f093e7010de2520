"""Means of columns: what the model predicts, set right by the entries that were measured, with an interval.

Of a column with observed rows O, leave out one entry i after the other. The rows that are then unknown are predicted
from the rest, and the error at i, one of these rows at random, tells how far off their average prediction is:

    m theta_i = (sum of x over O without i) + (sum of predictions over the other rows) + N e_i,    N = m - s + 1.

If the rows were drawn at random this is unbiased whatever the model does; the average over i is the answer. It is
linear in the entries, w'x, so its variance under the model is known too:

    w = h + K^-1 D (N - h) / s,   h = K^-1 k,   D = diag(K^-1)^-1,   k the covariances with the sum over the column.

How far such means really are off, in deviations, is seen on the observed entries of each column, taken for a column
with a random third hidden. That tells little of errors which many rows have in common, as those of neighbouring
wavelengths: few of the rows are among the observed ones. Full columns tell more. Each in turn is hidden but for as many
entries as the partial ones have, and filled from the others; if its mean then is farther off, in deviations, than
hiding a third of these entries showed, the intervals of all columns are wider by as much. Where the partial columns are
few, the full ones alone tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from .._support.arguments import as_generator
from .._support.numbers import BLOCK_CELLS
from .._support.threads import one_blas_thread
from ..model.column_space import fit_column_space, with_offset
from ..model.full_columns.hidden_columns import hidden_in_turn, offset_beside, some_of_the_full
from ..model.prediction import filled_columns, is_filled
from ..model.solve import Status

_ROUNDING = 1e-6  # Share of the size of entries; less noise is lost to rounding in the formulas.
_ASKED_COLUMNS = 1_000  # Partial columns whose parts are hidden, at most, for time.
_FEWEST_ENTRIES = 4  # Entries of a column; with fewer, no third of them is hidden.
_SPLITS = 4  # Times that a random third of each asked column is hidden.
_FEW_COLUMNS = 10  # Columns; fewer do not show how far means of columns like them are off.
_FEWEST_FULL, MOST_FULL = 10, 200  # Full columns that are hidden in turn: at least, and at most for time.
_FOLDS = 10  # Parts of the full columns that are hidden in turn.
# Levels of intervals at which errors of hidden full columns and of hidden parts are compared.
_LEVELS = 0.5, 0.8, 0.9, 0.95


@np.errstate(over="ignore", invalid="ignore")  # Columns with typos may overflow.
@one_blas_thread()
def means_and_ends(
    solution, accuracy, n_deviations: float, unbiased: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of all columns, and the ends of intervals with half-widths of so many deviations.

    `accuracy` knows the noise. See `Completion.column_means`.
    """
    o, (m, n) = _asked(solution, unbiased), solution.shape
    mean, deviation = np.full(n, np.nan), np.zeros(n)
    for j in o.full_columns:
        mean[j] = (o.values[o.indptr[j] : o.indptr[j + 1]] / np.float64(m)).sum()
    noise, filled = _noise(solution, accuracy), _filled(solution)
    if noise > 0:
        model = _Model(solution.space, noise)
        mean[filled], deviation[filled] = model.means(o.take(filled), model.sum_over_rows, m, unbiased)
        if solution.space.mean is not None:
            mean[solution.status == Status.PRIOR_ONLY] = solution.space.mean.mean()
        half = np.where(deviation > 0, deviation * n_deviations, 0.0)  # The deviation may be infinite.
    else:  # Such data fit, and so do the means. An entry is off by what the few entries of its column leave.
        std = accuracy.noise_std if np.isfinite(accuracy.noise_std) else np.inf  # Nothing shows the noise.
        half = np.zeros(n)
        half[filled] = n_deviations * std * np.sqrt(max(1, solution.rank) / np.maximum(1, o.n_observed[filled]))
        for lo in range(0, filled.size, step := max(1, BLOCK_CELLS // m)):
            mean[filled[lo : lo + step]] = filled_columns(solution, filled[lo : lo + step]).mean(
                axis=0, dtype=np.float64
            )
    return mean, mean - half, mean + half


def _asked(solution, unbiased: bool):
    """The observations that tell the means: all of them if no random rows may be left out, however unlikely."""
    return solution.observations if unbiased else solution.used


def _filled(solution) -> np.ndarray:
    """The partial columns that are filled."""
    partial = solution.observations.partial_columns
    return partial[is_filled(solution.status[partial])]


def _noise(solution, accuracy) -> float:
    """The noise variance of an entry; 0 where it is so small beside the entries that the formulas lose their digits."""
    noise = solution.noise_variance or accuracy.noise_std**2
    least = _ROUNDING**2 * solution.space.entry_variance if solution.rank else 0.0
    return noise if np.isfinite(noise) and noise > least else 0.0


class _Model:
    """Entries of a column are Gaussian with the covariance F F' + t / w about the center."""

    def __init__(self, space, noise: float):
        self.F = space.basis.astype(np.float64) * np.sqrt(space.variances)
        self.noise = noise
        self.center = np.zeros(self.F.shape[0]) if space.center is None else space.center.astype(np.float64)
        self.sum_over_rows = self.F.sum(axis=0), float(self.center.sum())

    def means(self, o, sums, m: int, unbiased: bool) -> tuple[np.ndarray, np.ndarray]:
        """Means and their deviations of all columns over m rows; F and center of these rows add up to `sums`.

        `sums` may hold one number per column, for columns that stand for different rows.
        """
        mean, deviation = np.empty(o.shape[1]), np.empty(o.shape[1])
        total, offset = (np.asarray(part) for part in sums)
        with one_blas_thread():
            for s in np.unique(o.n_observed):
                alike = np.flatnonzero(o.n_observed == s)
                step = max(1, BLOCK_CELLS // max(1, int(s * self.F.shape[1])))
                for lo in range(0, alike.size, step):
                    which = alike[lo : lo + step]
                    F_sum = total if total.ndim == 1 else total[which]
                    c_sum = offset if offset.ndim == 0 else offset[which]
                    mean[which], deviation[which] = self._means(o, which, int(s), F_sum, c_sum, m, unbiased)
        return mean, deviation

    def _means(self, o, which, s, F_sum, c_sum, m, unbiased):
        at = o.indptr[which][:, None] + np.arange(s)
        x = o.values[at].astype(np.float64) - self.center[o.rows[at]]
        t = self.noise * (np.ones(at.shape) if o.weights is None else 1 / o.weights[at].astype(np.float64))
        B = self.F[o.rows[at]]
        times_inverse, diagonal = _inverse(B, t)
        k = (np.matmul(B, F_sum) if F_sum.ndim == 1 else np.einsum("csr,cr->cs", B, F_sum)) + t
        w = times_inverse(k)
        if unbiased and s:
            w = w + times_inverse((m - s + 1 - w) / diagonal / s)
        own = (F_sum**2).sum(axis=-1) + (m - s) * self.noise + t.sum(axis=1)  # Measured entries add their own noise.
        of_sum = (np.einsum("csr,cs->cr", B, w) ** 2).sum(axis=1) + (t * w**2).sum(axis=1)
        variance = of_sum - 2 * (w * k).sum(axis=1) + own
        return ((w * x).sum(axis=1) + c_sum) / m, np.sqrt(np.maximum(variance, 0)) / m


def _inverse(B, t):
    """Inverse of K = B B' + diag(t) for each of c columns, as a function that multiplies (c, s), and its diagonal."""
    c, s, r = B.shape
    if s <= r:
        inverse = np.linalg.inv(np.matmul(B, B.transpose(0, 2, 1)) + t[:, :, None] * np.eye(s))
        return lambda v: np.einsum("cij,cj->ci", inverse, v), np.einsum("cii->ci", inverse)
    root = np.sqrt(t)
    stacked = np.concatenate([B / root[:, :, None], np.broadcast_to(np.eye(r), (c, r, r))], axis=1)
    Q = np.linalg.qr(stacked)[0][:, :s]  # Then K^-1 = root^-1 (1 - Q Q') root^-1, without K.

    def times_inverse(v):
        scaled = v / root
        return (scaled - np.einsum("csr,cr->cs", Q, np.einsum("csr,cs->cr", Q, scaled))) / root

    at_least = 1 / (np.einsum("csr,csr->cs", B, B) + t)  # A bound of the inverse that holds whatever rounding does.
    return times_inverse, np.maximum((1 - np.einsum("csr,csr->cs", Q, Q)) / t, at_least)


@dataclass(frozen=True)
class MeanErrors:
    """How far means are off, in deviations.

    Attributes
    ----------
    scores : array of shape (k,)
        Of hidden parts of columns, rising.
    factor : float
        By which all means are farther off than these.
    """

    scores: np.ndarray
    factor: float

    def half_width(self, level: float) -> float:
        """The conformal quantile; where there are too few scores, the Gaussian one if it is not less than all."""
        k = int(np.ceil((self.scores.size + 1) * level))
        if 0 < k <= self.scores.size:
            return float(self.scores[k - 1]) * self.factor
        return max(float(ndtri(0.5 + level / 2)), float(self.scores.max(initial=0))) * self.factor


@np.errstate(over="ignore", invalid="ignore")  # Such columns may overflow.
@one_blas_thread()
def mean_errors(solution, accuracy, unbiased: bool, hide_full: bool = True) -> MeanErrors:
    """What the columns of a solution tell of the errors of means; full ones too unless `hide_full` is False."""
    noise, filled = _noise(solution, accuracy), _filled(solution)
    # The mean residual corrects an unbiased mean, whatever the rows have learned from the entries.
    optimism = 1.0 if unbiased else solution.optimism
    able = filled[_asked(solution, unbiased).n_observed[filled] >= _FEWEST_ENTRIES]
    if noise == 0 or able.size == 0:
        return MeanErrors(np.zeros(0), optimism)
    some = able[np.linspace(0, able.size - 1, min(able.size, _ASKED_COLUMNS)).astype(int)]
    asked = _asked(solution, unbiased).take(some)
    scores = _scores_of_parts(_Model(solution.space, noise), asked, unbiased, as_generator(0), _SPLITS)
    factor = 1.0
    if hide_full and (found := _scores_of_full(solution, noise, asked.n_observed, unbiased)):
        of_wholes, of_parts = found
        if some.size < _FEW_COLUMNS:  # So few columns show no quantile.
            return MeanErrors(np.sort(np.concatenate(of_wholes)), optimism)
        factor = _surely_larger(of_wholes, of_parts)
    return MeanErrors(np.sort(scores), optimism * factor)


def _scores_of_parts(model: _Model, asked, unbiased: bool, rng, n_splits: int) -> np.ndarray:
    """How many deviations the mean over all observed rows is off, told from two thirds of them."""
    column, n = asked.entry_columns, asked.shape[1]
    F_sum = np.zeros((n, model.F.shape[1]))
    np.add.at(F_sum, column, model.F[asked.rows])
    c_sum = np.bincount(column, model.center[asked.rows], n)
    truth = np.bincount(column, asked.values.astype(np.float64), n) / asked.n_observed
    scores = np.empty((n_splits, n))
    for split in range(n_splits):
        order = np.lexsort((rng.random(column.size), column))
        place = np.arange(column.size) - asked.indptr[column]
        kept = np.zeros(column.size, bool)
        kept[order] = place < (2 * asked.n_observed // 3)[column]
        for s in np.unique(asked.n_observed):
            alike = np.flatnonzero(asked.n_observed == s)
            part = asked.take(alike).only(kept[np.isin(column, alike)])
            mean, deviation = model.means(part, (F_sum[alike], c_sum[alike]), int(s), unbiased)
            scores[split, alike] = _in_deviations(mean - truth[alike], deviation)
    return scores[np.isfinite(scores)]


def _in_deviations(errors, deviations) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.abs(errors) / deviations


def _scores_of_full(solution, noise: float, sizes, unbiased: bool) -> tuple[list, list] | None:
    """Errors of the means of hidden full columns in deviations, and those of hidden parts of these columns.

    Both fold by fold; None if there are too few full columns. `sizes` are numbers of entries that columns have.
    """
    rows, A, weights = some_of_the_full(solution.learned_from, MOST_FULL)
    m, d = A.shape
    if d < _FEWEST_FULL or m <= _FEWEST_ENTRIES:
        return None
    rng = as_generator(0)
    center, offset = solution.space.center is not None, offset_beside(solution.space, rows, A)
    of_wholes, of_parts = [], []
    with one_blas_thread():
        for hidden in hidden_in_turn(A, weights, sizes, _FOLDS, d, rng):
            space = fit_column_space(hidden.others, rank=max(1, solution.rank), center=center)
            model = _Model(with_offset(space, offset), noise)
            mean, deviation = model.means(hidden.seen, model.sum_over_rows, m, unbiased)
            of_wholes.append(_in_deviations(mean - hidden.truth.mean(axis=0), deviation))
            of_parts.append(_scores_of_parts(model, hidden.seen, unbiased, rng, _SPLITS))
    return of_wholes, of_parts


def _surely_larger(some: list, others: list) -> float:
    """Ratio of some scores to others, less half a standard error, which the folds give; at least 1."""

    def log_ratio(folds):
        quantiles = [np.quantile(np.concatenate([scores[k] for k in folds]), _LEVELS) for scores in (some, others)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.mean(np.log(quantiles[0] / quantiles[1])))

    if not all(scores.size for scores in (*some, *others)):
        return 1.0
    folds = range(len(some))
    ratio, without = log_ratio(folds), np.array([log_ratio([k for k in folds if k != left]) for left in folds])
    if not (np.isfinite(ratio) and np.isfinite(without).all()):
        return 1.0
    error = np.sqrt((without.size - 1) * np.mean((without - without.mean()) ** 2))  # The jackknife estimate.
    return max(1.0, float(np.exp(ratio - error / 2)))
