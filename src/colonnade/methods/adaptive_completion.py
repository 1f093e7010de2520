"""Adaptive completion: whatever the columns so far do not explain is read in full."""

from __future__ import annotations

from .._support.arguments import as_count, as_generator, as_progress, as_real
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.sources import as_source
from ._answers import completion_of
from ._scales import rounding_share
from ._streaming import Pass, pass_over_columns


@one_blas_thread()
def adaptive_completion(
    source, *, n_entries: int, tolerance: float | None = None, random_state=None, progress=None
) -> Completion:
    """Complete a matrix in one pass over its columns, reading in full those that the basis so far does not explain.

    Of every column s rows are read. If the projection on the span of the basis, both cut to these rows, leaves less
    than `tolerance` of the column, it is filled by least squares; otherwise the rest of it is read, its part
    orthogonal to the basis is appended, and other rows are drawn. Exactly low-rank data of rank r are recovered with
    r full columns if s is large enough, and the rank need not be known.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    n_entries : int
        s, the rows read of every column; more than the rank.
    tolerance : float, optional
        The share of a column's norm on its rows below which a residual counts as none. Default: the square root of the
        data's rounding unit, for exact data; with noise, about its share of a column.
    random_state : None, int or numpy Generator
    progress : function, optional
        Called as ``progress(stage, done, total)`` with the columns.

    Returns
    -------
    Completion
        Observed entries are kept as observed. With s rows no more than s columns that differ are read in full:
        after that no residual is left, and nothing tells that a column fits.

    Notes
    -----
    The rows are drawn without replacement. The paper compares the residual with zero; a share of the column's own norm
    is what this means in floating-point numbers and does not depend on the unit of the data. Columns come in the order
    of their indices and are filled from the basis of their time.

    References
    ----------
    A. Krishnamurthy, A. Singh: Low-rank matrix and tensor completion via adaptive sampling. Advances in Neural
    Information Processing Systems 26 (2013); On the power of adaptivity in matrix completion and approximation.
    arXiv:1407.3619 (2014).
    """
    source = as_source(source)
    s = as_count("n_entries", n_entries, 1, source.shape[0], ", the rows of the matrix")
    tol = rounding_share(source.dtype) if tolerance is None else as_real("tolerance", tolerance, 0, 1, "()")
    done = pass_over_columns(source, s, lambda k: tol, as_generator(random_state), as_progress(progress))
    return completion_of_pass(done, source.shape, {"method": "adaptive completion"})


def completion_of_pass(done: Pass, shape, choices: dict) -> Completion:
    """The completion of all that a pass has filled and read."""
    choices = {**choices, "rank": f"{len(done.appended)} directions, one for every column that was appended"}
    return completion_of(done.observations(shape), done.basis, done.coefficients.T, choices, unit=done.unit)
