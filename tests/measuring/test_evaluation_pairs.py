"""Two models compared by the questions that both answered, without a model of the questions."""

import json

import numpy as np
import pytest
from scipy import stats

import colonnade as co
from colonnade.measuring.evaluation.pairs import paired_difference
from colonnade.measuring.evaluation.tasks import as_tasks

from made_answers import answers, with_gaps


def test_two_complete_models_are_compared_as_by_the_paired_t_test(rng):
    M = answers(rng, 200, 2)
    found = co.evaluation.compare(M, 0, 1, level=0.8)
    test = stats.ttest_rel(M[:, 0], M[:, 1])
    assert found.difference == found.low == found.high == pytest.approx(M[:, 0].mean() - M[:, 1].mean())
    assert found.standard_error == 0 and found.more_questions == 0 and found.n_common == 200
    expected = test.confidence_interval(0.8)
    assert (found.other_low, found.other_high) == pytest.approx((expected.low, expected.high))
    assert found.other_a_beats_b == pytest.approx(stats.t.cdf(test.statistic, 199))
    assert "exactly" in str(found) and "other questions of the same kind" in str(found)


def test_complete_models_have_the_same_comparison_in_any_table(rng):
    M = answers(rng, 150, 12)
    groups = np.repeat(["a", "b"], [100, 50])
    alone = co.evaluation.compare(M[:, :2], 0, 1, groups=groups, task_weights="macro")
    among = co.evaluation.compare(with_gaps(M, [5], np.arange(30)), 0, 1, groups=groups, task_weights="macro")
    scored = co.evaluation.compare(co.evaluation.score(M, groups=groups, task_weights="macro"), 0, 1)
    assert alone == among == scored
    d = M[:, 0] - M[:, 1]
    assert alone.difference == pytest.approx((d[:100].mean() + d[100:].mean()) / 2)


def test_two_models_with_gaps_have_the_error_of_a_draw_without_replacement(rng):
    M = answers(rng, 90, 2)
    K = with_gaps(M, [1], np.sort(rng.choice(90, 30, replace=False)))
    found = co.evaluation.compare(K, 0, 1)
    d = (K[:, 0] - K[:, 1])[np.isfinite(K[:, 1])]
    assert found.difference == pytest.approx(d.mean())
    assert found.standard_error == pytest.approx(d.std(ddof=1) * np.sqrt(1 / 30 - 1 / 90))
    assert found.other_low is None and found.freedom == 29


def test_the_interval_for_other_questions_holds(rng):
    """Questions of two kinds, of which each draw of a benchmark has 30 and 60; the truth is the mean over all kinds."""
    tasks, holds = as_tasks(90, np.repeat(["a", "b"], [30, 60]), "macro"), []
    for _ in range(1000):
        shares = (30, [0.1, 0.4, 0.5]), (60, [0.2, 0.6, 0.2])
        d = np.concatenate([rng.choice([-1, 0, 1], size, p=p) for size, p in shares])
        low, high = paired_difference(d, tasks).interval_elsewhere(0.9)
        holds.append(low <= 0.2 <= high)
    assert 0.87 < np.mean(holds) < 0.93


def test_copies_of_questions_are_one_cluster(rng):
    M = answers(rng, 60, 2)
    once = co.evaluation.compare(M, 0, 1)
    thrice = co.evaluation.compare(np.repeat(M, 3, axis=0), 0, 1, clusters=np.repeat(np.arange(60), 3))
    assert (thrice.other_low, thrice.other_high) == pytest.approx((once.other_low, once.other_high))


def test_models_that_no_question_tells_apart():
    found = co.evaluation.compare(np.tile([[1.0], [0.0]], (10, 2)), 0, 1)
    assert found.difference == found.other_low == found.other_high == 0 and found.other_a_beats_b == 0.5


def test_what_cannot_be_compared_says_why(rng):
    M = answers(rng, 20, 2)
    with pytest.raises(ValueError, match="both models answered 1 question; two are the fewest"):
        co.evaluation.compare(with_gaps(M, [1], [3]), 0, 1)
    with pytest.raises(TypeError, match="wrong"):
        co.evaluation.compare(M, 0, 1, wrong=np.zeros(20))


def test_two_logs_alone_are_compared_by_the_command(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text("question,a,b\nt/0,1,0\nt/1,1,1\nt/2,0,0\nt/3,1,0\n")
    code, out, _ = run("evaluate", "compare", "two.csv", "a", "b")
    assert code == 0 and "+0.5000, exactly, because both answered every question" in out
    record = json.loads(run("evaluate", "compare", "two.csv", "a", "b", "--json")[1])
    assert record["other_low"] < 0.5 < record["other_high"] and record["a_beats_b"] == 1
