"""The arguments of ``python -m benchmarks``."""

import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from benchmarks.machine import chosen, count  # noqa: E402

NAMES = "exact", "noisy", "spiked columns", "als (auto)", "als, rank given"


@pytest.mark.parametrize(
    "asked, found",
    [
        ("", NAMES),
        ("exact,noisy", ("exact", "noisy")),
        ("noisy, exact", ("exact", "noisy")),
        ("als", ("als (auto)", "als, rank given")),
        ("als, rank given", ("als, rank given",)),
        ("columns", ("spiked columns",)),
    ],
)
def test_names_may_be_parts_separated_by_commas(asked, found):
    assert chosen(asked, NAMES, "problem") == list(found)


@pytest.mark.parametrize("asked", ["exakt", "exact,noise", "exact,"])
def test_a_part_that_is_in_no_name_is_refused(asked):
    with pytest.raises(ArgumentTypeError, match=r"no problem has .* in its name; there are exact, noisy"):
        chosen(asked, NAMES, "problem")


def test_counts_are_whole_numbers_from_1():
    assert count("3") == 3
    for text in ("0", "-2", "1.5", "many", ""):
        with pytest.raises(ArgumentTypeError, match="whole number of at least 1"):
            count(text)


def test_an_unknown_problem_ends_with_2_and_a_sentence():
    command = [sys.executable, "-m", "benchmarks", "rivals", "--problems", "exact,noise"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "no problem has 'noise' in its name" in done.stderr and not done.stdout
