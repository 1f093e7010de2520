"""Scores of columns, a line for each."""

from __future__ import annotations

from pathlib import Path

from ..._support.arguments import printable
from ..._support.atomic_writing import new_file
from .kinds import kind_of_name, needed_module
from .table_writers import write_labelled


def write_scores(table, names, path, *, force: bool = False) -> None:
    """Write what `leaderboard.scores` returned to a csv or Parquet file, whole or not at all.

    Parameters
    ----------
    table : record array of shape (n,)
    names : array of str of shape (n,), optional
        Of the columns. Default: positions from 0.
    path : str or path
    force : bool
        Replace a file that exists.
    """
    path = Path(path)
    if kind_of_name(path) not in ("csv", "parquet"):
        raise ValueError(f"scores are written to a file whose name ends in .csv or .parquet; got {printable(path)}")
    pyarrow = needed_module("pyarrow", "cli")
    labels = pyarrow.chunked_array([list(range(table.size)) if names is None else [str(name) for name in names]])
    with new_file(path, force=force) as working:
        fields = table.dtype.names
        write_labelled([labels], [table[field] for field in fields], ["column", *fields], path, working)
