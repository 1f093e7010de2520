"""The evidence of the report: held-out values, coverage by group, gaps, and the least certain rows and columns."""

from __future__ import annotations

import numpy as np

from ...uncertainty.diagnostics import HeldOut
from ..plots import are_usual
from .cells import LEVEL, Cells, Units, cells_at, evenly, name_of, parts_of, some_columns
from .charts import bars_chart, coverage_chart, prediction_chart, series_chart
from .maps import gap_map

_MOST_POINTS = 500  # Points of the scatter plot; more are a blot.
_MOST_IN_SERIES = 150  # Values of one row or column in its chart, which is 300 pixels wide.
_WORST = 3  # Rows and columns that are shown.
_FEWEST_IN_GROUP = 15  # Held-out values; the share of fewer is chance.
_SURE = 1e-6  # Half widths in spreads below which an interval is rounding.


def number(value: float) -> str:
    """A number with a few digits."""
    return "unknown" if not np.isfinite(value) else f"{value:.4g}"


def between(low: float, high: float) -> str:
    """An interval in words."""
    return f"{number(low)} to {number(high)}" if np.isfinite([low, high]).all() else "unknown"


def prediction(completion, found: HeldOut, units: Units) -> dict:
    """The scatter plot of held-out values, and its words."""
    some = evenly(found.truth.size, _MOST_POINTS)
    truth, predicted = found.truth[some], found.predicted[some]
    of_scale = ""
    if units.is_mixed and found.rows is not None and found.columns is not None:
        rows, columns = found.rows[some], found.columns[some]
        truth, predicted = units.scaled(truth, rows, columns), units.scaled(predicted, rows, columns)
        of_scale = f" Numbers are standard deviations of each {units.kind}."
    usual = are_usual(truth) & np.isfinite(predicted)
    tips = [f"{_place(completion, found, k)}true value {_facts_of(found, k)}" for k in some[usual]]
    hidden = int((~usual).sum())
    words = f"{found.truth.size:,} known values were hidden and predicted from the rest of the table. "
    words += f"Points on the line are predicted perfectly.{of_scale}"
    if hidden:
        outliers = "1 outlier is" if hidden == 1 else f"{hidden:,} outliers are"
        words += f" {outliers} not shown."
    return {"chart": prediction_chart(truth[usual], predicted[usual], tips), "words": words}


def _place(completion, found: HeldOut, k: int) -> str:
    if found.rows is None:
        return ""
    row = f"row {name_of(completion.row_names, found.rows[k])}"
    column = "" if found.columns is None else f", column {name_of(completion.column_names, found.columns[k])}"
    return f"{row}{column}: "


def _facts_of(found: HeldOut, k: int) -> str:
    ends = "" if found.low is None or found.high is None else f", 90 % interval {between(found.low[k], found.high[k])}"
    return f"{number(found.truth[k])}, predicted {number(found.predicted[k])}{ends}"


def coverage(completion, found: HeldOut, units: Units) -> dict | None:
    """The share of held-out values inside their intervals: of all, by width of the interval, and by known values."""
    if found.low is None or found.high is None or found.rows is None:
        return None
    inside = (found.low <= found.truth) & (found.truth <= found.high)
    with np.errstate(over="ignore", invalid="ignore"):
        widths = (found.high / 2 - found.low / 2) / units.at(found.rows, _zeros(found))[1]
    known = np.isfinite(widths)
    if known.sum() < _FEWEST_IN_GROUP or np.median(widths[known]) <= _SURE:
        return None
    groups = {"all values": known}
    edges = np.quantile(widths[known], [1 / 3, 2 / 3])
    if edges[0] < edges[1]:
        groups |= {
            "narrowest intervals": known & (widths <= edges[0]),
            "medium intervals": known & (widths > edges[0]) & (widths <= edges[1]),
            "widest intervals": known & (widths > edges[1]),
        }
    if found.columns is not None:
        counts = completion.n_observed[found.columns]
        few = np.quantile(counts[known], 1 / 3)
        if counts[known].min() < counts[known].max():
            groups["sparsest columns"] = known & (counts <= few)
    facts = [(name, float(inside[g].mean()), int(g.sum())) for name, g in groups.items() if g.sum() >= _FEWEST_IN_GROUP]
    return {"chart": coverage_chart(facts, LEVEL), "groups": facts}


def _zeros(found: HeldOut) -> np.ndarray:
    """The columns of the held-out values, where they are known."""
    return np.zeros(found.truth.size, np.int64) if found.columns is None else found.columns


def gaps(completion) -> dict:
    """The map of gaps, and bars of the share missing in each column and in each row; blocks are read once."""
    m, n = completion.shape
    by_row = np.zeros(m)

    def counted():
        for _, _, o in parts_of(completion):
            here = o()
            np.add(by_row, np.bincount(here.rows, minlength=m), out=by_row)
            yield here

    picture = gap_map(completion, counted())
    sides = [
        ("columns", 1 - completion.n_observed / m, completion.column_names, n),
        ("rows", 1 - by_row / n, completion.row_names, m),
    ]
    charts = {
        side: bars_chart(shares, lambda k, names=names: name_of(names, k), f"{total:,} {side}", side[:-1])
        for side, shares, names, total in sides
    }
    full = {side: int((shares <= 0).sum()) for side, shares, _, _ in sides}
    words = f"Complete: {full['columns']:,} of {n:,} columns and {full['rows']:,} of {m:,} rows."
    return {**charts, "map": picture, "words": words}


def worst(completion, cells: Cells, units: Units) -> list[dict]:
    """The columns and rows with the widest intervals, each with its series; empty where there are no intervals."""
    if cells.low is None:
        return []
    widths = units.widths(cells)
    found = []
    for axis, side, places in ((0, "column", cells.columns), (1, "row", cells.rows)):
        counts = np.isfinite(widths).sum(axis=axis)
        means = np.nansum(np.where(np.isfinite(widths), widths, 0.0), axis=axis) / np.maximum(counts, 1)
        means = means.round(9)  # Rounding errors must not decide which comes first.
        for k in np.argsort(-means, kind="stable")[:_WORST]:
            if means[k] > _SURE:
                found.append(_series(completion, side, int(places[k]), units))
    return found


def _series(completion, side: str, place: int, units: Units) -> dict:
    """The chart of one row or column, and its words."""
    m, n = completion.shape
    other = evenly(m, _MOST_IN_SERIES) if side == "column" else some_columns(completion, _MOST_IN_SERIES)
    rows, columns = (other, np.array([place])) if side == "column" else (np.array([place]), other)
    cells = cells_at(completion, rows, columns)
    own, crossing = (
        (completion.column_names, completion.row_names)
        if side == "column"
        else (completion.row_names, completion.column_names)
    )
    assert cells.low is not None and cells.high is not None
    values, seen, low, high = (x.ravel() for x in (cells.values, cells.is_seen, cells.low, cells.high))
    across = "row" if side == "column" else "column"
    is_scaled = units.is_mixed and units.side == across + "s"
    i, j = (x.ravel() for x in np.broadcast_arrays(rows[:, None], columns))
    shown = [units.scaled(x, i, j) if is_scaled else x for x in (values, low, high)]
    tips = [
        f"{side} {name_of(own, place)}, {across} {name_of(crossing, other[k])}: "
        + (f"known, {number(values[k])}" if seen[k] else f"filled, {number(values[k])} ({between(low[k], high[k])})")
        for k in range(values.size)
    ]
    unit = f", in standard deviations of each {across}" if is_scaled else ""
    total = m if side == "column" else n
    return {
        "title": f"{side.capitalize()} {name_of(own, place)}",
        "words": _typical_interval(cells, units, is_scaled),
        "chart": series_chart(shown[0], seen, shown[1], shown[2], tips, f"{total:,} {across}s{unit}"),
    }


def _typical_interval(cells: Cells, units: Units, is_scaled: bool) -> str:
    """Half the width of the intervals of one row or column, on average."""
    assert cells.low is not None and cells.high is not None
    half = units.widths(cells)
    filled = np.isfinite(half)
    if not filled.any():
        return ""
    in_spreads = f"{float(half[filled].mean()):.2g} standard deviations"
    if is_scaled:
        return f"Typical interval: ± {in_spreads}."
    own = float(np.mean(cells.high[filled] / 2 - cells.low[filled] / 2))
    return f"Typical interval: ± {own:.3g} ({in_spreads})."
