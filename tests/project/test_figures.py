"""README and docs quote the figures that benchmarks wrote into ``benchmarks/figures.json``."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from benchmarks import all as every  # noqa: E402
from benchmarks.machine import record  # noqa: E402

FIGURES = ROOT / "benchmarks" / "figures.json"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def quoted():
    return [(page, line) for page, lines in every.QUOTES.items() for line in lines]


@pytest.mark.parametrize("page, line", quoted(), ids=str)
def test_pages_quote_the_figures_of_the_file(page, line):
    words = line.format(**every.figures_in(FIGURES))
    assert words in (ROOT / page).read_text(), f"{page} has to say: {words}"


def test_every_benchmark_that_pages_name_is_recorded_or_listed_with_a_reason():
    named = {name for page in PAGES for name in re.findall(r"python -m benchmarks (\w+)", page.read_text())}
    figures = set(every.figures_in(FIGURES))
    assert named - figures - {"all"} == set(every.UNRECORDED)
    in_quotes = {name for _, line in quoted() for name in re.findall(r"{(\w+)\[", line)}
    assert in_quotes == figures


def test_a_benchmark_replaces_its_own_figures_only(tmp_path):
    path = tmp_path / "figures.json"
    record(path, "one", {"a": 1.23456789})
    record(path, "two", {"b": 2.0})
    record(path, "one", {"c": 3.0})
    assert every.figures_in(path) == {"one": {"c": 3.0}, "two": {"b": 2.0}}
    assert set(json.loads(path.read_text())["one"]) == {"figures", "machine", "date", "load"}


def test_without_data_figures_of_real_matrices_stay(tmp_path, capsys):
    path = tmp_path / "figures.json"
    record(path, "real", {"least": 0.5})
    before = path.read_text()
    assert every.main(["--json", str(path), "--only", "real", "gaps"]) == 0
    assert path.read_text() == before and "--data is not given" in capsys.readouterr().out
