"""A factor model as the two thin factors of a filled table."""

from __future__ import annotations

import numpy as np

from ..data.observations import Observations
from .column_space import ColumnSpace
from .directions import fix_signs
from .learned import Learned
from .solve import Status

_NEGLIGIBLE = 1e-14  # Share of the largest singular value; smaller directions are rounding.


def thin_factors(learned: Learned, o: Observations) -> tuple[ColumnSpace, np.ndarray, np.ndarray]:
    """Column space, coefficients of shape (r, n) and status of every column.

    center + basis @ coefficients is the prediction, with an orthonormal basis. A side of the model without any entry
    has neither unit nor level and stays NaN; the other side gets the typical answer.
    """
    f, r, dtype = learned.model, learned.model.rank, o.values.dtype
    level = f.shift + f.unit * f.U[:, r]
    loadings = f.unit[:, None] * f.U[:, :r]
    if learned.is_turned:
        left = np.column_stack([f.Z[:, :r], np.ones(f.Z.shape[0])])
        right, center = np.vstack([loadings.T, level]), None
        status = np.where(o.n_observed > 0, Status.SOLVED, Status.NO_OBSERVATION).astype(np.int8)
    else:
        seen = np.bincount(o.rows, minlength=o.shape[0]) > 0
        left, right, center = loadings, f.Z[:, :r].T, np.where(seen, level, np.nan)
        status = np.where(o.n_observed > 0, Status.SOLVED, Status.PRIOR_ONLY).astype(np.int8)
    # Products of numbers near the end of floating point leave its range; a power of 2 loses no digit.
    side = right if learned.is_turned else left
    largest = float(np.abs(side[np.isfinite(side)]).max(initial=0.0))
    scale = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    side /= scale
    basis, coefficients, sizes = _orthonormal(left, right)
    # What is constant at 0, or at its level, stays so to the last digit.
    basis[(left == 0).all(axis=1)], coefficients[:, (right == 0).all(axis=0)] = 0.0, 0.0
    with np.errstate(over="ignore"):
        coefficients, sizes = coefficients * scale, sizes * scale
    coefficients[:, status == Status.NO_OBSERVATION] = np.nan
    status[o.full_columns] = Status.FULL
    with np.errstate(over="ignore"):
        variances = sizes**2 / o.shape[1]
        center = None if center is None else center.astype(dtype)
        coefficients = np.ascontiguousarray(coefficients.T.astype(dtype)).T  # A column's coefficients lie together.
    space = ColumnSpace(np.ascontiguousarray(basis.astype(dtype)), sizes, center, variances, np.nan)
    return space, coefficients, status


def _orthonormal(left, right) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Basis, coefficients and singular values of ``left @ right``."""
    Q, R = np.linalg.qr(left)
    P, S = np.linalg.qr(right.T)
    turn, sizes, back = np.linalg.svd(R @ S.T)
    kept = sizes > _NEGLIGIBLE * sizes.max(initial=0.0)
    k = int(kept.sum())
    basis = Q @ turn[:, :k]
    signed = fix_signs(basis)
    signs = np.where((signed * basis).sum(axis=0) < 0, -1.0, 1.0)
    return signed, (signs[:, None] * sizes[:k, None]) * (back[:k] @ P.T), sizes[:k]
