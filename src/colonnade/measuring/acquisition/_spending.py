"""Entries for the columns that are not read in full: where, and how many of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._support.numbers import unit_of
from ..._support.threads import one_blas_thread
from ...data.observations import Observations
from ...model.column_space import ColumnSpace, fit_column_space
from ...model.full_columns.held_out_predictions import left_out
from ...model.full_columns.learn import penalty_of
from ...model.solve import solve_columns
from ..row_selection import grow_rows, select_rows
from ._completing import completion_of, without_gaps
from ._forecasting import Forecast, forecasts, largest_size
from ._measuring import Measurements

_SELECTED = (
    0.75  # Share of a column's entries at selected rows; the others are at random ones, which show what those do not.
)
_FIRST = 0.75  # Share of the entries of partial columns that is spent before any has shown that it needs more.
_CAUTION = 10.0  # Entries of average error that a column's own are averaged with.
_OFF = 25.0  # Ratio to the usual square error from which the space does not explain a column.
_ROUNDS = 4  # Rounds of reading columns in full that are off the space.
_BLOCK_ENTRIES = 1_000_000  # Entries of a request.


def spend(measurements: Measurements, survey, rng, rank=None, noise_std=None, *, select: bool = True) -> None:
    """Read entries of the columns that are not full until the budget is used up; all at random rows unless `select`."""
    m, n = measurements.shape
    A = survey.matrix()
    measurements.avoided = np.flatnonzero(np.isnan(A).all(axis=1))  # Rows that never answered.
    A = without_gaps(A).astype(np.float64)
    unit = unit_of(A)  # The unit of A and of the forecast, in which no square overflows.
    A /= unit
    forecast = _forecast(A, None if noise_std is None else noise_std / unit)
    columns = rng.permutation(np.setdiff1d(np.arange(n), survey.full))
    columns = columns[~measurements.dead[columns]]
    if columns.size == 0:
        return
    known = measurements.n_known(columns)
    s = _level(known, np.ones(columns.size), m, int(_FIRST * measurements.left))
    rows = np.zeros(0, np.int64)
    if select:
        rows = _row_order(A, forecast, int(s.max()), rank, measurements.avoided)
    _raise(measurements, columns, s, rows, rng)
    factors = np.ones(columns.size)
    for _ in range(_ROUNDS):
        completion = completion_of(measurements, survey, rank, noise_std, refine=0)
        factors = column_factors(completion)[columns]
        if not _read_odd_ones(measurements, columns, factors, forecast, s.mean()):
            break
    s = _level(measurements.n_known(columns), np.sqrt(factors), m, measurements.left)
    _raise(measurements, columns, s, rows, rng)


def _forecast(A, noise_std) -> Forecast:
    forecast = forecasts(A, [largest_size(A.shape[1])])[0] if A.shape[1] > 1 else Forecast(A.shape[0], np.zeros(0), 0.0)
    return forecast if noise_std is None else Forecast(forecast.n_rows, forecast.variances, noise_std**2)


def _level(known, weights, m, budget) -> np.ndarray:
    """How many entries each column should have: in proportion to the weights, as far as the budget goes."""
    low, high = 0.0, 2.0 * m / weights.min()
    for _ in range(60):
        c = (low + high) / 2
        wanted = np.clip(np.floor(c * weights), known, m)
        low, high = (c, high) if (wanted - known).sum() <= budget else (low, c)
    wanted = np.clip(np.floor(low * weights), known, m).astype(np.int64)
    spare = budget - int((wanted - known).sum())
    able = np.flatnonzero(wanted < m)
    first = able[np.argsort(wanted[able] - low * weights[able], kind="stable")[:spare]]
    wanted[first] += 1
    return wanted


def _raise(measurements, columns, counts, rows, rng) -> None:
    """Read columns until counts[k] entries are known, a share of them at the first of `rows`."""
    step = max(1, int(_BLOCK_ENTRIES / max(1.0, counts.mean())))
    for lo in range(0, columns.size, step):
        block = slice(lo, lo + step)
        first = [rows[: int(_SELECTED * count)] for count in counts[block]] if rows.size else ()
        measurements.read_rows(columns[block], counts[block], rng, first)


def _row_order(A, forecast: Forecast, s: int, rank, avoided) -> np.ndarray:
    """Selected rows, the first ones first; none if random ones predict full columns better."""
    m, D = A.shape
    k = min(int(_SELECTED * s), m - avoided.size)
    h = min(max(D // 4, 1), 20)
    none = np.zeros(0, np.int64)
    if k == 0 or D - h < 1:
        return none
    cost = np.ones(m)
    cost[avoided] = np.inf
    space = _with_noise(fit_column_space(A[:, h:], rank=rank), forecast.noise)
    selected = select_rows(space, k, cost=cost)
    if not _error(space, A[:, :h], selected, s) < _error(space, A[:, :h], none, s):
        return none
    space = _with_noise(fit_column_space(A, rank=rank), forecast.noise)
    most = min(m - avoided.size, 3 * k)
    return grow_rows(space, select_rows(space, k, cost=cost), most, cost=cost)


def _with_noise(space: ColumnSpace, variance: float) -> ColumnSpace:
    return replace(space, noise_std=float(np.sqrt(variance)))


@one_blas_thread()
def _error(space: ColumnSpace, held, rows, s: int) -> float:
    """Mean square error of held-out columns, shape (m, h), from s entries: these rows, and random ones."""
    (m, h), rng = held.shape, np.random.default_rng(0)
    seen = np.zeros(held.shape, bool)
    for k in range(h):
        rest = rng.permutation(np.setdiff1d(np.arange(m), rows))[: s - rows.size]
        seen[rows, k] = seen[rest, k] = True
    o = Observations.from_dense(np.where(seen, held, np.nan))
    penalty = penalty_of(space, space.noise_std**2 or 1e-9 * float(space.variances.max(initial=0)))
    Z, _ = solve_columns(space, o, penalty=penalty)
    return float(np.mean((space.basis @ Z - held)[~seen] ** 2)) if not seen.all() else 0.0


def column_factors(completion) -> np.ndarray:
    """Square errors of the entries of each column, left out, over those of the usual column; shape (n,)."""
    o, n = completion.observations, completion.shape[1]
    partial = o.partial_columns
    asked = o.take(partial)
    errors, deviations = left_out(completion, asked)
    known = np.isfinite(errors) & (deviations > 0)
    squares = np.where(known, np.minimum(np.abs(errors) / np.where(known, deviations, 1), 1e100) ** 2, 0)
    owner = np.repeat(partial, o.n_observed[partial])
    sums, counts = np.bincount(owner, squares, n), np.bincount(owner[known], minlength=n)
    usual = float(np.median(sums[counts > 0] / counts[counts > 0])) if (counts > 0).any() else 0.0
    return (sums + _CAUTION * usual) / ((counts + _CAUTION) * usual) if usual else np.ones(n)


def _read_odd_ones(measurements, columns, factors, forecast: Forecast, s: float) -> bool:
    """Read in full the columns that are off the space, if that helps more than entries elsewhere; whether any was."""
    m = measurements.shape[0]
    unread = measurements.n_known(columns) < 0.9 * (m - measurements.avoided.size)
    usual = forecast.error(s)
    elsewhere = m * (forecast.estimation_error(s) - forecast.estimation_error(s + 1))  # What one more entry saves.
    odd = np.flatnonzero(unread & (factors > _OFF) & (factors * usual > usual + elsewhere))
    odd = odd[np.argsort(-factors[odd], kind="stable")]
    read = 0
    for k in odd[: max(1, odd.size // 2)]:
        j = columns[k]
        if measurements.left < m - measurements.n_known([j])[0]:
            break
        measurements.read_rows([j], [m], np.random.default_rng(0))
        read += 1
    return read > 0
