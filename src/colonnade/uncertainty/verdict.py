"""The verdict on a filled table: three possible words, and one sentence that gives the reason.

It rests on entries that were held out: their error as a share of the spread of the data, which has no unit, and the
share of them that lies within their 90 % intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LEVEL = 0.9  # Level of intervals whose coverage is judged, that pages show, and that draws agree with.
_SMALL = 0.5  # Error as a share of the spread: at half of it, a filled value says more than the mean does.
# Share of the spread; from here on less than a tenth of the variance is explained, and the mean does as well.
_LARGE = 0.95
NARROW, WIDE = 0.8, 0.98  # Coverage of 90 % intervals that is near enough.
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


NOTHING_TO_FILL = Verdict("use it", "Every value is known, so there was nothing to fill.")
NOTHING_FILLED = Verdict(
    "do not use it", "No gap could be filled, because all gaps lie in rows or columns without any known value."
)
EXACT = Verdict("use it", "The known values fit the model exactly, so the filled values are exact up to rounding.")
EXACT_IN_PART = Verdict(
    "use it with care",
    "The known values fit the model exactly. Rows or columns with few known values are only estimates, with intervals.",
)
NOT_JUDGED = Verdict(
    "use it with care", "There are too few known values to test the predictions, so the error is unknown."
)


def not_judged_by(method: str) -> Verdict:
    """The verdict on the answer of a method that holds out nothing."""
    return Verdict("use it with care", f"{method} was not tested on known values, so its error is unknown.")


def judge(error: float, coverage: float) -> Verdict:
    """The verdict from held-out entries.

    Parameters
    ----------
    error : float
        Root mean square error of held-out entries as a share of the spread of the data.
    coverage : float
        Share of the held-out entries that lie within their 90 % intervals.
    """
    if error <= _ROUNDING:
        return Verdict("use it", "Cross-validation: hidden values are predicted exactly, up to rounding.")
    if not np.isfinite(error):
        return NOT_JUDGED
    facts = f"Cross-validation: the typical error is {100 * error:.3g} % of the data's standard deviation"
    if error >= _LARGE:
        return Verdict("do not use it", f"{facts}, no better than filling in the mean.")
    within = f"the {100 * LEVEL:.0f} % intervals contain {100 * coverage:.3g} % of the hidden values"
    if not NARROW <= coverage <= WIDE:
        kind = "narrow" if coverage < NARROW else "wide"
        return Verdict("use it with care", f"{facts}, but the intervals are too {kind}: {within}.")
    return Verdict("use it with care" if error >= _SMALL else "use it", f"{facts}, and {within}.")
