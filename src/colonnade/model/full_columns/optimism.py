"""Optimism: an entry left out is predicted too well, because its column has pulled the space towards itself.

Leaving an entry out gives its column without it. What prior and rows have learned from the column stays in the space.
With the leverages g of the column in the prior and h in the moves of the rows, the error is larger by

    1 / ((1 - g) (1 - h)).

A column like the others has small leverages. One unlike all others nearly decides the directions that explain it.
"""

from __future__ import annotations

import numpy as np

_UNLIKELY = 100.0  # Mean square of a column in deviations of the prior beyond which nothing is learned from it.
_LEAST_REST = 0.05  # Least (1 - g) (1 - h); below it, what remains of an error is rounding and chance.
_LEAST_SHARE = 0.1  # Least share of a row's sum without the column, for the same reason.


def leverages_of(pull, Z, shares) -> list[np.ndarray]:
    """g and, if rows have moved, h of columns with coefficients Z (r, k) that are seen in these shares of the rows.

    `pull` is that of the `ColumnSpace`. An entry stands in a row that its own column is seen in, so that the sum of the
    row has that column in full and not in its share.
    """
    g, *of_rows = (np.einsum("rk,rk->k", Z, G @ Z) for G in pull)
    without = [q / np.maximum(1 - shares * q, _LEAST_SHARE) for q in of_rows]
    return [g, *(q / (1 + q) for q in without)]


def is_likely(Z, variances) -> np.ndarray:
    """Columns that the prior does not exclude: for one like the full ones z^2 over the variance is about 1."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.mean(Z**2 / variances[:, None], axis=0) <= _UNLIKELY


def optimism_of(completion, columns) -> np.ndarray:
    """The factor of errors of entries left out of some partial columns, shape (k,); >= 1."""
    space = completion.space
    if space.pull is None:
        return np.full(columns.size, completion.optimism)
    Z = np.nan_to_num(completion.coefficients[:, columns].astype(np.float64))
    Z = np.where(is_likely(Z, space.variances), Z, 0.0)  # Nothing was learned from the others.
    shares = completion.used.n_observed[columns] / completion.shape[0]
    rest = np.prod([1 - h for h in leverages_of(space.pull, Z, shares)], axis=0)
    return 1 / np.clip(rest, _LEAST_REST, 1.0)
