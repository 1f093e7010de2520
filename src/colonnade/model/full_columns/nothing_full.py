"""What to say where a method learns from full columns and no column is full."""

from __future__ import annotations

import numpy as np

from ..._support.arguments import NAMED, named
from ...data.observations import Observations

WITH_COMPLETE = "Use colonnade.complete(data): it learns from all columns."


def refuse_nothing_full(o: Observations, remedy: str) -> None:
    """Raise ValueError if no column is full: it names the fullest ones and what to do, first the `remedy`."""
    if o.full_columns.size:
        return
    m, n = o.shape
    counts, seen = o.n_observed, np.bincount(o.rows, minlength=m)
    fullest = [(named(o.column_names, j), counts[j]) for j in np.argsort(-counts, kind="stable")[:NAMED]]
    n_full_rows = int((seen == n).sum()) if n > 1 else 0
    remedies = [remedy]
    if n_full_rows:
        complete = "1 row is" if n_full_rows == 1 else f"{n_full_rows:,} rows are"
        remedies.append(f"Or transpose the data (M.T or --transpose): {complete} complete.")
    raise ValueError(no_full_column(o.shape, fullest, remedies))


def nothing_known(shape) -> str:
    """What to say of a table without any entry."""
    m, n = shape
    return (
        f"no entry of the {m:,} x {n:,} table is known, so there is nothing to learn from."
        " Check that the file and the marks for missing entries are right, or measure some entries."
    )


def no_full_column(shape, fullest: list, remedies: list[str]) -> str:
    """What to say of a table without a full column.

    Parameters
    ----------
    shape : (int, int)
    fullest : list of (name, number of entries)
        The fullest columns.
    remedies : list of str
        Sentences.
    """
    if not any(count for _, count in fullest):
        return nothing_known(shape)
    some = ", ".join(f"column {j} with {count:,}" for j, count in fullest)
    return " ".join(
        [
            f"no column is known in all {shape[0]:,} rows, and this method learns from such columns.",
            f"The fullest {'is' if len(fullest) == 1 else 'are'} {some}.",
            *remedies,
        ]
    )


def leave_out(names) -> str:
    """The remedy where settings of the full-columns method were given."""
    words = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    options = ", ".join(f"--{name}" for name in names)
    return f"Leave out {words} ({options}): then colonnade learns from all columns."
