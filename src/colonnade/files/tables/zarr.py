"""Zarr arrays: NaN is unseen, and so is a chunk that was never written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..._support.arguments import printable
from ..._support.storage import Url
from ...data.observations import Observations
from .kinds import TIMES_ARRAY, FileForm, needed_module, one_line, refuse_beyond_memory, safe_key


def read_zarr(path: Path, key: str | None, limit: float | None = None) -> Observations:
    """An array, or one of a group; its attributes may hold the names of rows and columns."""
    array, key, names = opened_zarr(path, key)
    refuse_beyond_memory(path, _size(array.shape, array.dtype), times=TIMES_ARRAY, limit=limit)
    shard = getattr(array, "shards", None) or array.chunks  # A chunk is unpacked whole, though it may exceed the array.
    remedy = "write it in smaller chunks"
    refuse_beyond_memory(path, _size(shard, array.dtype), ", a chunk,", limit=limit, remedy=remedy)
    try:
        values = array[...]
    except (ValueError, RuntimeError, OSError, TypeError) as error:
        raise ValueError(f"{printable(path)} is damaged: {one_line(error)}") from error
    return Observations.from_dense(values, **names, origin=FileForm("zarr", key=key))


def _size(shape, dtype) -> float:
    """Bytes of an array."""
    return float(np.prod([float(k) for k in shape])) * dtype.itemsize


def opened_zarr(path: Path, key: str | None) -> tuple:
    """The array, which is not read yet; its key in a group; and its names, as keywords of `Observations`."""
    array, key = _array(path, key)
    if array.ndim != 2:
        raise ValueError(f"{printable(path)} must have two dimensions, rows and columns; its shape is {array.shape}")
    filler = array.fill_value
    if not (array.dtype.kind == "f" and filler is not None and np.isnan(filler)):
        there, all_of = array.nchunks_initialized, array.nchunks
        if there < all_of:
            raise ValueError(
                f"{all_of - there:,} of {all_of:,} chunks of {printable(path)} are not there and would be read as"
                f" {filler}; write the array with fill_value=nan, or all its chunks (write_empty_chunks)"
            )
    return array, key, {side: array.attrs.get(side) for side in ("row_names", "column_names")}


def _array(path: Path, key: str | None):
    zarr = needed_module("zarr", "zarr")
    try:  # A text might be taken for an address or an archive.
        node = zarr.open(_store(zarr, path) if isinstance(path, Url) else path.absolute(), mode="r")
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ValueError(f"{printable(path)} is damaged or not Zarr: {one_line(error)}") from error
    if isinstance(node, zarr.Array):
        return node, None
    arrays = {name: array for name, array in node.arrays() if array.ndim == 2}
    if key is None and len(arrays) == 1:
        key = next(iter(arrays))
    if key is None or key not in arrays:
        listed = ", ".join(map(repr, list(arrays)[:8])) or "none"
        raise ValueError(
            f"{printable(path)} is a Zarr group: name one of its arrays of two dimensions by its key; it has {listed}"
        )
    return arrays[key], safe_key(path, key)


def _store(zarr, url: Url):
    """A store of Zarr at an address, which only reads."""
    return zarr.storage.FsspecStore.from_url(url.address, storage_options=url.options, read_only=True)
