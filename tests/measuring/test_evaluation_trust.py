"""How far predictions are trusted: what hidden models tell, within the range of the known ones and beyond it."""

import numpy as np
import pytest

import colonnade as co
from colonnade.measuring.evaluation.estimate import Parts
from colonnade.measuring.evaluation.trust import Hidden, combine, learned_trust

from made_answers import answers, with_gaps

OWN, MODEL = 0.05**2, 0.03**2  # Variances of corrected scores and of predictions.
NOISE = OWN - MODEL


def parts_of(prediction, own):
    prediction, own = np.atleast_1d(prediction), np.atleast_1d(own)
    n, full = prediction.size, np.full(prediction.size, 1.0)
    return Parts(prediction, own - prediction, OWN * full, MODEL * full, 50 * full, np.zeros((1, n)))


@pytest.mark.parametrize("own, place", [(0.5, 0), (0.9, 1)])
def test_the_weight_is_that_of_empirical_bayes_in_either_place(own, place):
    variances = 0.02**2, 0.06**2
    found = combine(parts_of(own - 0.03, own), variances, 0.2, 0.6)
    b = variances[place]
    assert found.own_weight == pytest.approx(b / (b + NOISE), abs=0.02)
    assert found.beyond == pytest.approx(place, abs=0.03)
    # Beyond the known models an interval is as wide as that of the own answers.
    assert found.variance == pytest.approx(MODEL + (1.0 if place else found.own_weight) * NOISE, rel=0.02)


def test_the_prediction_moves_no_score_by_more_than_one_error():
    own = np.linspace(0.0, 1.0, 41)
    parts = parts_of(np.full(41, 0.5), own)
    found = combine(parts, (1e-6, 1e-6), 0.2, 0.6)
    assert np.abs(found.score - own).max() <= np.sqrt(NOISE) * (1 + 1e-9)
    assert (np.diff(found.score) >= -1e-12).all()


def test_without_hidden_models_the_whole_correction_counts():
    trust = learned_trust([], 0, (0.2, 0.6), 0.9)
    np.testing.assert_array_equal(
        combine(parts_of([0.4, 0.7], [0.5, 0.9]), trust.bias_variances, 0.2, 0.6).own_weight, 1
    )


def test_bias_is_learned_from_hidden_models_within_the_range_and_beyond_it():
    rng = np.random.default_rng(0)

    def hidden(truth, bias):
        prediction = truth - bias + rng.normal(0, np.sqrt(MODEL), truth.size)
        return Hidden([parts_of(prediction, truth + rng.normal(0, np.sqrt(OWN), truth.size))], [truth], [[0.2, 0.6]])

    inside, beyond = rng.uniform(0.3, 0.5, 400), rng.uniform(0.8, 0.9, 80)
    trust = learned_trust([hidden(inside, 0.0), hidden(beyond, 0.1)], 0, (0.2, 0.9), 0.9)
    assert np.sqrt(trust.bias_variances[0]) < 0.015
    assert np.sqrt(trust.bias_variances[1]) == pytest.approx(0.1, rel=0.1)
    trust = learned_trust([hidden(inside, 0.1), hidden(beyond, 0.0)], 0, (0.2, 0.9), 0.9)
    assert trust.bias_variances[1] == trust.bias_variances[0] > 0.09**2  # Beyond the range nothing is trusted more.


def test_remarks_tell_a_correction_by_its_size_before_it_was_shrunk():
    M = answers(np.random.default_rng(5), 400, 40, shift=9.0, n_shifted=4)
    new, told = range(36, 40), []
    for seed in range(6):
        rows = co.evaluation.select(M[:, :36], 60, random_state=seed)
        found = co.evaluation.score(with_gaps(M, list(new), rows))
        e, words = found.estimates, dict(found.remarks)
        shrunk = np.abs(e.score - e.predicted)
        for j in new:
            large = shrunk[j] / e.own_weight[j] > e.correction_error[j]
            assert ("points above what they predict" in words[j]) == large
            told.append(large and shrunk[j] < e.correction_error[j])
    assert any(told)  # These would not be told by the difference of the score.
