"""SoftImpute: least squares on the observed entries with a penalty on the nuclear norm."""

from __future__ import annotations

import numpy as np

from .._arguments import as_count, as_generator, as_real, is_auto
from .._threads import one_blas_thread
from ..completion import Completion
from ..observations import Observations
from ._fitting import (
    answer_of,
    as_progress,
    chosen_center,
    ending_of,
    hide,
    observed,
    rank_limit,
    row_means,
)
from ._low_rank import Entries, Factors, distance, leading, nothing, shrink, wider
from ._scales import unit_of

_PATH = 0.5 ** np.arange(1, 13)  # penalties that are tried, as shares of the least one that gives X = 0
_PATH_TOL = 3.0  # they are judged by answers this much coarser
_SURE_SWEEPS = 6  # of the singular vectors at the first step and at the last
_RISES = 2  # so many penalties in a row that do worse on hidden entries end the path


def soft_impute(
    data,
    *,
    penalty="auto",
    center="auto",
    max_rank: int | None = None,
    tol: float = 3e-5,
    max_iter: int = 1000,
    random_state=None,
    progress=None,
) -> Completion:
    """Complete a matrix by min 1/2 sum over O of w (M - X)^2 + lambda |X|_*, with the half.

    SoftImpute's step X = shrink_lambda(P_O(M) + P_O_perp(X)), taken from X + momentum (Nesterov, begun anew whenever
    the objective rises) and with the singular triples of a sparse matrix plus one of low rank: nothing of size m x n.

    Parameters
    ----------
    data : Observations, array of shape (m, n), masked array, data frame or scipy sparse matrix
        What is known; from a source, draw it with `observe`, which counts. Weights are used.
    penalty : float or "auto"
        lambda. "auto" hides a tenth of the entries of partial columns, goes down a path of penalties from the least
        one that gives X = 0 by halves, each from the answer of the one before, until the hidden entries are predicted
        worse, and fits all entries with the best.
    center : bool or "auto"
        Take off the means of the observed entries of every row first; "auto" does if they alone predict hidden
        entries clearly better than zero does.
    max_rank : int, optional
        The most directions; unless told, as many as have no more numbers than there are entries, but 100 at
        least. Where it binds, the answer is not the minimum over all matrices, and `choices` says so.
    tol : float
        Stop when a step moves X by at most ``tol |X|_F``.
    max_iter : int
        Of steps for each penalty.
    random_state : None, int or numpy Generator
        For the hidden entries and the start of the singular vectors.
    progress : function, optional
        Called as ``progress(done, total)`` after each penalty, the last of them being the chosen one.

    References
    ----------
    R. Mazumder, T. Hastie, R. Tibshirani: Spectral regularization algorithms for learning large incomplete matrices.
    Journal of Machine Learning Research 11 (2010). Acceleration: B. O'Donoghue, E. Candes: Adaptive restart for
    accelerated gradient schemes (2015).
    """
    o = observed(data)
    unit = unit_of(o.values)
    penalty = penalty if is_auto(penalty) else as_real("penalty", penalty, 0, ends="()") / unit
    tol, max_iter = as_real("tol", tol, 0, 1, "()"), as_count("max_iter", max_iter, 1)
    limit, rng, progress = rank_limit(o, max_rank), as_generator(random_state), as_progress(progress)
    rest, hidden = hide(o, rng)
    means = row_means(o) if chosen_center(center, rest, hidden) else None
    with one_blas_thread():
        search = _Search(o.shape, limit, max_iter, rng)
        how = "asked for"
        if is_auto(penalty):
            penalty = search.along_path(rest, hidden, unit, means is not None, _PATH_TOL * tol, progress)
            how = "by hidden entries"
        X = search.fit(Entries(o, unit, means), penalty, tol)
    progress(_PATH.size + 1, _PATH.size + 1)
    ending = ending_of("soft_impute", search.off <= tol, search.steps, search.off, tol, "steps")
    choices = {
        "method": "SoftImpute",
        "rank": f"{X.rank} directions" + (f", no more than {limit} allowed" if X.rank == limit < min(o.shape) else ""),
        "penalty": f"{float(penalty) * unit:.3g}, {how}",
        "center": "none" if means is None else "row means of the observed entries",
        "iteration": ending,
    }
    return answer_of(o, X, unit, choices, center=means, prior=True)


class _Search:
    """A fit after the other, each from where the last one ended."""

    def __init__(self, shape, limit: int, max_iter: int, rng):
        self.shape, self.limit, self.max_iter, self.rng = shape, limit, max_iter, rng
        self.X = self.V = None
        self.steps, self.off = 0, 0.0

    def along_path(self, rest: Observations, hidden, unit, with_center: bool, tol, progress) -> float:
        """The penalty with the least error on hidden entries; the search is left at its answer."""
        means = row_means(rest) if with_center else None
        e = Entries(rest, unit, means)
        top = leading(e.matrix(e.weights * e.values), 1, self.rng).d[0]
        best, rises, found = np.inf, 0, (top or 1.0, None, None)
        for k, share in enumerate(_PATH if top else ()):
            progress(k, _PATH.size + 1)
            X = self.fit(e, share * top, tol)
            loss = hidden.error(X, unit, means)
            rises = 0 if loss < best else rises + 1
            if loss < best:
                best, found = loss, (share * top, X, self.V)
            if rises == _RISES:
                break
        penalty, self.X, self.V = found
        return penalty

    def fit(self, e: Entries, penalty: float, tol: float) -> Factors:
        """The minimum for this penalty, by accelerated proximal steps of length 1 / max(w)."""
        length = 1 / e.weights.max()
        X = old = nothing(e.shape) if self.X is None else self.X
        at = at_old = e.fitted(X.U * X.d, X.V)
        V = self.V if self.V is not None else self._more(np.zeros((e.shape[1], 0)))
        t, least, sweeps, self.steps = 1.0, np.inf, _SURE_SWEEPS, 0
        while self.steps < self.max_iter:
            self.steps += 1
            t, t_old = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
            b = (t_old - 1) / t
            # Y = X + b (X - old), as A B'
            A, B = np.column_stack([X.U * ((1 + b) * X.d), old.U * (-b * old.d)]), np.column_stack([X.V, old.V])
            at_Y = (1 + b) * at - b * at_old
            E = e.matrix(length * e.weights * (e.values - at_Y))
            old, at_old = X, at
            X, V = shrink(E, A, B, length * penalty, V, self.limit, self.rng, sweeps)
            at = e.fitted(X.U * X.d, X.V)
            objective = np.sum(e.weights * (e.values - at) ** 2) / 2 + penalty * X.d.sum()
            t, least = (t if objective < least else 1.0), objective
            self.off = self._moved(X, A, B, at - at_Y, tol)
            sure, sweeps = sweeps > 1, 1
            if self.off <= tol and sure:
                break
            if self.off <= tol:  # once more with other directions, lest one that should be there was overlooked
                V, sweeps = self._more(V), _SURE_SWEEPS
        self.X, self.V = X, V
        return X

    def _moved(self, X: Factors, A, B, observed, tol) -> float:
        """|X - A B'|_F / |X|_F; only a bound from below, the change of the observed entries, while that is large."""
        if X.rank == 0:
            return 0.0
        seen = float(np.linalg.norm(observed)) / X.norm
        return seen if seen > tol else distance(X, A, B) / X.norm

    def _more(self, V) -> np.ndarray:
        return wider(self.rng, V, min(5, *(side - V.shape[1] for side in self.shape)))
