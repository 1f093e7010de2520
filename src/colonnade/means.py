"""Means of columns: what the model predicts, set right by the entries that were measured, with an interval.

Of a column with observed rows O, leave out one entry i after the other. The rows that are then unknown are predicted
from the rest, and the error at i, one of these rows at random, tells how far off their average prediction is:

    m theta_i = (sum of x over O without i) + (sum of predictions over the other rows) + N e_i,    N = m - s + 1.

If the rows were drawn at random this is unbiased whatever the model does; the average over i is the answer. It is
linear in the entries, w'x, so its variance under the model is known too:

    w = h + K^-1 D (N - h) / s,   h = K^-1 k,   D = diag(K^-1)^-1,   k the covariances with the sum over the column.

How far such means really are off, in deviations, is seen on the observed entries of each column, taken for a column of
which a random third is hidden. That tells little of errors which many rows have in common, as those of neighbouring
wavelengths: few of the rows are among the observed ones. Full columns tell more. Each in turn is hidden but for as many
entries as the partial ones have, and filled from the others; if its mean then is farther off, in deviations, than
hiding a third of these entries showed, the intervals of all columns are wider by as much.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from ._arguments import as_generator
from ._threads import one_blas_thread
from .column_space import fit_column_space
from .observations import Observations
from .solve import Status

_BLOCK_CELLS = 4_000_000
_ASKED_COLUMNS = 1_000
_SPLITS = 4  # random thirds of each asked column
_FEWEST_FULL, _MOST_FULL = 10, 200  # full columns that are hidden in turn
_FULL_CELLS = 1_000_000  # of these columns, in fewer rows if need be
_FOLDS = 5
_DRAWS = 2  # of rows of each of them
_LESSON_CAUTION = 20.0  # full columns that are believed by half
_LEVELS = 0.5, 0.8, 0.9, 0.95  # at which the distances of full columns are compared


def means_and_ends(completion, n_deviations: float, unbiased: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of all columns, and the ends of intervals with half-widths of so many deviations.

    See `Completion.column_means`.
    """
    o, (m, n) = completion.observations, completion.shape
    mean, deviation = np.full(n, np.nan), np.zeros(n)
    for j in o.full_columns:
        mean[j] = (o.values[o.indptr[j] : o.indptr[j + 1]] / np.float64(m)).sum()
    noise, filled = _noise(completion), _filled(completion)
    if noise > 0:
        model = _Model(completion.space, noise)
        mean[filled], deviation[filled] = model.means(o.take(filled), model.sum_over_rows, m, unbiased)
        half = deviation * n_deviations
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

    def __init__(self, space, noise: float):
        self.F = space.basis.astype(np.float64) * np.sqrt(space.variances)
        self.noise = noise
        self.center = np.zeros(self.F.shape[0]) if space.center is None else space.center.astype(np.float64)
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


def half_width(completion, level: float, unbiased: bool) -> float:
    """In deviations, as the columns of a completion tell."""
    return hidden_parts_say(completion, level, unbiased) * _full_columns_say(completion, unbiased)


def hidden_parts_say(completion, level: float, unbiased: bool) -> float:
    """The half-width without the lesson of the full columns: a conformal quantile over some partial ones."""
    scores = np.zeros(0)
    noise, filled = _noise(completion), _filled(completion)
    if noise > 0:
        able = filled[completion.n_observed[filled] >= 4]
        some = able[np.linspace(0, able.size - 1, min(able.size, _ASKED_COLUMNS)).astype(int)]
        scores = _scores_of_parts(_Model(completion.space, noise), completion.observations.take(some), unbiased)
    k = int(np.ceil((scores.size + 1) * level))
    quantile = np.sort(scores)[k - 1] if 0 < k <= scores.size else stats.norm.ppf(0.5 + level / 2)
    return float(quantile) * completion.optimism


def _scores_of_parts(model: _Model, asked, unbiased, rng=0, n_splits=_SPLITS) -> np.ndarray:
    """How many deviations the mean over all observed rows is off, told from two thirds of them."""
    column, n, rng = asked.entry_columns, asked.shape[1], as_generator(rng)  # 0: the same thirds every time
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
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.abs(errors) / deviations


def _full_columns_say(completion, unbiased: bool) -> float:
    """By how much intervals must be wider than hidden parts of columns say; never narrower."""
    o, noise, rng = completion.observations, _noise(completion), as_generator(0)
    A = _some_of_the_full(o)
    m, d = A.shape
    sizes = o.n_observed[_filled(completion)]
    sizes = sizes[(sizes >= 4) & (sizes < m)]
    if d < _FEWEST_FULL or sizes.size == 0 or noise == 0:
        return 1.0
    of_wholes, of_parts = [], []
    for fold in np.array_split(rng.permutation(d), _FOLDS):
        others = np.delete(A, fold, axis=1)
        space = fit_column_space(others, rank=max(1, completion.rank), center=completion.space.center is not None)
        model = _Model(space, noise)
        for _ in range(_DRAWS):
            asked = _with_gaps(A[:, fold], rng.choice(sizes, fold.size), rng)
            mean, deviation = model.means(asked, model.sum_over_rows, m, unbiased)
            of_wholes.append(_in_deviations(mean - A[:, fold].mean(axis=0), deviation))
            of_parts.append(_scores_of_parts(model, asked, unbiased, rng, _DRAWS))
    wholes, parts = (np.quantile(np.concatenate(scores), _LEVELS) for scores in (of_wholes, of_parts))
    if not (np.isfinite(wholes).all() and (parts > 0).all() and (wholes > 0).all()):
        return 1.0
    return max(1.0, float(np.exp(np.mean(np.log(wholes / parts)) * d / (d + _LESSON_CAUTION))))


def _some_of_the_full(o) -> np.ndarray:
    """Full columns, evenly chosen where there are many, and their rows likewise."""
    full = o.full_columns
    full = full[np.linspace(0, full.size - 1, min(full.size, _MOST_FULL)).astype(int)]
    m = o.shape[0]
    rows = np.linspace(0, m - 1, min(m, _FULL_CELLS // max(1, full.size))).astype(int)
    if full.size == 0:
        return np.zeros((m, 0))
    return np.stack([o.values[o.indptr[j] : o.indptr[j + 1]][rows] for j in full], axis=1).astype(np.float64)


def _with_gaps(A, counts, rng) -> Observations:
    """Of each column as many entries as told, at random rows."""
    places = rng.random(A.shape).argsort(axis=0)
    return Observations.from_dense(np.where(places < counts, A, np.nan))
