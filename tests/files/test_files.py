"""Reading: every kind of file gives the observations that are in it, with names, or a clear refusal."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import zarr
from scipy import sparse

import colonnade as co

from bad_files import bad_files
from problems import ODD_NAMES, hide

ODD = [*ODD_NAMES, 'say "x"', "two\nlines", "", "ü漢"]


@pytest.fixture
def known(rng):
    return hide(rng, np.rint(rng.standard_normal((6, 10)) * 100) / 8, 3, 2)[0]


@pytest.fixture
def names():
    return [f"r{i}" for i in range(5)] + ["x" * 1_000_000], ODD


def assert_same(o, known, row_names=None, column_names=None):
    expected = co.Observations.from_dense(known)
    assert o.shape == expected.shape
    for field in ("indptr", "rows", "values", "full_columns"):
        np.testing.assert_array_equal(getattr(o, field), getattr(expected, field))
    assert o.values.dtype == expected.values.dtype
    for found, told in ((o.row_names, row_names), (o.column_names, column_names)):
        assert (None if found is None else list(found)) == (None if told is None else list(told))


def test_npy(known, tmp_path):
    for dtype in (np.float64, np.float32, ">f8"):
        np.save(tmp_path / "m.npy", np.asfortranarray(known.astype(dtype)))
        assert_same(co.read(tmp_path / "m.npy"), known.astype(np.dtype(dtype).newbyteorder("=")))


def test_npz_with_names_beside_the_matrix(known, tmp_path):
    rows, columns = [f"r{i}" for i in range(6)], [f"c{j}" for j in range(10)]
    np.savez_compressed(tmp_path / "m.npz", X=known.astype(np.float32), rows=rows, cols=columns, year=np.arange(10))
    assert_same(co.read(tmp_path / "m.npz"), known.astype(np.float32), rows, columns)
    np.savez(tmp_path / "two.npz", X=known, Y=2 * known, row_names=["only one"])
    assert_same(co.read(tmp_path / "two.npz", key="Y"), 2 * known)
    with pytest.raises(ValueError, match=r"holds 2 arrays .* name one by its key; it has 'X' of shape \(6, 10\)"):
        co.read(tmp_path / "two.npz")
    with pytest.raises(ValueError, match="no array 'Z'"):
        co.read(tmp_path / "two.npz", key="Z")


def test_sparse_npz_keeps_explicit_zeros(known, tmp_path):
    known[0, known[0] == known[0]] = 0.0
    i, j = np.nonzero(~np.isnan(known))
    S = sparse.coo_array((known[i, j], (i, j)), shape=known.shape)
    for kind in ("coo", "csc", "csr"):
        sparse.save_npz(tmp_path / "s.npz", S.asformat(kind))
        assert_same(co.read(tmp_path / "s.npz"), known)
    bad = S.tocsc()
    bad.indices[0] = 99
    sparse.save_npz(tmp_path / "bad.npz", bad)
    with pytest.raises(ValueError, match="not a sound sparse matrix"):
        co.read(tmp_path / "bad.npz")
    twice = sparse.coo_array(([1.0, 2.0], ([0, 0], [0, 0])), shape=(2, 2))
    sparse.save_npz(tmp_path / "twice.npz", twice)
    with pytest.raises(ValueError, match="1 entry is given twice, at"):
        co.read(tmp_path / "twice.npz")


@pytest.mark.parametrize("ending, delimiter", [(".csv", ","), (".csv", ";"), (".tsv", "\t"), (".txt", "\t")])
def test_csv_of_pandas_with_odd_names(known, names, tmp_path, ending, delimiter):
    path = tmp_path / f"t{ending}"
    frame = pd.DataFrame(known, index=names[0], columns=names[1])
    frame.to_csv(path, sep=delimiter)
    assert_same(co.read(path), known, *names)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n").replace(b"two\r\n", b"two\n"))
    assert_same(co.read(path), known, *names)
    frame.to_csv(path, sep=delimiter, index_label="sample")
    assert_same(co.read(path), known, *names)
    frame.to_csv(path, sep=delimiter, index=False)
    assert_same(co.read(path), known, None, names[1])


def test_csv_without_names_and_with_numbers_for_names(known, tmp_path):
    path = tmp_path / "t.csv"
    numbered = [str(j) for j in range(10)]
    pd.DataFrame(known).to_csv(path, header=False, index=False)
    assert_same(co.read(path), known)
    pd.DataFrame(known).to_csv(path)  # the index of pandas, numbers under an empty title
    assert_same(co.read(path), known, numbered[:6], numbered)
    pd.DataFrame(known).to_csv(path, header=False, index=False)
    with_years = "\n".join([",".join(str(2000 + j) for j in range(10)), path.read_text()])
    path.write_text(with_years)
    assert_same(co.read(path, header=True), known, None, [str(2000 + j) for j in range(10)])
    assert co.read(path).shape == (7, 10)
    pd.DataFrame(known, columns=numbered).rename_axis("id").to_csv(path)
    assert co.read(path).row_names.tolist() == numbered[:6]
    assert co.read(path, row_names=False).shape == (6, 11)
    with_text = pd.DataFrame(known, index=list("abcdef"))
    with_text.to_csv(path, header=False)
    assert_same(co.read(path), known, list("abcdef"))


@pytest.mark.parametrize("columns", [4, 6, 10])
def test_csv_of_pandas_with_its_own_numbers_for_titles(tmp_path, columns, rng):
    frame = pd.DataFrame(rng.standard_normal((8, columns)))
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert_same(co.read(tmp_path / "t.csv"), frame.to_numpy(), None, [str(j) for j in range(columns)])
    whole = pd.DataFrame([[0, 1, 2, 3], [5, 6, 7, 8]])  # may be data
    whole.to_csv(tmp_path / "t.csv", index=False, header=False)
    assert_same(co.read(tmp_path / "t.csv"), whole.to_numpy(dtype=float), None, None)


def test_csv_of_r_without_a_title_over_the_row_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"a","b"\n"x",1,NA\n"y",3,4\n')
    assert_same(co.read(path), np.array([[1, np.nan], [3, 4]]), ["x", "y"], ["a", "b"])


def test_csv_of_one_column_of_one_row_and_without_an_end(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n\n3")
    assert_same(co.read(path), np.array([[1], [np.nan], [3]]), None, ["a"])
    path.write_text("1,,3")
    assert_same(co.read(path), np.array([[1, np.nan, 3]]))
    path.write_text("a,b\r1, 2.5 \r ,1e-310\r")
    assert_same(co.read(path), np.array([[1, 2.5], [np.nan, 1e-310]]), None, ["a", "b"])


def test_csv_by_several_blocks_and_a_line_longer_than_one(known, names, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    pd.DataFrame(known, index=names[0], columns=names[1]).to_csv(path)
    for block in (1000, 2**20 + 100):
        monkeypatch.setattr("colonnade.files.tables.csv_cells._BLOCK", block)
        assert_same(co.read(path), known, *names)


def test_every_number_is_read_to_the_last_digit(rng, tmp_path):
    M = rng.standard_normal((50, 20)) * 10.0 ** rng.integers(-300, 300, (50, 20))
    (tmp_path / "t.csv").write_text("\n".join(",".join(map(repr, row)) for row in M.tolist()))
    assert_same(co.read(tmp_path / "t.csv"), M)


def test_parquet_wide(known, names, tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame(known, index=names[0], columns=names[1])
    frame.to_parquet(path)
    assert_same(co.read(path), known, *names)
    frame.astype(np.float32).to_parquet(path, index=False)
    assert_same(co.read(path), known.astype(np.float32), None, names[1])
    pd.DataFrame(known, index=np.arange(6) * 2, columns=names[1]).to_parquet(path)
    assert_same(co.read(path), known, ["0", "2", "4", "6", "8", "10"], names[1])
    pl.DataFrame({"name": names[0], **{name: known[:, j] for j, name in enumerate(ODD)}}).write_parquet(path)
    assert_same(co.read(path), known, *names)
    without = co.read(path, row_names=False)
    assert_same(without, known, None, names[1])
    assert without.origin.aside.in_words() == "'name' (text)"


def test_zarr(known, tmp_path):
    rows = [f"r{i}" for i in range(6)]
    for version in (3, 2):
        path = tmp_path / f"m{version}.zarr"
        array = zarr.create_array(
            path, shape=known.shape, dtype="f4", chunks=(3, 5), fill_value=np.nan, zarr_format=version
        )
        array[...] = known
        array.attrs["row_names"] = rows
        assert_same(co.read(path), known.astype(np.float32), rows)
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("X", shape=known.shape, dtype=known.dtype, fill_value=np.nan)[:] = known
    assert_same(co.read(tmp_path / "g.zarr"), known)
    zeros = zarr.create_array(tmp_path / "z.zarr", shape=(4, 4), dtype="f8", chunks=(2, 2), fill_value=0.0)
    zeros[:2] = 1.0
    with pytest.raises(
        ValueError, match=r"2 of 4 chunks .* would be read as 0\.0; write the array with fill_value=nan"
    ):
        co.read(tmp_path / "z.zarr")
    array = zarr.create_array(tmp_path / "nan.zarr", shape=(4, 4), dtype="f8", chunks=(2, 2), fill_value=np.nan)
    array[:, :2] = 1.0
    assert co.read(tmp_path / "nan.zarr").n_observed.tolist() == [4, 4, 0, 0]


def shuffled(known, rng):
    i, j = np.nonzero(~np.isnan(known))
    order = rng.permutation(i.size)
    return i[order], j[order], known[i, j][order]


def test_triples_in_any_order_and_several_files(known, rng, tmp_path):
    i, j, x = shuffled(known, rng)
    table = pa.table({"day": i, "value": x, "station": j, "other": ["text"] * i.size})
    fields = {"row": "day", "column": "station", "value": "value"}
    pq.write_table(table, tmp_path / "t.parquet")
    assert_same(co.read(tmp_path / "t.parquet", **fields), known)
    pa.csv.write_csv(table, tmp_path / "t.csv")
    assert_same(co.read(tmp_path / "t.csv", **fields), known)
    for ending, write in (("parquet", pq.write_table), ("csv", pa.csv.write_csv)):
        folder = tmp_path / ending
        (folder / "more").mkdir(parents=True)
        write(table.slice(0, 5), folder / f"b.{ending}")
        write(table.slice(5, 4), folder / "more" / f"a.{ending}")
        write(table.slice(9), folder / f"c.{ending}")
        (folder / f"_hidden.{ending}").write_text("nothing")
        assert_same(co.read(folder, **fields), known)
        assert_same(co.read(sorted(folder.rglob(f"[abc].{ending}")), **fields), known)
    assert_same(co.read(tmp_path / "t.csv", transpose=True, **fields), known.T)


def test_triples_with_names_and_with_numbers_that_do_not_count_from_zero(known, rng, tmp_path):
    i, j, x = shuffled(known, rng)
    order = np.argsort(ODD)
    rows = [f"{k:03d}" for k in range(6)]  # leading zeros: names, not numbers
    table = pa.table({"row": np.array(rows)[i], "column": np.array(ODD, object)[order][j], "value": x.astype("f4")})
    kept = np.array(ODD)[order].tolist()
    pq.write_table(table, tmp_path / "t.parquet")
    assert_same(co.read(tmp_path / "t.parquet"), known.astype(np.float32), rows, kept)
    scattered = np.array([7, 10, 10**15, 10**15 + 1, 10**17, 10**17 + 1])
    table = pa.table({"row": scattered[i], "column": j + 1, "value": x})
    for ending, write in (("parquet", pq.write_table), ("csv", pa.csv.write_csv)):
        write(table, tmp_path / f"n.{ending}")
        o = co.read(tmp_path / f"n.{ending}")
        assert_same(o, known, scattered.astype(str), [str(k + 1) for k in range(10)])
        with pytest.raises(IndexError, match=r"rows must lie in 0\.\.5"):
            co.read(tmp_path / f"n.{ending}", shape=(6, 11))
    small = pa.table({"row": [0, 2], "column": [1, 1], "value": [5.0, 0.0]})
    pq.write_table(small, tmp_path / "s.parquet")
    assert co.read(tmp_path / "s.parquet").shape == (2, 1)
    wide = co.read(tmp_path / "s.parquet", shape=(3, 4))
    assert wide.shape == (3, 4) and wide.values.tolist() == [5.0, 0.0] and wide.row_names is None


def test_triples_without_a_header_by_position(known, rng, tmp_path):
    i, j, x = shuffled(known, rng)
    path = tmp_path / "u.data"
    path.write_text("".join(f"{a}\t{b}\t{c!r}\t881250949\n" for a, b, c in zip(i, j, x.tolist())))
    assert_same(co.read(path, row="0", column="1", value="2"), known)
    with pytest.raises(ValueError, match="no column '7'; it has '0', '1', '2', '3'"):
        co.read(path, row="0", column="1", value="7")


@pytest.mark.parametrize(
    "content, words",
    [
        (
            "row,column,value\na,b,1\na,b,2\na,b,3\nc,d,4\nc,d,5\n",
            r"3 entries are given twice, the first at row 0 \('a'\)",
        ),
        (
            "row,column,value\n1,2,3\n-1,2,3\n",
            "1 labels of the column 'row' are negative or not whole.*the first is -1",
        ),
        ("row,column,value\n1,2,3\n1,3.7,3\n", "1 labels of the column 'column' are negative or not whole.*3.7"),
        ("row,column,value\n1,2,3\n,2,3\nnan,2,3\n", "2 cells of the column 'row' are empty"),
        ("row,column,value\n1,2,inf\n1,3,4\n", r"row 0 \('1'\), column 0 \('2'\) is inf"),
        ("row,column,value\n1,2,3\n1,3,x\n", "1 cell .* is not a number, in line 3.*, column 'value': 'x'"),
        ("row,column,value\n", "no row"),
        ("day,column,value\n1,2,3\n", None),
    ],
)
def test_bad_triples(tmp_path, content, words):
    (tmp_path / "t.csv").write_text(content)
    if words is not None:
        with pytest.raises(ValueError, match=words):
            co.read(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="no column 'user'; it has"):
        co.read(tmp_path / "t.csv", row="user", column="column", value="value")
    with pytest.raises(ValueError, match="three different columns"):
        co.read(tmp_path / "t.csv", row="row", column="row", value="value")


@pytest.mark.parametrize(
    "labels, words",
    [
        ([0, -2], "1 labels of the column 'row' are negative, the first is -2"),
        ([0.0, 3.7], "not whole; turn names into text, the first is 3.7"),
        ([0.0, np.nan], "1 cells of the column 'row' are empty"),
        ([0, None], "1 cells of the column 'row' are empty"),
        ([0.0, np.inf], "too large"),
        ([True, False], "holds bool"),
        ([[1], [2]], "holds list"),
    ],
)
def test_bad_labels_in_parquet(tmp_path, labels, words):
    pq.write_table(pa.table({"row": labels, "column": [0, 0], "value": [1.0, 2.0]}), tmp_path / "t.parquet")
    with pytest.raises((ValueError, TypeError), match=words):
        co.read(tmp_path / "t.parquet")


def test_duplicates_are_averaged_or_the_last_wins(tmp_path):
    (tmp_path / "t.csv").write_text("row,column,value\na,x,1\nb,x,5\na,x,2\n")
    assert co.read(tmp_path / "t.csv", duplicates="mean").values.tolist() == [1.5, 5.0]
    assert co.read(tmp_path / "t.csv", duplicates="last").values.tolist() == [2.0, 5.0]


@pytest.mark.parametrize(
    "content, words",
    [
        ("a,b\n1,x\n3,y\n", r"one column of numbers, 'a', beside 'b' \(text\).*If its lines are triples"),
        (
            "a,b\n1,x\n3,4\n",
            "1 cell of .* is not a number, in line 2, column 'b': 'x'. If it stands for a gap, name it.*--ignore",
        ),
        ("n,a,b\nr,1,2\ns,3,'1.5\n", r"1 cell .* line 3 \('s'\), column 'b': \"'1.5\""),
        ("a,b\n1,inf\n", "line 2, column 'b' is infinite"),
        ("a,b\n1,1e999\n", "is infinite or above 1.8e308 .1 in all.: leave it empty"),
        ("a,b\n1,2\n3\n", "line 3 of .* has 1 cell where others have 2. Correct it"),
        ("a,b\n1,2\n3,4\n" + '"5,6\n' + 40_000 * "7,8\n", "line 4 of .* does not end: close its quotation mark"),
        ("a,b\n1,2\n3,4\n" + '5,6,"7\n' + "7,8\n", "line 4 of .* has 3 cells where .* is not closed"),
        ("n,a,b\nr,1,2\n\ns,3,4\nt,1,5,7\n", "line 5 of .* has 4 cells where others have 3. Correct it"),
        ("a,b,c\n1,2\n", "3 names in its first line and 2 cells"),
        ("a,b\n", "no row"),
        ("\n\n", "only empty lines"),
        ("", "is empty"),
        ("a,b\n1,\x1b[31m\n3,4\n", r"'\\x1b\[31m'"),
    ],
)
def test_bad_text_tables(tmp_path, content, words):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(ValueError, match=words):
        co.read(tmp_path / "t.csv")


@pytest.mark.parametrize("name, content, words", [pytest.param(*case, id=case[0]) for case in bad_files()])
def test_bad_files_are_refused_before_anything_is_allocated(tmp_path, name, content, words):
    import tracemalloc

    (tmp_path / name).write_bytes(content)
    tracemalloc.start()
    with pytest.raises(ValueError, match=words) as failure:
        co.read(tmp_path / name)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    assert str(tmp_path / name) in str(failure.value) and "\n" not in str(failure.value)


def test_random_damage_is_refused_or_harmless(rng, tmp_path):
    """Cut, changed, longer or shorter: a clear refusal or some table, nothing else."""
    known = hide(rng, rng.standard_normal((6, 10)), 3, 2)[0]
    i, j, x = shuffled(known, rng)
    frame = pd.DataFrame(known, index=list("abcdef"), columns=[f"c{k}" for k in range(10)])
    np.save(tmp_path / "m.npy", known)
    np.savez_compressed(tmp_path / "m.npz", X=known)
    sparse.save_npz(tmp_path / "s.npz", sparse.csc_array((x, (i, j)), shape=known.shape))
    frame.to_csv(tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    pd.DataFrame({"row": i, "column": j, "value": x}).to_parquet(tmp_path / "l.parquet")
    zarr.create_array(tmp_path / "m.zarr", data=known, fill_value=np.nan)
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        whole, target = path.read_bytes(), tmp_path / path.relative_to(tmp_path).parts[0]
        for k in range(12):
            at, size = rng.integers(len(whole)), rng.integers(1, 20)
            put = rng.bytes(size if k % 4 else 0)
            path.write_bytes(whole[:at] + put + (whole[at + (0, size, 1, 0)[k % 4] :] if k % 4 else b""))
            try:
                assert isinstance(co.read(target), co.Observations)
            except (ValueError, TypeError, MemoryError) as failure:
                assert str(failure) and "\n" not in str(failure)
        path.write_bytes(whole)


def test_names_with_dots_and_names_given_twice_in_parquet(tmp_path):
    pq.write_table(pa.table({"a.row": [0, 1], "a.column": [0, 0], "v.x": [1.0, 2.0]}), tmp_path / "t.parquet")
    o = co.read(tmp_path / "t.parquet", row="a.row", column="a.column", value="v.x")
    assert o.values.tolist() == [1.0, 2.0]
    twice = pa.table([[1.0, 2.0], [3.0, None]], names=["x", "x"])
    pq.write_table(twice, tmp_path / "w.parquet")
    assert_same(co.read(tmp_path / "w.parquet"), np.array([[1, 3], [2, np.nan]]), None, ["x", "x"])


def test_a_compressed_bomb_and_a_header_beyond_memory_are_refused(tmp_path, monkeypatch):
    """The sizes that files declare are honest here; the machine is told to be small."""
    np.savez_compressed(tmp_path / "b.npz", X=np.zeros((1000, 2000)))
    assert os.path.getsize(tmp_path / "b.npz") < 50_000
    pq.write_table(pa.table({name: np.zeros(2_000_000) for name in "abc"}), tmp_path / "b.parquet")
    zarr.create_array(tmp_path / "b.zarr", shape=(10**7, 10**7), dtype="f8", chunks=(10**4, 10**4), fill_value=np.nan)
    with pytest.raises(MemoryError, match=r"800\.0 TB"):
        co.read(tmp_path / "b.zarr")
    monkeypatch.setattr("colonnade.files.tables.kinds.memory_size", lambda: 10e6)
    for name in ("b.npz", "b.parquet"):
        with pytest.raises(MemoryError, match=r"declares .* MB, and this machine has 10\.0 MB"):
            co.read(tmp_path / name)
    with pytest.raises(MemoryError, match="declares"):
        co.read(tmp_path / "b.parquet", row="a", column="b", value="c")


def test_other_kinds_of_numbers_are_named(tmp_path):
    np.save(tmp_path / "c.npy", np.ones((2, 2), complex))
    with pytest.raises(TypeError, match="complex128"):
        co.read(tmp_path / "c.npy")
    np.save(tmp_path / "s.npy", np.array([["1.5", "2"]]))
    with pytest.raises(TypeError, match="columns 0, 1 hold str"):
        co.read(tmp_path / "s.npy")
    np.save(tmp_path / "d.npy", np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match=r"two dimensions.*\(2, 2, 2\)"):
        co.read(tmp_path / "d.npy")
    np.save(tmp_path / "e.npy", np.ones((0, 2)))
    with pytest.raises(ValueError, match=r"none of them 0; got shape \(0, 2\)"):
        co.read(tmp_path / "e.npy")
    pq.write_table(pa.table({"a": [1.0], "b": [None]}), tmp_path / "n.parquet")
    assert co.read(tmp_path / "n.parquet").n_observed.tolist() == [1, 0]


def test_places_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        co.read(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match="holds no csv or Parquet file"):
        co.read(tmp_path)
    with pytest.raises(ValueError, match="not an ordinary file"):
        co.read("/dev/null")
    with pytest.raises(ValueError, match="no file is named"):
        co.read([])
    with pytest.raises(TypeError, match=r"'x.csv' is a name, not data: read a file with colonnade.read"):
        co.complete("x.csv")
    co.complete(np.outer([1.0, 2], [1, 2])).save(tmp_path / "result")
    with pytest.raises(ValueError, match="a result of colonnade, not data"):
        co.read(tmp_path / "result")


@pytest.mark.slow
def test_reading_does_not_depend_on_the_locale(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1.5,\n2.25,1e3\n")
    code = (
        "import locale, sys, colonnade as co\n"
        "try: locale.setlocale(locale.LC_ALL, sys.argv[2])\n"
        "except locale.Error: pass\n"
        "print(co.read(sys.argv[1]).values.tolist())"
    )
    for place in ("C", "de_DE.UTF-8", "tr_TR.UTF-8"):
        command = [sys.executable, "-c", code, str(tmp_path / "t.csv"), place]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": place})
        assert done.stdout.strip() == "[1.5, 2.25, 1000.0]", done.stderr


def test_without_a_library_the_message_names_its_extra(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    zarr.create_array(tmp_path / "m.zarr", data=np.ones((2, 2)), fill_value=np.nan)
    for library, name, extra in (("pyarrow", "t.csv", "cli"), ("zarr", "m.zarr", "zarr")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ModuleNotFoundError, match=rf"needs {library}: pip install 'colonnade\[{extra}\]'"):
            co.read(tmp_path / name)


@pytest.mark.parametrize(
    "corner, titles", [("country", range(1990, 1998)), ("sample", np.arange(400.5, 408.5)), ("id", range(9, 17))]
)
def test_titles_that_are_numbers(tmp_path, rng, corner, titles):
    values = rng.standard_normal((5, 8))
    lines = [f"{corner}," + ",".join(map(str, titles))]
    lines += [f"thing {i}," + ",".join(map(str, row)) for i, row in enumerate(values)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    o = co.files.read(path)
    assert o.shape == (5, 8) and o.column_names.tolist() == [str(title) for title in titles]
    np.testing.assert_array_equal(o.full_matrix(), values)
    path.write_text("\n".join(lines[1:]))  # without them the first line is data as the others
    assert co.files.read(path).shape == (5, 8)


def test_whole_numbers_that_count_up_name_the_rows(tmp_path, rng):
    values = rng.standard_normal((9, 3))
    path = tmp_path / "t.csv"
    path.write_text("patient,a,b,c\n" + "\n".join(f"{100 + i},{a},{b},{c}" for i, (a, b, c) in enumerate(values)))
    o = co.files.read(path)
    assert o.shape == (9, 3) and o.row_names.tolist() == [str(100 + i) for i in range(9)]
    assert co.files.read(path, row_names=False).shape == (9, 4)


def test_triples_with_an_index_of_pandas(tmp_path):
    frame = pd.DataFrame({"row": [0, 1, 0, 1], "column": [0, 0, 1, 1], "value": [1.0, 2.0, 3.0, 4.0]})
    frame.iloc[[2, 0, 3, 1]].to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(co.files.read(tmp_path / "t.parquet").full_matrix(), [[1, 3], [2, 4]])


def test_text_where_numbers_belong_may_be_triples(tmp_path):
    (tmp_path / "t.csv").write_text("station,day,flow\na,monday,1\nb,monday,2\na,tuesday,3\n")
    with pytest.raises(
        ValueError,
        match=r"one column of numbers, 'flow', beside 'station'.*'day'.*If its lines are triples",
    ):
        co.files.read(tmp_path / "t.csv")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["npy", "parquet", "csv"])
def test_what_stands_for_nothing_is_told(tmp_path, rng, kind, dtype):
    """A number in every kind of file, also one that single precision cannot hold; the column that had it is partial."""
    M = rng.standard_normal((8, 5)).astype(dtype)
    holed = M.copy()
    holed[[1, 3, 3], [2, 2, 4]] = -999.9
    path = tmp_path / f"t.{kind}"
    if kind == "npy":
        np.save(path, holed)
    elif kind == "parquet":
        pq.write_table(pa.table({f"c{j}": holed[:, j] for j in range(5)}), path)
    else:
        path.write_text("\n".join(",".join(map(str, line)) for line in holed))
    known = co.read(path, missing=-999.9)
    expected = np.where(holed == dtype(-999.9), np.nan, M)
    np.testing.assert_allclose(known.to_dense(), expected, rtol=1e-6)
    assert known.full_columns.tolist() == [0, 1, 3] and co.read(path).full_columns.size == 5


def test_words_that_stand_for_nothing(tmp_path):
    """In the cells, not in the names; they do not make a name of what is in the first line."""
    path = tmp_path / "t.csv"
    path.write_text("?,1.5,2\n3,?,4\n5,-1,n.d.\n")
    known = co.read(path, missing=["?", "n.d.", -1])
    np.testing.assert_equal(known.to_dense(), [[np.nan, 1.5, 2], [3, np.nan, 4], [5, np.nan, np.nan]])
    path.write_text("id,a,b\n?,1,2\nx,?,4\n")
    known = co.read(path, missing="?")
    np.testing.assert_equal(known.to_dense(), [[1, 2], [np.nan, 4]])
    assert known.row_names.tolist() == ["?", "x"]
    with pytest.raises(ValueError, match=r"2 cells of .*: '\?'. If it stands for a gap, name it with --missing"):
        path.write_text("a,b\n1,?\n2,?\n3,4\n")
        co.read(path)
    for bad in (True, [None], [[1]]):
        with pytest.raises(TypeError, match="missing must be words or numbers such as -999"):
            co.read(path, missing=bad)


@pytest.mark.parametrize("name, content", [("t.xls", b"PK\x03\x04 sheet"), ("t.json", b"[[1, 2], [3, null]]")])
def test_other_kinds_are_told_from_ours(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} is of a kind that is not read; save it as csv or Parquet"):
        co.read(tmp_path / name)


@pytest.mark.parametrize(("share", "fits"), [(0.9, False), (1.1, True)])
def test_triples_need_a_hundred_bytes_each(tmp_path, monkeypatch, share, fits):
    from colonnade.files.tables.triples import BYTES_IN_MEMORY

    n = 5_000
    table = pa.table({"row": np.arange(n) % 50, "column": np.arange(n) // 50, "value": np.ones(n)})
    pq.write_table(table, tmp_path / "t.parquet")
    monkeypatch.setattr("colonnade.files.tables.kinds.memory_size", lambda: share * BYTES_IN_MEMORY * n)
    if fits:
        assert co.read(tmp_path / "t.parquet").values.size == n
    else:
        with pytest.raises(MemoryError, match=r"t\.parquet declares"):
            co.read(tmp_path / "t.parquet")


def test_numbers_are_names_if_asked_for(tmp_path):
    pq.write_table(
        pa.table({"year": [2001, 2002, 2003], "a": [1.0, 2.0, 4.0], "b": [2.0, None, 8.0]}), tmp_path / "t.parquet"
    )
    named, plain = (co.read(tmp_path / "t.parquet", row_names=names) for names in (True, "auto"))
    assert list(named.row_names) == ["2001", "2002", "2003"] and named.shape == (3, 2)
    assert plain.row_names is None and plain.shape == (3, 3)


@pytest.mark.parametrize("name", ["header", "row_names", "duplicates", "transpose"])
def test_settings_of_reading_are_checked(tmp_path, name):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(ValueError, match=f"{name} must be one of .*; got 'perhaps'"):
        co.read(tmp_path / "t.csv", **{name: "perhaps"})


def test_words_of_a_library_become_one_short_line():
    from colonnade.files.tables.kinds import one_line

    assert one_line(OSError("two\n  lines")) == "two lines"
    assert one_line(OSError("x" * 200)) == "x" * 200
    assert one_line(OSError("x" * 201)) == "x" * 197 + "..."


@pytest.mark.parametrize("shared", [False, True])
def test_the_names_of_a_wide_parquet_file_are_listed_once(tmp_path, shared):
    """Arrow makes the list of names anew each time: to ask for it per column took n ** 2 steps."""
    from colonnade.files.tables.parquet import _tables

    titles = ["name", *(f"c{j}" for j in range(50)), "name" if shared else "last"]
    columns = [pa.array(["a", "b"]), *(pa.array([1.0, 2.0]) for _ in titles[1:])]
    pq.write_table(pa.Table.from_arrays(columns, names=titles), tmp_path / "t.parquet")
    asked = []

    class Schema:
        @property
        def names(self):
            asked.append(1)
            return list(titles)

        def __len__(self):
            return len(titles)

    names, aside, values = _tables(tmp_path / "t.parquet", Schema(), [0], [], None)
    assert aside is None and names.column_names == ["name"] and values.column_names == titles[1:] and len(asked) == 1


def test_places_in_messages_are_lines_and_columns_from_1(tmp_path):
    """Empty lines and cells of several lines count; columns without a title have both numbers."""
    path = tmp_path / "t.csv"
    path.write_text('n,a,b\n\n"x\ny",1,2\n\nz,3,oops\n')
    with pytest.raises(ValueError, match=r"line 6 \('z'\), column 'b': 'oops'"):
        co.read(path)
    path.write_text("1,2,3\n4,5,6\n7,8,9\n1,2,oops\n")
    with pytest.raises(ValueError, match=r"column '2' .* 'oops' and '3' in line 1|line 4, column 3 \(called '2'"):
        co.read(path)


@pytest.mark.parametrize("path", [None, 3, 1.5])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(TypeError, match=f"path must be the path of a file, or a list of paths; got {path}"):
        co.read(path)
