"""The refinement: what the partial columns add to what was learned from the full ones.

A sweep takes the coefficients z of all columns as they stand and learns the rest anew.

    The prior: mean and covariance of the z, with the uncertainty of each z added to its scatter; this is a step of the
    EM algorithm for columns drawn from a Gaussian within the span of the full columns.
    The rows, where that is affordable: the one equation turned round, with the z as the basis. Row i of U moves by d,
        (Z_O Z_O' + t m I) d = Z_O (x_i - c_i - u_i' Z)_O,
    t the noise variance, at least the mean square of what is left of all entries, and 1 / m the mean square of an entry
    of U, so that rows seen seldom stay where they were.

The number of sweeps is fixed: judging it by hidden entries gained nothing (docs/ablation.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..._support.arguments import is_auto
from ..._support.threads import in_threads, one_blas_thread
from ...data.observations import Observations
from ..column_space import ColumnSpace
from ..directions import fix_signs
from ..leaving_out import columns_alike, least_noise
from ..solve import Status, solve_columns
from .column_outliers import column_outliers
from .learn import FullColumnModel, learn, penalty_of, with_mean
from .optimism import is_likely, leverages_of
from .outlier_screening import Screening

_SWEEPS = 3  # Sweeps; 1 costs 3 % of the error in the mean over ten tables, 4 save 0.6 % (docs/ablation.md).
_MOST_ROUNDS = 3  # Rounds of learning without outliers of partial columns: each may hide further ones.
_GATHERED = 5, 0.2  # Outliers of a row, and share of its entries in partial columns, beyond which they are no typos.
_PRIOR_COLUMNS = 1_000, 10  # Partial columns from which the prior alone is learned, at least, and for each direction.
_UNSURE_COLUMNS = 100  # Columns over which the uncertainty of the coefficients is averaged.
_CHEAP = 3e8  # Multiplications of a sweep over rows that takes well under a second.
_FAIR = 2.0  # Times the cost of solving the columns, which a sweep over rows may cost beyond that.
_MOST_OPTIMISM = 2.0  # Optimism; beyond it an entry moves its own row more than all others do, so rows stay.
_PIECES = 8  # Pieces of the rows for threads.
_SMALL, _LARGE = 1e-70, 1e70  # Numbers between which products of two variances are floating-point numbers.


@one_blas_thread()
def learn_and_refine(
    observations: Observations, screening: Screening, *, rank, center, shrinkage, refine, random_state
) -> tuple[FullColumnModel, float]:
    """What `learn` and then `refined` make of the observations, both without outliers.

    Parameters
    ----------
    observations : Observations
    screening : Screening
        Of the whole, with the columns numbered as those of the observations.
    rank, center, shrinkage, refine
        As of `complete`.
    random_state : None or numpy Generator
    """
    settings = {"rank": rank, "center": center, "shrinkage": shrinkage, "random_state": random_state}
    unlearned, likely = screening.unlearned(observations), observations
    cleaned = observations.without(unlearned)
    from_full = learn(observations, cleaned=cleaned, **settings)
    for _ in range(_MOST_ROUNDS):  # An outlier may hide another.
        before = likely.values.size
        found = _single(observations, column_outliers(from_full.space, observations, from_full.penalty, screening.code))
        likely = observations.without(found)
        if likely.values.size == before:
            break
        more = np.setdiff1d(unlearned, found)
        cleaned = observations.without(np.union1d(found, more)) if more.size else likely
        from_full = learn(likely, cleaned=cleaned, **settings)
    from_full, optimism = refined(cleaned if from_full.noise_variance else likely, from_full, refine)
    return with_mean(from_full, cleaned), optimism


def _single(o: Observations, places) -> np.ndarray:
    """Leave out places that gather in rows: typos do not, but a direction that only the partial columns have does."""
    if places.size == 0:
        return places
    m, d = o.shape[0], o.full_columns.size
    found, seen = np.bincount(o.rows[places], minlength=m), np.bincount(o.rows, minlength=m) - d
    gathered = (found >= _GATHERED[0]) & (found > _GATHERED[1] * seen)
    return places[~gathered[o.rows[places]]]


def refined(observations: Observations, from_full: FullColumnModel, n_sweeps) -> tuple[FullColumnModel, float]:
    """The model after some sweeps.

    Parameters
    ----------
    observations : Observations
    from_full : FullColumnModel
        Learned from the full columns.
    n_sweeps : int or "auto"
        Number of sweeps over rows and columns. "auto" makes `_SWEEPS`, without the rows where these cost too much or
        follow single entries, and none without a prior.

    Returns
    -------
    from_full : FullColumnModel
    optimism : float
        Factor by which errors of entries left out are larger than they seem, because the rows have seen them; >= 1.
    """
    if n_sweeps == 0:
        return from_full, 1.0
    if is_auto(n_sweeps) and not from_full.noise_variance:
        return _unrefined(from_full, "none, because plain least squares needs none")
    if not _squares_fit(observations):
        return _unrefined(from_full, "none, because squares of such numbers overflow; rescale the data")
    if from_full.space.rank == 0 or not observations.n_observed[observations.partial_columns].any():
        return _unrefined(from_full, "none, because the columns with gaps have no values to learn from")
    by_rows = not is_auto(n_sweeps) or (
        _rows_are_affordable(observations, from_full)
        and _optimism(from_full.space, from_full.noise_variance, observations, by_rows=True)[1] < _MOST_OPTIMISM
    )
    known = observations if by_rows else _some_columns(observations, from_full)
    count = _SWEEPS if is_auto(n_sweeps) else n_sweeps
    *_, space = _sweeps(from_full.space, from_full.noise_variance, known, by_rows, count)
    what = "over rows and columns" if by_rows else "over the columns with gaps"
    choices = {**from_full.choices, "refine": f"{count} sweep{'' if count == 1 else 's'} {what}"}
    if "fit" in choices:
        choices["fit"] = f"before the sweeps, {choices['fit']}"
    pull, optimism = _optimism(space, from_full.noise_variance, known, by_rows)
    return replace(from_full, space=replace(space, pull=pull), choices=choices, moved_rows=by_rows), optimism


def _optimism(space: ColumnSpace, noise: float, o: Observations, by_rows: bool) -> tuple[np.ndarray, float]:
    """`ColumnSpace.pull`, and 1 / ((1 - h) (1 - g)) of the mean leverages of the partial columns.

    The prior sees the sum of all zz'. Row i sees Z_O Z_O' + t m I, here with every column in the share of the rows that
    it is seen in.
    """
    known, partial = _coefficients(space, noise, o), o.partial_columns
    Z, seen, ridge = known.Z, o.n_observed / o.shape[0], noise * o.shape[0] * np.eye(space.rank)
    sums = [known.covariance * Z.shape[1], (Z * seen) @ Z.T + ridge]
    pull = np.stack([np.linalg.pinv(G, hermitian=True) for G in sums[: 1 + by_rows]])
    leverages = leverages_of(pull, Z[:, partial], seen[partial])
    return pull, float(1 / np.clip(np.prod([1 - h.mean() for h in leverages]), 0.1, 1.0))


def _squares_fit(o: Observations) -> bool:
    """Whether variances of the entries, and products of two of them, are floating-point numbers and not zero."""
    return _SMALL < max(float(o.values.max(initial=0)), -float(o.values.min(initial=0))) < _LARGE


def _unrefined(from_full: FullColumnModel, words: str) -> tuple[FullColumnModel, float]:
    return replace(from_full, choices={**from_full.choices, "refine": words}), 1.0


def _sweeps(space: ColumnSpace, noise: float, o: Observations, by_rows: bool, n_sweeps: int):
    """The space after each sweep."""
    across = _unweighted_where_full(o).transposed() if by_rows else None
    for _ in range(n_sweeps):
        space = _relearned(space, noise, _coefficients(space, noise, o), across)
        yield space


@dataclass(frozen=True)
class _Coefficients:
    """Coefficients of all columns.

    Attributes
    ----------
    Z : array of shape (r, n)
        Less their mean; 0 for columns from which nothing is learned.
    center : array of shape (m,) or None
        The center that the mean belongs to, if there is one.
    covariance : array of shape (r, r)
        Covariance of the coefficients, with their uncertainty.
    n_full : int
        The number of full columns.
    """

    Z: np.ndarray
    center: np.ndarray | None
    covariance: np.ndarray
    n_full: int


def _coefficients(space: ColumnSpace, noise: float, o: Observations) -> _Coefficients:
    Z, status = solve_columns(space, o, penalty=penalty_of(space, noise))
    is_used = np.isin(status, (Status.FULL, Status.SOLVED, Status.PRIOR)) & is_likely(Z, space.variances)
    Z = np.where(is_used, Z, 0.0).astype(np.float64)
    k, center = max(1, int(is_used.sum())), None
    if space.center is not None:
        mean = Z.sum(axis=1) / k
        center = space.center.astype(np.float64) + space.basis.astype(np.float64) @ mean
        Z -= np.where(is_used, mean[:, None], 0.0)
    covariance = Z @ Z.T / k
    if noise:
        covariance += _mean_uncertainty(space, noise, o, is_used)
    return _Coefficients(Z, center, covariance, o.full_columns.size)


def _relearned(space: ColumnSpace, noise: float, known: _Coefficients, across: Observations | None) -> ColumnSpace:
    """The space after a sweep over the columns, and over the rows if `across` has the observations by rows."""
    U, dtype = space.basis.astype(np.float64), space.basis.dtype
    squares, V = (x[..., ::-1] for x in np.linalg.eigh(known.covariance))
    P, S = U @ V, np.sqrt(np.maximum(squares, 0))
    if across is not None and space.rank:
        moves = _row_moves(U, known.center, noise, known.Z, across, dtype)
        P, S, _ = np.linalg.svd((P + moves @ V) * S, full_matrices=False)  # P is no longer orthonormal.
    kept = 1e-12 * S.max(initial=0) < S
    return replace(
        space,
        basis=np.ascontiguousarray(fix_signs(P[:, kept]).astype(dtype)),
        singular_values=S[kept] * np.sqrt(max(1, known.n_full)),
        center=None if known.center is None else known.center.astype(dtype),
        variances=S[kept] ** 2,
    )


def _mean_uncertainty(space: ColumnSpace, noise: float, o: Observations, is_used) -> np.ndarray:
    """Posterior covariance of the coefficients, averaged over the columns; of many partial columns over some."""
    v, r = space.variances, space.rank
    partial = o.partial_columns[is_used[o.partial_columns]]
    d, k = o.full_columns.size, partial.size
    total = d * np.diag(v * noise / (v + noise))
    if k:
        asked = o.take(_evenly(partial, _UNSURE_COLUMNS))
        root = np.sqrt(v)
        total += k * root[:, None] * (np.eye(r) - _explained(space, noise, asked) / asked.shape[1]) * root
    return total / (d + k)


def _explained(space: ColumnSpace, noise: float, o: Observations) -> np.ndarray:
    """The sum over columns of B' (B B' + t I)^-1 B with B = sqrt(W) U_O sqrt(v), shape (r, r)."""
    F = space.basis.astype(np.float64) * np.sqrt(space.variances)
    roots = None if o.weights is None else np.sqrt(o.weights.astype(np.float64))

    def part(at):
        B = F[o.rows[at]]
        return _explained_by(B if roots is None else B * roots[at][:, :, None], noise)

    return sum(in_threads(part, columns_alike(o, space.rank)), np.zeros((space.rank, space.rank)))


def _explained_by(B, noise) -> np.ndarray:
    k, s, r = B.shape
    if s < r:
        K = np.matmul(B, B.transpose(0, 2, 1))
        K += np.maximum(noise, least_noise(B))[:, None, None] * np.eye(s)
        L = np.linalg.cholesky(K)
        G = np.linalg.solve(L, B).reshape(-1, r)
        return G.T @ G
    try:
        left = np.linalg.inv(np.matmul(B.transpose(0, 2, 1), B) / noise + np.eye(r))
    except np.linalg.LinAlgError:  # The noise is lost beside such squares; QR does without them.
        stacked = np.concatenate([B, np.broadcast_to(np.sqrt(noise) * np.eye(r), (k, r, r))], axis=1)
        root = np.sqrt(noise) * np.linalg.inv(np.linalg.qr(stacked, mode="r"))
        left = np.matmul(root, root.transpose(0, 2, 1))
    return k * np.eye(r) - left.sum(axis=0)


def _row_moves(U, center, noise: float, Z, across: Observations, dtype) -> np.ndarray:
    """delta of every row, shape (m, r); zero for rows whose entries do not determine it."""
    m = U.shape[0]
    D, V = np.linalg.eigh(Z @ Z.T)
    kept = 1e-12 * D[-1] < D
    D, V = D[kept], V[:, kept]
    Q = np.ascontiguousarray(((V.T @ Z).T / np.sqrt(D)).astype(dtype))
    residual = _residuals(U, center, Z, across, dtype)
    idle = ~Z.any(axis=0)
    if idle.any():
        residual[idle[across.rows]] = 0.0  # Nothing is learned from these columns.
    # Full columns may be farther off than the noise that was chosen for the partial ones; rows must not follow that.
    noise = max(noise, float(np.mean(np.square(residual, dtype=np.float64)))) if noise else noise
    rows = across.with_arrays(values=residual)
    turned = ColumnSpace(Q, np.sqrt(D), None, D / m, np.nan)
    with np.errstate(over="ignore"):
        penalty = np.minimum(noise * m / D, np.finfo(np.float64).max)
    W, status = solve_columns(turned, rows, penalty=penalty)
    moved = np.isin(status, [s for s in Status if s.is_filled]) & np.isfinite(W).all(axis=0)
    return (np.where(moved, W, 0.0).T / np.sqrt(D)) @ V.T


def _residuals(U, center, Z, across: Observations, dtype) -> np.ndarray:
    """x_ij - c_i - u_i' z_j of every entry, in the order of the transposed observations."""
    from ..kernels import column_kernels

    result, factors = np.empty(across.values.size, dtype), np.ascontiguousarray(Z.T)
    center = np.zeros(U.shape[0]) if center is None else center

    def work(piece):
        column_kernels.residuals(factors, U, center, across.indptr, across.rows, across.values, *piece, result)

    in_threads(work, pairwise(np.linspace(0, across.shape[1], _PIECES + 1).astype(int).tolist()))
    return result


def _unweighted_where_full(o: Observations) -> Observations:
    if o.weights is None:
        return o
    weights = o.weights.copy()
    for j in o.full_columns:
        weights[o.indptr[j] : o.indptr[j + 1]] = 1.0
    return replace(o, weights=weights)


def _rows_are_affordable(o: Observations, from_full: FullColumnModel) -> bool:
    r = from_full.space.rank
    s = o.n_observed[o.partial_columns].astype(np.float64)
    return o.values.size * r**2 <= max(_CHEAP, _FAIR * float((s * np.minimum(s, r) * r).sum()))


def _some_columns(o: Observations, from_full: FullColumnModel) -> Observations:
    """The full columns and, of many partial ones, enough to learn the prior from."""
    most = max(_PRIOR_COLUMNS[0], _PRIOR_COLUMNS[1] * from_full.space.rank)
    partial = _evenly(o.partial_columns, most)
    if partial.size == o.partial_columns.size:
        return o
    columns = np.sort(np.concatenate([o.full_columns, partial]))
    return replace(o.take(columns), full_columns=np.searchsorted(columns, o.full_columns), full_scales=o.full_scales)


def _evenly(columns, most: int) -> np.ndarray:
    """At most so many of the columns, evenly chosen."""
    return columns if columns.size <= most else columns[np.linspace(0, columns.size - 1, most).astype(int)]
