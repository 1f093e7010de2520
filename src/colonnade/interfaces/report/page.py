"""The report: a finished completion as one HTML file that needs nothing else.

It reads the result and fits nothing. Names are escaped by the template and shortened. A content security policy lets
the page load nothing and run one script, known by its hash.
"""

from __future__ import annotations

from ..._support.atomic_writing import new_file
from ...uncertainty.diagnostics import hold_out
from ..summary import label_of, shown_choices, summarise
from . import details, evidence, maps
from .cells import sampled, units_of
from .downloads import downloads
from .first_screen import first_screen
from .rendering import rendered

_MOST_CELLS = 20_000  # Cells of the heat maps: with values and intervals at most 600 kB.
_MOST_RANKED = 150_000  # Cells by which the least certain rows and columns are found: about a second.


def write_report(completion, path, *, command: str | None = None, name: str | None = None, force: bool = False) -> None:
    """Write the report of a completion, whole or not at all.

    Parameters
    ----------
    completion : Completion
    path : str or path
    command : str, optional
        The command line that made the result, to be shown.
    name : str, optional
        Of the table, for the heading. Default: the file that was read, if the result knows it.
    force : bool
        Replace a file that exists.
    """
    with new_file(path, force=force) as working:
        working.write_text(report_html(completion, command=command, name=name), encoding="utf-8")


def report_html(completion, *, command: str | None = None, name: str | None = None) -> str:
    """The report as text; parameters as of `write_report`."""
    return rendered("report.html", ("report.css",), _content(completion, command, name), script="report.js")


def _content(completion, command: str | None, name: str | None) -> dict:
    summary, found = summarise(completion), hold_out(completion)
    cells = sampled(completion, _MOST_CELLS)
    units = units_of(completion, cells)
    ranked = cells if cells.values.shape == completion.shape else sampled(completion, _MOST_RANKED)
    worst = evidence.worst(completion, ranked, units)
    columns = details.open_columns(completion, completion.certificates(as_frame=False))
    return {
        "first": first_screen(completion, summary, found, name or completion.run.get("file"), worst),
        "table": _table(completion, cells, units),
        "downloads": downloads(completion, cells),
        "gaps": evidence.gaps(completion),
        "prediction": None if found is None else evidence.prediction(completion, found, units),
        "coverage": None if found is None else evidence.coverage(completion, found, units),
        "worst": worst,
        "verdicts": details.verdict_bar(summary["verdicts"]),
        "advice": [line for line in summary["trust"] if ": " in line and not line.startswith("check the data")],
        "columns": columns[: details.MOST_ROWS],
        "n_open": len(columns),
        "choices": [(label_of(name), words) for name, words in shown_choices(completion.choices, summary["verdict"])],
        "pictures": details.pictures(completion, found),
        "spectrum": details.spectrum_words(completion, summary),
        "run": details.run_facts(completion, command),
    }


def _table(completion, cells, units) -> dict:
    """Heat maps of the table, with what the pointer shows."""
    (m, n), (k, l) = completion.shape, cells.values.shape
    sample = "" if (k, l) == (m, n) else f"The pictures show {k:,} of {m:,} rows and {l:,} of {n:,} columns."
    unsure = None if cells.low is None else maps.unsure_map(units.widths(cells))
    side = units.kind if units.is_mixed else ""
    values = maps.value_maps(cells, units)
    ends = ["low", "high"] if units.is_mixed else [f"{values[end]:.3g}" for end in ("low", "high")]
    return {
        **values,
        "unsure": unsure,
        "scale": maps.scale_picture(),
        "fade": maps.fade_picture(),
        "ends": ends,
        "colours": f"Colours compare the values of each {side} with each other." if side else "",
        "sample": sample,
        "facts": maps.hover_facts(completion, cells),
    }
