"""Means, noise and certificates of a table that the factor model has filled, from its posterior."""

from __future__ import annotations

import numpy as np

from ..data.observations import Observations
from ..model.learned import Learned
from ..model.leverage import leave_out_entries
from ..model.packed import unpacked
from .column_verdict import ColumnVerdict
from .parts import Parts

_SETTLED, _OPEN = 0.1, 0.5  # Shares of the prior variance still open: below, the entries decide; above, the prior does.
_POOR = 0.5  # Residual in units of the column's spread from which the model explains too little.
_LITTLE_EXPLAINED = 0.87  # Error of left-out entries in the same units: less than 1/4 of the variance is explained.

CERTIFICATE_FIELDS = [
    ("column", np.int64),
    ("n_observed", np.int64),
    ("smallest_eigenvalue", np.float64),
    ("condition", np.float64),
    ("residual", np.float64),
    ("uncertainty", np.float64),
    ("more_entries", np.int64),
    ("verdict", "U20"),
]


def mean_deviations(learned: Learned, o: Observations, parts: Parts, columns) -> np.ndarray:
    """Standard deviation of the mean of these columns over all rows, shape (k,): only unseen entries are unsure."""
    m, variance = o.shape[0], np.zeros(columns.size)
    with np.errstate(over="ignore", invalid="ignore"):
        for k, j in enumerate(columns):
            missing = np.ones(m, bool)
            missing[o.rows[o.indptr[j] : o.indptr[j + 1]]] = False
            variance[k] = _variance_of_sum(learned, np.flatnonzero(missing), j, parts)
        return np.sqrt(np.maximum(variance, 0.0)) / m


def _variance_of_sum(learned: Learned, rows, column: int, parts: Parts) -> float:
    """Var[sum of the entries of one column at these rows]; rows and columns as the user has them."""
    f, r = learned.model, learned.model.rank
    columns = np.full(rows.size, column)
    single = learned.deviations(rows, columns, with_noise=False) ** 2
    noise = f.own_noise[learned.at(rows, columns)[0]] * f.unit[learned.at(rows, columns)[0]] ** 2
    if learned.is_turned:  # One row of the model, several of its columns: they share T_i.
        T = unpacked(f.row_covariance[column], r + 1)
        z = f.Z[rows]
        shared = z.sum(axis=0) @ T @ z.sum(axis=0) - np.einsum("ka,ab,kb->", z, T, z)
        return float(parts.fit * (single.sum() + f.unit[column] ** 2 * shared) + parts.noise * noise.sum())
    S = unpacked(f.column_covariance[column], r)  # One column of the model, several of its rows: they share S_j.
    u = f.unit[rows, None] * f.U[rows, :r]
    shared = u.sum(axis=0) @ S @ u.sum(axis=0) - np.einsum("ka,ab,kb->", u, S, u)
    return float(parts.fit * (single.sum() + shared) + parts.noise * noise.sum())


def noise_std(learned: Learned) -> float:
    """Root mean square of the noise of an entry, over the rows of the model, in the units of the data."""
    deviations = np.sqrt(learned.model.own_noise) * learned.model.unit
    size = float(deviations.max())  # Squares of the deviations themselves may overflow.
    return 0.0 if learned.is_exact or size == 0 else size * float(np.sqrt(np.mean((deviations / size) ** 2)))


def certify_columns(
    learned: Learned, o: Observations, verdicts_of_unfilled, kind: str, usual: int | None = None
) -> np.recarray:
    """A row for every column, with the fields of `certificates.certify`.

    Parameters
    ----------
    verdicts_of_unfilled : dict
        Column to verdict, of columns that are full or not filled.
    kind : str
        How leverages of the two sides are put together: see `table_calibration`.
    usual : int, optional
        The number of entries with which other columns were filled. Default: the median of these columns.
    """
    if usual is None:
        usual = int(np.median(o.n_observed[o.n_observed > 0]))
    with np.errstate(over="ignore", invalid="ignore"):
        return _certify_columns(learned, o, verdicts_of_unfilled, kind, usual)


def _certify_columns(learned: Learned, o: Observations, verdicts_of_unfilled, kind: str, usual: int) -> np.recarray:
    m, n = o.shape
    table = np.zeros(n, dtype=CERTIFICATE_FIELDS)
    table["column"], table["n_observed"] = np.arange(n), o.n_observed
    table["smallest_eigenvalue"] = table["condition"] = np.nan
    columns = o.entry_columns
    errors = o.values.astype(np.float64) - learned.predict(o.rows.astype(np.int64), columns)
    counts = np.maximum(o.n_observed, 1)
    table["residual"] = np.sqrt(np.bincount(columns, errors**2, n) / counts)
    table["residual"][o.n_observed == 0] = np.nan
    means = np.bincount(columns, o.values.astype(np.float64), n) / counts
    spread = np.sqrt(np.bincount(columns, (o.values - means[columns]) ** 2, n) / counts)
    rows = np.unique(np.linspace(0, m - 1, min(m, 200)).astype(np.int64))
    missed, prior = _left_out_errors(learned, o, kind), _prior_variance(learned, rows)
    for j in range(n):
        at = np.full(rows.size, j)
        posterior = learned.deviations(rows, at, with_noise=False)
        table["uncertainty"][j] = np.sqrt(np.mean(posterior**2))
        unit = learned.model.unit[learned.at(rows, at)[0]]
        share = float(np.mean((posterior / np.where(unit > 0, unit, np.inf)) ** 2)) / prior
        poor = table["residual"][j] > _POOR * spread[j] or missed[j] > _LITTLE_EXPLAINED * spread[j]
        poor = poor and o.n_observed[j] > 1 and spread[j] > 0
        table["verdict"][j] = _verdict(share, poor, learned.is_exact)
        missing = m - o.n_observed[j]
        if table["verdict"][j] == ColumnVerdict.POOR:
            table["more_entries"][j] = missing
        elif share > _SETTLED:
            # The open share falls about as 1 / (1 + entries).
            table["more_entries"][j] = int(np.ceil(min((1 + o.n_observed[j]) * (share / _SETTLED - 1), missing)))
    for j, verdict in verdicts_of_unfilled.items():
        table["verdict"][j] = verdict
        table["more_entries"][j] = 0 if o.n_observed[j] == m else max(1, min(usual, m) - o.n_observed[j])
        if o.n_observed[j] == m:
            table["residual"][j] = table["uncertainty"][j] = 0.0
    return table.view(np.recarray)


def _left_out_errors(learned: Learned, o: Observations, kind: str) -> np.ndarray:
    """Root mean square error of the entries of every column, each left out in turn; shape (n,).

    Residuals alone would be small in a column that is unlike all others, where the fit follows every entry.
    """
    n = o.shape[1]
    _, columns, found = leave_out_entries(learned, o.with_relative_weights(), n)
    rest = found.rest(kind)
    counts = np.bincount(columns, rest, n)
    return np.sqrt(np.bincount(columns, found.residuals**2 / rest, n) / np.where(counts > 0, counts, 1.0))


def _verdict(share: float, poor: bool, is_exact: bool) -> str:
    if poor and not is_exact:
        return ColumnVerdict.POOR
    if share <= _SETTLED:
        return ColumnVerdict.RECOVERED
    return ColumnVerdict.WEAK if share > _OPEN else ColumnVerdict.APPROXIMATE


def _prior_variance(learned: Learned, rows) -> float:
    """Variance of the fit before any entry of a column was seen, in squared units of the model's rows, on average.

    Infinite where the model has no loadings, as of a constant table: there no further entry tells more.
    """
    f, r = learned.model, learned.model.rank
    loadings = f.U[:, :r] if learned.is_turned else f.U[rows, :r]
    return float(np.mean(np.sum(loadings**2, axis=1))) or np.inf
