"""SoftImpute: least squares on the observed entries with a penalty on the nuclear norm."""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_count, as_generator, as_progress, as_real, is_auto
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.observations import Observations
from ._alternation import Alternation
from ._fitting import (
    answer_of,
    chosen_center,
    ending_of,
    hide,
    observed,
    rank_limit,
    row_means,
    silent,
)
from ._low_rank import Entries, Factors, SparsePlusLowRank, distance, leading, nothing, shrink, wider

_PATH = 0.5 ** np.arange(1, 13)  # Penalties that are tried, as shares of the least one that gives X = 0.
_PATH_TOL = 10.0  # Times the tolerance: penalties are compared by coarser answers.
_FAINT = 1e-3  # Share of the penalty below which directions are dropped where there are too many.
_SURE_SWEEPS = 6  # Sweeps of the singular vectors at the first step and at the last.
_RISES = 2  # Penalties in a row that do worse on hidden entries and end the path.


@one_blas_thread()
def soft_impute(
    data,
    *,
    penalty="auto",
    center="auto",
    max_rank: int | None = None,
    tol: float = 3e-5,
    max_iter: int = 200,
    random_state=None,
    progress=None,
) -> Completion:
    """Complete a matrix by min 1/2 sum over O of w (M - X)^2 + lambda |X|_*, with the half.

    SoftImpute's step X = shrink_lambda(P_O(M) + P_O_perp(X)), by the singular triples of a sparse matrix plus one of
    low rank, so that nothing of size m x n is formed. Between two of them goes a sweep of alternating least squares
    over rows and columns, which lowers the same objective and needs few repetitions where few entries are known; the
    steps find the rank, and that they move nothing shows the minimum.

    All singular values are lowered alike: a penalty that keeps the noise out lowers the signal too, and a smaller one
    lets many directions in. Where the rank is low and entries are few, expect a larger error than of methods that bound
    the rank instead (`als`, `optspace`, `complete`), with evenly spread entries too.

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
        Maximum rank. Default: as many as have no more numbers than there are entries, or all if there are
        100 at most. Where it binds only the sweeps go on, the answer need not be the minimum over all matrices, and
        `choices` says so.
    tol : float
        Stop when a step moves X by at most ``tol |X|_F``, or, where `max_rank` binds, lowers the objective by at most
        this share.
    max_iter : int
        Of steps for each penalty.
    random_state : None, int or numpy Generator
        For the hidden entries and the start of the singular vectors.
    progress : function, optional
        Called as ``progress(stage, done, total)`` after each penalty, the last of them being the chosen one.

    References
    ----------
    R. Mazumder, T. Hastie, R. Tibshirani: Spectral regularization algorithms for learning large incomplete matrices.
    Journal of Machine Learning Research 11 (2010). T. Hastie, R. Mazumder, J. D. Lee, R. Zadeh: Matrix completion and
    low-rank SVD via fast alternating least squares. The same journal 16 (2015).
    """
    o = observed(data)
    unit = unit_of(o.values)
    penalty = penalty if is_auto(penalty) else as_real("penalty", penalty, 0, ends="()") / unit
    tol, max_iter = as_real("tol", tol, 0, 1, "()"), as_count("max_iter", max_iter, 1)
    limit, rng, progress = rank_limit(o, max_rank), as_generator(random_state), as_progress(progress) or silent
    rest, hidden = hide(o, rng)
    means = row_means(o) if chosen_center(center, rest, hidden) else None
    search = _Search(limit, max_iter, rng)
    how = "asked for"
    if is_auto(penalty):
        penalty = search.along_path(rest, hidden, unit, means is not None, _PATH_TOL * tol, progress)
        how = "by hidden entries"
    X = search.fit(Alternation(o, unit, means), penalty, tol)
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

    def __init__(self, limit: int, max_iter: int, rng):
        self.limit, self.max_iter, self.rng = limit, max_iter, rng
        self.X: Factors | None = None
        self.V: np.ndarray | None = None
        self.steps, self.off = 0, 0.0

    def along_path(self, rest: Observations, hidden, unit, with_center: bool, tol, progress) -> float:
        """The penalty with the least error on hidden entries; the search is left at its answer."""
        means = row_means(rest) if with_center else None
        alternation = Alternation(rest, unit, means)
        e = alternation.entries
        top = leading(e.matrix(e.weights * e.values), 1, self.rng).d[0]
        best, rises, penalty, kept = np.inf, 0, top or 1.0, (self.X, self.V)
        for k, share in enumerate(_PATH if top else ()):
            progress(k, _PATH.size + 1)
            X = self.fit(alternation, share * top, tol)
            error = hidden.error(X, unit, means)
            rises = 0 if error < best else rises + 1
            if error < best:
                best, penalty, kept = error, share * top, (X, self.V)
            if rises == _RISES:
                break
        self.X, self.V = kept
        return penalty

    def fit(self, alternation: Alternation, penalty: float, tol: float) -> Factors:
        """The minimum for this penalty; `steps` and `off`, how far the last one moved X, are kept."""
        shape = alternation.entries.shape
        X = nothing(shape) if self.X is None else self.X
        V = self._more(np.zeros((shape[1], 0)), shape) if self.V is None else self.V
        self.steps, sure = 0, True
        while self.steps < self.max_iter:
            self.steps += 1
            before = _objective(alternation.entries, X, penalty)
            X = alternation.sweep(X, penalty) if X.rank else X
            if X.rank == self.limit < min(shape):
                X = X.top(int((X.d > _FAINT * penalty).sum()))
                self.off, sure = 1 - _objective(alternation.entries, X, penalty) / before, True
            else:
                old = X
                X, V = self._step(alternation.entries, X, penalty, V, _SURE_SWEEPS if sure else 1)
                self.off = _moved(X, old)
            if self.off <= tol and sure:
                break
            sure = self.off <= tol
            if sure:  # Other directions are tried once more, because one may have been overlooked.
                V = self._more(V, shape)
        self.X, self.V = X, V
        return X

    def _step(self, e: Entries, X: Factors, penalty: float, V, sweeps: int) -> tuple[Factors, np.ndarray]:
        """shrink(X + length W P_O(M - X)), of length 1 / max(w)."""
        length, A = 1 / e.weights.max(), X.U * X.d
        E = e.matrix(length * e.weights * (e.values - e.fitted(A, X.V)))
        return shrink(SparsePlusLowRank(E, A, X.V), length * penalty, V, self.limit, self.rng, sweeps)

    def _more(self, V, shape) -> np.ndarray:
        return wider(self.rng, V, min(5, *(side - V.shape[1] for side in shape)))


def _objective(e: Entries, X: Factors, penalty: float) -> float:
    return float(np.sum(e.weights * (e.values - e.fitted(X.U * X.d, X.V)) ** 2) / 2 + penalty * X.d.sum())


def _moved(X: Factors, old: Factors) -> float:
    return distance(X, old.U * old.d, old.V) / X.norm if X.rank else 0.0
