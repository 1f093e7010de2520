"""Certificates: how well the observed rows determine each column, and whether the column fits the space."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from .solve import Status

_BLOCK_CELLS = 4_000_000
WEAK = 0.01  # below this smallest eigenvalue noise may grow more than tenfold
OFF = 5.0  # a residual this many times the noise is not noise
POOR = 0.5  # a residual of this share of the entries themselves explains little

_VERDICTS = {
    Status.FULL: "observed in full",
    Status.SOLVED: "recovered",
    Status.PRIOR: "prior decides",
    Status.PRIOR_ONLY: "prior alone",
    Status.NO_OBSERVATION: "no observation",
    Status.TOO_FEW: "too few entries",
    Status.UNDETERMINED: "not determined",
    Status.OVERFLOW: "overflow",
}


def certify(completion) -> np.recarray:
    """A row for every column of a completion.

    Returns
    -------
    record array of shape (n,) with the fields
        column : its index
        n_observed : number of distinct rows observed
        smallest_eigenvalue : of U_O' W U_O, times m / sum(W); a sample of rows that represents the whole has 1, and
            Lemma 2 of the paper promises at least 1/2 for enough rows
        condition : largest over smallest singular value of sqrt(W) U_O
        residual : sqrt(sum of squared residuals / degrees of freedom) at the observed rows; NaN with none to spare
        verdict : "recovered", to rounding or to the noise that the full columns show; "approximate" where there is a
            residual and the full columns cannot tell their noise; "weakly determined" where noise may grow more than
            tenfold; "unchecked" where no entry is left to test the fit; "poor fit" where the residual is half of the
            entries or more; "off the column space" where it is far above the noise of the full columns; or what the
            status says
    """
    n = completion.shape[1]
    kinds = [
        ("column", np.int64),
        ("n_observed", np.int64),
        ("smallest_eigenvalue", np.float64),
        ("condition", np.float64),
        ("residual", np.float64),
        ("verdict", "U20"),
    ]
    table = np.recarray(n, dtype=kinds)
    table.column = np.arange(n)
    table.n_observed = completion.observations.n_observed
    for field in ("smallest_eigenvalue", "condition", "residual"):
        table[field] = np.nan
    sizes = np.zeros(n)  # root mean square of the observed entries, against which rounding is judged
    with threadpool_limits(1, user_api="blas"):  # many small matrices: threads would only wait for each other
        for count in np.unique(table.n_observed):
            alike = np.flatnonzero(table.n_observed == count)
            step = max(1, _BLOCK_CELLS // max(1, count * max(1, completion.rank)))
            for lo in range(0, alike.size, step):
                _measure(completion, alike[lo : lo + step], int(count), table, sizes)
    table.verdict = _verdicts(completion, table, sizes)
    return table


def _measure(completion, columns, s, table, sizes) -> None:
    """The numbers of columns that all have s observed rows."""
    o, m, r = completion.observations, completion.shape[0], completion.rank
    if s == 0:
        return
    at = o.indptr[columns][:, None] + np.arange(s)
    rows, x = o.rows[at], o.values[at].astype(np.float64)
    weights = np.ones(at.shape) if o.weights is None else o.weights[at].astype(np.float64)
    weights[np.isin(columns, o.full_columns)] = 1.0
    share = weights / weights.max(axis=1, keepdims=True)  # first by the largest: the sum may overflow
    share /= share.sum(axis=1, keepdims=True)
    if completion.center is not None:
        x = x - completion.center[rows]
    U = completion.basis[rows].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        residual = x - np.einsum("ksr,kr->ks", U, completion.coefficients.T[columns].astype(np.float64))
        unit = np.abs(x).max(axis=1, initial=0)
        unit[unit == 0] = 1.0
        sizes[columns] = unit * np.sqrt((share * (x / unit[:, None]) ** 2).sum(axis=1))
        freedom = s - _spent(U, weights, completion.penalty)
        free = freedom > (0.01 if completion.noise_variance else 0)
        relative = (share * (residual / unit[:, None]) ** 2).sum(axis=1)
        table.residual[columns[free]] = unit[free] * np.sqrt(relative[free] * s / freedom[free])
    if 0 < r <= s:
        table.smallest_eigenvalue[columns], table.condition[columns] = _spectrum(U, share, m)


def _spent(U, weights, penalty) -> np.ndarray:
    """Degrees of freedom that the coefficients take: tr(G (G + Lambda)^-1) with G = U_O' W U_O; r without a penalty."""
    k, s, r = U.shape
    if not penalty.any():
        return np.full(k, r)
    B = np.sqrt(weights)[:, :, None] * U / np.sqrt(np.maximum(penalty, 1e-300))
    small = np.matmul(B, B.transpose(0, 2, 1)) if s < r else np.matmul(B.transpose(0, 2, 1), B)
    values = np.maximum(np.linalg.eigvalsh(small), 0)
    return (values / (1 + values)).sum(axis=1)


def _spectrum(U, share, m):
    """Smallest eigenvalue of U_O' W U_O m / sum(W), and the condition of sqrt(W) U_O."""
    scaled = np.sqrt(share * m)[:, :, None] * U
    values = np.linalg.eigvalsh(np.matmul(scaled.transpose(0, 2, 1), scaled))
    low, high = values[:, 0].copy(), values[:, -1].copy()
    for k in np.flatnonzero(
        ~(low > 1e-8 * high)
    ):  # squaring has cost the digits: singular values of the rows themselves
        singular = np.linalg.svd(scaled[k], compute_uv=False)
        low[k], high[k] = singular[-1] ** 2, singular[0] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return low, np.sqrt(high / low)


def _verdicts(completion, table, sizes) -> np.ndarray:
    words = np.array([_VERDICTS[Status(code)] for code in range(len(Status))], dtype="U20")
    verdict = words[completion.status]
    solved = np.isin(completion.status, (Status.SOLVED, Status.PRIOR))
    rounding, noise = _rounding(completion, sizes), completion.noise_std
    residual = table.residual
    with np.errstate(invalid="ignore"):
        if np.isfinite(noise):
            unexplained = solved & (residual > OFF * noise + rounding)
        else:
            unexplained = np.zeros(solved.size, bool)
            verdict[solved & (residual > rounding)] = "approximate"
        poor = solved & (residual > POOR * sizes + rounding)
        verdict[solved & (table.smallest_eigenvalue < WEAK)] = "weakly determined"
    verdict[(completion.status == Status.SOLVED) & np.isnan(residual)] = "unchecked"
    verdict[poor] = "poor fit"
    verdict[unexplained] = "off the column space"
    return verdict


def _rounding(completion, sizes) -> np.ndarray:
    """Residuals up to here may be rounding: of the entries, and of the basis, whose error meets the coefficients."""
    eps = float(np.finfo(completion.basis.dtype).eps)
    values = completion.space.singular_values
    with np.errstate(over="ignore"):
        blur = min(float(values[0] / values[-1]), 1e3) if values.size and np.isfinite(values[0]) else 1.0
        lengths = np.sqrt((completion.coefficients.astype(np.float64) ** 2).sum(axis=0))
        return 100 * eps * (sizes + blur * lengths)
