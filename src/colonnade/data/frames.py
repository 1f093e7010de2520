"""Data frames of pandas, polars and Arrow as matrices and back, with the columns that are set aside."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from .._support.arguments import shown
from .frame_numbers import (
    known_library_of,
    labels_as_text,
    library_of,
    matrix_of_frame,
    refuse_empty,
    refuse_lazy,
    series_of,
)
from .set_aside import SetAside, other_kind, split


def is_frame(data) -> bool:
    """Whether `data` is a data frame or Arrow table."""
    return library_of(data) is not None and hasattr(type(data), "columns")


@dataclass(frozen=True, eq=False)
class FrameForm:
    """What a frame is besides its numbers, so that a filled one can be made like it.

    Attributes
    ----------
    library : {"pandas", "polars", "pyarrow"}
    columns : pandas Index or list of str
        Names of all columns, those that are set aside too.
    index : pandas Index or None
    aside : SetAside or None
        The columns that are no part of the matrix.
    whole : dict
        The dtypes of the columns of the matrix that hold whole numbers, by their positions in the matrix.
    """

    library: str
    columns: Any
    index: Any = None
    aside: SetAside | None = None
    whole: dict = field(default_factory=dict)

    def row_names(self) -> list[str] | None:
        """None of frames whose rows are merely numbered."""
        return None if self.index is None else labels_as_text(self.index)

    def column_names(self) -> list[str] | None:
        """Names of the columns of the matrix."""
        if self.library == "pandas":
            return labels_as_text(self.columns if self.aside is None else self.columns[self._places()])
        return [self.columns[k] for k in self._places()]

    def _places(self) -> list[int]:
        """Positions of the columns of the matrix among all."""
        n = len(self.columns)
        return list(range(n)) if self.aside is None else self.aside.matrix_places(n - len(self.aside.places))

    def frame(self, matrix, is_full):
        """A frame of this form with the numbers of a matrix; what is not known is NaN in pandas and null elsewhere.

        Columns of whole numbers are whole numbers again where `is_full`, of shape (n,), says that none was missing.
        """
        whole = {k: kind for k, kind in self.whole.items() if is_full[k]}
        if self.library == "pandas":
            return self._pandas(matrix, whole)
        columns: list = [None] * len(self.columns)
        for k, place in enumerate(self._places()):
            columns[place] = self._column(self.columns[place], matrix[:, k], whole.get(k))
        if self.aside is not None:
            for k, place in enumerate(self.aside.places):
                columns[place] = _column_at(self.aside.columns, self.library, k)
        if self.library == "polars":
            import polars

            return polars.DataFrame(dict(zip(self.columns, columns)))  # A list would rename a column called "".
        import pyarrow

        return pyarrow.Table.from_arrays(columns, names=self.columns)

    def _column(self, name: str, numbers, whole):
        """A column of polars or Arrow, in the type `whole` unless that is None."""
        if self.library == "polars":
            import polars

            column = polars.Series(name, numbers, nan_to_null=True, strict=False)
            return column if whole is None else column.cast(whole)
        column = array_of_column(numbers)
        return column if whole is None else column.cast(whole, safe=False)

    def _pandas(self, matrix, whole: dict):
        import pandas

        if self.aside is None and not whole:
            return pandas.DataFrame(matrix, index=self.index, columns=self.columns)
        places = np.array(self._places())
        groups: dict = {}
        for k in range(matrix.shape[1]):
            groups.setdefault(whole.get(k, matrix.dtype), []).append(k)
        parts = [pandas.DataFrame(matrix[:, ks], columns=places[ks]).astype(kind) for kind, ks in groups.items()]
        if self.aside is not None:
            parts.append(self.aside.columns.set_axis(list(self.aside.places), axis=1).set_axis(range(len(matrix))))
        joined = pandas.concat(parts, axis=1)[list(range(len(self.columns)))]
        return joined.set_axis(self.index, axis=0).set_axis(self.columns, axis=1)


def frame_of(matrix, observations):
    """The matrix as the kind of frame that the observations came from; of pandas, or else polars, if from none."""
    form = observations.origin
    if not isinstance(form, FrameForm):
        form = _pandas_form(observations) if _usual_library() == "pandas" else _polars_form(observations)
    return form.frame(matrix, observations.n_observed == len(matrix))


def frame_of_columns(columns: dict, observations):
    """Columns by name, arrays of one length, as a frame of the library that the observations came from.

    Else it is one of pandas, or of polars if only that is installed. What is not known is NaN in pandas and null
    elsewhere.
    """
    form = observations.origin
    library = form.library if isinstance(form, FrameForm) else _usual_library()
    if library == "pandas":
        import pandas

        return pandas.DataFrame(columns)
    if library == "polars":
        import polars

        return polars.DataFrame({k: x if x.dtype.kind != "O" else x.tolist() for k, x in columns.items()}).fill_nan(
            None
        )
    import pyarrow

    return pyarrow.table(
        {k: array_of_column(x) if x.dtype.kind == "f" else pyarrow.array(x) for k, x in columns.items()}
    )


def _usual_library() -> str:
    """The library of frames of data that came from none: pandas, else polars, else a message what to install."""
    for library in ("pandas", "polars"):
        if find_spec(library) is not None:
            return library
    raise ModuleNotFoundError(
        "data frames need pandas or polars: pip install pandas. Without them, to_dense() gives an array", name="pandas"
    )


def _polars_form(observations) -> FrameForm:
    """As `_pandas_form`; polars has no names of rows, and columns without names are column_0, column_1 and so on."""
    import polars

    n, form, names = observations.shape[1], observations.origin, observations.column_names
    aside = form.aside if hasattr(form, "aside") and not form.transposed else None
    if aside is None:
        return FrameForm("polars", [f"column_{j}" for j in range(n)] if names is None else list(names))
    kept = replace(aside, columns=polars.from_arrow(aside.columns))
    return FrameForm("polars", titles_with(aside, names, n), None, kept)


def _pandas_form(observations) -> FrameForm:
    """The form of data that were no frame; of a file, with the columns that were set aside unless it was transposed."""
    import pandas

    m, n = observations.shape
    index = pandas.RangeIndex(m) if observations.row_names is None else pandas.Index(observations.row_names)
    form, names = observations.origin, observations.column_names
    is_table = hasattr(form, "aside") and not form.transposed
    aside = form.aside if is_table else None
    whole = {k: kind.to_pandas_dtype() for k, kind in form.whole.items()} if is_table else {}
    if aside is None:
        columns = pandas.RangeIndex(n) if names is None else pandas.Index(names)
        return FrameForm("pandas", columns, index, None, whole)
    columns = titles_with(aside, names, n)
    kept = replace(aside, columns=aside.columns.to_pandas())
    return FrameForm("pandas", pandas.Index(columns), index, kept, whole)


def titles_with(aside: SetAside, names, count: int) -> list[str]:
    """Names of all columns of a table whose matrix has `count` columns; positions where these have no names."""
    places = aside.matrix_places(count)
    given = dict(zip(places, map(str, places) if names is None else names))
    given |= dict(zip(aside.places, aside.names))
    return [given[k] for k in range(len(given))]


def arrow_form(form: FrameForm) -> tuple[SetAside | None, dict]:
    """What was set aside of a frame, and the dtypes of its whole numbers, both as Arrow has them."""
    import pyarrow

    def column(x):
        if form.library == "pyarrow":
            return x
        try:
            return x.to_arrow() if form.library == "polars" else pyarrow.Array.from_pandas(x)
        except (pyarrow.ArrowException, TypeError):  # Python objects of several types
            return pyarrow.array([None if one is None else str(one) for one in x])

    def empty(kind):
        if form.library == "polars":
            import polars

            return polars.Series([], dtype=kind)
        import pandas

        return pandas.Series([], dtype=kind)

    whole = {k: kind if form.library == "pyarrow" else column(empty(kind)).type for k, kind in form.whole.items()}
    if form.aside is None:
        return None, whole
    count = len(form.aside.places)
    arrays = [column(_column_at(form.aside.columns, form.library, k)) for k in range(count)]
    table = pyarrow.Table.from_arrays(arrays, names=[str(k) for k in range(count)])
    return replace(form.aside, columns=table, types=tuple(table.schema.types)), whole


def array_of_column(numbers):
    """An Arrow array of numbers, null where they are NaN."""
    import pyarrow

    return pyarrow.array(np.ascontiguousarray(numbers), from_pandas=True)


def matrix_and_form(frame, ignore=(), only=None) -> tuple[np.ndarray, FrameForm]:
    """The numbers of a frame, as `matrix_of_frame`, and its form; columns that are not numbers are set aside.

    Parameters
    ----------
    frame : data frame of pandas or polars, or Arrow table
    ignore, only : names of columns
        As of `set_aside.split`.
    """
    library = known_library_of(frame)
    refuse_lazy(frame)
    series = series_of(frame, library)
    refuse_empty(frame)
    labels = [one[0] for one in series]
    used, aside = split(labels, [other_kind(*one[1:]) for one in series], ignore, only)
    whole = {k: series[place][1] for k, place in enumerate(used) if _is_whole(series[place][1])}
    columns = frame.columns if library == "pandas" else labels
    index = frame.index if library == "pandas" else None
    if aside is None:
        return matrix_of_frame(frame, can_ignore=True), FrameForm(library, columns, index, None, whole)
    if len(used) == 1 and set(aside.kinds) <= {"text", "categories"} and len(aside.kinds) == 2:
        raise ValueError(
            f"the data frame has one column of numbers, {shown(labels[used[0]])}, beside {aside.in_words()}; a table"
            " needs at least two. If its rows are triples, pivot it first: frame.pivot(...)"
        )
    aside = replace(aside, columns=_part(frame, library, list(aside.places)))
    matrix = matrix_of_frame(_part(frame, library, used), can_ignore=True)
    return matrix, FrameForm(library, columns, index, aside, whole)


def _column_at(frame, library, place: int):
    """A column by its position."""
    if library == "pandas":
        return frame.iloc[:, place]
    return frame.get_columns()[place] if library == "polars" else frame.column(place)


def _part(frame, library, places):
    """Some columns of a frame, which does not change with it."""
    if library == "pandas":
        return frame.iloc[:, places].copy()
    if library == "pyarrow":
        return frame.select(places)
    columns = frame.get_columns()
    return type(frame)({columns[k].name: columns[k] for k in places})


def _is_whole(kind) -> bool:
    word = str(kind).lower()
    return word.startswith(("int", "uint")) and not word.startswith("interval")
