"""Which method to use, in a sentence."""

from __future__ import annotations

from itertools import takewhile

import numpy as np

from ..leaving_out import is_no_chance
from ._results import Result, label

_EXACT = 1e-8  # of the spread of the entries
_HOPELESS = 0.9  # of the spread
_CHANCE = 2.0  # standard errors within which two errors are taken for equal
_SLIGHT = 1.01  # times an error that is no reason to prefer a method, even if it is no chance
_MORE = 1.2  # times the entries of another method that are no longer about as many


def advise(done: list[Result], losses: dict, spread: float) -> str:
    """The sentence; `done` is in the order of the errors, `losses` the mean square error of every column by method."""
    if not done:
        return "no method finished; the lines above say why."
    best, exact = done[0], [r for r in done if r.error <= _EXACT * spread]
    if exact:
        frugal = min(exact, key=lambda r: (r.entries, r.seconds))
        return f"the data are of low rank to rounding; use {label(frugal.method)}, which recovers them exactly."
    if best.error > _HOPELESS * spread:
        size = (
            f"{best.error / spread:.0%} of the spread" if spread else f"{best.error:.4g}, of entries that are all equal"
        )
        return (
            f"none can be trusted: the least error, of {label(best.method)}, is {size};"
            " look with inspect whether more full columns or entries would help."
        )
    if len(done) == 1:
        return f"{label(best.method)} is off by {best.error:.4g}; compare it with other methods."
    slight, pair = _SLIGHT * best.error, lambda r: (losses[best.method], losses[r.method])
    equal = list(takewhile(lambda r: r.error <= slight or not _clearly_worse(*pair(r)), done))
    if any(r.method == "row_means" for r in equal):
        return (
            "no method predicts clearly better than row means and an offset; use these, and look with inspect whether"
            " more full columns or entries would help."
        )
    if len(equal) == 1:
        return f"use {label(best.method)}; {_words(best, done[1])}."
    names = ", ".join(label(r.method) for r in equal[:-1]) + f" and {label(equal[-1].method)}"
    return f"{names} predict about equally well; use {_choice(equal)}."


def _choice(equal: list[Result]) -> str:
    """Of those that predict equally well, one that reads little, has intervals, is off least, is quick; in order."""
    frugal = [r for r in equal if r.entries <= _MORE * min(r.entries for r in equal)]
    sure = [r for r in frugal if r.coverage is not None]
    able = sure or frugal
    chosen = min((r for r in able if r.error <= _SLIGHT * min(r.error for r in able)), key=lambda r: r.seconds)
    reasons = ["reads fewer entries"] if len(frugal) < len(equal) else []
    reasons += ["has intervals"] if len(sure) < len(frugal) and sure else []
    return f"{label(chosen.method)}, which {' and '.join(reasons) or 'is the quickest of them'}"


def _words(best: Result, second: Result) -> str:
    words = f"its error is {1 - best.error / second.error:.1%} below that of {label(second.method)}, the next best"
    return words + ("" if best.coverage is None else f", and its 90 % intervals held {best.coverage:.1%}")


def _clearly_worse(best, other) -> bool:
    """By more than chance, the columns taken as independent; their root mean squares have the lighter tails."""
    return is_no_chance(np.sqrt(other) - np.sqrt(best), _CHANCE)
