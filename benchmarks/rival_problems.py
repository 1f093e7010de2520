"""The problems on which all methods are compared: exact, noisy, coherent, and with spiked columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import colonnade as co


@dataclass
class Problem:
    """C = L R and M = C + noise, to be known from d full columns and s entries of each other column."""

    name: str
    L: np.ndarray
    R: np.ndarray
    noise_std: float
    d: int
    s: int
    M: np.ndarray = field(init=False)

    def __post_init__(self):
        self.C = self.L @ self.R
        self.M = self.C + self.noise_std * np.random.default_rng(1).standard_normal(self.C.shape)
        self.observations = co.observe(self.M, n_full_columns=self.d, n_entries=self.s, random_state=0)

    @property
    def rank(self) -> int:
        return self.L.shape[1]

    @property
    def budget(self) -> int:
        return self.observations.values.size

    @property
    def noise_share(self) -> float:
        """Of the norm of a typical column."""
        return float(np.median(self.noise_std * np.sqrt(self.M.shape[0]) / np.linalg.norm(self.M, axis=0)))

    @property
    def column_of_entry(self) -> np.ndarray:
        return np.repeat(np.arange(self.M.shape[1]), self.observations.n_observed)

    def error(self, X) -> float:
        return float(np.linalg.norm(np.nan_to_num(X) - self.C) / np.linalg.norm(self.C))


PROBLEMS = "exact", "noisy", "coherent", "spiked columns"


def problems(size: int, rank: int, d: int, s: int, names=PROBLEMS):
    """Those of these names, one after the other."""
    rng = np.random.default_rng(0)
    L, R = rng.standard_normal((size, rank)), rng.standard_normal((rank, size))
    heights, norms = 0.1 + rng.pareto(1.5, size), np.ones(size)
    norms[rng.choice(size, size // 50, replace=False)] = 30.0
    parts = {
        "exact": (L, R, 0.0),
        "noisy": (L, R, 0.3 * np.sqrt(rank)),
        "coherent": (L * heights[:, None], R, 0.0),
        "spiked columns": (L, R * norms, 0.1 * np.sqrt(rank)),
    }
    for name in names:
        yield Problem(name, *parts[name], d, s)
