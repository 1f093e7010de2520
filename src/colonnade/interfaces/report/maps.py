"""Maps of the table as PNG pictures: before, after, how sure, and where the gaps are."""

from __future__ import annotations

import base64
import io

import numpy as np

from ...data.seen_grid import seen_shares_of_parts
from .cells import Cells, Units, name_of

_TAILS = 2, 98  # Percent of the known values between which colours change: outliers must not flatten the rest.
_PIXELS = 400  # The least width and height of a picture, so that smoothing by the browser does not blur the cells.
_DIGITS = 5  # Significant digits of numbers that a pointer shows.
_GAP_GRID = 120, 160  # Rows and columns of the map of gaps.
_UNSURE = 179, 84, 30  # Colour of an interval as wide as the data, over the page.
_MISSING = 31, 95, 168  # Colour of gaps.


def value_maps(cells: Cells, units: Units) -> dict:
    """The table before and after as addresses of pictures; gaps are transparent."""
    shown = units.shown(cells.values, cells.rows[:, None], cells.columns)
    known = shown[cells.is_seen & np.isfinite(shown)]
    low, high = np.percentile(known, _TAILS) if known.size else (0.0, 1.0)
    size = max(abs(low), abs(high)) or 1.0  # The difference of the values themselves may overflow.
    width = (high / size - low / size) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        place = np.clip((shown / size - low / size) / width, 0, 1)
    colours = _colours(np.nan_to_num(place))
    maps: dict[str, float | str] = {"low": float(low), "high": float(high)}
    for name, visible in (("before", cells.is_seen), ("after", np.isfinite(cells.values))):
        pixels = colours.copy()
        pixels[~visible, 3] = 0
        maps[name] = _address(pixels)
    return maps


def unsure_map(widths: np.ndarray) -> str:
    """Half widths of intervals in spreads as opacity; 2 spreads and more are solid."""
    pixels = np.zeros((*widths.shape, 4), np.uint8)
    pixels[..., :3] = _UNSURE
    filled = ~np.isnan(widths)
    pixels[filled, 3] = (255 * np.clip(0.08 + 0.92 * widths[filled] / 2, 0, 1)).astype(np.uint8)
    return _address(pixels)


def fade_picture() -> str:
    """The colours of `unsure_map` from 0 to 2 spreads."""
    return unsure_map(np.linspace(0, 2, 64)[None, :])


def gap_map(completion, parts) -> str:
    """The share of missing entries over the whole table, its fullest columns at the left.

    `parts` are the observations of all columns, one after the other.
    """
    shares = 1 - seen_shares_of_parts(parts, completion.shape, completion.n_observed, *_GAP_GRID)
    pixels = np.zeros((*shares.shape, 4), np.uint8)
    pixels[..., :3] = _MISSING
    pixels[..., 3] = (255 * np.where(shares > 1e-9, 0.15 + 0.85 * shares, 0)).astype(np.uint8)
    return _address(pixels)


def scale_picture() -> str:
    """The colours of the values from low to high."""
    return _address(_colours(np.linspace(0, 1, 64)[None, :]), least=1)


def _colours(places: np.ndarray) -> np.ndarray:
    from matplotlib import colormaps

    return (255 * colormaps["viridis"](places)).round().astype(np.uint8)


def _address(pixels: np.ndarray, least: int = _PIXELS) -> str:
    """A picture as a data address; small ones are enlarged by whole numbers."""
    from matplotlib.image import imsave

    metadata: dict = {"Software": None}  # Nothing that differs between versions.
    times = [max(1, -(-least // count)) for count in pixels.shape[:2]]
    buffer = io.BytesIO()
    imsave(buffer, pixels.repeat(times[0], axis=0).repeat(times[1], axis=1), format="png", metadata=metadata)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def hover_facts(completion, cells: Cells) -> dict:
    """What the script shows beside the pointer, in lists that JSON can hold.

    Values stand row after row; `low` and `high` only those of filled cells, in the same order.
    """
    filled = cells.is_filled
    facts: dict[str, list | str] = {
        "rows": [name_of(completion.row_names, i) for i in cells.rows],
        "columns": [name_of(completion.column_names, j) for j in cells.columns],
        "values": _rounded(cells.values.ravel()),
        "filled": "".join("1" if one else "0" for one in filled.ravel()),
        "low": [],
        "high": [],
    }
    if cells.low is not None and cells.high is not None:
        facts |= {"low": _rounded(cells.low[filled]), "high": _rounded(cells.high[filled])}
    return facts


def _rounded(values) -> list:
    """Numbers with few digits; None where there is none."""
    return [float(f"{x:.{_DIGITS}g}") if np.isfinite(x) else None for x in values.tolist()]
