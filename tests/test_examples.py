"""The examples run, and their numbers are as good as their pages say."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="examples are not part of this copy")


def run(name, *arguments):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](*arguments)


@pytest.mark.slow
def test_chosen_questions_tell_more_than_random_ones():
    results = run("model_scores", 2)
    averaged, balanced = (results[50, name][0] for name in ("random questions, averaged", "balanced questions, scored"))
    assert balanced < averaged
    assert results[50, "balanced questions, scored"][1] >= 0.7  # of 20 intervals of level 0.9


def test_chosen_places_tell_more_than_random_ones():
    results = run("sparse_sensors")
    for method in ("gappy POD (least squares)", "with the prior (automatic)"):
        assert results["chosen places", method] < results["random places", method]
    assert 0.85 < results["coverage"] < 0.96


def test_spectra_are_filled_to_little_more_than_the_noise():
    errors = run("laboratory_table")
    assert errors["CompleteRowsImputer"] < 0.016
    assert errors["CompleteRowsImputer"] < 0.1 * errors["scikit-learn KNNImputer"]
    assert 0.85 < errors["coverage"] < 0.96
