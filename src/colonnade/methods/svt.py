"""Singular value thresholding: the matrix of least nuclear norm that has the observed entries."""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_count, as_generator, as_progress, as_real
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ._fitting import answer_of, ending_of, observed, rank_limit, silent
from ._low_rank import Entries, Factors, SparsePlusLowRank, leading, nothing, shrink

_STEP = 1.2  # Step size over one divided by the share of a column that is known.
_GROWN = 2.0  # Ratio of a residual to the best so far from which the steps are too long.
_PATIENCE = 60  # Steps without a better residual: they are too long as well, unless short enough to converge.


@one_blas_thread()
def svt(
    data,
    *,
    tau: float | None = None,
    delta: float | None = None,
    noise_std: float = 0.0,
    max_rank: int | None = None,
    tol: float = 1e-5,
    max_iter: int = 500,
    random_state=None,
    progress=None,
) -> Completion:
    """Complete a matrix by singular value thresholding: Y += delta P_O(M - X), X = shrink_tau(Y).

    It solves min tau |X|_* + |X|_F^2 / 2 subject to X = M on the observed entries, and is meant for exact data: entries
    are met, noise and all; stopped before that by `noise_std`, X is still too small. Weights are not used. Y is zero
    outside O, so nothing of size m x n is formed. Where some columns are full and the others sparse it needs ten times
    the steps that it needs where as many entries are spread evenly, and more. The matrix of least nuclear norm need not
    be the true one: a 1000 x 1000 matrix of rank 10 had 30 full columns and 40 entries in each other one, and a matrix
    10 % off had a smaller norm.

    Parameters
    ----------
    data : Observations, array of shape (m, n), masked array, data frame or scipy sparse matrix
        What is known; from a source, draw it with `observe`, which counts.
    tau : float, optional
        Amount by which singular values are lowered. Default: 5 times the estimated largest one of M, which is the 5 n
        of the paper for its n x n matrices.
    delta : float, optional
        The length of the steps. Default: 1.2 m/|O_j| in column j: for evenly spread entries the 1.2 mn/|O| of the
        paper, and in a full column 1.2, where the paper's would diverge. Convergence is proven below 2 only, so the
        steps are halved, and the best Y taken up again, whenever the residual has doubled or falls no more.
    noise_std : float
        Of the entries; the iteration also stops when the residuals are no larger than this in root mean square.
    max_rank : int, optional
        Maximum rank. Default: as many as have no more numbers than there are entries, or all if
        there are 100 at most.
    tol : float
        Stop when ``|P_O(M - X)|_F <= tol |P_O(M)|_F``.
    max_iter : int
    random_state : None, int or numpy Generator
        For the start of the singular vectors.
    progress : function, optional
        Called as ``progress(stage, done, total)`` now and then.

    References
    ----------
    J.-F. Cai, E. J. Candes, Z. Shen: A singular value thresholding algorithm for matrix completion. SIAM Journal on
    Optimization 20 (2010).
    """
    o = observed(data)
    unit = unit_of(o.values)
    tau = None if tau is None else as_real("tau", tau, 0, ends="()") / unit
    delta = None if delta is None else as_real("delta", delta, 0, ends="()")
    noise, tol = as_real("noise_std", noise_std, 0) / unit, as_real("tol", tol, 0, 1, "()")
    max_iter, limit = as_count("max_iter", max_iter, 1), rank_limit(o, max_rank)
    rng, progress = as_generator(random_state), as_progress(progress) or silent
    e = Entries(o, unit)
    enough = max(tol, noise * np.sqrt(e.values.size) / (np.linalg.norm(e.values) or 1))
    X, steps, off, tau = _iterate(e, tau, delta, limit, enough, max_iter, rng, progress)
    ending = ending_of("svt", off <= enough, steps, off, enough, "steps")
    choices = {"method": "SVT", "rank": f"{X.rank} directions", "tau": f"{float(tau) * unit:.3g}", "iteration": ending}
    return answer_of(o, X, unit, choices, prior=True)


def _iterate(e: Entries, tau, delta, limit, tol, max_iter, rng, progress) -> tuple[Factors, int, float, float]:
    """X, the steps taken, |P_O(M - X)| / |P_O(M)| and tau."""
    size = np.linalg.norm(e.values)
    if size == 0:
        return nothing(e.shape), 0, 0.0, tau or 1.0
    per_column = np.diff(e.indptr)
    by_share = np.repeat(e.shape[0] / np.maximum(per_column, 1), per_column)
    tau = tau or 5 * leading(e.matrix(by_share * e.values), 1, rng).d[0]
    delta = _STEP * by_share if delta is None else np.full(e.values.size, delta)
    # The first steps up to k0 = tau / |delta P_O(M)|_2 leave X = 0, and are taken at once.
    Y = np.ceil(tau / leading(e.matrix(delta * e.values), 1, rng).d[0]) * delta * e.values
    none, V = nothing(e.shape), rng.standard_normal((e.shape[1], min(*e.shape, 5)))
    best, best_Y, best_step = np.inf, Y, 0
    for step in range(1, max_iter + 1):
        progress(step - 1, max_iter)
        M = SparsePlusLowRank(e.matrix(Y), none.U, none.V)
        X, V = shrink(M, tau, V, limit, rng, sweeps=2, all_at_once=True)
        residual = e.values - e.fitted(X.U * X.d, X.V)
        off = float(np.linalg.norm(residual) / size)
        if off <= tol:
            break
        stalled = step - best_step > _PATIENCE and delta.max() >= 2
        if off > _GROWN * best or stalled:
            delta, Y, best, best_step = delta / 2, best_Y, np.inf, step
            continue
        if off < best:
            best, best_Y, best_step = off, Y, step
        Y = Y + delta * residual
    progress(max_iter, max_iter)
    return X, step, off, tau
