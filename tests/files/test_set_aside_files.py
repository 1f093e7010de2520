"""Columns of text, dates and Booleans in files: set aside, listed, and written back in place as they were."""

import csv
import datetime
import hashlib
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import colonnade as co
from colonnade import files

from problems import hide, low_rank, read_csv_exactly

ROWS = 12
SETTINGS = {"rank": 2, "center": False, "shrinkage": 0, "refine": 0}
NOTES = ["=cmd()", "a,b", 'say "x"', "two\nlines", "NA", "", " ", "'=x", "ü", "-", "[/bold]", "\x1b[31m"]
GUARDED = ["'=cmd()", *NOTES[1:]]  # What a text table has of them: no formula.
DAYS = [f"2024-01-{k + 1:02}" for k in range(ROWS)]
FLAGS = ["True", "False", ""] * 4


@pytest.fixture
def known(rng):
    L, R = low_rank(rng, ROWS, 8, 2)
    return hide(rng, np.rint(L @ R * 10) + 0.5, 4, 6)[0]


def cells_of(path, delimiter=","):
    with open(path, newline="", encoding="utf-8") as file:
        return [line for line in csv.reader(file, delimiter=delimiter) if line]


def write_cells(path, lines, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(lines)


def table_of(known, header=True, row_names=True, notes=NOTES):
    """Lines of a text table whose columns 1, 4 and the last hold no numbers."""
    lines = []
    for i, row in enumerate(known):
        numbers = ["" if np.isnan(x) else repr(float(x)) for x in row]
        names = [f"r{i}"] if row_names else []
        lines.append([*names, numbers[0], notes[i], *numbers[1:3], DAYS[i], *numbers[3:], FLAGS[i]])
    titles = ["sample"] * row_names + ["c0", "notes", "c1", "c2", "day", *(f"c{j}" for j in range(3, 8)), "flag"]
    return [titles, *lines] if header else lines


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("row_names", [True, False])
@pytest.mark.parametrize("header", [True, False])
def test_csv_comes_back_with_its_text(known, tmp_path, header, row_names, delimiter):
    path, out = tmp_path / "t.csv", tmp_path / "f.csv"
    given = table_of(known, header, row_names)
    write_cells(path, given, delimiter)
    before = hashlib.sha256(path.read_bytes()).digest()
    o = co.read(path)
    np.testing.assert_array_equal(o.to_dense(), known)
    assert (o.row_names is not None) == row_names and (o.column_names is not None) == header
    completion = co.complete(o, **SETTINGS)
    files.write(completion, out)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    back = cells_of(out, delimiter)
    filled = table_of(completion.to_dense(), header, row_names, GUARDED)
    assert [len(line) for line in back] == [len(line) for line in filled]
    for found, expected in zip(back, filled):
        for k, (a, b) in enumerate(zip(found, expected)):
            assert a == b or (k >= row_names and float(a) == float(b))
    kinds = ["text", "dates", "Booleans"]
    names = ["notes", "day", "flag"] if header else [str(k + row_names) for k in (1, 4, 10)]
    expected = ", ".join(f"'{name}' ({kind})" for name, kind in zip(names, kinds))
    assert completion.choices["set aside"] == expected
    again = co.complete(co.read(out), **SETTINGS)
    files.write(again, tmp_path / "second.csv")
    assert (tmp_path / "second.csv").read_bytes() == out.read_bytes()


def test_text_that_begins_below_the_first_lines(tmp_path):
    lines = [["a", "note", "b"], *([str(k * k), "", str(2 * k)] for k in range(500)), ["7", "late", ""]]
    write_cells(tmp_path / "t.csv", lines)
    o = co.read(tmp_path / "t.csv")
    assert o.shape == (501, 2) and o.origin.aside.in_words() == "'note' (text)"
    files.write(co.complete(o), tmp_path / "f.csv")
    assert [line[1] for line in cells_of(tmp_path / "f.csv")] == [line[1] for line in lines]


@pytest.mark.parametrize("first", ["text", "numbers"])
def test_text_and_numbers_in_one_column_are_refused_or_ignored(tmp_path, first):
    cells = ["x"] * 300 + ["5"] * 3 if first == "text" else ["5"] * 300 + ["x"] * 3
    lines = [["a", "b", "c"], *([str(k), cell, str(k * k)] for k, cell in enumerate(cells))]
    write_cells(tmp_path / "t.csv", lines)
    with pytest.raises(ValueError, match=r"(column 'b'.*(text and numbers|'x')|'x').*--missing.*--ignore") as failure:
        co.read(tmp_path / "t.csv", row_names=False)
    assert "'b'" in str(failure.value)
    o = co.read(tmp_path / "t.csv", ignore=["b"], row_names=False)
    assert o.column_names.tolist() == ["a", "c"] and o.origin.aside.in_words() == "'b' (ignored)"
    files.write(co.complete(o), tmp_path / "f.csv")
    assert cells_of(tmp_path / "f.csv") == lines


def test_words_for_missing_in_columns_of_text(tmp_path):
    write_cells(tmp_path / "t.csv", [["a", "b", "c"], ["1", "x", "2"], ["3", "-999", "-999"], ["5", "?", "4"]])
    o = co.read(tmp_path / "t.csv", missing=["-999", "?"], row_names=False)
    assert o.column_names.tolist() == ["a", "c"] and o.n_observed.tolist() == [3, 2]
    files.write(co.complete(o), tmp_path / "f.csv")
    assert [line[1] for line in cells_of(tmp_path / "f.csv")] == ["b", "x", "-999", "?"]
    only_text = co.read(tmp_path / "t.csv", missing=["-999", "?", "x"], row_names=False)
    assert only_text.shape == (3, 3), "a column in which nothing is known is one of numbers"


def test_identifiers_with_leading_zeros_and_beyond_floats(tmp_path):
    lines = [["id", "zip", "a", "b"], *([str(2**60 + k), f"0{k}", str(k), str(3 * k)] for k in range(1, 5))]
    lines[3][3] = ""
    write_cells(tmp_path / "t.csv", lines)
    with pytest.raises(ValueError, match=r"column 'id' is 1152921504606846977.*--ignore"):
        co.read(tmp_path / "t.csv", row_names=False)
    o = co.read(tmp_path / "t.csv", ignore=["id", "zip"])
    files.write(co.complete(o, **SETTINGS | {"rank": 1}), tmp_path / "f.csv")
    back = cells_of(tmp_path / "f.csv")
    assert [line[:3] for line in back] == [line[:3] for line in lines]
    assert float(back[3][3]) == pytest.approx(9)


def test_large_whole_numbers_without_gap_are_written_in_full(tmp_path):
    lines = [["a", "b"], *([str(10**15 + k), str(k)] for k in range(4))]
    lines[2][1] = ""
    write_cells(tmp_path / "t.csv", lines)
    completion = co.complete(co.read(tmp_path / "t.csv"))
    files.write(completion, tmp_path / "f.csv")
    assert [line[0] for line in cells_of(tmp_path / "f.csv")] == [line[0] for line in lines]
    assert completion.to_frame().dtypes.tolist() == [np.int64, np.float64]


def test_header_beside_columns_of_text(tmp_path):
    """A column of text says nothing of the first line; one of dates or Booleans does."""
    for lines, header in (
        (["ann,Paris,1.5", "bob,Rome,2.5"], False),
        (["name,city,x", "ann,Paris,1.5"], True),
        (["1.5,Paris,2", "2.5,Rome,3"], False),
        (["2020,flag,2021", "1.5,true,2", "2.5,false,3"], True),
        (["1,true,2", "2,false,3"], False),
        (["1,,2", "2,2024-01-01,3"], False),
    ):
        (tmp_path / "t.csv").write_text("\n".join(f"{line},{k}" for k, line in enumerate(lines)))
        if header:
            (tmp_path / "t.csv").write_text("\n".join(f"{line},{'y' if k == 0 else k}" for k, line in enumerate(lines)))
        assert (co.read(tmp_path / "t.csv").column_names is not None) == header, lines


def typed_table(known):
    """An Arrow table with columns of many types."""
    when = [None, *(datetime.datetime(2024, 1, 1, k, tzinfo=datetime.UTC) for k in range(ROWS - 1))]
    columns = {
        "c0": known[:, 0],
        "flag": pa.array([True, None, False] * 4),
        "count": pa.array(np.arange(ROWS) + 250, pa.uint16()),
        "notes": pa.array([None, *NOTES[1:]]),
        "large": pa.array(NOTES, pa.large_string()),
        **{f"c{j}": pa.array(known[:, j], from_pandas=True) for j in range(1, 6)},
        "when": pa.array(when, pa.timestamp("us", "UTC")),
        "day": pa.array([datetime.date(2024, 1, 1 + k) for k in range(ROWS)]),
        "hour": pa.array([datetime.time(k) for k in range(ROWS)], pa.time64("us")),
        "lasts": pa.array([datetime.timedelta(seconds=k) for k in range(ROWS)]),
        "kind": pa.array(["x", None, "y"] * 4).dictionary_encode(),
        **{f"c{j}": pa.array(known[:, j], from_pandas=True) for j in range(6, 8)},
        "gaps": pa.array([None, *range(ROWS - 1)], pa.int32()),
    }
    return pa.table(columns)


ASIDE = ["flag", "notes", "large", "when", "day", "hour", "lasts", "kind"]


def test_parquet_comes_back_with_its_types(known, tmp_path):
    table = typed_table(known)
    pq.write_table(table, tmp_path / "t.parquet")
    completion = co.complete(co.read(tmp_path / "t.parquet"), **SETTINGS)
    files.write(completion, tmp_path / "f.parquet")
    back = pq.read_table(tmp_path / "f.parquet")
    assert back.column_names == table.column_names
    for name in [*ASIDE, "count"]:
        assert back[name].type == table[name].type and back[name].to_pylist() == table[name].to_pylist(), name
    assert back["gaps"].type == pa.float64() and back["gaps"].null_count == 0
    filled = completion.to_dense()
    for j, name in enumerate(completion.column_names):
        np.testing.assert_array_equal(back[name].to_numpy(), filled[:, j])
    assert completion.choices["set aside"] == (
        "'flag' (Booleans), 'notes' (text), 'large' (text), 'when' (dates), 'day' (dates), 'hour' (times),"
        " 'lasts' (durations), 'kind' (categories)"
    )


def test_parquet_of_pandas_with_an_index_and_text(known, tmp_path):
    frame = pd.DataFrame(known, columns=[f"c{j}" for j in range(8)], index=pd.Index(range(5, 17), name="sample"))
    frame.insert(1, "notes", NOTES)
    frame.insert(4, "kind", pd.Categorical(["x", None, "y"] * 4))
    frame["when"] = pd.date_range("2024-01-01", periods=ROWS, tz="Europe/Berlin")
    frame["count"] = np.arange(ROWS, dtype=np.int16)
    frame.to_parquet(tmp_path / "t.parquet")
    completion = co.complete(co.read(tmp_path / "t.parquet"), **SETTINGS)
    files.write(completion, tmp_path / "f.parquet")
    expected = frame.copy()
    for j, name in enumerate(completion.column_names):
        expected[name] = completion.to_dense()[:, j].astype(frame[name].dtype)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "f.parquet"), expected)
    assert completion.to_frame().columns.tolist() == frame.columns.tolist()
    assert completion.to_frame()["notes"].tolist() == NOTES


def test_parquet_with_repeated_names(known, tmp_path):
    arrays = [*known[:, :4].T, pa.array(NOTES), *known[:, 4:].T, pa.array(DAYS)]
    names = ["x", "y", "x", "z", "x", "a", "b", "c", "d", "d"]
    table = pa.Table.from_arrays([pa.array(one, from_pandas=True) for one in arrays], names=names)
    pq.write_table(table, tmp_path / "t.parquet")
    o = co.read(tmp_path / "t.parquet")
    np.testing.assert_array_equal(o.to_dense(), known)
    files.write(co.complete(o, **SETTINGS), tmp_path / "f.parquet")
    back = pq.ParquetFile(tmp_path / "f.parquet").read()
    assert back.column_names == names
    assert back.column(4).to_pylist() == NOTES and back.column(9).to_pylist() == DAYS


def test_one_kind_into_another(known, tmp_path):
    table = typed_table(known)
    pq.write_table(table, tmp_path / "t.parquet")
    completion = co.complete(co.read(tmp_path / "t.parquet"), **SETTINGS)
    files.write(completion, tmp_path / "f.csv")
    back = read_csv_exactly(tmp_path / "f.csv", keep_default_na=False)
    assert back.columns.tolist() == table.column_names
    guarded = [files.tables.csv.guarded(note) for note in NOTES]
    assert back["large"].tolist() == guarded and back["notes"].tolist() == ["", *guarded[1:]]
    assert back["flag"].tolist() == ["true", "", "false"] * 4 and back["day"].tolist() == DAYS
    assert back["count"].tolist() == table["count"].to_pylist()
    write_cells(tmp_path / "t.csv", table_of(known))
    files.write(co.complete(co.read(tmp_path / "t.csv"), **SETTINGS), tmp_path / "g.parquet")
    back = pq.read_table(tmp_path / "g.parquet")
    assert back["notes"].to_pylist() == NOTES and back.column_names[1:] == table_of(known)[0][1:]
    for name in ("f.npy", "f.npz", "f.zarr"):
        files.write(completion, tmp_path / name)
        np.testing.assert_array_equal(co.read(tmp_path / name).to_dense(), completion.to_dense())


def test_text_that_looks_like_a_formula_is_guarded(known, tmp_path):
    """Dashes, telephone numbers and amounts are not formulas; a cell that has its apostrophe gets no other one."""
    notes = ["=1+1", "+cmd|x", "@x", "-2+3", "'=a", "-", "+49 170 12-34", "--", "a=b", "-5 %", "\t=1", "-x"]
    guarded = ["'=1+1", "'+cmd|x", "'@x", "'-2+3", "'=a", "-", "+49 170 12-34", "--", "a=b", "-5 %", "'\t=1", "'-x"]
    table = [["note", *"abcdefgh"]]
    table += [[note, *("" if np.isnan(x) else repr(float(x)) for x in row)] for note, row in zip(notes, known)]
    write_cells(tmp_path / "t.csv", table)
    for source, target in (("t.csv", "f.csv"), ("f.csv", "g.csv")):  # Twice: what is guarded stays as it is.
        o = co.read(tmp_path / source, row_names=False, ignore="note")
        files.write(co.complete(o, **SETTINGS), tmp_path / target)
        assert read_csv_exactly(tmp_path / target)["note"].tolist() == guarded


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_into_files(known, tmp_path, library):
    table = typed_table(known)
    frame = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "pyarrow": lambda: table}[library]()
    completion = co.complete(frame, **SETTINGS)
    for name in ("f.parquet", "f.csv"):
        files.write(completion, tmp_path / name)
    back = pq.read_table(tmp_path / "f.parquet")
    assert back.column_names == table.column_names and back["count"].type == pa.uint16()
    for name in ASIDE:
        assert back[name].to_pylist() == table[name].to_pylist()
    assert cells_of(tmp_path / "f.csv")[0] == table.column_names


def test_python_objects_of_several_kinds_are_written_as_text(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2], "odd": pd.Series([{1, 2}, "x"], dtype=object), "b": [2.0, np.nan]})
    for name in ("f.parquet", "f.csv"):
        files.write(co.complete(frame), tmp_path / name)
    assert pq.read_table(tmp_path / "f.parquet")["odd"].to_pylist() == ["{1, 2}", "x"]
    assert [line[1] for line in cells_of(tmp_path / "f.csv")] == ["odd", "{1, 2}", "x"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_transposed(known, tmp_path, ending):
    path, out = tmp_path / f"t.{ending}", tmp_path / f"f.{ending}"
    frame = pd.DataFrame(known.T, columns=[f"s{i}" for i in range(ROWS)])
    frame.insert(3, "notes", NOTES[:8])
    frame.insert(5, "n", np.arange(8) + 1)
    (frame.to_csv if ending == "csv" else frame.to_parquet)(path, index=False)
    completion = co.complete(co.read(path, transpose=True), **SETTINGS)
    assert completion.shape == (ROWS + 1, 8)
    files.write(completion, out)
    read = read_csv_exactly(out, keep_default_na=False) if ending == "csv" else pd.read_parquet(out)
    assert read.columns.tolist() == frame.columns.tolist() and read["notes"].tolist() == (
        GUARDED[:8] if ending == "csv" else NOTES[:8]
    )
    assert read["n"].dtype == np.int64 and read["n"].tolist() == frame["n"].tolist()
    np.testing.assert_array_equal(read.drop(columns="notes").to_numpy(float), completion.to_dense().T)


def test_names_of_the_first_column_decide_about_row_names(tmp_path):
    lines = [["city", "a", "b"], ["x", "1", "2"], ["y", "2", ""]]
    write_cells(tmp_path / "t.csv", lines)
    pd.DataFrame({"city": ["x", "y"], "a": [1.0, 2], "b": [2, np.nan]}).to_parquet(tmp_path / "t.parquet", index=False)
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert co.read(path).row_names.tolist() == ["x", "y"] and co.read(path).origin.aside is None
        o = co.read(path, ignore="city")
        assert o.row_names is None and o.origin.aside.in_words() == "'city' (ignored)"
        with pytest.raises(TypeError, match=r"only names columns that do not hold numbers: 'city' \(text\)"):
            co.read(path, only=["city", "a"])
        assert co.read(path, only=["a", "b"]).row_names.tolist() == ["x", "y"]
        with pytest.raises(ValueError, match="ignore names 'aa', which is not a column; the"):
            co.read(path, ignore=["aa"])


def test_names_are_for_tables(tmp_path, known):
    np.save(tmp_path / "m.npy", known)
    write_cells(tmp_path / "3.csv", [["row", "column", "value"], ["a", "x", "1"], ["b", "x", "2"]])
    for path, kind in ((tmp_path / "m.npy", "npy"), (tmp_path / "3.csv", "triples")):
        with pytest.raises(ValueError, match=rf"name columns of wide csv, Parquet and xlsx files; got {kind}"):
            co.read(path, ignore=["value"])


def test_tables_without_numbers(tmp_path):
    write_cells(tmp_path / "t.csv", [["n", "city", "flag"], ["1", "x", "true"], ["2", "y", "false"]])
    pq.write_table(pa.table({"flag": [True, False], "city": ["x", "y"]}), tmp_path / "t.parquet")
    with pytest.raises(TypeError, match=r"no column of numbers is left: 'city' \(text\), 'flag' \(Booleans\)"):
        co.read(tmp_path / "t.csv", row_names=True)
    write_cells(tmp_path / "1.csv", [["a"], ["x"], ["y"]])
    with pytest.raises(TypeError, match=r"1\.csv: no column of numbers is left: all are names of rows; convert"):
        co.read(tmp_path / "1.csv")
    with pytest.raises(TypeError, match=r"t\.parquet: no column of numbers is left: 'flag' \(Booleans\), 'city' "):
        co.read(tmp_path / "t.parquet")


@pytest.mark.slow
def test_large_text_in_a_small_file_is_counted(tmp_path):
    """A dictionary holds a long text once, also when it comes back; different ones beyond the limit are refused."""
    long = pa.array(["x" * 100_000] * 3_000)
    numbers = {"a": np.arange(3_000.0), "b": np.where(np.arange(3_000) % 7, np.nan, 1.0)}
    pq.write_table(pa.table({**numbers, "t": long}), tmp_path / "t.parquet")
    o = co.read(tmp_path / "t.parquet", memory_limit=50e6)
    assert o.origin.aside.columns.nbytes < 1e6
    different = pa.array([f"{k:06}" + "x" * 10_000 for k in range(3_000)])
    pq.write_table(pa.table({**numbers, "t": different}), tmp_path / "u.parquet")
    with pytest.raises(MemoryError, match=r"column 't'.*leave these columns out of the file"):
        co.read(tmp_path / "u.parquet", memory_limit=50e6)


def test_commands(known, run):
    write_cells("t.csv", table_of(known))
    code, out, _ = run("complete", "t.csv", "--ignore", "c7", "-o", "f.csv", "-o", "f.npy", "--rank", "2")
    lines = out.splitlines()
    assert code == 0 and lines[0].startswith("Verdict: ") and lines[1].startswith("Read: csv")
    listed = "'notes' (text), 'day' (dates), 'c7' (ignored), 'flag' (Booleans)"
    assert lines[2] == f"Left out and returned unchanged: {listed}."
    assert any(line.startswith("Numbers only: f.npy.") for line in lines) and np.load("f.npy").shape == (ROWS, 7)
    given, back = table_of(known, notes=GUARDED), cells_of("f.csv")
    for k in (2, 5, 10, 11):
        assert [line[k] for line in back] == [line[k] for line in given]
    only = [word for j in range(6) for word in ("--only", f"c{j}")]
    code, out, _ = run("complete", "t.csv", *only, "--json", "-o", "g.csv")
    assert code == 0 and json.loads(out)["shape"] == [ROWS, 6]
    assert "'c7' (ignored)" in json.loads(out)["choices"]["set aside"]
    for command in ("inspect", "compare"):
        more = ["--methods", "complete,row_means"] if command == "compare" else []
        code, out, _ = run(command, "t.csv", "--ignore", "c7", *more)
        assert code == 0 and f"Left out and returned unchanged: {listed}." in out.splitlines()[:3]
        code, out, _ = run(command, "t.csv", "--ignore", "c7", "--json", *more)
        assert code == 0 and json.loads(out)["set_aside"] == listed


def test_commands_refuse_unknown_names_in_a_line(known, run):
    write_cells("t.csv", table_of(known))
    write_cells("3.csv", [["row", "column", "value"], ["a", "x", "1"], ["b", "x", "2"]])
    for arguments, code, words in (
        (["t.csv", "--ignore", "nots"], 3, "the nearest names are 'notes'"),
        (["t.csv", "--only", "notes"], 3, "only names columns that do not hold numbers: 'notes' (text)"),
        (["3.csv", "--ignore", "value"], 3, "got triples"),
        (["3.csv", "--ignore", "value", "--engine", "local"], 2, "--ignore and --only need a table"),
    ):
        found, out, err = run("complete", *arguments)
        assert found == code and out == "" and words in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("far", [3, 300])
@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_text_that_repeats_names_no_rows(tmp_path, kind, far):
    """Also if it repeats only after the lines that are looked at first; unless the user says that it is names."""
    frame = pd.DataFrame({"city": [f"c{i % far}" for i in range(far + 2)], "a": range(far + 2), "b": 0.5, "c": 1.5})
    path = tmp_path / f"t.{kind}"
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "xlsx": frame.to_excel}[kind]
    write(path, index=False)
    o = co.read(path)
    assert o.row_names is None and o.origin.aside.in_words() == "'city' (text)"
    assert co.read(path, row_names=True).row_names.tolist() == frame["city"].tolist()
    assert co.read(path, row_names=True).shape == o.shape
