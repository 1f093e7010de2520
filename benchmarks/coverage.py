"""Coverage: how often hidden entries lie inside their intervals, overall and in groups.

Of every table entries are hidden: with gaps anywhere, and of complete tables also in blocks and with some columns in
full. Printed are the shares of hidden entries within their intervals of 50, 80, 90 and 95 %. Those of 90 % are then
told apart by tenths of the predicted width and of the predicted value, and by rows and columns with 30 hidden entries
or more. The last two numbers are the interval score (Gneiting and Raftery 2007: width plus 2 / alpha times the miss)
and the CRPS, in units of each row's spread, divided by those of two others with the same predictions:

    constant   one width for all, as wide as the hidden errors themselves ask for, in the data's unit or in spreads of
               the rows, whichever is better
    plain      normal intervals of the model's posterior, without any calibration
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtri

import colonnade as co
from benchmarks import gaps
from benchmarks.machine import facts
from benchmarks.real_data import Problem, problems

LEVELS = 0.5, 0.8, 0.9, 0.95
_MOST_ASKED = 20_000
_CRPS_LEVELS = np.arange(0.05, 1, 0.1)  # Of the central intervals whose ends stand for the distribution.
_ENOUGH = 30  # Hidden entries of a row or column whose coverage is counted.
_FEWEST_FOR_BLOCKS = 20  # Columns of a table in which blocks are hidden.
_MOST_FULL_SETS = 2_000  # Columns of a table from which the split with full columns is drawn.


@dataclass(frozen=True)
class Coverage:
    """Of the intervals of one completion, in the order of `LEVELS`.

    Attributes
    ----------
    shares : array of shape (4,)
        Of hidden entries inside their interval.
    widths : array of shape (4,)
        Mean width, relative to intervals of constant width about the same predictions with as many entries inside.
    """

    shares: np.ndarray
    widths: np.ndarray


def coverage_of(problem: Problem, completion) -> Coverage:
    """Asked at hidden entries, evenly chosen where there are many."""
    asked = Asked.of(completion, problem.truth, problem.hidden)
    shares, widths = [], []
    for level in LEVELS:
        low, high = asked.interval(level)
        share = float(((low <= asked.truth) & (asked.truth <= high)).mean())
        shares.append(share)
        widths.append(float((high - low).mean() / (2 * np.quantile(np.abs(asked.errors), share))))
    return Coverage(np.array(shares), np.array(widths))


@dataclass(frozen=True, eq=False)
class Asked:
    """Hidden entries of a completion; arrays of shape (k,).

    `spread` is the standard deviation of all entries of an entry's row, 1 where that is 0.
    """

    completion: object
    rows: np.ndarray
    columns: np.ndarray
    truth: np.ndarray
    predicted: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, completion, truth, hidden) -> Asked:
        rows, columns = np.nonzero(hidden)
        step = -(-rows.size // _MOST_ASKED)
        rows, columns = rows[::step], columns[::step]
        spread = np.nanstd(truth.astype(np.float64), axis=1)[rows]
        predicted = completion.entries(rows, columns).astype(np.float64)
        return cls(
            completion, rows, columns, truth[rows, columns].astype(np.float64), predicted, spread + (spread == 0)
        )

    @property
    def errors(self) -> np.ndarray:
        return self.truth - self.predicted

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.completion.interval(self.rows, self.columns, level=level)
        return low.astype(np.float64), high.astype(np.float64)

    def constant(self, level: float, unit) -> tuple[np.ndarray, np.ndarray]:
        """One width in this unit for all, with that share of the entries inside."""
        half = np.quantile(np.abs(self.errors) / unit, level) * unit
        return self.predicted - half, self.predicted + half

    def plain(self, level: float, deviations) -> tuple[np.ndarray, np.ndarray]:
        half = ndtri((1 + level) / 2) * deviations
        return self.predicted - half, self.predicted + half

    def interval_score(self, ends, level: float = 0.9) -> float:
        low, high = ends
        miss = np.maximum(0.0, np.maximum(low - self.truth, self.truth - high))
        return float(np.mean((high - low + 2 / (1 - level) * miss) / self.spread))

    def crps(self, interval) -> float:
        """Mean pinball loss of the ends of central intervals, times 2: the CRPS up to the grid of levels."""
        losses = []
        for level in _CRPS_LEVELS:
            for end, share in zip(interval(level), ((1 - level) / 2, (1 + level) / 2)):
                off = self.truth - end
                losses.append(np.mean(np.maximum(share * off, (share - 1) * off) / self.spread))
        return float(2 * np.mean(losses))

    def deviations(self) -> np.ndarray:
        """Of the posterior, without calibration."""
        if self.completion.learned is not None:
            return self.completion.learned.deviations(self.rows, self.columns)
        from colonnade.model.posterior import deviations

        return deviations(self.completion, self.rows, self.columns)


@dataclass(frozen=True)
class Groups:
    """Coverage of 90 % intervals: least and greatest by tenths, and shares of rows and columns within 80 to 98 %."""

    by_width: tuple[float, float]
    by_value: tuple[float, float]
    of_rows: float
    of_columns: float


def groups_of(asked: Asked) -> Groups:
    low, high = asked.interval(0.9)
    within = (low <= asked.truth) & (asked.truth <= high)
    widths, values = _tenths(within, high - low), _tenths(within, asked.predicted)
    return Groups(widths, values, _share_near(within, asked.rows), _share_near(within, asked.columns))


def _tenths(within, key) -> tuple[float, float]:
    shares = [part.mean() for part in np.array_split(within[np.argsort(key, kind="stable")], 10)]
    return float(min(shares)), float(max(shares))


def _share_near(within, groups) -> float:
    """Share of the groups with enough entries where 80 to 98 % are within; NaN if there is none."""
    counts = np.bincount(groups)
    shares = np.bincount(groups, within)[counts >= _ENOUGH] / counts[counts >= _ENOUGH]
    return float(np.mean((shares >= 0.8) & (shares <= 0.98))) if shares.size else np.nan


def ratios_of(asked: Asked) -> tuple[list[float], list[float]]:
    """Interval score and CRPS over those of constant width, and over those of the plain posterior."""
    deviations, units = asked.deviations(), (np.ones(asked.truth.size), asked.spread)
    own = asked.interval_score(asked.interval(0.9)), asked.crps(asked.interval)
    constant = (
        min(asked.interval_score(asked.constant(0.9, unit)) for unit in units),
        min(asked.crps(lambda level, unit=unit: asked.constant(level, unit)) for unit in units),
    )
    plain = (
        asked.interval_score(asked.plain(0.9, deviations)),
        asked.crps(lambda level: asked.plain(level, deviations)),
    )
    return [a / b for a, b in zip(own, constant)], [a / b for a, b in zip(own, plain)]


def asked_problems(name: str, X, seed: int, shares) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Name, table with gaps, truth and what is hidden: with gaps anywhere, in blocks, then with full columns."""
    complete = np.isfinite(X).all()
    if complete and X.shape[1] >= _FEWEST_FOR_BLOCKS:
        hidden = _in_blocks(X, np.random.default_rng(seed))
        yield f"{name} blocks", np.where(hidden, np.nan, X), X, hidden
    for share in shares if complete else (0.8,):
        yield (f"{name} {share:g}", *gaps.problem(X, share, seed))
    if complete and X.shape[1] >= 20:
        some = np.random.default_rng(seed).permutation(X.shape[1])[:_MOST_FULL_SETS]
        p = next(problems(name, X[:, np.sort(some)], None, seed))
        yield f"{name} full columns", p.known, p.truth, p.hidden


def _in_blocks(X, rng) -> np.ndarray:
    """Gaps of neighbouring rows: 15 to 45 % of every column, as of an instrument that fails for a while."""
    hidden = np.zeros(X.shape, bool)
    for j in range(X.shape[1]):
        length = int(X.shape[0] * rng.uniform(0.15, 0.45))
        first = rng.integers(0, X.shape[0] - length + 1)
        hidden[first : first + length, j] = True
    return hidden


def line_of(name: str, completion, truth, hidden, seconds: float) -> str:
    asked = Asked.of(completion, truth, hidden)
    found = groups_of(asked)
    shares = [np.mean((low <= asked.truth) & (asked.truth <= high)) for low, high in map(asked.interval, LEVELS)]
    constant, plain = ratios_of(asked)
    low, high = found.by_width
    words = " ".join(f"{100 * share:3.0f}" for share in shares)
    tenths = f"{100 * low:3.0f}-{100 * high:3.0f}  {100 * found.by_value[0]:3.0f}-{100 * found.by_value[1]:3.0f}"
    groups = f"{100 * found.of_rows:4.0f} {100 * found.of_columns:4.0f}"
    scores = f"{constant[0]:5.2f} {constant[1]:5.2f}  {plain[0]:5.2f} {plain[1]:5.2f}"
    return f"{name:30} {seconds:5.1f}  {words}  {tenths}  {groups}   {scores}"


def main(arguments) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks coverage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder with *.npz; may be repeated")
    parser.add_argument("--sets", nargs="*", help="only these tables")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.3, 0.1], help="of entries that are kept")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    print(facts())
    tables = gaps.shipped() | gaps.tables_in(given.data)
    head = "50  80  90  95  by width by value  rows cols   score  CRPS  score  CRPS"
    print(f"{'':30} {'':5}  {'':14}   {'tenths of 90 %':16}   {'in 80-98 %':9} over constant  over plain")
    print(f"{'table, share seen':30} {'s':>5}   {head}")
    for name, X in tables.items():
        if given.sets and name not in given.sets:
            continue
        for title, known, truth, hidden in asked_problems(name, np.asarray(X, float), given.seed, given.shares):
            start = time.perf_counter()
            completion = co.complete(known)
            print(line_of(title, completion, truth, hidden, time.perf_counter() - start), flush=True)
    return 0
