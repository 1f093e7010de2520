"""Which method to use, in a sentence. Errors are in units of the spread of rows or columns."""

from __future__ import annotations

from itertools import takewhile

import numpy as np

from ...model.leaving_out import is_no_chance
from ._methods import MEANS
from ._results import Finished, label, percent

_EXACT = 1e-8  # Relative error up to which data count as recovered.
_HOPELESS = 0.9  # Share of the error of row means; from here on no method can be trusted.
_SLIGHT = 1.01  # Ratio of two errors up to which neither method is preferred, even if it is no chance.
_LARGE = (
    1.25  # Ratio to the least error beyond which an error is never called about equal; the advice then names chance.
)
_MORE = 1.2  # Ratio of two numbers of entries from which they are no longer about equal.


def advise(done: list[Finished], losses: dict, spread: float) -> tuple[str, str | None]:
    """The sentence, and the method that it names; None if it names none.

    `done` is in the order of the errors, `spread` the error of predicting the row means. `losses` holds the mean square
    error of every column or row by method.
    """
    if not done:
        return "no method finished; the lines above say why.", None
    best, exact = done[0], [r for r in done if r.relative_error <= _EXACT]
    if exact:
        frugal = min(exact, key=lambda r: (r.entries, r.seconds)).method
        return f"the data are of low rank to rounding; use {label(frugal)}, which recovers them exactly.", frugal
    if best.relative_error > _HOPELESS * spread:
        return (
            f"no method predicts well enough. The smallest error, of {label(best.method)}, is"
            f" {percent(best.relative_error, 0)} of the spread."
        ), None
    if len(done) == 1:
        words = f"is off by {percent(best.relative_error)} of the spread of the data. Compare it with other methods."
        return f"{label(best.method)} {words}", best.method
    slight, pair = _SLIGHT * best.relative_error, lambda r: (losses[best.method], losses[r.method])
    chance = list(takewhile(lambda r: r.relative_error <= slight or not _clearly_worse(*pair(r)), done))
    equal = [r for r in chance if r.relative_error <= _LARGE * best.relative_error]
    means = [r.method for r in chance if r.method in MEANS]
    if means:
        return (f"no method predicts clearly better than {label(means[0])}. More known values may change that."), None
    if len(equal) == 1:
        doubt = " The difference may be chance: hide more values to be sure." if len(chance) > 1 else ""
        return f"use {label(best.method)}; {_words(best, done[1])}.{doubt}", best.method
    names = ", ".join(label(r.method) for r in equal[:-1]) + f" and {label(equal[-1].method)}"
    choice, reason = _choice(equal)
    return f"{names} predict about equally well; use {label(choice)}, which {reason}.", choice


def _choice(equal: list[Finished]) -> tuple[str, str]:
    """The choice among equally good methods: it reads little, has intervals, is off least, is quick, in this order.

    `complete` is preferred: its intervals are calibrated, and it fills a file with them.
    """
    frugal = [r for r in equal if r.entries <= _MORE * min(r.entries for r in equal)]
    sure = [r for r in frugal if r.coverage is not None]
    able = [r for r in sure if r.method == "complete"] or sure or frugal
    least = min(r.relative_error for r in able)
    chosen = min((r for r in able if r.relative_error <= _SLIGHT * least), key=lambda r: r.seconds)
    reasons = ["reads fewer entries"] if len(frugal) < len(equal) else []
    if chosen.method == "complete":
        reasons.append("has calibrated intervals")
    elif sure and len(sure) < len(frugal):
        reasons.append("has intervals")
    return chosen.method, " and ".join(reasons) or "is the quickest of them"


def _words(best: Finished, second: Finished) -> str:
    less = 1 - best.relative_error / second.relative_error
    words = f"its error is {percent(less)} below that of {label(second.method)}, the next best"
    return words + ("" if best.coverage is None else f", and its 90 % intervals held {percent(best.coverage)}")


def _clearly_worse(best, other) -> bool:
    """Whether one is worse by more than chance; columns or rows count as independent, by their root mean squares."""
    return is_no_chance(np.sqrt(other) - np.sqrt(best))
