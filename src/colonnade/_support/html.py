"""Small tables for notebooks; every text is escaped."""

from __future__ import annotations

from html import escape

_LEFT = ' style="text-align:left"'


def html_table(head, rows) -> str:
    """A table with a line of titles; the first cell of a row is text, the others are numbers."""
    titles = "".join(f"<th{'' if k else _LEFT}>{escape(str(one))}</th>" for k, one in enumerate(head))
    lines = (
        "".join(f"<td{'' if k else _LEFT}>{escape(str(one))}</td>" for k, one in enumerate(cells)) for cells in rows
    )
    return f"<table><tr>{titles}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def html_lines(lines) -> str:
    """Sentences as paragraphs."""
    return "".join(f"<p>{escape(str(line))}</p>" for line in lines)


def html_facts(lines) -> str:
    """Lines such as "Columns: 3 full" as a table of names and what is said of them."""
    parts = (line.partition(": ") for line in lines)
    rows = (f"<tr><th{_LEFT}>{escape(name)}</th><td{_LEFT}>{escape(words)}</td></tr>" for name, _, words in parts)
    return f"<table>{''.join(rows)}</table>"
