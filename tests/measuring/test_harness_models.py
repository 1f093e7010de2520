"""Whose answers the logs of lm-evaluation-harness hold, and which of them count."""

import json
import warnings

import numpy as np
import pytest

from colonnade import harness
from colonnade.measuring.evaluation import read_logs

from made_logs import DATE, old_sample, sample, write_results, write_samples

LATER = "2026-02-01T10-00-00.000000"


def dense(table):
    o = table.observations
    M = np.full(o.shape, np.nan)
    M[o.rows, o.entry_columns] = o.values
    return M


def both(folder, first, second, shots=(0, 0), args=((), ()), models=("org/m", "org/m"), tasks=("t", "t"), **more):
    """Two runs in one folder, of dates DATE and LATER, with their results files."""
    for k, (date, lines) in enumerate(((DATE, first), (LATER, second))):
        write_samples(folder, tasks[k], lines, date)
        write_results(folder, models[k], [tasks[k]], date, args=list(args[k]), shots=shots[k], **more)


def test_two_models_in_one_folder_are_two_columns(tmp_path):
    both(tmp_path, [sample(0, acc=0.0)], [sample(0, acc=1.0)], models=("org/a", "/disk/b"))
    table = read_logs(tmp_path)
    assert table.models.tolist() == ["/disk/b", "org/a"]
    np.testing.assert_array_equal(dense(table), [[1, 0]])


@pytest.mark.parametrize(
    "more, names",
    [
        ({"args": (["revision=step1"], ["revision=step2"])}, ["revision=step1", "revision=step2"]),
        ({"args": (["dtype=float16"], ["dtype=bfloat16"])}, ["dtype=bfloat16", "dtype=float16"]),
        ({"args": ([], ["load_in_4bit=True"])}, ["load_in_4bit=True", "no load_in_4bit"]),
        ({"args": ([], ["revision=x"])}, ["revision=main", "revision=x"]),
        ({"shots": (0, 5)}, ["0-shot", "5-shot"]),
        (
            {"shots": (0, 5), "args": (["dtype=a", "revision=b"], ["dtype=c", "revision=b"])},
            ["dtype=a", "dtype=c"],
        ),
    ],
)
def test_variants_of_one_model_are_columns_named_by_what_differs(tmp_path, more, names):
    both(tmp_path, [sample(0, acc=0.0)], [sample(0, acc=1.0)], **more)
    table = read_logs(tmp_path)
    assert table.models.tolist() == [f"org/m ({name})" for name in names]
    assert sorted(dense(table)[0]) == [0, 1]


@pytest.mark.parametrize(
    "args",
    [
        (["device=cuda:0", "batch_size=4"], ["device=cpu", "gpu_memory_utilization=0.9"]),
        ([], ["revision=main"]),
        (["dtype=auto"], ["dtype=auto"]),
    ],
)
def test_what_does_not_change_the_model_makes_no_column_and_the_last_run_counts(tmp_path, args):
    both(tmp_path, [sample(0, acc=0.0), sample(1, acc=0.25)], [sample(0, acc=1.0)], args=args)
    table = read_logs(tmp_path)
    assert table.models.tolist() == ["org/m"]
    np.testing.assert_array_equal(dense(table), [[1], [0.25]])


def test_what_the_loaded_model_says_counts_before_what_was_asked_for(tmp_path):
    for date, args, dtype in ((DATE, ["dtype=auto"], "torch.float16"), (LATER, ["dtype=float16"], "torch.float16")):
        write_samples(tmp_path, "t", [sample(0, acc=1.0)], date)
        config = {"model_args": {"pretrained": "org/m", **dict(one.split("=") for one in args)}, "model_dtype": dtype}
        write_results(tmp_path, "org/m", date=date, config=config)
    assert read_logs(tmp_path).models.tolist() == ["org/m"]


def test_shots_may_differ_from_task_to_task(tmp_path):
    both(tmp_path, [sample(0, acc=1.0)], [sample(0, acc=0.0)], shots=(25, 10), tasks=("arc", "hellaswag"))
    table = read_logs(tmp_path)
    assert table.models.tolist() == ["org/m"] and table.tasks.tolist() == ["arc", "hellaswag"]


def test_a_task_that_belongs_to_no_variant_is_refused(tmp_path):
    both(tmp_path, [sample(0, acc=1.0)], [sample(0, acc=0.0)], shots=(0, 5))
    write_samples(tmp_path, "u", [sample(0, acc=1.0)], "2026-03-01T10-00-00.0")
    write_results(tmp_path, "org/m", ["u"], "2026-03-01T10-00-00.0", shots=2)
    with pytest.raises(ValueError, match=r"different shots .0-shot; 5-shot.*of neither kind .2-shot"):
        read_logs(tmp_path)
    write_results(tmp_path, "org/m", ["u"], "2026-03-01T10-00-00.0", shots=5)
    assert dense(read_logs(tmp_path)).tolist() == [[1, 0], [pytest.approx(np.nan, nan_ok=True), 1]]


def test_samples_without_results_beside_those_of_another_model_are_refused(tmp_path):
    write_samples(tmp_path, "t", [sample(0, acc=1.0)], LATER)
    assert read_logs(tmp_path).models.tolist() == [tmp_path.name]
    write_samples(tmp_path, "t", [sample(0, acc=0.0)])
    write_results(tmp_path, "org/m")
    with pytest.raises(ValueError, match=r"no results_2026-02-01.* its folder holds logs of 'org/m'"):
        read_logs(tmp_path)


def test_samples_without_results_in_the_folder_of_their_model_are_its_own(tmp_path):
    folder = tmp_path / "org__m"
    both(folder, [sample(0, acc=1.0)], [sample(0, acc=0.0)])
    write_samples(folder, "u", [sample(0, acc=0.5)], "2026-03-01T10-00-00.0")
    assert read_logs(tmp_path).models.tolist() == ["org/m"]
    write_results(folder, "org/m", date=LATER, args=["revision=x"])
    with pytest.raises(ValueError, match=r"different revision, and .*samples_u.* does not say which"):
        read_logs(tmp_path)


def test_runs_that_answer_differently_without_results_are_one_model_with_a_note(tmp_path):
    write_samples(tmp_path, "t", [sample(0, acc=1.0), sample(1, acc=1.0)])
    write_samples(tmp_path, "t", [sample(0, acc=1.0), sample(1, acc=0.0)], LATER)
    table = read_logs(tmp_path)
    np.testing.assert_array_equal(dense(table), [[1], [0]])
    (note,) = table.notes
    assert "answer differently, and no results_DATE.json says whether they are one model" in note
    write_samples(tmp_path, "t", [sample(0, acc=1.0), sample(1, acc=1.0)], LATER)
    assert read_logs(tmp_path).notes == ()


def test_runs_that_only_their_prompts_tell_apart_are_refused(tmp_path):
    write_samples(tmp_path, "t", [sample(0, acc=1.0)])
    write_samples(tmp_path, "t", [{**sample(0, acc=0.0), "prompt_hash": "longer"}], LATER)
    with pytest.raises(ValueError, match=r"put to .* in different words"):
        read_logs(tmp_path)


@pytest.mark.parametrize("named", [False, True])
def test_old_logs_hold_a_question_once_per_filter(tmp_path, named):
    """Strict answers 0, 1, 0 come first, flexible ones 1, 1, 1 after them; also where two processes wrote in turn."""
    strict, flexible = ([old_sample(i, em=float(x)) for i, x in enumerate(xs)] for xs in ((0, 1, 0), (1, 1, 1)))
    write_samples(tmp_path / "a", "t", strict + flexible)
    write_samples(tmp_path / "b", "t", [*strict[:2], *flexible[:2], strict[2], flexible[2]])
    for model in "ab" if named else "":
        write_results(tmp_path / model, model, filters=("strict", "flexible"))
    np.testing.assert_array_equal(dense(read_logs(tmp_path)), [[0, 0], [1, 1], [0, 0]])
    if named:
        np.testing.assert_array_equal(dense(read_logs(tmp_path, filter="flexible")), np.ones((3, 2)))
    else:
        with pytest.raises(ValueError, match="does not name its filters"):
            read_logs(tmp_path, filter="flexible")


def test_old_logs_go_with_new_ones(tmp_path):
    write_samples(tmp_path / "old", "t", [old_sample(0, em=1.0), old_sample(0, em=0.0)])
    write_samples(tmp_path / "new", "t", [sample(0, "strict", em=1.0), sample(0, "flexible", em=0.0)], LATER)
    np.testing.assert_array_equal(dense(read_logs(tmp_path)), [[1, 1]])


def test_a_question_more_often_than_filters_is_refused(tmp_path):
    write_samples(tmp_path, "t", [old_sample(0, em=1.0)] * 2)
    write_results(tmp_path, "m", filters=("only",))
    with pytest.raises(ValueError, match="once more than the task has filters"):
        read_logs(tmp_path)


def test_two_answers_under_one_filter_are_refused(tmp_path):
    write_samples(tmp_path, "t", [sample(0, acc=1.0), sample(0, acc=0.0)])
    with pytest.raises(ValueError, match=r"two answers in .* \(lines 1 and 2\)"):
        read_logs(tmp_path)


def test_a_task_without_a_number_is_skipped_with_a_word(tmp_path):
    write_samples(tmp_path, "rolling", [sample(0, word_perplexity=[-3.0, 2])])
    write_samples(tmp_path, "only_text", [sample(0, bypass=999)])
    write_samples(tmp_path, "t", [sample(0, bleu=["a", "b"], acc=True)])
    table = read_logs(tmp_path)
    assert table.tasks.tolist() == ["t"] and table.metrics == {"t": "acc"}
    assert [note[:30] for note in table.notes] == ["task 'only_text' is skipped be", "task 'rolling' is skipped beca"]
    with pytest.warns(UserWarning, match="is skipped because line 1 of"):
        assert harness.read_logs(tmp_path).shape == (1, 1)


def test_losses_become_scores_and_scores_are_preferred(tmp_path):
    write_samples(tmp_path / "a", "t", [sample(0, perplexity=3.0, acc=1.0), sample(1, perplexity=2.0, acc=0.0)])
    write_samples(tmp_path / "b", "t", [sample(0, perplexity=5.0, acc=1.0), sample(1, perplexity=1.0, acc=1.0)])
    write_results(tmp_path / "a", "a", losses=["perplexity"])
    assert read_logs(tmp_path).metrics == {"t": "acc"}
    table = read_logs(tmp_path, metric="perplexity")
    np.testing.assert_array_equal(dense(table), [[-3, -5], [-2, -1]])
    assert table.notes == ("lower 'perplexity' of task 't' is better, so its negative is the score",)
    write_results(tmp_path / "b", "b", higher_is_better={"t": {"perplexity": True}})
    with pytest.raises(ValueError, match="are better for 't' according to the log of 'a', and worse"):
        read_logs(tmp_path, metric="perplexity")


def test_repeats_are_averaged_and_become_weights(tmp_path):
    take_first = {**sample(0, em=1.0), "scores_per_repeat": {"em": [1.0, 0.0, 0.0, 1.0]}}
    pass_at = {**sample(1, **{"pass@1(em)": 0.25, "pass@2(em)": 0.5}), "scores_per_repeat": {"em": [0, 1, 0, 0]}}
    write_samples(tmp_path, "t", [take_first])
    write_samples(tmp_path, "u", [pass_at, sample(2, **{"pass@1(em)": 1.0})])
    table = read_logs(tmp_path)
    assert table.observations.values.tolist() == [0.5, 0.25, 1] and table.observations.weights.tolist() == [4, 4, 1]
    write_samples(tmp_path / "plain", "t", [sample(0, em=1.0)])
    assert read_logs(tmp_path / "plain").observations.weights is None


def test_the_order_of_files_does_not_matter(tmp_path, rng):
    for model in "abc":
        for date in (DATE, LATER):
            lines = [sample(i, acc=float(rng.random() < 0.5)) for i in rng.permutation(8)[:6].tolist()]
            write_samples(tmp_path / model, "t", lines, date)
            write_results(tmp_path / model, f"org/{model}", date=date, shots=5 * (date == LATER and model == "c"))
    files = sorted(tmp_path.rglob("samples_*"))
    expected = read_logs(tmp_path)
    assert expected.models.tolist() == ["org/a", "org/b", "org/c (0-shot)", "org/c (5-shot)"]
    for paths in (rng.permutation(files).tolist(), [*files, *files], [files[3], tmp_path]):
        table = read_logs(paths)
        np.testing.assert_array_equal(dense(table), dense(expected))
        assert table.models.tolist() == expected.models.tolist()
        assert table.observations.row_names.tolist() == expected.observations.row_names.tolist()


def test_results_that_cannot_be_read_are_named(tmp_path):
    write_samples(tmp_path, "t", [sample(0, acc=1.0)])
    path = tmp_path / f"results_{DATE}.json"
    for text, said in (("{\n\n  oops", "line 3 of .*results.* is not JSON"), ("[]", "results.* holds a list where")):
        path.write_text(text)
        with pytest.raises(ValueError, match=said):
            read_logs(tmp_path)
    path.write_text(json.dumps({"model_name": 7, "config": 3, "n-shot": [1], "configs": {"t": 1}}))
    assert read_logs(tmp_path).models.tolist() == [tmp_path.name]


def test_output_path_with_a_file_name(tmp_path):
    write_samples(tmp_path, "t", [sample(0, acc=1.0)])
    write_results(tmp_path, "org/m")
    (tmp_path / f"results_{DATE}.json").rename(tmp_path / f"mine_{DATE}.json")
    assert read_logs(tmp_path).models.tolist() == ["org/m"]


def test_nothing_is_said_where_nothing_is_to_be_said(tmp_path):
    write_samples(tmp_path, "t", [sample(0, acc=1.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        harness.read_logs(tmp_path)
