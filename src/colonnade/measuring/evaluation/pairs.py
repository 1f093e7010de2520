"""Two models compared by the questions that both answered, without a model of the questions.

With weights w_i of the questions that sum to 1, differences d_i, and their means d_s within tasks:

    difference = sum of w_i d_i        its variance = n / (n - 1) sum of w_i^2 (d_i - d_s)^2

That is the variance over other questions of the same kind (Miller, arXiv 2411.00640). Over the questions of this
benchmark it is smaller by the share of each task that was not asked. Questions of a cluster are summed before squaring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..._support.printable import counted
from .tasks import Tasks

_FEWEST = 2  # Questions from which a variance can be estimated.


@dataclass(frozen=True)
class PairedDifference:
    difference: float
    error_here: float
    error_elsewhere: float
    freedom: float
    n_common: int

    def interval_elsewhere(self, level: float) -> tuple[float, float]:
        half = float(stats.t.ppf((1 + level) / 2, self.freedom)) * self.error_elsewhere
        return self.difference - half, self.difference + half

    @property
    def positive_elsewhere(self) -> float:
        """P(difference > 0) over other questions; 0.5 where no question tells the models apart."""
        if self.error_elsewhere == 0:
            return 0.5 + 0.5 * float(np.sign(self.difference))
        return float(stats.t.cdf(self.difference / self.error_elsewhere, self.freedom))


def paired_difference(differences, tasks: Tasks, clusters=None) -> PairedDifference:
    """`differences` (m,) are NaN where not both models answered. Tasks without a common question do not count."""
    rows = np.flatnonzero(np.isfinite(differences) & (tasks.weights > 0))
    if rows.size < _FEWEST:
        raise ValueError(f"both models answered {counted(rows.size, 'question')}; two are the fewest that compare them")
    strata, d = tasks.strata[rows], differences[rows]
    asked, size = (np.bincount(s, minlength=len(tasks.names)) for s in (strata, tasks.strata))
    w = tasks.weights[rows] * (size / np.maximum(asked, 1))[strata]
    w = w / w.sum()
    means = np.bincount(strata, d, len(tasks.names)) / np.maximum(asked, 1)
    parts = w * (d - means[strata])
    groups = np.arange(rows.size) if clusters is None else np.unique(clusters[rows], return_inverse=True)[1]
    n = int(groups.max()) + 1

    def error(factors) -> float:
        sums = np.bincount(groups, parts * factors)
        return float(np.sqrt(n / max(n - 1, 1) * (sums @ sums)))

    here = error(np.sqrt(1 - asked / size)[strata])
    return PairedDifference(float(w @ d), here, error(1.0), max(n - 1, 1), rows.size)
