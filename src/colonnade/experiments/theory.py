"""The theorems, checked: how often does what they promise come true at the d and s they prescribe, and how much less
would have done?

Each check runs trials at the prescribed d and s. Then d alone is lowered, and s alone: the smallest value at which the
promised share of the trials succeeds is called sufficient, and prescribed over sufficient is how loose the bound is.
It is searched by bisection, as if success were monotone; the value one below the answer was seen to fail.

- corollary1, theorem1: |M - M^|_F / |M|_F <= 1e-8, with columns drawn uniformly, and with the likeliest column five
  times as likely as the rarest (probabilities rise linearly).
- lemma2: lambda_min(U_O'U_O) >= s / (2 m) in all n columns; only s.
- theorem2: |M - M^|_F^2 <= |M - M_r|_F^2 + epsilon |M|_F^2, with noise of standard deviation 0.5 and the constants of
  the proof. The factors are random signs: Gaussian ones are more coherent, and s would exceed m even at m = 10000.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._support.threads import in_threads
from ..completion import algorithm1
from ..data.sampling import observe
from ..data.sources import Source
from ..measuring import theory as bounds
from ..model.column_space import fit_column_space
from . import _matrices
from ._matrices import LowRank, best_distance, column_coherence, distance, noise, noisy, seed_of
from ._verdicts import Verdict, outcome_of_rate, rate_interval

PAPER = {
    "checks": [
        {"check": "corollary1", "factors": "gaussian", "n": 3000, "r": 5, "delta": 0.1, "trials": 40},
        {"check": "corollary1", "factors": "flat", "n": 2000, "r": 10, "delta": 0.1, "trials": 60},
        {"check": "theorem1", "factors": "gaussian", "n": 3000, "r": 5, "delta": 0.1, "trials": 40},
        {"check": "lemma2", "factors": "gaussian", "n": 3000, "r": 5, "delta": 0.1, "trials": 60},
        {"check": "lemma2", "factors": "flat", "n": 2000, "r": 10, "delta": 0.1, "trials": 60},
        {"check": "theorem2", "factors": "flat", "n": 3000, "r": 2, "delta": 0.2, "trials": 18, "epsilon": 1.0},
        {"check": "theorem2", "factors": "flat", "n": 3000, "r": 1, "delta": 0.2, "trials": 18, "epsilon": 0.5},
    ],
    "search_trials": 20,
    "tolerance": 1e-8,
    "noise_std": 0.5,
    "blas_threads": 1,
}
QUICK = {
    **PAPER,
    "checks": [
        {"check": "corollary1", "factors": "flat", "n": 300, "r": 2, "delta": 0.1, "trials": 40},
        {"check": "theorem1", "factors": "flat", "n": 300, "r": 2, "delta": 0.1, "trials": 40},
        {"check": "lemma2", "factors": "flat", "n": 300, "r": 2, "delta": 0.1, "trials": 40},
        {"check": "theorem2", "factors": "flat", "n": 1000, "r": 1, "delta": 0.2, "trials": 18, "epsilon": 1.0},
    ],
    "search_trials": 10,
    "noise_std": 0.25,
}
COLUMNS = ("check", "factors", "n", "r", "phase", "d", "s", "trial", "value", "bound", "holds")
CLAIMS = {
    "corollary1": "Corollary 1: exact recovery with probability at least 1 - delta",
    "theorem1": "Theorem 1: exact recovery for columns drawn by any p",
    "lemma2": "Lemma 2: lambda_min(U_O'U_O) >= |O| / 2m in every column",
    "theorem2": "Theorem 2: |M - M^|^2 <= |M - M_r|^2 + epsilon |M|^2",
}
PRESCRIBED = "prescribed"
_MATRIX, _NOISE, _SAMPLE = 30, 31, 32  # First words of the seeds.


@dataclass(frozen=True)
class Unit:
    """A check at the prescribed sizes, or the search for the sufficient d or s."""

    number: int
    check: dict
    phase: str

    @property
    def key(self) -> str:
        return f"{self.check['check']} {self.check['factors']} r={self.check['r']}: {self.phase}"

    @property
    def cost(self) -> float:
        work = self.check["n"] ** 2 * self.check["trials"]
        return work if self.phase == PRESCRIBED else 0.5 * work


def units(settings: dict) -> list[Unit]:
    return [
        Unit(number, check, phase)
        for number, check in enumerate(settings["checks"])
        for phase in ((PRESCRIBED, "s") if check["check"] == "lemma2" else (PRESCRIBED, "d", "s"))
    ]


def run(unit: Unit, settings: dict) -> list[tuple]:
    check, trial_of = unit.check, TRIALS[unit.check["check"]]
    if unit.phase == PRESCRIBED:
        return in_threads(lambda k: trial_of(unit, settings, k, None, None), range(check["trials"]))
    prescribed = _prescribed(check, settings, 0)
    rows, low, high = [], check["r"] - 1, prescribed["ds".index(unit.phase)]  # r - 1 is never enough.
    while high - low > 1:
        # First close to the bottom, where the answer mostly is, then by halves.
        middle = min((low + high) // 2, low + max(2, low))
        new = _trials_at(unit, settings, middle)
        rows += new
        if sum(row[-1] for row in new) >= _promise(check) * settings["search_trials"]:
            high = middle
        else:
            low = middle
    return rows


def _trials_at(unit: Unit, settings: dict, value: int) -> list[tuple]:
    """Trials at one d or s, until too many have failed."""
    trial_of, rows, failures = TRIALS[unit.check["check"]], [], 0
    d, s = (value, None) if unit.phase == "d" else (None, value)
    n_trials = settings["search_trials"]
    for k in range(n_trials):
        rows.append(trial_of(unit, settings, k, d, s))
        failures += not rows[-1][-1]
        if n_trials - failures < _promise(unit.check) * n_trials:
            break
    return rows


def _promise(check: dict) -> float:
    return 1 - check["delta"]


def _row(unit: Unit, d, s, trial, value, bound, holds) -> tuple:
    check = unit.check
    return *(check[name] for name in ("check", "factors", "n", "r")), unit.phase, d, s, trial, value, bound, bool(holds)


# --------------------------------------------------------------------------------------------- the checks


def _recovery_trial(unit: Unit, settings: dict, k: int, d, s) -> tuple:
    """Corollary 1 and Theorem 1; d or s replaces the prescribed one."""
    check = unit.check
    prescribed_d, prescribed_s = _prescribed(check, settings, k)
    d, s = d or prescribed_d, s or prescribed_s
    M, rng = _matrix(check, k), _sample(unit, k, d, s)
    p = _skewed(check["n"]) if check["check"] == "theorem1" else None
    found = algorithm1(M.source(), rank=check["r"], n_full_columns=d, n_entries=s, probabilities=p, random_state=rng)
    error = M.relative_error(found)
    return _row(unit, d, s, k, f"{error:.0e}", settings["tolerance"], error <= settings["tolerance"])


def _eigenvalue_trial(unit: Unit, settings: dict, k: int, d, s) -> tuple:
    """Lemma 2: the smallest eigenvalue of U_O'U_O over all columns, times m/s; repeated rows count as often."""
    check = unit.check
    s = s or _prescribed(check, settings, k)[1]
    U, rng = np.linalg.qr(_matrix(check, k).L)[0], _sample(unit, k, 0, s)
    m, n = U.shape[0], check["n"]
    least = np.inf
    for lo in range(0, n, 100):
        X = U[rng.integers(0, m, size=(min(100, n - lo), s))]
        least = min(least, np.linalg.eigvalsh(X.transpose(0, 2, 1) @ X)[:, 0].min())
    return _row(unit, 0, s, k, least * m / s, 0.5, least * m / s >= 0.5)


def _error_trial(unit: Unit, settings: dict, k: int, d, s) -> tuple:
    """Theorem 2: squared errors, relative to |M|_F^2."""
    check = unit.check
    prescribed_d, prescribed_s = _prescribed(check, settings, k)
    d, s = d or prescribed_d, s or prescribed_s
    M, best = _noisy_matrix(_frozen(check), settings["noise_std"], k)
    found = algorithm1(Source(M), rank=check["r"], n_full_columns=d, n_entries=s, random_state=_sample(unit, k, d, s))
    scale = float(np.linalg.norm(M)) ** 2
    error = distance(M, found.basis, found.coefficients, found.observations.full_columns) ** 2 / scale
    bound = best**2 / scale + check["epsilon"]
    return _row(unit, d, s, k, error, bound, error <= bound)


TRIALS = {
    "corollary1": _recovery_trial,
    "theorem1": _recovery_trial,
    "lemma2": _eigenvalue_trial,
    "theorem2": _error_trial,
}


# ------------------------------------------------------------------------------ prescribed sizes, matrices


def _prescribed(check: dict, settings: dict, k: int) -> tuple[int, int]:
    """The d and s of the statement for the matrix of trial k, from its measured coherences."""
    return _prescribed_sizes(_frozen(check), settings["noise_std"], k)


@lru_cache(maxsize=1000)
def _prescribed_sizes(frozen, noise_std, k) -> tuple[int, int]:
    check = dict(frozen)
    n, r, delta = check["n"], check["r"], check["delta"]
    if check["check"] == "theorem2":
        return _sizes_of_theorem2(frozen, noise_std, k)
    M = _matrix(check, k)
    if check["check"] == "lemma2":
        return 0, bounds.lemma2(r, bounds.basis_coherence(np.linalg.qr(M.L)[0]), n, delta=delta)
    p = _skewed(n) if check["check"] == "theorem1" else None
    size = bounds.theorem1((n, n), r, M.coherence, delta=delta, probabilities=p)
    return size.n_full_columns, size.n_entries


def _sizes_of_theorem2(frozen, noise_std, k) -> tuple[int, int]:
    """d from mu(M); then s from the coherences of the basis that d columns gave and of what it leaves."""
    check = dict(frozen)
    n, r = check["n"], check["r"]
    M, _ = _noisy_matrix(frozen, noise_std, k)
    known = {"epsilon": check["epsilon"], "delta": check["delta"], "column_coherence": column_coherence(M)}
    d = bounds.theorem2((n, n), r, basis_coherence=1, residual_coherence=1, **known).n_full_columns
    rng = np.random.default_rng(seed_of(_SAMPLE, n, r, k))
    U = fit_column_space(observe(Source(M), n_full_columns=d, n_entries=1, random_state=rng), rank=r).basis
    left = M - U @ (U.T @ M)
    mu_x = n * float(((left**2).max(axis=0) / (left**2).sum(axis=0)).max())
    mu_U = bounds.basis_coherence(U)
    size = bounds.theorem2((n, n), r, basis_coherence=mu_U, residual_coherence=mu_x, **known)
    return size.n_full_columns, size.n_entries


def _matrix(check: dict, k: int) -> LowRank:
    make = getattr(_matrices, check["factors"])
    return make(check["n"], check["r"], seed_of(_MATRIX, check["n"], check["r"], k))


@lru_cache(maxsize=4)
def _noisy_matrix(frozen, noise_std, k) -> tuple[np.ndarray, float]:
    """M and |M - M_r|_F."""
    check = dict(frozen)
    C = _matrix(check, k)
    M = noisy(C, noise(check["n"], seed_of(_NOISE, check["n"], check["r"], k), np.float64), noise_std)
    return M, best_distance(M, C.L)


def _frozen(check: dict) -> tuple:
    return tuple(sorted(check.items()))


def _sample(unit: Unit, k, d, s) -> np.random.Generator:
    return np.random.default_rng(seed_of(_SAMPLE, unit.number, k, d, s))


def _skewed(n: int) -> np.ndarray:
    p = np.linspace(1, 5, n)
    return p / p.sum()


# ------------------------------------------------------------------------------------------------- verdicts


def verdicts(table: list[dict], settings: dict) -> list[Verdict]:
    return [_verdict(table, check, settings) for check in settings["checks"]]


def _verdict(table: list[dict], check: dict, settings: dict) -> Verdict:
    rows = [row for row in table if all(row[name] == check[name] for name in ("check", "factors", "n", "r"))]
    trials = [row for row in rows if row["phase"] == PRESCRIBED]
    successes, promised = sum(row["holds"] for row in trials), _promise(check)
    low, high = rate_interval(successes, len(trials))
    outcome = outcome_of_rate(successes, len(trials), promised)
    sizes = {size: _sizes(rows, trials, size, settings, promised) for size in "ds" if any(r[size] for r in trials)}
    loose = "; ".join(
        f"{size} = {prescribed} prescribed, {sufficient} sufficient: {prescribed / sufficient:.1f} times"
        for size, (prescribed, sufficient) in sizes.items()
    )
    at = f"{check['factors']} factors, n = {check['n']}, r = {check['r']}"
    at += f", epsilon = {check['epsilon']:g}" if "epsilon" in check else ""
    measured = (
        f"{at}: {successes} of {len(trials)} trials, 95 % interval {low:.3f} to {high:.3f},"
        f" promised {promised:g}. {loose}"
    )
    numbers = {"successes": successes, "trials": len(trials), "low": round(low, 4), "high": round(high, 4)}
    for size, (prescribed, sufficient) in sizes.items():
        numbers |= {f"prescribed {size}": prescribed, f"sufficient {size}": sufficient}
        numbers[f"looseness of {size}"] = round(prescribed / sufficient, 2)
    return Verdict("theory", CLAIMS[check["check"]], outcome, measured, numbers)


def _sizes(rows, trials, size, settings, promised) -> tuple[int, int]:
    """The prescribed (median over the trials) and the sufficient d or s."""
    prescribed = int(np.median([row[size] for row in trials]))
    succeeded: dict[int, int] = {}
    for row in rows:
        if row["phase"] == size:
            succeeded[row[size]] = succeeded.get(row[size], 0) + row["holds"]
    enough = [value for value, count in succeeded.items() if count >= promised * settings["search_trials"]]
    return prescribed, min(enough, default=prescribed)
