"""Tables larger than memory: blocks of columns, tall matrices, triples in files, Dask, and a forecast of the cost."""
