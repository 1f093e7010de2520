"""The picture of an explanation: the terms of the sum as bars from the level to the prediction."""

from __future__ import annotations

import numpy as np

from .plots import Palette

_BARS = 12  # Known entries with a bar of their own.


def plot_explanation(explanation, ax=None):
    """Draw the terms of a prediction, each from where the sum stands before it; see `Explanation.plot`."""
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(layout="constrained")
    palette = Palette()
    if np.isnan(explanation.prediction):
        ax.text(0.5, 0.5, "no prediction to explain", ha="center", transform=ax.transAxes, color=palette.text)
        return ax
    (_, level), *terms = explanation.terms(_BARS)
    sizes = np.array([size for _, size in terms])
    before = level + np.concatenate([[0.0], np.cumsum(sizes)])[: sizes.size]
    places = np.arange(sizes.size)
    colours = [palette.main if size >= 0 else palette.other for size in sizes]
    ax.barh(places, sizes, left=before, color=colours, height=0.7)
    ax.axvline(level, color=palette.faint, lw=1, ls="--", label=f"level: {level:.4g}")
    ax.axvline(explanation.prediction, color=palette.text, lw=1.2, label=f"prediction: {explanation.prediction:.4g}")
    if explanation.is_observed:
        ax.axvline(explanation.value, color=palette.other, lw=1.2, ls=":", label=f"observed: {explanation.value:.4g}")
    elif explanation.interval is not None and np.isfinite(explanation.interval).all():
        share = f"{100 * explanation.interval_level:.3g} % interval"
        ax.axvspan(*explanation.interval, color=palette.faint, alpha=0.2, lw=0, label=share)
    # A dollar sign in a name must not begin a formula.
    ax.set_yticks(places, [name.replace("$", r"\$") for name, _ in terms], fontsize=8)
    ax.invert_yaxis()
    ax.set_xlabel("value")
    ax.legend(frameon=False, fontsize=8, labelcolor=palette.text)
    return ax
