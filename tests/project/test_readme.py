"""What the README shows is what happens, and it stays short."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[2] / "README.md"
text = README.read_text() if README.exists() else ""
pytestmark = pytest.mark.skipif(not text, reason="the README is not part of this copy")
MOST_LINES = 120


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", text, re.S)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs_and_prints_what_it_says(code, capsys):
    names = {}
    exec(code, names)
    printed = capsys.readouterr().out
    said = re.findall(r"# (\d+) %$", code, re.M)
    assert said and all(f"{share}%" in printed for share in said)
    assert np.isnan(names["table"]).any(axis=0).all()  # No column of the table is complete.
    assert not np.isnan(names["filled"]).any()


def test_the_two_commands_are_there():
    commands = [line for line in text.splitlines() if line.startswith("pip install")]
    assert commands == ["pip install '.[cli]' && colonnade demo", "pip install '.[test]' && pytest"]


def test_it_is_short():
    assert len(text.splitlines()) <= MOST_LINES
