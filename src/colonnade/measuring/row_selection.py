"""Which rows to measure in every new column, so that noise in them grows least.

With noise of variance t in the entries at rows O, the coefficients of a column have the covariance t (U_O'U_O +
Lambda)^-1, whose trace is also the expected squared error of the whole filled column, for U is orthonormal. Rows that
make it small (A-optimal) are found from pivoted QR, which is never bad, by growing and exchanging.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._support.arguments import as_count, as_orthonormal
from .._support.threads import one_blas_thread
from ..model.column_space import ColumnSpace
from ..model.full_columns.learn import penalty_of

_FLOOR = 1e-10  # Share of k / m as a penalty, so that every inverse exists; too small to decide a choice.
_SHORTLIST = 500  # Rows that an exchange may bring in: those with the largest gain.
_ROUNDS = 3  # Rounds of exchanges, each with its own shortlist.
_MARGIN = 1e-6  # Share by which an exchange must lower the trace.


@one_blas_thread()
def select_rows(column_space, k: int, *, cost=None) -> np.ndarray:
    """The k rows from whose entries a new column is filled with the least noise.

    Parameters
    ----------
    column_space : ColumnSpace, Completion or orthonormal array of shape (m, r)
        The variances of the directions and the noise serve as a prior where they are known: the rows then make the
        expected error of the filled column least. Otherwise they make the growth of noise in plain least squares
        least; with fewer rows than directions, what the rows leave open.
    k : int
        From 1 to m. For plain least squares at least r; twice as many are a good choice.
    cost : positive array of shape (m,), optional
        Of an entry in each row; infinite for a row that cannot be measured. The rows then make the expected squared
        error times their total cost least, which is what a given accuracy costs.

    Returns
    -------
    int64 array of shape (k,)
        Different rows, rising.

    Notes
    -----
    The trace of (U_O'U_O + Lambda)^-1 is made small: rows chosen by pivoted QR are joined by others, one of the largest
    gain at a time in O(m r) operations, and then rows are exchanged one for one while the trace falls. The answer is a
    local minimum, not always the least.

    References
    ----------
    K. Manohar, B. W. Brunton, J. N. Kutz, S. L. Brunton: Data-driven sparse sensor placement for reconstruction. IEEE
    Control Systems Magazine 38 (2018), for the choice by pivoted QR.

    Examples
    --------
    >>> import numpy as np, colonnade as co
    >>> U = np.linalg.qr(np.vander(np.linspace(-1, 1, 9), 3))[0]  # parabolas
    >>> co.select_rows(U, 3).tolist()  # both ends and the middle
    [0, 4, 8]
    """
    space, noise_std = _space_and_noise(column_space)
    m = space.basis.shape[0]
    price = _checked_cost(cost, m)
    able = np.flatnonzero(np.isfinite(price))
    k = as_count("k", k, 1, able.size, ", the rows that can be measured")
    if space.rank == 0:
        return np.sort(able[np.argsort(price[able], kind="stable")[:k]])
    U = np.ascontiguousarray(space.basis[able], dtype=np.float64)
    chosen = _chosen(U, _penalty(space, noise_std, k), price[able], k)
    return np.sort(able[chosen])


@one_blas_thread()
def grow_rows(column_space, chosen, k: int, *, cost=None) -> np.ndarray:
    """`chosen` and more rows, the most useful first, until there are k; in the order of choosing."""
    space, noise_std = _space_and_noise(column_space)
    U = np.ascontiguousarray(space.basis, dtype=np.float64)
    price = _checked_cost(cost, U.shape[0])
    return _grown(U, _penalty(space, noise_std, k), price, np.asarray(chosen, np.int64), k)


def _chosen(U, penalty, price, k) -> np.ndarray:
    if k == U.shape[0]:
        return np.arange(k)
    starts = [_pivots(U, price, min(k, U.shape[1]))]
    if penalty.max() > 2 * penalty.min():  # A prior decides between the first rows.
        starts.append(np.zeros(0, np.int64))
    grown = [_grown(U, penalty, price, start, k) for start in starts]
    best = min(grown, key=lambda rows: _objective(U, penalty, price, rows))
    return _exchanged(U, penalty, price, best)


def _pivots(U, price, k) -> np.ndarray:
    """The first k pivots of a QR factorisation of U' that divides what a row adds by its price."""
    left = np.einsum("ij,ij->i", U, U)
    Q = np.zeros((0, U.shape[1]))
    chosen: list[int] = []
    for _ in range(k):
        worth = left / price
        worth[chosen] = -1.0
        chosen.append(int(np.argmax(worth)))
        q = U[chosen[-1]]
        for _ in range(2):  # One pass leaves rounding errors, two are enough.
            q = q - Q.T @ (Q @ q)
        length = np.linalg.norm(q)
        if length > 0:
            Q = np.vstack([Q, q / length])
            left = np.maximum(left - (U @ Q[-1]) ** 2, 0.0)
    return np.array(chosen, np.int64)


def _grown(U, penalty, price, start, k) -> np.ndarray:
    """Rows added to `start` until there are k, each time the one that lowers the trace most for its price."""
    chosen = start.tolist()
    P = _covariance(U, penalty, chosen)
    spread, squares = _spread(U, P)
    while len(chosen) < k:
        gain = squares / (1 + spread) / price
        gain[chosen] = -1.0
        j = int(np.argmax(gain))
        chosen.append(j)
        # (P^-1 + u u')^-1 = P - c p p' with p = P u; for all rows i: u_i'P u_i and |P u_i|^2 follow
        p = P @ U[j]
        c = 1 / (1 + U[j] @ p)
        h, h2 = (U @ np.column_stack([p, P @ p])).T.copy()
        squares = np.maximum(squares - 2 * c * h * h2 + (c * c * (p @ p)) * h**2, 0.0)
        spread = np.maximum(spread - c * h**2, 0.0)
        P = P - c * np.outer(p, p)
        if len(chosen) % 16 == 0:  # The differences above lose digits.
            P = _covariance(U, penalty, chosen)
            spread, squares = _spread(U, P)
    return np.array(chosen, np.int64)


def _exchanged(U, penalty, price, chosen) -> np.ndarray:
    """Rows of `chosen` exchanged for others, always the best pair, while the trace times the total price falls."""
    chosen = chosen.copy()
    for _ in range(_ROUNDS):
        P = _covariance(U, penalty, chosen)
        spread, squares = _spread(U, P)
        gain = squares / (1 + spread) / price
        gain[chosen] = -1.0
        some = min(_SHORTLIST, U.shape[0] - chosen.size)
        others = np.argpartition(-gain, some - 1)[:some]
        if not _exchange(U, penalty, price, chosen, others):
            break
    return chosen


def _exchange(U, penalty, price, chosen, others) -> bool:
    """Exchange rows between the two arrays in place; whether there was an exchange at all."""
    steps = 0
    while steps < 2 * chosen.size:
        P = _covariance(U, penalty, chosen)
        before = np.trace(P) * price[chosen].sum()
        after = _traces_after(U[others], U[chosen], P)
        after *= price[chosen].sum() - price[chosen][None, :] + price[others][:, None]
        j, i = np.unravel_index(int(np.argmin(after)), after.shape)
        if not after[j, i] < (1 - _MARGIN) * before:
            break
        chosen[i], others[j] = others[j], chosen[i]
        steps += 1
    return steps > 0


def _traces_after(V, S, P) -> np.ndarray:
    """The trace after row i of S is exchanged for row j of V, at [j, i].

    With u = V_j coming and w = S_i going, the trace falls by tr(K^-1 [u w]'PP[u w]), K = [[1 + u'Pu, u'Pw], [u'Pw,
    w'Pw - 1]].
    """
    VP, SP = V @ P, S @ P
    q_in, q_out = np.einsum("ij,ij->i", VP, V)[:, None], np.einsum("ij,ij->i", SP, S)[None, :]
    g_in, g_out = np.einsum("ij,ij->i", VP, VP)[:, None], np.einsum("ij,ij->i", SP, SP)[None, :]
    h, h2 = VP @ S.T, VP @ SP.T
    negative = (1 + q_in) * (1 - q_out) + h**2  # Ratio of the determinants of K, >= 0.
    is_determined = negative > 1e-12  # Otherwise the rows would no longer determine all directions.
    fall = ((1 - q_out) * g_in + 2 * h * h2 - (1 + q_in) * g_out) / np.where(is_determined, negative, 1.0)
    return np.where(is_determined, np.trace(P) - fall, np.inf)


def _covariance(U, penalty, chosen) -> np.ndarray:
    """(U_O'U_O + Lambda)^-1, scaled so that the Cholesky factor exists however the penalties differ."""
    S = U[chosen]
    M = S.T @ S + np.diag(penalty)
    scale = 1 / np.sqrt(np.diag(M))
    factor = linalg.cho_factor(M * np.outer(scale, scale), check_finite=False)
    return linalg.cho_solve(factor, np.eye(scale.size), check_finite=False) * np.outer(scale, scale)


def _spread(U, P):
    """u'P u and |P u|^2 of all rows u."""
    UP = U @ P
    return np.einsum("ij,ij->i", UP, U), np.einsum("ij,ij->i", UP, UP)


def _objective(U, penalty, price, chosen) -> float:
    return float(np.trace(_covariance(U, penalty, chosen)) * price[chosen].sum())


def _penalty(space: ColumnSpace, noise_std: float, k: int) -> np.ndarray:
    """Lambda; where nothing is known of the noise, next to nothing, or with k < r of the size of the k-th variance.

    Variances beyond floating point tell nothing.
    """
    m, r = space.basis.shape
    floor = _FLOOR * k / m
    variances = space.variances
    if not space.has_variances:
        penalty = np.zeros(r)
    elif np.isfinite(noise_std) and noise_std > 0:
        penalty = penalty_of(space, min(noise_std, 1e150) ** 2)
    elif k < r and variances[0] > 0:
        penalty = 1e4 * floor * variances[k - 1] / np.maximum(variances, 1e-12 * variances[0])
    else:
        penalty = np.zeros(r)
    return np.clip(penalty, floor, 1e10)


def _space_and_noise(value) -> tuple[ColumnSpace, float]:
    if isinstance(value, ColumnSpace):
        return value, value.noise_std
    if isinstance(getattr(value, "space", None), ColumnSpace):  # A Completion was given.
        return value.space, value.noise_std
    U = as_orthonormal("column_space", value)
    ones = np.ones(U.shape[1])
    return ColumnSpace(U, ones, None, ones, np.nan), np.nan


def _checked_cost(cost, m) -> np.ndarray:
    if cost is None:
        return np.ones(m)
    price = np.asarray(cost)
    if price.dtype.kind not in "fiu" or price.shape != (m,):
        raise ValueError(f"cost must be {m:,} numbers, one per row; got {price.dtype} of shape {price.shape}")
    price = price.astype(np.float64)
    if not (price > 0).all():  # NaN is refused too.
        i = int(np.argmin(price > 0))
        raise ValueError(
            f"cost must be positive; cost[{i}] is {price[i]}: give a row that is nearly free a small cost, one that"
            " cannot be measured an infinite one"
        )
    return price
