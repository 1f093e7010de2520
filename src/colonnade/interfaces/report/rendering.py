"""Pages from templates: styles and scripts stand in the page, and its security policy knows them by their hashes."""

from __future__ import annotations

import base64
import hashlib
import math
from importlib import resources


def rendered(page: str, styles: tuple[str, ...], content: dict, script: str | None = None) -> str:
    """A page as text.

    Parameters
    ----------
    page, styles, script : str, tuple of str, str or None
        Names of files in the folder of templates.
    content : dict
        What the template fills in.
    """
    from jinja2 import Environment, StrictUndefined

    folder = resources.files(__package__) / "templates"
    style = "".join((folder / name).read_text(encoding="utf-8") for name in styles)
    parts = {"style": style, "style_hash": _source_hash(style)}
    if script is not None:
        code = (folder / script).read_text(encoding="utf-8")
        parts |= {"script": code, "script_hash": _source_hash(code)}
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template.filters["number"] = _number
    return template.from_string((folder / page).read_text(encoding="utf-8")).render(**parts, **content)


def _source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _number(value) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.3g}"
    return "" if value != value else f"{value:,}"
