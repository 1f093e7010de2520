"""What a model with few answers would answer elsewhere: the posterior of its abilities, and out-of-sample residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .item_model import ItemModel, ability_moments, bound_weight, moments, with_ones

WIDER = 4.0  # Prior variance of a new model's abilities, known models have 1: new models are often stronger than all.
_SWEEPS = 15  # Updates of the quadratic bound; abilities settle to 1e-3 within ten.
_MOST_LEVERAGE = 0.95  # One answer that alone determines an ability would divide by zero when it is left out.


@dataclass(frozen=True)
class Prediction:
    """Arrays (m, n) on the unit scale; `residual` is out of sample and 0 in gaps; `loadings` (m, r) are the u_i."""

    mean: np.ndarray
    slope: np.ndarray
    noise: np.ndarray
    residual: np.ndarray
    ability_covariances: np.ndarray
    loadings: np.ndarray


def predict(model: ItemModel, Y, weights) -> Prediction:
    """Predictions for the columns of Y (m, n); `weights` (m, n) is 0 in gaps, where Y must be finite."""
    scale, B, SB = model.scale, model.loadings, model.covariances
    m, n = Y.shape
    Z, SZ = _abilities(model, Y, weights)
    Zx = with_ones(Z)
    predictor = B @ Zx
    of_items = SB.reshape(m, -1) @ moments(Zx.T, 0.0).T
    of_abilities = moments(B[:, 1:], 0.0) @ SZ.reshape(n, -1).T
    mean = scale.mean(predictor, of_items + of_abilities)
    slope = scale.slope(mean, of_items + of_abilities)
    noise = model.dispersion * scale.unit_variance(mean) + slope**2 * of_items
    seen = weights > 0
    L = bound_weight(predictor**2 + of_items + of_abilities, scale.bounded) * weights / model.dispersion
    h = np.minimum(of_abilities * L, _MOST_LEVERAGE)
    target = (Y - 0.5 if scale.bounded else Y) * weights / model.dispersion
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(seen, h / (1 - h) * (target / L - predictor), 0.0)  # Newton step when the answer is left out.
    residual = np.where(seen, Y - scale.mean(predictor - step, of_items + of_abilities), 0.0)
    return Prediction(mean, slope, noise, residual, SZ, B[:, 1:])


def _abilities(model: ItemModel, Y, weights) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means (r, n) and covariances (n, r, r)."""
    used = np.flatnonzero(weights.any(axis=1))
    B, EB = model.loadings[used], moments(model.loadings[used], model.covariances[used])
    r, n, bounded, W = model.n_factors, Y.shape[1], model.scale.bounded, weights[used] / model.dispersion
    K = (Y[used] - 0.5 if bounded else Y[used]) * W
    corner = EB.reshape(-1, r + 1, r + 1)
    squares, cross = corner[:, 1:, 1:].reshape(-1, r * r), corner[:, 0, 1:]
    Z, SZ = np.zeros((r, n)), np.tile(WIDER * np.eye(r), (n, 1, 1))
    for _ in range(_SWEEPS if used.size else 0):
        L = bound_weight(EB @ ability_moments(Z, SZ).T, bounded) * W
        SZ = np.linalg.inv(np.eye(r) / WIDER + (L.T @ squares).reshape(n, r, r))
        Z = np.einsum("jab,jb->ja", SZ, K.T @ B[:, 1:] - L.T @ cross).T
    return Z, SZ
