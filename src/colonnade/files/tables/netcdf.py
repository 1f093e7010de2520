"""netCDF files: one variable of two or more dimensions, which are stacked into rows and columns and restored."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..._support.arguments import LISTED, printable, shown
from ...data.observations import Observations
from ...data.xarrays import array_of
from .kinds import HDF5, TIMES_ARRAY, FileForm, needed_module, one_line, refuse_beyond_memory


def read_netcdf(path: Path, key: str | None, missing, limit: float | None = None) -> Observations:
    """A variable of a netCDF file; its fill values, NaN and the numbers among `missing` are unseen."""
    xarray = needed_module("xarray", "xarray")
    try:
        with xarray.open_dataset(path.absolute(), engine=_engine(path), decode_coords="all") as data:
            array = data[_chosen(path, data, key)]
            refuse_beyond_memory(path, float(array.size) * array.dtype.itemsize, times=TIMES_ARRAY, limit=limit)
            array, attributes = array.load(), dict(data.attrs)
    except _Refused as error:
        raise ValueError(str(error)) from None
    except (OSError, ValueError, TypeError, KeyError, IndexError, RuntimeError, AttributeError) as error:
        raise ValueError(f"{printable(path)} is damaged or not netCDF: {one_line(error)}") from error
    numbers = _as_numbers(missing)
    if numbers:
        array = array.where(~array.isin(np.array(numbers).astype(array.dtype)))
    observations = Observations.from_xarray(array)
    form = FileForm("netcdf", key=str(array.name), array=observations.origin, attributes=attributes)
    return replace(observations, origin=form)


class _Refused(Exception):
    """What is wrong with the request, not with the file."""


def _engine(path: Path) -> str:
    """The library that reads it: netCDF 4 is HDF5, and netCDF 3 is read by scipy."""
    with open(path, "rb") as file:
        is_hdf5 = file.read(len(HDF5)) == HDF5
    if is_hdf5:
        needed_module("h5netcdf", "xarray")
    return "h5netcdf" if is_hdf5 else "scipy"


def _chosen(path: Path, data, key: str | None) -> str:
    """The name of the variable: `key`, or the only one with two or more dimensions of numbers."""
    fields = [str(name) for name, one in data.data_vars.items() if one.ndim >= 2 and one.dtype.kind in "fiu"]
    if key is None and len(fields) == 1:
        return fields[0]
    if key in fields:
        return key
    listed = ", ".join(f"{shown(name)} ({', '.join(map(str, data[name].dims))})" for name in fields[:LISTED]) + (
        ", ..." if len(fields) > LISTED else ""
    )
    if not fields:
        raise _Refused(f"{printable(path)} has no variable of numbers with two or more dimensions")
    if key is None:
        raise _Refused(f"{printable(path)} has {len(fields)} variables; name one with --variable (key=...): {listed}")
    raise _Refused(f"{printable(path)} has no variable {shown(key)} of two or more dimensions; it has {listed}")


def _as_numbers(missing) -> list[float]:
    numbers = []
    for one in missing:
        with suppress(ValueError):
            numbers.append(float(one))
    return numbers


def write_netcdf(M, observations, form: FileForm, path: Path) -> None:
    """The variable with its coordinates and the attributes of the file, as netCDF 4; numbers are not packed again."""
    needed_module("xarray", "xarray")
    needed_module("h5netcdf", "xarray")
    array = array_of(M, observations)
    array = array.rename(form.key or array.name or "values")
    data = array.to_dataset(promote_attrs=False)
    data.attrs = dict(form.attributes)
    data.to_netcdf(path, engine="h5netcdf", format="NETCDF4")
