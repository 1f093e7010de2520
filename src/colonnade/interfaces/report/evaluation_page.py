"""The page of an evaluation: a leaderboard with intervals, where new models stand, and what surprised most.

The picture is plain SVG in the template, coloured by the style of the page. Names are escaped by the template and
shortened; a content security policy lets the page load nothing and run nothing.
"""

from __future__ import annotations

import numpy as np

from ..._support.atomic_writing import new_file
from ..._support.printable import counted
from ..._support.provenance import versions
from .cells import plain_name, shown_command
from .rendering import rendered

_LONGEST_LABEL = 34  # Characters of a name that fit left of the picture.
_MOST_NEW = 30  # New models in the picture and in the tables.
_MOST_LINES = 40  # Models in the picture.
_MOST_REMARKS = 60  # Remarks on the page.
_MOST_SURPRISES = 8  # Questions per new model.
_NEIGHBOURS = 2  # Known models shown above and below each new one.
# Left margin, width, line height and top margin of the picture, in units of its view box.
_LEFT, _WIDTH, _STEP, _TOP = 250.0, 440.0, 20.0, 12.0


def write_evaluation_report(scores, path, *, command: str | None = None, force: bool = False) -> None:
    """Write the page, whole or not at all.

    Parameters
    ----------
    scores : Scores
        What `colonnade.evaluation.score` returned.
    path : str or path
    command : str, optional
        The command line that made it, to be shown.
    force : bool
        Replace a file that exists.
    """
    with new_file(path, force=force) as working:
        working.write_text(evaluation_html(scores, command=command), encoding="utf-8")


def evaluation_html(scores, *, command: str | None = None) -> str:
    """The page as text; parameters as of `write_evaluation_report`."""
    return rendered("evaluation.html", ("report.css", "evaluation.css"), _content(scores, command))


def _content(scores, command: str | None) -> dict:
    m, n = scores.observations.shape
    new = scores.new
    return {
        "title": f"{counted(new.size, 'new model')} on {m:,} questions",
        "level": f"{100 * scores.level:.3g} %",
        "tiles": _tiles(scores, m, n),
        "picture": _picture(scores),
        "models": [_model(scores, int(j)) for j in new[:_MOST_NEW]],
        "n_new": int(new.size),
        "remarks": [{"name": _name(scores, j), "words": words} for j, words in scores.remarks[:_MOST_REMARKS]],
        "surprises": [one for j in new[:_MOST_NEW] for one in [_surprises(scores, int(j))] if one["questions"]],
        "tasks": _tasks(scores),
        "command": shown_command(command),
        "versions": versions(),
    }


# ----------------------------------------------------------------------------------------------------- words


def _tiles(scores, m: int, n: int) -> list[dict]:
    """Label, number and note of the first screen: the best new model, who was asked what, and what to trust."""
    new, table = scores.new, scores.table
    known = {
        "label": "Known models",
        "number": f"{n - new.size:,}",
        "note": f"answered all of the {m:,} questions. {counted(new.size, 'model')} answered only some.",
    }
    if not new.size:
        return [known]
    best = int(new[0])
    rank = f", rank {_ranks(scores, best)}" if new.size < n else ""
    interval = f"{_number(table.low[best])} to {_number(table.high[best])}"
    own = len({column for column, words in scores.remarks if "rests on its own answers" in words})
    return [
        {
            "label": "Best new model",
            "number": _number(table.score[best]),
            "note": f"{_name(scores, best)}: {100 * scores.level:.3g} % interval {interval}{rank}.",
        },
        known,
        {"label": "Unlike the known models", "number": f"{own:,}", "note": _trust(scores, own)},
    ]


def _trust(scores, own: int) -> str:
    words = f"Each interval holds the score with probability {100 * scores.level:.3g} %."
    if own:
        rest = "This score rests on its own answers" if own == 1 else "These scores rest on their own answers"
        words = f"{rest}: see the remarks. {words}"
    if any("were chosen" in words or "count as given" in words for _, words in scores.remarks):
        words += " Some questions were not drawn at random: see the remarks."
    return words


def _model(scores, j: int) -> dict:
    row, m = scores.table[j], scores.observations.shape[0]
    more = int(scores.more_to_halve()[j])
    return {
        "name": _name(scores, j),
        "answers": f"{row.n_observed:,}",
        "score": _number(row.score),
        "interval": f"{_number(row.low)} to {_number(row.high)}",
        "rank": _ranks(scores, j),
        "predicted": _number(row.predicted),
        "own_weight": f"{row.own_weight:.0%}",
        "halve": f"{more:,}" + (" (all)" if row.n_observed + more >= m else ""),
    }


def _surprises(scores, j: int) -> dict:
    """The questions whose answers were least expected, with the answer and what was expected."""
    size = np.nan_to_num(np.abs(scores.surprises[:, j]), nan=-1.0)
    rows = [int(i) for i in np.argsort(-size, kind="stable")[:_MOST_SURPRISES] if size[i] > 0]
    names, unit = scores.observations.row_names, scores.answers.scale
    return {
        "name": _name(scores, j),
        "questions": [
            {
                "name": str(i) if names is None else plain_name(names[i]),
                "answer": _number(float(unit.from_unit(scores.answers.Y[i, j]))),
                "expected": _number(float(scores.expected[i, j])),
                "size": f"{scores.surprises[i, j]:+.1f}",
            }
            for i in rows
        ],
    }


def _tasks(scores) -> list[dict]:
    return [
        {
            "task": plain_name(task),
            "models": [
                {
                    "name": _name(scores, int(j)),
                    "score": _number(table.score[j]),
                    "interval": f"{_number(table.low[j])} to {_number(table.high[j])}",
                }
                for j in scores.new[:_MOST_NEW]
            ],
        }
        for task, table in scores.tasks.items()
    ]


def _ranks(scores, j: int) -> str:
    """Rank among the models that answered everything; a dash if there is none."""
    row = scores.table[j]
    if scores.new.size == scores.table.size:
        return "–"
    low, high = int(row.rank_low), int(row.rank_high)
    return f"{int(row['rank'])}" if low == high else f"{int(row['rank'])} ({low} to {high})"


def _number(value) -> str:
    return f"{value:.3f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.3g}"


def _name(scores, j: int) -> str:
    return plain_name(scores.names[j])


# --------------------------------------------------------------------------------------------------- picture


def _picture(scores) -> dict:
    """Places of everything that the template draws."""
    table, new = scores.table, set(scores.new.tolist())
    shown = _shown(scores)
    low, high = float(table.low[shown].min()), float(table.high[shown].max())
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def x(value) -> float:
        share = (float(value) - low) / (high - low) if high > low else 0.5
        return round(_LEFT + _WIDTH * min(max(share, 0.0), 1.0), 2)

    lines = [
        {
            "y": _TOP + _STEP * (place + 0.5),
            "name": plain_name(scores.names[j], _LONGEST_LABEL),
            "kind": "new" if j in new else "known",
            "x": x(table.score[j]),
            "low": x(table.low[j]),
            "high": x(table.high[j]),
            "said": f"{_name(scores, j)}: {_number(table.score[j])}"
            + (f", {_number(table.low[j])} to {_number(table.high[j])}" if j in new else ""),
        }
        for place, j in enumerate(shown)
    ]
    known = [j for j in range(table.size) if j not in new]
    bottom = _TOP + _STEP * len(shown)
    return {
        "lines": lines,
        "ticks": [{"x": x(value), "words": f"{value:g}"} for value in ticks],
        "rug": sorted({x(table.score[j]) for j in known if low <= table.score[j] <= high}),
        "left": _LEFT,
        "right": _LEFT + _WIDTH,
        "label": _LEFT - 10,
        "bottom": bottom,
        "height": bottom + 40,
        "width": _LEFT + _WIDTH + 20,
        "n_hidden": table.size - len(shown),
        "alt": f"Leaderboard of {len(shown)} models, the best on top; new models have intervals.",
    }


def _shown(scores) -> list[int]:
    """Columns in the picture, the best first: new models, their neighbours, and the best and the worst known ones."""
    score, new = scores.table.score, scores.new[:_MOST_NEW].tolist()
    known = [j for j in np.argsort(-score, kind="stable").tolist() if j not in set(scores.new.tolist())]
    wanted = known[:3] + known[-1:]
    for j in new:
        at = sum(score[i] > score[j] for i in known)
        wanted += known[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS]
    others = list(dict.fromkeys(wanted)) if len(known) > _MOST_LINES - len(new) else known
    return sorted([*new, *others[: _MOST_LINES - len(new)]], key=lambda j: (-score[j], j))


def _ticks(low: float, high: float) -> list[float]:
    """Four to nine round numbers that hold the range."""
    span = high - low if high > low else max(abs(high), 1.0)
    rough = span / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda factor: abs(factor * power - rough))
    first, last = int(np.floor(low / step + 1e-9)), int(np.ceil(high / step - 1e-9))
    return [float(f"{step * k:.12g}") for k in range(first, last + 1)]
