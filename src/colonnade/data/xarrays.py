"""DataArrays of xarray as matrices and back: dimensions are stacked into rows and columns, and restored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._support.arguments import LISTED, shown
from .frame_numbers import is_xarray, labels_as_text
from .observations import Observations, as_observations

if TYPE_CHECKING:
    import xarray

_NEEDS_XARRAY = "to_xarray needs xarray: pip install 'colonnade[xarray]', or take to_dense()"


@dataclass(frozen=True, eq=False)
class ArrayForm:
    """What a DataArray is besides its numbers, so that a filled one can be made like it.

    Attributes
    ----------
    template : DataArray
        Dimensions, coordinates, name and attributes; its numbers take no memory.
    rows, columns : tuples of str
        The dimensions that are stacked into the rows and into the columns of the matrix.
    row_places, column_places : int64 arrays
        Where the rows and columns of the matrix stand among all. Those without any value are not in the matrix.
    """

    template: xarray.DataArray
    rows: tuple
    columns: tuple
    row_places: np.ndarray
    column_places: np.ndarray

    def sizes(self) -> tuple[int, int]:
        """Number of rows and columns, those without any value too."""
        rows, columns = (int(np.prod([self.template.sizes[d] for d in dims])) for dims in (self.rows, self.columns))
        return rows, columns

    def data_array(self, matrix) -> xarray.DataArray:
        """The numbers of a matrix in the dimensions of the template; NaN, or False, where nothing was ever known."""
        whole = np.full(self.sizes(), False if matrix.dtype == bool else np.nan, matrix.dtype)
        whole[np.ix_(self.row_places, self.column_places)] = matrix
        stacked = (*self.rows, *self.columns)
        cube = whole.reshape([self.template.sizes[d] for d in stacked])
        order = [stacked.index(d) for d in self.template.dims]
        return self.template.copy(data=np.ascontiguousarray(cube.transpose(order)))

    def in_words(self) -> str:
        """Which dimensions are rows and which are columns."""
        return f"rows: {', '.join(map(str, self.rows))}; columns: {', '.join(map(str, self.columns))}"

    def empty_in_words(self) -> str | None:
        """The places without any value; None if there are none."""
        sides = zip((self.rows, self.columns), self.sizes(), (self.row_places.size, self.column_places.size))
        some = [
            f"{size - kept:,} of {size:,} places of {', '.join(map(str, dims))}"
            for dims, size, kept in sides
            if kept < size
        ]
        return f"{' and '.join(some)} have no value and stay empty" if some else None


def observations_of_array(array, columns=None, *, weights=None, row_places=None) -> Observations:
    """The known entries of a DataArray of two or more dimensions.

    Parameters
    ----------
    array : DataArray
    columns : name of a dimension, or several, optional
        Those whose places are the columns of the matrix; the others are its rows. Default: of two dimensions the
        second; of more, the one that holds dates or is called "time", else the first.
    weights : DataArray or array of the same shape, optional
        As of `Observations.from_dense`.
    row_places : int64 array, optional
        The rows of the matrix among all. Default: those with a value.

    Returns
    -------
    Observations
        Rows and columns without any value, such as land in a map of the sea, are no part of it.
    """
    array = _one_array(array)
    column_dims = _checked_dims(array, columns)
    row_dims = tuple(d for d in array.dims if d not in column_dims)
    order = [array.dims.index(d) for d in (*row_dims, *column_dims)]
    shape = [int(np.prod([array.sizes[d] for d in dims])) for dims in (row_dims, column_dims)]

    def matrix_of(numbers):
        return np.asarray(numbers).transpose(order).reshape(shape)

    matrix = matrix_of(array.values)
    known = ~np.isnan(matrix) if matrix.dtype.kind == "f" else np.ones(matrix.shape, bool)
    places = [np.flatnonzero(known.any(axis=axis)) for axis in (1, 0)]
    if places[0].size == 0:
        raise ValueError("the DataArray holds no number: every value is NaN")
    places[0] = places[0] if row_places is None else row_places
    names = [_names(array, dims, at) for dims, at in zip((row_dims, column_dims), places)]
    if weights is not None:
        weights = matrix_of(_weights_like(array, weights))[np.ix_(*places)]
    form = ArrayForm(_template(array), row_dims, column_dims, *places)
    some = matrix[np.ix_(*places)]
    return Observations.from_dense(some, weights=weights, row_names=names[0], column_names=names[1], origin=form)


def observations_like(observations: Observations, new) -> Observations:
    """New columns of a table as observations; those of a DataArray have the places of the first one as rows."""
    form = array_form_of(observations.origin)
    if form is None or not is_xarray(new):
        return as_observations(new)
    array = _one_array(new)
    if {d: array.sizes.get(d) for d in form.rows} != {d: form.template.sizes[d] for d in form.rows}:
        dims = ", ".join(map(str, form.rows))
        raise ValueError(f"new columns must have the dimensions {dims} of the table; got {dict(array.sizes)}")
    beyond = np.setdiff1d(observations_of_array(array, form.columns).origin.row_places, form.row_places)
    if beyond.size:
        raise ValueError(
            f"{beyond.size:,} places of {', '.join(map(str, form.rows))} have values in the new columns and none in the"
            " table, so nothing was learned of them; complete the whole again"
        )
    return observations_of_array(array, form.columns, row_places=form.row_places)


def joined_origin(observations: Observations, new: Observations):
    """The origin of a table with further columns: its dimension of columns is longer; None if that cannot be said."""
    origin, form, other = observations.origin, array_form_of(observations.origin), array_form_of(new.origin)
    if form is None:
        return origin
    if other is None or len(form.columns) > 1 or form.columns != other.columns:
        return None
    import xarray

    how = {"coords": "different", "compat": "equals", "join": "exact"}
    whole = xarray.concat([form.template, other.template.transpose(*form.template.dims)], form.columns[0], **how)
    places = np.concatenate([form.column_places, form.sizes()[1] + other.column_places])
    joined = replace(form, template=_template(whole), column_places=places)
    return joined if origin is form else replace(origin, array=joined)


def array_form_of(origin) -> ArrayForm | None:
    """The form of a DataArray, which a netCDF file has among other things; None of other data."""
    form = getattr(origin, "array", origin)
    return form if isinstance(form, ArrayForm) else None


def _one_array(data):
    """The DataArray that is meant; a Dataset is refused."""
    if hasattr(data, "data_vars"):
        names = list(data.data_vars)
        listed = ", ".join(map(shown, names[:LISTED])) + (", ..." if len(names) > LISTED else "")
        raise TypeError(
            f"a Dataset may hold several variables; take one, such as data[name]. It has {listed or 'none'}"
        )
    if not hasattr(data, "dims") or not hasattr(data, "coords"):
        raise TypeError(f"of xarray only a DataArray can be completed; got {type(data).__name__}")
    if data.ndim < 2 or 0 in data.shape:
        raise ValueError(f"a DataArray needs at least two dimensions, none of them of length 0; got {dict(data.sizes)}")
    return data


def _checked_dims(array, columns) -> tuple:
    """The dimensions that are columns, in the order of the array."""
    dims = array.dims
    if columns is None:
        return (dims[1],) if len(dims) == 2 else (next((d for d in dims if _is_time(array, d)), dims[0]),)
    given = [columns] if isinstance(columns, str) or columns in dims else list(columns)
    unknown = [d for d in given if d not in dims]
    if unknown or not given or len(set(given)) == len(dims):
        raise ValueError(f"columns must name some, not all, of the dimensions {', '.join(map(str, dims))}; got {given}")
    return tuple(d for d in dims if d in given)


def _is_time(array, dim) -> bool:
    held = array.coords[dim].dtype if dim in array.coords else np.dtype(float)
    return held.kind == "M" or str(dim).lower() == "time"


def _weights_like(array, weights):
    """Weights as an array in the order of dimensions of the data."""
    if is_xarray(weights):
        weights = weights.reindex_like(array).broadcast_like(array).transpose(*array.dims).values
    if np.shape(weights) != array.shape:
        raise ValueError(f"weights must have the shape of the data, {array.shape}; got {np.shape(weights)}")
    return weights


def _names(array, dims, places) -> list[str] | None:
    """Names of some rows or columns: coordinates of their dimensions, or positions in them; None if merely numbered."""
    if len(dims) == 1 and dims[0] not in array.indexes and len(places) == array.sizes[dims[0]]:
        return None
    labels = [
        (labels_as_text(array.indexes[d]) if d in array.indexes else None) or [str(k) for k in range(array.sizes[d])]
        for d in dims
    ]
    at = np.unravel_index(places, [array.sizes[d] for d in dims])
    return [", ".join(some) for some in zip(*([words[k] for k in axis] for words, axis in zip(labels, at)))]


def _template(array):
    """The DataArray without its numbers."""
    nothing = np.broadcast_to(np.float32(np.nan), array.shape)
    template = type(array)(nothing, coords=array.coords, dims=array.dims, name=array.name, attrs=array.attrs)
    template.encoding = {k: v for k, v in array.encoding.items() if k == "grid_mapping"}  # Not how numbers are packed.
    return template


def form_of(observations) -> ArrayForm:
    """The form in which DataArrays are made of results: as the data came, else with dimensions row and column."""
    form = array_form_of(observations.origin)
    if form is not None:
        return form
    try:
        import xarray
    except ModuleNotFoundError:
        raise ModuleNotFoundError(_NEEDS_XARRAY, name="xarray") from None
    m, n = observations.shape
    names = zip(("row", "column"), (observations.row_names, observations.column_names))
    coords = {dim: given for dim, given in names if given is not None}
    nothing = np.broadcast_to(np.float32(np.nan), (m, n))
    template = xarray.DataArray(nothing, coords=coords, dims=("row", "column"))
    return ArrayForm(template, ("row",), ("column",), np.arange(m), np.arange(n))


def array_of(matrix, observations) -> xarray.DataArray:
    """The matrix as a DataArray like the one that the observations came from."""
    form, origin = form_of(observations), observations.origin
    is_turned = form is not origin and getattr(origin, "array", None) is form and origin.transposed
    return form.data_array(matrix.T if is_turned else matrix)


def dataset_of(matrices: dict, observations) -> xarray.Dataset:
    """Several matrices by name as one Dataset, each a DataArray like that of the observations."""
    import xarray

    return xarray.Dataset({name: array_of(matrix, observations).rename(name) for name, matrix in matrices.items()})
