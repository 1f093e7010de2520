"""Alternating least squares: the rows given the columns' factors, the columns given the rows', and over again."""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_count, as_generator, as_progress, as_real, is_auto
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.observations import Observations
from ._alternation import Alternation
from ._fitting import (
    BETTER,
    CLOSER,
    Hidden,
    answer_of,
    chosen_center,
    ending_of,
    hide,
    in_halves,
    largest_rank,
    observed,
    ranks_at_drops,
    ranks_to_try,
    row_means,
    silent,
)
from ._low_rank import Factors, factors_of, leading, nothing, wider

_SHARES = (*0.25 ** np.arange(1, 9), 0.0)  # Penalties that are tried, as shares of the least one that gives X = 0.
_TRIAL = 1e-3, 15  # Tolerance and most sweeps of a trial.
_WARM_UP = 0.25, 0.0625, 0.015625  # Shares of that penalty for the first sweeps from a random start.
_WARM_SWEEPS = 3  # Sweeps with each of them.


@one_blas_thread()
def als(
    data,
    *,
    rank="auto",
    penalty="auto",
    center="auto",
    start: Completion | None = None,
    tol: float = 1e-6,
    max_sweeps: int = 200,
    random_state=None,
    progress=None,
) -> Completion:
    """Complete a matrix as A B' by min 1/2 sum over O of w (M - A B')^2 + lambda/2 (|A|_F^2 + |B|_F^2).

    Rows and columns are solved in turn, each by the kernel of `complete`. After every half sweep A B' = U diag(d) V' is
    decomposed anew; with A = U diag(sqrt(d)) the penalty on B becomes lambda / d_k on the coefficients along U's k-th
    direction, so that U stays orthonormal. With enough directions the minimum is that of SoftImpute for the same
    lambda. The columns are solved last.

    Parameters
    ----------
    data : Observations, array of shape (m, n), masked array, data frame or scipy sparse matrix
        What is known; from a source, draw it with `observe`, which counts. Weights are used.
    rank : int or "auto"
        Maximum rank. "auto" tries some, each with some penalties, on a tenth of the entries of partial columns
        that are hidden for it.
    penalty : float or "auto"
        lambda; 0 is plain least squares. "auto" chooses by hidden entries too.
    center : bool or "auto"
        Take off the means of the observed entries of every row first; "auto" does if they alone predict hidden
        entries clearly better than zero does.
    start : Completion, optional
        Where to start. Default: random columns.
    tol : float
        Stop when a sweep moves A B' by at most ``tol |A B'|_F``.
    max_sweeps : int
    random_state : None, int or numpy Generator
        For the hidden entries and the start.
    progress : function, optional
        Called as ``progress(stage, done, total)`` after each trial and sweep; the trials count as half of the work.

    References
    ----------
    T. Hastie, R. Mazumder, J. D. Lee, R. Zadeh: Matrix completion and low-rank SVD via fast alternating least squares.
    Journal of Machine Learning Research 16 (2015), for the equivalence. Y. Koren, R. Bell, C. Volinsky: Matrix
    factorization techniques for recommender systems. Computer 42 (2009).
    """
    o = observed(data)
    unit = unit_of(o.values)
    rank = rank if is_auto(rank) else as_count("rank", rank, 1, min(o.shape))
    penalty = penalty if is_auto(penalty) else as_real("penalty", penalty, 0) / unit
    tol, max_sweeps = as_real("tol", tol, 0, 1, "()"), as_count("max_sweeps", max_sweeps, 1)
    rng, (trying, sweeping) = as_generator(random_state), in_halves(as_progress(progress) or silent)
    first = None if start is None else _start_of(start, o.shape, unit)
    rest, hidden = hide(o, rng)
    means = row_means(o) if chosen_center(center, rest, hidden) else None
    chosen = _Choice(rest, hidden, unit, means is not None, first, rng)
    chosen.among(rank, penalty, largest_rank(o), trying)
    X, sweeps, off = Alternation(o, unit, means).run(chosen.X, chosen.penalty, tol, max_sweeps, sweeping)
    choices = {
        "method": "ALS",
        "rank": f"{X.rank} directions, " + ("by hidden entries" if is_auto(rank) else f"{rank} asked for"),
        "penalty": f"{float(chosen.penalty) * unit:.3g}, " + ("by hidden entries" if is_auto(penalty) else "asked for"),
        "center": "none" if means is None else "row means of the observed entries",
        "iteration": ending_of("als", off <= tol, sweeps, off, tol, "sweeps"),
    }
    return answer_of(o, X, unit, choices, center=means, prior=chosen.penalty > 0)


def _start_of(start: Completion, shape, unit) -> Factors:
    if not isinstance(start, Completion) or start.shape != shape:
        raise ValueError(f"start must be a Completion of the shape of the data, {shape}; got {start!r}")
    return factors_of(start.basis.astype(np.float64), np.nan_to_num(start.coefficients.T / unit))


class _Choice:
    """Trials on the entries that are not hidden, each from where a near one ended.

    Attributes
    ----------
    X, penalty : Factors, float
        Of the trial with the least error on the hidden entries.
    """

    def __init__(self, rest: Observations, hidden: Hidden, unit, with_center, first, rng):
        self.means = row_means(rest) if with_center else None
        self.alternation, self.hidden, self.unit, self.rng = Alternation(rest, unit, self.means), hidden, unit, rng
        self.X, self.penalty, self.error = first, 0.0, np.inf
        e = self.alternation.entries
        self.top = leading(e.matrix(e.weights * e.values), 1, rng).d[0]
        self.size = np.linalg.norm(e.values) * np.sqrt(np.prod(e.shape) / e.values.size)  # about |M|_F

    def among(self, rank, penalty, limit: int, progress) -> None:
        """Try ranks upwards and penalties downwards, as far as they are "auto", until the error rises."""
        penalties = [share * self.top for share in _SHARES] if is_auto(penalty) else [penalty]
        ranks = ranks_to_try(limit) if is_auto(rank) else [rank]
        if len(ranks) == len(penalties) == 1:
            self.X, self.penalty = self._warmed_up(rank, penalty), penalty
            return
        total, worse = len(ranks) + 1, 0
        for done, r in enumerate(ranks):
            progress(done, total)
            before = self.error
            self._try(self._widened(self.X, r), penalties)
            worse = 0 if self.error < BETTER * before else worse + 1
            penalties = [p for p in penalties if p <= 4 * self.penalty or len(penalties) == 1]
            if worse == 2:
                break
        for r in ranks_at_drops(self.X.d) if is_auto(rank) else ():
            self._try(self.X.top(r), [p for p in penalties if p <= self.penalty], CLOSER * _TRIAL[0])
        progress(total, total)

    def _try(self, X: Factors, penalties, tol=_TRIAL[0]) -> None:
        least = np.inf
        for penalty in penalties:
            X = self.alternation.run(X, penalty, tol, _TRIAL[1], silent)[0]
            error = self.hidden.error(X, self.unit, self.means)
            if error < BETTER * self.error:
                self.X, self.penalty, self.error = X, penalty, error
            if error > least:
                break
            least = error

    def _warmed_up(self, rank: int, penalty: float) -> Factors:
        """A start for fixed settings: the one given, or a random one that was held back by penalties at first.

        Without them plain least squares from a random start now and then runs away to infinity.
        """
        X = self._widened(self.X, rank)
        for share in _WARM_UP if self.X is None else ():
            held = max(penalty, share * self.top)
            X = self.alternation.run(X, held, _TRIAL[0], _WARM_SWEEPS, silent)[0]
        return self._widened(X, rank)

    def _widened(self, X: Factors | None, rank: int) -> Factors:
        """X with random columns beside its own, up to `rank` of them; all random at first."""
        m, n = self.alternation.entries.shape
        U, d, V = nothing((m, n)) if X is None else X.top(rank)
        more = rank - d.size
        if more == 0:
            return Factors(U, d, V)
        V = np.linalg.qr(wider(self.rng, V, more))[0]
        U = np.column_stack([U, np.zeros((m, more))])  # The rows are solved first and need no start.
        return Factors(U, np.append(d, np.full(more, d[-1] if d.size else self.size / np.sqrt(rank))), V)
