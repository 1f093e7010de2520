"""Logs of lm-evaluation-harness in, the file for its --samples out."""

import csv
import json

import numpy as np
import pytest

import colonnade as co
from colonnade import harness

from made_logs import sample as line
from made_logs import write_log


def write_logs(folder, M, rows_of_last, tasks=("gsm_8k", "arc")):
    """M as the logs of models m0, m1, ...: half of the questions to each task, and only some of the last model."""
    half = M.shape[0] // 2
    for j in range(M.shape[1]):
        rows = rows_of_last if j == M.shape[1] - 1 else np.arange(M.shape[0])
        for task, lo, hi in ((tasks[0], 0, half), (tasks[1], half, M.shape[0])):
            lines = [line(int(i - lo), acc=float(M[i, j])) for i in rows if lo <= i < hi]
            if lines:
                write_log(folder, f"org__m{j:02d}", task, lines)


def test_logs_become_questions_by_models(tmp_path, rng):
    M = (rng.random((24, 5)) < 0.6).astype(float)
    some = np.array([0, 1, 13, 23])
    write_logs(tmp_path, M, some)
    o = harness.read_logs(tmp_path)
    # tasks by name: the second half of the rows comes first
    order = [f"arc/{i}" for i in range(12)] + [f"gsm_8k/{i}" for i in range(12)]
    assert o.row_names.tolist() == order and o.column_names.tolist() == [f"org__m{j:02d}" for j in range(5)]
    assert o.full_columns.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(o.full_matrix(), np.roll(M, 12, axis=0)[:, :4])
    last = o.take([4])
    assert sorted(last.rows.tolist()) == sorted((some + 12) % 24) and set(last.values) <= {0.0, 1.0}
    assert harness.read_logs([tmp_path], tasks="arc").shape == (12, 5)


def test_samples_rise_and_name_only_the_chosen_tasks(tmp_path):
    write_logs(tmp_path, np.eye(24, 5), [0])
    o = harness.read_logs(tmp_path)
    assert harness.samples_of(o, [7, 2, 5]) == {"arc": [2, 5, 7]}
    harness.write_samples(o, [20, 3, 12], tmp_path / "samples.json")
    assert json.loads((tmp_path / "samples.json").read_text()) == {"arc": [3], "gsm_8k": [0, 8]}
    with pytest.raises(FileExistsError):
        harness.write_samples(o, [0], tmp_path / "samples.json")
    with pytest.raises(ValueError, match="task/number"):
        harness.samples_of(co.Observations.from_dense(np.ones((2, 2)), row_names=["a", "b"]), [0])


def test_the_last_run_counts_and_the_first_metric_and_filter(tmp_path):
    write_log(tmp_path, "a", "t", [line(0, acc=1.0, acc_norm=0.0)], "2026-01-02T00-00-00.0")
    write_log(tmp_path, "a", "t", [line(0, acc=0.0, acc_norm=1.0), line(1, acc=1.0, acc_norm=1.0)])
    other = [{**line(0, acc=0.25), "filter": "flexible"}]
    write_log(tmp_path, "b", "t", [line(0, acc=True, acc_norm=0.5), line(1, acc=0.0, acc_norm=0.5), *other])
    with pytest.warns(UserWarning, match="'a' on different dates answer differently"):
        first, other = harness.read_logs(tmp_path), harness.read_logs(tmp_path, metric="acc_norm")
    np.testing.assert_array_equal(first.full_matrix(), [[1, 1], [1, 0]])
    np.testing.assert_array_equal(other.full_matrix(), [[0, 0.5], [1, 0.5]])
    with pytest.raises(ValueError, match="no answer with the filter 'flexible'"):
        harness.read_logs(tmp_path, filter="flexible")


@pytest.mark.parametrize(
    "text, said",
    [
        ("{", "line 1 of .* is not JSON"),
        ('{"doc_id": "3"}', "no doc_id"),
        ('{"doc_id": 3, "filter": "none", "metrics": []}', "no metric"),
        ('{"doc_id": 3, "metrics": 7}', "metrics at line 1 of .* not a list of names"),
        ('{"doc_id": 3, "metrics": "acc", "acc": 1}', "metrics at line 1 of .* not a list of names"),
        ('{"doc_id": 3, "metrics": [["acc"]], "acc": 1}', "metrics at line 1 of .* not a list of names"),
        ('{"doc_id": 3, "metrics": ["acc"], "acc": %s}' % ("9" * 400), "'acc' at line 1 of .* not a finite"),
        ('{"doc_id": 3, "metrics": ["acc"], "acc": %s}' % ("9" * 5000), "line 1 of .* is not JSON"),
        ('{"doc_id": 3, "metrics": ["acc"], "acc": NaN}', "'acc' at line 1 of .* not a finite"),
        ('{"doc_id": 3, "metrics": ["acc"], "acc": 1e999}', "'acc' at line 1 of .* not a finite"),
        ("[" * 100_000, "line 1 of .* too many brackets"),
        ('{"doc_id": 3, "doc": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 1 of .* too many brackets"),
        (b'{"doc_id": 3, "metrics": ["acc"], "acc": 1, "doc": "\xff"}', "line 1 of .* is not UTF-8"),
        (json.dumps(line(3, acc=1)).encode("utf-16"), "line 1 of .* is not UTF-8"),
    ],
)
def test_bad_lines_are_named(tmp_path, run, text, said):
    path = write_log(tmp_path, "a", "t", [])
    path.write_bytes((text.encode() if isinstance(text, str) else text) + b"\n")
    with pytest.raises(ValueError, match=said):
        harness.read_logs(tmp_path)
    code, out, err = run("harness", "read", tmp_path, "-o", tmp_path / "out.csv")
    assert (code, out, len(err.splitlines())) == (3, "", 1) and f"line 1 of {path}" in " ".join(err.split())
    assert not (tmp_path / "out.csv").exists()


def test_other_questions_under_the_same_number_are_refused(tmp_path):
    write_log(tmp_path, "a", "t", [line(0, acc=1.0)])
    write_log(tmp_path, "b", "t", [{**line(0, acc=1.0), "doc_hash": "changed"}])
    with pytest.raises(ValueError, match="question 0 of t is another one for 'b' than for 'a'"):
        harness.read_logs(tmp_path)


def test_no_logs_and_unknown_tasks(tmp_path):
    with pytest.raises(FileNotFoundError, match="--log_samples"):
        harness.read_logs(tmp_path)
    with pytest.raises(NotADirectoryError):
        harness.read_logs(tmp_path / "absent")
    write_log(tmp_path, "a", "t", [line(0, acc=1.0)])
    with pytest.raises(ValueError, match="no log of the task 'u'; there are t"):
        harness.read_logs(tmp_path, tasks=["u"])


def test_the_whole_way_by_commands(tmp_path, run):
    rng = np.random.default_rng(0)
    M = (rng.random((60, 13)) < 0.2 + 0.6 * rng.random(13)).astype(float)
    logs, samples, table = tmp_path / "logs", tmp_path / "samples.json", tmp_path / "table.csv"
    write_logs(logs, M[:, :12], np.arange(60))
    code, out, _ = run("harness", "select", logs, "--questions", 20, "-o", samples)
    assert code == 0 and "12 models; 12 of them answered all" in out and f"--samples {samples} --log_samples" in out
    asked = json.loads(samples.read_text())
    assert sum(map(len, asked.values())) == 20
    for task, lo in (("gsm_8k", 0), ("arc", 30)):
        write_log(logs, "new", task, [line(i, acc=M[lo + i, 12]) for i in asked.get(task, [])])
    code, out, _ = run("harness", "score", logs, "--json")
    models = {row["model"]: row for row in json.loads(out)}
    new = models.pop("new")
    assert code == 0 and new["n_observed"] == 20 and new["low"] <= new["score"] <= new["high"]
    assert new["rank_low"] <= new["rank"] <= new["rank_high"] <= 13
    assert all(row["low"] == row["score"] == row["high"] for row in models.values())
    assert run("harness", "read", logs, "-o", table)[0] == 0
    code, out, _ = run("harness", "score", table)
    assert code == 0 and f"'new': 20 of 60 questions; score {new['score']:.4f}" in out
    assert run("harness", "score", table, "--metric", "acc")[0] == 2
    assert run("harness", "score", tmp_path / "absent")[0] != 0


def write_answers(path, M):
    """Questions q0, q1, ... as rows and models m0, m1, ... as columns; a gap is empty."""
    lines = [",".join(["question", *(f"m{j}" for j in range(M.shape[1]))])]
    lines += [",".join([f"q{i}", *("" if np.isnan(x) else str(x) for x in row)]) for i, row in enumerate(M)]
    path.write_text("\n".join(lines))


def test_the_same_way_with_a_table(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    M = (rng.random((60, 14)) < 0.2 + 0.6 * rng.random(14)).astype(float)
    write_answers(tmp_path / "known.csv", M[:, :12])
    code, out, _ = run("plan", "--select-rows", 20, "--for-mean", "known.csv")
    rows = [int(name[1:]) for name in out.split()]
    assert code == 0 and rows == co.leaderboard.select_questions(M[:, :12], 20).tolist()
    assert run("plan", "--for-mean", "known.csv")[0] == 2
    asked = M.copy()
    asked[:, 12:] = np.nan
    asked[rows, 12:] = M[rows, 12:]
    write_answers(tmp_path / "asked.csv", asked)
    code, out, err = run("complete", "asked.csv", "--scores", "scores.csv")
    assert code == 0 and "among 12 known columns" in out and "asked-filled.csv, scores.csv" in out, err
    assert "a separate model for column means" in out and "differ from the means of the filled table" in out
    code, as_json, _ = run("complete", "asked.csv", "-o", "b.csv", "--scores", "s.csv", "--json")
    assert "a separate model" in json.loads(as_json)["scores"]
    assert "A separate model" in " ".join(run("complete", "--help")[1].replace("|", " ").replace("│", " ").split())
    expected = co.leaderboard.scores(asked)
    written = list(csv.DictReader((tmp_path / "scores.csv").read_text().splitlines()))
    assert [row["column"] for row in written] == [f"m{j}" for j in range(14)]
    for field in expected.dtype.names:
        np.testing.assert_allclose([float(row[field]) for row in written], expected[field], rtol=1e-12)


def test_scores_that_cannot_be_written(tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_answers(tmp_path / "a.csv", np.ones((6, 4)))
    for more in (["s.npy"], ["a.csv"], ["b.csv", "--force"], ["s.csv", "--engine", "local"], ["absent/s.csv"]):
        code, out, err = run("complete", "a.csv", "-o", "b.csv", "--scores", *more)
        assert code in (2, 3, 5) and not out and len(err.strip().splitlines()) == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv"]


def test_two_tables_are_not_taken_for_one(tmp_path, run):
    for name in "ab":
        write_answers(tmp_path / f"{name}.csv", np.eye(6, 4))
    code, out, err = run("harness", "score", tmp_path / "a.csv", tmp_path / "b.csv")
    assert code in (2, 3, 5) and out == "" and "a.csv" in err and len(err.splitlines()) == 1
