"""The coherences of a matrix and the sample sizes that the theorems ask for.

The definitions, theorems and constants are those of Wan, Yi, Zhang (2018), Matrix Completion from
Non-Uniformly Sampled Entries. Where the paper leaves a doubt, the docstring says so. Throughout, M is m x n,
of rank r; d columns are measured in full and s entries of each other column, both drawn with replacement.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from .._support.arguments import (
    as_array,
    as_count,
    as_delta,
    as_orthonormal,
    as_probabilities,
    as_real,
    as_sizes,
    eps_of,
)
from .._support.numbers import CACHE_CELLS
from .._support.threads import one_blas_thread

__all__ = [
    "SampleSize",
    "basis_coherence",
    "coherence",
    "column_coherence",
    "corollary1",
    "expected_distinct",
    "lemma2",
    "theorem1",
    "theorem2",
    "vector_coherence",
]

Factors = tuple[ArrayLike, ArrayLike]


# ----------------------------------------------------------------------------------------------- coherences


@one_blas_thread()
def coherence(M: ArrayLike | Factors, rank: int | None = None) -> float:
    """The coherence mu(r) of a matrix: the larger of those of its top-r left and right singular vectors.

    Parameters
    ----------
    M : array of shape (m, n), or tuple of factors (L, R) of shapes (m, k) and (k, n)
        Complete and finite. Of factors the product is never formed.
    rank : int, optional
        r, at most the numerical rank, which is the default: the number of singular values above
        ``sigma_1 * max(m, n) * eps``. If sigma_r = sigma_(r+1), the top-r vectors and mu(r) are not unique.

    Returns
    -------
    float
        Between 1 (every row and column matters alike) and max(m, n) / r (one alone carries a direction).
    """
    U, sigma, Vt = _svd(M)
    numerical_rank = int(np.sum(sigma > sigma[0] * max(U.shape[0], Vt.shape[1]) * _eps(M)))
    rank = numerical_rank if rank is None else rank
    r = as_count("rank", rank, 1, numerical_rank, ", the numerical rank")
    # mu(r) = max( m/r max_i |U_(i)|^2, n/r max_j |V_(j)|^2 ), and |U|_F^2 = |V|_F^2 = r
    return max(_peak_to_mean(_column_norms(U[:, :r].T)), _peak_to_mean(_column_norms(Vt[:r])))


@one_blas_thread()
def basis_coherence(U: ArrayLike) -> float:
    """The coherence mu-hat of an orthonormal basis: m/r times its largest squared row norm.

    Parameters
    ----------
    U : array of shape (m, r)
        Orthonormal columns.

    Returns
    -------
    float
        Between 1 and m / r.
    """
    return _peak_to_mean(_column_norms(as_orthonormal("U", U).T))


@one_blas_thread()
def column_coherence(M: ArrayLike | Factors) -> float:
    """The coherence mu(M) = n max_j |m_j|^2 / |M|_F^2 of the lengths of the columns.

    Parameters
    ----------
    M : array of shape (m, n), or tuple of factors (L, R) of shapes (m, k) and (k, n)
        Complete, finite, not zero. Of factors the product is never formed.

    Returns
    -------
    float
        Between 1 (all columns equally long) and n (a single column that is not zero).
    """
    if isinstance(M, tuple):
        L, R = _factors(M)
        product = np.asarray(np.linalg.qr(L, mode="r")) @ R  # L = Q T: |L R e_j| = |T R e_j|
        return _peak_to_mean(_column_norms(_scaled("M", product, n_dims=2)))
    return _peak_to_mean(_column_norms(_scaled("M", M, n_dims=2)))


def vector_coherence(x: ArrayLike) -> float:
    """The coherence mu(x) = m max_i x_i^2 / |x|^2 of a vector.

    Parameters
    ----------
    x : array of shape (m,)
        Finite, not zero.

    Returns
    -------
    float
        Between 1 (a flat vector) and m (a single entry that is not zero).
    """
    return _peak_to_mean(_scaled("x", x, n_dims=1))


# --------------------------------------------------------------------------------------------- sample sizes


@dataclass(frozen=True, repr=False)
class SampleSize:
    """How many columns to draw in full, and how many entries of each other column.

    Attributes
    ----------
    n_full_columns, n_entries : int
        d and s. They count draws with replacement and may exceed n and m.
    shape : (m, n)
    expected_columns, expected_entries : float
        The expected numbers of distinct columns, and of distinct entries in another column.
    source : str
        Where the numbers come from.
    confidence : float or None
        The probability with which the source promises success; None where nothing is proved.
    violated : tuple of str
        The conditions of the source that do not hold, in words.
    """

    n_full_columns: int
    n_entries: int
    shape: tuple[int, int]
    expected_columns: float
    expected_entries: float
    source: str
    confidence: float | None = None
    violated: tuple[str, ...] = ()

    @classmethod
    def of_draws(cls, d: int, s: int, shape: tuple[int, int], probabilities=None, **rest) -> "SampleSize":
        """The sample size of d and s draws with replacement; ``rest`` are the remaining attributes."""
        m, n = shape
        return cls(d, s, (m, n), expected_distinct(d, n, probabilities), expected_distinct(s, m), **rest)

    @property
    def fits(self) -> bool:
        """Whether d <= n and s <= m; otherwise the numbers ask for more than the whole matrix."""
        return self.n_full_columns <= self.shape[1] and self.n_entries <= self.shape[0]

    @property
    def share(self) -> float:
        """The expected share of the matrix that is measured: distinct entries over m n, at most 1."""
        columns = self.expected_columns / self.shape[1]
        return columns + (1 - columns) * self.expected_entries / self.shape[0]

    def __repr__(self) -> str:
        """The numbers, what they cost, and whether the source applies."""
        cost = f"{100 * self.share:.3g} % of the matrix" if self.fits else "more than the whole matrix"
        numbers = f"{self.n_full_columns:,} full columns, {self.n_entries:,} entries of each other: {cost}"
        violated = "".join(f"; violated: {condition}" for condition in self.violated)
        return f"SampleSize({self.source}: {numbers}{violated})"


def theorem1(
    shape: tuple[int, int],
    rank: int,
    coherence: float,
    *,
    delta: float = 0.1,
    probabilities: ArrayLike | None = None,
) -> SampleSize:
    """The d and s of Theorem 1: exact recovery of a rank-r matrix with probability at least 1 - delta.

    Parameters
    ----------
    shape : (m, n)
    rank : int
        r = rank(M).
    coherence : float
        mu(r). The proof needs that of V for d and that of U for s; the paper takes the larger for both.
    delta : float in (0, 1)
        A union bound: delta/2 for rank(A) = r (Lemma 1), delta/(2n) for each column (Lemma 2).
    probabilities : array of shape (n,), optional
        Of the columns; uniform by default. Only the smallest counts in this bound.

    Returns
    -------
    SampleSize
    """
    m, n, r = as_sizes(shape, rank)
    mu, delta = _check_coherence("coherence", coherence, max(m, n) / r), as_delta(delta)
    p = None if probabilities is None else as_probabilities(probabilities, n)
    n_p_min = 1.0 if p is None else n * float(p.min())
    d = math.ceil(7 * mu * r * math.log(2 * r / delta) / n_p_min)  # d >= 7 mu(r) r ln(2r/delta) / (n p_min)
    s = lemma2(r, mu, n, delta=delta / 2)  # s >= 7 mu(r) r ln(2rn/delta)
    return SampleSize.of_draws(d, s, (m, n), p, source="Theorem 1", confidence=1 - delta)


def corollary1(shape: tuple[int, int], rank: int, coherence: float, *, delta: float = 0.1) -> SampleSize:
    """The d and s of Corollary 1, which is Theorem 1 with uniformly drawn columns; parameters as there."""
    return replace(theorem1(shape, rank, coherence, delta=delta), source="Corollary 1")


def lemma2(rank: int, coherence: float, n_columns: int, *, delta: float) -> int:
    """The s of Lemma 2: with probability at least 1 - delta, lambda_min(U_O'U_O) >= s/(2m) in all columns.

    Parameters
    ----------
    rank : int
        r, the number of basis vectors.
    coherence : float
        mu-hat of the basis, at least 1.
    n_columns : int
        n; delta is shared by all of them in a union bound.
    delta : float in (0, 1)

    Returns
    -------
    int
        s, counting draws with replacement. (The constant 7 rounds 1 / (1/2 - ln(2)/2) = 6.52 up.)
    """
    r, n = as_count("rank", rank, 1), as_count("n_columns", n_columns, 1)
    mu = _check_coherence("coherence", coherence, math.inf)
    t = -math.log(as_delta(delta))
    return math.ceil(7 * mu * r * (t + math.log(r) + math.log(n)))


def theorem2(
    shape: tuple[int, int],
    rank: int,
    *,
    epsilon: float,
    column_coherence: float,
    basis_coherence: float,
    residual_coherence: float,
    delta: float = 0.1,
) -> SampleSize:
    """The d and s of Theorem 2: |M - M_hat|^2 <= |M - M_r|^2 + epsilon |M|^2 (Frobenius), M of any rank.

    Parameters
    ----------
    shape : (m, n)
    rank : int
        r, the number of basis vectors.
    epsilon : float in (0, 1]
        The statement sets no upper limit; the last step of the proof needs epsilon <= 1.
    column_coherence : float
        mu(M).
    basis_coherence : float
        mu-hat of the basis found from the full columns.
    residual_coherence : float
        The largest mu(m_i - U U'm_i) of the partially observed columns.
    delta : float in (0, 1)

    Returns
    -------
    SampleSize
        Conditions that do not hold are listed in ``violated``; ``confidence`` is 1 - 2 delta, see the notes.

    Notes
    -----
    The statement has orders of magnitude only; the constants are those of its proof: d from Lemma 5 with
    epsilon/2, s from Lemmas 2 and 3 with delta/2 each over all columns. The proof then forgets that Lemma 5
    costs a further delta, so what it shows is 1 - 2 delta. (Ask for delta/2 to have 1 - delta.) Lemma 2's own
    demand, s >= 7 mu-hat r ln(2rn/delta), is implied by the 84/epsilon.

    Given the two coherences, neither Gaussian noise nor the conditions are used: they serve Lemma 4 alone,
    which bounds the coherences beforehand, at the cost of delta each. Lemma 4 also assumes d <= m/4, which
    the statement of the theorem leaves out and its d rarely obeys. We doubt Lemma 4: it adds projections onto
    subspaces that are not orthogonal, and treats R_hat V as Gaussian although V depends on R_hat. Prefer
    measured coherences.
    """
    m, n, r = as_sizes(shape, rank)
    eps, delta = as_real("epsilon", epsilon, 0, 1, "(]"), as_delta(delta)
    mu_M = _check_coherence("column_coherence", column_coherence, n)
    mu_U = _check_coherence("basis_coherence", basis_coherence, m / r)
    mu_x = _check_coherence("residual_coherence", residual_coherence, m)
    log = math.log(2 * r * n / delta)
    d = math.ceil(64 * math.log(2 / delta) * mu_M * r / eps**2)  # d >= 64 ln(2/delta) mu(M) r / eps^2
    s = math.ceil(max(84 * mu_U * r * log / eps, 4 / 3 * r * mu_x * log))
    conditions = [
        ("ln(2n/delta) <= m/64", math.log(2 * n / delta), m / 64),
        ("rank <= m/4", r, m / 4),
        ("d <= m/4 (of Lemma 4; the theorem does not repeat it)", d, m / 4),
    ]
    violated = tuple(f"{name}, but {a:,.6g} > {b:,.6g}" for name, a, b in conditions if a > b)
    confidence = max(0.0, 1 - 2 * delta)
    return SampleSize.of_draws(d, s, (m, n), source="Theorem 2", confidence=confidence, violated=violated)


def expected_distinct(n_draws: int, n: int, probabilities: np.ndarray | None = None) -> float:
    """The expected number of distinct values among draws with replacement from n values.

    Parameters
    ----------
    n_draws, n : int
    probabilities : array of shape (n,), optional
        Uniform by default.

    Returns
    -------
    float
        sum_i 1 - (1 - p_i)^n_draws.
    """
    n_draws, n = as_count("n_draws", n_draws, 0), as_count("n", n, 1)
    p = np.array([1 / n]) if probabilities is None else np.asarray(probabilities, dtype=float)
    with np.errstate(divide="ignore"):  # p = 1 if n = 1.
        seen = -np.expm1(float(n_draws) * np.log1p(-p))
    return float(n * seen[0] if probabilities is None else seen.sum())


# ------------------------------------------------------------------------------------------- linear algebra


def _peak_to_mean(a: np.ndarray) -> float:
    """Largest over mean of the squares: the one formula behind all four coherences. Cannot overflow."""
    return float(a.size / np.sum((a / np.abs(a).max()) ** 2))


def _column_norms(B: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->j", B, B))


def _svd(M: ArrayLike | Factors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thin SVD of M up to a factor of its scale; of L R by QR of both factors and SVD of the small core."""
    if not isinstance(M, tuple):
        return _thin_svd(_scaled("M", M, n_dims=2))
    L, R = _factors(M)
    (Q1, T1), (Q2, T2) = np.linalg.qr(L), np.linalg.qr(R.T)
    core = _scaled("L @ R", T1 @ T2.T, n_dims=2)  # L R = Q1 (T1 T2') Q2'
    U, sigma, Vt = np.linalg.svd(core, full_matrices=False)
    return Q1 @ U, sigma, Vt @ Q2.T


def _thin_svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if A.shape[0] >= A.shape[1]:
        return _tall_svd(A)
    V, sigma, Ut = _tall_svd(A.T)
    return Ut.T, sigma, V.T


def _tall_svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thin SVD of A, shape (n, m) with n >= m, by blocks of rows: beyond the cache LAPACK takes twice the time.

    Of blocks A_k = Q_k R_k the small factors are stacked: [R_1; R_2; ...] = [P_1; P_2; ...] diag(sigma) V'. The blocks
    of U are then Q_k P_k.
    """
    n, m = A.shape
    step = max(4 * m, CACHE_CELLS // m)
    if n <= 2 * step:
        return np.linalg.svd(A, full_matrices=False)
    blocks = [np.linalg.qr(A[lo : lo + step]) for lo in range(0, n, step)]
    P, sigma, Vt = _tall_svd(np.concatenate([R_k for _, R_k in blocks]))
    U, start = np.empty(A.shape), 0
    for k, (Q_k, R_k) in enumerate(blocks):
        U[k * step : (k + 1) * step] = Q_k @ P[start : start + len(R_k)]
        start += len(R_k)
    return U, sigma, Vt


def _factors(M: Factors) -> tuple[np.ndarray, np.ndarray]:
    if len(M) != 2:
        raise ValueError(f"a tuple must be two factors (L, R), got {len(M)} items; pass a matrix as an array")
    L, R = (_scaled(f"factor {name}", B, n_dims=2) for name, B in zip("LR", M))
    if L.shape[1] != R.shape[0]:
        raise ValueError(f"factors of shapes {L.shape} and {R.shape} do not match: (m, k) and (k, n) are allowed")
    return L, R


def _scaled(name: str, a: ArrayLike, n_dims: int) -> np.ndarray:
    """The validated array as float64, divided by its largest magnitude."""
    a = as_array(name, a, n_dims)
    largest = np.abs(a).max()
    if largest == 0:
        raise ValueError(f"{name} is zero, and the coherence of zero is not defined")
    return a / largest


def _eps(M: ArrayLike | Factors) -> float:
    return max(eps_of(B) for B in (M if isinstance(M, tuple) else (M,)))


def _check_coherence(name: str, value, largest: float) -> float:
    """A coherence in [1, largest], forgiving the rounding of a computed one."""
    slack = 1e-9
    as_real(name, value, 1 - slack, largest * (1 + slack))
    return min(max(float(value), 1.0), largest)
