"""Data frames of pandas, polars and Arrow as matrices; none of them is imported unless the user has one."""

from __future__ import annotations

import numpy as np


def is_frame(data) -> bool:
    """Whether `data` is a data frame or Arrow table."""
    return type(data).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow") and hasattr(type(data), "columns")


def matrix_of_frame(frame) -> np.ndarray:
    """The numbers of a frame, shape (rows, columns), NaN where it holds NA or null.

    A column that is not numeric or Boolean is refused by name: "1.5" in quotes is not a number.
    """
    library = type(frame).__module__.partition(".")[0]
    if type(frame).__name__ == "LazyFrame":
        raise TypeError("a lazy frame holds no data yet: call .collect() on it first")
    series = _series_of(frame, library)
    wrong = [(name, kind) for name, kind, _ in series if not _is_numeric(kind)]
    if wrong:
        shown = ", ".join(f"{str(name)[:40]!r} ({kind})" for name, kind in wrong[:5])
        raise TypeError(
            f"{len(wrong)} of {len(series)} columns are not numeric: {shown}{', ...' if len(wrong) > 5 else ''};"
            " convert or drop them"
        )
    if 0 in frame.shape:
        raise ValueError(
            f"the data frame has {frame.shape[0]} rows and {frame.shape[1]} columns; it needs some of both"
        )
    single = all(str(kind).lower() in ("float32", "float") for _, kind, _ in series)
    to_numbers = {"pandas": _from_pandas, "polars": _from_polars, "pyarrow": _from_arrow}[library]
    return np.column_stack([to_numbers(column, "float32" if single else "float64") for _, _, column in series])


def _series_of(frame, library) -> list[tuple]:
    """(name, dtype, column) of every column; names may repeat."""
    if library == "pandas":
        return [(name, frame.dtypes.iloc[k], frame.iloc[:, k]) for k, name in enumerate(frame.columns)]
    if library == "polars":
        return [(column.name, column.dtype, column) for column in frame.get_columns()]
    return [(name, frame.column(k).type, frame.column(k)) for k, name in enumerate(frame.column_names)]


def _is_numeric(kind) -> bool:
    """Whether a dtype of pandas, polars, Arrow or NumPy is one of real numbers or Booleans."""
    word = str(kind).lower().partition("[")[0]
    return word.startswith(("float", "double", "halffloat", "int", "uint", "bool")) and "interval" not in word


def _from_pandas(column, dtype):
    return column.to_numpy(dtype=dtype, na_value=np.nan)


def _from_polars(column, dtype):
    import polars

    return column.cast(polars.Float32 if dtype == "float32" else polars.Float64).fill_null(np.nan).to_numpy()


def _from_arrow(column, dtype):
    return column.cast(dtype, safe=False).to_numpy()
