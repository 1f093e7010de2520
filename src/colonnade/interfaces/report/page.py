"""The report: a finished completion as one HTML file that needs nothing else.

It reads the result and fits nothing anew. Names are escaped by the template and shortened; a content security policy
lets the page load nothing and run one script, known by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import io
import math
import re
from importlib import resources

import numpy as np

from ..._support.arguments import printable
from ..._support.atomic_writing import new_file
from ..._support.provenance import versions
from ...uncertainty.certificates import remedy
from ...uncertainty.diagnostics import HeldOut, hold_out, spectrum
from ..plots import PICTURES, Palette
from ..summary import summarise

_MOST_ROWS = 500  # of the table of columns
_LONGEST_NAME, _LONGEST_COMMAND = 60, 2_000
_WORST_FIRST = (
    "overflow",
    "no observation",
    "too few entries",
    "not determined",
    "off the column space",
    "poor fit",
    "prior alone",
    "prior decides",
    "weakly determined",
    "unchecked",
    "approximate",
)
_GOOD = "recovered", "observed in full"
# Colours that stand for those of the page, which knows whether it is dark.
_STAND_INS = Palette("#010203", "#010204", "#010205", "#010206")
_VARIABLES = {"#010203": "--text", "#010204": "--faint", "#010205": "--main", "#010206": "--other"}
_ALT = {
    "coverage": "Picture of the matrix: the darker a place, the more of its entries were seen.",
    "spectrum": "Plot of the standard deviation of the columns along each direction, with the noise as a line.",
    "prediction": "Scatter plot of predicted values of entries left out against their true values, with the diagonal.",
    "calibration": "Plot of the share of entries within their intervals against the level of the intervals.",
}


_COVERAGE = "Rows from top to bottom, columns sorted by how much of them was seen."
_CALIBRATION = "Points on the line keep their promise; points above are cautious, points below too sure."


def write_report(completion, path, *, command: str | None = None, force: bool = False) -> None:
    """Write the report of a completion, whole or not at all.

    Parameters
    ----------
    completion : Completion
    path : str or path
    command : str, optional
        The command line that made the result, to be shown.
    force : bool
        Replace a file that exists.
    """
    with new_file(path, force=force) as working:
        working.write_text(report_html(completion, command=command), encoding="utf-8")


def report_html(completion, *, command: str | None = None) -> str:
    """The report as text; parameters as of `write_report`."""
    from jinja2 import Environment, StrictUndefined

    folder = resources.files(__package__) / "templates"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template.filters["number"] = _number
    page = template.from_string((folder / "report.html").read_text(encoding="utf-8"))
    return page.render(
        style=style,
        script=script,
        style_hash=_source_hash(style),
        script_hash=_source_hash(script),
        **_content(completion, command),
    )


def _source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _content(completion, command: str | None) -> dict:
    summary, table, found = summarise(completion), completion.certificates(as_frame=False), hold_out(completion)
    rows = _open_columns(completion, table)
    return {
        "summary": summary,
        "headline": _headline(summary, found),
        "verdicts": _bar(summary["verdicts"]),
        "trust": [line for line in summary["trust"] if ": " in line],
        "pictures": _pictures(completion, found),
        "words": _picture_words(completion, summary, found),
        "columns": rows[:_MOST_ROWS],
        "n_open": len(rows),
        "choices": completion.choices,
        "run": _run(completion, command),
    }


# ----------------------------------------------------------------------------------------------------- words


def _headline(summary: dict, found: HeldOut | None) -> dict:
    """What was seen, what was filled, how far to trust it: a sentence each."""
    (m, n), full = summary["shape"], summary["n_full_columns"]
    seen = f"{summary['n_observed']:,} of {m * n:,} entries ({_percent(summary['n_observed'] / (m * n))}): "
    if full:
        seen += f"{full:,} of {n:,} columns in full, and {summary['n_observed'] - full * m:,} entries of the other"
        seen += f" {n - full:,}."
    else:
        seen += "every column has gaps."
    filled = f"{summary['n_filled_entries']:,} entries of {summary['n_filled_columns']:,} columns."
    if summary["n_unfilled_columns"]:
        filled += f" {summary['n_unfilled_columns']:,} columns could not be filled and are left empty."
    if summary["n_unfilled_rows"]:
        one = summary["n_unfilled_rows"] == 1
        filled += f" {summary['n_unfilled_rows']:,} {'row' if one else 'rows'} without any entry"
        filled += f" {'is' if one else 'are'} left empty."
    return {"seen": seen, "filled": filled, "trust": _trust(summary, found)}


def _trust(summary: dict, found: HeldOut | None) -> str:
    partial = summary["shape"][1] - summary["n_full_columns"]
    if partial == 0:
        return "Every column was seen in full: there is nothing to doubt."
    verdicts = sorted(summary["verdicts"].items(), key=lambda pair: -pair[1])
    others = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts if verdict not in _GOOD)
    good = f"{summary['verdicts'].get('recovered', 0):,} are recovered as well as the noise allows"
    words = f"Of {partial:,} columns to fill, {good}{', ' + others if others else ''}."
    if found is None:
        return words + " No entry could be left out to test the predictions."
    share, of = found.error / found.spread if found.spread else 0.0, "their spread"
    if summary["method"] == "factor model":
        of = f"the standard deviation of the {'columns' if summary['orientation'] == 'rows' else 'rows'}"
    at_90 = float(found.coverage[np.argmin(np.abs(found.levels - 0.9))])
    return (
        f"{words} Known entries, predicted as if they were not, are off by {_number(found.error)} (root mean square),"
        f" {_percent(share)} of {of}; {_percent(at_90)} of them lie within their {_percent(0.9)} interval."
    )


def _picture_words(completion, summary: dict, found: HeldOut | None) -> dict:
    """A sentence or two under each picture."""
    if completion.learned is not None:
        return _picture_words_of_factor_model(completion, summary, found)
    noise, optimism = summary["noise_std"], completion.optimism
    below = "the prior helps with those below" if completion.noise_variance else "those below are mostly noise"
    left_out = "Nothing could be left out: too few entries, or a method that fits all columns together."
    if found is not None:
        left_out = f"{found.truth.size:,} known entries, each left out and predicted from the others of its column."
    return {
        "learned": "What the full columns taught" if completion.by_columns else "What was learned",
        "coverage": _COVERAGE,
        "spectrum": f"{_directions(completion.rank)} in use"
        + ("" if noise is None else f", the noise of an entry is {_number(noise)}")
        + (". Rings are what the full columns show, dots what is used." if summary["n_full_columns"] else ".")
        + " A column with the usual number of entries tells"
        + f" those above the dashed line by itself; {below}.",
        "prediction": left_out
        + (
            f" Refinement had seen them, so errors are taken to be {optimism:.2f} times as large as drawn."
            if optimism > 1.005 and found is not None
            else ""
        ),
        "calibration": f"Intervals of half of the columns, calibrated on the other half, and the other way round."
        f" {_CALIBRATION}",
    }


def _picture_words_of_factor_model(completion, summary: dict, found: HeldOut | None) -> dict:
    """The same where all columns were learned from."""
    directions = spectrum(completion)
    above, rank = directions.n_above_noise, completion.rank
    noise = f"The noise of an entry is {_number(summary['noise_std'])}."
    told = (
        f"{above:,} of {rank:,} directions {'is' if above == 1 else 'are'} above the dashed line: a column with the"
        f" usual number of entries determines {'it' if above == 1 else 'them'} by itself. The others are pulled to"
        f" zero. {noise}"
    )
    if above == 0:
        told = f"No direction is above the dashed line: the noise hides all of them. {noise}"
    exact = f"{_directions(rank)} in use. The entries fit to rounding, so there is no noise."
    left_out = "Nothing could be left out: there are too few entries."
    if found is not None:
        left_out = f"{found.truth.size:,} known entries, hidden together and predicted from the rest of the table."
    return {
        "learned": "What all columns taught",
        "coverage": _COVERAGE,
        "spectrum": exact if completion.learned.is_exact else told,
        "prediction": left_out,
        "calibration": "Intervals of half of the hidden entries, calibrated on the other half, and the other way"
        f" round. {_CALIBRATION}",
    }


def _directions(rank: int) -> str:
    return "1 direction is" if rank == 1 else f"{rank:,} directions are"


def _run(completion, command: str | None) -> dict:
    """How to compute the result again, as far as it is known."""
    run = completion.run
    settings = run.get("settings", {})
    given = {name: value for name, value in settings.items() if value not in (None, "auto")}
    call = "colonnade.complete_triples(paths, out" if "input" in run else "colonnade.complete(data"
    line = command or run.get("command")
    line = None if line is None else printable(line)
    return {
        "command": line if line is None or len(line) <= _LONGEST_COMMAND else line[: _LONGEST_COMMAND - 3] + "...",
        "python": call + "".join(f", {name}={value!r}" for name, value in given.items()) + ")" if settings else None,
        "seed": settings.get("random_state"),
        "versions": run.get("versions") or versions(),
        "versions_known": "versions" in run,
    }


def _number(value) -> str:
    return (
        f"{value:.3g}" if isinstance(value, float) and math.isfinite(value) else "" if value != value else f"{value:,}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g}\N{NO-BREAK SPACE}%"


# ----------------------------------------------------------------------------------------------------- table


def _bar(verdicts: dict) -> list[dict]:
    """The verdicts as parts of a bar of width 100, the good ones first."""
    total, left, parts = sum(verdicts.values()), 0.0, []
    order = [*_GOOD[::-1], *_WORST_FIRST[::-1]]
    for verdict, count in sorted(verdicts.items(), key=lambda pair: order.index(pair[0])):
        kind = "full" if verdict == "observed in full" else "good" if verdict in _GOOD else "open"
        kind = "bad" if verdict in _WORST_FIRST[:6] else kind
        width = 100 * count / total
        parts.append({"verdict": verdict, "count": count, "left": left, "width": width, "kind": kind})
        left += width
    return parts


def _open_columns(completion, table) -> list[dict]:
    """The columns that need help, the worst first."""
    open_ones = table[~np.isin(table.verdict, _GOOD)]
    badness = {verdict: k for k, verdict in enumerate(_WORST_FIRST)}
    uncertain = np.nan_to_num(open_ones.uncertainty, nan=-1.0, posinf=np.inf)
    largest = uncertain[np.isfinite(uncertain)].max(initial=0) or 1.0
    uncertain = (uncertain / largest).round(9)  # lest rounding errors decide which column comes first
    order = np.lexsort((-uncertain, [badness[str(verdict)] for verdict in open_ones.verdict]))
    names = completion.column_names
    return [_open_column(one, names, badness) if k < _MOST_ROWS else {} for k, one in enumerate(open_ones[order])]


def _open_column(one, names, badness: dict) -> dict:
    verdict, j = str(one["verdict"]), int(one["column"])
    return {
        "column": j,
        "name": None if names is None else plain_name(names[j]),
        "n_observed": int(one["n_observed"]),
        "uncertainty": float(one["uncertainty"]),
        "residual": float(one["residual"]),
        "more_entries": int(one["more_entries"]),
        "verdict": verdict,
        "badness": badness[verdict],
        "remedy": remedy(verdict, int(one["more_entries"])),
    }


def plain_name(name) -> str:
    """A name short enough to read, with what is not printable shown by its code."""
    text = str(name)
    text = text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 3] + "..."
    return printable(text)


# -------------------------------------------------------------------------------------------------- pictures


def _pictures(completion, found: HeldOut | None) -> dict:
    """The pictures as inline SVG, marked as safe: they hold numbers and our own words only."""
    from markupsafe import Markup

    known = {"spectrum": spectrum(completion), "prediction": found, "calibration": found}
    result = {}
    for name, draw in PICTURES.items():
        extra = () if name == "coverage" else (known[name],)
        if name in ("prediction", "calibration") and found is None:
            continue
        result[name] = Markup(_svg(name, lambda ax, d=draw, e=extra: d(ax, completion, _STAND_INS, *e)))
    return result


def _svg(name: str, draw) -> str:
    """One picture as inline SVG that takes its colours from the page."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.usetex": False,
        "font.family": "sans-serif",
        "font.size": 9.5,
        "text.color": _STAND_INS.text,
        "axes.labelcolor": _STAND_INS.text,
        "axes.edgecolor": _STAND_INS.faint,
        "xtick.color": _STAND_INS.text,
        "ytick.color": _STAND_INS.text,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with rc_context(settings):
        figure = Figure(figsize=(5.2, 3.0 if name == "coverage" else 3.6), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        ax = figure.subplots()
        ax.patch.set_alpha(0)
        draw(ax)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inlined(buffer.getvalue(), name)


def _inlined(svg: str, name: str) -> str:
    """Without header, metadata and styles, with names of its own, a description and the colours of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.S)
    svg = re.sub(r' style="([^"]*)"', _as_attributes, svg)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    view = re.search(r'viewBox="[^"]*"', svg).group()
    head = f'<svg class="picture" {view} role="img" aria-label="{_ALT[name]}" stroke-linejoin="round"'
    return re.sub(r"<svg[^>]*>", f'{head} xmlns:xlink="http://www.w3.org/1999/xlink">', svg, count=1)


def _as_attributes(found: re.Match) -> str:
    """A style as attributes, which a policy against inline styles lets pass."""
    pairs = [part.split(":", 1) for part in found.group(1).split(";") if ":" in part]
    attributes = {}
    for name, value in ((name.strip(), value.strip()) for name, value in pairs):
        if name == "font":  # such as 10px 'DejaVu Sans', sans-serif
            attributes["font-size"] = re.search(r"[\d.]+px", value).group()
        elif name not in ("image-rendering", "mix-blend-mode"):
            attributes[name] = value
    return "".join(f' {name}="{value}"' for name, value in attributes.items())
