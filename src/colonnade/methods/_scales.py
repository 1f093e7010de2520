"""What is rounding, and probabilities from sizes."""

from __future__ import annotations

import numpy as np


def rounding_share(dtype) -> float:
    """Half of the digits: the share of a column below which a residual counts as rounding.

    A direction with a smaller share of its column looks like rounding errors of the others. One with a larger share is
    known so well that its own errors stay below this.
    """
    return float(np.sqrt(np.finfo(dtype).eps))


def probabilities_of(sizes) -> np.ndarray:
    """Probabilities in proportion to the squares of the sizes, shape (n,); uniform if all are zero."""
    largest = sizes.max()
    if largest == 0:
        return np.full(sizes.size, 1 / sizes.size)
    squares = (sizes / largest) ** 2
    return squares / squares.sum()
