"""Entrywise subsampling: a few entries scaled up, zero elsewhere, and the top of its singular value decomposition."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from .._support.arguments import as_count, as_generator, as_real
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.sources import as_source
from ._answers import completion_of
from ._reading import by_chance, observations_of, read


@one_blas_thread()
def entrywise_subsampling(source, *, rank: int, share: float, random_state=None) -> Completion:
    """Approximate a matrix by the top r singular triples of S, the entries that were drawn divided by their share.

    Every entry is drawn with the same probability p, independently, so that S has the matrix as its mean. No column is
    read in full. The answer is not exact for exact data unless p = 1: its error is that of a random matrix whose
    entries vary by m_ij^2 (1 - p) / p.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    rank : int
        r.
    share : float
        p, of the entries that are read, in (0, 1].
    random_state : None, int or numpy Generator

    Returns
    -------
    Completion
        Observed entries are kept as observed; ``basis @ coefficients`` is the truncated decomposition. A column without
        a drawn entry is left NaN.

    Notes
    -----
    The paper also rounds entries to a random sign, and draws large entries more often; neither is done here. The
    singular triples come from ARPACK on the sparse matrix; if all min(m, n) are wanted, from LAPACK.

    References
    ----------
    D. Achlioptas, F. McSherry: Fast computation of low-rank matrix approximations. Journal of the ACM 54 (2007).
    """
    source = as_source(source)
    m, n = source.shape
    r = as_count("rank", rank, 1, min(m, n), ", the smaller side of the matrix")
    p = as_real("share", share, 0, 1, "(]")
    rng = as_generator(random_state)
    places = by_chance(rng, m * n, p)
    o = observations_of((m, n), places, read(source, places))
    unit = unit_of(o.values)
    S = sparse.csc_array((o.values / unit / p, o.rows, o.indptr), shape=(m, n))
    U, sizes, Vt = _top_triples(S, r, rng)
    choices = {"method": "entrywise subsampling", "rank": f"{sizes.size} directions"}
    return completion_of(o, U, sizes[:, None] * Vt, choices, unit=unit, known=o.n_observed > 0)


def _top_triples(S, r, rng):
    """The top r singular triples of a sparse matrix; none of zero."""
    if not S.data.any():
        return np.zeros((S.shape[0], 0)), np.zeros(0), np.zeros((0, S.shape[1]))
    if r == min(S.shape):
        return np.linalg.svd(S.toarray(), full_matrices=False)
    return svds(S, k=r, v0=rng.standard_normal(min(S.shape)))
