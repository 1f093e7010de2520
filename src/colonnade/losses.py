"""How the losses of columns count when settings are judged by them: what is wild counts for little, or not at all.

A loss is the mean square error of a column's entries, each left out in its turn, or the square error of an entry where
the columns are few.
"""

from __future__ import annotations

import numpy as np

from .leaving_out import column_losses
from .observations import Observations

_WILD = 1000.0, 30.0  # times the mean square of the full columns: a wild column, and one with a single wild entry
_ALONE = 0.9  # of a column's squares, which a single entry has if it is wild
_UNEXPLAINED = 0.5  # of its squares, which are left at least of a wild column whatever the noise
_COUNTED = 30.0, 0.95  # times the mean loss, without the worst: more does not count, lest a few columns decide for all
_LARGEST = 1e75  # times the usual entry, beyond which an error is not told from others
_EQUAL = 2e-3  # by which mean square errors may differ and be called equal


def squares_of(x, asked: Observations) -> np.ndarray:
    """The squares of errors or entries, in units of the usual entry; of wild ones what can be squared."""
    with np.errstate(over="ignore"):
        result = np.abs(x / _usual(asked))
    np.minimum(result, _LARGEST, out=result)
    return np.square(result, out=result)


def _usual(asked: Observations) -> float:
    sizes = np.abs(asked.values[asked.values != 0].astype(np.float64))
    return float(np.median(sizes)) if sizes.size else 1.0


def is_wild(squared_errors, asked: Observations, center, entry_variance: float) -> np.ndarray:
    """Columns out of all proportion to the full ones, as a whole or by a single entry: they tell nothing of others.

    A column that is only large is well predicted with some noise variance; `squared_errors` has shape (nnz, g).
    """
    x = asked.values.astype(np.float64) - (0 if center is None else center[asked.rows])
    squares, s, begins = squares_of(x, asked), asked.n_observed, asked.indptr[:-1]
    sums, largest = (f.reduceat(squares, begins) for f in (np.add, np.maximum))
    unexplained = np.add.reduceat(squared_errors, begins, axis=0).min(axis=1) > _UNEXPLAINED * sums
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        size = sums / s / (entry_variance / _usual(asked) / _usual(asked))
    wild = unexplained & ((size > _WILD[0]) | ((size > _WILD[1]) & (largest > _ALONE * sums)))
    return wild & ~wild.all()


def limited(losses, ordinary) -> np.ndarray:
    """The losses, shape (k, g), each counted as at most so many times the mean of the ordinary ones but the worst."""
    some = ordinary & (losses > 0).any(axis=1) & np.isfinite(losses).all(axis=1)
    if not some.any():
        return losses
    times, share = _COUNTED
    usual = np.sort(losses[some], axis=0)[: max(1, int(share * some.sum()))].mean(axis=0)
    return np.where(np.isfinite(losses), np.minimum(losses, times * usual), losses)


def best_noise(losses, errors, deviations, column, ordinary) -> int:
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
        surprise = (errors[:, equal] / deviations[:, equal]) ** 2 + 2 * np.log(deviations[:, equal])
    surprise = column_losses(np.nan_to_num(surprise, nan=np.inf), column)[some]
    return int(equal[np.argmin(surprise.mean(axis=0))])
