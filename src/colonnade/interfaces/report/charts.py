"""Charts of the report as inline SVG: their colours are classes of the page, and every mark has a text for the pointer.

Names stand only in texts for the pointer, which are escaped here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 8, 36  # Margins in units of the drawing, about a pixel each.
_LETTER = 6.2  # Width of a letter in the same units, to know how long a label is.
_WIDE, _NARROW = 430, 360  # Widths of a chart where two or three stand side by side.
_MOST_BARS = 120  # Bars of a chart, each about 2.5 pixels wide.
_FEW = 40  # Values of a series up to which their dots are large.


@dataclass(frozen=True)
class Axis:
    """A linear scale: values from `low` to `high` lie between the places `start` and `stop`."""

    low: float
    high: float
    start: float
    stop: float

    def at(self, values):
        """Places of values; those outside are at the edge."""
        size = max(abs(self.low), abs(self.high)) or 1.0  # Differences of the values themselves may overflow.
        low, high = self.low / size, self.high / size
        share = (np.clip(values, self.low, self.high) / size - low) / ((high - low) or 1.0)
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[float]:
        from matplotlib.ticker import MaxNLocator

        if not self.high > self.low or max(abs(self.low), abs(self.high)) > 1e300:
            return [self.low]
        found = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(self.low, self.high)
        return [float(x) for x in found if self.low <= x <= self.high]


def prediction_chart(truth, predicted, tips) -> Markup:
    """Held-out values: the prediction against the truth, with the diagonal; arguments are lists of one length."""
    low, high = _range(truth)
    x, y = Axis(low, high, _LEFT + 12, _WIDE - _RIGHT), Axis(low, high, 300 - _BOTTOM, _TOP)
    marks = [
        f'<line class="ideal" x1="{x.at(low):.1f}" y1="{y.at(low):.1f}" x2="{x.at(high):.1f}" y2="{y.at(high):.1f}"/>'
    ]
    for a, b, tip in zip(x.at(np.array(truth)), y.at(np.array(predicted)), tips):
        marks.append(f'<circle class="dot" cx="{a:.1f}" cy="{b:.1f}" r="2.6" data-tip="{escape(tip)}"/>')
    frame = _frame(x, y, "true value", "predicted without it")
    alt = "Scatter plot of held-out values: predictions against true values, with the diagonal."
    return _svg(_WIDE, 300, alt, frame + "".join(marks))


def coverage_chart(groups, level: float) -> Markup:
    """The share of held-out values inside their intervals, a line for each group.

    Parameters
    ----------
    groups : list of (str, float, int)
        Name, share and number of values.
    level : float
        The share that the intervals promise.
    """
    labels = max(len(name) for name, _, _ in groups) * _LETTER + 14
    x, height = Axis(0.5, 1.0, labels, _WIDE - 22), 34 * len(groups) + 44
    marks = [f'<line class="ideal" x1="{x.at(level):.1f}" y1="4" x2="{x.at(level):.1f}" y2="{height - 40}"/>']
    for k, (name, share, count) in enumerate(groups):
        y = 22 + 34 * k
        error = 2 * float(np.sqrt(max(share * (1 - share), 0.25 / count) / count))
        a, b, c = (float(x.at(value)) for value in (share - error, share, share + error))
        tip = f"{name}: {100 * share:.3g} % of {count:,} values inside their {100 * level:.0f} % intervals"
        marks += [
            f'<text x="{labels - 10:.0f}" y="{y + 4}" text-anchor="end">{escape(name)}</text>',
            f'<line class="range" x1="{a:.1f}" y1="{y}" x2="{c:.1f}" y2="{y}"/>',
            f'<circle class="mark" cx="{b:.1f}" cy="{y}" r="5" data-tip="{escape(tip)}"/>',
        ]
    ticks = "".join(
        f'<line class="grid" x1="{x.at(t):.1f}" y1="4" x2="{x.at(t):.1f}" y2="{height - 40}"/>'
        f'<text x="{x.at(t):.1f}" y="{height - 24}" text-anchor="middle">{100 * t:.0f} %</text>'
        for t in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    )
    middle = (x.start + x.stop) / 2
    label = f'<text x="{middle:.0f}" y="{height - 6}" text-anchor="middle">inside their 90 % intervals</text>'
    alt = "Chart of the share of held-out values inside their 90 % intervals, for each group of values."
    return _svg(_WIDE, height, alt, ticks + label + "".join(marks))


def series_chart(values, is_seen, low, high, tips, label: str) -> Markup:
    """One row or column: known values as dots, filled ones as rings with their intervals; arrays of shape (k,)."""
    drawn = np.isfinite(values)
    ends = np.concatenate([values[drawn], *(end[drawn & np.isfinite(end)] for end in (low, high))])
    x = Axis(0, max(1, values.size - 1), _LEFT, _NARROW - _RIGHT)
    y = Axis(*_range(ends), 128 - 24, _TOP)
    size = 3.2 if values.size <= _FEW else 1.8
    marks = []
    with np.errstate(invalid="ignore"):
        places, heights, lows, highs = x.at(np.arange(values.size)), y.at(values), y.at(low), y.at(high)
    for k in np.flatnonzero(drawn):
        at = f'cx="{places[k]:.1f}" cy="{heights[k]:.1f}" data-tip="{escape(tips[k])}"'
        if is_seen[k]:
            marks.append(f'<circle class="known" r="{size}" {at}/>')
            continue
        if np.isfinite([low[k], high[k]]).all():
            line = f'x1="{places[k]:.1f}" x2="{places[k]:.1f}" y1="{lows[k]:.1f}" y2="{highs[k]:.1f}"'
            marks.insert(0, f'<line class="range" {line}/>')
        marks.append(f'<circle class="filled" r="2.6" {at}/>')
    frame = _frame(x, y, label, "", no_x_ticks=True)
    return _svg(_NARROW, 128, "Known values, and filled values with their 90 % intervals.", frame + "".join(marks))


def bars_chart(shares, names, label: str, what: str) -> Markup:
    """Shares of missing values in the order of the table; neighbours share a bar where there are too many."""
    shares = np.asarray(shares, np.float64)
    count = min(shares.size, _MOST_BARS)
    edges = np.arange(count + 1) * shares.size // count
    heights = np.add.reduceat(shares, edges[:-1]) / np.diff(edges)
    x, y = Axis(0, count, _LEFT, _NARROW - _RIGHT), Axis(0, max(0.01, float(heights.max())), 128 - 24, _TOP)
    places, tops = x.at(np.arange(count + 1)), y.at(heights)
    gap = 0.15 * (places[1] - places[0])
    marks = []
    for k in range(count):
        some = names(edges[k]) if edges[k + 1] - edges[k] == 1 else f"{names(edges[k])} to {names(edges[k + 1] - 1)}"
        tip = f"{what} {some}: {100 * heights[k]:.3g} % missing"
        size = f'width="{places[k + 1] - places[k] - gap:.2f}" height="{y.start - tops[k]:.1f}"'
        marks.append(f'<rect class="bar" x="{places[k]:.2f}" y="{tops[k]:.1f}" {size} data-tip="{escape(tip)}"/>')
    frame = _frame(x, y, label, "", no_x_ticks=True, percent=True)
    return _svg(_NARROW, 128, f"Bars of the share of missing values: {label}.", frame + "".join(marks))


def _range(values) -> tuple[float, float]:
    """The range from the least to the largest, with a margin where that does not overflow."""
    low, high = float(np.min(values)), float(np.max(values))
    margin = 0.04 * (high / 2 - low / 2) * 2
    if low == high:
        margin = 0.5 * abs(low) or 1.0
    return (low, high) if max(abs(low), abs(high)) > 1e300 else (low - margin, high + margin)


def _frame(x: Axis, y: Axis, x_label: str, y_label: str, *, no_x_ticks: bool = False, percent: bool = False) -> str:
    """Lines and numbers of the axes."""
    parts = []
    for value, text in _texts(y, percent):
        place = float(y.at(value))
        parts.append(f'<line class="grid" x1="{x.start}" x2="{x.stop}" y1="{place:.1f}" y2="{place:.1f}"/>')
        parts.append(f'<text x="{x.start - 6}" y="{place + 4:.1f}" text-anchor="end">{text}</text>')
    for value, text in [] if no_x_ticks else _texts(x, percent=False):
        parts.append(f'<text x="{x.at(value):.1f}" y="{y.start + 15}" text-anchor="middle">{text}</text>')
    parts.append(f'<line class="axis" x1="{x.start}" x2="{x.stop}" y1="{y.start}" y2="{y.start}"/>')
    below = y.start + (16 if no_x_ticks else 31)
    parts.append(f'<text x="{(x.start + x.stop) / 2}" y="{below}" text-anchor="middle">{escape(x_label)}</text>')
    if y_label:
        middle = (y.start + y.stop) / 2
        turn = f'transform="rotate(-90 11 {middle})"'
        parts.append(f'<text x="11" y="{middle}" text-anchor="middle" {turn}>{escape(y_label)}</text>')
    return "".join(parts)


def _texts(axis: Axis, percent: bool) -> list[tuple[float, str]]:
    ticks = axis.ticks()
    if percent:
        return [(t, f"{100 * t:.3g} %") for t in ticks]
    return [(t, f"{t:.4g}") for t in ticks]


def _svg(width: int, height: int, alt: str, content: str) -> Markup:
    head = f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(alt)}">'
    return Markup(f"{head}{content}</svg>")
