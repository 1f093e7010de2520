"""Two yardsticks that learn from the full columns only: the Gaussian prior and Algorithm 1, centred.

Their one setting, the noise or the rank, is cross-validated on the full columns: a fifth of them at a time gets the
gaps of partial columns and is predicted from the others. Dense and plain: nothing of colonnade is used.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

_FOLDS, _MOST_ASKED = 5, 200  # so many full columns at most are predicted from others
_NOISE_SHARES = 10.0 ** np.arange(-10, 1.1, 0.25)  # of the variance of an entry


def gaussian_prior(known, seed) -> np.ndarray:
    """Mean of each column given its entries, if columns are Gaussian with the mean and covariance of the full ones."""
    return _with_best_setting(known, seed, lambda A, counts: _NOISE_SHARES, _posterior_means)


def algorithm1_centred(known, seed) -> np.ndarray:
    """Plain least squares in the leading directions of the full columns about their mean."""
    return _with_best_setting(known, seed, _ranks, _least_squares)


def _ranks(A, counts) -> np.ndarray:
    """All that the fewest entries of a column and four fifths of the full columns allow."""
    return np.arange(1, max(2, min(int(counts.min()), A.shape[1] * (_FOLDS - 1) // _FOLDS - 1)))


def _posterior_means(space, omega, x, settings) -> np.ndarray:
    """c + U v U_O' (U_O v U_O' + t I)^-1 (x - c_O) for shares t of an entry's variance, shape (m, g)."""
    c, U, v = space
    B = U[omega] * np.sqrt(v)
    squares, P = np.linalg.eigh(B @ B.T)
    noises = np.asarray(settings) * v.sum() / len(c)
    weights = (P.T @ (x - c[omega]))[:, None] / (np.maximum(squares, 0)[:, None] + noises)
    return c[:, None] + (U * np.sqrt(v)) @ (B.T @ (P @ weights))


def _least_squares(space, omega, x, settings) -> np.ndarray:
    """c + U_r z for ranks r, shape (m, g)."""
    c, U, _ = space
    z = [np.linalg.lstsq(U[omega, :r], x - c[omega], rcond=None)[0] for r in settings]
    return np.column_stack([c + U[:, :r] @ z for r, z in zip(settings, z)])


def _with_best_setting(known, seed, settings_of, answers_of) -> np.ndarray:
    rng = np.random.default_rng(seed)
    known = known.astype(np.float64)
    partial = np.isnan(known).any(axis=0)
    A, counts = known[:, ~partial], (~np.isnan(known[:, partial])).sum(axis=0)
    settings = settings_of(A, counts)
    with threadpool_limits(1, user_api="blas"):  # many small problems
        best = settings[int(np.argmin(_errors(A, counts, rng, settings, answers_of)))]
        space = _space_of(A)
        for j in np.flatnonzero(partial):
            omega = np.flatnonzero(~np.isnan(known[:, j]))
            x = known[omega, j].copy()
            known[:, j] = answers_of(space, omega, x, [best])[:, 0]
            known[omega, j] = x
    return known


def _errors(A, counts, rng, settings, answers_of) -> np.ndarray:
    """Square errors of all settings at the hidden entries of full columns that were pretended to be partial."""
    errors = np.zeros(len(settings))
    for fold in np.array_split(rng.permutation(A.shape[1]), _FOLDS):
        space = _space_of(np.delete(A, fold, axis=1))
        for k in fold[: _MOST_ASKED // _FOLDS]:
            omega = rng.permutation(len(A))[: rng.choice(counts)]
            off = np.delete(answers_of(space, omega, A[omega, k], settings) - A[:, [k]], omega, axis=0)
            errors += (off**2).sum(axis=0)
    return errors


def _space_of(A):
    c = A.mean(axis=1)
    U, S, _ = np.linalg.svd(A - c[:, None], full_matrices=False)
    return c, U, S**2 / A.shape[1]
