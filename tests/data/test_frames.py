import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import colonnade as co

from problems import hide, low_rank


@pytest.fixture
def known(rng):
    L, R = low_rank(rng, 10, 8, 2)
    return hide(rng, np.rint(L @ R * 10) + 0.0, 4, 5)[0]  # no -0.0, which integers do not have


def frames_of(known):
    columns = {f"c{j}": known[:, j] for j in range(known.shape[1])}
    with_null = {name: [None if np.isnan(x) else float(x) for x in c] for name, c in columns.items()}
    whole = pd.DataFrame(
        {name: pd.array([None if x is None else int(x) for x in c], "Int64") for name, c in with_null.items()}
    )
    yield pd.DataFrame(columns)
    yield whole
    yield pd.DataFrame(with_null).convert_dtypes(dtype_backend="pyarrow")
    yield pl.DataFrame(with_null)
    yield pl.DataFrame(with_null).cast(pl.Int32)
    yield pa.table(with_null)
    yield pa.table({name: pa.array(c, pa.float64()).cast(pa.int16()) for name, c in with_null.items()})


def test_frames_are_matrices(known):
    expected = co.complete(known, rank=2).to_dense()
    for frame in frames_of(known):
        np.testing.assert_array_equal(co.complete(frame, rank=2).to_dense(), expected)


def test_single_precision_is_kept():
    for frame in (
        pd.DataFrame({"a": [1, 2], "b": [1, np.nan]}, dtype=np.float32),
        pl.DataFrame({"a": [1, 2], "b": [1, None]}, schema={"a": pl.Float32, "b": pl.Float32}),
        pa.table({"a": pa.array([1, 2], pa.float32()), "b": pa.array([1, None], pa.float32())}),
    ):
        assert co.complete(frame).to_dense().dtype == np.float32


def test_the_frame_that_came_in_comes_back_filled(known):
    """Kind, index and names as they were; observed entries too; nothing is missing."""
    names = [f"c{j}" for j in range(8)]
    when = pd.date_range("2020-01-01", periods=10, tz="UTC", name="when")
    pairs = pd.MultiIndex.from_product([["a", "b"], range(4)], names=["letter", "number"])
    filled = co.complete(known, rank=2).to_dense()
    frame = co.complete(pd.DataFrame(known, index=when, columns=pairs), rank=2).to_frame()
    pd.testing.assert_frame_equal(frame, pd.DataFrame(filled, index=when, columns=pairs))
    frame = co.complete(pl.DataFrame(known, schema=names), rank=2).to_frame()
    assert frame.equals(pl.DataFrame(filled, schema=names))
    frame = co.complete(pa.table(list(known.T), names=names), rank=2).to_frame()
    assert frame.equals(pa.table(list(filled.T), names=names))
    pd.testing.assert_frame_equal(co.complete(known, rank=2).to_frame(), pd.DataFrame(filled))
    named = co.Observations.from_dense(known, row_names=list("abcdefghij"), column_names=names)
    frame = co.complete(named, rank=2).to_frame()
    pd.testing.assert_frame_equal(frame, pd.DataFrame(filled, index=list("abcdefghij"), columns=names))


def test_nested_rows_and_text_beside_the_numbers_are_kept(known):
    nested = pd.MultiIndex.from_product([["x", "y"], range(5)], names=["site", "day"])
    frame = pd.DataFrame(known, index=nested, columns=[f"c{j}" for j in range(8)]).assign(note="n")
    back = co.complete(frame, rank=2).to_frame()
    assert back.index.equals(nested) and back.index.names == ["site", "day"] and (back["note"] == "n").all()
    np.testing.assert_array_equal(back.drop(columns="note").to_numpy(), co.complete(known, rank=2).to_dense())
    of_polars = co.complete(pl.from_pandas(frame.reset_index(drop=True)), rank=2).to_frame()
    assert isinstance(of_polars, pl.DataFrame) and of_polars.columns == frame.columns.tolist()


def test_what_stays_unknown_is_nan_or_null():
    table = pa.table({"a": pa.array([1.0, 2.0], pa.float32()), "b": pa.array([None, None], pa.float32())})
    settings = {"rank": 1, "center": False, "shrinkage": 0}
    for frame in (table, pl.from_arrow(table)):
        back = co.complete(frame, **settings).to_frame()
        assert type(back) is type(frame) and back.equals(frame)
    back = co.complete(table.to_pandas(), **settings).to_frame()
    pd.testing.assert_frame_equal(back, table.to_pandas())


def test_names_go_along():
    frame = pd.DataFrame(np.ones((2, 3)), index=["x", "y"], columns=[5, "b", 2.5])
    o = co.Observations.from_dense(frame)
    assert o.row_names.tolist() == ["x", "y"] and o.column_names.tolist() == ["5", "b", "2.5"]
    part = o.take([2, 0])
    assert part.row_names.tolist() == ["x", "y"] and part.column_names.tolist() == ["2.5", "5"]
    assert o.transposed().row_names.tolist() == o.column_names.tolist()
    assert co.Observations.from_dense(pd.DataFrame(np.ones((2, 3)))).row_names is None
    with pytest.raises(ValueError, match="row_names must be 2 names; got 3"):
        co.Observations.from_dense(np.ones((2, 3)), row_names=list("abc"))
    with pytest.raises(TypeError, match=r"column_names must be text; column_names\[1\] is 7"):
        co.Observations.from_dense(np.ones((2, 3)), column_names=["a", 7, "c"])


def test_days_are_named_without_a_time_and_labels_of_several_levels_are_explained(rng):
    known = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8))
    known[6:, 5:] = np.nan
    days = pd.date_range("2024-01-01", periods=30)
    completion = co.complete(pd.DataFrame(known, index=days, columns=list("abcdefgh")))
    assert completion.row_names[9] == "2024-01-10"
    for asked in (days[9], days.to_numpy()[9], days[9].date(), "2024-01-10", "2024-01-10 00:00:00"):
        assert completion.entries(asked, "g") == completion.entries(9, 6)
    levels = pd.MultiIndex.from_product([list("xyz"), range(10)])
    completion = co.complete(pd.DataFrame(known, index=levels, columns=list("abcdefgh")))
    assert completion.explain(("x", 9), "g").value == completion.entries(9, 6)


def test_without_pandas_frames_are_those_of_polars(rng, monkeypatch, tmp_path):
    from colonnade.data import frames

    known = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 4))
    known[3, 2] = np.nan
    monkeypatch.setattr(frames, "find_spec", lambda name: name if name == "polars" else None)
    completion = co.complete(known)
    filled = completion.to_frame()
    assert filled.columns == ["column_0", "column_1", "column_2", "column_3"]
    np.testing.assert_array_equal(filled.to_numpy(), completion.to_dense())
    assert completion.to_frame(interval=0.9).columns == ["row", "column", "value", "low", "high", "kind"]
    (tmp_path / "t.csv").write_text("a,place,b\n1,Oslo,2\n2,Rome,\n3,Bern,6\n4,Bonn,8\n", encoding="utf-8")
    filled = co.complete(co.read(tmp_path / "t.csv")).to_frame()
    assert filled.columns == ["a", "place", "b"] and filled["place"].to_list() == ["Oslo", "Rome", "Bern", "Bonn"]
    monkeypatch.setattr(frames, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="data frames need pandas or polars: pip install pandas"):
        completion.to_frame()


def test_dates_are_names(rng):
    known = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8))
    known[6:, 5:] = np.nan
    hours = pd.date_range("2024-01-01", periods=30, freq="h")
    completion = co.complete(pd.DataFrame(known, index=hours, columns=list("abcdefgh")))
    expected = completion.entries([4, 9], 6)
    for asked in (hours[[4, 9]], list(hours[[4, 9]]), hours[[4, 9]].to_pydatetime(), hours.to_numpy("M8[ns]")[[4, 9]]):
        np.testing.assert_array_equal(completion.entries(asked, "g"), expected)
    assert completion.entries(hours[9], "g") == completion.entries(hours.to_numpy()[9], "g") == expected[1]
    with pytest.raises(
        ValueError, match=r"one of the names '2024-01-01 00:00:00', .*; none is called '2023-05-01 00:00:00'"
    ):
        completion.entries(pd.Timestamp("2023-05-01"), "g")
    with pytest.raises(TypeError, match="all numbers or all names; got '3' beside names"):
        completion.entries([hours[4], 3], "g")


def test_repeated_names_and_empty_frames():
    repeated = pd.DataFrame(np.arange(6.0).reshape(2, 3), columns=["x", "x", "y"])
    np.testing.assert_array_equal(co.complete(repeated).to_dense(), repeated.to_numpy())
    for frame in (pd.DataFrame(), pd.DataFrame({"a": []}, dtype=float), pl.DataFrame()):
        with pytest.raises(ValueError, match="rows and"):
            co.complete(frame)


def test_days_are_the_names_of_their_beginnings(rng):
    known, _ = hide(rng, rng.standard_normal((20, 12)), 5, 8)
    days = pd.date_range("2024-01-01", periods=20)
    completion = co.complete(pd.DataFrame(known, index=days, columns=range(2000, 2012)))
    expected = completion.entries(3, 7)
    for day in ("2024-01-04", days[3].date(), np.datetime64("2024-01-04"), days[3]):
        assert completion.entries(day, "2007") == expected
    with pytest.raises(IndexError, match="numbers are places from 0, and 2007 is a name: write '2007'"):
        completion.columns([2007])
    with pytest.raises(IndexError, match=r"columns must lie in 0..11; columns\[0\] is 30$"):
        completion.columns([30])


def test_a_class_made_from_a_data_frame_is_one():
    class Table(pd.DataFrame):
        pass

    table = Table({"a": [1.0, 2, 3, 4], "b": [2.0, 4, 6, 8], "c": [3.0, 6, 9, np.nan]}, index=list("wxyz"))
    completion = co.complete(table)
    assert completion.column_names.tolist() == ["a", "b", "c"]
    assert completion.to_frame().loc["z", "c"] == pytest.approx(12)
    imputer = co.CompleteColumnsImputer().fit(table)
    assert imputer.feature_names_in_.tolist() == ["a", "b", "c"]


def test_without_pandas_a_frame_says_what_to_install(monkeypatch):
    M = np.random.default_rng(0).standard_normal((12, 8))
    M[3:6, 2:5] = np.nan
    completion = co.complete(M)
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    for ask in (
        completion.to_frame,
        lambda: completion.to_frame(0.9),
        lambda: completion.certificates(as_frame=True),
        lambda: completion.explain(0, 0).to_frame(),
    ):
        with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
            ask()
