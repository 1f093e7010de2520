"""The posterior of the model: how far an entry that is measured anew may be from its prediction.

With F = U diag(v)^1/2, prior variances v of the directions and noise variance t, the variance of entry i of a column is
t + t f_i' (F_O' W F_O + t I)^-1 f_i; in plain least squares F is U and the last term I is not there.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .._support.numbers import CACHE_CELLS
from .._support.threads import in_threads, one_blas_thread
from ..data.observations import Observations
from .solve import Status


def deviations(completion, rows, columns) -> np.ndarray:
    """Predicted standard deviations of entries measured anew, shape (k,); NaN in columns full or not filled."""
    able = np.isin(completion.status, [s for s in Status if s.is_filled and s != Status.FULL])
    noise, plain = completion.noise_variance, plain_noise(completion)
    return deviations_of(completion.used, completion.space, noise, plain, able, rows, columns)


def deviations_of(o: Observations, space, noise_variance: float, plain: float, able, rows, columns) -> np.ndarray:
    """The same for entries of observations; `able` columns have some, and `plain` is the noise without a prior.

    Shape (k,); NaN in columns that are not able.
    """
    has_prior = noise_variance > 0
    noise = noise_variance or plain**2
    scale = np.sqrt(space.variances) if has_prior else 1.0
    result = np.full(rows.size, np.nan)
    asked = _Asked(columns, np.flatnonzero(able[columns]), o)

    def work(piece):
        which, at = asked.part(*piece)
        B, targets = _observed_rows(space.basis, scale, o, which), space.basis[rows[at]].astype(np.float64) * scale
        result[at] = np.sqrt(noise + fitted_variances(B, targets, noise, has_prior))

    with one_blas_thread():  # BLAS would split each of many small problems.
        in_threads(work, asked.pieces(max(1, space.rank)))
    return result


def plain_noise(completion) -> float:
    """The deviation of the noise where there is no prior; 1 if it is not known, which calibration makes up for."""
    known = completion.space.noise_std
    return known if np.isfinite(known) else 1.0


class _Asked:
    """Entries that are asked, by their columns; those with equally many known and equally many asked lie together.

    Attributes
    ----------
    places : int array
        Of the entries in what was asked, column by column.
    which, begins, n_asked, n_known : int arrays, one number for each column
        The column, where its entries begin in `places`, how many they are, and how many of its entries are known.
    """

    def __init__(self, columns, places, o: Observations):
        self.places = places[np.argsort(columns[places], kind="stable")]
        which, begins, n_asked = np.unique(columns[self.places], return_index=True, return_counts=True)
        n_known = o.indptr[which + 1] - o.indptr[which]
        order = np.lexsort((n_asked, n_known))
        self.which, self.begins, self.n_asked, self.n_known = (x[order] for x in (which, begins, n_asked, n_known))

    def pieces(self, rank: int):
        """(first column, last, first of their asked entries, last), such that matrices are of a limited size."""
        changes = (np.diff(self.n_asked) != 0) | (np.diff(self.n_known) != 0)
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), self.which.size] if self.which.size else []
        for lo, hi in pairwise(edges):
            k, s = int(self.n_asked[lo]), int(self.n_known[lo])
            width = min(k, max(1, CACHE_CELLS // rank))
            step = max(1, CACHE_CELLS // ((s + width + rank) * rank))
            yield from ((a, min(a + step, hi), b, b + width) for a in range(lo, hi, step) for b in range(0, k, width))

    def part(self, first, last, begin, end) -> tuple[np.ndarray, np.ndarray]:
        """Columns, shape (b,), and the places of some of their asked entries, shape (b, k)."""
        end = min(end, int(self.n_asked[first]))
        return self.which[first:last], self.places[self.begins[first:last, None] + np.arange(begin, end)]


def _observed_rows(basis, scale, o: Observations, columns) -> np.ndarray:
    """W^1/2 F_O of columns with equally many entries, shape (b, s, r)."""
    starts = o.indptr[columns]
    at = starts[:, None] + np.arange(o.indptr[columns[0] + 1] - starts[0])
    F = basis[o.rows[at]].astype(np.float64) * scale
    return F if o.weights is None else F * np.sqrt(o.weights[at].astype(np.float64))[:, :, None]


def fitted_variances(B, targets, noise: float, has_prior: bool) -> np.ndarray:
    """Variances of fitted values at targets of shape (b, k, r), if rows B of shape (b, s, r) were observed.

    t f' (B'B + t I)^-1 f, or t f' (B'B)^-1 f without a prior; shape (b, k). Nothing is squared, for the noise may be
    far below the prior. With fewer entries than directions only the part of f in the span of the entries, Q c, is
    better known than before: |f - Q c|^2 + t c' (R R' + t I)^-1 c, where B' = Q R.
    """
    s, r = B.shape[1:]
    if has_prior and s < r:
        Q, R = np.linalg.qr(B.transpose(0, 2, 1))
        inside = targets @ Q
        outside = targets - inside @ Q.transpose(0, 2, 1)
        known = _variances_by_qr(R.transpose(0, 2, 1), inside, noise, has_prior)
        return (outside**2).sum(axis=2) + np.minimum(known, (inside**2).sum(axis=2))
    return _variances_by_qr(B, targets, noise, has_prior)


def _variances_by_qr(B, targets, noise: float, has_prior: bool) -> np.ndarray:
    r = B.shape[2]
    if has_prior:
        B = np.concatenate([B, np.broadcast_to(np.sqrt(noise) * np.eye(r), (B.shape[0], r, r))], axis=1)
    R = np.asarray(np.linalg.qr(B, mode="r"))
    is_open = (np.einsum("kqq->kq", R) == 0).any(axis=1)  # Some direction does not show in the entries at all.
    R[is_open] = np.eye(r)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = noise * ((targets @ np.linalg.inv(R)) ** 2).sum(axis=2)
    variances[is_open] = np.inf
    return variances
