"""Measuring under a budget: which entries to ask for, so that the whole matrix is known best."""

from __future__ import annotations

from dataclasses import replace

from ..._support.arguments import as_choice, as_count, as_generator, as_real
from ..._support.logs import logged
from ...completion import Completion
from ...data.sources import as_source
from ._completing import completion_of
from ._measuring import Measurements
from ._spending import spend
from ._surveying import Survey


@logged
def acquire(
    source,
    *,
    budget: int,
    rank: int | None = None,
    noise_std: float | None = None,
    rows: str = "auto",
    random_state=None,
) -> Completion:
    """Read at most `budget` entries of a source, where they help most, and complete the matrix from them.

    Columns are read in full while new ones add directions: of exactly low-rank data until they explain the others to
    rounding, of others while it pays, as full columns tell that are held out and predicted. The rest get a few entries
    each. Columns that are explained badly get more, and are read in full where that pays.

    Parameters
    ----------
    source : Source, array or memory map of shape (m, n)
        It may fail now and then: calls that raise an exception and entries that are NaN are asked for again a few
        times, and then done without. A function is asked for up to 4096 entries in a call.
    budget : int
        The most entries to read, as the source counts them; at least m. Exact data need not use it up.
    rank : int, optional
        Maximum rank.
    noise_std : float, optional
        Standard deviation of the noise of an entry. Default: learned from the data.
    rows : {"auto", "random"}
        At which rows a column of data with noise is read that is not read in full: "auto" has three quarters of its
        entries at the rows of `select_rows`, if full columns are predicted better from these than from random rows.
        "random" rows leave a larger error, but make `column_means` unbiased.
    random_state : None, int or numpy Generator

    Returns
    -------
    Completion
        Its `observations` are what was read; its `choices` also say how the budget was used.

    Raises
    ------
    RuntimeError
        If nothing comes from the source any more. This and every other exception, KeyboardInterrupt too, has what was
        read until then as its attribute `observations`.

    Examples
    --------
    >>> import numpy as np, colonnade as co
    >>> rng = np.random.default_rng(0)
    >>> M = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 300))
    >>> source = co.Source(M)
    >>> completion = co.acquire(source, budget=20_000, random_state=0)
    >>> source.entries_read, bool(abs(completion.to_dense() - M).max() < 1e-12)
    (2115, True)
    """
    source = as_source(source)
    m, n = source.shape
    budget = as_count("budget", budget, m, why=", because a column has so many entries")
    rank = None if rank is None else as_count("rank", rank, 1, min(m, n))
    noise_std = None if noise_std is None else as_real("noise_std", noise_std, 0, 1e150)
    rows = as_choice("rows", rows, ("auto", "random"))
    start, measurements = source.entries_read, Measurements(source, budget)
    try:
        completion = _acquire(measurements, as_generator(random_state), rank, noise_std, rows)
    except BaseException as error:
        error.observations = measurements.observations()  # type: ignore[attr-defined]  # For the caller who catches it.
        raise
    used = _words(source.entries_read - start, budget, completion, measurements)
    return replace(completion, choices={**completion.choices, "budget": used})


def _acquire(measurements: Measurements, rng, rank, noise_std, rows) -> Completion:
    survey = Survey(measurements, rng)
    if not survey.run() and measurements.left:
        spend(measurements, survey, rng, rank, noise_std, select=rows == "auto")
    return completion_of(measurements, survey, rank, noise_std)


def _words(n_read, budget, completion, measurements) -> str:
    known = completion.observations.rows.size
    words = f"{n_read:,} of {budget:,} entries read"
    if known < n_read or measurements.failures:
        words += f"; {known:,} are known; {measurements.failures:,} calls failed"
    return words
