"""What an experiment says about a claim, and the statistics behind it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from textwrap import wrap

import numpy as np

HOLDS, WITH_REMARKS, FAILS = "holds", "holds with remarks", "does not hold"


@dataclass(frozen=True)
class Verdict:
    """One claim and what became of it.

    Attributes
    ----------
    experiment : str
    claim : str
        What the paper states.
    outcome : {"holds", "holds with remarks", "does not hold"}
    measured : str
        The evidence in words.
    numbers : dict
        The evidence as numbers.
    """

    experiment: str
    claim: str
    outcome: str
    measured: str
    numbers: dict = field(default_factory=dict)

    def as_dict(self) -> dict:
        return asdict(self)


def coherence_verdict(experiment: str, claim: str, by_rank: dict, reported: tuple[float, float]) -> Verdict:
    """The range of a coherence, by rank and in all, beside the one that the paper reports.

    A range that leaves the reported one by more than 15 % at an end is worth a remark: it is one of more matrices, or
    of others.
    """
    ranges = {r: (min(values), max(values)) for r, values in by_rank.items()}
    low, high = min(a for a, _ in ranges.values()), max(b for _, b in ranges.values())
    inside = 0.85 * reported[0] <= low and high <= 1.15 * reported[1]
    each = ", ".join(f"{a:.2f} to {b:.2f} at r = {r}" for r, (a, b) in ranges.items())
    measured = (
        f"{low:.4f} to {high:.4f} over all matrices drawn ({each}); the paper reports {reported[0]} to {reported[1]}"
    )
    return Verdict(experiment, claim, HOLDS if inside else WITH_REMARKS, measured, {"least": low, "largest": high})


def r_squared(x, y) -> float:
    """The share of the variance of y that the best line in x explains."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    residual = y - np.polyval(np.polyfit(x, y, 1), x)
    spread = ((y - y.mean()) ** 2).sum()
    return float(1 - (residual**2).sum() / spread) if spread else 1.0


def within_group_slope(x, y, groups) -> float:
    """The slope of y in x when every group has an intercept of its own."""
    x, y, groups = np.asarray(x, float), np.asarray(y, float), np.asarray(groups)
    x0, y0 = x.copy(), y.copy()
    for group in np.unique(groups):
        x0[groups == group] -= x[groups == group].mean()
        y0[groups == group] -= y[groups == group].mean()
    return float(x0 @ y0 / (x0 @ x0))


def rate_interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of Clopper and Pearson for a probability."""
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(0.95)
    return float(interval.low), float(interval.high)


def outcome_of_rate(successes: int, trials: int, promised: float) -> str:
    """Whether the rate is shown to be at least the promised one; what remains undecided is a remark."""
    low, high = rate_interval(successes, trials)
    if low >= promised:
        return HOLDS
    return FAILS if high < promised else WITH_REMARKS


def verdict_lines(verdicts: list[Verdict]) -> list[str]:
    """The verdicts as text: a line for each claim, the evidence below it."""
    lines = []
    for verdict in verdicts:
        lines.append(f"{verdict.outcome.upper():<19} {verdict.experiment}: {verdict.claim}")
        lines += wrap(verdict.measured, 116, initial_indent="    ", subsequent_indent="    ")
    return lines
