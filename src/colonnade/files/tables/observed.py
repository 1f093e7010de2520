"""Observations as a wide table: what is known, and gaps."""

from __future__ import annotations

from pathlib import Path

from ..._support.arguments import printable
from ..._support.atomic_writing import new_file
from .kinds import kind_of_name
from .table_writers import write_csv, write_parquet
from .writing import form_for


def write_observed(observations, path, *, force: bool = False) -> None:
    """Write what is known to a csv or Parquet file with the names of rows and columns, whole or not at all.

    Parameters
    ----------
    observations : Observations
    path : str or path
        Its ending says the kind: .csv, .tsv or .parquet. What is not known is left empty or null.
    force : bool
        Replace a file that exists.
    """
    path, o = Path(path), observations
    kind = kind_of_name(path)
    if kind not in ("csv", "parquet"):
        raise ValueError(f"observations are written to csv or Parquet; got {printable(path)}")
    with new_file(path, force=force) as working:
        {"csv": write_csv, "parquet": write_parquet}[kind](
            o.to_dense(), o.row_names, o.column_names, form_for(o, path), working
        )
