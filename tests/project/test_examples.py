"""The examples run, and their numbers are as good as their pages say."""

import json
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = EXAMPLES.parent / "docs"
GALLERY = sorted((EXAMPLES / "gallery").glob("*.py"))
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="examples are not part of this copy")


def run(name, *arguments):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](*arguments)


@pytest.mark.slow
def test_chosen_questions_tell_more_than_random_ones():
    results = run("model_scores", 2)
    averaged, balanced = (results[50, name][0] for name in ("random questions, averaged", "balanced questions, scored"))
    assert balanced < averaged
    assert results[50, "balanced questions, scored"][1] >= 0.7  # of 20 intervals of level 0.9


@pytest.mark.slow
def test_intervals_from_imputed_tables_hold_more_often_than_those_of_the_prediction():
    for shares in run("multiple_imputation", 4).values():
        for imputed, alone in shares.values():
            assert imputed >= 0.8 and imputed >= alone - 0.05


def test_chosen_places_tell_more_than_random_ones():
    results = run("sparse_sensors")
    for method in ("gappy POD (least squares)", "with the prior (automatic)"):
        assert results["chosen places", method] < results["random places", method]
    assert 0.85 < results["coverage"] < 0.96


@pytest.mark.slow
def test_intervals_of_new_columns_hold_as_often_as_the_page_says():
    held = run("few_entries")
    assert 0.86 < held[30] < 0.94  # As many entries as the columns of the table have.
    assert held[2] > 0.65  # The page warns of this.


@pytest.fixture
def gallery(monkeypatch):
    """Run a script of the gallery as the build of the documentation does, and give the names that it defines."""
    monkeypatch.syspath_prepend(DOCS)
    import gallery_pages

    def run_script(name):
        page, picture, names = gallery_pages.run(name)
        assert page.startswith("# ") and picture.startswith(b"\x89PNG")
        return names

    return run_script


@pytest.mark.slow
def test_weather_is_filled_to_little_more_than_the_noise(gallery):
    names = gallery("weather_stations")
    assert names["error"](names["filled"]) < 0.9  # The noise of a reading is 0.7 degrees.
    assert names["error"](names["by_time"]) > 2
    assert 0.86 < names["coverage"] < 0.94


@pytest.mark.slow
def test_wine_is_filled_better_than_by_neighbours(gallery):
    names = gallery("wine_units")
    mean, neighbours, colonnade = ((e**2).mean() ** 0.5 for e in names["errors"].values())
    assert colonnade < 0.9 * neighbours < mean
    assert 0.85 < names["coverage"] < 0.95
    assert names["accuracy"] > 0.85


@pytest.mark.slow
def test_ratings_are_predicted_better_than_by_levels(gallery):
    names = gallery("ratings")
    assert names["errors"]["colonnade"] < 0.75 * names["errors"]["levels only"]
    assert 0.86 < names["coverage"] < 0.94
    assert names["filled"].min() >= 1 and names["filled"].max() <= 5


@pytest.mark.slow
def test_spectra_are_filled_to_little_more_than_the_noise(gallery):
    names = gallery("spectra")
    assert names["errors"]["colonnade"] < 0.018  # The noise of a reading is 0.01.
    assert names["errors"]["colonnade"] < 0.1 * names["errors"]["5 neighbours"]
    assert names["coverage"] > 0.88  # Held-out readings are farther from others than the missing ones.


@pytest.mark.slow
def test_new_models_are_scored_better_than_by_random_answers(gallery):
    names = gallery("new_models")
    random, chosen = names["errors"].values()
    assert chosen < 0.8 * random
    assert names["coverage"] >= 0.7  # of ten intervals of level 0.9


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_notebooks_are_those_of_the_scripts(script):
    make = runpy.run_path(str(EXAMPLES / "make_notebooks.py"))
    expected = make["text_of"](make["notebook_of"](script.read_text()))
    assert script.with_suffix(".ipynb").read_text() == expected, "run python examples/make_notebooks.py"


@pytest.mark.slow
def test_a_notebook_runs(tmp_path, monkeypatch):
    """In a kernel of Jupyter on this machine, without the network; the tests above run the cells of the others."""
    script = EXAMPLES / "gallery" / "spectra.py"
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    notebook = nbformat.reads(script.with_suffix(".ipynb").read_text(), as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    kinds = {kind for output in outputs for kind in output.get("data", ())}
    assert "image/png" in kinds, json.dumps([output.output_type for output in outputs])
