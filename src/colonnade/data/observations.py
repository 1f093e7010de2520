"""Stage 1, the observations: which entries of M are known, column by column."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .._support.arguments import FileLines, as_choice, as_indices, as_names, as_shape, shown
from .._support.numbers import BLOCK_CELLS, before_rounding, first_rounded, rounded_words
from .checking import (
    check_arrays,
    checked_weights,
    matrix_and_mask,
    merge_duplicates,
    order_by_columns,
    place_in,
    place_of,
    refuse_infinite,
    refuse_other_kinds,
)
from .frame_numbers import is_xarray
from .frames import is_frame, matrix_and_form
from .set_aside import named_columns
from .sources import real_dtype


@dataclass(frozen=True, repr=False, eq=False)
class Observations:
    """The known entries of an m x n matrix, as compressed columns.

    Attributes
    ----------
    shape : (int, int)
    indptr : int64 array of shape (n + 1,)
        Column j owns ``rows[indptr[j]:indptr[j + 1]]`` and the values beside them.
    rows : int32 array of shape (nnz,), of a matrix with 2**31 rows or more int64
        Increasing within a column, each row at most once.
    values : float32 or float64 array of shape (nnz,)
    weights : float array of shape (nnz,) or None
        Inverse variance of each measurement, or how often it was drawn; None means 1. Not used of full columns.
    full_columns : int64 array of shape (d,)
        The columns that the column space is learned from, each known in every row.
    full_scales : float64 array of shape (d,) or None
        What a full column is multiplied with in A: ``sqrt(count / (d p_j))`` when it was drawn `count` times with
        probability p_j; None means 1.
    row_names, column_names : arrays of str objects of shape (m,) and (n,), or None
    origin : object
        The form in which the data came, frame or file, so that they can be given back in it; None if not known.
    """

    shape: tuple[int, int]
    indptr: np.ndarray
    rows: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None
    full_columns: np.ndarray
    full_scales: np.ndarray | None = None
    row_names: np.ndarray | None = None
    column_names: np.ndarray | None = None
    origin: Any = None

    def __post_init__(self):
        check_arrays(self)
        # One type for each, because the solver takes seconds to be compiled for another.
        object.__setattr__(self, "indptr", self.indptr.astype(np.int64, copy=False))
        object.__setattr__(self, "rows", self.rows.astype(index_dtype(self.shape[0]), copy=False))

    @property
    def names_in_messages(self) -> tuple:
        """Names of rows and of columns, or None; where the data are lines of a file, with the lines."""
        line_of = getattr(self.origin, "line_of", None)
        if line_of is None:
            return self.row_names, self.column_names
        rows, columns = self.origin.oriented((self.row_names, self.column_names))
        return self.origin.oriented((FileLines(rows, line_of), columns))

    @classmethod
    def from_dense(
        cls, M, *, weights=None, row_names=None, column_names=None, origin=None, ignore=(), only=None
    ) -> Observations:
        """The entries of M that are not NaN, not null and not masked.

        Parameters
        ----------
        M : array of shape (m, n) of real numbers, masked array, or data frame
            A frame brings its names along. Its columns of text, dates, Booleans and the like are set aside.
        weights : positive array of shape (m, n), optional
            Of a frame, n may count all its columns or those of the matrix.
        row_names, column_names : str of shape (m,) and (n,), optional
        origin : object, optional
            As of the attribute.
        ignore : name or list of names
            Columns of a frame that are no part of the matrix; `to_frame` returns them unchanged.
        only : name or list of names, optional
            The only columns of a frame that are the matrix. Default: all that hold numbers.
        """
        if is_frame(M):
            matrix, form = matrix_and_form(M, ignore, only)
            if form.aside is not None and np.shape(weights) == M.shape:
                weights = np.asanyarray(weights)[:, form.aside.matrix_places(matrix.shape[1])]
            M, origin = matrix, origin or form
            row_names = form.row_names() if row_names is None else row_names
            column_names = form.column_names() if column_names is None else column_names
        else:
            _refuse_names(M, ignore, only)
        values, seen = matrix_and_mask(M)
        weights = checked_weights(weights, seen) if weights is not None else None
        m, n = values.shape
        dtype, index = real_dtype(values.dtype), index_dtype(m)
        counts = seen.sum(axis=0)
        parts: tuple[list, list, list] = [], [], []
        step = max(1, BLOCK_CELLS // m)
        for lo in range(0, n, step):  # The index arrays of a whole mask would take 16 bytes a cell.
            block = np.ascontiguousarray(seen[:, lo : lo + step].T)
            column, row = np.nonzero(block)
            parts[0].append(row.astype(index))
            with np.errstate(over="ignore"):  # Infinite values are refused below.
                parts[1].append(np.asarray(values[row, column + lo], dtype=dtype))
            if weights is not None:
                parts[2].append(weights[row, column + lo])
        rows, known = np.concatenate(parts[0]), np.concatenate(parts[1])
        indptr = pointers_of(counts)
        names = as_names("row_names", row_names, m), as_names("column_names", column_names, n)
        refuse_infinite(known, lambda at: place_in(indptr, rows, at), names)
        kept = np.concatenate(parts[2]) if weights is not None else None
        return cls((m, n), indptr, rows, known, kept, np.flatnonzero(counts == m), None, *names, origin)

    @classmethod
    def from_triplets(
        cls,
        rows,
        columns,
        values,
        shape,
        *,
        weights=None,
        duplicates="error",
        row_names=None,
        column_names=None,
        origin=None,
    ) -> Observations:
        """Entries ``M[rows[k], columns[k]] = values[k]`` in any order; a value of NaN is no observation.

        Parameters
        ----------
        rows, columns, values : arrays of shape (nnz,)
        shape : (int, int)
        weights : positive array of shape (nnz,), optional
        duplicates : {"error", "mean", "last"}
            What to do with a place that is named twice: refuse, average (by weight; weights add up), or keep the last.
        row_names, column_names : str of shape (m,) and (n,), optional
        origin : object, optional
            As of the attribute.
        """
        as_choice("duplicates", duplicates, ("error", "mean", "last"))
        m, n = as_shape(shape)
        names = as_names("row_names", row_names, m), as_names("column_names", column_names, n)
        rows, columns = as_indices("rows", rows, m), as_indices("columns", columns, n)
        whole = before_rounding(values)
        if isinstance(values, np.ma.MaskedArray):
            values = np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values))
        values = np.asarray(values)
        refuse_other_kinds(values.dtype, "values")
        if not rows.shape == columns.shape == values.shape or values.ndim != 1:
            raise ValueError(
                "rows, columns and values must be 1-D and of one length;"
                f" got {rows.shape}, {columns.shape} and {values.shape}"
            )
        at = first_rounded(whole)
        if at is not None:
            raise ValueError(rounded_words(f"the entry at {place_of(rows[at], columns[at], names)}", whole[at]))
        values = values.astype(real_dtype(values.dtype), copy=False)
        if weights is not None:
            weights = checked_weights(weights, ~np.isnan(values))
        if np.isnan(values).any():
            seen = ~np.isnan(values)
            rows, columns, values = rows[seen], columns[seen], values[seen]
            weights = weights[seen] if weights is not None else None
        order = order_by_columns(rows, columns, m, n)
        rows, columns, values = rows[order], columns[order], values[order]
        weights = weights[order] if weights is not None else None
        first = np.ones(rows.size, bool)
        first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        if not first.all():
            rows, columns, values, weights = merge_duplicates(rows, columns, values, weights, first, duplicates, names)
        counts = np.bincount(columns, minlength=n)
        indptr = pointers_of(counts)
        refuse_infinite(values, lambda at: place_in(indptr, rows, at), names)
        full = np.flatnonzero(counts == m)
        return cls((m, n), indptr, rows.astype(index_dtype(m)), values, weights, full, None, *names, origin)

    @classmethod
    def from_sparse(cls, S, *, row_names=None, column_names=None, origin=None) -> Observations:
        """The stored entries of a scipy sparse matrix: stored is seen, and an explicit zero is an observation."""
        from scipy import sparse

        if not sparse.issparse(S):
            raise TypeError(f"from_sparse takes a scipy sparse matrix or array; got {type(S).__name__}")
        if S.format in ("dia", "bsr"):
            raise TypeError(
                f"the format {S.format} does not tell stored zeros from unseen entries;"
                " convert with tocsc() if it holds none"
            )
        if hasattr(S, "indices"):
            as_indices("indices", S.indices, S.shape[1] if S.format == "csr" else S.shape[0])
            steps = np.diff(S.indptr)
            if S.indptr[0] != 0 or (steps < 0).any() or S.indptr[-1] > S.indices.size:
                raise ValueError("the indptr of the sparse matrix must start at 0, never decrease and end within it")
        coordinates = S.tocoo()
        i, j, x = coordinates.row, coordinates.col, coordinates.data
        return cls.from_triplets(i, j, x, S.shape, row_names=row_names, column_names=column_names, origin=origin)

    @classmethod
    def from_xarray(cls, array, *, columns=None, weights=None) -> Observations:
        """The entries of a DataArray that are not NaN, its dimensions stacked into rows and columns.

        `columns` names the dimensions that are columns. Default: of two the second; of more, the one that holds dates
        or is called "time", else the first. `weights` are as of `from_dense`, or a DataArray. Places without any value,
        such as land in a map of the sea, are set aside; `Completion.to_xarray` has them again, as NaN.
        """
        from .xarrays import observations_of_array

        return observations_of_array(array, columns, weights=weights)

    @property
    def n_observed(self) -> np.ndarray:
        """Number of observed rows of every column, shape (n,)."""
        return np.diff(self.indptr)

    @property
    def entry_columns(self) -> np.ndarray:
        """The column of every entry, shape (nnz,), as `rows` are their rows."""
        return np.repeat(np.arange(self.shape[1]), self.n_observed)

    def columns_of(self, places) -> np.ndarray:
        """The columns of the entries that stand at some places in `values`, shape of `places`."""
        return np.searchsorted(self.indptr, places, side="right") - 1

    @property
    def partial_columns(self) -> np.ndarray:
        """The columns that are not among the full ones, shape (n - d,)."""
        rest = np.ones(self.shape[1], bool)
        rest[self.full_columns] = False
        return np.flatnonzero(rest)

    def with_arrays(self, **changes) -> Observations:
        """The same with some attributes changed, which are known to be in order and not looked at again."""
        result = object.__new__(Observations)
        result.__dict__.update(self.__dict__, **changes)
        return result

    def take(self, columns) -> Observations:
        """The observations of some columns; none counts as full."""
        columns = np.asarray(columns, dtype=np.int64)
        counts = self.n_observed[columns]
        indptr = pointers_of(counts)
        at = np.arange(indptr[-1]) + np.repeat(self.indptr[columns] - indptr[:-1], counts)
        weights = None if self.weights is None else self.weights[at]
        return self.with_arrays(
            shape=(self.shape[0], columns.size),
            indptr=indptr,
            rows=self.rows[at],
            values=self.values[at],
            weights=weights,
            full_columns=np.zeros(0, np.int64),
            full_scales=None,
            column_names=None if self.column_names is None else self.column_names[columns],
            origin=None,
        )

    def with_relative_weights(self, n_columns: int | None = None) -> Observations:
        """Divide the weights by the usual one: the median in partial columns, of the first `n_columns` if given."""
        if self.weights is None or not self.partial_columns.size:
            return self
        is_full = np.zeros(self.shape[1], bool)
        is_full[self.full_columns] = True
        is_full[self.shape[1] if n_columns is None else n_columns :] = True  # They do not count.
        of_partial = self.weights[~is_full[self.entry_columns]]
        usual = float(np.median(of_partial)) if of_partial.size else 1.0
        if usual == 1:
            return self
        limits = np.finfo(np.float64)
        with np.errstate(over="ignore", under="ignore"):
            return self.with_arrays(weights=np.clip(self.weights / usual, limits.tiny, limits.max))

    def only(self, kept) -> Observations:
        """The same columns with some of their entries: those where `kept`, of shape (nnz,), is True.

        Full columns must keep all of theirs.
        """
        gone = np.searchsorted(np.flatnonzero(~kept), self.indptr)  # Entries that are left out before each column.
        weights = None if self.weights is None else self.weights[kept]
        return self.with_arrays(
            indptr=self.indptr - gone, rows=self.rows[kept], values=self.values[kept], weights=weights
        )

    def without(self, places) -> Observations:
        """All but the entries that stand at some places in `values`; a full column that loses one is a partial one."""
        if len(places) == 0:
            return self
        kept = np.ones(self.values.size, bool)
        kept[places] = False
        stays = ~np.isin(self.full_columns, self.columns_of(places))
        scales = None if self.full_scales is None else self.full_scales[stays]
        return self.only(kept).with_arrays(full_columns=self.full_columns[stays], full_scales=scales)

    def by_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The entries sorted by rows, within a row by columns: where each row begins, and of every entry its column
        and its place in `values`.
        """
        from scipy import sparse

        across = sparse.csc_array((np.arange(self.rows.size), self.rows, self.indptr), shape=self.shape).tocsr()
        columns = across.indices.astype(index_dtype(self.shape[1]), copy=False)
        return across.indptr.astype(np.int64), columns, across.data

    def transposed(self) -> Observations:
        """The same entries of M', whose columns are the rows of M; those known throughout count as full."""
        m, n = self.shape
        indptr, columns, order = self.by_rows()
        full = np.flatnonzero(np.diff(indptr) == n)
        return self.with_arrays(
            shape=as_shape((n, m)),
            indptr=indptr,
            rows=columns,
            values=self.values[order],
            weights=None if self.weights is None else self.weights[order],
            full_columns=full,
            full_scales=None,
            row_names=self.column_names,
            column_names=self.row_names,
            origin=None,
        )

    def to_dense(self) -> np.ndarray:
        """The whole matrix, shape (m, n), NaN where nothing is known; as other imputers take it."""
        M = np.full(self.shape, np.nan, self.values.dtype)
        M[self.rows, self.entry_columns] = self.values
        return M

    def full_matrix(self) -> np.ndarray:
        """The full columns as they were observed, shape (m, d), Fortran order."""
        return pieces_at(self.values, self.indptr[self.full_columns], self.shape[0]).T

    def locate(self, rows, columns) -> np.ndarray:
        """Where the entries (rows[k], columns[k]) stand in `values`; -1 for those not observed."""
        low, end = self.indptr[columns], self.indptr[columns + 1]
        high = end.copy()
        while (low < high).any():  # Bisection for all places at once.
            middle = (low + high) // 2
            go_right = (low < high) & (self.rows[np.minimum(middle, self.rows.size - 1)] < rows)
            high = np.where(go_right | (low >= high), high, middle)
            low = np.where(go_right, middle + 1, low)
        found = low < end
        found[found] = self.rows[low[found]] == rows[found]
        return np.where(found, low, -1)

    def __repr__(self) -> str:
        m, n = self.shape
        share = self.rows.size / (m * n)
        return (
            f"<Observations of a {m:,} x {n:,} matrix: {self.full_columns.size:,} full columns,"
            f" {self.rows.size:,} entries ({share:.2%})>"
        )


def pieces_at(values: np.ndarray, starts, length: int) -> np.ndarray:
    """The `length` values from every start on, shape (k, length)."""
    if len(starts) == 0:
        return np.zeros((0, length), values.dtype)
    return sliding_window_view(values, length)[starts]


def pointers_of(counts) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


def index_dtype(m):
    return np.int32 if m < 2**31 else np.int64


def _refuse_names(data, ignore, only) -> None:
    if named_columns(ignore) or only is not None:
        hint = "give them to colonnade.read" if isinstance(data, Observations) else "leave out columns by number"
        raise TypeError(f"ignore and only name columns of data frames; got {type(data).__name__}: {hint}")


def as_observations(data, *, ignore=(), only=None) -> Observations:
    """Observations from whatever a user has: they themselves, an array, a data frame, a DataArray, a sparse matrix.

    `ignore` and `only` name columns of a data frame, as of `Observations.from_dense`.
    """
    if not is_frame(data):
        _refuse_names(data, ignore, only)
    if isinstance(data, Observations):
        return data
    if isinstance(data, (str, bytes, os.PathLike)):
        raise TypeError(f"{shown(data)} is a name, not data: read a file with colonnade.read")
    if type(data).__module__.startswith("scipy.sparse"):
        return Observations.from_sparse(data)
    if is_xarray(data):
        return Observations.from_xarray(data)
    return Observations.from_dense(data, ignore=ignore, only=only)
