"""The demonstration: a photograph, most of it hidden, is filled from some of its columns."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from .._support.arguments import as_count, as_generator, as_real, printable
from .._support.atomic_writing import new_file
from ..completion import complete


def complete_photograph(out: Path, *, n_full_columns: int = 128, share: float = 0.2, seed: int = 0) -> list[str]:
    """Hide most of a photograph, fill it, and write a picture of before and after; returns lines for the user.

    The colours stand below each other, so that a column of M (3 x 427 rows) is a column of the photograph and a
    pixel is seen in all its colours or in none.

    Parameters
    ----------
    out : path of the PNG file to write
    n_full_columns : int
        Columns of the photograph that are kept in full.
    share : float in (0, 1]
        Share of the other pixels that is kept.
    seed : int
    """
    out = Path(out)
    if out.suffix.lower() != ".png":
        raise ValueError(f"the picture is a PNG file; its name must end in .png, got {out.name!r}")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(2, "the folder does not exist", str(out.absolute().parent))
    photograph = _load()
    height, width, colours = photograph.shape
    d = as_count("n_full_columns", n_full_columns, 1, width)
    share = as_real("share", share, 0, 1, "(]")
    seen = _seen_pixels(as_generator(seed), height, width, d, share)
    M = photograph.transpose(2, 0, 1).reshape(colours * height, width)
    known = np.where(np.tile(seen, (colours, 1)), M, np.nan)

    start = time.perf_counter()
    completion = complete(known, bounds=(0, 1), random_state=seed)
    filled = completion.to_dense().reshape(colours, height, width).transpose(1, 2, 0)
    seconds = time.perf_counter() - start

    hidden = (filled - photograph)[~seen & np.isfinite(filled).all(axis=2)]
    error = float(np.sqrt(np.mean(hidden**2))) if hidden.size else 0.0
    _draw(out, photograph, seen, filled, error)
    return [
        f"Kept {d} of {width} columns of a photograph and {100 * share:.0f} % of its other pixels:"
        f" {100 * seen.mean():.0f} % in all.",
        f"Filled the rest in {seconds:.2f} s (the first run compiles). The typical error is {100 * error:.1f} % of full"
        f" brightness. Written: {printable(out)}",
        "Next: colonnade complete YOUR_TABLE.csv",
    ]


def _load() -> np.ndarray:
    """The flower that ships with scikit-learn, shape (427, 640, 3), from 0 to 1."""
    from sklearn.datasets import load_sample_image

    return load_sample_image("flower.jpg") / 255.0


def _seen_pixels(rng, height, width, d, share) -> np.ndarray:
    seen = rng.random((height, width)) < share
    seen[:, rng.choice(width, d, replace=False)] = True
    return seen


def _draw(out: Path, photograph, seen, filled, error) -> None:
    """Three panels in one PNG, under its final name only when it is whole."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = (
        (np.where(seen[:, :, None], photograph, 0.85), f"seen: {100 * seen.mean():.0f} % of the pixels"),
        (np.clip(filled, 0, 1), f"completed: {100 * error:.1f} % rms error where unseen"),
        (photograph, "the photograph"),
    )
    for axes, (picture, title) in zip(figure.subplots(1, 3), panels):
        axes.imshow(picture, interpolation="nearest")
        axes.set_title(title, fontsize=13)
        axes.set_axis_off()
    with new_file(out, force=True) as working:
        figure.savefig(working, format="png", dpi=110, metadata={"Software": None})
