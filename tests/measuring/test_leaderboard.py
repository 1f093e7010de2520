"""Scores and ranks of models that answered only some questions, by the short names."""

import numpy as np
import pytest

from colonnade import leaderboard

from made_answers import answers, with_gaps


def test_full_models_are_exact_and_ranked(rng):
    M = answers(rng)
    table = leaderboard.scores(with_gaps(M, [0], np.arange(0, 120, 3)))
    means = M[:, 1:].mean(axis=0)
    for part in (table.score, table.low, table.high, table.predicted):
        np.testing.assert_array_equal(part[1:], means)
    assert (table.rank[1:] == [1 + (means > mean).sum() for mean in means]).all()
    assert table.rank[0] == 1 + (means > table.score[0]).sum()
    assert table.rank_low[0] <= table.rank[0] <= table.rank_high[0]
    assert 0 <= table.low[0] <= table.score[0] <= table.high[0] <= 1


def test_intervals_are_usually_no_wider_than_those_of_the_answers_alone():
    """40 answers drawn at random tell a mean to 0.13 either way at the level 0.9, without any other model."""
    widths = []
    for seed in range(3):
        M = answers(np.random.default_rng(seed))
        row = leaderboard.scores(with_gaps(M, [0], np.arange(0, 120, 3)), chosen=False)[0]
        widths.append(row.high - row.low)
    assert np.median(widths) < 0.26


def test_exact_data_give_exact_scores(rng):
    M = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 20)) + 5
    table = leaderboard.scores(with_gaps(M, [2, 7], leaderboard.select_questions(np.delete(M, [2, 7], 1), 12)))
    np.testing.assert_allclose(table.score[[2, 7]], M.mean(axis=0)[[2, 7]], rtol=1e-3)


def test_a_model_without_answers_gets_the_prior(rng):
    M = with_gaps(answers(rng, 60, 20), [3], [])
    for chosen in (True, "auto", False):
        row = leaderboard.scores(M, chosen=chosen)[3]
        assert row.n_observed == 0 and row.low < row.score < row.high and row.own_weight == 0
        assert row.high - row.low > 0.3  # The known models differ by as much.


def test_few_known_models_and_bad_arguments():
    M = np.arange(20.0).reshape(5, 4) % 7
    M[0, 3] = np.nan
    table = leaderboard.scores(M)
    assert table.low[3] <= table.score[3] <= table.high[3]
    with pytest.raises(ValueError, match="all equal"):
        leaderboard.select_questions(np.ones((5, 4)), 2)
    M[1:, 1] = M[1:, 2] = np.nan
    with pytest.raises(ValueError, match="2 known models cannot tell others; three are the fewest"):
        leaderboard.scores(M)
    with pytest.raises(ValueError, match="n_questions"):
        leaderboard.select_questions(np.eye(5), 6)
    with pytest.raises(ValueError, match="chosen"):
        leaderboard.scores(np.eye(5), chosen="perhaps")
    with pytest.raises(ValueError, match="design"):
        leaderboard.select_questions(np.eye(5), 2, design="best")


@pytest.mark.parametrize("design", ["balanced", "random", "chosen"])
def test_one_question_or_all_may_be_asked(rng, design):
    M = answers(rng, 30, 25)
    assert leaderboard.select_questions(M, 1, design=design).size == 1
    np.testing.assert_array_equal(leaderboard.select_questions(M, 30, design=design), np.arange(30))


def test_the_draw_is_the_same_every_time_and_another_for_another_seed(rng):
    M = answers(rng)
    first, again = (leaderboard.select_questions(M, 30) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (leaderboard.select_questions(M, 30, random_state=5) != first).any()
