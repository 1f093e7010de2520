"""Validation columns: partial columns by which settings are judged, with their entries left out in turn.

A loss is the mean square error of a column's entries, each left out in its turn, or the square error of an entry where
the columns are few. Losses far above the others count in part only, so that a few columns cannot decide for all.
"""

from __future__ import annotations

import numpy as np

from ...data.observations import Observations
from ..column_space import ColumnSpace
from ..leaving_out import MANY_COLUMNS, leave_out

_COUNTED = 10.0  # Times the median loss: what a loss has beyond that does not count.
_LARGEST = 1e150  # Squares of the usual entry beyond which errors are alike: their squares would overflow.
_LEAST = 1e-300  # A number whose logarithm is one.
_EQUAL = 2e-3  # Share by which mean square errors may differ and count as equal.


class ValidationColumns:
    """Partial columns whose entries are left out, each with at least one.

    Attributes
    ----------
    observations : Observations
    by_columns : bool
        Whether a loss is of a column. Errors within a column go together, so that they count as one.
    unit : float
        The usual size of an entry, in which errors are measured.
    """

    def __init__(self, observations: Observations):
        self.observations, self.by_columns = observations, observations.shape[1] >= MANY_COLUMNS
        self._column = observations.entry_columns
        self.unit = _usual_size(observations.values)
        self._weights: np.ndarray | None = None

    def judge(self, space: ColumnSpace, noise_variances) -> tuple[np.ndarray, np.ndarray]:
        """Losses, as far as they count, and surprises (less a constant, twice the negative log-likelihoods).

        Both have shape (k, g) for g noise variances, and are infinite where there is no prediction.
        """
        o = self.observations
        shape = o.shape[1] if self.by_columns else o.values.size, len(noise_variances)
        losses, surprises = np.empty(shape), np.empty(shape)

        def keep(at, errors, precisions):
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                surprise = errors * errors
                surprise *= precisions
                surprise -= np.log(precisions)
                for result, found in ((losses, self._squares(errors)), (surprises, surprise)):
                    result[self._places(at)] = found.mean(axis=1) if self.by_columns else found

        leave_out(space, o, noise_variances, keep)
        for result in (losses, surprises):
            result[np.isnan(result)] = np.inf
        if self._weights is None:
            self._weights = _weights_of(losses.min(axis=1))
        return losses * self.weights[:, None], surprises

    @property
    def weights(self) -> np.ndarray:
        """The part of each loss that counts, shape (k,), known after the first judgement."""
        assert self._weights is not None
        return self._weights

    def sizes(self, center) -> np.ndarray:
        """Mean squares of what the center leaves of each column, or the square of each entry, in the unit of losses."""
        return self._by_columns(self._about(center)) if self.by_columns else self._about(center)

    def _about(self, center) -> np.ndarray:
        o = self.observations
        return self._squares(o.values.astype(np.float64) - (0 if center is None else center[o.rows]))

    def _squares(self, x) -> np.ndarray:
        """The squares of errors or entries, in units of the usual entry; outliers count as far as squares fit."""
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


def _weights_of(least) -> np.ndarray:
    """The part of each loss that counts, given the least it has with any setting; shape (k,)."""
    some, weights = (least > 0) & np.isfinite(least), np.ones(least.size)
    if some.any():
        with np.errstate(over="ignore"):
            weights[some] = np.minimum(1.0, _COUNTED * np.median(least[some]) / least[some])
    return weights


def best_noise(losses, surprises) -> int:
    """The likeliest noise variance among those within a standard error of the best.

    Where there is little to shrink, the error hardly depends on the noise. Where there are few entries, a single one
    may decide it. The likelihood of all errors shows how large the noise is.
    """
    loss, best = losses.mean(axis=0), int(np.argmin(losses.mean(axis=0)))
    some = (losses > 0).any(axis=1)  # By columns of zeros any noise would be too large.
    if not np.isfinite(loss[best]) or loss.size == 1 or not some.any():
        return best
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        worse = losses - losses[:, [best]]
        by_chance = worse.std(axis=0) / np.sqrt(losses.shape[0])  # One standard error.
        equal = np.flatnonzero(worse.mean(axis=0) <= np.fmax(_EQUAL * loss[best], by_chance))
        return int(equal[np.argmin(surprises[some][:, equal].mean(axis=0))])


def with_midpoints(x) -> np.ndarray:
    """Values on a grid, shape (..., g), and between each two of them one more, by cubics: shape (..., 2 g - 1)."""
    if x.shape[-1] < 4:
        return x
    result = np.empty((*x.shape[:-1], 2 * x.shape[-1] - 1))
    result[..., ::2], between = x, result[..., 1::2]
    with np.errstate(invalid="ignore", over="ignore"):
        between[..., 1:-1] = (9 * (x[..., 1:-2] + x[..., 2:-1]) - x[..., :-3] - x[..., 3:]) / 16
        between[..., 0] = (x[..., 0] * 3 + x[..., 1] * 6 - x[..., 2]) / 8
        between[..., -1] = (x[..., -1] * 3 + x[..., -2] * 6 - x[..., -3]) / 8
    between[~np.isfinite(between)] = np.inf  # Between infinite losses there is no prediction either.
    return result


def losses_with_midpoints(losses) -> np.ndarray:
    """The same for losses, by their logarithms: they grow as powers of the noise. Zeros stay zeros."""
    result = np.exp(with_midpoints(np.log(np.maximum(losses, _LEAST))))
    result[(losses == 0).all(axis=1)] = 0.0
    return result
