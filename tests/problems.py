"""Problems with a known answer, and the error of an answer computed from factors."""

import time

import numpy as np

import colonnade as co


def low_rank(rng, m, n, r):
    """Factors L (m x r) and R (r x n) of a Gaussian matrix of rank r."""
    return rng.standard_normal((m, r)), rng.standard_normal((r, n))


def source_of(L, R):
    """A source that never forms L R."""
    return co.Source(lambda i, j: np.einsum("kr,kr->k", L[i], R.T[j]), shape=(L.shape[0], R.shape[1]))


def hide(rng, M, n_full, s):
    """M with NaN: the first columns whole, s random entries of each other, in random order of the columns."""
    m, n = M.shape
    seen = np.zeros((m, n), bool)
    for j in range(n):
        seen[rng.choice(m, s, replace=False), j] = True
    seen[:, rng.choice(n, n_full, replace=False)] = True
    return np.where(seen, M, np.nan), seen


def relative_error(completion, L, R):
    """|M - M^|_F / |M|_F for M = L R and M^ = U Z, full columns as observed; nothing large is subtracted.

    With P = U U': |L R - U Z|^2 = |U'L R - Z|^2 + |(L - P L) R|^2.
    """
    U, Z = completion.basis.astype(float), completion.coefficients.astype(float)
    partial = completion.observations.partial_columns
    inside = U.T @ L
    error = np.linalg.norm(inside @ R[:, partial] - Z[:, partial]) ** 2
    error += np.linalg.norm(np.linalg.qr(L - U @ inside, mode="r") @ R[:, partial]) ** 2
    return np.sqrt(error) / np.linalg.norm(np.linalg.qr(L, mode="r") @ R)


def processor_time(function, times=1, rounds=5):
    """Seconds of this process for one call, the least of several rounds; a test compares it with a baseline."""
    function()
    best = np.inf
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            function()
        best = min(best, (time.process_time() - start) / times)
    return best


def orthonormality(U):
    """LAPACK's test ratio |I - U'U|_1 / (m eps)."""
    eps = np.finfo(U.dtype).eps
    return np.linalg.norm(np.eye(U.shape[1]) - U.T @ U, 1) / (U.shape[0] * eps)


def space_angle(U, V):
    """Sine of the largest angle between the spaces of two orthonormal bases."""
    return np.linalg.norm(V - U @ (U.T @ V), 2)


# Names that mean something to HTML, a spreadsheet, rich, matplotlib, a terminal and csv.
ODD_NAMES = ["</script><script>", "=cmd()", "[/bold]", "$x_{$", "\x1b[31mred\x1b[0m", "a,b"]

HOSTILE = [  # names that try to be more than names
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "=cmd()",
    "[/bold]",
    "$x_{$",
    "{{ 7 * 7 }}",
    "\x1b[31mred\x1b[0m\u202e",
    "x" * 1_000_000,
]


def noisy(rng, m=60, n=80, r=4, n_full=25, s=14, noise=0.1, names=()):
    """Low rank and noise, as observations: one column not seen, eight seen in three rows; those bear the names."""
    L, R = low_rank(rng, m, n, r)
    M = L @ R + noise * rng.standard_normal((m, n))
    known, _ = hide(rng, M, n_full, s)
    nothing, *few = np.flatnonzero(np.isnan(known).any(axis=0))[:9]
    known[:, nothing] = np.nan
    known[:3, few], known[3:, few] = M[:3, few], np.nan
    labels = [f"c{j}" for j in range(n)]
    for j, name in zip(few, names):
        labels[j] = name
    return M, co.Observations.from_dense(known, column_names=labels)


def read_csv_exactly(path, **options):
    """A csv file as pandas reads it, every number to the last bit; before 3.0 that was not its default."""
    import pandas as pd

    exact = {} if int(pd.__version__.partition(".")[0]) >= 3 else {"float_precision": "round_trip"}
    return pd.read_csv(path, **exact, **options)
