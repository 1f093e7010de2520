"""Files in and out: npy, npz, csv, Parquet (wide or triples) and Zarr, with the names of rows and columns."""

from ._read import read

__all__ = ["read"]
