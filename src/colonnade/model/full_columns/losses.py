"""How the losses of columns count when settings are judged by them: what is wild counts for little, or not at all.

A loss is the mean square error of a column's entries, each left out in its turn, or the square error of an entry where
the columns are few.
"""

from __future__ import annotations

import numpy as np

from ...data.observations import Observations
from ..column_space import ColumnSpace
from ..leaving_out import Model, leave_out

_WILD = 1000.0, 30.0  # times the mean square of the full columns: a wild column, and one with a single wild entry
_ALONE = 0.9  # of a column's squares, which a single entry has if it is wild
_UNEXPLAINED = 0.5  # of its squares, which are left at least of a wild column whatever the noise
_COUNTED = 30.0, 0.95  # times the mean loss, without the worst: more does not count, lest a few columns decide for all
_LARGEST = 1e150  # times the square of the usual entry, beyond which an error is not told from others
_LEAST = 1e-300  # whose logarithm is a number
_EQUAL = 2e-3  # by which mean square errors may differ and be called equal


class Asked:
    """Columns whose entries are left out, each with at least one.

    Attributes
    ----------
    observations : Observations
    by_columns : bool
        Whether a loss is of a column. Errors within a column go together, so that they count as one.
    unit : float
        In which errors are measured: the usual size of an entry, unless another is given.
    """

    def __init__(self, observations: Observations, by_columns: bool, unit: float | None = None):
        self.observations, self.by_columns = observations, by_columns
        self._column = observations.entry_columns
        self.unit = unit or _usual_size(observations.values)

    def losses(self, space: ColumnSpace, noise_variances, models: list[Model]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of every model the losses and the surprises (less a constant, twice the negative log-likelihoods).

        Both have shape (k, g) for g noise variances, and are infinite where there is no prediction.
        """
        o = self.observations
        shape = o.shape[1] if self.by_columns else o.values.size, len(noise_variances)
        n_models = sum(len(model.offset_variances) for model in models)
        results = [(np.empty(shape), np.empty(shape)) for _ in range(n_models)]

        def keep(k, at, errors, precisions):
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                surprises = errors * errors
                surprises *= precisions
                surprises -= np.log(precisions)
                for result, found in zip(results[k], (self._squares(errors), surprises)):
                    result[self._places(at)] = found.mean(axis=1) if self.by_columns else found

        leave_out(space, o, noise_variances, models, keep)
        for result in (result for pair in results for result in pair):
            result[np.isnan(result)] = np.inf
        return results

    def sizes(self, center) -> np.ndarray:
        """Mean squares of what the center leaves of each column, or the square of each entry, in the unit of losses."""
        return self._by_columns(self._about(center)) if self.by_columns else self._about(center)

    def is_wild(self, losses, center, entry_variance: float) -> np.ndarray:
        """Losses of columns out of all proportion to the full ones, as a whole or by a single entry, shape (k,).

        They tell nothing of others. A column that is only large is well predicted with some noise variance.
        """
        squares = self._about(center)
        mean, s = self._by_columns(squares), self.observations.n_observed
        largest = np.maximum.reduceat(squares, self.observations.indptr[:-1]) / s
        left = (losses if self.by_columns else self._by_columns(losses)).min(axis=1)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            size = mean / (entry_variance / self.unit / self.unit)
        wild = (size > _WILD[0]) | ((size > _WILD[1]) & (largest > _ALONE * mean))
        wild &= left > _UNEXPLAINED * mean
        wild &= ~wild.all()
        return wild if self.by_columns else wild[self._column]

    def _about(self, center) -> np.ndarray:
        o = self.observations
        return self._squares(o.values.astype(np.float64) - (0 if center is None else center[o.rows]))

    def _squares(self, x) -> np.ndarray:
        """The squares of errors or entries, in units of the usual entry; of wild ones what can be squared."""
        with np.errstate(over="ignore"):
            result = x / self.unit
            np.square(result, out=result)
        return np.minimum(result, _LARGEST, out=result)

    def _by_columns(self, x) -> np.ndarray:
        s = self.observations.n_observed
        with np.errstate(over="ignore"):
            return np.add.reduceat(x, self.observations.indptr[:-1], axis=0) / s.reshape(-1, *[1] * (x.ndim - 1))

    def _places(self, at) -> np.ndarray:
        return self._column[at[:, 0]] if self.by_columns else at


def _usual_size(values) -> float:
    sizes = np.abs(values[values != 0].astype(np.float64))
    return float(np.median(sizes)) if sizes.size else 1.0


def weights_of(least, ordinary) -> np.ndarray:
    """The weight of each loss, given the least it has with any setting; shape (k,).

    Wild ones count for nothing. Of one that is far above the others a part counts, the same part for all settings: a
    large column has its say, but not the say of all.
    """
    some = ordinary & (least > 0) & np.isfinite(least)
    weights = ordinary.astype(np.float64)
    if some.any():
        times, share = _COUNTED
        usual = np.sort(least[some])[: max(1, int(share * some.sum()))].mean()
        with np.errstate(over="ignore"):
            weights[some] = np.minimum(1.0, times * usual / least[some])
    return weights


def best_noise(losses, surprises, ordinary) -> int:
    """Of the noise variances within a standard error of the best, the one that makes the ordinary errors likeliest.

    Where there is little to shrink the error hardly depends on the noise, and where there are few entries a single one
    may decide it; how large the noise is all the errors tell.
    """
    loss, best = losses.mean(axis=0), int(np.argmin(losses.mean(axis=0)))
    some = ordinary & (losses > 0).any(axis=1)  # columns of zeros would call any noise too large
    if not np.isfinite(loss[best]) or loss.size == 1 or not some.any():
        return best
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        worse = losses - losses[:, [best]]
        by_chance = worse.std(axis=0) / np.sqrt(losses.shape[0])  # a standard error
        equal = np.flatnonzero(worse.mean(axis=0) <= np.fmax(_EQUAL * loss[best], by_chance))
        return int(equal[np.argmin(surprises[some][:, equal].mean(axis=0))])


def with_midpoints(x) -> np.ndarray:
    """Values on a grid, shape (..., g), and between each two of them one more, by cubics: shape (..., 2 g - 1)."""
    if x.shape[-1] < 4:
        return x
    result = np.empty((*x.shape[:-1], 2 * x.shape[-1] - 1))
    result[..., ::2], between = x, result[..., 1::2]
    with np.errstate(invalid="ignore"):
        between[..., 1:-1] = (9 * (x[..., 1:-2] + x[..., 2:-1]) - x[..., :-3] - x[..., 3:]) / 16
        between[..., 0] = (x[..., 0] * 3 + x[..., 1] * 6 - x[..., 2]) / 8
        between[..., -1] = (x[..., -1] * 3 + x[..., -2] * 6 - x[..., -3]) / 8
    between[~np.isfinite(between)] = np.inf  # beside infinite ones
    return result


def losses_with_midpoints(losses) -> np.ndarray:
    """The same for losses, by their logarithms: they grow as powers of the noise. Zeros stay zeros."""
    result = np.exp(with_midpoints(np.log(np.maximum(losses, _LEAST))))
    result[(losses == 0).all(axis=1)] = 0.0
    return result
