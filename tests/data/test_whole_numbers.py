"""Whole numbers that floating point cannot hold are refused by their place, at every door; all others come back."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import zarr
from pyarrow import parquet
from scipy import sparse

import colonnade as co
from colonnade import harness
from colonnade._support.numbers import first_rounded
from colonnade.interfaces.imputers.complete_sides import CompleteRowsImputer
from colonnade.scaling.blocks import complete_triples
from colonnade.scaling.dask.tasks import observations_of

from made_logs import sample as line
from made_logs import write_log

CHANGED = [2**53 + 1, -(2**53) - 1, 2**60 + 1, 2**63 - 1, -(2**63) + 1]
KEPT = [2**53, 2**53 - 1, -(2**53), 2**53 + 2, 2**60, -(2**63), 0]


def table(number):
    """Whole numbers, with `number` in row 2 of column 1."""
    M = np.arange(1, 21, dtype=np.int64).reshape(5, 4)
    M[2, 1] = number
    return M


def refused(number):
    to = int(float(number))
    # In a text file that is the fourth line; of triples the eleventh, whose label is '2'.
    place = r"(row (2|'2')|line 4|line 4 \('x'\)|line 11 \('2'\))[ ,].*column"
    return pytest.raises(ValueError, match=rf"{place} .* is {number}, which floating point would change to {to}:")


def doors(folder):
    """Ways for a table of integers into Observations."""
    names = list("abcd")

    def frame(M):
        return pd.DataFrame(M, columns=names)

    def saved(write, name, **options):
        def read(M):
            write(M, folder / name)
            return co.read(folder / name, **options)

        return read

    def triples(M):
        i, j = np.indices(M.shape).reshape(2, -1)
        return {"row": i, "column": j, "value": M[i, j]}

    def parquet_triples(M, path):
        parquet.write_table(pa.table(triples(M)), path)

    def with_null(M, path):
        parquet.write_table(pa.table(triples(M) | {"value": pa.array([*M.ravel()[:-1].tolist(), None])}), path)

    def by_blocks(write, name):
        def read(M):
            write(M, folder / name)
            out = folder / f"{name} out"
            return complete_triples(folder / name, out, force=True, rank=1, refine=0).observations

        return read

    def masked(M):
        M = M.copy()
        hidden = np.zeros(M.shape, bool)
        M[4, 3], hidden[4, 3] = 2**53 + 1, True
        return co.Observations.from_dense(np.ma.array(M, mask=hidden))

    def decimals(column):
        return pa.array(column.tolist()).cast(pa.decimal128(20))

    from_dense = co.Observations.from_dense
    return {
        "array": from_dense,
        "masked": masked,
        "list": lambda M: from_dense(M.tolist()),
        "list with NaN": lambda M: from_dense([*M.tolist()[:-1], [1.0, 2.0, 3.0, np.nan]]),
        "objects": lambda M: from_dense(M.astype(object)),
        "decimals": lambda M: from_dense(np.vectorize(Decimal, otypes=[object])(M.astype(object))),
        "pandas": lambda M: from_dense(frame(M)),
        "pandas Int64": lambda M: from_dense(frame(M).astype("Int64").where(frame(M) != 20)),
        "pandas Arrow": lambda M: from_dense(frame(M).astype("int64[pyarrow]")),
        "pandas objects": lambda M: from_dense(frame(M).astype(object)),
        "polars": lambda M: from_dense(pl.DataFrame(M, schema=names)),
        "polars decimals": lambda M: from_dense(pl.DataFrame(M, schema=names).cast(pl.Decimal(20, 0))),
        "Arrow": lambda M: from_dense(pa.table(dict(zip(names, M.T)))),
        "Arrow decimals": lambda M: from_dense(pa.table(dict(zip(names, map(decimals, M.T))))),
        "triplets": lambda M: co.Observations.from_triplets(*np.indices(M.shape).reshape(2, -1), M.ravel(), M.shape),
        "triplets in a list": lambda M: co.Observations.from_triplets(
            *np.indices(M.shape).reshape(2, -1), [*M.ravel().tolist()[:-1], np.nan], M.shape
        ),
        "sparse": lambda M: co.Observations.from_sparse(sparse.csc_array(M)),
        "chunk": lambda M: observations_of(M, 0),
        "source": lambda M: co.observe(M, n_full_columns=20, n_entries=3, random_state=0),
        "function": lambda M: co.observe(
            co.Source(lambda i, j: M[i, j], M.shape), n_full_columns=20, n_entries=3, random_state=0
        ),
        "npy": saved(lambda M, path: np.save(path, M), "t.npy"),
        "npz": saved(lambda M, path: np.savez(path, X=M), "t.npz"),
        "csv": saved(lambda M, path: frame(M).to_csv(path, index=False), "t.csv"),
        "csv with names": saved(lambda M, path: frame(M).set_index([list("vwxyz")]).to_csv(path), "n.csv"),
        "parquet": saved(lambda M, path: frame(M).to_parquet(path), "t.parquet"),
        "zarr": saved(lambda M, path: zarr.create_array(path, data=M, overwrite=True), "t.zarr"),
        "triples, csv": saved(lambda M, path: pd.DataFrame(triples(M)).to_csv(path, index=False), "3.csv"),
        "triples, parquet": saved(parquet_triples, "3.parquet"),
        "triples with null": saved(with_null, "4.parquet"),
        "blocks, csv": by_blocks(lambda M, path: pd.DataFrame(triples(M)).to_csv(path, index=False), "5.csv"),
        "blocks, parquet": by_blocks(parquet_triples, "5.parquet"),
        "blocks with null": by_blocks(with_null, "6.parquet"),
    }


@pytest.mark.parametrize("door", doors(None))
def test_whole_numbers_come_back_or_are_refused(tmp_path, door):
    enter = doors(tmp_path)[door]
    few = "blocks" in door
    for number in KEPT[:1] if few else KEPT:
        if number or door != "sparse":  # a zero is not stored
            o = enter(table(number))
            found = o.values[o.locate(np.array([2]), np.array([1]))[0]]
            assert int(found) == number
    for number in CHANGED[:1] if few else CHANGED:
        with refused(number):
            enter(table(number))


def test_unsigned_numbers():
    for number in (2**64 - 1, 2**63 + 1, 2**53 + 1):
        with refused(number):
            co.Observations.from_dense(np.where(table(0) == 0, np.uint64(number), table(0).astype(np.uint64)))
    assert first_rounded(np.array([2**63, 2**53 + 2, 2**64 - 2048], np.uint64)) is None


def test_the_place_is_named(tmp_path):
    frame = pd.DataFrame(table(2**53 + 1), index=list("vwxyz"), columns=["a", "\x1b[0m", "c", "d"])
    with pytest.raises(ValueError, match=r"row 2 \('x'\) of column '\\x1b\[0m' is 9007199254740993"):
        co.complete(frame)
    frame.to_csv(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"t\.csv in line 4 \('x'\), column '\\x1b\[0m' is 9007199254740993"):
        co.read(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="row 2, column 11 is 9007199254740993"):
        observations_of(table(2**53 + 1), 10)


def test_text_of_large_floats_comes_back(tmp_path):
    """Many digits are not many exact digits: what is written again is the same text."""
    cells = ["123456789012345670000", "1" + "0" * 33, "9007199254740992", "1e22", "0.12345678901234567890", "17"]
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    assert co.read(tmp_path / "t.csv").to_dense()[:, 0].tolist() == [float(cell) for cell in cells]


def test_words_for_missing_are_not_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n9223372036854775807,1\n9223372036854773760,2\n5,6\n")
    o = co.read(tmp_path / "t.csv", missing="9223372036854775807")
    with pytest.raises(ValueError, match="line 2, column 'a' is 9223372036854775807"):
        co.read(tmp_path / "t.csv")
    assert np.isnan(o.to_dense()[0, 0]) and o.n_observed.tolist() == [2, 3]


def test_imputers():
    with refused(2**53 + 1):
        CompleteRowsImputer().fit(table(2**53 + 1))


def test_logs(tmp_path):
    write_log(tmp_path, "m", "t", [line(0, acc=1), line(1, acc=2**53 + 1)])
    with pytest.raises(ValueError, match=r"the metric 'acc' at line 2 of .* is 9007199254740993"):
        harness.read_logs(tmp_path)
    path = write_log(tmp_path, "m", "t", [line(0, acc=1)])
    path.write_text(json.dumps(line(0, acc=1)).replace('"acc": 1', '"acc": ' + "9" * 400))
    with pytest.raises(ValueError, match="is not a finite number"):
        harness.read_logs(tmp_path)
