"""The last section of the report: columns one by one, settings, spectrum, and how to compute the result again."""

from __future__ import annotations

import io
import re

import numpy as np

from ..._support.provenance import versions
from ...uncertainty.column_verdict import ColumnVerdict, remedy
from ...uncertainty.diagnostics import HeldOut, spectrum
from ..plots import Palette, draw_calibration, draw_spectrum
from .cells import plain_name, shown_command

MOST_ROWS = 300  # Rows of the table of columns.
WORST_FIRST = tuple(verdict.value for verdict in reversed(ColumnVerdict) if not verdict.is_good)
# Colours that stand for those of the page, which knows whether it is dark.
_STAND_INS = Palette("#010203", "#010204", "#010205", "#010206")
_VARIABLES = {"#010203": "--text", "#010204": "--faint", "#010205": "--main", "#010206": "--other"}
_ALT = {
    "spectrum": "Plot of the standard deviation of the columns along each direction, with the noise as a line.",
    "calibration": "Plot of the share of values inside their intervals against the level of the intervals.",
}


def verdict_bar(verdicts: dict) -> list[dict]:
    """The verdicts on the columns as parts of a bar of width 100, the good ones first."""
    total, left, parts = sum(verdicts.values()), 0.0, []
    for verdict, count in sorted(verdicts.items(), key=lambda pair: ColumnVerdict(pair[0]).severity):
        found = ColumnVerdict(verdict)
        kind = "full" if found == ColumnVerdict.FULL else "good" if found.is_good else "bad" if found.is_bad else "open"
        width = 100 * count / total
        parts.append({"verdict": found.shown, "count": count, "left": left, "width": width, "kind": kind})
        left += width
    return parts


def open_columns(completion, table) -> list[dict]:
    """The columns that need help, the worst first; only the first `MOST_ROWS` have facts."""
    open_ones = table[np.isin(table.verdict, WORST_FIRST)]
    badness = {verdict: k for k, verdict in enumerate(WORST_FIRST)}
    uncertain = np.nan_to_num(open_ones.uncertainty, nan=-1.0, posinf=np.inf)
    largest = uncertain[np.isfinite(uncertain)].max(initial=0) or 1.0
    uncertain = (uncertain / largest).round(9)  # Rounding errors must not decide which column comes first.
    order = np.lexsort((-uncertain, [badness[str(verdict)] for verdict in open_ones.verdict]))
    names = completion.column_names
    m = completion.shape[0]
    return [_open_column(one, names, badness, m) if k < MOST_ROWS else {} for k, one in enumerate(open_ones[order])]


def _open_column(one, names, badness: dict, m: int) -> dict:
    verdict, j = str(one["verdict"]), int(one["column"])
    return {
        "column": j,
        "name": None if names is None else plain_name(names[j]),
        "n_observed": int(one["n_observed"]),
        "uncertainty": float(one["uncertainty"]),
        "residual": float(one["residual"]),
        "more_entries": int(one["more_entries"]),
        "verdict": ColumnVerdict(verdict).shown,
        "badness": badness[verdict],
        "remedy": remedy(verdict, int(one["more_entries"]), m - int(one["n_observed"])),
    }


def run_facts(completion, command: str | None) -> dict:
    """How to compute the result again, as far as it is known."""
    run = completion.run
    settings = run.get("settings", {})
    given = {name: value for name, value in settings.items() if value not in (None, "auto")}
    call = "colonnade.complete_triples(paths, out" if "input" in run else "colonnade.complete(data"
    return {
        "command": shown_command(command or run.get("command")),
        "python": call + "".join(f", {name}={value!r}" for name, value in given.items()) + ")" if settings else None,
        "seed": settings.get("random_state"),
        "versions": run.get("versions") or versions(),
        "versions_known": "versions" in run,
    }


def spectrum_words(completion, summary: dict) -> str:
    """What the picture of the directions shows."""
    found = spectrum(completion)
    rank = found.n_in_use
    if completion.learned is not None and completion.learned.is_exact:
        return f"{_directions(rank)} in use. The known values fit exactly, so there is no noise."
    noise = "" if summary["noise_std"] is None else f" The noise of one value is {found.noise_std:.3g}."
    if found.is_relative:
        noise += f" Units differ, so all numbers are in standard deviations of each {_other(found.side)}."
    if completion.learned is None:
        rings = (
            " Rings: all directions of the complete columns. Dots: those in use." if summary["n_full_columns"] else ""
        )
        return f"{_directions(rank)} in use.{noise}{rings}"
    above = found.n_above_noise
    if above == 0:
        return f"No direction is above the dashed line: the noise hides all of them.{noise}"
    are = "is" if above == 1 else "are"
    return (
        f"{above:,} of {rank:,} directions {are} above the dashed line: the known values of a typical {found.side}"
        f" determine {'it' if above == 1 else 'them'}."
        + (" The model shrinks the others towards zero." if above < rank else "")
        + noise
    )


def _other(side: str) -> str:
    return "row" if side == "column" else "column"


def _directions(rank: int) -> str:
    return "1 direction is" if rank == 1 else f"{rank:,} directions are"


def pictures(completion, found: HeldOut | None) -> dict:
    """Spectrum and calibration as inline SVG, marked as safe: they hold numbers and our own words only."""
    from markupsafe import Markup

    directions = spectrum(completion)
    result = {"spectrum": Markup(_svg("spectrum", lambda ax: draw_spectrum(ax, completion, _STAND_INS, directions)))}
    if found is not None:
        drawn = _svg("calibration", lambda ax: draw_calibration(ax, completion, _STAND_INS, found))
        result["calibration"] = Markup(drawn)
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
        figure = Figure(figsize=(5.2, 3.2), layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        ax = figure.subplots()
        ax.patch.set_alpha(0)
        draw(ax)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inlined(buffer.getvalue(), name)


def _inlined(svg: str, name: str) -> str:
    """The drawing without header, metadata and styles, with own names, a description and the colours of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.S)
    svg = re.sub(r' style="([^"]*)"', _as_attributes, svg)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    view = next(re.finditer(r'viewBox="[^"]*"', svg)).group()
    head = f'<svg class="picture" {view} role="img" aria-label="{_ALT[name]}" stroke-linejoin="round"'
    return re.sub(r"<svg[^>]*>", f'{head} xmlns:xlink="http://www.w3.org/1999/xlink">', svg, count=1)


def _as_attributes(found: re.Match) -> str:
    """A style as attributes, which a policy against inline styles lets pass."""
    pairs = [part.split(":", 1) for part in found.group(1).split(";") if ":" in part]
    attributes = {}
    for name, value in ((name.strip(), value.strip()) for name, value in pairs):
        if name == "font":  # A font such as 10px 'DejaVu Sans', sans-serif.
            attributes["font-size"] = next(re.finditer(r"[\d.]+px", value)).group()
        elif name not in ("image-rendering", "mix-blend-mode"):
            attributes[name] = value
    return "".join(f' {name}="{value}"' for name, value in attributes.items())
