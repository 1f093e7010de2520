"""The verdict on a filled table: three possible words, and one sentence that gives the reason.

It rests on entries that were held out: their error as a share of the spread of the data, which has no unit, and the
share of them that lies within their 90 % intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEVEL = 0.9  # Of the intervals whose coverage is judged.
_SMALL, _LARGE = 0.5, 1.0  # Errors as shares of the spread: half of it, and what filling in the mean would give.
_LEAST, _MOST = 0.8, 0.98  # Coverage of 90 % intervals that is near enough.
_ROUNDING = 1e-6  # Share of the spread below which an error is rounding, so that coverage means nothing.


@dataclass(frozen=True)
class Verdict:
    """Whether to use a filled table; ``str`` gives the word and the sentence.

    Attributes
    ----------
    word : {"use it", "use it with care", "do not use it"}
    sentence : str
        The reason.
    """

    word: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.word}. {self.sentence}"


NOTHING_TO_FILL = Verdict("use it", "Every entry was observed, so that nothing had to be filled.")
EXACT = Verdict("use it", "The observed entries fit the model to rounding, so that the filled ones are exact.")
NOT_JUDGED = Verdict(
    "use it with care", "Too few entries could be held out to tell how far the filled ones are from the truth."
)


def not_judged_by(method: str) -> Verdict:
    """The verdict on the answer of a method that holds out nothing."""
    return Verdict(
        "use it with care", f"{method} holds out no entries, so that nothing tells how far its answers are off."
    )


def judge(error: float, coverage: float) -> Verdict:
    """The verdict from what held-out entries tell.

    Parameters
    ----------
    error : float
        Root mean square error of held-out entries as a share of the spread of the data.
    coverage : float
        Share of the held-out entries that lie within their 90 % intervals.
    """
    if error <= _ROUNDING:
        return Verdict("use it", "Held-out entries are predicted to rounding.")
    if not np.isfinite(error):
        return NOT_JUDGED
    facts = f"The error of held-out entries is {100 * error:.3g} % of the spread of the data"
    if error >= _LARGE:
        return Verdict("do not use it", f"{facts}, no better than filling in the mean.")
    within = f"{100 * coverage:.3g} % of them lie within their {100 * LEVEL:.0f} % intervals"
    if not _LEAST <= coverage <= _MOST:
        kind = "narrow" if coverage < _LEAST else "wide"
        return Verdict("use it with care", f"{facts}, but the intervals are too {kind}: {within}.")
    if error >= _SMALL:
        return Verdict("use it with care", f"{facts}, which is not below half; {within}.")
    return Verdict("use it", f"{facts}, and {within}.")
