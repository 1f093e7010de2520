"""The filled table and its intervals as csv texts inside the page, where they are small."""

from __future__ import annotations

import base64
import csv
import io

import numpy as np

from ...files.tables.csv import guarded
from .cells import Cells

_MOST_BYTES = 500_000  # Bytes of each file: both of them and the pictures stay below 3 MB.
_MOST_CELLS = 30_000  # Above it a table is not even written as text to see how large it is.


def downloads(completion, cells: Cells) -> list[dict]:
    """File name, label, address and size in bytes of each file that the page offers; none if they are too large.

    `cells` are all cells of the table, or some, in which case there is nothing to offer.
    """
    if cells.values.size > _MOST_CELLS or cells.values.shape != completion.shape:
        return []
    files = [("filled.csv", "Filled table", _table(completion))]
    if cells.low is not None:
        files.append(("intervals.csv", "Filled values with intervals", _intervals(completion, cells)))
    offered = []
    for name, label, text in files:
        data = text.encode()
        if len(data) <= _MOST_BYTES:
            address = "data:text/csv;base64," + base64.b64encode(data).decode()
            offered.append({"name": name, "label": label, "address": address, "size": len(data)})
    return offered


def _table(completion) -> str:
    rows, columns = _labels(completion)
    named = completion.row_names is not None
    lines = [[*(["row"] if named else []), *columns]]
    lines += [[*([rows[i]] if named else []), *map(_written, line)] for i, line in enumerate(completion.to_dense())]
    return _text(lines)


def _intervals(completion, cells: Cells) -> str:
    """A line for each filled cell."""
    assert cells.low is not None and cells.high is not None
    rows, columns = _labels(completion)
    lines = [["row", "column", "value", "low_90", "high_90"]]
    for i, j in zip(*np.nonzero(cells.is_filled)):
        numbers = (completion.dtype.type(figures[i, j]) for figures in (cells.values, cells.low, cells.high))
        lines.append([rows[i], columns[j], *map(_written, numbers)])
    return _text(lines)


def _labels(completion) -> tuple[list, list]:
    """Names such that no spreadsheet takes them for formulas, else numbers."""
    row_names, column_names = (
        list(range(n)) if found is None else [guarded(str(name)) for name in found]
        for found, n in zip((completion.row_names, completion.column_names), completion.shape)
    )
    return row_names, column_names


def _written(number) -> str:
    return "" if np.isnan(number) else str(number)


def _text(lines) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue()
