"""Scores and ranks of models that answered only some questions."""

import numpy as np
import pytest

import colonnade as co
from colonnade import leaderboard


def answers(rng, m=120, n=40):
    """Right and wrong answers that one ability and two skills explain in part."""
    skills = rng.standard_normal((3, n))
    needed = np.abs(rng.standard_normal((m, 3))) * [1, 0.5, 0.5]
    return (rng.random((m, n)) < 1 / (1 + np.exp(rng.normal(0, 1.5, (m, 1)) - needed @ skills))).astype(float)


def with_gaps(M, new, rows):
    K = M.copy()
    K[:, new] = np.nan
    K[np.ix_(rows, new)] = M[np.ix_(rows, new)]
    return K


def test_rows_for_the_sum_are_greedily_best(rng):
    """Each step against the variance of the sum computed from the whole covariance matrix."""
    M = answers(rng, 30, 25)
    chosen = leaderboard.select_questions(M, 4)
    prior = leaderboard._prior(co.Observations.from_dense(M))
    F = prior.basis * np.sqrt(prior.variances)
    C = F @ F.T + prior.noise_std**2 * np.eye(30)

    def variance(rows):
        left = C - C[:, rows] @ np.linalg.solve(C[np.ix_(rows, rows)], C[rows])
        return left.sum()

    rows = []
    for _ in range(4):
        rows.append(min(set(range(30)) - set(rows), key=lambda i: variance([*rows, i])))
    assert variance(chosen) == pytest.approx(variance(rows), rel=1e-9)


def test_the_prior_finds_signal_beneath_noise(rng):
    m, d, t, v = 300, 60, 0.5, 200.0  # noise alone crosses the edge now and then, by a little
    u = np.linalg.qr(rng.standard_normal((m, 1)))[0]
    A = u @ (np.sqrt(v) * rng.standard_normal((1, d))) + np.sqrt(t) * rng.standard_normal((m, d)) + 3.0
    prior = leaderboard._prior(co.Observations.from_dense(A))
    assert prior.rank <= 2 and prior.noise_std**2 == pytest.approx(t, rel=0.05)
    assert prior.variances[1:].sum() < 0.05 * prior.variances[0]
    seen = A - A.mean(axis=1, keepdims=True)
    assert prior.variances[0] == pytest.approx((u.T @ seen).var(), rel=0.1)  # not the larger one along the basis
    noise = leaderboard._prior(co.Observations.from_dense(rng.standard_normal((m, d))))
    assert noise.rank <= 2


def test_full_models_are_exact_and_ranked(rng):
    M = answers(rng)
    table = leaderboard.scores(with_gaps(M, [0], np.arange(0, 120, 3)))
    means = M[:, 1:].mean(axis=0)
    for part in (table.score, table.low, table.high):
        np.testing.assert_allclose(part[1:], means, rtol=1e-12)
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


@pytest.mark.parametrize("m", [120, 600])
def test_chosen_rows_are_recognised(rng, m):
    o = co.Observations.from_dense(answers(rng, m)[:, 5:])
    best = leaderboard._choices(o, [40])
    assert leaderboard._is_chosen(leaderboard.select_questions(o, 40), best, m)
    assert not leaderboard._is_chosen(np.sort(rng.choice(m, 40, replace=False)), best, m)


def test_a_model_without_answers_gets_the_prior(rng):
    M = with_gaps(answers(rng, 60, 20), [3], [])
    for chosen in (True, "auto"):
        row = leaderboard.scores(M, chosen=chosen)[3]
        assert row.n_observed == 0 and row.low <= row.score <= row.high


def test_few_known_models_and_bad_arguments():
    M = np.arange(20.0).reshape(5, 4) % 7
    M[0, 3] = np.nan
    table = leaderboard.scores(M)
    assert table.low[3] <= table.score[3] <= table.high[3]
    with pytest.raises(ValueError, match="all equal"):
        leaderboard.select_questions(np.ones((5, 4)), 2)
    M[0, 2] = np.nan
    with pytest.raises(ValueError, match="three are the fewest"):
        leaderboard.scores(M)
    with pytest.raises(ValueError, match="n_questions"):
        leaderboard.select_questions(np.eye(5), 6)
    with pytest.raises(ValueError, match="chosen"):
        leaderboard.scores(np.eye(5), chosen="perhaps")


def test_one_question_may_be_chosen(rng):
    assert leaderboard.select_questions(answers(rng, 30, 25), 1).size == 1


@pytest.mark.parametrize("chosen", [True, False])
def test_it_is_found_out_how_questions_were_taken(chosen):
    M = answers(np.random.default_rng(1))
    rows = leaderboard.select_questions(M[:, 1:], 30) if chosen else np.arange(0, 120, 4)
    known = with_gaps(M, [0], rows)
    found, told, wrong = (leaderboard.scores(known, chosen=told) for told in ("auto", chosen, not chosen))
    assert found.tolist() == told.tolist() != wrong.tolist()
