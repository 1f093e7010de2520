"""Algorithm 1 of the paper, from the sampling to the answer."""

from __future__ import annotations

from .._support.arguments import as_count
from .._support.logs import logged
from ..data.sampling import observe
from ..data.sources import as_source
from ..model.column_space import fit_column_space
from ..model.solution import Solution
from ..model.solve import solve_columns
from .result import Completion


@logged
def algorithm1(
    source, *, rank: int, n_full_columns: int, n_entries: int, probabilities=None, random_state=None
) -> Completion:
    """Algorithm 1 of Wan, Yi and Zhang (2018), from the sampling to the answer.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
    rank : int
        r, at most d.
    n_full_columns, n_entries : int
        d columns and, of every other column, s entries, each drawn with replacement.
    probabilities : array of shape (n,), optional
        p, the probability of drawing each column. Default: uniform.
    random_state : None, int or numpy Generator
    """
    source = as_source(source)
    d, s, p = as_count("n_full_columns", n_full_columns, 1), n_entries, probabilities
    r = as_count("rank", rank, 1, min(source.shape[0], d), ", the smaller of the rows and n_full_columns")

    # 1-5, 9: sample i_1 .. i_d by p, keep m_i and A = [m_i / sqrt(d p_i)]; of each other column sample Omega_i
    observations = observe(source, n_full_columns=d, n_entries=s, probabilities=p, random_state=random_state)
    # 6-7: r^ = min(r, rank(A)); U^ = the top r^ left singular vectors of A
    space = fit_column_space(observations, rank=r)
    # 8-11: m^_i = U^ (U_O' U_O)^-1 U_O' m_O
    coefficients, status = solve_columns(space, observations)
    # 12: M^ = [m^_1 .. m^_n]
    return Completion(Solution(observations, space, coefficients, status))
