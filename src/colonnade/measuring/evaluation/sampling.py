"""How the questions of a model were drawn: its sampling rates, by which residuals are weighted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_FEWEST = 2  # Answers in a stratum that give it a sampling rate of its own; strata with fewer are pooled.


@dataclass(frozen=True)
class Sampling:
    """`strata` (m,) are the tasks, `clusters` (m,) the passages that were drawn as a whole.

    `probabilities` (m,) are those that a file of questions records, 0 for questions that were not drawn.
    """

    strata: np.ndarray
    clusters: np.ndarray | None = None
    probabilities: np.ndarray | None = None

    def rates(self, answered, inside) -> np.ndarray:
        """Inclusion probabilities of the questions given the number of answers, shape (m, n).

        Without a record they are the shares of the questions of a stratum that were asked; only those `inside` (m, n)
        the population count. A model that skipped some of the recorded questions has answered a random part of them.
        """
        rates = stratum_rates(answered & inside, inside, self.strata)
        if self.probabilities is None:
            return rates
        share = answered.sum(axis=0) / (self.probabilities > 0).sum()
        recorded = self.probabilities[:, None] * np.minimum(share, 1.0)
        return np.where(self.recorded(answered), recorded, rates)

    def recorded(self, seen) -> np.ndarray:
        """Which columns have answers to recorded questions only, shape (n,)."""
        return ~seen[self.probabilities == 0].any(axis=0) & seen.any(axis=0)


def stratum_rates(seen, inside, strata) -> np.ndarray:
    """Share of the questions of a stratum that were asked, shape (m, n).

    Strata with fewer than two answers form one, and everything is one where even that has no answer.
    """
    n_strata = int(strata.max()) + 1
    member = np.zeros((n_strata, strata.size))
    member[strata, np.arange(strata.size)] = 1.0
    asked, size = member @ seen, member @ inside
    few = asked < _FEWEST
    rest_asked, rest_size = np.where(few, asked, 0).sum(axis=0), np.where(few, size, 0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(few, rest_asked / rest_size, asked / size)
        whole = asked.sum(axis=0) / size.sum(axis=0)
    bad = (few & (size > 0)).any(axis=0) & (rest_asked == 0)
    return np.where(bad, whole, rates)[strata] if n_strata > 1 else np.broadcast_to(whole, seen.shape)
