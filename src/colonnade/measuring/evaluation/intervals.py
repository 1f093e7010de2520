"""Intervals of scores, their variance given: Wilson's on a scale with two ends, symmetric on others."""

from __future__ import annotations

import numpy as np

_INNER = 0.02  # Distance of a score from an end within which its variance says little about the size of the sample.


def ends(scores, variances, quantiles, bounded: bool) -> tuple[np.ndarray, np.ndarray]:
    """Low and high ends on the unit scale.

    On a bounded scale the variance of a score near an end falls with its distance from it. Wilson's interval takes that
    into account: it is the set of scores t with (score - t)^2 <= q^2 t (1 - t) / n, where n = s (1 - s) / variance.
    """
    q = np.asarray(quantiles)
    if not bounded:
        half = q * np.sqrt(variances)
        return scores - half, scores + half
    score = np.clip(scores, 0.0, 1.0)
    inner = np.clip(score, _INNER, 1 - _INNER)
    x = q**2 * np.asarray(variances) / (inner * (1 - inner))  # q^2 / n
    middle = (score + x / 2) / (1 + x)
    half = np.sqrt(score * (1 - score) * x + x**2 / 4) / (1 + x)
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)
