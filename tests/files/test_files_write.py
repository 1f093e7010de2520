"""Writing: what was read comes back filled in the same form, whole or not at all."""

import errno
import itertools
import json
import os
import shutil

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
from colonnade import files

from problems import ODD_NAMES, hide, low_rank, read_csv_exactly

ODD = [*ODD_NAMES, 'say "x"', "two\nlines", "-1.5", "'=x"]
ROWS = [f"r{i}" for i in range(11)] + ["@SUM(A1)"]


@pytest.fixture
def known(rng):
    L, R = low_rank(rng, 12, 10, 2)
    return hide(rng, L @ R, 4, 5)[0]


def completed(path, **options):
    return co.complete(co.read(path, **options), rank=2, center=False, shrinkage=0)


def there_and_back(path, out, **options):
    """Read, complete, write, read again: the completion and what stands in the file written."""
    completion = completed(path, **options)
    files.write(completion, out)
    return completion, co.read(out, **options)


def same(completion, again, row_names=None, column_names=None):
    expected = co.Observations.from_dense(completion.to_dense())
    assert again.shape == expected.shape and again.values.dtype == expected.values.dtype
    assert again.values.tobytes() == expected.values.tobytes()
    for found, told in ((again.row_names, row_names), (again.column_names, column_names)):
        assert (None if found is None else list(found)) == (None if told is None else list(told))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("transpose", [False, True])
def test_npy(known, tmp_path, dtype, transpose):
    np.save(tmp_path / "m.npy", known.astype(dtype).T if transpose else known.astype(dtype))
    completion, again = there_and_back(tmp_path / "m.npy", tmp_path / "f.npy", transpose=transpose)
    same(completion, again)
    filled = np.load(tmp_path / "f.npy")
    np.testing.assert_array_equal(filled.T if transpose else filled, completion.to_dense())
    assert filled.dtype == dtype


def test_npz_keeps_its_keys(known, tmp_path):
    np.savez(tmp_path / "m.npz", M=known.astype(np.float32), rows=ROWS, cols=ODD)
    completion, again = there_and_back(tmp_path / "m.npz", tmp_path / "f.npz")
    same(completion, again, ROWS, ODD)
    assert sorted(np.load(tmp_path / "f.npz", allow_pickle=False).files) == ["M", "cols", "rows"]


def test_sparse_npz(known, tmp_path):
    i, j = np.nonzero(~np.isnan(known))
    sparse.save_npz(tmp_path / "s.npz", sparse.coo_array((known[i, j], (i, j)), shape=known.shape))
    completion, again = there_and_back(tmp_path / "s.npz", tmp_path / "f.npz")
    same(completion, again)
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "f.npz").toarray(), completion.to_dense())


@pytest.mark.parametrize("ending, delimiter", [(".csv", ","), (".csv", ";"), (".tsv", "\t")])
def test_csv_with_odd_names_and_no_formula(known, tmp_path, ending, delimiter):
    path, out = tmp_path / f"t{ending}", tmp_path / f"f{ending}"
    pd.DataFrame(known, index=ROWS, columns=ODD).rename_axis("sample").to_csv(path, sep=delimiter)
    completion, again = there_and_back(path, out)
    same(completion, again, ROWS, [*ODD[:-1], "=x"])  # of a foreign file '=x is taken for a guarded =x
    back = read_csv_exactly(out, sep=delimiter, index_col=0)
    np.testing.assert_array_equal(back.to_numpy(), completion.to_dense())
    assert back.index.name == "sample"
    for name in [*back.index, *back.columns]:
        assert name[0] not in "=+@-" or name == "-1.5", "a spreadsheet would compute it"
    second = tmp_path / f"second{ending}"
    files.write(completed(out), second)
    assert second.read_bytes() == out.read_bytes()


def test_names_that_were_guarded_are_told_from_those_that_were(tmp_path):
    odd = ["=x", "'=x", "''=x", "'x", "+1", "+a", "-1e5", "-", "\t", "@"]
    o = co.Observations.from_dense(np.ones((1, 10)), column_names=odd)
    files.write(co.complete(o), tmp_path / "t.csv")
    assert co.read(tmp_path / "t.csv", header=True).column_names.tolist() == odd


def test_csv_without_names_stays_without(known, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "f.csv"
    pd.DataFrame(known).to_csv(path, header=False, index=False)
    same(*there_and_back(path, out))
    pd.DataFrame(known, index=ROWS).to_csv(path, header=False)
    same(*there_and_back(path, tmp_path / "g.csv"), ROWS)
    path.write_text('"a","b"\n"x",1,NA\n"y",3,4\n')
    files.write(co.complete(co.read(path)), tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == '"a","b"'


def test_parquet_of_pandas_comes_back_with_its_index(known, tmp_path):
    path, out = tmp_path / "t.parquet", tmp_path / "f.parquet"
    when = pd.date_range("2020-01-01", periods=12, tz="UTC", name="when")
    for frame in (
        pd.DataFrame(known, index=ROWS, columns=ODD),
        pd.DataFrame(known, index=when, columns=ODD),
        pd.DataFrame(known, index=pd.MultiIndex.from_product([list("ab"), range(6)]), columns=ODD),
        pd.DataFrame(known, columns=range(10)),
        pd.DataFrame(known, index=np.arange(12) * 3, columns=ODD).astype(np.float32),
    ):
        frame.to_parquet(path)
        completion, _ = there_and_back(path, out)
        expected = pd.DataFrame(completion.to_dense(), index=frame.index, columns=frame.columns)
        pd.testing.assert_frame_equal(pd.read_parquet(out), expected, check_freq=False)
        out.unlink()


def test_parquet_of_whole_numbers_with_gaps(tmp_path):
    frame = pd.DataFrame({"a": pd.array([1, 2, 3], "Int64"), "b": pd.array([2, None, 6], "Int64")}, index=list("xyz"))
    frame.to_parquet(tmp_path / "t.parquet")
    files.write(co.complete(co.read(tmp_path / "t.parquet")), tmp_path / "f.parquet")
    back = pd.read_parquet(tmp_path / "f.parquet")
    np.testing.assert_allclose(back.to_numpy(float), [[1, 2], [2, 4], [3, 6]], rtol=1e-12)
    assert back.dtypes.tolist() == [pd.Int64Dtype(), np.float64]
    assert back.index.tolist() == list("xyz")


def test_parquet_of_polars(known, tmp_path):
    frame = pl.DataFrame({"name": ROWS, **{name: known[:, j] for j, name in enumerate(ODD)}}, strict=False)
    frame.write_parquet(tmp_path / "t.parquet")
    completion, again = there_and_back(tmp_path / "t.parquet", tmp_path / "f.parquet")
    same(completion, again, ROWS, ODD)
    assert pl.read_parquet(tmp_path / "f.parquet").columns == frame.columns


@pytest.mark.parametrize("transpose", [False, True])
def test_zarr(known, tmp_path, transpose, monkeypatch):
    monkeypatch.setattr("colonnade.files.tables.writing._CHUNK", 4)
    array = zarr.create_array(
        tmp_path / "m.zarr", data=(known.T if transpose else known).astype("f4"), fill_value=np.nan
    )
    array.attrs["row_names"] = ODD if transpose else ROWS
    completion, again = there_and_back(tmp_path / "m.zarr", tmp_path / "f.zarr", transpose=transpose)
    same(completion, again, *((None, ODD) if transpose else (ROWS, None)))
    assert zarr.open_array(tmp_path / "f.zarr", mode="r").metadata.zarr_format == 3
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("X", shape=known.shape, dtype=known.dtype, fill_value=np.nan)[:] = known
    same(*there_and_back(tmp_path / "g.zarr", tmp_path / "h.zarr"))
    assert "X" in zarr.open_group(tmp_path / "h.zarr", mode="r")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("transpose", [False, True])
def test_triples_stay_triples(known, rng, tmp_path, ending, transpose, monkeypatch):
    monkeypatch.setattr("colonnade.files.tables.kinds.BLOCK_CELLS", 30)
    i, j = np.nonzero(~np.isnan(known))
    order = rng.permutation(i.size)
    i, j = i[order], j[order]
    places = (
        {"day": j + 7, "station": np.array(ROWS, object)[i]}
        if transpose
        else {"day": i + 7, "station": np.array(ODD, object)[j]}
    )
    table = pa.table({**places, "wind": known[i, j]})
    path, out = tmp_path / f"t.{ending}", tmp_path / f"f.{ending}"
    if ending == "csv":
        table = table.set_column(
            1, "station", pa.array([files.tables.csv.guarded(x) for x in table["station"].to_pylist()])
        )
    (pa.csv.write_csv if ending == "csv" else pq.write_table)(table, path)
    fields = {"row": "day", "column": "station", "value": "wind", "transpose": transpose}
    completion, again = there_and_back(path, out, **fields)
    same(completion, again, completion.observations.row_names, completion.observations.column_names)
    assert (pd.read_csv(out) if ending == "csv" else pd.read_parquet(out))["day"].dtype == np.int64


def test_one_kind_into_another(known, tmp_path):
    """Names go along wherever there is a place for them."""
    pd.DataFrame(known, index=ROWS, columns=ODD).to_parquet(tmp_path / "t.parquet")
    completion = completed(tmp_path / "t.parquet")
    for name in ("f.csv", "f.tsv", "f.npz", "f.zarr"):
        files.write(completion, tmp_path / name)
        same(completion, co.read(tmp_path / name), ROWS, ODD)
    files.write(completed(tmp_path / "f.csv"), tmp_path / "f.parquet")
    same(completion, co.read(tmp_path / "f.parquet"), ROWS, ODD)
    files.write(completed(tmp_path / "f.csv"), tmp_path / "f.npy")
    same(completion, co.read(tmp_path / "f.npy"))
    with pytest.raises(ValueError, match=r"no ending that says its kind; those are \.npy"):
        files.write(completion, tmp_path / "f.sav")


def test_what_could_not_be_filled_stays_empty(tmp_path):
    known = np.outer([1.0, 2, 3], [1.0, 1, 1])
    known[:, 2] = np.nan
    for name in ("t.csv", "t.parquet", "t.npy", "t.zarr"):
        files.write(co.complete(known, rank=1, center=False, shrinkage=0), tmp_path / name)
        assert co.read(tmp_path / name).n_observed.tolist() == [3, 3, 0]


def test_a_very_long_name(known, tmp_path):
    o = co.Observations.from_dense(known, row_names=["x" * 1_000_000, *ROWS[1:]])
    completion = co.complete(o, rank=2)
    for name in ("t.csv", "t.parquet", "t.zarr"):
        files.write(completion, tmp_path / name)
        assert co.read(tmp_path / name).row_names.tolist() == o.row_names.tolist()
    completion.save(tmp_path / "result")
    assert co.Completion.load(tmp_path / "result").observations.row_names.tolist() == o.row_names.tolist()
    many = co.Observations.from_dense(np.ones((100, 2)), row_names=["x" * 1_000_000] * 100)
    with pytest.raises(ValueError, match="too long for an npz file"):
        files.write(co.complete(many), tmp_path / "t.npz")


def test_results_keep_names_and_notice_their_damage(known, tmp_path):
    o = co.Observations.from_dense(known, row_names=ROWS, column_names=ODD)
    completion = co.complete(o, rank=2)
    completion.save(tmp_path / "result")
    again = co.Completion.load(tmp_path / "result")
    assert again.observations.row_names.tolist() == ROWS and again.observations.column_names.tolist() == ODD
    facts = json.loads((tmp_path / "result" / "facts.json").read_text())
    assert facts["shape"] == [12, 10] and facts["space"]["choices"]
    assert "basis" in facts["space"]["sha256"] and "coefficients" in facts["blocks"][0]["sha256"]
    names = (tmp_path / "result" / "names.json").read_text()
    (tmp_path / "result" / "names.json").write_text(names.replace("r1", "r2"))
    with pytest.raises(ValueError, match=r"checksum of names\.json"):
        co.Completion.load(tmp_path / "result")
    completion.save(tmp_path / "result", force=True)
    assert co.Completion.load(tmp_path / "result").observations.row_names.tolist() == ROWS
    (tmp_path / "result" / "mine.txt").write_text("keep me")
    with pytest.raises(FileExistsError, match="other things"):
        completion.save(tmp_path / "result", force=True)
    assert (tmp_path / "result" / "mine.txt").exists()


@pytest.mark.parametrize("name", ["f.npy", "f.npz", "f.csv", "f.parquet", "f.zarr", "result"])
def test_writing_is_whole_or_not_at_all(tmp_path, name, monkeypatch):
    """The k-th fsync, replace or rename fails: what stands there is what stood there, or all of the new one."""
    rng = np.random.default_rng(0)
    old, new = (co.complete(hide(rng, np.outer(np.arange(1.0, 9), np.ones(9)) * k, 3, 4)[0]) for k in (1, 2))

    def write(completion, **options):
        target = tmp_path / name
        return completion.save(target, **options) if name == "result" else files.write(completion, target, **options)

    def content():
        return {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    def clear():
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()

    write(new)
    complete = content()
    clear()
    for first in (None, old):
        for function, k in ((function, k) for function in ("fsync", "replace", "rename") for k in range(6)):
            if first is not None:
                write(first)
            before = content()
            with monkeypatch.context() as patch:
                patch.setattr(os, function, failing(getattr(os, function), k))
                try:
                    write(new, force=first is not None)
                except OSError as error:
                    assert error.errno == errno.ENOSPC
                    assert content() in (before, complete)
                else:
                    assert content() == complete
            clear()
    write(new)
    with pytest.raises(FileExistsError):
        write(new)
    with pytest.raises(FileNotFoundError):
        files.write(new, tmp_path / "nowhere" / "f.csv")


def failing(function, k):
    calls = itertools.count()

    def fail(*arguments, **options):
        if next(calls) == k:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return function(*arguments, **options)

    return fail


def test_a_disk_that_is_too_small_is_noticed_before(known, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 90, 10))
    with pytest.raises(OSError, match="no room on the disk") as failure:
        files.write(co.complete(known, rank=2), tmp_path / "f.npy")
    assert failure.value.errno == 28 and os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "ending, ending_out", [("csv", "csv"), ("parquet", "parquet"), ("csv", "parquet"), ("parquet", "tsv")]
)
@pytest.mark.parametrize("transpose", [False, True])
def test_asked_entries(known, rng, tmp_path, ending, ending_out, transpose):
    frame = pd.DataFrame(known, index=ROWS, columns=ODD)
    (frame.T if transpose else frame).to_parquet(tmp_path / "t.parquet")
    completion = co.complete(co.read(tmp_path / "t.parquet", transpose=transpose))
    i, j = rng.integers(12, size=30), rng.integers(10, size=30)
    names = np.array(ROWS, object)[i], np.array(ODD, object)[j]
    wanted = pd.DataFrame({"note": "x", "row": names[transpose], "column": names[1 - transpose]})
    (wanted.to_csv if ending == "csv" else wanted.to_parquet)(tmp_path / f"w.{ending}", index=False)
    out = tmp_path / f"e.{ending_out}"
    if ending == "csv":  # of a foreign file '=x is taken for a guarded =x
        text = (tmp_path / "w.csv").read_text()
        (tmp_path / "w.csv").write_text(text.replace("'=x", "''=x"))
    files.write_entries(completion, tmp_path / f"w.{ending}", out, level=0.8)
    found = (
        pd.read_parquet(out)
        if ending_out == "parquet"
        else read_csv_exactly(out, sep="\t" if ending_out == "tsv" else ",")
    )
    low, high = completion.interval(i, j, 0.8)
    for name, expected in (("value", completion.entries(i, j)), ("low", low), ("high", high)):
        np.testing.assert_array_equal(found[name].to_numpy(), expected)
    assert list(found) == ["row", "column", "value", "low", "high"]
    if ending_out == "parquet":
        assert found["row"].tolist() == list(names[transpose])


def test_asked_entries_by_position_and_what_is_refused(known, tmp_path):
    completion = co.complete(known, rank=2)
    (tmp_path / "w.csv").write_text("row,column\n0,1\n11,9\n")
    files.write_entries(completion, tmp_path / "w.csv", tmp_path / "e.csv")
    found = read_csv_exactly(tmp_path / "e.csv")
    assert found["row"].tolist() == [0, 11] and found["value"].tolist() == completion.entries([0, 11], [1, 9]).tolist()
    named = co.complete(co.Observations.from_dense(known, row_names=ROWS, column_names=["a", *"abcdefghi"]), rank=2)
    for which, text, words in (
        (
            completion,
            "row,column\n0,1\n12,9\n",
            "1 labels of the column 'row' are not among the positions 0..11, the first is '12'",
        ),
        (completion, "row,column\nx,1\n", "holds names, and the data have none"),
        (
            named,
            "row,column\nr1,z\n",
            "1 labels of the column 'column' are not among the names of the data, the first is 'z'",
        ),
        (named, "row,column\nr1,a\n", "1 labels of the column 'column' are names that several have"),
        (named, "row,column\n,b\n", "1 cells of the column 'row' are empty"),
        (named, "row,col\nr1,b\n", "no column 'column'; it has 'row', 'col'"),
    ):
        (tmp_path / "w.csv").write_text(text)
        with pytest.raises(ValueError, match=words):
            files.write_entries(which, tmp_path / "w.csv", tmp_path / "x.csv")
    assert not (tmp_path / "x.csv").exists()
    (tmp_path / "w.csv").write_text("row,column\n0,1\n")
    with pytest.raises(FileExistsError):
        files.write_entries(completion, tmp_path / "w.csv", tmp_path / "e.csv")
