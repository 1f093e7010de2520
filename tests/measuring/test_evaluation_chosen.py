"""Questions chosen for models like the known ones: the design "chosen" and its estimate."""

import numpy as np
import pytest

import colonnade as co
from colonnade import leaderboard
from colonnade.measuring.evaluation import chosen

from made_answers import answers, with_gaps


def test_rows_for_the_sum_are_greedily_best(rng):
    """Each step against the variance of the sum computed from the whole covariance matrix."""
    M = answers(rng, 30, 25)
    rows_found = leaderboard.select_questions(M, 4, design="chosen")
    prior = chosen._prior(co.Observations.from_dense(M))
    F = prior.basis * np.sqrt(prior.variances)
    C = F @ F.T + prior.noise_std**2 * np.eye(30)

    def variance(rows):
        left = C - C[:, rows] @ np.linalg.solve(C[np.ix_(rows, rows)], C[rows])
        return left.sum()

    rows = []
    for _ in range(4):
        rows.append(min(set(range(30)) - set(rows), key=lambda i: variance([*rows, i])))
    assert variance(rows_found) == pytest.approx(variance(rows), rel=1e-9)


def test_the_prior_finds_signal_beneath_noise(rng):
    m, d, t, v = 300, 60, 0.5, 200.0  # Noise alone crosses the edge now and then, by a little.
    u = np.linalg.qr(rng.standard_normal((m, 1)))[0]
    A = u @ (np.sqrt(v) * rng.standard_normal((1, d))) + np.sqrt(t) * rng.standard_normal((m, d)) + 3.0
    prior = chosen._prior(co.Observations.from_dense(A))
    assert prior.rank <= 2 and prior.noise_std**2 == pytest.approx(t, rel=0.05)
    assert prior.variances[1:].sum() < 0.05 * prior.variances[0]
    seen = A - A.mean(axis=1, keepdims=True)
    assert prior.variances[0] == pytest.approx((u.T @ seen).var(), rel=0.1)  # Not the larger one along the basis.
    noise = chosen._prior(co.Observations.from_dense(rng.standard_normal((m, d))))
    assert noise.rank <= 2


@pytest.mark.parametrize("m", [120, 600])
def test_chosen_rows_are_recognised_and_drawn_ones_are_not(rng, m):
    M = answers(rng, m)
    for design, expected in (("chosen", True), ("balanced", False), ("random", False)):
        rows = leaderboard.select_questions(M[:, 5:], 40, design=design)
        found = chosen.recognised(co.Observations.from_dense(with_gaps(M, [0, 4], rows)[:, [0, *range(5, 40)]]))
        assert found[0] == expected and not found[1:].any()


@pytest.mark.parametrize("told", ["auto", True])
def test_chosen_questions_have_an_estimate_of_their_own(told):
    M = answers(np.random.default_rng(1))
    K = with_gaps(M, [0], leaderboard.select_questions(M[:, 1:], 30, design="chosen"))
    found, expected = leaderboard.scores(K, chosen=told), leaderboard.scores(K, design="chosen")
    assert found.tolist() == expected.tolist() != leaderboard.scores(K, chosen=False).tolist()
    assert "were chosen, not drawn" in dict(co.evaluation.score(K).remarks)[0]


def test_drawn_questions_have_the_same_estimate_whatever_is_said():
    M = answers(np.random.default_rng(1))
    K = with_gaps(M, [0], leaderboard.select_questions(M[:, 1:], 30))
    expected = leaderboard.scores(K).tolist()
    for how in ({"chosen": True}, {"chosen": False}, {"design": "balanced"}, {"design": "random"}):
        assert leaderboard.scores(K, **how).tolist() == expected


def test_compare_takes_the_estimate_of_chosen_questions():
    """The difference of two scores from chosen questions is that of the table; its width follows from theirs."""
    M = answers(np.random.default_rng(1))
    K = with_gaps(M, [0, 1], leaderboard.select_questions(M[:, 2:], 30, design="chosen"))
    found = co.evaluation.score(K, design="chosen")
    for a, b in ((0, 1), (0, 5), (7, 1)):
        one = co.evaluation.compare(found, a, b)
        assert one.difference == pytest.approx(found.table.score[a] - found.table.score[b])
        widths = (found.table.high - found.table.low)[[a, b]]
        assert np.hypot(*widths) * 0.95 <= one.high - one.low <= 1.2 * np.hypot(*widths)
        assert (one.a_beats_b > 0.5) == (one.difference > 0)


def test_chosen_models_of_few_known_ones(rng):
    M = with_gaps(answers(rng, 30, 8), [3], [1, 4, 9])
    row = leaderboard.scores(M, design="chosen")[3]
    assert row.low <= row.score <= row.high
    with pytest.raises(ValueError, match="three are the fewest"):
        leaderboard.select_questions(M[:, 2:5], 2, design="chosen")


def test_questions_are_chosen_from_a_random_pool_of_limited_size(rng):
    """With 5 known models 40 of 300 questions are candidates, so other draws lead to other questions."""
    M = answers(rng, 300, 5)
    found = [co.evaluation.select(M, 4, design="chosen", random_state=s) for s in range(4)]
    pool = np.sort(np.random.default_rng(0).choice(300, 40, replace=False))
    assert set(found[0]) <= set(pool)
    assert len({tuple(rows) for rows in found}) > 1


def test_remarks_on_chosen_questions_do_not_contradict_the_score():
    M = answers(np.random.default_rng(2), 400, 40, shift=9.0, n_shifted=4)
    new = np.arange(36, 40)
    found = co.evaluation.score(with_gaps(M, new, co.evaluation.select(M[:, :36], 60, design="chosen")))
    assert [j for j, _ in found.remarks] == new.tolist()
    for _, words in found.remarks:
        assert "chosen" in words and "its answers put it beyond them" in words and "rests on its own" not in words


def test_chosen_intervals_of_a_difference_to_a_known_model_are_those_of_the_score():
    M = answers(np.random.default_rng(1), 200, 30)
    found = co.evaluation.score(with_gaps(M, [29], co.evaluation.select(M[:, :29], 25, design="chosen")))
    difference = co.evaluation.compare(found, 29, 0)
    new = found.table[29]
    assert difference.high - difference.low == pytest.approx(new.high - new.low, rel=1e-9)


def test_chosen_questions_with_weights_of_tasks():
    M = answers(np.random.default_rng(1), 200, 30)
    options = {"groups": np.repeat(["a", "b"], [150, 50]), "task_weights": "macro"}
    with pytest.raises(ValueError, match="knows no weights of tasks"):
        co.evaluation.select(M[:, :29], 25, design="chosen", **options)


def test_a_generator_serves_drawn_and_chosen_models_alike():
    """What one estimate draws does not shift the other, and a Generator gives what its seed would."""
    M = answers(np.random.default_rng(1), 200, 30)
    rows = co.evaluation.select(M[:, :28], 25, design="chosen")
    K = with_gaps(M, [28, 29], rows)
    seed = int(np.random.default_rng(5).integers(2**31))
    one = co.evaluation.score(K, random_state=np.random.default_rng(5)).table
    other = co.evaluation.score(K, random_state=seed).table
    np.testing.assert_array_equal(one.high, other.high)
    np.testing.assert_array_equal(one.high, co.evaluation.score(K, random_state=seed, design="chosen").table.high)
