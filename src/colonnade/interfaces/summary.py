"""What became of a completion, in numbers for machines and in words for people."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from .._support.arguments import shown
from ..model.solve import Status
from ..uncertainty.certificates import verdicts_in_words

_NOTEBOOK_COLUMNS = 20_000  # up to which a notebook shows the verdicts; more would make it wait


def summarise(completion, *, verdicts: bool = True) -> dict:
    """The facts of a completion, all of them such that JSON can hold them.

    Parameters
    ----------
    completion : Completion
    verdicts : bool
        Whether to look at every column again for its certificate, which takes about as long as solving it, and to
        judge the whole.

    Returns
    -------
    dict
        verdict (its word and sentence; None if not asked for),
        method ("factor model", "full columns" or another name), orientation ("columns" or "rows": what is filled),
        shape, n_observed, n_full_columns, n_filled_columns, n_unfilled_columns, n_unfilled_rows, n_filled_entries,
        rank, noise_std (None if not known), choices, statuses and verdicts (counts of columns), trust (the verdicts in
        words, with what would help), unfilled (at most 10 columns, with their name if they have one, and what would
        help)
    """
    m, n = completion.shape
    seen, status = completion.n_observed, completion.status
    filled, full = np.isin(status, [one for one in Status if one.is_filled]), status == Status.FULL
    table = completion.certificates(as_frame=False) if verdicts else None
    words, counts = np.unique(table.verdict if verdicts else (), return_counts=True)
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
        "unfilled": [_unfilled(completion, int(j)) for j in np.flatnonzero(~filled)[:10]],
    }


def _trust(completion, table) -> list[str]:
    """The verdicts in words, and before them what may have spoiled some of them."""
    wild = completion.choices.get("wild")
    first = [f"first look at what may be wrong in the data: {wild}"] if wild else []
    return first + verdicts_in_words(completion, table)


def _unfilled(completion, j: int) -> dict:
    names = completion.column_names
    message = Status(completion.status[j]).message
    return {"column": j, "name": None if names is None else shown(names[j]), "message": message}


def in_words(summary: dict) -> list[str]:
    """The summary as lines to read."""
    (m, n), full = summary["shape"], summary["n_full_columns"]
    share = 100 * summary["n_observed"] / (m * n)
    entries, columns = _counted(summary["n_filled_entries"], "entry"), _counted(summary["n_filled_columns"], "column")
    choices = dict(summary["choices"])
    aside = choices.pop("set aside", None)
    verdict = summary["verdict"]
    lines = [] if verdict is None else [f"Verdict: {verdict['word']}. {verdict['sentence']}"]
    lines += [] if aside is None else [f"Set aside and returned unchanged: {aside}."]
    parts = f"{_counted(summary['n_observed'], 'entry')}; every column has gaps"
    if full:
        others = _counted(summary["n_observed"] - full * m, "entry")
        parts = f"{_counted(full, 'column')} in full and {others} of the other {n - full:,}"
    lines += [
        f"Seen: {share:.3g} % of a {m:,} x {n:,} matrix, {parts}.",
        f"Filled: {entries} of {columns}.",
    ]
    lines += [f"Chosen, {name}: {words}." for name, words in choices.items()]
    return lines + [f"Trust: {line}." for line in summary["trust"]] + not_filled(summary)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else {'entry': 'entries'}.get(noun, noun + 's')}"


def not_filled(summary: dict) -> list[str]:
    """The rows and columns that could not be filled, and what would help."""
    count, some, n_rows = summary["n_unfilled_columns"], summary["unfilled"], summary["n_unfilled_rows"]
    rows = [f"Not filled: {_counted(n_rows, 'row')} without any entry; measure some entries."] if n_rows else []
    if not count:
        return rows
    named = ", ".join(one["name"] or str(one["column"]) for one in some[:3]) + (", ..." if count > 3 else "")
    return [f"Not filled: {_counted(count, 'column')} ({named}); the first {some[0]['message']}.", *rows]


def notebook_html(completion) -> str:
    """What a notebook shows of a completion: what it is, what was chosen and how far to trust it."""
    lines = in_words(summarise(completion)) if completion.shape[1] <= _NOTEBOOK_COLUMNS else []
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(words)}</td></tr>'
        for name, _, words in (line.partition(": ") for line in lines)
    )
    return f"<div><strong>{escape(repr(completion)[1:-1])}</strong><table>{rows}</table></div>"
