"""Write every script of `examples/gallery` as a notebook beside it.

A script has cells that begin with `# %%`; those that begin with `# %% [markdown]` are text. Jupytext, VS Code and
PyCharm read such scripts too. A test keeps notebooks and scripts equal, and runs the notebooks.

    python examples/make_notebooks.py
"""

import json
from pathlib import Path

GALLERY = Path(__file__).parent / "gallery"
TEXT = "[markdown]"


def cells_of(script: str) -> list[tuple[str, str]]:
    """The cells of a script as pairs of kind, "markdown" or "code", and text."""
    cells = []
    for part in script.split("# %%")[1:]:
        head, _, body = part.partition("\n")
        if head.strip() == TEXT:
            lines = (line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines())
            cells.append(("markdown", "\n".join(lines)))
        else:
            cells.append(("code", body.strip()))
    return cells


def notebook_of(script: str) -> dict:
    """A notebook in Jupyter's format 4.5, without outputs."""
    cells = []
    for number, (kind, text) in enumerate(cells_of(script)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def text_of(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main():
    for script in sorted(GALLERY.glob("*.py")):
        script.with_suffix(".ipynb").write_text(text_of(notebook_of(script.read_text())))


if __name__ == "__main__":
    main()
