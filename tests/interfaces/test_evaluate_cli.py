"""`colonnade evaluate`: the whole way by commands, and the page."""

import json
import re

import numpy as np
import pytest

import colonnade as co
from colonnade.interfaces.report.evaluation_page import evaluation_html

from made_answers import answers

HOSTILE = "</title><script>alert(1)</script>\x1b[31m"


def write_table(path, M, names):
    lines = [",".join(["question", *names])]
    for i, row in enumerate(M):
        lines.append(",".join([f"t{i % 2}/{i}", *("" if np.isnan(x) else f"{x:g}" for x in row)]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """known.csv with 20 models, and a function that writes asked.csv with two new ones."""
    monkeypatch.chdir(tmp_path)
    M = answers(np.random.default_rng(0), 80, 22)
    names = [f"m{j}" for j in range(20)] + ["new", "other"]
    write_table(tmp_path / "known.csv", M[:, :20], names[:20])

    def ask(rows):
        K = M.copy()
        K[:, 20:] = np.nan
        K[rows, 20:] = M[rows, 20:]
        write_table(tmp_path / "asked.csv", K, names)

    return M, ask


def test_the_whole_way(tables, run, tmp_path):
    _, ask = tables
    code, out, _ = run("evaluate", "plan", "known.csv", "--half-width", "0.05")
    assert code == 0 and "of 80 questions for a model like the known ones" in out
    code, out, _ = run("evaluate", "select", "known.csv", "-k", 30, "-o", "q.json", "--samples", "samples.json")
    assert code == 0 and "30 questions drawn" in out and "--samples samples.json" in out
    record = json.loads((tmp_path / "q.json").read_text())
    assert record["design"] == "balanced" and {q["probability"] for q in record["questions"]} == {0.375}
    assert sum(map(len, json.loads((tmp_path / "samples.json").read_text()).values())) == 30
    ask([q["row"] for q in record["questions"]])
    command = ["evaluate", "score", "asked.csv", "--questions", "q.json"]
    code, out, _ = run(*command, "--by-task", "--report", "page.html")
    assert code == 0 and "'new': 30 of 80 questions" in out and "'new' in 't1': score" in out and "Note:" not in out
    found = json.loads(run(*command, "--json")[1])
    expected = co.evaluation.score(
        co.files.read("asked.csv"), groups=[f"t{i % 2}" for i in range(80)], questions="q.json"
    )
    assert found["models"][20]["score"] == expected.table.score[20]
    assert found["tasks"]["t0"][21]["low"] == expected.tasks["t0"].low[21]
    page = (tmp_path / "page.html").read_text()
    assert "Leaderboard" in page and "Questions that surprised most" in page and page.count('class="interval"') == 2
    assert run(*command, "--report", "page.html")[0] == 2  # It exists.
    code, out, _ = run("evaluate", "compare", "asked.csv", "new", "other", "--drop", "0.01", "--questions", "q.json")
    assert code == 0 and "P(new beats other)" in out and "worse than other by more than 0.01" in out
    one = json.loads(run("evaluate", "compare", "asked.csv", "new", "m3", "--json")[1])
    assert one["low"] <= one["difference"] <= one["high"] and 0 <= one["a_beats_b"] <= 1


def test_without_the_file_of_questions_a_note_says_what_is_assumed(tables, run):
    _, ask = tables
    ask(np.arange(0, 80, 3))
    out = run("evaluate", "score", "asked.csv")[1]
    assert "without --questions FILE the questions of every task count as drawn at random" in out


def test_averages_and_weights_of_tasks(tables, run):
    M, ask = tables
    ask(np.arange(0, 80, 3))
    for options, weights in (
        (["--average", "macro"], [0.5, 0.5]),
        (["--task-weight", "t0=3", "--task-weight", "t1=1"], [0.75, 0.25]),
    ):
        found = json.loads(run("evaluate", "score", "asked.csv", *options, "--json")[1])
        expected = weights[0] * M[::2, 0].mean() + weights[1] * M[1::2, 0].mean()
        assert found["models"][0]["score"] == pytest.approx(expected)
    code, _, err = run("evaluate", "score", "asked.csv", "--task-weight", "t0")
    assert code == 2 and "TASK=WEIGHT" in err
    code, _, err = run("evaluate", "score", "asked.csv", "--task-weight", "t0=1")
    assert code == 3 and "lacks 't1'" in err


def test_costs_in_any_order(tables, run, tmp_path):
    lines = [f"t{i % 2}/{i},{1 + i}" for i in range(80)]
    (tmp_path / "costs.csv").write_text("\n".join(["question,cost", *lines[::-1]]) + "\n")
    found = json.loads(run("evaluate", "plan", "known.csv", "--cost", "costs.csv", "--json")[1])
    assert found["cost"] == pytest.approx(found["needed"] * 40.5) and found["least_cost"] < found["cost"]
    assert run("evaluate", "select", "known.csv", "-k", 20, "--cost", "costs.csv", "-o", "q.json")[0] == 0
    record = json.loads((tmp_path / "q.json").read_text())
    roots = [
        q["probability"] * np.sqrt(1 + q["row"]) for q in record["questions"] if q["probability"] < 1 and q["row"] % 2
    ]
    np.testing.assert_allclose(roots, roots[0])
    (tmp_path / "few.csv").write_text("question,cost\nt0/0,3\nt1/1,4\n")
    code, _, err = run("evaluate", "plan", "known.csv", "--cost", "few.csv")
    assert code == 3 and "80 costs" in err


def test_repeats_of_a_table_are_weights(tables, run, tmp_path):
    _, ask = tables
    ask(np.arange(0, 80, 3))
    counts = np.where(np.isnan(co.files.read("asked.csv").to_dense()), np.nan, 5.0)
    write_table(tmp_path / "counts.csv", counts, [f"m{j}" for j in range(20)] + ["new", "other"])
    assert run("evaluate", "score", "asked.csv", "--repeats", "counts.csv")[0] == 0
    code, _, err = run("evaluate", "score", "asked.csv", "--repeats", "known.csv")
    assert code == 3 and "number of attempts" in err


def test_the_page_escapes_names_and_runs_nothing(rng):
    M = answers(rng, 40, 12)
    M[5:, 0] = np.nan
    names = [HOSTILE, *(f"m{j}" for j in range(11))]
    o = co.Observations.from_dense(M, row_names=[HOSTILE + str(i) for i in range(40)], column_names=names)
    page = evaluation_html(co.evaluation.score(o), command=f"colonnade {HOSTILE}")
    assert "<script" not in page and "\x1b" not in page and "default-src 'none'" in page and "script-src" not in page


def test_the_page_has_a_style_for_every_class_and_speaks_of_one_model(rng):
    M = answers(rng, 80, 21)
    M[:, 20] = np.where(rng.permutation(80) < 40, 1.0, np.nan)
    page = evaluation_html(co.evaluation.score(M, groups=np.repeat(["a", "b"], 40)))
    classes = {name for value in re.findall('class="([^"]+)"', page) for name in value.split()}
    style = page[page.index("<style>") : page.index("</style>")]
    assert {name for name in classes if f".{name}" not in style} == set()
    assert "1 model answered only some." in page and "This score rests on its own answers: see the remarks." in page


def test_the_page_of_many_and_of_no_new_models(rng):
    M = answers(rng, 60, 120)
    assert "nothing to predict" in evaluation_html(co.evaluation.score(M))
    M[20:, :40] = np.nan
    page = evaluation_html(co.evaluation.score(M))
    assert "The first 30 of 40 are shown" in page and page.count("<circle") <= 40


def test_compare_of_exact_models_is_json(tables, run):
    record = json.loads(run("evaluate", "compare", "known.csv", "m0", "m1", "--json")[1])
    assert record["freedom"] is None and record["standard_error"] == 0


def test_no_rank_where_no_model_answered_everything(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    M = answers(np.random.default_rng(0), 60, 12)
    M[np.random.default_rng(1).random(M.shape) < 0.2] = np.nan
    write_table(tmp_path / "gaps.csv", M, [f"m{j}" for j in range(12)])
    code, out, _ = run("evaluate", "score", "gaps.csv", "--report", "page.html")
    assert code == 0 and "0 of them answered all" in out and "rank" not in out
    assert ", rank 1" not in (tmp_path / "page.html").read_text()
