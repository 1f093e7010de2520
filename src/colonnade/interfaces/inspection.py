"""A look at a table before it is filled: whether it can be filled, from what, and what would help."""

from __future__ import annotations

import numpy as np

from .._support.arguments import NAMED, named
from .._support.html import html_facts
from .._support.printable import counted
from .._support.threads import one_blas_thread
from ..completion import chosen_method
from ..data.observations import Observations, as_observations
from ..model.column_space import fit_column_space
from ..model.full_columns.learn import learn
from ..model.full_columns.nothing_full import nothing_known
from ..model.full_columns.outlier_screening import Whole, found_at, screened, screened_in_words
from .skew import about_logarithms

_SHOWN_VALUES = 30  # Singular values that are reported.
_FEW = 3  # Known values; fewer say hardly how a row or column differs from others.
_LARGE = 20_000_000  # Cells of complete columns above which only the first 50 directions are computed, for time.


_ONLY_EMPTY = (
    "This table cannot be filled: all gaps lie in rows or columns without any value, so nothing predicts them."
)


class Inspection(dict):
    """The facts of `inspect_observations` by name; ``print`` and notebooks show them in words."""

    def lines(self) -> list[str]:
        """The verdict, the facts and the advice, a line each."""
        return [*inspection_in_words(self), *(f"Advice: {sentence}" for sentence in self["advice"])]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return html_facts(self.lines())


def inspect(data, *, ignore=(), only=None) -> Inspection:
    """Look at a table before it is filled: where the gaps are, whether it can be filled, and what would help.

    Parameters
    ----------
    data, ignore, only
        As of `complete`.

    Returns
    -------
    Inspection
        A dict of facts that JSON can hold; see `inspect_observations`. ``print`` shows it in words.
    """
    return inspect_observations(as_observations(data, ignore=ignore, only=only))


@one_blas_thread()
def inspect_observations(o: Observations) -> Inspection:
    """The facts about some observations as JSON can hold them.

    Returns
    -------
    Inspection
        verdict (one sentence), method ("factor model" or "full columns": what `complete` would use; None if nothing
        can be filled), shape, n_observed, share, columns and rows (each with full, empty, partial, and the least,
        median and most entries of the partial ones), complete_side ("columns", "rows", "both" or "neither"), spectrum
        (None if no column is full), trial (settings of the full-columns method in words; None for another method),
        advice (sentences)

    Raises
    ------
    ValueError
        If no entry is known.
    """
    m, n = o.shape
    if o.values.size == 0:
        raise ValueError(nothing_known(o.shape))
    cleaned = screened(Whole(o)).cleaned(o)
    columns = _side(o.n_observed, m)
    rows = _side(np.bincount(o.rows, minlength=m), n)
    n_learnable = (m - rows["empty"]) * (n - columns["empty"])
    method, reason = chosen_method(o) if o.values.size < n_learnable else (None, "")
    facts = {
        "verdict": _ONLY_EMPTY if n_learnable < m * n and method is None else _verdict(method, reason, columns),
        "method": method,
        "shape": [m, n],
        "n_observed": int(o.rows.size),
        "share": o.rows.size / (m * n),
        "columns": columns,
        "rows": rows,
        "complete_side": _complete_side(columns, rows),
        "spectrum": _spectrum(cleaned) if columns["full"] else None,
        "trial": learn(o, cleaned=cleaned).choices if method == "full columns" and columns["partial"] else None,
    }
    about_skew = [] if method is None else about_logarithms(o)
    return Inspection(facts, advice=[*about_outliers(o), *about_skew, *_advice(o, facts)])


def about_outliers(o: Observations) -> list[str]:
    """A sentence that names the most suspicious value; none if there is no such value."""
    whole, none = Whole(o), found_at(o, np.zeros(0, np.int64))
    outliers = screened_in_words(whole, screened(whole), none, o.names_in_messages, is_used=False)
    return [f"Check the data first: {outliers}."] if outliers else []


def _verdict(method: str | None, reason: str, columns: dict) -> str:
    """Whether the table can be filled, and from what."""
    full, n_open = columns["full"], columns["partial"] + columns["empty"]
    if method is None:
        return "This table is complete: there is nothing to fill."
    if full == 0:
        return "This table can be filled: every column has gaps, so colonnade learns from all of them."
    of = f"{full:,} of {counted(full + n_open, 'column')} {_are(full)} complete"
    if method == "full columns":
        return f"This table can be filled: {of}, and colonnade fills the others from {'it' if full == 1 else 'them'}."
    return f"This table can be filled: {of}. colonnade learns from all columns, {reason}."


def _side(counts: np.ndarray, whole: int) -> dict:
    partial = counts[(counts > 0) & (counts < whole)]
    least, median, most = (float(f(partial)) if partial.size else 0.0 for f in (np.min, np.median, np.max))
    return {
        "full": int((counts == whole).sum()),
        "empty": int((counts == 0).sum()),
        "partial": int(partial.size),
        "least": int(least),
        "median": median,
        "most": int(most),
    }


def _complete_side(columns: dict, rows: dict) -> str:
    sides = [side for side, found in (("columns", columns), ("rows", rows)) if found["full"]]
    return {0: "neither", 1: sides[0] if sides else "", 2: "both"}[len(sides)]


def _spectrum(o: Observations) -> dict:
    """Singular values of the full columns about their row means, and in how many directions they vary."""
    m, d = o.shape[0], o.full_columns.size
    centered = d >= 3
    limit = 50 if float(m) * d > _LARGE else None
    space = fit_column_space(o, rank=limit, center=centered)
    values = space.singular_values
    known = np.cumsum((values / values[0]) ** 2) if values.size else np.zeros(0)
    return {
        "centered": centered,
        "numerical_rank": None if limit is not None and values.size == limit else int(values.size),
        "directions_for_90": int(np.searchsorted(known, 0.9 * known[-1]) + 1) if known.size else 0,
        "directions_for_99": int(np.searchsorted(known, 0.99 * known[-1]) + 1) if known.size else 0,
        "relative_values": [float(v) for v in values[:_SHOWN_VALUES] / values[0]] if values.size else [],
    }


# ---------------------------------------------------------------------------------------------------- advice


def _advice(o: Observations, facts: dict) -> list[str]:
    columns, rows = facts["columns"], facts["rows"]
    if facts["method"] != "full columns":
        return _advice_for_all_columns(o)
    advice = [
        *_about_learning(o.shape[0], columns, facts["spectrum"]),
        *_about_entries(o.shape[0], columns, facts["spectrum"]),
    ]
    advice += _about_empty("column", o.column_names, np.flatnonzero(o.n_observed == 0))
    if rows["full"] > columns["full"] and rows["partial"]:
        advice.append(
            f"More rows ({rows['full']:,}) than columns ({columns['full']:,}) are complete. Try the transposed table"
            " (--transpose) too, and keep the result with the smaller typical error."
        )
    if facts["trial"] and "explain little" in facts["trial"].get("fit", ""):
        advice.append(
            "The complete columns explain little of the others. Complete columns that resemble them would help most."
        )
    return advice


def _about_learning(m: int, columns: dict, spectrum: dict) -> list[str]:
    d, k = columns["full"], spectrum["directions_for_99"]
    rank = spectrum["numerical_rank"]
    most = min(m, d - 1 if spectrum["centered"] else d)
    if d < 3:
        return [f"Only {counted(d, 'column')} {_are(d)} complete, which shows few patterns. Measure more in full."]
    if rank is not None and rank < most:
        return [f"The complete columns have rank {rank:,} only, because they repeat each other."]
    if k > 0.8 * most and most < m:
        return [
            f"The {d:,} complete columns vary in {counted(k, 'direction')}, nearly as many as there are columns."
            " More complete columns would help."
        ]
    return []


def _about_entries(m: int, columns: dict, spectrum: dict) -> list[str]:
    few, usual, k = columns["least"], columns["median"], spectrum["directions_for_99"]
    if not columns["partial"]:
        return []
    if usual <= k:
        enough = f" Measure {k + 5:,} values of each column to avoid that." if k + 5 < m / 2 else ""
        return [
            f"A typical column has {usual:,.0f} known values, and the table varies in {counted(k, 'direction')}:"
            f" part of each column is filled by typical values.{enough}"
        ]
    if few <= k:
        return [
            f"Some columns have only {few:,} known values for {counted(k, 'direction')}."
            " Check their verdicts in the result."
        ]
    return [f"Every column has enough known values: at least {few:,} for {counted(k, 'direction')}."]


def _advice_for_all_columns(o: Observations) -> list[str]:
    """Rows and columns with too few known values."""
    advice = []
    for side, names, counts, whole in (
        ("row", o.row_names, np.bincount(o.rows, minlength=o.shape[0]), o.shape[1]),
        ("column", o.column_names, o.n_observed, o.shape[0]),
    ):
        empty, thin = np.flatnonzero(counts == 0), np.flatnonzero((counts > 0) & (counts < min(_FEW, whole)))
        advice += _about_empty(side, names, empty)
        if thin.size:
            their = "its" if thin.size == 1 else "their"
            advice.append(
                f"{_named(side, names, thin)} with fewer than {_FEW} known values {_are(thin.size)} hard to predict."
                f" Look at {their} intervals, or measure more values."
            )
    return advice


def _about_empty(side: str, names, empty) -> list[str]:
    if not empty.size:
        return []
    it, its = ("it", "its") if empty.size == 1 else ("them", "their")
    how = " (--ignore, ignore=...)" if side == "column" else ""
    return [
        f"{_named(side, names, empty)} without any value cannot be predicted. Leave {it} out{how}, or measure some of"
        f" {its} values."
    ]


def _named(side: str, names, places) -> str:
    """The number of rows or columns, and the names of the first."""
    some = ", ".join(str(named(names, i)) for i in places[:NAMED]) + (", ..." if places.size > NAMED else "")
    return f"{counted(places.size, side)} ({some})"


def inspection_in_words(facts: dict) -> list[str]:
    """The facts as lines to read, the verdict first; the advice is not among them."""
    m, n = facts["shape"]
    lines = [
        facts["verdict"],
        f"Known: {facts['n_observed']:,} of {m * n:,} values ({100 * facts['share']:.3g} %) in"
        f" {counted(m, 'row')} and {counted(n, 'column')}.",
        "Columns: " + _side_in_words(facts["columns"], m),
        "Rows: " + _side_in_words(facts["rows"], n),
    ]
    if facts["spectrum"] is not None and facts["spectrum"]["numerical_rank"] != 1:
        lines.append(_spectrum_in_words(facts["spectrum"]))
    if facts["trial"] is not None:
        found = (facts["trial"].get(name, "") for name in ("rank", "fit"))
        # The typical error of a filled table is in its verdict, in another unit.
        lines += [f"Test fit: {words}." for words in found if words and "typical error" not in words]
    return lines


def _side_in_words(side: dict, whole: int) -> str:
    words = f"{side['full']:,} complete, {side['partial']:,} with gaps, {side['empty']:,} empty"
    if not side["partial"]:
        return words + "."
    least, median, most = side["least"], side["median"], side["most"]
    if least == most:
        return f"{words}. Those with gaps have {least:,} of {whole:,} values each."
    return f"{words}. Those with gaps have {least:,} to {most:,} of {whole:,} values (median {median:,.0f})."


def _spectrum_in_words(spectrum: dict) -> str:
    rank = spectrum["numerical_rank"]
    known = "" if rank is None else f" of {rank:,}"
    return (
        f"Spectrum: 90 % of the variance of the complete columns lies in {spectrum['directions_for_90']:,}{known}"
        f" directions, 99 % in {spectrum['directions_for_99']:,}."
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
