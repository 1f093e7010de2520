"""Made-up answers to questions, for tests of evaluations."""

import numpy as np


def answers(rng, m=120, n=40, shift=0.0, n_shifted=0):
    """Right and wrong answers that one ability and two skills explain in part; `shift` favours the last models."""
    skills = rng.standard_normal((3, n))
    if n_shifted:
        skills[0, -n_shifted:] += shift
    needed = np.abs(rng.standard_normal((m, 3))) * [1, 0.5, 0.5]
    return (rng.random((m, n)) < 1 / (1 + np.exp(rng.normal(0, 1.5, (m, 1)) - needed @ skills))).astype(float)


def with_gaps(M, new, rows):
    """M, with only `rows` left of the columns `new`."""
    K = M.copy()
    K[:, new] = np.nan
    K[np.ix_(rows, new)] = M[np.ix_(rows, new)]
    return K
