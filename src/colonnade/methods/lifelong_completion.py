"""Life-long completion: adaptive completion for columns with bounded noise, or for some that are all noise."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from .._support.arguments import as_choice, as_count, as_generator, as_progress, as_real
from .._support.threads import one_blas_thread
from ..completion import Completion
from ..data.sources import as_source
from ._scales import rounding_share
from ._streaming import Pass, pass_over_columns
from .adaptive_completion import completion_of_pass


@one_blas_thread()
def lifelong_completion(
    source, *, n_entries: int, noise="bounded", noise_bound: float = 0.0, random_state=None, progress=None
) -> Completion:
    """Complete a matrix in one pass over its columns, as `adaptive_completion` does, under noise of two kinds.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    n_entries : int
        s, the rows read of every column; more than the rank, and with noise "sparse" more than the rank and the number
        of corrupted columns together.
    noise : {"bounded", "sparse"}
        "bounded": every column may be off by a vector of norm up to `noise_bound`. A column is appended to a basis of
        k vectors if its residual on the s rows is at least sqrt(s k eps / m) / 1.6, for columns of norm 1.
        "sparse": some columns are random noise altogether and the others are exact. All that is not explained is
        appended, and at the end the columns that no other column has used are taken out of the basis.
    noise_bound : float
        eps, as a share of the column's norm; for "bounded" only. With 0 this is `adaptive_completion`.
    random_state : None, int or numpy Generator
    progress : function, optional
        Called as ``progress(stage, done, total)`` with the columns.

    Returns
    -------
    Completion
        Observed entries are kept as observed, also those of columns that were taken out; ``choices["dropped"]`` names
        these. ``basis @ coefficients`` has their projections instead.

    Notes
    -----
    The threshold is the paper's with the constant of the authors' published script. It is stated for columns of norm
    1; here a column's norm is estimated from its s entries, by |x_O| sqrt(m / s), so that the rule becomes
    |residual| >= |x_O| sqrt(k eps) / 1.6 and does not depend on the unit of the data. The script draws rows without
    replacement, and so does this. That basis vectors without use are dropped is written after the paper, whose script
    leaves it out: a column counts as used where its coefficient is more than the square root of the rounding unit
    beside the largest one.

    References
    ----------
    M.-F. Balcan, H. Zhang: Noise-tolerant life-long matrix completion via adaptive sampling. Advances in Neural
    Information Processing Systems 29 (2016).
    """
    source = as_source(source)
    s = as_count("n_entries", n_entries, 1, source.shape[0], ", the rows of the matrix")
    noise = as_choice("noise", noise, ("bounded", "sparse"))
    eps = as_real("noise_bound", noise_bound, 0, 1, "[)")
    if noise == "sparse" and eps > 0:
        raise ValueError(f"noise_bound is for noise='bounded'; with 'sparse' it must be 0; got {noise_bound!r}")
    least = rounding_share(source.dtype)
    done = pass_over_columns(
        source, s, lambda k: max(least, np.sqrt(k * eps) / 1.6), as_generator(random_state), as_progress(progress)
    )
    choices = {"method": f"life-long completion, {noise} noise"}
    if noise == "sparse" and done.appended:
        choices["dropped"] = _drop_unused(done, least)
    return completion_of_pass(done, source.shape, choices)


def _drop_unused(done: Pass, least: float) -> str:
    """Take the appended columns out of the basis that no other column has used; which they are, in words."""
    filled = np.ones(done.coefficients.shape[0], bool)
    filled[done.full] = False
    # U z = C c with C = U T: the same columns in terms of those that were appended
    shares = solve_triangular(done.triangle, done.coefficients[filled].T, check_finite=False)
    used = (np.abs(shares) > least * np.abs(shares).max(axis=0, initial=0)).any(axis=1)
    dropped = [j for j, is_used in zip(done.appended, used, strict=True) if not is_used]
    if not dropped:
        return "none"
    basis, triangle = np.linalg.qr((done.basis @ done.triangle)[:, used])
    coefficients = np.empty((filled.size, basis.shape[1]))
    coefficients[filled] = shares[used].T @ triangle.T
    coefficients[done.full] = done.coefficients[done.full] @ (done.basis.T @ basis)
    done.basis, done.coefficients = basis, coefficients
    done.appended = [j for j, is_used in zip(done.appended, used, strict=True) if is_used]
    return f"columns {', '.join(map(str, dropped))}"
