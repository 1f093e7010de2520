"""Files in and out, with the names of rows and columns: npy, npz, csv, Parquet, Zarr, xlsx and netCDF."""

from .tables.arrays import checked_headers
from .tables.entries import Asked, filled_entries, read_asked, write_entries
from .tables.kinds import SUFFIXES, FileForm, holds_one_zarr, is_zarr
from .tables.observed import write_observed
from .tables.reading import read
from .tables.scores import write_scores
from .tables.writing import write, write_arrays

__all__ = [
    "SUFFIXES",
    "Asked",
    "FileForm",
    "checked_headers",
    "filled_entries",
    "holds_one_zarr",
    "is_zarr",
    "read",
    "read_asked",
    "write",
    "write_arrays",
    "write_entries",
    "write_observed",
    "write_scores",
]
