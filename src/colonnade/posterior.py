"""The posterior of the model: how far an entry that is measured anew may be from its prediction.

With F = U diag(v)^1/2, prior variances v of the directions and noise variance t, the variance of entry i of a column is
t + t f_i' (F_O' W F_O + t I)^-1 f_i; in plain least squares F is U and the last term I is not there.
"""

from __future__ import annotations

import numpy as np

from ._threads import in_threads, one_blas_thread
from .leaving_out import least_noise
from .observations import Observations
from .solve import Status

_PIECE_CELLS = 100_000  # numbers that a thread has before it at a time


def deviations(completion, rows, columns) -> np.ndarray:
    """Predicted standard deviations of entries measured anew, shape (k,); NaN in columns full or not filled."""
    o, space, has_prior = completion.used, completion.space, completion.noise_variance > 0
    noise = completion.noise_variance or plain_noise(completion) ** 2
    scale = np.sqrt(space.variances) if has_prior else 1.0
    result = np.full(rows.size, np.nan)

    def work(piece):
        which, at = piece
        B, targets = _observed_rows(space.basis, scale, o, which), space.basis[rows[at]] * scale
        result[at] = np.sqrt(noise + _variances(B, targets, noise, has_prior))

    able = (completion.status != Status.FULL) & np.isin(completion.status, [s for s in Status if s.is_filled])
    asked = np.flatnonzero(able[columns])
    with one_blas_thread():  # many small problems: BLAS would split each of them
        in_threads(work, _columns_alike(o.n_observed, columns, asked, max(1, space.rank)))
    return result


def plain_noise(completion) -> float:
    """The deviation of the noise where there is no prior; 1 if it is not known, which calibration makes up for."""
    return completion.noise_std if np.isfinite(completion.noise_std) else 1.0


def _columns_alike(n_observed, columns, asked, rank: int):
    """Columns with equally many entries and of which equally many are asked; yields them and, of shape (b, k), where.

    `asked` are places in `columns`; so many columns at a time that their matrices are of a limited size.
    """
    asked = asked[np.argsort(columns[asked], kind="stable")]
    which, begins, counts = np.unique(columns[asked], return_index=True, return_counts=True)
    sizes = np.stack([n_observed[which], counts])
    for s, k in np.unique(sizes, axis=1).T:
        alike = np.flatnonzero((sizes[0] == s) & (sizes[1] == k))
        step = max(1, _PIECE_CELLS // int((s + k + rank) * rank))
        for lo in range(0, alike.size, step):
            some = alike[lo : lo + step]
            yield which[some], asked[begins[some, None] + np.arange(k)]


def _observed_rows(basis, scale, o: Observations, columns) -> np.ndarray:
    """W^1/2 F_O of columns with equally many entries, shape (b, s, r)."""
    at = o.indptr[columns, None] + np.arange(o.n_observed[columns[0]])
    F = basis[o.rows[at]].astype(np.float64) * scale
    return F if o.weights is None else F * np.sqrt(o.weights[at].astype(np.float64))[:, :, None]


def _variances(B, targets, noise: float, has_prior: bool) -> np.ndarray:
    """Of the fitted values at targets of shape (b, k, r), with what was observed in B of shape (b, s, r)."""
    s, r = B.shape[1:]
    right = targets.transpose(0, 2, 1).astype(np.float64)
    if has_prior and s < r:
        K = B @ B.transpose(0, 2, 1) + np.maximum(noise, least_noise(B))[:, None, None] * np.eye(s)
        explained = np.linalg.solve(np.linalg.cholesky(K), B @ right)
        return np.maximum((right**2).sum(axis=1) - (explained**2).sum(axis=1), 0.0)
    if has_prior:
        B = np.concatenate([B, np.broadcast_to(np.sqrt(noise) * np.eye(r), (B.shape[0], r, r))], axis=1)
    R = np.linalg.qr(B, mode="r")
    return noise * (np.linalg.solve(R.transpose(0, 2, 1), right) ** 2).sum(axis=1)
