"""The picture of a comparison: the error of every method, with what else is known beside it."""

from __future__ import annotations

from ._results import label, percent

_WIDE = 10  # Ratio of the largest to the least error from which the scale is logarithmic.
_BEST, _OTHER = "#1f5fa8", "#9db4cc"


def draw(comparison, ax=None):
    """The axes with the errors; as `Comparison.plot`."""
    done = comparison.finished
    if not done:
        raise ValueError("no method has finished, so there is nothing to draw")
    if ax is None:
        from matplotlib.figure import Figure

        ax = Figure(figsize=(8, 1.3 + 0.36 * len(done)), layout="constrained").subplots()
    errors = [result.relative_error for result in done]
    logarithmic = max(errors) > _WIDE * min(errors)
    least = min((error for error in errors if error > 0), default=1.0) / 3 if logarithmic else 0.0
    shown = [max(error, least) for error in errors]
    if logarithmic:  # A logarithmic scale has no zero where a bar could begin, so there are dots.
        ax.set_xscale("log")
        ax.set_xlim(least, max(errors) * max(3.0, (max(errors) / least) ** 0.6))
        ax.scatter(shown, range(len(done)), color=[_BEST, *[_OTHER] * (len(done) - 1)], zorder=3)
        ax.grid(axis="y", alpha=0.3)
    else:
        ax.barh(range(len(done)), shown, color=[_BEST, *[_OTHER] * (len(done) - 1)], height=0.7)
        ax.set_xlim(0, 1.6 * max(errors) or 1.0)
    for k, result in enumerate(done):
        ax.annotate(_beside(result), (shown[k], k), (7, 0), textcoords="offset points", va="center", fontsize=8)
    _mark_spread(ax)
    ax.set_yticks(
        range(len(done)), [label(result.method).replace("$", r"\$") for result in done]
    )  # $ means mathematics
    ax.set_ylim(len(done) - 0.4, -0.6)
    scale = ", logarithmic" if logarithmic else ""
    ax.set_xlabel(f"error at {comparison.n_hidden:,} hidden entries, in standard deviations of the rows{scale}")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _mark_spread(ax) -> None:
    low, high = ax.get_xlim()
    if low < 1 < high:
        ax.axvline(1, color="black", linewidth=1, linestyle=":", zorder=0)
        ax.annotate("row means", (1, 1), xycoords=("data", "axes fraction"), ha="center", fontsize=7)


def _beside(result) -> str:
    covered = "" if result.coverage is None else f", {percent(result.coverage, 0)} in 90 % intervals"
    return f"{result.relative_error:.3g}{covered}, {result.seconds:.2g} s"
