"""How many columns and entries must be measured: what the theorems guarantee, and what is enough in practice.

The guarantees are those of Wan, Yi, Zhang (2018), Matrix Completion from Non-Uniformly Sampled Entries. They
are loose: they hold for every matrix of the given coherence. Exact recovery needs less: the full columns span the
column space, and every other column is seen in enough rows to be determined. Matrices without special structure need
``r`` of each; the practical numbers add a margin to that.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .._support.arguments import as_count, as_generator, as_orthonormal, as_probabilities, as_real, as_sizes
from .._support.html import html_lines
from .._support.threads import one_blas_thread
from .theory import SampleSize, basis_coherence, corollary1, expected_distinct, lemma2, theorem1

__all__ = ["Plan", "gaussian_coherence", "plan"]

# Distinct columns and rows beyond the rank; with fewer, the condition depends on the draw.
SPARE_COLUMNS, SPARE_ROWS = 2, 5
N_SIMULATED = 100  # Columns, wherever a basis is given.
_SMALL = 10_000  # Cells: a table that people fill by hand.
_WORTH_PLANNING = 0.4  # Share of a small table from which on a plan saves too little to be worth it.
EIGENVALUE_LEVEL = 0.01  # Share of the smallest eigenvalue that an incoherent basis would have.


@dataclass(frozen=True, repr=False)
class Plan:
    """The answer to "how many columns and entries must I measure"; printing it gives the answer in words.

    Attributes
    ----------
    shape : (m, n)
    rank : int
    coherence : float
        The mu(r) behind the guaranteed numbers, and in ``coherence_source`` where it comes from.
    guaranteed, practical : SampleSize
        The numbers of Theorem 1 or Corollary 1, and those enough in practice; ``share`` is what each costs.
    practical_source : str
        Where the practical numbers come from.
    noise_std : float or None
    n_entries : int
        The s for which the errors are given.
    expected_error : float or None
        Expected squared error of a partially observed column, sigma^2 tr((U_O'U_O)^-1), the column space
        taken as exact. Infinite where some of the columns would not be determined.
    error_source : str
        How the expected error was computed.
    column_space_error : float or None
        What noise in the full columns adds to it (to first order, for columns with Gaussian coefficients).
    """

    shape: tuple[int, int]
    rank: int
    coherence: float
    coherence_source: str
    guaranteed: SampleSize
    practical: SampleSize
    practical_source: str
    n_entries: int
    noise_std: float | None = None
    expected_error: float | None = None
    error_source: str = ""
    column_space_error: float | None = None

    @property
    def expected_rms(self) -> float | None:
        """Root mean square error of an entry that belongs to ``expected_error``."""
        return None if self.expected_error is None else math.sqrt(self.expected_error / self.shape[0])

    @property
    def _is_too_small(self) -> bool:
        """Whether the table is small and the plan would save little, and no other number of entries was asked for."""
        is_small = self.shape[0] * self.shape[1] <= _SMALL and self.practical.share > _WORTH_PLANNING
        return is_small and self.n_entries == self.practical.n_entries

    def __str__(self) -> str:
        """The answer in a few plain lines."""
        if self._is_too_small:
            m, n = self.shape
            return (
                f"This table of {m:,} x {n:,} values is too small to plan for: a plan would measure"
                f" {100 * self.practical.share:.3g} % of it. Measure all of it."
            )
        if not self.practical.fits:
            return _practical_line(self)
        numbers = [_practical_line(self), _guaranteed_line(self), *_noise_lines(self)]
        return "\n".join([*numbers, self.practical_source])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<div>{html_lines(str(self).splitlines())}</div>"


@one_blas_thread()
def plan(
    shape: tuple[int, int],
    rank: int,
    *,
    coherence: float | None = None,
    probabilities: ArrayLike | None = None,
    delta: float = 0.1,
    noise_std: float | None = None,
    basis: ArrayLike | None = None,
    n_entries: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Plan:
    """How many columns to measure in full, and how many entries of every other column.

    Parameters
    ----------
    shape : (m, n)
    rank : int
        r, from 1 to min(m, n).
    coherence : float, optional
        mu(r). Default: that of the basis, else that of a Gaussian matrix of this shape and rank.
    probabilities : array of shape (n,), optional
        With which the full columns are drawn; uniform by default.
    delta : float in (0, 1)
        The accepted probability of failure.
    noise_std : float, optional
        Standard deviation of the noise in an entry; asks for the expected error.
    basis : array of shape (m, r), optional
        Orthonormal basis of the column space, if known. The practical ``n_entries`` and the expected error
        are then simulated for it; otherwise it is taken as incoherent, like that of a Gaussian matrix.
    n_entries : int, optional
        The s for which to give the expected error, by default the practical one.
    random_state : int or numpy Generator, optional
        Of the simulations with ``basis``.

    Returns
    -------
    Plan

    Notes
    -----
    Draws with replacement repeat themselves. The practical d sees r + 2 distinct columns with probability at
    least 1 - delta; the practical s sees r + 5 distinct rows in a given column with probability at least 1 -
    delta (so a share delta of the columns may have a few less), and the indispensable r rows in all columns
    with probability at least 1 - delta, by a union bound. With a basis, s grows until no simulated column has
    a smallest eigenvalue of ``U_O'U_O m/|O|``, O its distinct rows, below 0.01 (1 - sqrt(r/s))^2, a hundredth
    of what is usual for an incoherent basis.

    Examples
    --------
    >>> plan((10_000, 10_000), 50).practical
    SampleSize(practice: 53 full columns, 56 entries of each other: 1.08 % of the matrix)
    """
    m, n, r = as_sizes(shape, rank)
    U = None if basis is None else _check_basis(basis, m, r)
    p = None if probabilities is None else as_probabilities(probabilities, n)
    sigma = None if noise_std is None else as_real("noise_std", noise_std, 0, 1e150)
    s = None if n_entries is None else as_count("n_entries", n_entries, 1)
    rng = as_generator(random_state)
    mu, mu_source = _coherence(coherence, U, m, n, r)
    theorem = corollary1 if p is None else partial(theorem1, probabilities=p)
    guaranteed = theorem((m, n), r, mu, delta=delta)
    practical, practical_source = _practical(m, n, r, p, delta, U, rng)
    s = practical.n_entries if s is None else s
    errors = {} if sigma is None else _errors(m, r, practical.expected_columns, s, sigma, U, rng)
    return Plan((m, n), r, mu, mu_source, guaranteed, practical, practical_source, s, **errors)


def gaussian_coherence(shape: tuple[int, int], rank: int) -> float:
    """A typical coherence mu(r) of the product of Gaussian factors of this shape and rank.

    The singular vectors of such a matrix are uniformly distributed orthonormal bases, so that each squared
    row norm of U is Beta(r/2, (m-r)/2) distributed. The value is the one that the largest of m + n
    independent norms exceeds with probability 1/2 (the norms are not quite independent; between U and V the
    larger counts).

    Parameters
    ----------
    shape : (m, n)
    rank : int

    Returns
    -------
    float
    """
    from scipy.special import betainccinv

    m, n, r = as_sizes(shape, rank)
    tail = -math.expm1(-math.log(2) / (m + n))  # (1 - tail)^(m+n) = 1/2
    return max(float(k / r * betainccinv(r / 2, (k - r) / 2, tail)) if k > r else 1.0 for k in (m, n))


# ---------------------------------------------------------------------------------------- practical numbers


def _practical(m, n, r, p, delta, U, rng) -> tuple[SampleSize, str]:
    """The practical sample size and where it comes from."""
    columns, rows = min(r + SPARE_COLUMNS, n), min(r + SPARE_ROWS, m)
    d = _draws_for_distinct(columns, n, delta, p)
    s = max(_draws_for_distinct(rows, m, delta), _draws_for_distinct(r, m, delta / n))
    words = (
        f"The practical numbers are no theorem: they give {columns:,} distinct columns and {rows:,} distinct "
        f"rows in a column, each with probability {1 - delta:g}. That is enough for Gaussian matrices."
    )
    if U is not None:
        enough = lemma2(r, basis_coherence(U), n, delta=delta)
        s = _smallest(lambda k: _well_conditioned(U, k, rng), s, enough)
        words += f" For this basis, {N_SIMULATED} simulated columns were well conditioned."
    sample = SampleSize.of_draws(d, s, (m, n), p, source="practice")
    return sample, words + " Check the certificates of the result."


def _draws_for_distinct(target: int, n: int, failure: float, p: np.ndarray | None = None) -> int:
    """A number of draws after which ``target`` distinct values are seen, but for a probability ``failure``.

    With k values seen, the next draw is new with probability at least q_k, the sum of the n - k smallest p
    (exactly q_k if p is uniform). The waiting time T for the target is thus at most a sum of independent
    geometric variables, and by Chernoff's bound, for every theta > 0 with (1 - q_k) e^theta < 1,

        P(T >= t) <= e^(-theta (t - target)) prod_k q_k / (1 - (1 - q_k) e^theta).
    """
    q = 1 - np.arange(target) / n if p is None else np.cumsum(np.sort(p))[::-1][:target]
    odds = np.maximum(1 / q - 1, 0)  # (1 - q_k) / q_k
    odds[0] = 0  # The first draw is always new.
    if odds.max() == 0:
        return target
    x = 1 / (1 + np.exp(-np.linspace(-16, 16, 129))) / odds.max()  # e^theta - 1 over its whole range.
    log_product = -np.log1p(-x[:, None] * odds).sum(axis=1)
    t = target + (log_product - math.log(failure)) / np.log1p(x)  # P(T >= t) <= failure
    return max(target, math.ceil(t.min()) - 1)


def _smallest(holds, low: int, high: int) -> int:
    """The smallest number from low to high for which a growing condition holds, by bisection."""
    if low >= high or holds(low):
        return low
    step = 1
    while low + step < high and not holds(low + step):
        low, step = low + step, 2 * step
    high = min(low + step, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _well_conditioned(U: np.ndarray, s: int, rng: np.random.Generator) -> bool:
    """Whether lambda_min(U_O'U_O) m/|O| keeps the level in all simulated columns."""
    m, r = U.shape
    edge = (1 - math.sqrt(r / max(s, r))) ** 2  # Marchenko and Pastur: the usual value if U is incoherent
    level = max(EIGENVALUE_LEVEL * edge, 1e-14)
    simulated = (_singular_values(U, s, rng) for _ in range(N_SIMULATED))
    return all(sigma[-1] ** 2 * m / n_distinct > level for sigma, n_distinct in simulated)


def _singular_values(U: np.ndarray, s: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """The r singular values of U_O and |O|, for s rows drawn with replacement; zeros if |O| < r."""
    m, r = U.shape
    omega = np.unique(rng.integers(m, size=s))
    sigma = np.linalg.svd(U[omega], compute_uv=False)
    return np.pad(sigma, (0, r - sigma.size)), omega.size


# ---------------------------------------------------------------------------------------------------- noise


def _errors(m: int, r: int, n_distinct_columns: float, s: int, sigma: float, U, rng) -> dict:
    """The fields of a Plan about noise."""
    if U is None:
        trace = _inverse_trace(m, r, expected_distinct(s, m))
        source = "closed form for an incoherent basis"
    else:
        trace = float(np.mean([_sampled_inverse_trace(U, s, rng) for _ in range(N_SIMULATED)]))
        source = f"mean of {N_SIMULATED} simulated columns with this basis"
    # Noise turns the column space away from a column by sigma^2 r/(d-r-1) per entry (a mean of an inverse
    # Wishart, to first order): missed where it is not observed, and further noise where it is.
    margin = n_distinct_columns - r - 1
    turned = r / margin if margin > 0 else math.inf
    return {
        "noise_std": sigma,
        "expected_error": _times(sigma**2, trace),
        "error_source": source,
        "column_space_error": _times(sigma**2, turned * (m - r + trace)),
    }


def _inverse_trace(m: int, r: int, n_distinct: float) -> float:
    """E tr((U_O'U_O)^-1) for a uniformly distributed basis.

    U_O'U_O is then a matrix-variate Beta(|O|/2, (m-|O|)/2), and the mean of its inverse (m-r-1)/(|O|-r-1)
    times the identity; for m >> r that is the m/(|O|-r-1) of the inverse Wishart.
    """
    if round(n_distinct) == m:
        return float(r)
    return r * (m - r - 1) / (n_distinct - r - 1) if n_distinct > r + 1 else math.inf


def _sampled_inverse_trace(U: np.ndarray, s: int, rng: np.random.Generator) -> float:
    sigma, n_distinct = _singular_values(U, s, rng)
    singular = sigma[-1] <= sigma[0] * n_distinct * np.finfo(float).eps
    return math.inf if singular else float(np.sum(sigma**-2.0))


def _times(variance: float, factor: float) -> float:
    """Errors times the noise; without noise there is no error, unless the column is not determined."""
    return variance * factor if variance > 0 or math.isfinite(factor) else math.inf


# -------------------------------------------------------------------------------------- arguments and words


def _check_basis(basis: ArrayLike, m: int, r: int) -> np.ndarray:
    U = as_orthonormal("basis", basis)
    if U.shape != (m, r):
        raise ValueError(f"basis has shape {U.shape}, allowed is (m, rank) = {(m, r)}")
    return U


def _coherence(coherence: float | None, U: np.ndarray | None, m: int, n: int, r: int) -> tuple[float, str]:
    """mu(r) and where it comes from."""
    if coherence is not None:
        return coherence, "as given"
    if U is not None:
        return basis_coherence(U), "that of the basis; that of the row space is taken to be no larger"
    return gaussian_coherence((m, n), r), "assumed: typical of a Gaussian matrix of this shape and rank"


def _practical_line(plan: Plan) -> str:
    (m, n), size = plan.shape, plan.practical
    d, s = size.n_full_columns, size.n_entries
    if not size.fits:
        return (
            f"Measure the whole matrix of {m:,} x {n:,} values. A plan would need {d:,} columns in full and {s:,}"
            " entries of every other column, which saves nothing."
        )
    return (
        f"Measure {d:,} of {n:,} columns in full and {s:,} of {m:,} entries of every other column, "
        f"drawn with replacement: {100 * size.share:.3g} % of the matrix."
    )


def _guaranteed_line(plan: Plan) -> str:
    size = plan.guaranteed
    cost = f"{100 * size.share:.3g} % of the matrix" if size.fits else "more than the whole matrix"
    return (
        f"Guaranteed with probability {size.confidence:g} by {size.source}: {size.n_full_columns:,} columns "
        f"and {size.n_entries:,} entries, {cost}. The coherence is {plan.coherence:.3g}, {plan.coherence_source}."
    )


def _noise_lines(plan: Plan) -> list[str]:
    if plan.noise_std is None or plan.expected_error is None or plan.column_space_error is None:
        return []
    start = f"With noise of standard deviation {plan.noise_std:g}, {plan.n_entries:,} entries per column"
    if math.isinf(plan.expected_error):
        return [f"{start} are too few: some columns are not determined ({plan.error_source})."]
    total = math.sqrt((plan.expected_error + plan.column_space_error) / plan.shape[0])
    raised = f" Noise in the full columns raises it to about {total:.3g}; more full columns lower it."
    return [
        f"{start} leave a typical error of {plan.expected_rms:.3g} per entry ({plan.error_source})."
        + (raised if math.isfinite(total) else "")
    ]
