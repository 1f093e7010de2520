"""Certificates: how well the observed rows determine each column, and whether the column fits the space."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._support.numbers import CACHE_CELLS
from .._support.threads import one_blas_thread
from ..model.column_space import ColumnSpace, fit_column_space, with_offset
from ..model.full_columns.held_out_predictions import noise_of
from ..model.full_columns.optimism import optimism_of
from ..model.leaving_out import leave_one_out
from ..model.posterior import fitted_variances
from ..model.solve import Status, solve_columns
from .certificate_table import Certificates
from .column_verdict import ColumnVerdict
from .factor_posterior import CERTIFICATE_FIELDS, certify_columns

WEAK = 0.01  # Smallest eigenvalue; below it, noise may grow more than tenfold.
OFF = 5.0  # Times the noise or the usual residual; a larger residual is not noise.
DOUBTFUL = 3.0  # Times the same; a column with a larger residual is not called recovered.
POOR = 0.5  # Share of the entries' size; a model with larger residuals or left-out errors explains little.
DOMINATED = 0.5  # Share of the prior's spread that is still open; with more, the prior dominates.
SETTLED = 0.1  # Share of the same; with less, the entries have decided.
_UNLIKE = 0.3  # Share of a column's size that full columns alone leave; sweeps must not hide more.
_LITTLE = 0.01  # Share of a column's size; entries with a smaller spread need no explanation.
_LARGER_SHARE = 2.5  # Times the share that most columns leave; large columns leave more, but no larger share.
_MANY = 10  # Columns; the median of fewer is no usual residual.
_OFFSET = 1.0  # Variance of a column's offset from the full columns, in variances of an entry.


@one_blas_thread()
def certify(completion) -> Certificates:
    """A row for every column of a completion.

    Columns are compared with all others. Those of a completion in blocks are measured block by block, and judged
    together.

    Parameters
    ----------
    completion : Completion

    Returns
    -------
    record array of shape (n,) with the fields
        column : its index
        n_observed : number of distinct rows observed
        smallest_eigenvalue : of U_O' W U_O, times m / sum(W); a sample of rows that represents the whole has 1, and
            Lemma 2 of the paper promises at least 1/2 for enough rows
        condition : largest over smallest singular value of sqrt(W) U_O
        residual : sqrt(sum of squared residuals / degrees of freedom) at the observed rows; NaN with none to spare
        uncertainty : standard deviation of the fit about the column's part in the space, root mean square over all
            rows; NaN where the noise is not known. Under a prior it is scaled by the errors of entries left out
        more_entries : how many more entries of the column would help: 0 where it is recovered, all that are missing
            where only measuring it in full would
        verdict : one of the following, or what the status says.
            "recovered": well determined. The uncertainty of the fit is below the noise of one entry, or below a tenth
            of the prior's spread. The noise itself stays: see `Completion.interval`.
            "approximate": partly determined. The uncertainty is larger, or the full columns are too few to estimate
            the noise.
            "weakly determined": noise may grow more than tenfold, or over half of the prior's spread is still open.
            "unchecked": no entry is left to test the fit.
            "poor fit": the residual or the errors of entries left out are at least half of their spread, or the
            residual is several times that of most columns.
            "off the column space": the residual is far above the noise or that of most columns, because the full
            columns do not explain the column.
    """
    solution, accuracy = completion.solution, completion.accuracy
    if solution.learned is not None:
        return Certificates.of(_of_factor_model(solution, accuracy.calibration.kind), solution.column_names)
    space = _space_before(solution)
    typical = 0.0 if space is None else _typical_used(solution)
    noise_std = accuracy.noise_std
    tables, *parts = zip(*(_figures(part, space, typical, noise_std) for part in solution.blocks()))
    table, figures = np.concatenate(tables).view(np.recarray), _Figures(*map(np.concatenate, parts))
    table.column = np.arange(table.size)
    scales = accuracy.error_scales
    table.uncertainty *= scales.typical if solution.noise_variance else 1.0
    noise = noise_of(solution, scales.of_left_out)
    table.verdict = _verdicts(solution, table, figures, noise)
    table.more_entries = _more_entries(solution, table, noise)
    return Certificates.of(table, solution.column_names)


def _of_factor_model(solution, kind: str) -> np.recarray:
    seen = solution.n_observed
    usual, tables = int(np.median(seen[seen > 0])), []
    for lo, hi in pairwise(solution.starts):
        for _, _, part in solution.by_parts(np.arange(lo, hi)):
            others = np.flatnonzero(part.status != Status.SOLVED)
            given = {int(j): ColumnVerdict.of(Status(part.status[j])) for j in others}
            tables.append(certify_columns(part.learned, part.observations, given, kind, usual))
    table = np.concatenate(tables).view(np.recarray)
    table.column = np.arange(table.size)
    return table


class _Figures(NamedTuple):
    """More about every column, shape (n,) each.

    Attributes
    ----------
    before : residuals beside the space of the full columns alone; NaN if no refinement moved the rows
    sizes, spreads : root mean square of the entries, and how far they spread
    rounding : residuals up to here may be rounding
    """

    before: np.ndarray
    sizes: np.ndarray
    spreads: np.ndarray
    rounding: np.ndarray


def _figures(part, space_before, typical: float, noise_std: float) -> tuple:
    """The table of some columns without verdicts, and their figures."""
    table, sizes, spreads = _measured(part, noise_std)
    before = _residuals_before(part, space_before, typical)
    return table, before, sizes, spreads, _rounding(part, sizes)


def _measured(solution, noise_std: float) -> tuple[np.recarray, np.ndarray, np.ndarray]:
    """The table without verdicts, and of every column the root mean square of its entries and how far they spread."""
    n = solution.shape[1]
    table = np.recarray(n, dtype=CERTIFICATE_FIELDS)
    table.column = np.arange(n)
    table.n_observed = solution.observations.n_observed
    for field in ("smallest_eigenvalue", "condition", "residual", "uncertainty"):
        table[field] = np.nan
    sizes, spreads = np.zeros(n), np.zeros(n)
    for count in np.unique(table.n_observed):
        alike = np.flatnonzero(table.n_observed == count)
        step = max(1, CACHE_CELLS // max(1, count * max(1, solution.rank)))
        for lo in range(0, alike.size, step):
            _measure(solution, alike[lo : lo + step], int(count), (table, sizes, spreads), noise_std)
    return table, sizes, spreads


def _space_before(solution) -> ColumnSpace | None:
    """The space of the full columns alone, if a refinement moved the rows; else None.

    One that does makes the basis fit the very entries that would tell that a column is off.
    """
    if not solution.moved_rows:
        return None
    known = solution.full_learned_from()
    rank = min(solution.rank, known.shape[0], known.full_columns.size)
    with one_blas_thread():  # Threads of BLAS would change the last digits.
        return with_offset(fit_column_space(known, rank=rank, center=solution.center is not None), _OFFSET)


def _typical_used(solution) -> float:
    """The median number of entries that have a part in filling a partial column."""
    partial = np.flatnonzero(solution.status != Status.FULL)
    counts = [block.used.n_observed[here] for _, here, block in solution.by_blocks(partial)]
    return float(np.median(np.concatenate(counts))) if partial.size else 0.0


def _residuals_before(solution, space: ColumnSpace | None, typical: float) -> np.ndarray:
    """Residuals beside this space, shape (n,); NaN if there is none."""
    if space is None:
        return np.full(solution.shape[1], np.nan)
    first = replace(solution, space=space, moved_rows=False)
    coefficients, status = solve_columns(space, solution.used, penalty=first.penalty, typical=typical)
    found, *_ = _measured(replace(first, coefficients=coefficients, status=status), np.nan)
    return found.residual


def _measure(solution, columns, s, target, noise_std) -> None:
    """Write the numbers of columns that all have s observed rows."""
    table, sizes, spreads = target
    o, m, r = solution.observations, solution.shape[0], solution.rank
    if s == 0:
        return
    at = o.indptr[columns][:, None] + np.arange(s)
    rows, x = o.rows[at], o.values[at].astype(np.float64)
    weights = np.ones(at.shape) if o.weights is None else o.weights[at].astype(np.float64)
    weights[np.isin(columns, o.full_columns)] = 1.0
    share = weights / weights.max(axis=1, keepdims=True)  # Divided by the largest first, because the sum may overflow.
    share /= share.sum(axis=1, keepdims=True)
    if solution.center is not None:
        x = x - solution.center[rows]
    U = solution.basis[rows].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        residual = x - np.einsum("ksr,kr->ks", U, solution.coefficients.T[columns].astype(np.float64))
        unit = np.abs(x).max(axis=1, initial=0)
        unit[unit == 0] = 1.0
        relative = x / unit[:, None]
        sizes[columns] = unit * np.sqrt((share * relative**2).sum(axis=1))
        about = 0.0 if solution.center is not None else (share * relative).sum(axis=1, keepdims=True)
        spreads[columns] = unit * np.sqrt((share * (relative - about) ** 2).sum(axis=1))
        # Full columns are alike from here on.
        U, weights, share = (y[:1] if s == m else y for y in (U, weights, share))
        freedom = np.broadcast_to(s - _spent(U, weights, solution.penalty), columns.shape)
        free = freedom > (0.01 if solution.noise_variance else 0)
        relative = (share * (residual / unit[:, None]) ** 2).sum(axis=1)
        table.residual[columns[free]] = unit[free] * np.sqrt(relative[free] * s / freedom[free])
    if 0 < r <= s:
        table.smallest_eigenvalue[columns], table.condition[columns] = _spectrum(U, share, m)
    table.uncertainty[columns] = _uncertainty(
        solution, U, weights, table.smallest_eigenvalue[columns[: len(U)]], noise_std
    )


def _spent(U, weights, penalty) -> np.ndarray:
    """Degrees of freedom that the coefficients take: tr(G (G + Lambda)^-1) with G = U_O' W U_O; r without a penalty."""
    k, s, r = U.shape
    if not penalty.any():
        return np.full(k, r)
    B = np.sqrt(weights)[:, :, None] * U / np.sqrt(np.maximum(penalty, 1e-300))
    small = np.matmul(B, B.transpose(0, 2, 1)) if s < r else np.matmul(B.transpose(0, 2, 1), B)
    values = np.maximum(np.linalg.eigvalsh(small), 0)
    return (values / (1 + values)).sum(axis=1)


def _uncertainty(solution, U, weights, smallest, noise_std) -> np.ndarray:
    """Root of tr(t (U_O' W U_O + Lambda)^-1) / m, what the entries leave open of a column's part in the space."""
    (k, _, r), m, t = U.shape, solution.shape[0], solution.noise_variance
    if r == 0:
        return np.full(k, 0.0)
    if t:
        root = np.sqrt(solution.space.variances)
        B = np.sqrt(weights)[:, :, None] * U * root
        return np.sqrt(fitted_variances(B, np.diag(root)[None], t, True).sum(axis=1) / m)
    result, able = np.full(k, np.nan), smallest > 1e-12
    if able.any() and np.isfinite(noise_std):
        B = np.sqrt(weights[able])[:, :, None] * U[able]
        spread = np.linalg.inv(np.matmul(B.transpose(0, 2, 1), B))
        result[able] = noise_std * np.sqrt(np.maximum(np.einsum("kqq->k", spread), 0) / m)
    return result


def _spectrum(U, share, m):
    """Smallest eigenvalue of U_O' W U_O m / sum(W), and the condition of sqrt(W) U_O."""
    scaled = np.sqrt(share * m)[:, :, None] * U
    values = np.linalg.eigvalsh(np.matmul(scaled.transpose(0, 2, 1), scaled))
    low, high = values[:, 0].copy(), values[:, -1].copy()
    for k in np.flatnonzero(
        ~(low > 1e-8 * high)
    ):  # Squaring has cost the digits, so the rows themselves are decomposed.
        singular = np.linalg.svd(scaled[k], compute_uv=False)
        low[k], high[k] = singular[-1] ** 2, singular[0] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return low, np.sqrt(high / low)


def _verdicts(solution, table, figures: _Figures, noise: float) -> np.ndarray:
    """Residuals beside the full columns alone count where these leave much of a column."""
    before, sizes, spreads, rounding = figures
    words = np.array([ColumnVerdict.of(status) for status in sorted(Status)], dtype="U20")
    verdict = words[solution.status]
    solved = np.isin(solution.status, (Status.SOLVED, Status.PRIOR))
    residual = table.residual
    with np.errstate(invalid="ignore"):
        unlike = (before > _UNLIKE * sizes) | _are_unusual(before, sizes, solved & (before > rounding), OFF)
        residual = np.where(unlike & (before > residual), before, residual)
        unusual = partial(_are_unusual, residual, sizes, solved & (residual > rounding))
        if np.isfinite(noise):
            unexplained = solved & ((residual > OFF * noise + rounding) | unusual(OFF))
        else:
            unexplained = np.zeros(solved.size, bool)
            verdict[solved & (residual > rounding)] = ColumnVerdict.APPROXIMATE
        poor = solved & (residual > POOR * sizes + rounding)
        if solution.noise_variance:
            spread = np.sqrt(solution.space.entry_variance)
            settled = table.uncertainty <= max(noise, SETTLED * spread)
            verdict[solved] = np.where(settled, ColumnVerdict.RECOVERED, ColumnVerdict.APPROXIMATE)[solved]
            verdict[solved & (table.uncertainty > DOMINATED * spread)] = ColumnVerdict.WEAK
        else:
            verdict[solved & (table.smallest_eigenvalue < WEAK)] = ColumnVerdict.WEAK
    verdict[(solution.status == Status.SOLVED) & np.isnan(residual)] = ColumnVerdict.UNCHECKED
    poor |= (verdict == ColumnVerdict.RECOVERED) & unusual(DOUBTFUL)
    doubted = (verdict == ColumnVerdict.RECOVERED) & (residual > rounding)
    poor |= doubted & (_left_out(solution, doubted) > POOR * np.maximum(spreads, _LITTLE * sizes))
    verdict[poor] = ColumnVerdict.POOR
    verdict[unexplained] = ColumnVerdict.OFF
    return verdict


def _are_unusual(residual, sizes, uneven, times: float) -> np.ndarray:
    """Columns that have far more left than is usual, also beside their size, and more than rounding.

    They may have raised the noise.
    """
    usual = uneven & (sizes > 0)
    if usual.sum() < _MANY:
        return np.zeros(residual.size, bool)
    share = np.divide(residual, sizes, out=np.zeros(residual.size), where=usual)
    return usual & (residual > times * np.median(residual[usual])) & (share > _LARGER_SHARE * np.median(share[usual]))


def _left_out(solution, asked) -> np.ndarray:
    """Root mean square of the errors of entries of each column asked that are left out in turn, shape (n,); else 0."""
    parts, start = [np.zeros(0)], 0
    for part in solution.blocks() if asked.any() and solution.by_columns else ():
        here = asked[start : start + part.shape[1]]
        parts.append(_left_out_here(part, here))
        start += here.size
    return np.concatenate(parts) if start else np.zeros(asked.size)


def _left_out_here(solution, asked) -> np.ndarray:
    result, columns = np.zeros(asked.size), np.flatnonzero(asked)
    if columns.size == 0:
        return result
    o = solution.used.take(columns)
    errors = leave_one_out(solution.space, o, [solution.noise_variance])[0][:, 0]
    column, known = o.entry_columns, np.isfinite(errors)
    unit = float(np.abs(errors[known]).max(initial=0)) or 1.0
    counts = np.bincount(column[known], minlength=columns.size)
    squares = np.bincount(column[known], (errors[known] / unit) ** 2, columns.size)
    result[columns] = optimism_of(solution, columns) * unit * np.sqrt(squares / np.maximum(counts, 1))
    return result


def _more_entries(solution, table, noise: float) -> np.ndarray:
    """The uncertainty falls as one over the root of the number of entries; a fit needs one more than the rank."""
    m, r, s, verdict = solution.shape[0], solution.rank, table.n_observed, table.verdict
    more = np.zeros(s.size, np.int64)
    more[np.isin(verdict, (ColumnVerdict.NO_OBSERVATION, ColumnVerdict.TOO_FEW, ColumnVerdict.PRIOR_ONLY))] = r + 1
    more = np.maximum(more - np.where(more > 0, s, 0), 0)
    more[verdict == ColumnVerdict.UNCHECKED] = 1
    more[verdict == ColumnVerdict.UNDETERMINED] = max(1, r)
    open_ones = np.isin(verdict, (ColumnVerdict.WEAK, ColumnVerdict.APPROXIMATE))
    if solution.noise_variance:
        spread = np.sqrt(solution.space.entry_variance)
        goal = min(max(noise, SETTLED * spread), DOMINATED * spread)
        growth = np.minimum((table.uncertainty[open_ones] / goal) ** 2, m) if goal else m
        more[open_ones] = np.ceil(np.maximum(s[open_ones] * (growth - 1), 1)).astype(np.int64)
    else:
        more[open_ones & (verdict == ColumnVerdict.WEAK)] = np.maximum(s, r)[
            open_ones & (verdict == ColumnVerdict.WEAK)
        ]
    more[np.isin(verdict, (ColumnVerdict.OFF, ColumnVerdict.POOR))] = m
    return np.minimum(more, m - s)


def _rounding(solution, sizes) -> np.ndarray:
    """Residuals up to here may be rounding: of the entries, and of the basis, whose error meets the coefficients."""
    eps = float(np.finfo(solution.basis.dtype).eps)
    values = solution.space.singular_values
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        blur = min(float(values[0] / values[-1]), 1e3) if values.size and np.isfinite(values[0]) else 1.0
        Z = solution.coefficients.astype(np.float64)
        # No square overflows in this unit.
        unit = np.maximum(np.abs(Z).max(axis=0, initial=0), np.finfo(np.float64).tiny)
        lengths = (100 * eps * unit) * np.sqrt(((Z / unit) ** 2).sum(axis=0))
        return 100 * eps * sizes + blur * lengths
