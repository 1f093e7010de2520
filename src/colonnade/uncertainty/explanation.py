"""An explanation as words, as a frame, as a picture and for a notebook."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np

from .._support.arguments import shown
from .._support.printable import printable
from ..data.frames import frame_of_columns
from ..data.observations import Observations
from .column_verdict import ColumnVerdict

_SHOWN = 8  # Known entries that are named in words; the frame has all.


class Similar(NamedTuple):
    """A column (or row) with similar coefficients.

    Attributes
    ----------
    name : str or int
    distance : float
        Euclidean distance of the coefficients, each in standard deviations of its prior.
    value : float
        Its entry beside the explained one, observed or filled.
    """

    name: str | int
    distance: float
    value: float


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why an entry has its value: ``prediction = level + offset + contributions.sum()``.

    Attributes
    ----------
    row, column : str or int
        The name, or the number where there are no names.
    value : float
        What the filled table holds; NaN if the entry could not be filled.
    is_observed : bool
    prediction : float
        The sum. Of an observed entry, the prediction without it; NaN if the others do not determine one.
    level : float
        Typical value of the row (of the column, if `through` is "row"); 0 where nothing is subtracted.
    offset : float
        What neither the level nor the known entries explain: 0 but in a factor model.
    through : {"column", "row"}
        Whose known entries are summed: those of the entry's column, or of its row in a factor model that was learned
        with rows and columns exchanged.
    names, values, weights, contributions : arrays of shape (s,)
        Of the known entries, the largest contribution first. A contribution is the weight times the difference of
        the entry from its own level. If the entry were larger by 1, the prediction would be larger by the weight.
    leverage : float
        Share of its surprise by which the prediction would move if the entry were measured, from 0 to 1.
    similar : list of Similar
        The columns (or rows) whose coefficients are nearest, the nearest first.
    interval : (float, float) or None
        None for an observed entry and where there is none.
    interval_level : float
        Its probability.
    verdict, remedy : str or None
        Of the column, as `Completion.certificates` has it; None for large results, whose columns are not judged.
    message : str
        What became of the column, in words.
    bounds : (float, float) or None
        Between which predictions are kept.
    source : Observations
        The known entries, for the kind of frame.
    """

    row: str | int
    column: str | int
    value: float
    is_observed: bool
    prediction: float
    level: float
    offset: float
    through: str
    names: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    contributions: np.ndarray
    leverage: float
    similar: list[Similar]
    interval: tuple[float, float] | None
    interval_level: float
    verdict: str | None
    remedy: str | None
    message: str
    bounds: tuple[float, float] | None
    source: Observations

    def to_frame(self):
        """A frame with a line for each known entry, the largest contribution first.

        The columns are row (or column, if `through` is "row"), value, weight and contribution. It is a frame of the
        library that the data came from, else of pandas.
        """
        other = "column" if self.through == "row" else "row"
        lines = {other: self.names, "value": self.values, "weight": self.weights, "contribution": self.contributions}
        return frame_of_columns(lines, self.source)

    def to_dict(self) -> dict:
        """The same as plain numbers and text that JSON can hold; None for what is not finite."""
        facts = {name: getattr(self, name) for name in ("row", "column", "is_observed", "through", "message")}
        facts |= {name: _finite(getattr(self, name)) for name in ("value", "prediction", "level", "offset", "leverage")}
        lines = zip(self.names.tolist(), *(x.tolist() for x in (self.values, self.weights, self.contributions)))
        facts["entries"] = [dict(zip(("name", "value", "weight", "contribution"), line)) for line in lines]
        facts["similar"] = [one._asdict() | {"value": _finite(one.value)} for one in self.similar]
        facts["interval"] = None if self.interval is None else [_finite(end) for end in self.interval]
        facts |= {"interval_level": self.interval_level, "verdict": self.verdict, "remedy": self.remedy}
        return facts

    def plot(self, ax=None):
        """Draw the sum with matplotlib: a bar for the largest contributions, one for the rest, and the prediction.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: new ones.

        Returns
        -------
        matplotlib Axes
        """
        from ..interfaces.explanation_plot import plot_explanation

        return plot_explanation(self, ax)

    def terms(self, most: int) -> list[tuple[str, float]]:
        """The sum in at most `most` + 3 terms: level, offset if there is one, largest contributions, and the rest."""
        terms = [(f"level of {self._levelled}", self.level)]
        terms += [("offset", self.offset)] if self.offset else []
        terms += [(_name(name), float(x)) for name, x in zip(self.names[:most], self.contributions[:most])]
        n_rest = self.names.size - most
        if n_rest > 0:
            terms.append((f"{n_rest:,} other{'s' if n_rest > 1 else ''}", float(self.contributions[most:].sum())))
        return terms

    @property
    def _levelled(self) -> str:
        return f"column {_name(self.column)}" if self.through == "row" else f"row {_name(self.row)}"

    @property
    def _summed(self) -> str:
        return f"row {_name(self.row)}" if self.through == "row" else f"column {_name(self.column)}"

    def lines(self) -> list[str]:
        """The explanation in sentences, without the list of entries."""
        return [*self._result(), *self._sum(), *self._trust()]

    def _result(self) -> list[str]:
        place = f"Row {_name(self.row)}, column {_name(self.column)}"
        if self.is_observed:
            if math.isnan(self.prediction):
                return [f"{place} was observed: {_number(self.value)}. Nothing can be predicted without it."]
            said = "Without it the model predicts" if "no part" not in self.message else "The model predicts"
            lines = [f"{place} was observed: {_number(self.value)}. {said} {_number(self.prediction)}."]
            return lines + ([f"Note: {self.message}."] if "no part" in self.message else [])
        if math.isnan(self.value):
            subject = "" if self.message.startswith("the row") else f"column {_name(self.column)} "
            reason = self.message if self.remedy is None else self.message.partition(";")[0]  # The remedy comes last.
            return [f"{place} could not be filled: {subject}{reason}."]
        ends = ""
        if self.interval is not None:
            low, high = map(_number, self.interval)
            ends = f" The {100 * self.interval_level:.3g} % interval is {low} to {high}."
        return [f"{place} was filled with {_number(self.value)}.{ends}"]

    def _sum(self) -> list[str]:
        if math.isnan(self.prediction):
            return []
        n = self.names.size
        entries = f"{n:,} known {'entry' if n == 1 else 'entries'} of {self._summed}"
        offset = f" {_signed(self.offset)} (offset)" if self.offset else ""
        total = float(self.contributions.sum())
        level = f"{_number(self.level)} (level of {self._levelled}){offset} {_signed(total)}"
        start = level if self.level or self.offset else _number(total)
        lines = [f"{_number(self.prediction)} = {start} ({entries})"]
        if self.through == "row":
            lines.append("The model fills rows, so the value follows from the known entries of its row.")
        if not self.is_observed and self.bounds is not None and self.value != self.prediction:
            low, high = map(_number, self.bounds)
            if not self.bounds[0] <= self.prediction <= self.bounds[1]:
                lines.append(f"Predictions are kept between {low} and {high}.")
        return lines

    def _trust(self) -> list[str]:
        lines = []
        if self.similar:
            side = "rows" if self.through == "row" else "columns"
            some = ", ".join(f"{_name(s.name)} (distance {s.distance:.2g}, {_number(s.value)})" for s in self.similar)
            lines.append(f"Most similar {side}, with the distance between their coefficients: {some}.")
        if math.isfinite(self.leverage) and not math.isnan(self.prediction):
            share = f"{100 * self.leverage:.2g} % of the way"
            if self.is_observed:
                lines.append(f"Leverage: knowing it moves the fit {share} from this prediction to the known value.")
            else:
                lines.append(f"Leverage: measuring it would move the fit {share} to the measured value.")
        if self.verdict is not None:
            cure = "" if self.remedy is None else f"; {self.remedy}"
            lines.append(f"Column {_name(self.column)}: {ColumnVerdict(self.verdict).shown}{cure}.")
        return lines

    def __str__(self) -> str:
        n_first = len(self._result()) + min(1, len(self._sum()))
        lines = self.lines()
        return "\n".join([*lines[:n_first], *self._entry_lines(), *lines[n_first:]])

    def _entry_lines(self) -> list[str]:
        cells = [
            (_name(name), _number(value), f"weight {weight:.3g}", _signed(part))
            for name, value, weight, part in zip(
                self.names[:_SHOWN], self.values.tolist(), self.weights.tolist(), self.contributions.tolist()
            )
        ]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
        rest = self.names.size - _SHOWN
        if rest > 0:
            total = _signed(float(self.contributions[_SHOWN:].sum()))
            lines.append(f"  {rest:,} other{'s' if rest > 1 else ''}  {total}")
        return lines

    def __repr__(self) -> str:
        kind = "observed" if self.is_observed else "not filled" if math.isnan(self.value) else "filled"
        return f"<Explanation of row {_name(self.row)}, column {_name(self.column)}: {kind}, {_number(self.value)}>"

    def _repr_html_(self) -> str:
        head = f"<tr><th>{'column' if self.through == 'row' else 'row'}</th>" + "".join(
            f"<th>{name}</th>" for name in ("value", "weight", "contribution")
        )
        numbers = zip(self.values[:_SHOWN].tolist(), self.weights.tolist(), self.contributions.tolist())
        body = "".join(
            f"<tr><td>{escape(_name(name))}</td>" + "".join(f"<td>{_number(x)}</td>" for x in line) + "</tr>"
            for name, line in zip(self.names[:_SHOWN], numbers)
        )
        table = f"<table>{head}</tr>{body}</table>" if self.names.size else ""
        words = "".join(f"<p>{escape(line)}</p>" for line in self.lines())
        return f"<div>{words}{table}</div>"


def _name(name) -> str:
    """A name for people: quoted and shortened; a number as it is."""
    return printable(shown(name)) if isinstance(name, str) else f"{name}"


def _number(x: float) -> str:
    return f"{x:.5g}"


def _signed(x: float) -> str:
    return f"{'-' if x < 0 else '+'} {abs(x):.5g}"


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
