"""The gallery: every script of `examples/gallery` is run, and becomes a page with its outputs and its picture."""

import contextlib
import importlib.util
import io
from functools import cache
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = {path.stem: path for path in sorted((EXAMPLES / "gallery").glob("*.py"))}


def _notebooks():
    spec = importlib.util.spec_from_file_location("make_notebooks", EXAMPLES / "make_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def run(name: str) -> tuple[str, bytes, dict]:
    """The page of a script in Markdown, its picture as PNG, and the names that it has defined."""
    script = SCRIPTS[name].read_text()
    names, parts = {"__name__": "gallery"}, []
    for kind, text in _notebooks().cells_of(script):
        if kind == "markdown":
            parts.append(text)
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, str(SCRIPTS[name]), "exec"), names)
        parts.append(f"```python\n{text}\n```")
        if printed.getvalue():
            parts.append(f"``` {{ .text .output }}\n{printed.getvalue().rstrip()}\n```")
    picture = io.BytesIO()
    names["figure"].savefig(picture, format="png", dpi=110)
    plt.close(names["figure"])
    parts.insert(1, f"![The figure that this example draws]({name}.png)")
    parts.append(f"Download: [script]({name}.py) or [notebook]({name}.ipynb).")
    return "\n\n".join(parts) + "\n", picture.getvalue(), names


def files_of(name: str) -> dict[str, str | bytes]:
    """What the site has of an example: page, picture, script and notebook, by their addresses."""
    page, picture, _ = run(name)
    script, at = SCRIPTS[name].read_text(), f"gallery/{name}"
    notebook = _notebooks().text_of(_notebooks().notebook_of(script))
    return {f"{at}.md": page, f"{at}.png": picture, f"{at}.py": script, f"{at}.ipynb": notebook}
