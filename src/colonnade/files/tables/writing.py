"""The door through which filled matrices go out, each to the kind of file that its name says."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ..._support.arguments import as_choice, as_real, printable
from ..._support.atomic_writing import new_file, new_folder, refuse_without_room
from ..._support.logs import logged
from ..._support.storage import as_path
from ...data.frames import FrameForm, arrow_form
from .excel_writing import Filled, write_excel
from .kinds import FileForm, blocks_of, holds_one_zarr, kind_of_name, needed_module, refuse_beyond_memory
from .netcdf import write_netcdf
from .rounding import ROUNDINGS, rounded_columns
from .table_writers import with_delimiter_for, write_csv, write_parquet, write_triples

_TABLES = "csv", "parquet", "xlsx"  # Kinds that hold columns that are not numbers.
_CHUNK = 1_000  # Rows and columns of a Zarr chunk: 8 MB of float64.
_LONGEST_NAMES = 256e6  # Bytes of names in an npz file, where all are as wide as the longest.


@logged
def write(completion, path, *, force: bool = False, intervals: float | None = None, rounding=None) -> None:
    """Write the filled matrix to a file, whole or not at all.

    Parameters
    ----------
    completion : Completion
    path : str or path
        Its ending says the kind: .npy, .npz, .csv, .tsv, .parquet, .zarr, .xlsx or .nc. A file of the kind that
        `read` read is written like it: with the same names, delimiter, decimal sign, encoding and keys, with rows and
        columns the way they were, and as triples if it held triples. csv, Parquet and xlsx files also have the columns
        that were set aside, in their places; other kinds hold the numbers only.
        Filled cells of an xlsx file have a colour. What could not be filled is left empty, null or NaN, or out of the
        triples.
    force : bool
        Replace a file that exists.
    intervals : float, optional
        A probability such as 0.9: an xlsx file then lists the filled cells with their intervals in its second sheet.
    rounding : {None, "auto"}
        "auto" writes filled numbers of csv and xlsx files with as many digits as their standard deviations support,
        see `rounded_columns`. Default: all digits.
    """
    path = as_path(path)
    intervals = None if intervals is None else as_real("intervals", intervals, 0, 1, "()")
    as_choice("rounding", rounding, ROUNDINGS)
    o, form = completion.observations, form_for(completion.observations, path)
    if rounding is not None and form.kind not in ("csv", "xlsx"):
        raise ValueError(f"rounded numbers are for csv and xlsx files; got {printable(path)}")
    finish = partial(rounded_columns, completion) if rounding else None
    size = float(o.shape[0]) * o.shape[1] * o.values.itemsize
    refuse_without_room(path, size / 4 if form.kind == "csv" else size)
    if form.kind == "zarr":
        with new_folder(path, force=force, is_ours=holds_one_zarr) as working:
            _write_zarr(completion, form, working)
        return
    with new_file(path, force=force) as working:
        if form.fields is not None:
            write_triples(completion, form, working, finish)
        elif form.kind == "npy":
            _write_npy(completion, form, working)
        else:
            refuse_beyond_memory(path, 2 * size, ", filled,")
            M = completion.to_dense() if finish is None else finish(completion.to_dense())
            if form.kind == "xlsx":
                _write_excel(completion, M, form, working, intervals)
                return
            if form.kind == "netcdf":
                write_netcdf(M, o, form, working)
                return
            {"npz": _write_npz, "csv": write_csv, "parquet": write_parquet}[form.kind](
                M.T if form.transposed else M, *form.oriented((o.row_names, o.column_names)), form, working
            )


def _write_excel(completion, M, form: FileForm, path: Path, level: float | None) -> None:
    o, mask = completion.observations, completion.filled_mask()
    filled = Filled(mask, str(completion.verdict), level)
    if level is not None:
        low, high = np.full((2, *mask.shape), np.nan)
        low[mask], high[mask] = completion.interval(*np.nonzero(mask), level)
        filled = replace(filled, low=low, high=high)
    if form.transposed:
        low, high = (None if end is None else end.T for end in (filled.low, filled.high))
        M, filled = M.T, replace(filled, mask=filled.mask.T, low=low, high=high)
    write_excel(M, *form.oriented((o.row_names, o.column_names)), form, path, filled)


def form_for(observations, path: Path) -> FileForm:
    """How to write to `path`: as the observations came, if of this kind; triples stay triples in text and Parquet.

    Columns of whole numbers remain so if none of their values was missing.
    """
    kind, form = kind_of_name(path), observations.origin
    if isinstance(form, FrameForm):
        aside, whole = arrow_form(form) if kind in _TABLES else (None, {})
        form = FileForm(kind, aside=aside, whole=whole)
    elif not isinstance(form, FileForm):
        form = FileForm(kind)
    elif form.kind != kind:
        fields = form.fields if {kind, form.kind} == {"csv", "parquet"} else None
        form = FileForm(kind, fields, form.whole_labels, transposed=form.transposed, aside=form.aside, whole=form.whole)
    form = replace(form, whole=_whole_without_gaps(form, observations))
    return with_delimiter_for(path, form)


def _whole_without_gaps(form: FileForm, o) -> dict:
    if not form.whole:
        return {}
    m, n = o.shape
    is_full = np.bincount(o.rows, minlength=m) == n if form.transposed else o.n_observed == m
    return {k: kind for k, kind in form.whole.items() if is_full[k]}


def _write_npy(completion, form: FileForm, path: Path) -> None:
    """Write columns, which in the file are columns in Fortran order, or rows in C order."""
    header = {
        "descr": np.lib.format.dtype_to_descr(completion.observations.values.dtype),
        "fortran_order": not form.transposed,
        "shape": form.oriented(completion.shape),
    }
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for _, block in blocks_of(completion):
            file.write(np.ascontiguousarray(block.T).data)


def _write_npz(M, row_names, column_names, form: FileForm, path: Path) -> None:
    """The matrix under its key, with the names beside it; a sparse matrix again as one, all that is known stored."""
    keys = form.name_keys[0] or "row_names", form.name_keys[1] or "column_names"
    names = {key: _as_wide(one) for key, one in zip(keys, (row_names, column_names)) if one is not None}
    arrays = {form.key or "X": M}
    if form.sparse:
        i, j = np.nonzero(~np.isnan(M.T))[::-1]
        indptr = np.concatenate(([0], np.cumsum((~np.isnan(M)).sum(axis=0))))
        arrays = {
            "format": np.array(b"csc"),
            "shape": np.array(M.shape),
            "data": M[i, j],
            "indices": i,
            "indptr": indptr,
        }
    write_arrays(path, {**arrays, **names})


def write_arrays(path: Path, arrays: dict) -> None:
    """An npz file with these keys; `numpy.savez` takes some of them for its own arguments."""
    with zipfile.ZipFile(path, "w") as archive:
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def _as_wide(names) -> np.ndarray:
    longest = max(map(len, names), default=1)
    if 4.0 * longest * len(names) > _LONGEST_NAMES:
        raise ValueError(
            f"the names are too long for an npz file, the longest has {longest:,} characters; write Parquet or csv"
        )
    return names.astype(str)


def _write_zarr(completion, form: FileForm, folder: Path) -> None:
    """Write columns, as many at a time as a chunk has."""
    zarr = needed_module("zarr", "zarr")
    o, shape = completion.observations, form.oriented(completion.shape)
    options = {
        "shape": shape,
        "dtype": o.values.dtype,
        "chunks": tuple(min(k, _CHUNK) for k in shape),
        "fill_value": np.nan,
    }
    if form.key is None:
        array = zarr.create_array(folder, overwrite=True, **options)
    else:
        array = zarr.create_group(folder, overwrite=True).create_array(form.key, **options)
    for lo, block in blocks_of(completion, _CHUNK):
        here = slice(lo, lo + block.shape[1])
        if form.transposed:
            array[here, :] = block.T
        else:
            array[:, here] = block
    for side, names in zip(("row_names", "column_names"), form.oriented((o.row_names, o.column_names))):
        if names is not None:
            array.attrs[side] = names.tolist()
