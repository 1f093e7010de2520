"""The draw of questions: known probabilities, spread over the questions, fair to every task."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import colonnade as co
from colonnade.measuring.evaluation.design import inclusion_probabilities, pivotal_sample

from made_answers import answers
from problems import processor_time


def test_every_unit_is_drawn_as_often_as_its_probability_says(rng):
    m, draws = 24, 4000
    points, p = rng.standard_normal((m, 2)), rng.uniform(0.05, 0.95, 24)
    p *= 8 / p.sum()
    p = np.minimum(p, 1.0)
    count = np.zeros(m)
    for _ in range(draws):
        rows = pivotal_sample(points, p, np.zeros(m), rng)
        assert abs(rows.size - p.sum()) < 1
        count[rows] += 1
    z = (count / draws - p) / np.sqrt(np.maximum(p * (1 - p), 1e-9) / draws)
    assert np.abs(z).max() < 4.5


def test_certain_units_are_always_drawn_and_impossible_ones_never(rng):
    p = np.array([1.0, 0.0, 0.5, 0.5, 1.0])
    for _ in range(20):
        rows = pivotal_sample(rng.standard_normal((5, 1)), p, np.zeros(5), rng)
        assert {0, 4} <= set(rows) and 1 not in rows and rows.size == 3


def test_the_count_of_every_stratum_is_its_expectation_rounded_up_or_down(rng):
    """Also where the strata lie among each other, and whichever of them is decided first."""
    strata = rng.permutation(np.repeat(np.arange(5), [1, 3, 10, 40, 80]))
    points, chances = rng.standard_normal((strata.size, 2)), rng.random((2, 5))
    for p in chances[:, strata]:
        expected = np.bincount(strata, p)
        draws = [np.bincount(strata[pivotal_sample(points, p, strata, rng)], minlength=5) for _ in range(100)]
        assert np.abs(np.array(draws) - expected).max() < 1
        assert np.abs(np.sum(draws, axis=1) - expected.sum()).max() < 1


def test_neighbours_are_rarely_drawn_together(rng):
    """20 pairs of twins, half of the units: one of each pair, always."""
    points = np.repeat(rng.standard_normal((20, 2)) * 100, 2, axis=0)
    points[1::2] += 1e-3
    rows = pivotal_sample(points, np.full(40, 0.5), np.zeros(40), rng)
    assert sorted(rows // 2) == list(range(20))


def test_a_balanced_sample_is_as_hard_as_the_whole(rng):
    """The mean difficulty of samples varies less than half as much as that of plain random ones."""
    M = answers(rng, 300, 60)
    difficulty = M.mean(axis=1)
    spread = {
        design: np.std(
            [difficulty[co.evaluation.select(M, 30, design=design, random_state=s)].mean() for s in range(40)]
        )
        for design in ("balanced", "random")
    }
    assert spread["balanced"] < 0.5 * spread["random"]


def test_every_task_gets_its_share(rng):
    M = answers(rng, 120, 20)
    groups = np.repeat(["a", "b", "c"], [80, 30, 10])
    for weights, expected in (
        ("micro", [20, 7.5, 2.5]),
        ("macro", [10, 10, 10]),
        ({"a": 0, "b": 1, "c": 1}, [0, 20, 10]),
    ):
        for design in ("balanced", "random"):
            rows = co.evaluation.select(M, 30, groups=groups, task_weights=weights, design=design, random_state=3)
            counts = [(groups[rows] == g).sum() for g in "abc"]
            assert rows.size == 30 and np.abs(np.array(counts) - expected).max() < 1


def test_probabilities_fill_small_tasks_first():
    strata = np.repeat([0, 1, 2], [4, 10, 100])
    p = inclusion_probabilities([1 / 3, 1 / 3, 1 / 3], strata, 30)
    np.testing.assert_allclose(p, np.repeat([1, 1, 0.16], [4, 10, 100]))
    assert p.sum() == pytest.approx(30)


def test_gaps_in_known_models_are_no_obstacle(rng):
    M = answers(rng, 100, 30)
    M[rng.random(M.shape) < 0.3] = np.nan
    assert np.unique(co.evaluation.select(M, 20)).size == 20


@pytest.mark.slow
def test_the_cost_of_drawing_questions_of_a_large_benchmark():
    """In singular value decompositions of the answers; about 15 were measured, one second."""
    M = answers(np.random.default_rng(0), 15000, 100)
    with threadpool_limits(1, user_api="blas"):
        cost = processor_time(lambda: co.evaluation.select(M, 100), rounds=1)
        assert cost < 60 * processor_time(lambda: np.linalg.svd(M, full_matrices=False), rounds=1)
    assert co.evaluation.select(M, 100).size == 100
