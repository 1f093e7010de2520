"""The summary of a completion: facts for programs, and lines for people."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from .._support.arguments import shown
from .._support.html import html_facts
from .._support.printable import counted
from ..model.solve import Status
from ..uncertainty.column_verdict import verdicts_in_words
from .skew import about_bounds, about_logarithms

_NOTEBOOK_COLUMNS = 20_000  # Columns up to which a notebook shows the verdicts; more take seconds.


def summarise(completion, *, verdicts: bool = True) -> dict:
    """The facts of a completion as JSON can hold them.

    Parameters
    ----------
    completion : Completion
    verdicts : bool
        Whether to compute the verdicts on the table and on every column, which takes about as long as filling it.

    Returns
    -------
    dict
        verdict (word and sentence, or None), method ("factor model", "full columns" or another name),
        orientation ("columns" or "rows": what is filled),
        shape, n_observed, n_full_columns, n_filled_columns, n_unfilled_columns, n_unfilled_rows, n_filled_entries,
        rank, noise_std (None if unknown), choices, statuses and verdicts (number of columns with each), trust (the
        verdicts as lines, with a remedy), advice (sentences), unfilled (at most 10 columns, with name and remedy)
    """
    m, n = completion.shape
    seen, status = completion.n_observed, completion.status
    filled, full = np.isin(status, [one for one in Status if one.is_filled]), status == Status.FULL
    table = completion.certificates(as_frame=False) if verdicts else None
    words, counts = np.unique(() if table is None else table.verdict, return_counts=True)
    noise = completion.noise_std
    n_empty_rows = 0 if completion.center is None else int(np.isnan(completion.center).sum())
    learned = completion.learned
    verdict = completion.verdict if verdicts else None
    return {
        "verdict": None if verdict is None else {"word": verdict.word, "sentence": verdict.sentence},
        "method": "factor model" if learned else completion.choices.get("method", "full columns"),
        "orientation": "rows" if learned and learned.is_turned else "columns",
        "shape": [m, n],
        "n_observed": int(seen.sum()),
        "n_full_columns": int(full.sum()),
        "n_filled_columns": int((filled & ~full).sum()),
        "n_unfilled_columns": int((~filled).sum()),
        "n_unfilled_rows": n_empty_rows,
        "n_filled_entries": int((m - n_empty_rows - seen[filled & ~full]).sum()),
        "rank": completion.rank,
        "noise_std": noise if math.isfinite(noise) else None,
        "choices": completion.choices,
        "statuses": {s.name.lower(): int((status == s).sum()) for s in Status if (status == s).any()},
        "verdicts": dict(zip(words.tolist(), counts.tolist())),
        "trust": _trust(completion, table) if verdicts else [],
        "advice": _advice(completion) if verdicts else [],
        "unfilled": [_unfilled(completion, int(j)) for j in np.flatnonzero(~filled)[:10]],
    }


def _advice(completion) -> list[str]:
    """What may help: bounds, and for a table that is not predicted well logarithms."""
    if completion.observations is None:
        return []
    word = completion.verdict.word
    bounds = [] if word == "do not use it" else about_bounds(completion)
    return [*bounds, *([] if word == "use it" else about_logarithms(completion.observations))]


def _trust(completion, table) -> list[str]:
    """The verdicts on the columns as lines; suspicious values come first."""
    suspect = completion.choices.get("suspicious values")
    first = [f"check the data first: {suspect}"] if suspect else []
    lines = verdicts_in_words(completion, table)
    if completion.verdict.word == "do not use it":  # A column of noise about a level is well determined, to no use.
        lines = [line for line in lines if not line.endswith(" well determined")]
    return first + lines


def _unfilled(completion, j: int) -> dict:
    names = completion.column_names
    message = Status(completion.status[j]).message
    return {"column": j, "name": None if names is None else shown(names[j]), "message": message}


def label_of(choice: str) -> str:
    """The name of a choice as people read it."""
    return choice.capitalize()


def shown_choices(choices: dict, verdict: dict | None) -> list[tuple[str, str]]:
    """Choices with their words; the error of the fit stands in the verdict alone, which may call it unknown."""
    is_said = verdict is not None and "typical error" in choices.get("fit", "")
    return [(name, words) for name, words in choices.items() if not (is_said and name == "fit")]


def in_words(summary: dict) -> list[str]:
    """The summary as lines to read, the verdict first."""
    (m, n), full = summary["shape"], summary["n_full_columns"]
    share = 100 * summary["n_observed"] / (m * n)
    values, columns = counted(summary["n_filled_entries"], "value"), counted(summary["n_filled_columns"], "column")
    choices = dict(summary["choices"])
    aside = choices.pop("set aside", None)
    verdict = summary["verdict"]
    lines = ["Verdict: not computed for results in blocks; run `colonnade report FOLDER`."]
    if verdict is not None:
        lines = [f"Verdict: {verdict['word']}. {verdict['sentence']}"]
    lines += [] if aside is None else [f"Left out and returned unchanged: {aside}."]
    complete = f"{full:,} of {counted(n, 'column')} {'is' if full == 1 else 'are'} complete"
    if full == 0:
        complete = "Every column has gaps; colonnade learned from all of them"
    lines += [
        f"Known: {summary['n_observed']:,} of {m * n:,} values ({share:.3g} %) in {counted(m, 'row')}. {complete}.",
        f"Filled: {values} in {columns}.",
    ]
    lines += [f"Advice: {sentence}" for sentence in summary["advice"]]
    if summary["trust"]:
        choices.pop("suspicious values", None)  # The first line on trust says it.
    lines += [f"{label_of(name)}: {words}." for name, words in shown_choices(choices, verdict)]
    return lines + [f"Trust: {line}." for line in summary["trust"]] + not_filled(summary)


def not_filled(summary: dict) -> list[str]:
    """The rows and columns that could not be filled, and what would help."""
    count, some, n_rows = summary["n_unfilled_columns"], summary["unfilled"], summary["n_unfilled_rows"]
    rows = [f"Not filled: {counted(n_rows, 'row')} without any value. Measure some values there."] if n_rows else []
    if not count:
        return rows
    named = ", ".join(one["name"] or str(one["column"]) for one in some[:3]) + (", ..." if count > 3 else "")
    reason = some[0]["message"].partition(";")[0] if summary["trust"] else some[0]["message"]  # Trust has the remedy.
    which = (
        "It"
        if count == 1
        else "Each"
        if count == len(some) and len({one["message"] for one in some}) == 1
        else "The first"
    )
    return [f"Not filled: {counted(count, 'column')} ({named}). {which} {reason}.", *rows]


def notebook_html(completion) -> str:
    """The summary as a notebook shows it."""
    lines = in_words(summarise(completion)) if completion.shape[1] <= _NOTEBOOK_COLUMNS else []
    return f"<div><strong>{escape(repr(completion)[1:-1])}</strong>{html_facts(lines)}</div>"
