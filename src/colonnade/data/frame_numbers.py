"""The numbers of data frames of pandas, polars and Arrow; none of these is imported unless the user has one."""

from __future__ import annotations

import numpy as np

from .._support.arguments import MIDNIGHT, shown
from .._support.numbers import are_numbers, first_rounded, floats_of, odd_one, rounded_words


def library_of(frame) -> str | None:
    """The library to whose classes it belongs, also by way of a class made from one of theirs."""
    roots = (kind.__module__.partition(".")[0] for kind in type(frame).__mro__)
    return next((root for root in roots if root in ("pandas", "polars", "pyarrow")), None)


def known_library_of(frame) -> str:
    """The library of what is known to be a frame."""
    library = library_of(frame)
    if library is None:
        raise TypeError(f"a data frame of pandas, polars or Arrow is needed; got {type(frame).__name__}")
    return library


def is_xarray(data) -> bool:
    """Whether `data` is a DataArray or Dataset of xarray, also of a class made from them."""
    return any(kind.__module__.partition(".")[0] == "xarray" for kind in type(data).__mro__)


def labels_as_text(index) -> list[str] | None:
    """The labels of a pandas Index as text; None if it only counts from 0. Days have no time of day."""
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None:
        return None
    labels = [str(label) for label in index]
    are_days = index.dtype.kind == "M" and all(label.endswith(MIDNIGHT) for label in labels)
    return [label.removesuffix(MIDNIGHT) for label in labels] if are_days else labels


def refuse_lazy(frame) -> None:
    if type(frame).__name__ == "LazyFrame":
        raise TypeError("a lazy frame holds no data yet: call .collect() on it first")


def refuse_empty(frame) -> None:
    if 0 in frame.shape:
        raise ValueError(
            f"the data frame has {frame.shape[0]} rows and {frame.shape[1]} columns; it needs some of both"
        )


def matrix_of_frame(frame, *, can_ignore: bool = False) -> np.ndarray:
    """The numbers of a frame, shape (rows, columns), NaN where it holds NA or null.

    A column that is not numeric or Boolean is refused by name: "1.5" in quotes is not a number. `can_ignore` says that
    the caller has the keyword `ignore`, which messages then name.
    """
    library = known_library_of(frame)
    refuse_lazy(frame)
    series = series_of(frame, library)
    refuse_columns([one for one in series if not is_numeric(*one[1:])], len(series))
    refuse_empty(frame)
    for name, kind, column in series:
        if column is not None:
            _refuse_rounded(name, kind, column, can_ignore)
    single = all(str(kind).lower() in ("float32", "float", "null") for _, kind, _ in series)
    dtype = "float32" if single else "float64"
    if library == "pandas":
        return _from_pandas(frame, [column for _, _, column in series], dtype)
    to_numbers = {"polars": _from_polars, "pyarrow": _from_arrow}[library]
    return np.column_stack([to_numbers(column, dtype) for _, _, column in series])


def refuse_columns(wrong: list[tuple], count: int) -> None:
    """Refuse those of `count` columns that are not numeric: (name, dtype, column), None for a column not at hand."""
    if wrong:
        named = ", ".join(f"{shown(name)} ({kind})" for name, kind, _ in wrong[:5])
        raise TypeError(
            f"{len(wrong)} of {count} columns are not numeric: {named}{', ...' if len(wrong) > 5 else ''};"
            f" {next(filter(None, (_odd_cell(name, column) for name, _, column in wrong)), '')}convert or drop them"
        )


def series_of(frame, library) -> list[tuple]:
    """(name, dtype, column) of every column; names may repeat. None for columns of pandas that float64 holds."""
    if library == "pandas":
        kinds = zip(frame.columns, frame.dtypes)
        # Whole numbers of 8 bytes are looked at one column at a time, because float64 may change them.
        is_plain = {
            kind: isinstance(kind, np.dtype) and is_numeric(kind) and (kind.kind == "f" or kind.itemsize < 8)
            for kind in set(frame.dtypes)
        }
        return [(name, kind, None if is_plain[kind] else frame.iloc[:, k]) for k, (name, kind) in enumerate(kinds)]
    if library == "polars":
        return [(column.name, column.dtype, column) for column in frame.get_columns()]
    return [(name, frame.column(k).type, frame.column(k)) for k, name in enumerate(frame.column_names)]


def is_numeric(kind, column=None) -> bool:
    """Whether a column of pandas, polars or Arrow is one of real numbers or Booleans, or of nothing but nulls."""
    word = str(kind).lower().partition("[")[0]
    if word == "object" and hasattr(column, "iloc"):  # pandas makes this type of numbers beside None or NA.
        return are_numbers(column.to_numpy())
    numeric = "float", "double", "halffloat", "int", "uint", "bool", "decimal", "null"
    return word.startswith(numeric) and "interval" not in word


def _refuse_rounded(name, kind, column, can_ignore: bool) -> None:
    whole = whole_numbers(kind, column)
    at = None if whole is None else first_rounded(whole)
    if at is not None:
        words = rounded_words(f"row {at}{_label(column, at)} of column {shown(name)}", whole[at])
        remedy = f"; set identifiers aside with ignore=[{shown(name)}] (--ignore)" if can_ignore else ""
        raise ValueError(words + remedy)


def whole_numbers(kind, column):
    """The cells of a column that may hold whole numbers beyond 2^53, 0 where nothing is known; None of other columns.

    An array, or a list of Python objects; the column is one of pandas, polars or Arrow.
    """
    word = str(kind).lower()
    if word.startswith(("int64", "uint64")):
        if hasattr(column, "iloc"):
            return column.to_numpy(dtype="uint64" if word.startswith("u") else "int64", na_value=0)
        return column.fill_null(0).to_numpy()
    if word.startswith(("int128", "uint128", "decimal", "object")):
        return np.array(column.to_pylist() if hasattr(column, "to_pylist") else list(column), dtype=object)
    return None


def _label(column, row: int) -> str:
    return f" ({shown(column.index[row])})" if hasattr(column, "iloc") and labels_as_text(column.index) else ""


def _odd_cell(name, column) -> str:
    """Which cell makes a column one of text, if it is one."""
    cells = [] if column is None else texts_of(column) if hasattr(column, "to_pylist") else list(column)
    if not any(isinstance(x, str) for x in cells):
        return ""
    row = odd_one(cells)
    return f"row {row}{_label(column, row)} of column {shown(name)} holds {shown(cells[row])}: "


def texts_of(column) -> list:
    """The values of an Arrow column; equal ones of a dictionary are one object, so that long text is held once."""
    held = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            values = chunk.dictionary.to_pylist()
            held += [None if k is None else values[k] for k in chunk.indices.to_pylist()]
        else:
            held += chunk.to_pylist()
    return held


def _from_pandas(frame, columns, dtype) -> np.ndarray:
    """The matrix; columns that are None all at once, for taking one out of a frame is slow."""
    M = np.empty(frame.shape, dtype)
    plain = [k for k, column in enumerate(columns) if column is None]
    M[:, plain] = frame.iloc[:, plain].to_numpy(dtype=dtype)
    for k, column in enumerate(columns):
        if column is not None:
            M[:, k] = (
                floats_of(column.to_numpy())
                if column.dtype == object
                else column.to_numpy(dtype=dtype, na_value=np.nan)
            )
    return M


def _from_polars(column, dtype):
    import polars

    return column.cast(polars.Float32 if dtype == "float32" else polars.Float64).fill_null(np.nan).to_numpy()


def _from_arrow(column, dtype):
    return column.cast(dtype, safe=False).to_numpy(zero_copy_only=False)
