"""Made-up tables with outliers, and with a direction that no full column has."""

import numpy as np

from problems import hide, low_rank


def noisy(rng, m=40, n=60, n_full=16, s=14, scale=1.0):
    L, R = low_rank(rng, m, n, 3)
    known, seen = hide(rng, scale * (L @ R + 0.1 * rng.standard_normal((m, n))), n_full, s)
    return known, seen


def uniform_with_a_code(rng):
    """Nothing to learn in it, so that only a look at both codes tells that they are none of the numbers."""
    M = rng.uniform(-1, 1, (40, 60))
    known, seen = hide(rng, M, 12, 14)
    partial = np.flatnonzero(~seen.all(axis=0))
    code = -5.5 * np.abs(known[seen]).max()
    for j in (partial[3], partial[-4]):  # one in each half of the columns
        known[np.flatnonzero(seen[:, j])[2], j] = code
    return known


def full_with_a_code(rng, m=40):
    """The code stands in full columns too, from which nothing is learned then, and in columns of a single entry."""
    known, seen = noisy(rng, m)
    code = -7 * np.abs(known[seen]).max()
    full, partial = np.flatnonzero(seen.all(axis=0)), np.flatnonzero(~seen.all(axis=0))
    known[5, full[1]] = known[7, full[-1]] = code
    known[:, partial[[0, -1]]] = np.nan
    known[3, partial[0]] = known[9, partial[-1]] = code
    return known


def typos(rng, m=40):
    """Some in partial columns, one in a full column, and a column without an entry."""
    known, seen = noisy(rng, m)
    full, partial = np.flatnonzero(seen.all(axis=0)), np.flatnonzero(~seen.all(axis=0))
    for size, j in ((4e3, partial[2]), (-5e4, partial[20]), (6e3, partial[-2])):
        known[np.flatnonzero(seen[:, j])[1], j] = size
    known[11, full[2]] = 5e3
    known[:, partial[5]] = np.nan
    return known


def unseen_direction(rng):
    """Columns with a direction that no full column has, which sweeps over the rows learn."""
    M = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 90))
    M[:, 80:] += 2 * rng.standard_normal((60, 1))
    known = M + 0.1 * rng.standard_normal(M.shape)
    known[:, 20:][rng.random((60, 70)) > 0.4] = np.nan
    return known
