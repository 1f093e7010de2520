"""Pictures of a completion: coverage, spectrum, prediction and calibration, drawn on axes of matplotlib."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._support.arguments import as_choice
from ..data.seen_grid import seen_shares_of_parts
from ..uncertainty.diagnostics import hold_out, spectrum

_LARGE = 1e300  # Numbers from here on leave no room for a margin.
_OUTLIER = 100.0  # Times the range of the middle half of the values: beyond it a value would be all that one sees.
_POINTS = 1_500  # Points of a scatter plot; more are a blot and a large file.
_DIRECTIONS = 300  # Directions of the spectrum that are drawn.
_FEW_DIRECTIONS = 10  # Directions up to which each has a tick of its own.


@dataclass(frozen=True)
class Palette:
    """Colours of a picture; `seen` is that of entries seen, on whatever the page is."""

    text: str = "#333333"
    faint: str = "#999999"
    main: str = "#1f5fa8"
    other: str = "#b3541e"
    seen: str = "#3f83cf"


def plot_completion(completion, what=None, ax=None):
    """Draw one picture of a completion, or all four; see `Completion.plot`."""
    if what is None and ax is None:
        import matplotlib
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(2, 2, figsize=(11, 8), layout="constrained")
        for name, panel in zip(PICTURES, axes.ravel()):
            PICTURES[name](panel, completion, Palette())
            panel.set_title(name)
        if "inline" in matplotlib.get_backend():
            pyplot.close(figure)  # A notebook shows the figure that is returned; pyplot would draw it once more.
        return figure
    what = as_choice("what", what, tuple(PICTURES))
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(layout="constrained")
    PICTURES[what](ax, completion, Palette())
    return ax


def draw_coverage(ax, completion, palette: Palette) -> None:
    """The share of known values over the table, with the fullest columns at the left."""
    m, n = completion.shape
    parts = (block.observations for block in completion.solution.blocks())
    shares = seen_shares_of_parts(parts, completion.shape, completion.n_observed, 120, 240)
    pixels = np.empty((*shares.shape, 4))
    pixels[..., :3] = [int(palette.seen[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    pixels[..., 3] = np.where(shares > 0, 0.12 + 0.88 * shares, 0)  # A place with few known values stays visible.
    ax.imshow(
        pixels,
        aspect="auto",
        interpolation="nearest",
        extent=(0.5, n + 0.5, m + 0.5, 0.5),
    )
    ax.set_xlabel("columns, the fullest first")
    ax.set_ylabel("rows")


def draw_spectrum(ax, completion, palette: Palette, found=None) -> None:
    """The deviation along each direction, with the noise of a value and of a typical column."""
    found = spectrum(completion) if found is None else found
    if found.deviations.size == 0:
        _say(ax, "No direction: every column is complete, or all values equal the mean of their row.", palette)
        return
    if not completion.has_variances:
        _say(ax, "The squares of these numbers overflow. Rescale the data.", palette)
        return
    drawn = 0
    if found.of_full_columns is not None:
        values = found.of_full_columns[:_DIRECTIONS]
        drawn = values.size
        label = "all directions of the complete columns"
        ax.plot(np.arange(1, values.size + 1), values, "o", ms=5, mfc="none", color=palette.faint, label=label)
    values = found.deviations[: min(found.n_in_use, _DIRECTIONS)]
    ax.plot(np.arange(1, values.size + 1), values, ".", ms=6, color=palette.main, label=f"{found.n_in_use:,} in use")
    if np.isfinite(found.noise_std) and found.noise_std > 0:
        ax.axhline(found.noise_std, color=palette.other, lw=1.5, label="noise of one value")
        ax.axhline(
            found.blurred,
            color=palette.other,
            lw=1,
            ls="--",
            label=f"noise for a {found.side} with the median number of values",
        )
    positive = [v for v in (found.of_full_columns, found.deviations) if v is not None and (v > 0).any()]
    if positive:
        ax.set_yscale("log")
    ax.set_xlabel("direction")
    last = max(drawn, values.size)
    ax.xaxis.get_major_locator().set_params(integer=True)
    if last <= _FEW_DIRECTIONS:
        ax.set_xticks(range(1, last + 1))
    ax.set_xlim(0.5, last + 0.9)
    ax.set_ylabel("deviation along it, of standardised values" if found.is_relative else "standard deviation along it")
    ax.legend(frameon=False, fontsize=8, labelcolor=palette.text)


def draw_prediction(ax, completion, palette: Palette, found=None) -> None:
    """Hidden values: the prediction without them against the truth."""
    found = hold_out(completion) if found is None else found
    if found is None:
        _say(ax, "No known value could be hidden and predicted.", palette)
        return
    some = np.linspace(0, found.truth.size - 1, min(_POINTS, found.truth.size)).astype(int)
    truth = found.truth[some]
    usual = are_usual(truth) & (np.abs(truth) < _LARGE) & np.isfinite(found.predicted[some])
    if not usual.all():
        ax.set_title(f"{int((~usual).sum()):,} outliers are not shown", fontsize=8)
    truth, predicted = found.truth[some][usual], found.predicted[some][usual]
    ax.plot(truth, predicted, ".", ms=3, alpha=0.6, color=palette.main)
    low, high = float(truth.min()), float(truth.max())
    ax.plot([low, high], [low, high], color=palette.other, lw=1)
    margin = 0.25 * (high - low) or 1.0  # A prediction far off must not hide the others.
    ax.set_ylim(max(low - margin, predicted.min() - 0.02 * margin), min(high + margin, predicted.max() + 0.02 * margin))
    ax.set_xlabel("true value")
    ax.set_ylabel("predicted without it")


def are_usual(values) -> np.ndarray:
    """Which values are not out of all proportion to most of them, shape (k,)."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.abs(values - middle) <= _OUTLIER * ((high - low) or np.inf)


def draw_calibration(ax, completion, palette: Palette, found=None) -> None:
    """The share of hidden values inside their interval, against the level of the interval."""
    found = hold_out(completion) if found is None else found
    if found is None:
        _say(ax, "No known value could be hidden and predicted.", palette)
        return
    ax.plot([0, 1], [0, 1], color=palette.other, lw=1, label="promised")
    ax.plot(found.levels, found.coverage, "o-", ms=4, lw=1.2, color=palette.main, label="found")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_xlabel("level of the interval")
    ax.set_ylabel("share of values inside")
    ax.legend(frameon=False, fontsize=8, labelcolor=palette.text)


def _say(ax, words: str, palette: Palette) -> None:
    ax.text(0.5, 0.5, words, ha="center", va="center", color=palette.text, transform=ax.transAxes, wrap=True)
    ax.set_xticks([])
    ax.set_yticks([])


PICTURES = {
    "coverage": draw_coverage,
    "spectrum": draw_spectrum,
    "prediction": draw_prediction,
    "calibration": draw_calibration,
}
