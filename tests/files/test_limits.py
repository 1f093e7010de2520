"""Small files that unpack to much: held within the memory limit, or refused before anything is allocated."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import colonnade as co
from colonnade import files
from colonnade.files.tables import text_writing
from colonnade.scaling import block_grouping

from problems import hide, low_rank

pytestmark = pytest.mark.slow

# A child's ru_maxrss begins with the memory of its parent, so the child itself reads its own peak.
PROGRAM = """
import atexit, sys

def tell(path=sys.argv.pop()):
    with open("/proc/self/status") as status, open(path, "w") as file:
        file.write(next(line for line in status if line.startswith("VmHWM")).split()[1])

atexit.register(tell)
from colonnade.interfaces.cli import run
run()
"""
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")


def peak_of(tmp_path, *arguments):
    """Exit code, standard error and peak of memory in bytes of a command."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments), str(tmp_path / "peak")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    return done.returncode, done.stderr, 1024 * int((tmp_path / "peak").read_text())


def repeated(names, codes):
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names))


def write_plain(columns, path):
    """A Parquet file that says text, not dictionary, of its text."""
    pq.write_table(pa.table(columns), path, store_schema=False, compression="zstd")


@needs_proc
def test_a_table_whose_row_names_repeat_one_of_a_megabyte(tmp_path):
    n, path = 2_000, tmp_path / "bomb.parquet"
    a = np.arange(n) % 7.0
    b = pa.array(np.where(np.arange(n) % 2, np.nan, 2 * a), from_pandas=True)
    write_plain({"name": repeated(["x" * 1_000_000], np.zeros(n)), "a": a, "b": b}, path)
    assert path.stat().st_size < 80_000
    code, err, peak = peak_of(tmp_path, "inspect", path)
    assert code == 0, err
    assert peak < 0.7e9  # 2 GB if every row had its own copy


@needs_proc
@pytest.mark.parametrize("engine", ["memory", "local"])
def test_triples_whose_names_repeat(tmp_path, engine):
    m, n, path = 4, 500, tmp_path / "t.parquet"
    columns, rows = np.divmod(np.arange(m * n), m)
    names = [letter * 1_000_000 for letter in "abcd"]
    values = (1.0 + rows) * (1.0 + columns)
    seen = (columns < 20) | (rows != columns % m)
    write_plain({"row": repeated(names, rows[seen]), "column": columns[seen], "value": values[seen]}, path)
    code, err, peak = peak_of(tmp_path, "complete", path, "-o", "out", "--memory-limit", "0.6GB", "--engine", engine)
    assert code == 0, err
    assert peak < 0.7e9  # 1.6 GB if every line had its own copy
    filled = co.Completion.load(tmp_path / "out")
    np.testing.assert_allclose(filled.to_dense(), values.reshape(n, m).T, rtol=1e-8)
    assert [name[:2] for name in filled.row_names] == ["aa", "bb", "cc", "dd"]


@pytest.fixture
def long_names(tmp_path):
    """1,000 different names of 100 kB with the same beginning, in a file of some kB."""
    names, path = [f"{'x' * 100_000}{k}" for k in range(1_000)], tmp_path / "names.parquet"
    columns = {"column": names, "row": np.zeros(1_000, int), "value": np.ones(1_000)}
    delta = {"use_dictionary": False, "column_encoding": {"column": "DELTA_BYTE_ARRAY"}}
    pq.write_table(pa.table(columns), path, compression="zstd", **delta)
    assert path.stat().st_size < 100_000
    return path


def test_names_that_share_their_beginning_are_counted_as_they_come(long_names):
    with pytest.raises(MemoryError, match=r"names\.parquet, columns 'row', 'column'.*raise --memory-limit.*shorten"):
        co.read(long_names, memory_limit=50e6)


def test_long_names_by_blocks_end_with_code_3(long_names, run):
    code, out, err = run("complete", long_names, "-o", "out", "--engine", "local", "--memory-limit", "600MB")
    assert code == 3 and out == "" and err.count("\n") == 1
    for words in (str(long_names), "the names in column 'column'", "the memory limit leaves", "shorten the names"):
        assert words in err
    assert not (long_names.parent / "out").exists()


def test_columns_of_other_kinds_are_refused_before_they_are_read(tmp_path, monkeypatch):
    odd, path = pa.array([b"x" * 1000] * 5, pa.binary(1000)), tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.arange(5), "b": odd, "c": np.arange(5.0)}), path)
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    with pytest.raises(TypeError, match=r"1 of 3 columns are not numeric: 'b' \(fixed_size_binary\[1000\]\)"):
        co.read(path)
    for read in (co.read, lambda *given, **fields: co.complete_triples(*given, tmp_path / "out", **fields)):
        with pytest.raises(TypeError, match=r"'b' must hold names or whole numbers; it holds fixed_size_binary"):
            read(path, row="b", column="a", value="c")


@pytest.mark.parametrize("ending", ["npy", "npz", "csv", "parquet", "zarr"])
def test_a_table_beyond_the_limit(tmp_path, ending):
    """8 bytes a cell are in memory 4 times, of text and Parquet 8 times."""
    M, path = np.zeros((100, 1000)), tmp_path / f"t.{ending}"
    if ending == "npy":
        np.save(path, M)
    elif ending == "npz":
        np.savez_compressed(path, X=M)
    elif ending == "csv":
        pd.DataFrame(M).to_csv(path, header=False, index=False)
    elif ending == "parquet":
        pd.DataFrame(M).rename(columns=str).to_parquet(path)
    else:
        zarr.create_array(path, shape=M.shape, dtype="f8", chunks=(10, 10), fill_value=np.nan)
    with pytest.raises(MemoryError, match=rf"t\.{ending}.*the memory limit leaves 3\.0 MB.*raise --memory-limit"):
        co.read(path, memory_limit=3.0e6)
    assert co.read(path, memory_limit=8e6).shape == (100, 1000)


def test_a_chunk_that_is_larger_than_its_array(tmp_path):
    zarr.create_array(tmp_path / "z.zarr", shape=(4, 4), dtype="f8", chunks=(10**6, 10**6), fill_value=np.nan)
    with pytest.raises(MemoryError, match=r"z\.zarr, a chunk, declares 8\.0 TB.*smaller chunks"):
        co.read(tmp_path / "z.zarr")


def test_the_command_keeps_tables_within_the_limit(folder, run):
    zarr.create_array(folder / "t.zarr", shape=(10**4, 10**4), dtype="f8", chunks=(100, 100), fill_value=np.nan)
    code, out, err = run("complete", "t.zarr", "--memory-limit", "600MB")
    assert code == 3 and out == "" and err.count("\n") == 1
    assert "t.zarr declares 800.0 MB and needs about 3.2 GB, and the memory limit leaves 350.0 MB" in err


@pytest.fixture
def tall(tmp_path):
    """Triples of a 40 x 30 matrix whose row labels are 0, 2, 4, ..."""
    rng = np.random.default_rng(0)
    L, R = low_rank(rng, 40, 30, 2)
    known = hide(rng, L @ R, 8, 6)[0]
    columns, rows = np.nonzero(~np.isnan(known.T))
    pq.write_table(
        pa.table({"row": 2 * rows, "column": columns, "value": known[rows, columns]}), tmp_path / "t.parquet"
    )
    return tmp_path / "t.parquet"


def test_full_columns_beyond_the_limit(tall, tmp_path, monkeypatch):
    """Rows that occur count, not the largest label."""
    settings = {"rank": 2, "center": False, "shrinkage": 0, "refine": 0, "memory_limit": 6e8}
    monkeypatch.setattr(block_grouping, "_BYTES_OF_A_ROW", 350_000_000 // 50)
    assert co.complete_triples(tall, tmp_path / "out", **settings).shape == (40, 30)
    monkeypatch.setattr(block_grouping, "_BYTES_OF_A_ROW", 350_000_000 // 39)
    with pytest.raises(MemoryError, match=r"t\.parquet, column 'row', has 40 different rows.*raise --memory-limit"):
        co.complete_triples(tall, tmp_path / "again", **settings)


def test_a_text_table_whose_lines_are_longer_than_a_megabyte(tmp_path):
    known = np.round(np.random.default_rng(0).standard_normal((8, 2_000)), 3)
    known[1:4, 100:] = np.nan
    names = [f"c{j}" for j in range(known.shape[1])]
    lines = [",".join("" if np.isnan(x) else f"{x:.600f}" for x in row) for row in known]
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    found = co.read(tmp_path / "t.csv")
    assert found.column_names.tolist() == names and found.row_names is None
    np.testing.assert_array_equal(found.to_dense(), known)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_row_names_are_written_as_the_type_that_they_were(tmp_path, kind, monkeypatch):
    known = hide(np.random.default_rng(0), np.random.default_rng(1).standard_normal((7, 9)), 5, 3)[0]
    names = pa.array([f"r{k % 5}" for k in range(7)]).cast(kind)
    columns = {f"c{j}": pa.array(known[:, j], from_pandas=True) for j in range(9)}
    pq.write_table(pa.table({"name": names, **columns}), tmp_path / "t.parquet")
    monkeypatch.setattr(text_writing, "TEXT_BYTES", 5)  # so that a few lines are written at a time
    completion = co.complete(co.read(tmp_path / "t.parquet"), rank=1, center=False, shrinkage=0, refine=0)
    files.write(completion, tmp_path / "filled.parquet")
    written = pq.read_table(tmp_path / "filled.parquet")
    assert written.schema.field("name").type == kind
    assert written.column("name").to_pylist() == names.to_pylist()
    np.testing.assert_array_equal(written.column("c8").to_numpy(), completion.to_dense()[:, 8])


def test_triples_with_long_names_are_written_some_at_a_time(tmp_path, monkeypatch):
    columns, rows = np.divmod(np.arange(60), 6)
    seen = (columns < 5) | (rows < 4)
    labels = {"row": [f"r{k}" for k in rows[seen]], "column": [f"c{k}" for k in columns[seen]]}
    values = (1.0 + rows) * (1.0 + columns)
    pq.write_table(pa.table({**labels, "value": values[seen]}), tmp_path / "t.parquet")
    completion = co.complete(co.read(tmp_path / "t.parquet"), rank=1, center=False, shrinkage=0, refine=0)
    monkeypatch.setattr(text_writing, "TEXT_BYTES", 20)
    files.write(completion, tmp_path / "filled.parquet")
    np.testing.assert_allclose(co.read(tmp_path / "filled.parquet").to_dense(), values.reshape(10, 6).T, rtol=1e-9)


def test_names_in_a_dictionary_that_do_not_occur_are_no_rows(tmp_path):
    labels = pa.DictionaryArray.from_arrays(pa.array([0, 2, 0, 2], pa.int32()), pa.array(["a", "never", "b"]))
    pq.write_table(pa.table({"row": labels, "column": [0, 0, 1, 1], "value": [1.0, 2, 3, 4]}), tmp_path / "t.parquet")
    assert co.read(tmp_path / "t.parquet").row_names.tolist() == ["a", "b"]
    assert co.complete_triples(tmp_path / "t.parquet", tmp_path / "out").row_names.tolist() == ["a", "b"]


def test_a_frame_is_asked_for_its_types_a_few_times_only(monkeypatch):
    """They are made anew at every call: once for each column is quadratic."""
    calls, dtypes = [], pd.DataFrame.dtypes.fget
    monkeypatch.setattr(pd.DataFrame, "dtypes", property(lambda frame: calls.append(1) or dtypes(frame)))
    frame = pd.DataFrame(np.arange(150.0).reshape(3, 50))
    np.testing.assert_array_equal(co.Observations.from_dense(frame).to_dense(), frame.to_numpy())
    assert 0 < len(calls) < 10


def test_wide_text_is_converted_a_few_times_whatever_its_width(tmp_path, monkeypatch):
    """Once for each column and some lines is quadratic: the wider the table, the fewer lines are written at a time."""
    calls, cells = [], text_writing._cells
    monkeypatch.setattr(text_writing, "_cells", lambda *given: calls.append(1) or cells(*given))
    monkeypatch.setattr(text_writing, "TEXT_BYTES", 2 * 26 * 401)  # two lines at a time
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((7, 400)), columns=[f"c{j}" for j in range(400)])
    frame.insert(300, "text", list("abcdefg"))
    frame["c5"] = np.arange(7) * 10**15  # whole numbers, which 64-bit floats hold
    frame.iloc[2, 7] = np.nan
    completion = co.complete(frame, rank=1, center=False, shrinkage=0, refine=0)
    files.write(completion, tmp_path / "t.csv")
    assert len(calls) == 4 * len(["c0 to c4", "c5", "c6 to c299", "text", "c300 to c399"])
    found = pd.read_csv(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(found, completion.to_frame(), rtol=1e-15)
