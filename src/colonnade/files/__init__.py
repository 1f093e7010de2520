"""Files in and out: npy, npz, csv, Parquet (wide or triples) and Zarr, with the names of rows and columns."""

from ._arrays import checked_headers
from ._entries import write_entries
from ._kinds import FileForm
from ._read import read
from ._write import write

__all__ = ["FileForm", "checked_headers", "read", "write", "write_entries"]
