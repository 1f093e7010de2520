"""OptSpace: the top singular vectors of the observed entries, then descent on the two spaces that they span."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._support.arguments import as_choice, as_count, as_generator, as_progress, as_real, is_auto
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.observations import Observations
from ._fitting import (
    BETTER,
    CLOSER,
    answer_of,
    ending_of,
    hide,
    in_halves,
    largest_rank,
    observed,
    ranks_at_drops,
    ranks_to_try,
    silent,
)
from ._low_rank import Entries, Factors, factors_of, leading, times, transposed_times

_TRIAL = 1e-4, 30  # Tolerance and most steps of a trial of a rank.
_CHEAP = 2e6  # Entries times rank up to which a rank is tried from two starts.
_INNER = 1e-2, 50  # Share that is left of the gradient in S after a step, and most products for it.


@one_blas_thread()
def optspace(
    data,
    *,
    rank="auto",
    trim: bool = False,
    tol: float = 1e-6,
    max_iter: int = 500,
    random_state=None,
    progress=None,
) -> Completion:
    """Complete a matrix as X S Y' by min over X, Y of min over S of 1/2 sum over O of (M - X S Y')^2.

    X and Y are points of two Grassmannians. The start is the singular value decomposition of the observed entries,
    zero elsewhere. Steps follow conjugate gradients, in the metric that S S' and S'S define. Each goes as far as the
    objective falls with S fixed: the minimum of a polynomial of degree 4. Then S is solved for. Nothing of size m x n
    is formed. Neither the paper's penalty on coherence nor weights are used.

    Parameters
    ----------
    data : Observations, array of shape (m, n), masked array, data frame or scipy sparse matrix
        What is known; from a source, draw it with `observe`, which counts.
    rank : int or "auto"
        "auto" tries some on a tenth of the entries of partial columns that are hidden for it, each from the answer of
        the one before, which also serves matrices of very unequal singular values better than one start does, and small
        problems from a start of its own too. With a few columns much larger than the others the steps have been seen to
        end in a wrong place, of either and of a given rank.
    trim : bool
        Leave out of the start all columns with more than twice the mean number of entries, and such rows, as the
        paper does. With entries spread evenly there are none; here it throws away the full columns, and with them
        nearly all that is known of the column space, so it is off by default.
    tol : float
        Stop when a step moves X S Y' by at most ``tol |X S Y'|_F``.
    max_iter : int
        The most steps; 0 gives the start with its best S.
    random_state : None, int or numpy Generator
        For the hidden entries and the start of the singular vectors.
    progress : function, optional
        Called as ``progress(stage, done, total)`` after each trial and step; the trials count as half of the work.

    References
    ----------
    R. H. Keshavan, A. Montanari, S. Oh: Matrix completion from a few entries. IEEE Transactions on Information Theory
    56 (2010). There the steps follow the plain gradient.
    """
    o = observed(data)
    unit, trim = unit_of(o.values), as_choice("trim", trim, (True, False))
    rank = rank if is_auto(rank) else as_count("rank", rank, 1, min(o.shape))
    tol, max_iter = as_real("tol", tol, 0, 1, "()"), as_count("max_iter", max_iter, 0)
    rng, (trying, stepping) = as_generator(random_state), in_halves(as_progress(progress) or silent)
    e = Entries(o, unit)
    first, left_out = _trials(o, unit, trim, rng, trying) if is_auto(rank) else _start(e, rank, trim, rng)
    point, steps, moved = _descend(e, _point(e, first), tol, max_iter, stepping)
    X = factors_of(point.X @ point.S, point.Y)
    choices = {
        "method": "OptSpace",
        "rank": f"{X.rank} directions, " + ("by hidden entries" if is_auto(rank) else f"{rank} asked for"),
        "trimming": left_out,
        "iteration": ending_of("optspace", moved <= tol, steps, moved, tol, "steps"),
    }
    return answer_of(o, X, unit, choices, prior=False)


class _Point(NamedTuple):
    """X S Y' with orthonormal X and Y, and what it leaves of the observed entries."""

    X: np.ndarray
    S: np.ndarray
    Y: np.ndarray
    residual: np.ndarray


def _start(e: Entries, rank: int, trim: bool, rng) -> tuple[Factors, str]:
    """The top singular vectors of the entries, trimmed or not, and what was left out, in words."""
    values, said = e.values, "none"
    if trim:
        columns, per_column = np.repeat(np.arange(e.shape[1]), np.diff(e.indptr)), np.diff(e.indptr)
        per_row = np.bincount(e.rows, minlength=e.shape[0])
        many = per_column > 2 * per_column.mean(), per_row > 2 * per_row.mean()
        values = np.where(many[0][columns] | many[1][e.rows], 0.0, values)
        said = f"{many[0].sum():,} columns and {many[1].sum():,} rows left out of the start"
    return leading(e.matrix(values), rank, rng), said


def _point(e: Entries, F: Factors) -> _Point:
    """The spaces of U and V with the best S."""
    S = np.zeros((F.rank, F.rank))
    return _with_best_middle(e, _Point(F.U, S, F.V, e.values), 1e-3)[0]


def _with_best_middle(e: Entries, point: _Point, share: float) -> tuple[_Point, float]:
    """The point with S that minimises the residual, by conjugate gradients, and |change of S|_F."""
    X, S, Y, residual = point
    step, change = np.zeros_like(S), np.zeros_like(S)
    before, first = np.inf, None
    for _ in range(_INNER[1]):
        G = X.T @ times(e.matrix(residual), Y)
        square = np.sum(G * G)
        first = square if first is None else first
        if square <= share**2 * first or square == 0:
            break
        step = G + (square / before) * step
        fitted = e.fitted(X @ step, Y)
        length = square / (fitted @ fitted)
        change, residual, before = change + length * step, residual - length * fitted, square
    return _Point(X, S + change, Y, residual), float(np.linalg.norm(change))


def _descend(e: Entries, point: _Point, tol: float, max_iter: int, progress) -> tuple[_Point, int, float]:
    """The point where the steps end, how many there were, and how far the last one went, of |X S Y'|_F."""
    direction: tuple = ()
    old, moved, done = None, np.inf, 0
    while done < max_iter:
        gradient = _gradient(e, point)
        scaled = _in_metric(gradient, point.S)
        size = _inner(gradient, scaled)
        if not size > 0:
            return point, done, 0.0
        if old is not None:  # Polak and Ribiere
            keep = max(0.0, (size - _inner(old[0], scaled)) / old[1])
            direction = tuple(keep * a - b for a, b in zip(direction, scaled))
        else:
            direction = tuple(-b for b in scaled)
        point, direction, old_gradient, far = _step(e, point, direction, scaled, gradient)
        point, inner = _with_best_middle(e, point, _INNER[0])
        old, done = (old_gradient, size), done + 1
        moved = float(np.hypot(far, inner) / (np.linalg.norm(point.S) or 1.0))
        progress(done, max_iter)
        if moved <= tol:
            break
    progress(max_iter, max_iter)
    return point, done, moved


def _gradient(e: Entries, point: _Point):
    """Gradient of the objective with respect to X and Y, tangent to the Grassmannians."""
    X, S, Y, residual = point
    E = e.matrix(residual)
    return _tangent(X, -times(E, Y) @ S.T), _tangent(Y, -transposed_times(E, X) @ S)


def _tangent(Q, A):
    return A - Q @ (Q.T @ A)


def _inner(a, b) -> float:
    return float(np.sum(a[0] * b[0]) + np.sum(a[1] * b[1]))


def _in_metric(gradient, S):
    """gX (S S')^-1 and gY (S'S)^-1: steps of one length for large and for small singular values."""
    lift = (1e-10 * np.sum(S * S) or 1.0) * np.eye(S.shape[0])
    return np.linalg.solve(S @ S.T + lift, gradient[0].T).T, np.linalg.solve(S.T @ S + lift, gradient[1].T).T


def _step(e: Entries, point: _Point, direction, scaled, gradient):
    """Go along the direction as far as the objective falls with S fixed; direction and gradient are carried along."""
    X, S, Y, residual = point
    for H, K in (direction, tuple(-b for b in scaled)):  # If the direction leads upwards, steepest descent follows.
        # (X + t H) S (Y + t K)' = X S Y' + t A + t^2 B
        A = e.fitted(np.column_stack([H @ S, X @ S]), np.column_stack([Y, K]))
        B = e.fitted(H @ S, K)
        if residual @ A > 0:
            break
    roots = np.roots([2 * B @ B, 3 * A @ B, A @ A - 2 * residual @ B, -(residual @ A)])
    real = roots[np.abs(roots.imag) <= 1e-8 * np.abs(roots)].real
    t = float(real[real > 0].min(initial=np.inf))
    t = t if np.isfinite(t) else 0.0
    far = t * np.hypot(np.linalg.norm(H @ S), np.linalg.norm(S @ K.T))
    (X, R), (Y, T) = _retracted(X + t * H), _retracted(Y + t * K)
    direction = _tangent(X, np.linalg.solve(R.T, H.T).T), _tangent(Y, np.linalg.solve(T.T, K.T).T)
    gradient = _tangent(X, gradient[0]), _tangent(Y, gradient[1])
    return _Point(X, R @ S @ T.T, Y, residual - t * A - t * t * B), direction, gradient, float(far)


def _retracted(A):
    """Q and R with positive diagonal, so that Q is close to A when A is close to orthonormal."""
    Q, R = np.linalg.qr(A)
    signs = np.where(np.diag(R) < 0, -1.0, 1.0)
    return Q * signs, R * signs[:, None]


def _trials(o: Observations, unit: float, trim: bool, rng, progress) -> tuple[Factors, str]:
    """The answer of the rank with the least error on hidden entries, and what was left out of the start, in words.

    Ranks first go upwards. Each begins at the last answer and the top of what that leaves, so that small singular
    values are not lost beside large ones. If it is cheap, each also has a start of its own, so that not all inherit the
    mistakes of the first. Then ranks go downwards, to where the singular values of the best answer fall most.
    """
    rest, hidden = hide(o, rng)
    e, ranks = Entries(rest, unit), ranks_to_try(largest_rank(rest))
    X, left_out = _start(e, 1, trim, rng)
    best, found, worse = np.inf, X, 0
    for done, r in enumerate(ranks):
        progress(done, len(ranks) + 1)
        starts = [_grown(e, X, r, rng)]
        if 1 < r <= _CHEAP / e.values.size:
            starts.append(_start(e, r, trim, rng)[0])
        X, error = min((_trial(e, start, hidden, unit) for start in starts), key=lambda trial: trial[1])
        worse = 0 if error < BETTER * best else worse + 1
        if worse == 0:
            best, found = error, X
        if worse == 2:
            break
    tried = set()
    while fewer := [r for r in ranks_at_drops(found.d) if r not in tried]:
        tried.update(fewer)
        for r in fewer:
            X, error = _trial(e, found.top(r), hidden, unit, CLOSER * _TRIAL[0])
            if error < best:
                best, found = error, X
    return found, left_out


def _trial(e: Entries, X: Factors, hidden, unit, tol=_TRIAL[0]) -> tuple[Factors, float]:
    point = _descend(e, _point(e, X), tol, _TRIAL[1], silent)[0]
    X = factors_of(point.X @ point.S, point.Y)
    return X, hidden.error(X, unit)


def _grown(e: Entries, X: Factors, rank: int, rng) -> Factors:
    """X with the top singular vectors of its residual beside its own, `rank` in all; only the spaces count."""
    if rank == X.rank:
        return X
    residual = e.values - e.fitted(X.U * X.d, X.V)
    more = leading(e.matrix(residual), rank - X.rank, rng)
    U, V = (np.linalg.qr(np.column_stack(pair))[0] for pair in ((X.U, more.U), (X.V, more.V)))
    return Factors(U, np.zeros(rank), V)
