"""Lists every public method on the page of the reference, as `colonnade.methods` imports them."""

import ast
from pathlib import Path

METHODS = Path(__file__).parent.parent / "src" / "colonnade" / "methods" / "__init__.py"


def on_page_markdown(markdown, page, **_):
    """What stands for the methods becomes one entry each; mkdocs calls this for every page."""
    return markdown.replace("{{ methods }}", "\n\n".join(_entries())) if page.file.src_uri == "api.md" else markdown


def _entries():
    for node in ast.parse(METHODS.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            yield from (f"::: colonnade.methods.{node.module}.{name.name}" for name in node.names)
