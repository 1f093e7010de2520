"""What a reader must know about a score, in words."""

from __future__ import annotations

import numpy as np
from scipy import stats

from .answers import Answers
from .sampling import Sampling

_UNLIKE_RANDOM = 1e-3  # P-value below which the difficulty of the asked questions is no draw at random.
_SURELY = 2.0  # Standard errors from which a correction counts as seen.


def remarks_of(answers: Answers, found, sampling: Sampling, counted) -> list[tuple[int, str]]:
    """(column, sentence) for models beyond the known ones, and for questions that are no random draw.

    `counted` (m,) says which questions have a weight.
    """
    unlike, n_answers = _unlike_random(answers, sampling), answers.seen[counted].sum(axis=0)
    remarks = []
    for j in np.flatnonzero(~answers.full):
        gap, error = found.score[j] - found.predicted[j], found.correction_error[j]
        correction = abs(gap) / found.own_weight[j] if found.own_weight[j] > 0 else 0.0  # Before it was shrunk.
        seen = correction > _SURELY * error > 0
        if n_answers[j] == 0:
            remarks.append((int(j), "no answer: the score is what known models predict"))
        elif found.beyond[j] >= 0.5:
            side = "above" if found.score[j] > found.predicted[answers.known].mean() else "below"
            sentence = f"beyond the known models, {side} all of them"
            if correction > error > 0:
                sentence += f", and {difference_in_words(gap, answers)} what they predict"
            remarks.append((int(j), f"{sentence}: {_rests_on(found.own_weight[j])}"))
        elif seen:
            words = difference_in_words(gap, answers)
            remarks.append((int(j), f"{words} what the known models predict: {_rests_on(found.own_weight[j])}"))
        if unlike[j]:
            remarks.append((int(j), _GIVEN))
    return remarks + _asked_elsewhere(answers, sampling)


def _rests_on(own_weight: float) -> str:
    share = f"{own_weight:.0%}"
    return "this score rests on its own answers" + ("" if share == "100%" else f", with a weight of {share}")


_GIVEN = "its questions are easier or harder than a random draw: they count as given, so the interval may be too narrow"


def difference_in_words(gap: float, answers: Answers) -> str:
    """For example "14 points above"; points are hundredths of a bounded scale."""
    side = "above" if gap > 0 else "below"
    if answers.scale.bounded:
        return f"{abs(100 * gap):.0f} points {side}"
    return f"{abs(gap * answers.scale.width):.3g} {side}"


def _asked_elsewhere(answers: Answers, sampling: Sampling) -> list:
    """Remarks on new models that answered questions beside those of the file."""
    if sampling.probabilities is None:
        return []
    new = np.setdiff1d(np.flatnonzero(~answers.full & answers.seen.any(axis=0)), answers.known)
    words = "it answered questions that are not in the file of questions: they count as given, as a random draw"
    return [(int(j), words) for j in new[~sampling.recorded(answers.seen[:, new])]]


def _unlike_random(answers: Answers, sampling: Sampling) -> np.ndarray:
    """Which partial columns have questions whose difficulty for the known models is no random draw, shape (n,)."""
    seen, weights = answers.seen, answers.weights[:, answers.known]
    count = np.maximum(weights.sum(axis=1), 1e-300)
    difficulty = (answers.Y[:, answers.known] * weights).sum(axis=1) / count
    unlike = np.zeros(seen.shape[1], bool)
    told = np.zeros_like(unlike) if sampling.probabilities is None else sampling.recorded(seen)
    for j in np.flatnonzero(~answers.full & seen.any(axis=0) & ~told):
        statistic, freedom = _drawn_statistic(difficulty, seen[:, j], sampling.strata)
        unlike[j] = stats.norm.sf(abs(statistic)) * 2 < _UNLIKE_RANDOM and freedom > 2
    return unlike


def _drawn_statistic(difficulty, seen, strata) -> tuple[float, int]:
    """Difference of sample and population means within strata, over its standard error for random draws."""
    difference, variance, n = 0.0, 0.0, 0
    for stratum in np.unique(strata):
        inside = strata == stratum
        k, size = int(seen[inside].sum()), int(inside.sum())
        if 0 < k < size:
            values = difficulty[inside]
            difference += k * (values[seen[inside]].mean() - values.mean())
            variance += k * values.var() * (1 - k / size)
            n += k
    return (difference / np.sqrt(variance), n) if variance > 0 else (0.0, n)
