"""Adaptive column sampling: columns drawn in rounds, each by what the rounds before have left unexplained."""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_count, as_generator, as_progress
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.sources import Source, as_source
from ..model.column_space import fit_column_space
from ._answers import completion_of
from ._passes import Passes
from ._reading import observations_of_columns
from ._scales import probabilities_of, rounding_share


@one_blas_thread()
def adaptive_column_sampling(
    source, *, rank: int, n_full_columns: int, n_rounds: int = 4, random_state=None, progress=None
) -> Completion:
    """Approximate a matrix within the span of columns drawn in rounds by their residual norms.

    In every round d / t columns are drawn with replacement with p_j in proportion to |m_j - Q Q'm_j|^2, Q a basis of
    the columns so far; one round is norm sampling. The answer is the best of rank r within the span, Q (Q'M)_r. It
    reads the whole matrix t + 1 times, and the drawn columns once more: a yardstick for methods that read little.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    rank : int
        r, at most d.
    n_full_columns : int
        d, the number of draws over all rounds.
    n_rounds : int
        t, at most d.
    random_state : None, int or numpy Generator
    progress : function, optional
        Called as ``progress(stage, done, total)`` with the columns read, over all passes.

    Returns
    -------
    Completion
        Only the columns that were drawn count as observed. The others were read too, but are the projection's. If
        rounds are left when all columns are explained to rounding, they are not made.

    References
    ----------
    A. Deshpande, L. Rademacher, S. Vempala, G. Wang: Matrix approximation and projective clustering via volume
    sampling. Theory of Computing 2 (2006).
    """
    source = as_source(source)
    m, n = source.shape
    d = as_count("n_full_columns", n_full_columns, 1)
    r = as_count("rank", rank, 1, min(m, d), ", the smaller of the rows and n_full_columns")
    t = as_count("n_rounds", n_rounds, 1, d, ", the number of full columns")
    rng, passes = as_generator(random_state), Passes(source, t + 1, as_progress(progress))
    full, C = _columns_by_rounds(source, d, t, rng, passes)
    Q = fit_column_space(C).basis.astype(np.float64)
    B = passes.projection(Q)
    W = np.linalg.svd(np.asarray(np.linalg.qr(B.T, mode="r")).T)[0][:, :r]
    choices = {"method": "adaptive column sampling", "rank": f"{W.shape[1]} directions"}
    return completion_of(observations_of_columns((m, n), full, C), Q @ W, W.T @ B, choices, unit=passes.unit)


def _columns_by_rounds(source: Source, d, t, rng, passes: Passes) -> tuple[np.ndarray, np.ndarray]:
    """Which columns are drawn in t rounds, in order, and the columns themselves."""
    m, n = source.shape
    full, C, Q = np.zeros(0, np.int64), np.zeros((m, 0), source.dtype), np.zeros((m, 0))
    for draws in np.diff(np.linspace(0, d, t + 1).astype(int)):
        sizes = passes.residual_norms(Q)
        if full.size == 0:
            least = rounding_share(source.dtype) * sizes
        sizes[sizes < least] = 0.0
        if full.size and not sizes.any():
            break
        new = np.setdiff1d(rng.choice(n, size=draws, p=probabilities_of(sizes)), full)
        full, C = np.append(full, new), np.hstack([C, source.columns(new)])
        Q = fit_column_space(C).basis.astype(np.float64)
    order = np.argsort(full)
    return full[order], C[:, order]
