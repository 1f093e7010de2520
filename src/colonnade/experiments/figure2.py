"""Figure 2: Algorithm 1 and Nystrom on noisy low-rank matrices, both reading about as many entries.

M = C_L C_R + R, n x n, the factors standard normal and the noise R of standard deviation sigma. Nystrom reads a r
columns and a r^2 rows, Algorithm 1 d columns and s entries of each other one, d = s and d + s = a r + a r^2. Of each
trial both ranks and both sigmas share one matrix of standard normal noise, and all values of a share M. M is kept in
single precision, whose rounding is a millionth of the errors. As in the paper the error is that of U z in the partial
columns and nothing in the full ones; that of Nystrom is |M - C W+ R|_F, with W+ in full and cut to rank r.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._support.threads import in_threads
from ..completion import algorithm1
from ..data.sources import Source
from ..methods.nystrom import complete_cross, observe_cross
from ._matrices import best_distance, column_coherence, distance, gaussian, noise, noisy, seed_of
from ._verdicts import FAILS, HOLDS, WITH_REMARKS, Verdict, coherence_verdict

PAPER = {
    "size": 10000,
    "alphas": {"20": [1, 1.5, 2, 2.5, 3], "40": [1, 1.25, 1.5, 1.75, 2]},
    "sigmas": [0.1, 1],
    "trials": 10,
    "blas_threads": 1,
}
QUICK = {
    **PAPER,
    "size": 1000,
    "alphas": {"5": [1, 2, 3], "10": [1, 1.5, 2]},
    "trials": 3,
}
COLUMNS = (
    *("r", "sigma", "alpha", "trial", "method", "columns", "rows"),
    *("entries_read", "error", "best_error", "column_coherence"),
)
PAPER_COHERENCE = (2.2929, 2.6792)  # Least and largest coherence that the paper states.
METHODS = {"algorithm1": "Algorithm 1", "nystrom": "Nyström, full $W^+$", "nystrom_r": "Nyström, rank $r$"}
_FACTORS, _NOISE, _SAMPLE, _CROSS = 20, 21, 22, 23  # First words of the seeds.


@dataclass(frozen=True)
class Unit:
    """One trial at one rank and one sigma."""

    trial: int
    r: int
    sigma: float

    @property
    def key(self) -> str:
        return f"trial {self.trial} r={self.r} sigma={self.sigma:g}"

    @property
    def cost(self) -> float:
        return self.r**2


def units(settings: dict) -> list[Unit]:
    ranks = [int(r) for r in settings["alphas"]]
    return [Unit(k, r, sigma) for k in range(settings["trials"]) for r in ranks for sigma in settings["sigmas"]]


def run(unit: Unit, settings: dict) -> list[tuple]:
    """The errors of all methods at all values of a."""
    n, r, sigma, trial = settings["size"], unit.r, unit.sigma, unit.trial
    C = gaussian(n, r, seed_of(_FACTORS, n, r, trial))
    M = noisy(C, _standard_noise(n, trial), sigma)
    best, mu = best_distance(M, C.L), column_coherence(M)

    def rows_of(alpha):
        seeds = [seed_of(first, n, r, trial, round(100 * alpha)) for first in (_SAMPLE, _CROSS)]
        errors = _errors(M, r, alpha, *map(np.random.default_rng, seeds))
        return [(r, sigma, alpha, trial, method, *numbers, best, mu) for method, *numbers in errors]

    # The values of a in threads of their own, the largest first, so that none is left alone at the end.
    by_alpha = in_threads(rows_of, settings["alphas"][str(r)][::-1])
    return [row for rows in by_alpha[::-1] for row in rows]


def _errors(M, r, alpha, sample, cross):
    """(method, columns, rows, entries read, error) of each method."""
    c, k = round(alpha * r), round(alpha * r**2)
    d = s = (c + k) // 2
    source = Source(M)
    ours = algorithm1(source, rank=r, n_full_columns=d, n_entries=s, random_state=sample)
    known = ours.observations.full_columns
    yield "algorithm1", d, s, source.entries_read, distance(M, ours.basis, ours.coefficients, known)
    del ours
    source = Source(M)
    observations = observe_cross(source, n_columns=c, n_rows=k, random_state=cross)
    for method, rank in (("nystrom", None), ("nystrom_r", r)):
        theirs = complete_cross(observations, rank=rank)
        yield method, c, k, source.entries_read, distance(M, theirs.basis, theirs.coefficients)


@lru_cache(maxsize=1)
def _standard_noise(n, trial) -> np.ndarray:
    return noise(n, seed_of(_NOISE, n, trial))


# ------------------------------------------------------------------------------------------------- verdicts


def summary(table: list[dict]) -> dict[tuple, tuple[float, float]]:
    """Mean and standard deviation of the error over the trials, by (r, sigma, alpha, method)."""
    cells: dict[tuple, list] = {}
    for row in table:
        cells.setdefault((row["r"], row["sigma"], row["alpha"], row["method"]), []).append(row["error"])
    return {cell: (float(np.mean(e)), float(np.std(e, ddof=1))) for cell, e in cells.items()}


def verdicts(table: list[dict], settings: dict) -> list[Verdict]:
    return [
        _verdict_on_rival(table, "nystrom", "Nystrom (W+ in full)"),
        _verdict_on_rival(table, "nystrom_r", "Nystrom (W+ cut to rank r)"),
        _verdict_on_best(table),
        _verdict_on_coherence(table),
    ]


def _verdict_on_rival(table, method, words) -> Verdict:
    mean = {cell: values[0] for cell, values in summary(table).items()}
    ratios = [mean[*cell[:3], method] / error for cell, error in mean.items() if cell[3] == "algorithm1"]
    won = sum(ratio > 1 for ratio in ratios)
    pairs = _paired_errors(table, method)
    trials_won = sum(theirs > ours for ours, theirs in pairs)
    outcome = HOLDS if won == len(ratios) else FAILS
    measured = (
        f"smaller mean error at {won} of {len(ratios)} settings and in {trials_won} of {len(pairs)} single trials;"
        f" its error is {min(ratios):.2f} to {max(ratios):.2f} times ours"
    )
    numbers: dict[str, float] = {"settings": len(ratios), "won": won, "trials": len(pairs), "trials won": trials_won}
    numbers |= {"least ratio": round(min(ratios), 4), "largest ratio": round(max(ratios), 4)}
    return Verdict("figure2", f"Algorithm 1 is more accurate than {words}", outcome, measured, numbers)


def _paired_errors(table, method) -> list[tuple[float, float]]:
    by_trial = {(r["r"], r["sigma"], r["alpha"], r["trial"], r["method"]): r["error"] for r in table}
    return [(error, by_trial[*cell[:4], method]) for cell, error in by_trial.items() if cell[4] == "algorithm1"]


def _verdict_on_best(table) -> Verdict:
    ratios = [row["error"] / row["best_error"] for row in table if row["method"] == "algorithm1"]
    excess = [100 * (ratio - 1) for ratio in ratios]
    outcome = HOLDS if max(ratios) <= 1.2 else WITH_REMARKS
    measured = (
        f"error {min(excess):+.1f} % to {max(excess):+.1f} % from the best; it can be below,"
        " as full columns are returned as observed"
    )
    numbers = {"least ratio": round(min(ratios), 4), "largest ratio": round(max(ratios), 4)}
    return Verdict(
        "figure2", "(ours) the error is close to the best of rank r, |M - M_r|_F", outcome, measured, numbers
    )


def _verdict_on_coherence(table) -> Verdict:
    by_rank: dict[int, list] = {}
    for row in table:
        by_rank.setdefault(row["r"], []).append(row["column_coherence"])
    return coherence_verdict("figure2", "mu(M) is small", by_rank, PAPER_COHERENCE)


# --------------------------------------------------------------------------------------------------- figure


def draw(table: list[dict], settings: dict):
    """A panel for each r and sigma: mean and standard deviation of the error against a, and the best rank-r error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7))
    figure.subplots_adjust(left=0.1, right=0.98, bottom=0.08, top=0.95, wspace=0.28, hspace=0.32)
    errors = summary(table)
    letters = iter("abcd")
    for axes_row, (rank, alphas) in zip(figure.subplots(2, 2), settings["alphas"].items()):
        for axes, sigma in zip(axes_row, settings["sigmas"]):
            _draw_panel(axes, table, errors, int(rank), sigma, alphas)
            axes.set_title(rf"({next(letters)}) $r = {rank}$, $\sigma = {sigma:g}$", fontsize=11)
    return figure


def _draw_panel(axes, table, errors, r, sigma, alphas) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    for (method, label), marker, dashes in zip(METHODS.items(), "osD", ("-", "--", ":")):
        mean, deviation = np.transpose([errors[r, sigma, alpha, method] for alpha in alphas])
        axes.errorbar(
            *(alphas, mean, deviation), marker=marker, fillstyle="none", linestyle=dashes, capsize=3, label=label
        )
    best = np.mean([row["best_error"] for row in table if row["r"] == r and row["sigma"] == sigma])
    axes.axhline(best, color="black", linewidth=1, linestyle="-.", label=r"best rank $r$: $\|M - M_r\|_F$")
    axes.set(xlabel=r"$\alpha$", ylabel=r"$\|M - \hat{M}\|_F$", yscale="log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
