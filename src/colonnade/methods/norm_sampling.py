"""Norm sampling: columns drawn by their squared norms, the rest projected on the top of what they span."""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_count, as_generator, as_progress
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.sources import as_source
from ..model.column_space import fit_column_space
from ._answers import completion_of
from ._passes import Passes
from ._reading import observations_of_columns
from ._scales import probabilities_of


@one_blas_thread()
def norm_sampling(source, *, rank: int, n_full_columns: int, random_state=None, progress=None) -> Completion:
    """Approximate a matrix by its projection on the top directions of columns drawn by their squared norms.

    d columns are drawn with replacement with p_j = |m_j|^2 / |M|_F^2; U holds the top r left singular vectors of
    A = [m_j / sqrt(d p_j)], and M^ = U U'M. It reads the whole matrix twice, once for the norms and once to project,
    and the drawn columns once more: a yardstick for methods that read little.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    rank : int
        r, at most d.
    n_full_columns : int
        d, the number of draws.
    random_state : None, int or numpy Generator
    progress : function, optional
        Called as ``progress(stage, done, total)`` with the columns read, over both passes.

    Returns
    -------
    Completion
        Only the columns that were drawn count as observed. The others were read too, but are the projection's.

    References
    ----------
    A. Frieze, R. Kannan, S. Vempala: Fast Monte-Carlo algorithms for finding low-rank approximations. Journal of the
    ACM 51 (2004). P. Drineas, R. Kannan, M. W. Mahoney: Fast Monte Carlo algorithms for matrices II: computing a
    low-rank approximation to a matrix. SIAM Journal on Computing 36 (2006).
    """
    source = as_source(source)
    m, n = source.shape
    d = as_count("n_full_columns", n_full_columns, 1)
    r = as_count("rank", rank, 1, min(m, d), ", the smaller of the rows and n_full_columns")
    rng, passes = as_generator(random_state), Passes(source, 2, as_progress(progress))
    p = probabilities_of(passes.residual_norms(np.zeros((m, 0))))
    full, times = np.unique(rng.choice(n, size=d, p=p), return_counts=True)
    o = observations_of_columns((m, n), full, source.columns(full), np.sqrt(times / (d * p[full])))
    U = fit_column_space(o, rank=r).basis.astype(np.float64)
    choices = {"method": "norm sampling", "rank": f"{U.shape[1]} directions"}
    return completion_of(o, U, passes.projection(U), choices, unit=passes.unit)
