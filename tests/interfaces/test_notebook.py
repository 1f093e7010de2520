"""What a notebook shows: tables with escaped names, and pictures that are drawn once."""

import re

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import colonnade as co
from colonnade.uncertainty.column_verdict import ColumnVerdict

EVIL = "<script>alert('1')</script>"


@pytest.fixture(scope="module")
def completion():
    rng = np.random.default_rng(0)
    known = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 30)) + 0.1 * rng.standard_normal((20, 30))
    known[rng.random(known.shape) < 0.2] = np.nan
    return co.complete(pd.DataFrame(known, columns=[EVIL, *map(str, range(1, 30))]))


def test_certificates(completion):
    table = completion.certificates(as_frame=False)
    page = table._repr_html_()
    assert "<script" not in page and "&lt;script&gt;" in page and "... and 10 more columns" in page
    assert page.count("<tr>") == 21 and "<th>uncertainty</th>" in page
    assert "&#x27;7&#x27;" in table[7:8]._repr_html_() and "&lt;script" not in table[7:8]._repr_html_()
    assert isinstance(table, np.recarray) and table.copy().column_names is not None
    assert ColumnVerdict(table.verdict[0]).shown in page


def test_plan_and_comparison(completion):
    page = co.plan((1000, 1000), rank=5)._repr_html_()
    assert re.sub("<[^>]+>", "", page).replace("&#x27;", "'") == str(co.plan((1000, 1000), rank=5)).replace("\n", "")

    def method(o, **_):
        return np.full(o.shape, np.nan)

    method.__name__ = EVIL
    found = co.compare(completion.observations, ["row_means", method])
    page = found._repr_html_()
    assert "<script" not in page and "alert" in page and "<th>error</th>" in page and "Advice: " in page


def test_inspection_and_completion(completion):
    for page in (co.inspect(completion.observations)._repr_html_(), completion._repr_html_()):
        assert "<script" not in page and "<table>" in page


@pytest.mark.parametrize(
    "backend, still_open", [("inline", 0), ("module://matplotlib_inline.backend_inline", 0), ("agg", 1)]
)
def test_all_pictures_are_left_to_the_notebook(completion, monkeypatch, backend, still_open):
    pyplot.close("all")
    monkeypatch.setattr(matplotlib, "get_backend", lambda: backend)
    figure = completion.plot()
    assert len(figure.axes) == 4 and len(pyplot.get_fignums()) == still_open
    pyplot.close("all")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("call", ["plot()", "plot('spectrum')"])
def test_a_notebook_draws_once(call):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code = f"""
import numpy as np, colonnade as co
M = np.outer(np.arange(9.0), np.arange(6.0))
M[3:, 4:] = np.nan
co.complete(M).{call}
"""
    cell = nbformat.v4.new_code_cell(code)
    nbclient.NotebookClient(nbformat.v4.new_notebook(cells=[cell])).execute()
    pictures = [out for out in cell.outputs if "image/png" in out.get("data", {})]
    assert len(pictures) == 1
