"""What a certificate says of a column: the verdicts from best to worst, each with what would help."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from .._support.arguments import named
from ..model.solve import Status

_NOISE_UNKNOWN = "measure more columns in full, because the complete columns are too few to estimate the noise"


class ColumnVerdict(StrEnum):
    """A verdict in words; the later ones are worse.

    Attributes
    ----------
    remedy : str or None
        What would help, with places for the number of values and the words for one column or several.
    predicates : tuple of two str
        What is said of one column, and of several.
    shown : str
        The verdict as people read it. A column whose entries decide is well determined, however large its noise is.
    """

    remedy: str | None
    predicates: tuple[str, ...]
    shown: str

    def __new__(cls, word: str, remedy: str | None = None, *predicates: str):
        self = str.__new__(cls, word)
        self._value_, self.remedy = word, remedy
        self.shown = {"recovered": "well determined", "approximate": "partly determined"}.get(word, word)
        self.predicates = predicates or (f"is {self.shown}", f"are {self.shown}")
        return self

    FULL = "observed in full"
    RECOVERED = "recovered"
    APPROXIMATE = "approximate", "measure about {more:,} more {values}{each} for a precise answer"
    UNCHECKED = "unchecked", "measure one more value{each} to test the fit"
    WEAK = (
        "weakly determined",
        "measure about {more:,} more {values}{each}, because the known ones say too little",
    )
    PRIOR = (
        "prior decides",
        "measure more values{each}",
        "is filled mostly by the prior",
        "are filled mostly by the prior",
    )
    PRIOR_ONLY = (
        "prior alone",
        "measure about {more:,} {values}{each}, because nothing is known of {them} yet",
        "is filled by the prior alone",
        "are filled by the prior alone",
    )
    POOR = (
        "poor fit",
        "measure {them} in full if single values matter, because the model explains too little of {them}",
        "has a poor fit",
        "have a poor fit",
    )
    OFF = "off the column space", "measure {them} in full, because the other columns do not explain {them}"
    UNDETERMINED = "not determined", "measure about {more:,} other {values}{each}, or lower the rank"
    TOO_FEW = (
        "too few entries",
        "measure at least {more:,} more {values}{each}, or lower the rank",
        "has too few entries",
        "have too few entries",
    )
    NO_OBSERVATION = (
        "no observation",
        "measure about {more:,} {values}{each}, or leave {them} out with ignore",
        "has no known value",
        "have no known value",
    )
    OVERFLOW = "overflow", "rescale the data", "overflows", "overflow"

    @property
    def severity(self) -> int:
        """0 for the best."""
        return list(ColumnVerdict).index(self)

    @property
    def is_good(self) -> bool:
        return self.severity <= ColumnVerdict.RECOVERED.severity

    @property
    def is_bad(self) -> bool:
        """Whether the column is not filled, or filled by what does not explain it."""
        return self.severity >= ColumnVerdict.POOR.severity

    @classmethod
    def of(cls, status: Status) -> ColumnVerdict:
        """The verdict on a column before its fit is looked at."""
        return cls.RECOVERED if status == Status.SOLVED else cls[status.name]


def remedy(verdict: str, more_entries: int, n_gaps: int, *, of_each: bool = False) -> str | None:
    """What would help a column with this verdict and as many gaps, or each of several; None if it needs no help."""
    words = {"each": " of each", "them": "them"} if of_each else {"each": "", "them": "it"}
    words["values"] = "value" if more_entries == 1 else "values"
    if verdict == ColumnVerdict.APPROXIMATE and more_entries == 0:
        return _NOISE_UNKNOWN
    found = ColumnVerdict(verdict).remedy
    if found is None:
        return None
    if 0 < n_gaps <= more_entries and "{more" in found:
        return f"measure {words['them']} in full, because fewer values would leave the rest uncertain"
    return found.format(more=more_entries, **words)


def verdicts_in_words(completion, table) -> list[str]:
    """The verdicts of `certify` with how many columns have each, which ones, and what would help: a line each."""
    names = completion.column_names
    lines = []
    for verdict, count in zip(*np.unique(table.verdict, return_counts=True), strict=True):
        here = table[table.verdict == verdict]
        one, several = ColumnVerdict(str(verdict)).predicates
        line = f"1 column {one}" if count == 1 else f"{count:,} columns {several}"
        n_gaps = completion.shape[0] - here.n_observed
        partly = here.more_entries < n_gaps
        some = partly if partly.sum() > count / 2 else ~partly  # What helps most of them.
        more, gaps = int(np.median(here.more_entries[some])), int(np.median(n_gaps[some]))
        cure = remedy(str(verdict), more, gaps, of_each=bool(count > 1))
        if cure is not None:
            which = ", ".join(str(named(names, j)) for j in here.column[:3])
            line += f" ({which}{', ...' if count > 3 else ''}): {cure}"
        lines.append((-count, line))
    return [line for _, line in sorted(lines)]
