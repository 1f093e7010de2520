"""Logs of Inspect, HELM and Every Eval Ever become the same kind of table as those of lm-evaluation-harness."""

import json
import math
import re

import numpy as np
import pytest

import colonnade as co
from colonnade.measuring.evaluation.logs.inspect_logs import read_inspect
from colonnade.measuring.evaluation.logs.runs import Choices

from made_logs import (
    helm_instance,
    inspect_log,
    instance,
    sample,
    write_eval,
    write_helm,
    write_instances,
    write_results,
    write_samples,
)

read_logs = co.evaluation.read_logs


def cells(table):
    """{(question, model): (value, weight)}"""
    o = table.observations
    weights = np.ones(o.values.size) if o.weights is None else o.weights
    places = zip(o.row_names[o.rows], o.column_names[o.entry_columns])
    return dict(zip(places, zip(o.values.tolist(), weights.tolist())))


def write_json(path, log):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(log, indent=2))


SCORES = [(1, 1, {"choice": "C"}), (2, 1, {"choice": "I"}), ("x", 1, {"choice": "P"}), (4, 1, {"choice": "N"})]
FORMS = ["json", "deflate", "zstandard", "unfinished", "samples only"]


def write_form(path, log, form):
    if form == "json":
        write_json(path.with_suffix(".json"), log)
        return
    path = path.with_suffix(".eval")
    write_eval(path, log, method="zstandard" if form == "zstandard" else "deflate", finished=form != "unfinished")
    if form == "samples only":  # Inspect wrote no summaries at first.
        import zipfile

        with zipfile.ZipFile(path) as old:
            kept = {name: old.read(name) for name in old.namelist() if name != "summaries.json"}
        with zipfile.ZipFile(path, "w") as new:
            for name, content in kept.items():
                new.writestr(name, content)


@pytest.mark.parametrize("form", FORMS)
def test_inspect_in_all_its_forms(tmp_path, form):
    write_form(tmp_path / "log", inspect_log("lab/m", SCORES), form)
    table = read_logs(tmp_path)
    expected = {"1": 1.0, "2": 0.0, "4": 0.0, "x": 0.5}
    assert cells(table) == {(f"inspect_evals/sums/{name}", "lab/m"): (x, 1.0) for name, x in expected.items()}
    assert table.metrics == {"inspect_evals/sums": "choice"} and table.observations.weights is None
    assert table.tasks.tolist() == ["inspect_evals/sums"] * 4 and not table.notes


def test_epochs_of_inspect_are_repeats_and_unscored_samples_are_gaps(tmp_path):
    scores = [(1, 1, {"s": 1}), (1, 2, {"s": 0}), (1, 3, {"s": "C"}), (2, 1, {"s": math.nan}), (2, 2, {"s": "0.25"})]
    write_json(tmp_path / "a.json", inspect_log("m", [*scores, (3, 1, {}), (4, 1, {"s": math.nan})]))
    assert cells(read_logs(tmp_path)) == {
        ("inspect_evals/sums/1", "m"): (pytest.approx(2 / 3), 3.0),
        ("inspect_evals/sums/2", "m"): (0.25, 1.0),
    }


def test_the_first_score_of_inspect_that_is_a_number_counts(tmp_path):
    scores = {"judge": "well said", "parts": {"style": "no", "truth": True}, "total": 0.75}
    write_json(tmp_path / "a.json", inspect_log("m", [(1, 1, scores)]))
    assert read_logs(tmp_path).metrics == {"inspect_evals/sums": "parts/style"}
    for metric, value in (("parts/style", 0.0), ("parts/truth", 1.0), ("total", 0.75)):
        assert [x for x, _ in cells(read_logs(tmp_path, metric=metric)).values()] == [value]
    with pytest.raises(ValueError, match="no number under the metric 'judge'; metrics with one: parts/style"):
        read_logs(tmp_path, metric="judge")


def test_variants_in_inspect(tmp_path):
    """Arguments of a model make columns; ways of asking do so within one task; arguments of a task make tasks."""
    write_json(tmp_path / "a.json", inspect_log("m", [(1, 1, {"s": 1})], model_generate_config={"temperature": 0.5}))
    write_json(tmp_path / "b.json", inspect_log("m", [(1, 1, {"s": 0})], task="other"))
    assert set(cells(read_logs(tmp_path))) == {("inspect_evals/sums/1", "m"), ("other/1", "m")}
    write_json(tmp_path / "c.json", inspect_log("m", [(1, 1, {"s": 0})], task_args_passed={"subject": "law", "n": 3}))
    assert "inspect_evals/sums[n=3, subject=law]/1" in read_logs(tmp_path).observations.row_names
    write_json(tmp_path / "b.json", inspect_log("m", [(1, 1, {"s": 0})], model_generate_config={"max_retries": 3}))
    (tmp_path / "c.json").unlink()
    assert read_logs(tmp_path).models.tolist() == ["m (no temperature)", "m (temperature=0.5)"]
    write_json(tmp_path / "b.json", inspect_log("m", [(1, 1, {"s": 0})], model_args={"quantized": True}))
    (tmp_path / "a.json").unlink()
    write_json(tmp_path / "a.json", inspect_log("m", [(2, 1, {"s": 0})]))
    assert read_logs(tmp_path).models.tolist() == ["m (no quantized)", "m (quantized=true)"]


def test_the_later_log_of_inspect_counts_in_whatever_time_zone(tmp_path):
    early = inspect_log("m", [(1, 1, {"s": 0})], created="2026-01-01T10:30:00+02:00")
    late = inspect_log("m", [(1, 1, {"s": 1})], created="2026-01-01T09:00:00+00:00")
    for names in (("a", "b"), ("b", "a")):
        write_json(tmp_path / f"{names[0]}.json", early)
        write_json(tmp_path / f"{names[1]}.json", late)
        assert list(cells(read_logs(tmp_path)).values()) == [(1.0, 1.0)]


def test_a_run_of_inspect_that_did_not_finish_is_read_and_said(tmp_path):
    write_form(tmp_path / "log", inspect_log("m", SCORES, status="started"), "unfinished")
    table = read_logs(tmp_path)
    assert table.observations.shape == (4, 1) and "did not finish (status 'started')" in table.notes[0]


def test_other_questions_under_the_same_name_in_inspect(tmp_path):
    one, other = inspect_log("a", [(1, 1, {"s": 1})]), inspect_log("b", [(1, 1, {"s": 1})])
    other["samples"][0]["input"] = "Another one"
    write_json(tmp_path / "a.json", one)
    write_json(tmp_path / "b.json", other)
    with pytest.raises(ValueError, match="question 1 of inspect_evals/sums is another one for 'b' than for 'a'"):
        read_logs(tmp_path)


def test_only_summaries_are_unpacked(tmp_path, monkeypatch):
    """Samples of an .eval file hold whole transcripts, which are large."""
    from colonnade.measuring.evaluation.logs.zip_members import ZipMembers

    write_eval(tmp_path / "a.eval", inspect_log("m", SCORES))
    read, document = [], ZipMembers.document
    monkeypatch.setattr(ZipMembers, "document", lambda self, name: read.append(name) or document(self, name))
    assert len(read_inspect(tmp_path / "a.eval", Choices(None, None, None))[0].answers) == 4
    assert read == ["header.json", "summaries.json"]


def test_helm(tmp_path):
    instances = [helm_instance("id1", exact_match=1), helm_instance("id10", exact_match=0)]
    write_helm(tmp_path, "lab/a", [*instances, helm_instance("id1", perturbation="typos", exact_match=0)])
    write_helm(tmp_path, "lab/b", [helm_instance("id1", exact_match=0)], spec=False)
    table = read_logs(tmp_path)
    task = "mmlu:subject=anatomy"
    assert cells(table) == {
        (f"{task}/id1", "lab/a"): (1.0, 1.0),
        (f"{task}/id10", "lab/a"): (0.0, 1.0),
        (f"{task}/id1", "lab_b"): (0.0, 1.0),
    }


def test_trials_of_helm_are_repeats(tmp_path):
    trials = [helm_instance("id1", trial, exact_match=x) for trial, x in enumerate((1, 0, 1, 1))]
    write_helm(tmp_path, "a", trials)
    assert list(cells(read_logs(tmp_path)).values()) == [(0.75, 4.0)]


def test_scores_of_helm(tmp_path):
    """A measure made for the task counts before a general one; bookkeeping counts only if it is asked for."""
    path = write_helm(tmp_path, "a", [helm_instance("id1", exact_match=0, f1_score=0.4)])
    assert list(cells(read_logs(path)).values()) == [(0.4, 1.0)]
    assert list(cells(read_logs(path, metric="exact_match")).values()) == [(0.0, 1.0)]
    assert list(cells(read_logs(path, metric="inference_runtime")).values()) == [(0.7, 1.0)]
    write_helm(tmp_path, "a", [helm_instance("id1")])
    with pytest.raises(ValueError, match=r"no task can be read because instance 0 of .* has no metric"):
        read_logs(path)


def test_shots_of_helm_make_columns_only_within_a_task(tmp_path):
    write_helm(tmp_path / "x", "a", [helm_instance("id1", exact_match=0)], shots=5)
    write_helm(tmp_path / "x", "a", [helm_instance("id1", exact_match=0)], shots=0, task="gsm")
    assert read_logs(tmp_path).models.tolist() == ["a"]
    write_helm(tmp_path / "y", "a", [helm_instance("id1", exact_match=1)], shots=0)
    assert read_logs(tmp_path).models.tolist() == ["a (0-shot)", "a (5-shot)"]
    write_helm(tmp_path / "y", "a", [helm_instance("id1", exact_match=1)], shots=5)
    with pytest.raises(ValueError, match=r"different answers of 'a' in .* and neither is the later one"):
        read_logs(tmp_path)


def test_helm_without_a_name_is_called_after_its_folder(tmp_path):
    path = write_helm(tmp_path, "a", [helm_instance("id1", exact_match=1)], spec=False)
    moved = tmp_path / "mine" / "per_instance_stats.json"
    moved.parent.mkdir()
    path.rename(moved)
    table = read_logs(moved)
    assert table.models.tolist() == ["mine"] and "after its folder" in table.notes[0]


def test_every_eval_ever(tmp_path):
    records = [instance("lab/a", "s1", 1.0), instance("lab/a", "s2", 0.25), instance("lab/b", "s1", 0.0)]
    write_instances(tmp_path / "x_samples.jsonl", records)
    assert cells(read_logs(tmp_path)) == {
        ("sums/s1", "lab/a"): (1.0, 1.0),
        ("sums/s2", "lab/a"): (0.25, 1.0),
        ("sums/s1", "lab/b"): (0.0, 1.0),
    }


def test_records_of_one_sample_in_every_eval_ever_are_repeats_and_the_last_run_counts(tmp_path):
    write_instances(tmp_path / "b.jsonl", [instance("a", "s1", x, time=9) for x in (1, 0, 0, 0)])
    write_instances(tmp_path / "a.jsonl", [instance("a", "s1", 1, time=10)])
    assert list(cells(read_logs(tmp_path)).values()) == [(1.0, 1.0)]
    assert list(cells(read_logs(tmp_path / "b.jsonl")).values()) == [(0.25, 4.0)]
    write_instances(tmp_path / "a.jsonl", [instance("a", "s1", 1, time=10, source="other")])
    assert read_logs(tmp_path).models.tolist() == ["a (source=lab)", "a (source=other)"]


def test_one_result_of_several_in_every_eval_ever(tmp_path):
    """As converted from HELM: a record per statistic and split."""
    for model, order in (("a", ("em", "f1")), ("b", ("f1", "em"))):
        records = [
            instance(model, name, {"em": 1, "f1": 0.5}[metric], result=f"{metric}:{split}")
            for name, split in (("s1", "test"), ("s2", "valid"))
            for metric in order
        ]
        write_instances(tmp_path / f"{model}.jsonl", records)
    assert {value for value, _ in cells(read_logs(tmp_path)).values()} == {1.0}
    assert {value for value, _ in cells(read_logs(tmp_path, metric="f1")).values()} == {0.5}
    write_instances(tmp_path / "c.jsonl", [instance("c", "s1", 0.5, result="f1:test")])
    with pytest.raises(
        ValueError, match=r"line 1 of .*c.jsonl has no result 'em:test'; results that are there: f1:test"
    ):
        read_logs(tmp_path)


def test_filters_of_the_harness_in_every_eval_ever_are_no_tasks(tmp_path):
    records = [
        instance("a", "0", score, evaluation=f"gsm/{name}", metadata={"filter": name, "doc_hash": "h"})
        for name, score in (("strict", 0.0), ("flexible", 1.0))
    ]
    write_instances(tmp_path / "a.jsonl", records)
    assert cells(read_logs(tmp_path)) == {("gsm/0", "a"): (0.0, 1.0)}
    assert cells(read_logs(tmp_path, filter="flexible")) == {("gsm/0", "a"): (1.0, 1.0)}


def test_losses_and_other_questions_in_every_eval_ever(tmp_path):
    write_instances(tmp_path / "u_samples.jsonl", [instance("a", "s1", 2.5, result="lab/a/1#wer")])
    config = {
        "evaluation_name": "sums",
        "evaluation_result_id": "lab/a/1#wer",
        "metric_config": {"lower_is_better": True},
    }
    (tmp_path / "u.json").write_text(json.dumps({"evaluation_id": "lab/a/1", "evaluation_results": [config]}))
    table = read_logs(tmp_path)
    assert list(cells(table).values()) == [(-2.5, 1.0)] and "lower 'wer' of task 'sums' is better" in table.notes[0]
    write_instances(tmp_path / "v_samples.jsonl", [instance("b", "s1", 2.5, result="wer", reference="5")])
    with pytest.raises(ValueError, match="question s1 of sums is another one for 'b' than for 'a'"):
        read_logs(tmp_path)


def write_all(folder):
    """Logs of every kind, of different models on different tasks."""
    write_samples(folder / "h", "t", [sample(10, acc=1.0), sample(9, acc=0.0)])
    write_results(folder / "h", "org/m")
    write_eval(folder / "i" / "log.eval", inspect_log("lab/m", SCORES))
    write_helm(folder / "l", "helm/m", [helm_instance("id1", exact_match=1)])
    write_instances(folder / "e" / "x_samples.jsonl", [instance("eee/m", "s1", 1.0), instance("eee/m", "s1", 0.0)])


def test_all_kinds_at_once_in_any_order(tmp_path, rng):
    write_all(tmp_path)
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    expected = read_logs(tmp_path)
    assert expected.models.tolist() == ["eee/m", "helm/m", "lab/m", "org/m"]
    assert expected.observations.row_names[-3:].tolist() == ["sums/s1", "t/9", "t/10"]
    files = sorted(p for p in tmp_path.rglob("*.*") if re.search(r"samples|per_instance|\.eval", p.name))
    assert len(files) == 4
    for _ in range(3):
        table = read_logs(rng.permutation(files).tolist())
        assert cells(table) == cells(expected) and table.metrics == expected.metrics
        assert table.tasks.tolist() == expected.tasks.tolist()


def test_a_log_under_two_names_is_read_once(tmp_path):
    write_all(tmp_path)
    expected = cells(read_logs(tmp_path))
    (tmp_path / "again.eval").symlink_to(tmp_path / "i" / "log.eval")
    assert cells(read_logs([tmp_path, tmp_path / "i"])) == expected
