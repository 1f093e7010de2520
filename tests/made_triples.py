"""Triples of made-up matrices, files of them, and what a folder holds."""

import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from colonnade.model import directions
from colonnade.scaling import block_learning, block_solving

from problems import hide, low_rank

FIXED = {"rank": 3, "center": False, "shrinkage": 0.0, "refine": 0}


def triples_of(M, rng=None):
    """Row, column and value of what is known, in random order, or by columns without a generator."""
    columns, rows = np.nonzero(~np.isnan(M.T))
    order = np.arange(rows.size) if rng is None else rng.permutation(rows.size)
    return {"row": rows[order], "column": columns[order], "value": M[rows, columns][order]}


def frame_of(M, labels=False):
    """What is known in random order; labels are names or whole numbers."""
    rows, columns = np.nonzero(~np.isnan(M))
    order = np.random.default_rng(1).permutation(rows.size)
    rows, columns = rows[order], columns[order]
    named = [f"r{i}" for i in rows], [f"c{j}" for j in columns]
    return pd.DataFrame(
        dict(zip(("row", "column"), named if labels else (rows, columns))) | {"value": M[rows, columns]}
    )


def write_triples(path, triples, group=200):
    parquet.write_table(pa.table(triples), path, row_group_size=group)
    return path


def problem(rng, m=40, n=90, n_full=8, s=12, noise=0.0):
    L, R = low_rank(rng, m, n, 3)
    M = L @ R + noise * rng.standard_normal((m, n))
    return hide(rng, M, n_full, s)[0]


def contents(folder):
    """Every file of a folder with a checksum of its bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


LABELS = {
    "gaps": (lambda k: 3 * k + 1, lambda k: 7 * k + 5),
    "scattered": (lambda k: k * 10**12 + 1, lambda k: 5 * k),
    "names": (lambda k: f"row {k}", lambda k: f"é{k % 7}-{k}"),
    "mixed": (lambda k: k, lambda k: f"{k}"),
    "floats": (lambda k: float(2 * k), lambda k: k),
}


def broken(rng, kind):
    given = {name: column.tolist() for name, column in triples_of(problem(rng), rng).items()}
    if kind == "twice":
        for column in given.values():
            column += column[:3]
    if kind == "infinite":
        given["value"][5] = given["value"][500] = np.inf
    if kind == "negative":
        given["row"][5] = -3
    if kind == "null":
        given["column"][5] = None
    if kind == "no full column":
        given = {name: column[:60] for name, column in given.items()}
    if kind == "text":
        given["value"] = [str(x) for x in given["value"]]
    if kind == "none":
        given = {name: pa.array(column[:0], pa.array(column).type) for name, column in given.items()}
    return given


def everything_is_tall(monkeypatch):
    monkeypatch.setattr(block_solving, "exceeds_memory", lambda shape, memory: True)
    monkeypatch.setattr(block_learning, "_COPIES", 1e9)
    monkeypatch.setattr(directions, "_TALL", 0)
