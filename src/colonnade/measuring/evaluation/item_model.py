"""Questions and abilities learned from known models: a logistic factor model of the answers.

    P(model j answers question i right) = logistic(c_i + u_i' z_j),   z_j ~ N(0, I),   (c_i, u_i) ~ N(mu, diag(kappa))

Both posteriors are Gaussian (variational Bayes with the quadratic bound of Jaakkola and Jordan), and gaps are left out
of the sums. Graded answers have less noise than right and wrong ones: a dispersion scales it. Answers without ends have
the identity in place of the logistic curve, and the dispersion is their noise variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .answer_scale import AnswerScale, logistic

N_FACTORS = 4  # Directions of ability. 1, 2, 8 and 15 have 0 to 10 % more error on five benchmarks.
N_SWEEPS = 20  # Scores change by less than 0.1 standard errors with 60.
_SWEEPS_WITHOUT = 5  # From the model of all columns; scores of hidden models differ by less than from 12 to 30 anew.
_SETTLED = 4  # Sweeps between estimates of the dispersion of bounded answers; the first predictions are too poor.
_LEAST_DISPERSION = 1e-2, 1e-12  # Bounded answers: 1 is right or wrong, 0.01 is 100 attempts each. Plain: exact data.
_LEAST_SPREAD = 1e-4  # Prior variance of a loading, in squared logits; smaller ones are no direction at all.
_START_VARIANCE = 0.05  # Posterior variances before the first sweep, in squared logits.


@dataclass(frozen=True)
class ItemModel:
    """Questions: `loadings` (m, r + 1) are c_i and u_i; abilities (r, d) of the models they were learned from."""

    scale: AnswerScale
    loadings: np.ndarray
    covariances: np.ndarray
    abilities: np.ndarray
    dispersion: float

    @property
    def n_factors(self) -> int:
        return self.loadings.shape[1] - 1

    def known_answers(self) -> np.ndarray:
        """Predicted answers of the models that it was learned from, shape (m, d), on the unit scale."""
        return self.scale.mean(self.loadings @ with_ones(self.abilities), 0.0)


def with_ones(Z) -> np.ndarray:
    return np.vstack([np.ones(Z.shape[1]), Z])


def bound_weight(second_moment, bounded: bool) -> np.ndarray:
    """Weight of the quadratic bound of the logistic likelihood at a predictor with this second moment."""
    if not bounded:
        return np.ones_like(second_moment)
    # tanh(xi / 2) / (2 xi) by the exponential function, which NumPy computes three times as fast; in place.
    xi = np.maximum(second_moment, 1e-4)  # Smaller ones have the same weight to five digits.
    np.sqrt(xi, out=xi)
    decay = np.exp(-xi)
    weight = 1 - decay
    decay += 1
    decay *= xi
    decay *= 2
    weight /= decay
    return weight


def moments(mean, covariance) -> np.ndarray:
    """E[x x'] of Gaussian vectors, flattened: shape (n, p^2)."""
    return (np.einsum("ia,ib->iab", mean, mean) + covariance).reshape(len(mean), mean.shape[1] ** 2)


def ability_moments(Z, SZ) -> np.ndarray:
    """E[(1, z)(1, z)'] of abilities, flattened: shape (n, (r + 1)^2)."""
    r, n = Z.shape
    covariance = np.zeros((n, r + 1, r + 1))
    covariance[:, 1:, 1:] = SZ
    return moments(with_ones(Z).T, covariance)


def fit_item_model(Y, weights, scale: AnswerScale, n_sweeps: int = N_SWEEPS) -> ItemModel:
    """Learn from unit answers Y (m, d); `weights` (m, d) is 0 in gaps, where Y must be finite."""
    return _swept(Y, weights, scale, _start(Y, weights, scale), 1.0, n_sweeps)


def fit_without(model: ItemModel, Y, weights, kept) -> ItemModel:
    """Learn from the columns `kept` of those that `model` was learned from; Y and weights hold only these.

    Questions are learned anew from the abilities of the kept models, so nothing of the others stays but the directions
    to start from. These settle in a few sweeps.
    """
    if model.n_factors > _most_factors(Y):
        return fit_item_model(Y, weights, model.scale)
    Z = model.abilities[:, kept]
    SZ = np.tile(_START_VARIANCE * np.eye(len(Z)), (Z.shape[1], 1, 1))
    return _swept(
        Y, weights, model.scale, (model.loadings, model.covariances, Z, SZ), model.dispersion, _SWEEPS_WITHOUT
    )


def _most_factors(Y) -> int:
    return max(1, min(N_FACTORS, Y.shape[1] - 1, Y.shape[0] - 1))


def _swept(Y, weights, scale: AnswerScale, start, dispersion: float, n_sweeps: int) -> ItemModel:
    """The model after some sweeps from means and covariances of the questions and the abilities."""
    B, SB, Z, SZ = start
    # Arrays of shape (m, d) take the time. Of right and wrong answers, seven digits are enough.
    kind = np.float32 if scale.bounded else np.float64
    Y, weights = Y.astype(kind, copy=False), weights.astype(kind, copy=False)
    K = (Y - kind(0.5) if scale.bounded else Y) * weights
    mu, kappa = B.mean(axis=0), B.var(axis=0) + 0.1
    m, d, p = *Y.shape, B.shape[1]
    for sweep in range(n_sweeps):
        EZ, Zx = ability_moments(Z, SZ).astype(kind), with_ones(Z).astype(kind)
        second = moments(B, SB).astype(kind) @ EZ.T
        if not scale.bounded or (sweep and sweep % _SETTLED == 0):
            dispersion = _dispersion(Y, weights, scale, B.astype(kind) @ Zx, second)
        L = bound_weight(second, scale.bounded)
        L *= weights
        L /= kind(dispersion)
        SB = np.linalg.inv(np.diag(1 / kappa) + (L @ EZ).reshape(m, p, p))
        B = np.einsum("iab,ib->ia", SB, K @ Zx.T / dispersion + mu / kappa)
        EB = moments(B, SB).reshape(m, p, p).astype(kind)
        SZ = np.linalg.inv(np.eye(p - 1) + (L.T @ EB[:, 1:, 1:].reshape(m, -1)).reshape(d, p - 1, p - 1))
        Z = np.einsum("jab,jb->ja", SZ, K.T @ B[:, 1:].astype(kind) / dispersion - L.T @ EB[:, 0, 1:]).T
        B, SB, Z, SZ = _standardised(B, SB, Z, SZ)
        mu = B.mean(axis=0)
        kappa = np.maximum(((B - mu) ** 2).mean(axis=0) + np.einsum("iaa->a", SB) / m, _LEAST_SPREAD)
    return ItemModel(scale, B, SB, Z, dispersion)


def _start(Y, weights, scale):
    """Principal components of the answers about their question means."""
    m, d = Y.shape
    overall = (Y * weights).sum() / weights.sum()
    mean = ((Y * weights).sum(axis=1) + overall) / (weights.sum(axis=1) + 1)
    R = (Y - mean[:, None]) * (weights > 0)
    r = _most_factors(Y)
    V = np.linalg.eigh(R.T @ R)[1][:, ::-1][:, :r]
    U = R @ V
    signs = np.where(U.sum(axis=0) < 0, -1.0, 1.0)
    steepness = 4.0 if scale.bounded else 1.0  # Inverse slope of the logistic curve at one half.
    level = np.log(mean.clip(1e-6, 1) / (1 - mean).clip(1e-6, 1)) if scale.bounded else mean
    B = np.column_stack([level, steepness * U * signs / np.sqrt(d)])
    SB, SZ = (np.tile(_START_VARIANCE * np.eye(p), (n, 1, 1)) for n, p in ((m, r + 1), (d, r)))
    return B, SB, V.T * np.sqrt(d) * signs[:, None], SZ


def _dispersion(Y, weights, scale, predictor, second) -> float:
    """Pearson's statistic over its degrees of freedom for bounded answers; the noise variance of plain ones."""
    if scale.bounded:
        p = logistic(predictor)
        found = (weights * (Y - p) ** 2).sum() / (weights * p * (1 - p)).sum()
        return float(np.clip(found, _LEAST_DISPERSION[0], 1.0))
    spread = np.maximum(second - predictor**2, 0)
    return max(float((weights * ((Y - predictor) ** 2 + spread)).sum() / weights.sum()), _LEAST_DISPERSION[1])


def _standardised(B, SB, Z, SZ):
    """The same predictors with abilities of mean 0 and covariance I: without it sweeps converge slowly."""
    r, d = Z.shape
    shift = Z.mean(axis=1)
    Z = Z - shift[:, None]
    values, Q = np.linalg.eigh(Z @ Z.T / d + SZ.mean(axis=0))
    root = np.sqrt(np.maximum(values, 1e-12))
    T, inverse = Q * root, (Q / root).T
    H = np.eye(r + 1)
    H[0, 1:], H[1:, 1:] = shift, T.T
    return B @ H.T, H @ SB @ H.T, inverse @ Z, inverse @ SZ @ inverse.T
