"""What a comparison found: a table and a sentence of advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from ..._support.arguments import shown
from ..._support.html import html_lines, html_table

_HEAD = "method", "error", "of spread", "in 90 % interval", "seconds", "entries", ""
_WIDTH = 20  # Characters of a bar that is as long as the spread.
_HUGE = 1e6  # Relative errors from here on are not shown.
_LONGEST = 300  # Characters of a remark, at most.


@dataclass(frozen=True)
class Result:
    """What became of a method.

    Attributes
    ----------
    method : str
    error : float or None
        Root mean square error at the hidden entries, in units of the data; None if the method failed or was not run.
    coverage : float or None
        Share of the hidden entries that lie in their 90 % interval; None if the method has no intervals.
    seconds : float or None
    entries : int or None
        How many entries the method knew or read.
    remark : str
        Why there is no error, or what else to know of it; a line.
    relative_error : float or None
        Root mean square error at the hidden entries, each in units of the standard deviation of its row. Where columns
        differ more, it is that of its column. 1 is about the error of predicting means. The methods are ordered by it.
    """

    method: str
    error: float | None = None
    coverage: float | None = None
    seconds: float | None = None
    entries: int | None = None
    remark: str = ""
    relative_error: float | None = None


@dataclass(frozen=True)
class Finished(Result):
    """What became of a method that has predicted the hidden entries."""

    error: float = np.nan
    seconds: float = np.nan
    entries: int = 0
    relative_error: float = np.nan


@dataclass(frozen=True, repr=False)
class Comparison:
    """Methods side by side, the one with the least relative error first; printing it gives the table.

    Attributes
    ----------
    results : list of Result
    shape : (int, int)
    n_hidden : int
        How many entries were predicted.
    spread : float
        Root mean square of these entries about their mean.
    advice : str
        Which method to use, in a sentence.
    method : str or None
        The method that the advice names; None if there is none.
    interrupted : bool
        Whether it was stopped before all methods had run.
    """

    results: list[Result]
    shape: tuple[int, int]
    n_hidden: int
    spread: float
    advice: str
    method: str | None = None
    interrupted: bool = False

    @property
    def finished(self) -> list[Finished]:
        """The results that have an error."""
        return [result for result in self.results if isinstance(result, Finished)]

    def to_dict(self) -> dict:
        """All of it as JSON can hold it."""
        return asdict(self) | {"shape": list(self.shape)}

    def plot(self, ax=None):
        """Draw the errors with matplotlib, on axes of your own or new ones; the axes are returned."""
        from ._picture import draw

        return draw(self, ax)

    def __str__(self) -> str:
        rows = [_HEAD, *(_cells(result) for result in self.finished)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
        lines = [_line(row, widths) for row in rows] if self.finished else []
        return "\n".join([self._title(), *lines, *self._remarks()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = html_table(_HEAD[:-1], [_cells(result)[:-1] for result in self.finished]) if self.finished else ""
        return f"<div>{html_lines([self._title()])}{table}{html_lines(self._remarks())}</div>"

    def _title(self) -> str:
        return f"Errors at {self.n_hidden:,} hidden entries of a {self.shape[0]:,} x {self.shape[1]:,} matrix:"

    def _remarks(self) -> list[str]:
        lines = _remarks(self.results)
        lines += ["Interrupted: only these methods had finished."] if self.interrupted else []
        return [*lines, f"Advice: {self.advice}"]


def _remarks(results) -> list[str]:
    """A line for each remark, with the methods that share it."""
    methods: dict[str, list[str]] = {}
    for result in results:
        if result.remark:
            methods.setdefault(result.remark, []).append(label(result.method))
    return [
        f"Note: {remark}." if all(name in remark for name in names) else f"{', '.join(names)}: {remark}"
        for remark, names in methods.items()
    ]


def label(name: str) -> str:
    """A name of a method as it may be shown: short, and nothing in it that a terminal would obey."""
    return name if name.isprintable() and 0 < len(name) <= 40 else shown(name)


def percent(share: float, digits: int = 1) -> str:
    """A share as people read it."""
    return f"{100 * share:.{digits}f} %"


def one_line(error) -> str:
    """What an exception or a warning says, shortened."""
    words = " ".join(str(error)[: 10 * _LONGEST].split()) or type(error).__name__
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3] + "..."


def _cells(result: Finished) -> list[str]:
    share = percent(result.relative_error) if result.relative_error < _HUGE else "-"
    coverage = "-" if result.coverage is None else percent(result.coverage)
    numbers = f"{result.error:.4g}", share, coverage, f"{result.seconds:.2f}", f"{result.entries:,}"
    return [label(result.method), *numbers, _bar(result.relative_error)]


def _bar(relative: float) -> str:
    """The error as a bar, cut off where it is larger than the spread of the data."""
    length = min(relative, 2.0) * _WIDTH
    return "#" * round(length) if length <= _WIDTH else "#" * _WIDTH + ">"


def _line(cells, widths) -> str:
    numbers = [cell.rjust(width) for cell, width in zip(cells[1:-1], widths[1:-1])]
    return "  ".join([cells[0].ljust(widths[0]), *numbers, cells[-1]]).rstrip()
