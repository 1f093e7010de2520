"""Compile what most tests run, for numbers of the given type, so that the machine code lies on disk."""

import sys

import numpy as np

import colonnade as co


def main(dtype):
    rng = np.random.default_rng(0)
    M = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 30))
    M[:, 10:][rng.random((40, 20)) < 0.3] = np.nan
    space = co.fit_column_space(M[:, :10].astype(dtype), rank=3)
    observations = co.Observations.from_dense(M.astype(dtype))
    co.solve_columns(space, observations)
    co.complete(M.astype(dtype), method="full columns")
    if dtype == "float64":  # The factor model computes in this type.
        M += 0.1 * rng.standard_normal(M.shape)
        M[rng.random(M.shape) < 0.1] = np.nan
        found = co.complete(M)
        found.interval([0], [0])


if __name__ == "__main__":
    main(sys.argv[1])
