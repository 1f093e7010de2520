"""What must be survived at each of the three doors: `complete`, and the two imputers with old and with new samples.

The numbers are those of the list of bad inputs. One table serves all doors: some of its rows are complete, and some of
its columns, so that each fills it without a transpose.
"""

import hashlib
import pickle
from datetime import date
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import colonnade as co
from colonnade import CompleteColumnsImputer, CompleteRowsImputer, Status

from problems import low_rank

PAPER = {"rank": 2, "center": False, "shrinkage": 0, "refine": 0}
M, N, N_ROWS, N_COLUMNS = 24, 18, 8, 6  # the last two: how many are complete


def table(seed=0, noise=0.0):
    """A table of rank 2 and what is known of it."""
    rng = np.random.default_rng(seed)
    L, R = low_rank(rng, M, N, 2)
    X = L @ R + noise * rng.standard_normal((M, N))
    gaps = rng.random((M, N)) < 0.4
    gaps[:N_ROWS], gaps[:, :N_COLUMNS] = False, False
    gaps[N_ROWS, N_COLUMNS] = gaps[-1, -1] = True
    return X, np.where(gaps, np.nan, X)


def whole_table():
    """The same with whole numbers, so that every kind of number can hold it."""
    X, known = table()
    return np.where(np.isnan(known), np.nan, np.rint(4 * X))


def by_complete(data, trained=None, **settings):
    return co.complete(data, **settings).to_dense()


def by_rows(data, trained=None, **settings):
    return CompleteRowsImputer(**settings).fit_transform(data)


def by_columns(data, trained=None, **settings):
    return CompleteColumnsImputer(**settings).fit_transform(data)


def new_by_rows(data, trained=None, **settings):
    return CompleteRowsImputer(**settings).fit(table()[1] if trained is None else trained).transform(data)


def new_by_columns(data, trained=None, **settings):
    return CompleteColumnsImputer(**settings).fit(table()[1] if trained is None else trained).transform(data)


DOORS = pytest.mark.parametrize("fill", [by_complete, by_rows, by_columns, new_by_rows, new_by_columns])
LEARNING = pytest.mark.parametrize("fill", [by_complete, by_rows, by_columns])
IMPUTERS = pytest.mark.parametrize("fill", [by_rows, by_columns, new_by_rows, new_by_columns])


@DOORS
def test_the_table_is_filled_at_every_door(fill, seed):
    X, known = table(seed)
    assert np.abs(fill(known, known) - X).max() <= 1e-11 * np.abs(X).max()


# 2: nothing is complete


@pytest.mark.parametrize(
    "fill, row, column, words",
    [
        (by_columns, 5, None, r"no column is known in all 24 rows.*fullest are column 0 with 23.*CompleteRowsImputer"),
        (by_rows, None, 5, r"no row is known in all 18 columns.*fullest are row 0 with 17.*CompleteColumnsImputer"),
        (by_columns, 5, 5, r"no column .*use LowRankImputer.*measure some columns in full, or drop the rows"),
        (by_rows, 5, 5, r"no row .*use LowRankImputer.*measure some rows in full, or drop the columns"),
    ],
)
def test_2_nothing_is_complete(fill, row, column, words):
    known = table()[1]
    if row is not None:
        known[row] = np.nan
    if column is not None:
        known[:, column] = np.nan
    with pytest.raises(ValueError, match=words):
        fill(known)


@pytest.mark.parametrize("row, column", [(5, None), (None, 5), (5, 5)])
def test_2_complete_fills_what_it_can_where_nothing_is_complete(row, column):
    """An empty row or column is left open; all else is recovered exactly."""
    X, known = table()
    open_places = np.zeros(X.shape, bool)
    if row is not None:
        known[row], open_places[row] = np.nan, True
    if column is not None:
        known[:, column], open_places[:, column] = np.nan, True
    known[0, N_COLUMNS:], known[N_ROWS + 2, 0] = np.nan, np.nan
    filled = by_complete(known)
    assert np.abs(filled - X)[~open_places].max() <= 1e-9 * np.abs(X).max()


def test_2_the_settings_of_the_paper_still_need_a_full_column():
    known = table()[1]
    known[5] = np.nan
    with pytest.raises(ValueError, match=r"no column is known in all 24 rows.*Leave out center.*transpose the data"):
        by_complete(known, **PAPER)


# 4: infinite entries


@DOORS
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("row, column", [(0, 0), (20, 1), (2, 15)])
def test_4_infinite_entries(fill, bad, row, column):
    known = table()[1]
    known[row, column] = bad
    with pytest.raises(ValueError, match=rf"row {row}, column {column} is {bad} \(1 infinite in all\); use NaN"):
        fill(known)
    known[23, 0] = -np.inf
    with pytest.raises(ValueError, match=r"\(2 infinite in all\)"):
        fill(known.tolist())


@LEARNING
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_4_infinite_entries_of_frames_are_named(fill, library):
    known = table()[1]
    known[3, 4] = np.inf
    frame = library({f"c{j}": known[:, j] for j in range(N)})
    with pytest.raises(ValueError, match=r"row 3, column 4 \('c4'\) is inf \(1 infinite in all\)"):
        fill(frame)


# 5: what the data do not determine

UNDETERMINED = {
    "nothing known": (0, Status.NO_OBSERVATION, Status.PRIOR_ONLY),
    "fewer than the rank": (1, Status.TOO_FEW, Status.PRIOR),
    "entries that do not determine it": (2, Status.UNDETERMINED, Status.SOLVED),
}


def undetermined(k, by_row):
    """A table whose last column (or row) has k known entries, at places where all others are proportional."""
    X, known = table()
    X[1] = 2 * X[0]
    X[:, 1] = 2 * X[:, 0]
    known = np.where(np.isnan(known), np.nan, X)
    if by_row:
        known[-1] = np.nan
        known[-1, :k] = X[-1, :k]
    else:
        known[:, -1] = np.nan
        known[:k, -1] = X[:k, -1]
    return X, known


@DOORS
@pytest.mark.parametrize("k, status, with_prior", UNDETERMINED.values(), ids=UNDETERMINED)
def test_5_what_is_not_determined_stays_open(fill, k, status, with_prior):
    by_row = fill in (by_rows, new_by_rows)
    X, known = undetermined(k, by_row)
    filled = fill(known, known, **PAPER)
    open_ = np.zeros(known.shape, bool)
    open_[(-1, slice(k, None)) if by_row else (slice(k, None), -1)] = True
    assert np.isnan(filled[open_]).all()
    assert np.abs((filled - X)[~open_]).max() <= 1e-10 * np.abs(X).max()
    with_a_prior = fill(known, known, **{**PAPER, "shrinkage": 0.1})
    assert np.isfinite(with_a_prior).all()
    np.testing.assert_array_equal(with_a_prior[~np.isnan(known)], known[~np.isnan(known)])


@LEARNING
@pytest.mark.parametrize("k, status, with_prior", UNDETERMINED.values(), ids=UNDETERMINED)
def test_5_its_status_says_so(fill, k, status, with_prior):
    _, known = undetermined(k, fill is by_rows)
    for settings, expected in (({}, status), ({"shrinkage": 0.1}, with_prior)):
        settings = {**PAPER, **settings}
        if fill is by_complete:
            found = co.complete(known, **settings).status[-1]
        else:
            imputer = CompleteRowsImputer if fill is by_rows else CompleteColumnsImputer
            found = imputer(**settings).fit(known).status_[-1]
        assert Status(found) == expected


# 8: extreme and mixed scales. Every warning is an error here, so that nothing overflows in silence either.


@DOORS
@pytest.mark.parametrize("settings", [{}, PAPER], ids=["auto", "paper"])
@pytest.mark.parametrize("scale", [1e307, 1e160, 1e-160, 1e-300])
def test_8_extreme_scales(fill, scale, settings):
    X, known = table()
    unit = scale / np.abs(X).max()
    filled = fill(known * unit, known * unit, **settings)
    assert not np.isinf(filled).any()
    seen = ~np.isnan(known)
    np.testing.assert_array_equal(filled[seen], (known * unit)[seen])
    np.testing.assert_allclose(filled / scale, X / np.abs(X).max(), atol=1e-9)


@DOORS
@pytest.mark.parametrize("settings", [{}, PAPER], ids=["auto", "paper"])
def test_8_the_largest_and_the_smallest_numbers(fill, settings):
    for size in (np.finfo(float).max, 5e-324):
        known = table()[1]
        known = np.sign(known) * np.where(np.abs(known) > 1, size, size / 2)
        filled = fill(known, known, **settings)
        seen = ~np.isnan(known)
        assert not np.isinf(filled).any()
        np.testing.assert_array_equal(filled[seen], known[seen])


@DOORS
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("digits", [6, 150, 300])
def test_8_mixed_scales(fill, digits, noise, seed):
    """Units of the things to be filled: recovered while they fit into one number, a number or an open place beyond."""
    X, known = table(seed, noise)
    rng = np.random.default_rng(seed)
    by_row = fill in (by_rows, new_by_rows)
    units = 10.0 ** rng.integers(-digits, digits + 1, (M, 1) if by_row else (1, N))
    filled = fill(known * units, known * units, **({} if noise else PAPER))
    assert not np.isinf(filled).any()
    seen = ~np.isnan(known)
    np.testing.assert_array_equal(filled[seen], (known * units)[seen])
    if digits == 6 and not noise:
        assert np.abs(filled / units - X).max() <= 1e-8 * np.abs(X).max()


@IMPUTERS
def test_8_wild_new_samples(fill):
    """Learned from ordinary samples, asked about others."""
    _, known = table(noise=0.1)
    for scale in (1e307, 1e-307):
        new = np.sign(known) * scale
        assert not np.isinf(fill(new, known)).any()


# 9: other clothes for the same numbers


def clothes():
    known = whole_table()
    read_only = known.copy()
    read_only.flags.writeable = False
    return {
        "float16": known.astype(np.float16),
        "float32": known.astype(np.float32),
        "long double": known.astype(np.longdouble),
        "big-endian": known.astype(">f8"),
        "Fortran order": np.asfortranarray(known),
        "strided": np.repeat(np.repeat(known, 2, axis=0), 3, axis=1)[::2, ::3],
        "backwards": known[::-1, ::-1].copy()[::-1, ::-1],
        "read-only": read_only,
        "lists": known.tolist(),
        "objects": known.astype(object),
    }


def digest(data):
    return hashlib.sha256(pickle.dumps(data)).hexdigest()


@DOORS
@pytest.mark.parametrize("kind", clothes())
def test_9_kinds_of_arrays(fill, kind):
    data, known = clothes()[kind], whole_table()
    before = digest(data)
    tolerance = 1e-3 if kind in ("float16", "float32") else 1e-10
    filled = fill(data, known, **PAPER)
    assert filled.dtype == (np.float32 if kind == "float32" else np.float64) or kind == "float16"
    np.testing.assert_allclose(filled, fill(known, known, **PAPER), atol=tolerance * np.nanmax(np.abs(known)))
    assert digest(data) == before


@DOORS
@pytest.mark.parametrize(
    "dtype", [np.int8, bool, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (np.uint16, np.int64, ">i4"))]
)
def test_9_whole_numbers_and_booleans(fill, dtype):
    data = np.random.default_rng(0).integers(0, 2, (M, N)).astype(dtype)
    before = digest(data)
    filled = fill(data)
    assert filled.dtype == np.float64
    np.testing.assert_array_equal(filled, data)
    masked = np.ma.array(data, mask=np.isnan(table()[1]))
    np.testing.assert_array_equal(fill(masked)[~masked.mask], data[~masked.mask])
    assert digest(data) == before


@DOORS
def test_9_memory_maps(fill, tmp_path):
    known = table(noise=0.3)[1]
    np.save(tmp_path / "known.npy", known)
    before = (tmp_path / "known.npy").read_bytes()
    mapped = np.load(tmp_path / "known.npy", mmap_mode="r")
    np.testing.assert_array_equal(fill(mapped, mapped), fill(known, known))
    assert (tmp_path / "known.npy").read_bytes() == before


@cache
def filled_eighths(fill):
    known = whole_table() / 8
    return fill(known, known)


def decimals(values):
    return [None if np.isnan(x) else Decimal(repr(float(x))) for x in values]


@LEARNING
@pytest.mark.parametrize(
    "make", ["objects", "pandas", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("polars", "pyarrow"))]
)
def test_9_decimals_of_databases_are_numbers(fill, make):
    known = whole_table() / 8  # which decimals hold exactly
    columns = {f"c{k}": decimals(known[:, k]) for k in range(known.shape[1])}
    data = {
        "objects": lambda: np.array(list(columns.values()), dtype=object).T,
        "pandas": lambda: pd.DataFrame(columns),
        "polars": lambda: pl.DataFrame(columns),
        "pyarrow": lambda: pa.table(columns),
    }[make]()
    np.testing.assert_array_equal(np.asarray(fill(data, known)), filled_eighths(fill))


# 10: no numbers


def with_(column, kind=object):
    data = table()[1].astype(kind)
    data[2, 7] = column
    return data


NO_NUMBERS = {
    "complex": (table()[1].astype(complex), r"[Cc]omplex"),
    "a string": (with_("1.5"), r"'1.5' is not a number; column 7 holds str \(in row 2 of column 7: '1.5'\): convert"),
    "strings": (table()[1].astype(str), r"columns 0, 1, 2, 3, 4, \.\.\. hold str"),
    "a string in a list": (with_("1.5").tolist(), r"column 7 holds str"),
    "an empty string": (with_(""), r"column 7 holds str"),
    "a complex object": (with_(1j), r"column 7 holds complex"),
    "a date": (with_(date(2020, 1, 1)), r"column 7 holds date"),
    "a table in a table": (with_([1.0]), r"column 7 holds list"),
    "datetime64": (np.full((M, N), np.datetime64("2020-01-01")), r"columns 0, 1, 2, 3, 4, \.\.\. hold datetime64"),
    "timedelta64": (np.full((M, N), np.timedelta64(1, "D")), r"hold timedelta64"),
    "a number too large": (with_(10**400), r"too large for floating point: rescale"),
    "a long double too large": (table()[1] * np.longdouble("1e400"), r"row 0, column 0 is -?inf .*infinite in all"),
}


@DOORS
@pytest.mark.parametrize("data, words", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_10_other_kinds_are_refused(fill, data, words):
    with pytest.raises((TypeError, ValueError), match=words):
        fill(data)


COLUMN = {
    "strings": (["1.5", "2"], "'b'"),
    "dates": ([date(2020, 1, 1), date(2020, 1, 2)], "'b'"),
    "lists": ([[1.0], [2.0]], "'b'"),
}


@LEARNING
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("column, name", COLUMN.values(), ids=COLUMN)
def test_10_columns_of_frames_are_named(fill, library, column, name):
    """The imputers refuse them; `complete` sets them aside."""
    frame = library({"a": [1.0, 2.0], "b": column})
    if fill is by_complete:
        assert co.complete(frame).choices["set aside"].startswith(name)
        return
    with pytest.raises(TypeError, match=rf"1 of 2 columns are not numeric: {name} .*convert or drop them"):
        fill(frame)


@LEARNING
def test_10_a_lazy_frame_is_refused(fill):
    with pytest.raises(TypeError, match=r"lazy frame holds no data yet: call \.collect\(\)"):
        fill(pl.LazyFrame({"a": [1.0]}))


# 11: missing, never the number that lies underneath


def missing():
    known = table(noise=0.3)[1]
    mask = np.isnan(known)
    columns = {f"c{j}": [None if np.isnan(x) else float(x) for x in known[:, j]] for j in range(N)}
    frame = pd.DataFrame(columns)
    return {
        "masked, 0 beneath": np.ma.array(np.where(mask, 0.0, known), mask=mask),
        "masked, infinite beneath": np.ma.array(np.where(mask, np.inf, known), mask=mask, fill_value=-1e9),
        "masked, NaN beneath": np.ma.array(known, mask=mask),
        "masked in part": np.ma.array(known, mask=mask & (np.arange(N) % 2 == 0)),
        "masked objects": np.ma.array(np.where(mask, "?", known.astype(object)), mask=mask),
        "a list of masked rows": list(np.ma.array(np.where(mask, 7.0, known), mask=mask)),
        "None": np.where(mask, None, known),
        "None in lists": np.where(mask, None, known).tolist(),
        "NA": np.where(mask, pd.NA, known),
        "pandas NaN": frame,
        "pandas NA": frame.convert_dtypes(),
        "pandas of Arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "pandas objects with None": pd.DataFrame(np.where(mask, None, known), columns=list(columns)),
        "pandas objects with NA": pd.DataFrame(np.where(mask, pd.NA, known), columns=list(columns)),
        "polars null": pl.DataFrame(columns),
        "polars null and NaN": pl.DataFrame({**columns, "c17": known[:, 17]}),
        "Arrow table": pa.table(columns),
        "Arrow chunks": pa.concat_tables([pa.table(columns).slice(0, 5), pa.table(columns).slice(5)]),
        "Arrow record batch": pa.RecordBatch.from_pydict(columns),
    }


@DOORS
@pytest.mark.parametrize("kind", missing())
def test_11_missing_is_missing(fill, kind):
    known = table(noise=0.3)[1]
    data = missing()[kind]
    trained = data if hasattr(data, "columns") else known  # names that were learned are asked for again
    before = digest(data)
    np.testing.assert_allclose(fill(data, trained, **PAPER), fill(known, known, **PAPER), rtol=1e-12, atol=1e-12)
    assert digest(data) == before


# 12: sparse data


def stored():
    """Entries as a sparse matrix whose first stored entry is a zero."""
    X, known = table()
    X[0] = 0
    i, j = np.nonzero(~np.isnan(known))
    return X, sparse.coo_array((X[i, j], (i, j)), shape=X.shape)


def wild(index):
    S = stored()[1].tocsc()
    S.indices[3] = index
    return S


def twice():
    X, S = stored()
    row, column = np.append(S.coords[0], [4, 5]), np.append(S.coords[1], [2, 2])
    return sparse.coo_array((np.append(S.data, [X[4, 2], X[5, 2]]), (row, column)), shape=X.shape)


@pytest.mark.parametrize("kind", ["csc", "csr", "coo"])
def test_12_stored_zeros_are_observations(kind):
    X, S = stored()
    S = S.asformat(kind)
    before = digest(S)
    assert np.abs(by_complete(S) - X).max() <= 1e-11 * np.abs(X).max()
    assert digest(S) == before


@pytest.mark.parametrize(
    "make, error, words",
    [
        (twice, ValueError, r"2 entries are given twice, the first at row 4, column 2: choose duplicates='mean'"),
        (lambda: wild(99), IndexError, r"indices must lie in 0\.\.23; indices\[3\] is 99"),
        (lambda: wild(-2), IndexError, r"indices\[3\] is -2"),
    ],
)
def test_12_bad_sparse_data_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        by_complete(make())


@IMPUTERS
@pytest.mark.parametrize("make", [lambda: stored()[1].tocsr(), lambda: stored()[1].tocsc(), twice, lambda: wild(99)])
def test_12_the_imputers_refuse_sparse_data(fill, make):
    with pytest.raises(TypeError, match=r"sparse data are refused.*toarray.*Observations\.from_sparse"):
        fill(make())
