"""The door through which files come in."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path

import numpy as np

from ..._support.arguments import as_choice, as_real, as_shape, printable
from ..._support.logs import logged
from ..._support.numbers import reads_as_number
from ..._support.storage import Url, as_path
from ...data.observations import Observations
from ...data.set_aside import named_columns
from .arrays import read_npy, read_npz
from .csv import plain
from .dialects import FOUND_OUT, DialectOptions
from .excel import read_excel
from .kinds import AS_TRIPLES, files_in, is_zarr, kind_of
from .netcdf import read_netcdf
from .parquet import opened, read_parquet
from .partitions import partition_of, with_partitions
from .triples import DEFAULT_FIELDS, read_triples
from .wide_csv import read_csv
from .zarr import read_zarr

_NO_NUMBERS = "not numbers", "not a number", "not numeric", "no column of numbers"  # Parts of messages about cells.
_UNNAMED_INDEX = r"__index_level_\d+__"  # The name that pandas gives it in a Parquet file.


@dataclass(frozen=True)
class ReadingOptions:
    """What the user says of the files, as arguments of `read`; `missing` are words, `limit` is in bytes."""

    header: bool | str
    row_names: bool | str
    dialect: DialectOptions
    key: str | None
    sheet: str | None
    shape: tuple[int, int] | None
    duplicates: str
    missing: list[str]
    limit: float | None
    names: dict


@logged
def read(
    path,
    *,
    row: str | None = None,
    column: str | None = None,
    value: str | None = None,
    header="auto",
    row_names="auto",
    delimiter: str | None = None,
    key: str | None = None,
    sheet: str | None = None,
    shape: tuple[int, int] | None = None,
    duplicates: str = "error",
    transpose: bool = False,
    missing=(),
    memory_limit: float | None = None,
    ignore=(),
    only=None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    storage_options: dict | None = None,
    hive: bool = False,
) -> Observations:
    """Observations from a file, with the names of its rows and columns.

    Parameters
    ----------
    path : str or path, or several of them
        npy; npz (also a sparse matrix that scipy saved: stored entries are known); csv, tsv or Parquet, wide or
        triples; a Zarr array; a sheet of an xlsx workbook; a variable of a netCDF file. Several files, or a folder of
        them, are triples. What is empty, null or NaN is unseen. An address such as ``s3://bucket/folder`` is read by
        fsspec; ``*`` in it stands for any name.
    row, column, value : str, optional
        The columns of a file of triples: names in its header or, if it has none, positions from 0. Needed unless the
        file has just the columns row, column and value. Labels are names or whole numbers; the rows of the matrix are
        the different ones in increasing order.
    header, row_names : bool or "auto"
        Whether a text table begins with a line of names, and a wide table with a column of names; found out by default.
    delimiter : str, optional
        Between the cells of a text table; default: comma, semicolon or tab, as the file has it.
    key : str, optional
        Which array of an npz file or a Zarr group, if it has several of two dimensions; which variable of a netCDF
        file, if it has several of two or more. Its dimensions are stacked as by `Observations.from_xarray`.
    sheet : str, optional
        Which sheet of a workbook: its name, or its position from 0. Default: the first.
    shape : (int, int), optional
        Of triples; their labels are then positions from 0.
    duplicates : {"error", "mean", "last"}
        What to do with triples of the same place.
    transpose : bool
        Whether rows of the file are columns of the matrix: things to fill lie in rows, some of them known in full.
    missing : str, number, or several of them
        What else stands for an entry that is not known, such as -999; in a text table also words, such as "?".
    memory_limit : float, optional
        Bytes that the data may need in memory until they are completed; files that would need more are refused before
        they are read. Default: the memory of this machine.
    ignore : name or list of names
        Columns of a wide csv, Parquet or xlsx file that are no part of the matrix. They are set aside, as are columns
        of text, dates and Booleans, and `files.write` puts them back in place.
    only : name or list of names, optional
        The only columns that are the matrix. Default: all that hold numbers.
    decimal : {".", ","}, optional
        The decimal sign of a text table. Default: the one that the cells of the file show; a file in which every cell
        can be read in two ways, such as "1,234", is refused.
    thousands : str, optional
        The sign between groups of three digits of a text table: a comma, a point, a space, an apostrophe, or "none".
        Default: all that are not the decimal sign, spaces that can break a line apart.
    encoding : str, optional
        Of a text table, such as "latin-1". Default: what its byte-order mark says, else UTF-8, else Windows-1252.
    storage_options : dict, optional
        For the store of an address, such as ``{"endpoint_url": ...}``. Default: its environment variables and files.
    hive : bool
        Whether folders such as ``year=2020`` are columns of the Parquet files of triples in them, here the column
        year. Values are whole numbers if all of them are, else text; ``%20`` is a space.

    Returns
    -------
    Observations
    """
    as_choice("header", header, (True, False, "auto"))
    as_choice("row_names", row_names, (True, False, "auto"))
    as_choice("duplicates", duplicates, ("error", "mean", "last"))
    as_choice("transpose", transpose, (True, False))
    shape = None if shape is None else as_shape(shape)
    limit = None if memory_limit is None else as_real("memory_limit", memory_limit, 0)
    fields = checked_fields(row, column, value)
    words, numbers = _marks(missing)
    options = ReadingOptions(
        header=header,
        row_names=row_names,
        dialect=DialectOptions(delimiter, decimal, thousands, encoding),
        key=key,
        sheet=sheet,
        shape=shape,
        duplicates=duplicates,
        missing=words,
        limit=limit,
        names={"ignore": ignore, "only": only},
    )
    try:
        with _local_or_ranged(paths_of(path, storage_options, hive=hive)) as paths:
            observations = _read(paths, fields, options)
    except UnicodeDecodeError as error:
        raise ValueError(f"{printable(path)} holds names that are not text in UTF-8: {error}") from error
    if numbers:
        with np.errstate(over="ignore"):
            marks = np.array(numbers).astype(observations.values.dtype)  # -99.9 in single precision is another number.
        observations = observations.without(np.flatnonzero(np.isin(observations.values, marks)))
    if transpose:
        form = replace(observations.origin, transposed=True)
        observations = replace(observations.transposed(), origin=form)
    return observations


def _marks(missing) -> tuple[list[str], list[float]]:
    """Words and numbers that stand for nothing."""
    given = [missing] if isinstance(missing, (str, Real)) else list(missing)
    if any(isinstance(one, bool) or not isinstance(one, (str, Real)) for one in given):
        raise TypeError(f"missing must be words or numbers such as -999; got {missing!r}")
    return [str(one) for one in given], [float(one) for one in given if reads_as_number(one)]


def _read(paths, fields, given: ReadingOptions) -> Observations:
    fields, limit = fields_of_triples(paths, fields, given.dialect), given.limit
    if fields is not None:
        _refuse_names("triples", given.names)
        return read_triples(paths, fields, given.shape, given.duplicates, given.header, given.dialect, limit)
    (path,) = paths
    if partition_of(path) is not None:
        raise ValueError("--hive (hive=True) is for triples; say which columns are row, column and value")
    kind = kind_of(path)
    if given.shape is not None:
        raise ValueError(f"a shape is for triples; {printable(path)} has its own")
    if kind not in ("csv", "parquet", "xlsx"):
        _refuse_names(kind, given.names)
    if given.sheet is not None and kind != "xlsx":
        raise ValueError(f"a sheet is for xlsx files; {printable(path)} is {kind}")
    if kind == "npy":
        return read_npy(path, limit)
    if kind == "npz":
        return read_npz(path, given.key, limit)
    if kind == "zarr":
        return read_zarr(path, given.key, limit)
    if kind == "netcdf":
        return read_netcdf(path, given.key, given.missing, limit)
    try:
        if kind == "xlsx":
            return read_excel(path, given.sheet, given.header, given.row_names, given.missing, limit, **given.names)
        if kind == "csv":
            return read_csv(path, given.header, given.row_names, given.dialect, given.missing, limit, **given.names)
        return read_parquet(path, given.row_names, limit, **given.names)
    except (ValueError, TypeError) as error:
        if not any(words in str(error) for words in _NO_NUMBERS):
            raise
        name = printable(path)
        said = str(error) if name in str(error) else f"{name}: {error}"
        raise type(error)(f"{said}. {AS_TRIPLES}") from error


def _refuse_names(kind: str, names: dict) -> None:
    if named_columns(names["ignore"]) or names["only"] is not None:
        raise ValueError(
            f"--ignore and --only (ignore, only) name columns of wide csv, Parquet and xlsx files; got {kind}"
        )


def fields_of_triples(paths, fields, dialect: DialectOptions = FOUND_OUT) -> tuple[str, str, str] | None:
    """The columns for row, column and value if the files hold triples: given, or found in several files or in one."""
    if len(paths) > 1 or fields is not None:
        return DEFAULT_FIELDS if fields is None else fields
    kind = kind_of(paths[0])
    return DEFAULT_FIELDS if kind in ("csv", "parquet") and _has_defaults(paths[0], kind, dialect) else None


def paths_of(path, storage_options: dict | None = None, *, hive: bool = False) -> list:
    """The files that are meant: paths, or addresses of another store; with `hive` they know what their folders say."""
    if not isinstance(path, (str, os.PathLike, Url, Iterable)):
        raise TypeError(f"path must be the path of a file, or a list of paths; got {printable(path)}")
    given = [path] if isinstance(path, (str, os.PathLike, Url)) else list(path)
    if not given:
        raise ValueError("no file is named")
    paths: list = []
    for one in given:
        named = as_path(one, storage_options)
        found = named.matches() if isinstance(named, Url) else [named]
        if not found:
            raise FileNotFoundError(f"no file has a name like {printable(named)}")
        for each in found:
            paths += files_in(each) if each.is_dir() and not is_zarr(each) else [each]
    return with_partitions(paths) if as_choice("hive", hive, (True, False)) else paths


@contextmanager
def _local_or_ranged(paths) -> Iterator[list]:
    """The files, with copies on this disk of those at addresses that are neither Parquet nor Zarr."""
    far = [path for path in paths if isinstance(path, Url) and kind_of(path) not in ("parquet", "zarr")]
    if not far:
        yield paths
        return
    with tempfile.TemporaryDirectory() as folder:
        copies = {path: Path(folder) / str(k) / (path.name or "data") for k, path in enumerate(far)}
        for path, copy in copies.items():
            copy.parent.mkdir()
            path.download(copy)
        try:
            yield [copies.get(path, path) for path in paths]
        except (ValueError, TypeError, MemoryError) as error:
            if type(error) not in (ValueError, TypeError, MemoryError):
                raise
            said = str(error)
            for path, copy in copies.items():
                said = said.replace(str(copy), printable(path))
            raise type(error)(said) from error


def checked_fields(row, column, value) -> tuple[str, str, str] | None:
    if row is None and column is None and value is None:
        return None
    if None in (row, column, value) or len({str(one) for one in (row, column, value)}) < 3:
        raise ValueError(
            f"triples need three different columns, row, column and value; got {row!r}, {column!r}, {value!r}"
        )
    return str(row), str(column), str(value)


def _has_defaults(path: Path, kind: str, dialect: DialectOptions) -> bool:
    if kind == "csv":
        found = plain(dialect.begin(path).lines[0])
    else:
        with opened(path) as file:
            found = [name for name in file.schema_arrow.names if not re.fullmatch(_UNNAMED_INDEX, name)]
    return sorted(found) == sorted(DEFAULT_FIELDS)
