"""What a reader must know about a score, in words."""

from __future__ import annotations

import numpy as np

from .answers import Answers

_SURELY = 2.0  # Standard errors from which a correction counts as seen.


def remarks_of(answers: Answers, found, unlike, n_observed) -> list[tuple[int, str]]:
    """(column, sentence) for models beyond the known ones, and for questions that are no random draw."""
    remarks = []
    for j in np.flatnonzero(~answers.full):
        gap = found.score[j] - found.predicted[j]
        seen = abs(gap) > _SURELY * found.correction_error[j] > 0
        if n_observed[j] == 0:
            remarks.append((int(j), "no answer: the score is what known models predict"))
        elif found.beyond[j] >= 0.5:
            side = "above" if found.score[j] > found.predicted[answers.known].mean() else "below"
            sentence = f"beyond the known models, {side} all of them"
            if abs(gap) > found.correction_error[j] > 0:
                sentence += f", and {difference_in_words(gap, answers)} what they predict"
            remarks.append((int(j), f"{sentence}: this score rests on its own answers"))
        elif seen:
            words = difference_in_words(gap, answers)
            remarks.append((int(j), f"{words} what the known models predict: this score rests on its own answers"))
        if unlike[j]:
            remarks.append((int(j), _GIVEN))
    return remarks


_GIVEN = "its questions are easier or harder than a random draw: they count as given, so the interval may be too narrow"


def difference_in_words(gap: float, answers: Answers) -> str:
    """For example "14 points above"; points are hundredths of a bounded scale."""
    side = "above" if gap > 0 else "below"
    if answers.scale.bounded:
        return f"{abs(100 * gap):.0f} points {side}"
    return f"{abs(gap * answers.scale.width):.3g} {side}"
