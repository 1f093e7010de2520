"""Probabilities with which columns are worth reading in full, from a few entries of each."""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_choice, as_count, as_generator, as_real
from .._support.numbers import unit_of
from .._support.threads import one_blas_thread
from ..data.sources import Source, as_source
from ._reading import distinct, places_of_rows, read, rows_of_every_column
from ._scales import probabilities_of


@one_blas_thread()
def column_probabilities(
    source, *, by="norm", n_entries: int, rank: int | None = None, uniform_share: float = 0.1, random_state=None
) -> np.ndarray:
    """Estimate how much each column matters, as the `probabilities` of `algorithm1` or `observe`.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    by : {"norm", "leverage"}
        "norm": p_j in proportion to the estimated squared norm, from s different rows of each column.
        "leverage": p_j in proportion to the squared length of the j-th row of V, the top r right singular vectors of
        s rows that are read in all columns.
    n_entries : int
        s.
    rank : int, optional
        r, at most s; needed for "leverage", and for it only.
    uniform_share : float
        So much of every probability is uniform: a column whose few entries happen to be zero still has a chance, and
        is not scaled up without bound if it is drawn. `algorithm1` refuses a probability of zero.
    random_state : None, int or numpy Generator

    Returns
    -------
    float64 array of shape (n,)
        Positive unless `uniform_share` is 0, of sum 1.

    References
    ----------
    Y. Wang, A. Singh: Column subset selection with missing data via active sampling. International Conference on
    Artificial Intelligence and Statistics (2015); Provably correct algorithms for matrix column subset selection with
    selectively sampled data. Journal of Machine Learning Research 18 (2018).
    """
    source = as_source(source)
    m, n = source.shape
    s = as_count("n_entries", n_entries, 1, m, ", the rows of the matrix")
    by = as_choice("by", by, ("norm", "leverage"))
    if by == "leverage":
        rank = as_count("rank", rank, 1, min(s, n), ", the smaller of n_entries and the columns")
    elif rank is not None:
        raise ValueError(f"rank is for by='leverage'; leave it out; got {rank!r}")
    uniform = as_real("uniform_share", uniform_share, 0, 1)
    rng = as_generator(random_state)
    p = probe_norms(source, s, rng)[2] if rank is None else probe_leverage(source, s, rank, rng)[2]
    p = (1 - uniform) * p + uniform / n
    return p / p.sum()


def probe_norms(source: Source, s: int, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places and values of s rows of every column, and p_j in proportion to their mean squares."""
    m, n = source.shape
    places = rows_of_every_column(rng, m, n, s)
    values = read(source, places)
    x = (values / np.float64(unit_of(values))).reshape(n, s)
    return places, values, probabilities_of(np.sqrt(np.einsum("js,js->j", x, x)))


def probe_leverage(source: Source, s: int, rank: int, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places and values of s rows in every column, and p_j in proportion to the leverage of column j in them."""
    m, n = source.shape
    places = places_of_rows(m, n, distinct(rng, m, s))
    values = read(source, places)
    V, sizes, _ = np.linalg.svd((values / np.float64(unit_of(values))).reshape(n, s), full_matrices=False)
    there = sizes > sizes[0] * max(n, s) * np.finfo(source.dtype).eps
    return places, values, probabilities_of(np.linalg.norm(V[:, :rank] * there[:rank], axis=1))
