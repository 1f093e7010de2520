"""The table of certificates as a class: a record array that a notebook shows with the names of the columns."""

from __future__ import annotations

import numpy as np

from .._support.arguments import shown
from .._support.html import html_lines, html_table
from .column_verdict import ColumnVerdict

_SHOWN = 20  # Columns that a notebook shows; the others are counted.


class Certificates(np.recarray):
    """A record for every column, with the fields that `Completion.certificates` describes."""

    column_names: np.ndarray | None

    @classmethod
    def of(cls, table: np.ndarray, column_names: np.ndarray | None) -> Certificates:
        """The records with the names of all columns of the table."""
        found = table.view(cls)
        found.column_names = column_names
        return found

    def __array_finalize__(self, other) -> None:
        super().__array_finalize__(other)
        self.column_names = getattr(other, "column_names", None)

    def _repr_html_(self) -> str | None:
        if not {"column", "verdict"} <= set(self.dtype.names or ()):
            return None  # Some fields only: a notebook shows them as text.
        table = self.reshape(-1)
        words, counts = np.unique(table["verdict"], return_counts=True)
        said = ", ".join(f"{count:,} {_shown(word)}" for word, count in zip(words, counts))
        names = table.dtype.names or ()
        rows = [[self._name(one["column"]), *(_cell(name, one[name]) for name in names[1:])] for one in table[:_SHOWN]]
        more = [f"... and {table.size - _SHOWN:,} more columns"] if table.size > _SHOWN else []
        return f"<div>{html_lines([f'Columns: {said}.'])}{html_table(names, rows)}{html_lines(more)}</div>"

    def _name(self, column) -> str:
        return str(column) if self.column_names is None else shown(self.column_names[column])


def _cell(field: str, value) -> str:
    if field == "verdict":
        return _shown(value)
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)


def _shown(verdict) -> str:
    """A verdict as people read it; a record may hold any word."""
    return ColumnVerdict(str(verdict)).shown if str(verdict) in set(ColumnVerdict) else str(verdict)
