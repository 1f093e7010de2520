"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest

import colonnade as co

README = Path(__file__).parent.parent / "README.md"
blocks = re.findall(r"```(\w+)\n(.*?)```", README.read_text(), re.S) if README.exists() else []


def of_kind(kind):
    return [text for name, text in blocks if name == kind]


@pytest.mark.parametrize("code", of_kind("python"))
def test_python_runs_and_prints_what_it_says(code, capsys):
    names = {}
    exec(code, names)
    printed = capsys.readouterr().out
    assert repr(names["completion"]) in printed
    said = re.findall(r"# (<.*>)", code) + [f"{share}%" for share in re.findall(r"# (\d+) %$", code, re.M)]
    assert said and all(words in printed for words in said)
    if "M" in names:
        assert abs(names["completion"].to_dense() - names["M"]).max() < 1e-12


def test_the_plan_is_the_one_shown():
    (shown,) = of_kind("pycon")
    lines = [line.strip() for line in shown.splitlines()[1:] if line.strip()]
    assert lines == str(co.plan((10_000, 10_000), rank=50)).splitlines()
