"""What `Completion.choices` says of the data: outliers, empty rows, and entries where no prediction may be."""

from __future__ import annotations

import numpy as np

from .._support.arguments import named
from ..data.observations import Observations, place_of
from ..model.full_columns.outlier_screening import Found, found_at, screened_in_words


def data_in_words(whole, screening, unused: Found, names, noise: float, bounds) -> dict:
    """What `choices` says of the data: outliers, and entries where no prediction may be; nothing if there are none.

    Parameters
    ----------
    whole : Whole or Blocks
    screening : Screening
    unused : Found
        Entries of partial columns that had no part in the answer.
    names : (array or None, array or None)
        Of rows and of columns.
    noise : float
        The noise variance; 0 if every entry counts.
    bounds : (float, float) or None
    """
    said = {
        "suspicious values": screened_in_words(whole, screening, unused, names, is_used=noise == 0),
        "bounds": _bounds_words(whole, names, bounds),
    }
    return {about: words for about, words in said.items() if words}


def _bounds_words(whole, names, bounds) -> str | None:
    """What to say of entries that were observed where no prediction may be."""
    # Bounds are not in the type of the values.
    low, high = np.array((-np.inf, np.inf) if bounds is None else bounds, np.float64)
    if whole.reach[0] >= low and whole.reach[1] <= high:
        return None
    outside = [found_at(o, np.flatnonzero((o.values < low) | (o.values > high)), first) for first, o in whole]
    found = Found(*map(np.concatenate, zip(*outside)))
    if found.rows.size == 0:
        return None
    one = found.rows.size == 1
    entries = "1 known value lies" if one else f"{found.rows.size:,} known values lie"
    return (
        f"{entries} outside the bounds {low:.9g} to {high:.9g},"
        f" {'' if one else 'the first '}at {place_of(found.rows[0], found.columns[0], names)}: {found.values[0]:.9g}"
    )


def outliers_in_words(found: Found, names) -> dict:
    """What to say of entries that a factor model gives hardly any weight; `names` of rows and columns."""
    if found.rows.size == 0:
        return {}
    first, value = place_of(found.rows[0], found.columns[0], names), f"{found.values[0]:.9g}"
    if found.rows.size == 1:
        return {"outliers": f"1 known value looks like an outlier and hardly counts; at {first}: {value}"}
    some = f"{found.rows.size:,} known values look like outliers and hardly count"
    return {"outliers": f"{some}; the first is at {first}: {value}"}


def empty_rows_in_words(o: Observations, are_filled: bool) -> dict:
    empty = np.flatnonzero(np.bincount(o.rows, minlength=o.shape[0]) == 0)
    if empty.size == 0:
        return {}
    some = ", ".join(str(named(o.row_names, i)) for i in empty[:3]) + (", ..." if empty.size > 3 else "")
    one = empty.size == 1
    what = "got typical values" if are_filled else f"{'stays' if one else 'stay'} NaN"
    return {"empty rows": f"{'row' if one else 'rows'} {some} without any value {what}"}
