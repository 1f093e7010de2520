"""Compiled loops that sort the entries of columns by their rows."""

from __future__ import annotations

from .._support.compiling import compiled


@compiled()
def row_begins(rows, begins):
    """Where each row begins when entries are sorted by rows; `begins` has a number more than rows, zeros at first."""
    for k in range(rows.size):
        begins[rows[k] + 1] += 1
    for i in range(begins.size - 1):
        begins[i + 1] += begins[i]


@compiled()
def columns_by_rows(indptr, rows, begins, result):
    """The column of every entry, sorted by rows and within a row by columns."""
    free = begins.copy()
    for j in range(indptr.size - 1):
        for k in range(indptr[j], indptr[j + 1]):
            result[free[rows[k]]] = j
            free[rows[k]] += 1


@compiled()
def sorted_by_rows(x, rows, begins, result):
    """What belongs to the entries, in the same order."""
    free = begins.copy()
    for k in range(x.size):
        result[free[rows[k]]] = x[k]
        free[rows[k]] += 1
