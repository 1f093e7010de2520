"""The record of a draw: its file, its probabilities, and the estimate that uses them."""

import json

import numpy as np
import pytest

import colonnade as co
from colonnade.measuring.evaluation.sampling import Sampling
from colonnade.measuring.evaluation.selecting import cheaper_more_often

from made_answers import answers, with_gaps


def named(M, names=None):
    names = [f"t{i % 3}/{i}" for i in range(len(M))] if names is None else names
    return co.Observations.from_dense(M, row_names=names, column_names=[f"m{j}" for j in range(M.shape[1])])


@pytest.mark.parametrize("design", ["balanced", "random", "chosen"])
def test_the_file_holds_rows_design_and_probabilities(tmp_path, rng, design):
    M = answers(rng, 90, 30)
    drawn = co.evaluation.draw(named(M), 30, design=design)
    drawn.save(tmp_path / "q.json")
    again = co.evaluation.Questions.load(tmp_path / "q.json")
    np.testing.assert_array_equal(drawn.rows, again.rows)
    np.testing.assert_array_equal(drawn.probabilities, again.probabilities)
    np.testing.assert_allclose(drawn.probabilities, 1.0 if design == "chosen" else 1 / 3)
    assert again.design == design and again.n_rows == 90 and again.names.tolist() == drawn.names.tolist()
    np.testing.assert_array_equal(drawn.rows, co.evaluation.select(M, 30, design=design))
    with pytest.raises(FileExistsError):
        drawn.save(tmp_path / "q.json")


@pytest.mark.parametrize(
    "change, said",
    [
        ({"kind": "other"}, "kind and version"),
        ({"design": "best"}, "design is 'best'"),
        ({"n_rows": 3}, "rows must be different and below n_rows"),
        ({"questions": []}, "rows must be different"),
        ({"questions": [{"question": None, "row": 1, "probability": 0}]}, "above 0"),
        ({"questions": [{"row": 1}]}, "not a file of questions"),
        ({"questions": 7}, "not a file of questions"),
    ],
)
def test_other_files_are_refused(tmp_path, rng, change, said):
    co.evaluation.draw(answers(rng, 30, 10), 5).save(tmp_path / "q.json")
    record = json.loads((tmp_path / "q.json").read_text()) | change
    (tmp_path / "q.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=said):
        co.evaluation.Questions.load(tmp_path / "q.json")
    (tmp_path / "q.json").write_text("{")
    with pytest.raises(ValueError, match="not JSON"):
        co.evaluation.Questions.load(tmp_path / "q.json")


def test_names_find_the_questions_in_another_order(rng):
    M = answers(rng, 60, 20)
    drawn = co.evaluation.draw(named(M), 20)
    order = rng.permutation(60)
    turned = named(M[order], [f"t{i % 3}/{i}" for i in order])
    found = drawn.probabilities_of_rows(turned)
    assert set(order[found > 0]) == set(drawn.rows)
    with pytest.raises(ValueError, match="drawn from 60 and the table has 50"):
        drawn.probabilities_of_rows(named(M[:50]))
    with pytest.raises(ValueError, match="no question"):
        drawn.probabilities_of_rows(named(M, [f"u/{i}" for i in range(60)]))


def test_equal_probabilities_give_the_estimate_without_a_file(rng):
    M = answers(rng)
    drawn = co.evaluation.draw(M[:, 1:], 30)
    K = with_gaps(M, [0], drawn.rows)
    assert co.evaluation.score(K, questions=drawn).table.tolist() == co.evaluation.score(K).table.tolist()


def test_cheaper_questions_are_drawn_more_often_and_the_sum_stays(rng):
    prices, strata = rng.uniform(1, 100, 40), np.repeat([0, 1], 20)
    p = cheaper_more_often(np.repeat([0.5, 0.25], 20), strata, prices)
    np.testing.assert_allclose([p[:20].sum(), p[20:].sum()], [10, 5])
    inner = np.flatnonzero((p < 1) & (strata == 1))
    np.testing.assert_allclose((p * np.sqrt(prices))[inner], (p * np.sqrt(prices))[inner[0]])
    assert p.max() <= 1 and np.all(np.diff(p[:20][np.argsort(prices[:20])]) <= 1e-12)


def test_the_cost_of_a_plan_and_of_its_draw_agree(rng):
    M, prices = answers(rng, 200, 30), rng.uniform(1, 50, 200)
    found = co.evaluation.plan(M, 0.05, cost=prices)
    assert found.cost == pytest.approx(found.needed * prices.mean())
    assert found.least_cost == pytest.approx(found.cost * np.sqrt(prices).mean() ** 2 / prices.mean())
    drawn = [co.evaluation.draw(M, 50, cost=prices, random_state=s) for s in range(20)]
    spent = np.mean([prices[one.rows].sum() for one in drawn])
    expected = 50 * np.sqrt(prices).sum() / (1 / np.sqrt(prices)).sum()
    assert spent == pytest.approx(expected, rel=0.1)
    for bad in (prices[:9], -prices, np.full(200, np.nan)):
        with pytest.raises(ValueError, match="cost must be"):
            co.evaluation.draw(M, 50, cost=bad)


@pytest.mark.slow
def test_unequal_probabilities_are_undone():
    """Cheap questions are easy here. Who ignores the probabilities is off by their share, who uses them is not."""
    rng = np.random.default_rng(0)
    M = answers(rng, 200, 30)
    prices = np.where(M[:, :22].mean(axis=1) > 0.5, 1.0, 25.0)
    errors = {True: [], False: []}
    for seed in range(10):
        drawn = co.evaluation.draw(M[:, :22], 60, cost=prices, random_state=seed)
        K = with_gaps(M, np.arange(22, 30), drawn.rows)
        for told in errors:
            table = co.evaluation.score(K, questions=drawn if told else None).table
            errors[told].append((table.score - M.mean(axis=0))[22:])
    bias = {told: abs(np.mean(e)) for told, e in errors.items()}
    assert bias[True] < 0.015


def test_rates_of_skipped_questions_and_of_others():
    p = np.array([0.5, 0.5, 0.25, 0, 0, 0])
    seen = np.array([[1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0], [1, 0, 0, 1, 1, 0]], bool).T
    rates = Sampling(np.zeros(6, int), None, p).rates(seen, np.ones_like(seen))
    np.testing.assert_allclose(rates[:3, 0], [0.5, 0.5, 0.25])
    np.testing.assert_allclose(rates[0, 1], 0.5 / 3)  # One of three drawn questions was answered.
    np.testing.assert_allclose(rates[:, 2], 0.5)  # Not the recorded questions: three of six.


def test_questions_from_elsewhere_count_as_given_with_a_remark(rng):
    M = answers(rng)
    drawn = co.evaluation.draw(M[:, 1:], 30)
    other = np.setdiff1d(np.arange(120), drawn.rows)[:30]
    K = with_gaps(M, [0], other)
    found = co.evaluation.score(K, questions=drawn)
    assert any("count as given" in words for column, words in found.remarks if column == 0)
    assert found.table[0].score == co.evaluation.score(K).table[0].score


def test_chosen_questions_are_known_by_their_file(rng):
    M = answers(rng)
    drawn = co.evaluation.draw(M[:, 2:], 30, design="chosen")
    K = with_gaps(M, [0], drawn.rows)  # Column 1 is known by now, so the choice is not recognised from the table.
    found = co.evaluation.score(K, questions=drawn)
    assert any("were chosen, not drawn" in words for column, words in found.remarks if column == 0)
    assert found.table[0].high > found.table[0].low
    groups = np.repeat(["a", "b"], [100, 20])
    with pytest.raises(ValueError, match="mean over all questions"):
        co.evaluation.score(K, questions=drawn, groups=groups, task_weights="macro")
    with pytest.raises(ValueError, match="leaves nothing to chance"):
        co.evaluation.draw(M, 30, design="chosen", cost=np.ones(120))


def test_plans_of_few_models_fall_steadily():
    """Twelve hidden models say little about the widening at one size; all sizes share one."""
    M = answers(np.random.default_rng(0), 400, 12)
    found = co.evaluation.plan(M, 0.05)
    beyond = found.beyond / np.sqrt(1 / found.questions - 1 / 400)
    assert beyond.max() / beyond.min() < 1.7
