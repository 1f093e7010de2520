"""The first screen of the report: the verdict as a traffic light, two numbers, and what to do next."""

from __future__ import annotations

import numpy as np

from ..._support.arguments import NAMED
from ...uncertainty.diagnostics import HeldOut
from ...uncertainty.verdict import LEVEL, NARROW
from .cells import plain_name

_LIGHTS = {"use it": "good", "use it with care": "care", "do not use it": "bad"}


def first_screen(completion, summary: dict, found: HeldOut | None, name: str | None, worst: list) -> dict:
    """What a reader needs who reads nothing else.

    Parameters
    ----------
    name : str or None
        Of the file.
    worst : list of dict
        The least certain columns and rows; see `evidence.worst`.
    """
    m, n = summary["shape"]
    word, sentence = summary["verdict"]["word"], summary["verdict"]["sentence"]
    return {
        "name": "Filled table" if name is None else plain_name(name),
        "size": f"{m:,} rows × {n:,} columns",
        "light": _LIGHTS[word],
        "word": word.capitalize(),
        "sentence": sentence,
        "tiles": [_filled(summary), _error(completion, found), *_empty(summary)],
        "next": _next(completion, summary, found, worst),
    }


def percent(share: float) -> str:
    return f"{100 * share:.3g}\N{NO-BREAK SPACE}%"


def _filled(summary: dict) -> dict:
    total, filled = summary["shape"][0] * summary["shape"][1], summary["n_filled_entries"]
    return {"label": "Filled", "number": percent(filled / total), "note": f"{filled:,} of {total:,} values"}


def _error(completion, found: HeldOut | None) -> dict:
    """The one number for the fit: the error of held-out values as a share of the spread of the data."""
    if completion.learned is not None and completion.learned.is_exact:
        return {"label": "Typical error", "number": "0\N{NO-BREAK SPACE}%", "note": "the known values fit exactly"}
    if found is not None and not found.error:
        return {
            "label": "Typical error",
            "number": "0\N{NO-BREAK SPACE}%",
            "note": "of hidden values",
        }
    if found is None or not found.spread:
        return {"label": "Typical error", "number": "unknown", "note": "no known value could be hidden and predicted"}
    note = f"of the data's standard deviation, for {found.truth.size:,} known values that were hidden"
    return {"label": "Typical error", "number": percent(found.error / found.spread), "note": note}


def _empty(summary: dict) -> list[dict]:
    parts = [(summary["n_unfilled_columns"], "column"), (summary["n_unfilled_rows"], "row")]
    words = [f"{count:,} {side if count == 1 else side + 's'}" for count, side in parts if count]
    if not words:
        return []
    return [{"label": "Left empty", "number": words[0], "note": " and ".join(words[1:]) or "too few known values"}]


def _next(completion, summary: dict, found: HeldOut | None, worst: list) -> list[str]:
    """What to do, the most important first."""
    word, choices = summary["verdict"]["word"], summary["choices"]
    if not summary["n_filled_entries"] and not summary["n_unfilled_columns"]:
        return ["Nothing: the table had no gaps."]
    if not summary["n_filled_entries"]:
        return [*_about_unfilled(summary)]
    is_exact = completion.learned is not None and completion.learned.is_exact
    steps = []
    suspect = choices.get("suspicious values") or choices.get("outliers")
    if suspect:
        steps.append(f"Check the data first: {suspect}.")
    steps += {
        "use it": [
            "Use the filled table." + ("" if is_exact else " Where a single value matters, read its interval too.")
        ],
        "use it with care": [
            "Use the filled values for averages, totals and a first look. Do not decide anything by a single one."
        ],
        "do not use it": ["Do not use the filled values: the known values of this table hardly predict each other."],
    }[word]
    steps += summary["advice"]
    steps += ["Measure the missing values, or add columns that are related to them."] if word == "do not use it" else []
    steps += _about_intervals(found)
    columns = [plain_name(one["title"].removeprefix("Column ")) for one in worst if one["title"].startswith("Column ")]
    if columns and word == "use it with care":
        steps.append(f"Measure more values of these columns first: {', '.join(columns[:NAMED])}.")
    return steps + _about_unfilled(summary)


def _about_unfilled(summary: dict) -> list[str]:
    steps = []
    if summary["unfilled"]:
        first = summary["unfilled"][0]
        which = first["name"] or str(first["column"])
        count = summary["n_unfilled_columns"]
        stay = "1 column stays empty. It" if count == 1 else f"{count:,} columns stay empty. The first"
        steps.append(f"{stay}, {which}, {first['message']}.")
    if summary["n_unfilled_rows"]:
        steps.append("Measure some values of the rows that stay empty.")
    return steps


def _about_intervals(found: HeldOut | None) -> list[str]:
    if found is None:
        return []
    inside = float(found.coverage[np.argmin(np.abs(found.levels - LEVEL))])
    if inside < NARROW:
        return [f"Treat the intervals as too narrow: only {percent(inside)} of the hidden values lie inside."]
    return []
