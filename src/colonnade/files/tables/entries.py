"""Only the asked entries: places in, places with value, low and high out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._support.arguments import printable, shown
from ..._support.atomic_writing import new_file
from ..._support.storage import as_path
from .csv import plain
from .kinds import TIMES_TEXT, FileForm, kind_of, kind_of_name, refuse_beyond_memory
from .table_writers import each_name, write_labelled
from .triples import as_labels, read_fields, whole_if_all_are


@dataclass(frozen=True, eq=False)
class Asked:
    """Entries that somebody wants.

    Attributes
    ----------
    fields : (str, str)
        What the labels of rows and columns are called.
    labels : list of two Arrow arrays
        Of the rows and the columns of the file.
    rows, columns : int arrays of shape (k,)
        Where they are in the matrix.
    """

    fields: tuple[str, str]
    labels: list
    rows: np.ndarray
    columns: np.ndarray


def read_asked(observations, path) -> Asked:
    """The entries that a csv or Parquet file names.

    Parameters
    ----------
    observations : Observations
        Whose entries they are: rows and columns go by name if they have names, else by position from 0.
    path : str or path
        A file with the columns "row" and "column", or those of the file of triples that was read. Others are not read.
    """
    path = as_path(path)
    kind = kind_of(path)
    if kind not in ("csv", "parquet"):
        raise ValueError(f"asked entries are read from csv or Parquet; {printable(path)} is {kind}")
    fields = _fields(observations.origin)
    labels = [_labels(part, field, kind) for part, field in zip(read_fields(path, kind, fields), fields)]
    places = _places(observations, labels, fields)
    return Asked(fields, [_decoded(path, part, field) for part, field in zip(labels, fields)], *places)


def write_entries(completion, wanted, path, *, level: float = 0.9, force: bool = False) -> None:
    """Write the asked entries with their intervals, whole or not at all.

    Parameters
    ----------
    completion : Completion
    wanted : Asked, str or path
        A path as of `read_asked`.
    path : str or path
        A csv or Parquet file to write: rows and columns as they were asked for, and value, low and high.
    level : float
        Probability with which an entry, measured anew, lies between low and high.
    force : bool
        Replace a file that exists.
    """
    path = as_path(path)
    if kind_of_name(path) not in ("csv", "parquet"):
        raise ValueError(
            f"asked entries are written to a file whose name ends in .csv or .parquet; got {printable(path)}"
        )
    asked = wanted if isinstance(wanted, Asked) else read_asked(completion.observations, wanted)
    value = completion.entries(asked.rows, asked.columns)
    low, high = completion.interval(asked.rows, asked.columns, level)
    origin = completion.observations.origin
    like = origin if isinstance(origin, FileForm) else None
    with new_file(path, force=force) as working:
        write_labelled(asked.labels, [value, low, high], [*asked.fields, "value", "low", "high"], path, working, like)


def filled_entries(completion) -> Asked:
    """All entries that were filled, row after row of the matrix; the labels are positions from 0 without names."""
    import pyarrow

    rows, columns = np.nonzero(completion.filled_mask())
    sides = (completion.row_names, rows), (completion.column_names, columns)
    labels = [pyarrow.chunked_array([at if names is None else names[at].tolist()]) for names, at in sides]
    origin = completion.observations.origin
    form = origin if isinstance(origin, FileForm) else FileForm("npy")
    return Asked(_fields(origin), list(form.oriented(labels)), rows, columns)


def _fields(form) -> tuple[str, str]:
    fields = form.fields[:2] if isinstance(form, FileForm) and form.fields is not None else ("row", "column")
    if fields[0] == fields[1] or {"value", "low", "high"} & set(fields):
        raise ValueError(f"the asked entries need two columns of other names than value, low and high; got {fields}")
    return fields


def _labels(column, field: str, kind: str):
    """Whole numbers or names, the latter without the mark that text tables set before formulas."""
    labels = as_labels(column, field, kind)
    if kind != "csv":
        return labels
    return each_name(whole_if_all_are([labels], field)[0], lambda text: plain([text])[0])


def _decoded(path: Path, labels, field: str):
    """Labels without dictionaries, if these fit into memory."""
    import pyarrow
    import pyarrow.compute as pc

    if not pyarrow.types.is_dictionary(labels.type):
        return labels
    size = sum(pc.sum(pc.binary_length(c.dictionary).take(c.indices)).as_py() or 0 for c in labels.chunks)
    what = f", column {shown(field)},"
    refuse_beyond_memory(path, size, what, times=TIMES_TEXT, remedy="ask for fewer entries at a time")
    return labels.cast(pyarrow.large_string())


def _places(o, labels, fields) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the labels in the matrix: rows, columns."""
    form = o.origin if isinstance(o.origin, FileForm) else FileForm("npy")
    sides = form.oriented([(o.row_names, o.shape[0]), (o.column_names, o.shape[1])])
    return form.oriented(_positions(part, field, *side) for part, field, side in zip(labels, fields, sides))


def _positions(labels, field: str, names, length: int) -> np.ndarray:
    import pyarrow

    if names is None:
        if not pyarrow.types.is_integer(labels.type):
            raise ValueError(f"the column {shown(field)} holds names, and the data have none: use positions from 0")
        at = labels.to_numpy()
        _refuse((at < 0) | (at >= length), labels, field, f"not among the positions 0..{length - 1:,}")
        return at
    coded = labels.dictionary_encode().unify_dictionaries()
    texts = [str(label) for label in coded.chunk(0).dictionary.to_pylist()] if coded.num_chunks else []
    position: dict[str, int] = {}
    twice = set()
    for k, name in enumerate(names):
        if position.setdefault(name, k) != k:
            twice.add(name)
    at = np.array([position.get(text, -1) if text not in twice else -2 for text in texts], np.int64)
    codes = np.concatenate([np.zeros(0, np.int64), *(chunk.indices.to_numpy() for chunk in coded.chunks)])
    at = at[codes.astype(np.int64)] if codes.size else codes
    _refuse(at == -1, labels, field, "not among the names of the data")
    _refuse(at == -2, labels, field, "names that several have")
    return at


def _refuse(wrong, labels, field: str, why: str) -> None:
    if wrong.any():
        first = labels[int(np.argmax(wrong))].as_py()
        count = int(wrong.sum())
        raise ValueError(f"{count:,} labels of the column {shown(field)} are {why}, the first is {shown(first)}")
