"""What to say, and what helps, where no column is known in full."""

from __future__ import annotations

import numpy as np

from ._arguments import named
from .observations import Observations

_TRIED_COLUMNS = 500  # that might be made full by leaving out rows
_NAMED = 3  # columns, or rows, in a message


def refuse_nothing_full(o: Observations) -> None:
    """Raise ValueError if no column is full: it names the fullest ones, and rows without which some would be full."""
    if o.full_columns.size:
        return
    m, n = o.shape
    counts, seen = o.n_observed, np.bincount(o.rows, minlength=m)
    fullest = [(named(o.column_names, j), counts[j]) for j in np.argsort(-counts, kind="stable")[:_NAMED]]
    drop, unseen, n_full_rows = rows_to_drop(o), np.flatnonzero(seen == 0), int((seen == n).sum()) if n > 1 else 0
    remedies = ["measure some columns in full"]
    if drop is not None:
        remedies.insert(0, f"drop {rows_in_words(o, drop[1])}, and the {drop[0]:,} fullest columns are full")
    elif unseen.size and counts.max() == m - unseen.size:
        remedies.insert(0, f"drop {rows_in_words(o, unseen)}, without an entry")
    if n_full_rows:
        complete = "1 row is" if n_full_rows == 1 else f"{n_full_rows:,} rows are"
        remedies.append(f"transpose the data (M.T or --transpose), of which {complete} complete")
    raise ValueError(no_full_column(m, fullest, remedies))


def no_full_column(m: int, fullest: list, remedies) -> str:
    """What to say of m rows without a full column; `fullest` has the fullest columns, and how many entries of each."""
    if not any(count for _, count in fullest):
        return f"no column is known in all {m:,} rows, nor is any entry: there is nothing to learn from; measure some"
    some = ", ".join(f"column {j} with {count:,}" for j, count in fullest)
    return (
        f"no column is known in all {m:,} rows, and from such the column space is learned; the fullest"
        f" {'is' if len(fullest) == 1 else 'are'} {some}: {'; or '.join(remedies)}"
    )


def rows_to_drop(o: Observations) -> tuple[int, np.ndarray] | None:
    """How many of the fullest columns, two or more, would be full without which rows, at most half of them.

    Of all numbers of columns that which leaves most cells; None if there is none.
    """
    m = o.shape[0]
    best = np.argsort(-o.n_observed, kind="stable")[:_TRIED_COLUMNS]
    count, cells = np.zeros(m, np.int64), [0]
    for k, j in enumerate(best, start=1):
        count[o.rows[o.indptr[j] : o.indptr[j + 1]]] += 1
        kept = int((count == k).sum())
        cells.append(k * kept if k > 1 and m > kept >= max(2, m / 2) else 0)
    k = int(np.argmax(cells))
    if k == 0:
        return None
    in_columns = np.bincount(o.take(best[:k]).rows, minlength=m)
    return k, np.flatnonzero(in_columns < k)


def rows_in_words(o: Observations, rows) -> str:
    some = ", ".join(str(named(o.row_names, i)) for i in rows[:_NAMED]) + (", ..." if rows.size > _NAMED else "")
    return f"row {some}" if rows.size == 1 else f"the {rows.size:,} rows {some}"
