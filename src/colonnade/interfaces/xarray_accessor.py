"""The accessor ``array.colonnade`` of DataArrays; registered when both colonnade and xarray have been imported."""

from __future__ import annotations

import xarray

from ..data.observations import Observations


@xarray.register_dataarray_accessor("colonnade")
class ColonnadeAccessor:
    """Fill the gaps of a DataArray: ``array.colonnade.complete()``."""

    def __init__(self, array: xarray.DataArray):
        self._array = array

    def observations(self, *, columns=None, weights=None) -> Observations:
        """The known entries, for `colonnade.complete`; see `Observations.from_xarray`."""
        return Observations.from_xarray(self._array, columns=columns, weights=weights)

    def complete(
        self, *, columns=None, weights=None, interval: float | None = None, **settings
    ) -> xarray.DataArray | xarray.Dataset:
        """The array with its gaps filled; places without any value, such as land, stay NaN.

        `colonnade.complete(array)` does the same and returns the `Completion`, which knows more.

        Parameters
        ----------
        columns : name of a dimension, or several, optional
            Those whose places are the columns of the matrix; see `Observations.from_xarray`.
        weights : DataArray or array of the same shape, optional
            Inverse variance of each value.
        interval : float, optional
            A probability such as 0.9: the result is then a Dataset with value, low, high and filled.
        **settings
            As of `colonnade.complete`.
        """
        from ..completion import complete

        observations = self.observations(columns=columns, weights=weights)
        return complete(observations, **settings).to_xarray(interval)
