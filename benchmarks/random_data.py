"""Small random tables of every kind: contents, scales, gaps, and the forms in which a user may pass them."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import numpy as np
from scipy import sparse

import colonnade as co


class Table(NamedTuple):
    """What is passed to a function, in one of many forms; and in words what it is."""

    data: object
    words: str


def draw(rng) -> Table:
    """One table."""
    m, n = _size(rng), _size(rng)
    content, M = _content(rng, m, n)
    scale, M = _scaled(rng, M)
    gaps, seen = _seen(rng, m, n)
    form, data = _form(rng, M, seen)
    return Table(data, f"{m} x {n}, {content}, {scale}, {gaps}, {form}")


def _size(rng) -> int:
    return int(rng.choice([rng.integers(1, 5), rng.integers(2, 13), rng.integers(5, 31)]))


def _content(rng, m, n) -> tuple[str, np.ndarray]:
    r = int(rng.integers(1, 5))
    low_rank = rng.standard_normal((m, r)) @ rng.standard_normal((r, n))
    contents = {
        "exact": lambda: low_rank,
        "noisy": lambda: low_rank + 10.0 ** rng.uniform(-8, 1) * rng.standard_normal((m, n)),
        "heavy tails": lambda: rng.standard_t(1.2, (m, n)),
        "whole numbers": lambda: rng.integers(-3, 4, (m, n)).astype(float),
        "exact whole numbers": lambda: (rng.integers(-3, 4, (m, r)) @ rng.integers(-3, 4, (r, n))).astype(float),
        "zeros and ones": lambda: (rng.random((m, n)) < rng.random()).astype(float),
        "one number": lambda: np.full((m, n), float(rng.choice([0.0, 1.0, -2.5, 0.1]))),
        "a large mean": lambda: low_rank + 10.0 ** rng.uniform(2, 9),
        "few different columns": lambda: low_rank[:, rng.integers(0, max(1, n // 3), n)],
        "few different rows": lambda: low_rank[rng.integers(0, max(1, m // 3), m)],
        "constant columns and rows": lambda: _with_constants(rng, low_rank),
        "an outlier": lambda: _with_outlier(rng, low_rank),
        "noise": lambda: rng.standard_normal((m, n)),
    }
    name = str(rng.choice(list(contents)))
    return name, contents[name]()


def _with_constants(rng, M) -> np.ndarray:
    M = M.copy()
    M[:, rng.random(M.shape[1]) < 0.3] = float(rng.choice([0.0, 3.0]))
    M[rng.random(M.shape[0]) < 0.3] = float(rng.choice([0.0, -7.0]))
    return M


def _with_outlier(rng, M) -> np.ndarray:
    M = M.copy()
    M[rng.integers(M.shape[0]), rng.integers(M.shape[1])] = rng.choice([-999.0, 1e6, 1e30])
    return M


def _scaled(rng, M) -> tuple[str, np.ndarray]:
    m, n = M.shape
    kind = str(rng.choice(["as it is", "scaled", "rows scaled", "columns scaled"], p=[0.5, 0.3, 0.1, 0.1]))
    if kind == "as it is":
        return kind, M
    if kind == "scaled":
        power = float(rng.choice([rng.uniform(-300, 300), rng.uniform(-20, 20)]))
        factors = 10.0**power
        kind = f"times 1e{power:.0f}"
    else:
        width = float(rng.choice([3, 30, 290]))
        factors = 10.0 ** rng.uniform(-width, width, (m, 1) if kind == "rows scaled" else (1, n))
        kind = f"{kind} by up to 1e{width:.0f}"
    with np.errstate(over="ignore", under="ignore"):
        return kind, np.clip(M * factors, -1.7e308, 1.7e308)


def _seen(rng, m, n) -> tuple[str, np.ndarray]:
    some = rng.random((m, n)) < rng.uniform(0.1, 0.95)
    full = rng.random(n) < rng.uniform(0.1, 0.8)
    patterns = {
        "no gaps": lambda: np.ones((m, n), bool),
        "full columns": lambda: some | full,
        "full rows": lambda: some | (rng.random((m, 1)) < 0.5),
        "gaps anywhere": lambda: some,
        "the same rows": lambda: some[:, :1] | full,
        "empty columns": lambda: (some | full) & (rng.random(n) < 0.8),
        "empty rows": lambda: (some | full) & (rng.random((m, 1)) < 0.8),
        "one gap": lambda: np.arange(m * n).reshape(m, n) != rng.integers(m * n),
        "one entry": lambda: np.arange(m * n).reshape(m, n) == rng.integers(m * n),
        "nothing": lambda: np.zeros((m, n), bool),
    }
    chances = np.array([6, 40, 6, 10, 12, 8, 8, 6, 2, 2]) / 100
    name = str(rng.choice(list(patterns), p=chances))
    return name, patterns[name]()


def _form(rng, M, seen) -> tuple[str, object]:
    forms = {
        "float64": lambda: np.where(seen, M, np.nan),
        "float32": lambda: _as_float(M, seen, np.float32),
        "float16": lambda: _as_float(M, seen, np.float16),
        "longdouble": lambda: _as_float(M, seen, np.longdouble),
        "big-endian": lambda: np.where(seen, M, np.nan).astype(">f8"),
        "Fortran order": lambda: np.asfortranarray(np.where(seen, M, np.nan)),
        "read-only": lambda: _read_only(np.where(seen, M, np.nan)),
        "strided": lambda: np.repeat(np.repeat(np.where(seen, M, np.nan), 2, axis=0), 3, axis=1)[::2, ::3],
        "reversed": lambda: np.where(seen, M, np.nan)[::-1, ::-1],
        "masked": lambda: np.ma.masked_array(M, ~seen),
        "masked integers": lambda: np.ma.masked_array(_as_int(M), ~seen),
        "int64": lambda: _as_int(M),
        "int8": lambda: np.clip(_as_int(M), -128, 127).astype(np.int8),
        "bool": lambda: M > 0,
        "lists": lambda: [[x if s else None for x, s in zip(*pair)] for pair in zip(M.tolist(), seen.tolist())],
        "objects": lambda: _objects(M, seen),
        "pandas": lambda: _pandas(M, seen),
        "pandas, nullable integers": lambda: _pandas(_as_int(M), seen).astype("Int64"),
        "polars": lambda: _polars(M, seen),
        "sparse": lambda: _sparse(rng, M, seen),
        "observations": lambda: co.Observations.from_dense(np.where(seen, M, np.nan)),
        "weights": lambda: co.Observations.from_dense(np.where(seen, M, np.nan), weights=_weights(rng, M.shape)),
        "triplets": lambda: _triplets(rng, M, seen),
    }
    chances = np.array([30 if name == "float64" else 8 if name in ("float32", "weights") else 3 for name in forms])
    name = str(rng.choice(list(forms), p=chances / chances.sum()))
    return name, forms[name]()


def _as_float(M, seen, dtype) -> np.ndarray:
    limits = np.finfo(dtype)
    return np.where(seen, np.clip(M, limits.min, limits.max), np.nan).astype(dtype)


def _as_int(M) -> np.ndarray:
    return np.clip(M, -(2.0**62), 2.0**62).round().astype(np.int64)


def _read_only(M) -> np.ndarray:
    M.flags.writeable = False
    return M


def _objects(M, seen) -> np.ndarray:
    result = np.where(seen, M, None).astype(object)
    at = tuple(np.argwhere(seen)[0]) if seen.any() else None
    if at is not None:
        result[at] = Decimal(repr(float(M[at])))
    return result


def _pandas(M, seen):
    import pandas as pd

    frame = pd.DataFrame(M, index=[f"r{i}" for i in range(M.shape[0])], columns=[f"c{j}" for j in range(M.shape[1])])
    return frame.astype("Int64").where(seen) if M.dtype.kind == "i" else frame.where(seen)


def _polars(M, seen):
    import polars as pl

    columns = [[x if s else None for x, s in zip(*one)] for one in zip(M.T.tolist(), seen.T.tolist())]
    return pl.DataFrame({f"c{j}": pl.Series(one, dtype=pl.Float64) for j, one in enumerate(columns)})


def _sparse(rng, M, seen):
    rows, columns = np.nonzero(seen)
    S = sparse.coo_array((M[seen], (rows, columns)), shape=M.shape)
    return S.asformat(str(rng.choice(["coo", "csr", "csc"])))


def _weights(rng, shape) -> np.ndarray:
    kind = rng.integers(3)
    if kind == 0:
        return rng.integers(1, 5, shape).astype(float)
    return 10.0 ** rng.uniform(-1, 1, shape) if kind == 1 else 10.0 ** rng.uniform(-12, 12, shape)


def _triplets(rng, M, seen) -> co.Observations:
    rows, columns = np.nonzero(seen)
    twice = rng.random(rows.size) < 0.2
    rows, columns = np.append(rows, rows[twice]), np.append(columns, columns[twice])
    return co.Observations.from_triplets(rows, columns, M[rows, columns], M.shape, duplicates="mean")
