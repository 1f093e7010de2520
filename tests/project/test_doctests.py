"""The examples behind `>>>` in docstrings and in the documentation print what they say."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import colonnade

PACKAGE, ROOT = Path(colonnade.__file__).parent, Path(__file__).parents[2]
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if page.exists()]
PAGES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


def module_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("module", [module_of(path) for path in FILES])
def test_docstrings(module):
    found = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages(page):
    """Blocks end with ``` on a line by itself, which is no output."""
    text = re.sub(r"\n( *```)", r"\n\n\1", page.read_text(encoding="utf-8"))
    examples = doctest.DocTestParser().get_doctest(text, {"co": colonnade}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(examples)
    assert examples.examples and not runner.failures
