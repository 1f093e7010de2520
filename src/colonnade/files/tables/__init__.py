"""Tables in files: npy, npz, csv, Parquet (wide or triples) and Zarr, read and written."""
