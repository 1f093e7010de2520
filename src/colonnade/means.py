"""Means of columns: what the model predicts, set right by the entries that were measured, with an interval.

Of a column with observed rows O, leave out one entry i after the other. The rows that are then unknown are predicted
from the rest, and the error at i, one of these rows at random, tells how far off their average prediction is:

    m theta_i = (sum of x over O without i) + (sum of predictions over the other rows) + N e_i,    N = m - s + 1.

If the rows were drawn at random this is unbiased whatever the model does; the average over i is the answer. It is
linear in the entries, w'x, so its variance under the model is known too:

    w = h + K^-1 D (N - h) / s,   h = K^-1 k,   D = diag(K^-1)^-1,   k the covariances with the sum over the column.

How far such means really are off, in deviations, is seen on the observed entries of each column, taken for a column of
which a random third is hidden.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from ._arguments import as_generator
from ._threads import one_blas_thread
from .solve import Status

_BLOCK_CELLS = 4_000_000
_ASKED_COLUMNS = 1_000
_SPLITS = 4  # random thirds of each asked column


def column_means(completion, level: float, unbiased: bool, asked=None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of all columns of a completion, and the ends of their intervals; see `Completion.column_means`.

    `asked` is the completion of columns on which the intervals are calibrated, if not these themselves.
    """
    o, (m, n) = completion.observations, completion.shape
    mean, deviation = np.full(n, np.nan), np.zeros(n)
    for j in o.full_columns:
        mean[j] = (o.values[o.indptr[j] : o.indptr[j + 1]] / np.float64(m)).sum()
    noise, filled = _noise(completion), _filled(completion)
    if noise > 0:
        model = _Model(completion, noise)
        mean[filled], deviation[filled] = model.means(o.take(filled), model.sum_over_rows, m, unbiased)
        calibration = (o, filled) if asked is None else (asked.observations, _filled(asked))
        half = deviation * _half_width(model, *calibration, level, unbiased) * completion.optimism
    else:  # the data fit to rounding, and so do the means
        half = deviation
        for lo in range(0, filled.size, step := max(1, _BLOCK_CELLS // m)):
            mean[filled[lo : lo + step]] = completion.columns(filled[lo : lo + step]).mean(axis=0, dtype=np.float64)
    return mean, mean - half, mean + half


def _filled(completion) -> np.ndarray:
    """The partial columns that are filled."""
    partial = completion.observations.partial_columns
    return partial[[Status(code).is_filled for code in completion.status[partial]]] if partial.size else partial


def _noise(completion) -> float:
    noise = completion.noise_variance or completion.noise_std**2
    size = np.mean(completion.space.variances) / completion.shape[0] if completion.rank else 0.0
    return noise if np.isfinite(noise) and noise > 1e-24 * size else 0.0


class _Model:
    """Entries of a column are Gaussian with the covariance F F' + t / w about the center."""

    def __init__(self, completion, noise: float):
        space = completion.space
        self.F = space.basis.astype(np.float64) * np.sqrt(space.variances)
        self.noise = noise
        self.center = np.zeros(completion.shape[0]) if space.center is None else space.center.astype(np.float64)
        self.sum_over_rows = self.F.sum(axis=0), float(self.center.sum())

    def means(self, o, sums, m: int, unbiased: bool) -> tuple[np.ndarray, np.ndarray]:
        """Means and their deviations of all columns over m rows, of which F and center add up to `sums`.

        `sums` may hold one number per column, for columns that stand for different rows.
        """
        mean, deviation = np.empty(o.shape[1]), np.empty(o.shape[1])
        total, offset = (np.asarray(part) for part in sums)
        with one_blas_thread():
            for s in np.unique(o.n_observed):
                alike = np.flatnonzero(o.n_observed == s)
                step = max(1, _BLOCK_CELLS // max(1, int(s * max(s, self.F.shape[1]))))
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
        K = np.matmul(B, B.transpose(0, 2, 1)) + t[:, :, None] * np.eye(s)
        inverse = np.linalg.inv(K)
        k = (np.matmul(B, F_sum) if F_sum.ndim == 1 else np.einsum("csr,cr->cs", B, F_sum)) + t
        w = np.einsum("cij,cj->ci", inverse, k)
        if unbiased and s:
            diagonal = np.einsum("cii->ci", inverse)
            w = w + np.einsum("cij,cj->ci", inverse, (m - s + 1 - w) / diagonal / s)
        own = (F_sum**2).sum(axis=-1) + m * self.noise
        variance = np.einsum("ci,cij,cj->c", w, K, w) - 2 * (w * k).sum(axis=1) + own
        return ((w * x).sum(axis=1) + c_sum) / m, np.sqrt(np.maximum(variance, 0)) / m


def _half_width(model: _Model, o, filled, level: float, unbiased: bool) -> float:
    """In deviations: the conformal quantile over parts of the observed entries of some columns."""
    able = filled[o.n_observed[filled] >= 4]
    able = able if able.size <= _ASKED_COLUMNS else able[np.linspace(0, able.size - 1, _ASKED_COLUMNS).astype(int)]
    asked, rng = o.take(able), as_generator(0)  # which parts: the same ones every time
    column = asked.entry_columns
    scores = []
    for _ in range(_SPLITS if able.size else 0):
        order = np.lexsort((rng.random(column.size), column))
        place = np.arange(column.size) - asked.indptr[column]
        kept = np.zeros(column.size, bool)
        kept[order] = place < (2 * asked.n_observed // 3)[column]
        scores.append(_scores_of_parts(model, asked, column, kept, unbiased))
    scores = np.sort(np.concatenate(scores)) if scores else np.zeros(0)
    k = int(np.ceil((scores.size + 1) * level))
    return float(scores[k - 1]) if 0 < k <= scores.size else float(stats.norm.ppf(0.5 + level / 2))


def _scores_of_parts(model: _Model, asked, column, kept, unbiased) -> np.ndarray:
    """How many deviations the mean over all observed rows is off, told from the kept ones."""
    n = asked.shape[1]
    F_sum = np.zeros((n, model.F.shape[1]))
    np.add.at(F_sum, column, model.F[asked.rows])
    c_sum = np.bincount(column, model.center[asked.rows], n)
    truth = np.bincount(column, asked.values.astype(np.float64), n) / asked.n_observed
    scores = np.empty(n)
    for s in np.unique(asked.n_observed):
        alike = np.flatnonzero(asked.n_observed == s)
        part = asked.take(alike).only(kept[np.isin(column, alike)])
        mean, deviation = model.means(part, (F_sum[alike], c_sum[alike]), int(s), unbiased)
        with np.errstate(divide="ignore", invalid="ignore"):
            scores[alike] = np.abs(mean - truth[alike]) / deviation
    return scores[np.isfinite(scores)]
