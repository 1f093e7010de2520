"""Which questions to ask: a random sample that is spread evenly over difficulty and over what questions measure.

Every question has the same chance (within its task, where tasks have weights), so the sample is fair whatever the new
model is like. The local pivotal method lets neighbours compete for one place: of two alike questions rarely both are
asked. Two questions are neighbours if their predictors c + u'z are close for all plausible abilities z.
"""

from __future__ import annotations

import numpy as np

from ..._support.compiling import compiled
from .ability import WIDER
from .item_model import ItemModel

_DECIDED = 1e-9  # Distance from 0 or 1 at which a probability counts as reached: sums of a million round by less.


@compiled()
def decide(points, probabilities, draws):
    """Probabilities after all units but one at most are decided, 0 or 1; `draws` (2 m,) are uniform numbers.

    Local pivotal method 2 of Grafström, Lundström and Schelin (Biometrics 68, 2012): a random unit and its nearest
    neighbour share their probabilities until one of them is decided. The sum of the probabilities stays as it is.
    """
    m, q = points.shape
    p, at = probabilities.copy(), 0
    open_units = np.empty(m, np.int64)
    n = 0
    for i in range(m):
        if _DECIDED < p[i] < 1 - _DECIDED:
            open_units[n] = i
            n += 1
    while n > 1:
        a = min(int(draws[at] * n), n - 1)
        i, b, best = open_units[a], -1, np.inf
        for other in range(n):
            distance = 0.0
            for c in range(q):
                distance += (points[i, c] - points[open_units[other], c]) ** 2
            if other != a and distance < best:
                best, b = distance, other
        j, u, total = open_units[b], draws[at + 1], p[i] + p[open_units[b]]
        at += 2
        if total < 1:
            keep_j = u * total < p[j]
            p[i], p[j] = (0.0, total) if keep_j else (total, 0.0)
        else:
            first_in = u * (2 - total) < 1 - p[j]
            p[i], p[j] = (1.0, total - 1) if first_in else (total - 1, 1.0)
        for place in (max(a, b), min(a, b)):
            unit = open_units[place]
            if p[unit] < _DECIDED or p[unit] > 1 - _DECIDED:
                n -= 1
                open_units[place] = open_units[n]
    return p


def pivotal_sample(points, probabilities, strata, rng) -> np.ndarray:
    """Indices of a sample with these inclusion probabilities, spread over the points.

    Every stratum is decided by itself until one unit of it is left, so its count is its sum of probabilities, rounded
    up or down. Then the units that are left compete with each other.
    """
    p = probabilities.copy()
    for stratum in np.unique(strata):
        units = np.flatnonzero(strata == stratum)
        p[units] = decide(points[units], p[units], rng.random(2 * units.size))
    left = np.flatnonzero((p > _DECIDED) & (p < 1 - _DECIDED))
    p[left] = decide(points[left], p[left], rng.random(2 * left.size))
    return np.flatnonzero(p > rng.uniform(_DECIDED, 1 - _DECIDED))


def balanced_sample(model: ItemModel, probabilities, strata, rng) -> np.ndarray:
    """Rows drawn with these probabilities, spread over the questions; strata (m,) are counted separately."""
    B = model.loadings
    points = np.ascontiguousarray(np.column_stack([B[:, 0], np.sqrt(WIDER) * B[:, 1:]]))
    return pivotal_sample(points, probabilities, strata, rng)


def inclusion_probabilities(shares, strata, k: int) -> np.ndarray:
    """Chance of every question: `shares` (n_strata,) of the k questions fall to each stratum, none above 1."""
    sizes = np.bincount(strata, minlength=len(shares)).astype(np.float64)
    wanted, given, left = np.asarray(shares, dtype=np.float64), np.zeros(len(shares)), float(k)
    free = (wanted > 0) & (sizes > 0)
    while free.any():
        part = left * wanted / wanted[free].sum()
        over = free & (part >= sizes)
        if not over.any():
            given[free] = part[free]
            break
        given[over] = sizes[over]
        left, free = left - sizes[over].sum(), free & ~over
    return np.minimum(given / np.maximum(sizes, 1), 1.0)[strata]
