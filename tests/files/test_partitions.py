"""Folders such as year=2020 as columns: only where the user asks for it, with the names that Arrow reads."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import colonnade as co
from colonnade._support.storage import Url

from problems import hide, low_rank

FIXED = {"rank": 3, "center": False, "shrinkage": 0.0, "refine": 0}
NAMES = ["plain", "a b", "50%", "x=y", "*", "[1]", "?", "#&+", "\u00fc\u65e5", "q'\"", "07", "-", "{k}", "$HOME"]


def by_rows(names, n=60):
    """A table whose rows have these names, and its rows as (name, columns, values)."""
    rng = np.random.default_rng(7)
    L, R = low_rank(rng, len(names), n, 3)
    M, _ = hide(rng, L @ R, 8, min(5, len(names)))
    rows = [(name, np.flatnonzero(~np.isnan(x)), x[~np.isnan(x)]) for name, x in zip(names, M)]
    return M, rows


def written(folder, rows, key="site", as_folder=str):
    for name, columns, values in rows:
        place = folder / f"{key}={as_folder(name)}" / "unused=1" / "part=0.parquet"
        place.parent.mkdir(parents=True)
        parquet.write_table(pa.table({"column": columns, "value": values}), place)
    return folder


def one_file(path, rows, kind):
    table = {
        "site": pa.array(np.concatenate([[name] * len(x) for name, x, _ in rows]).tolist(), kind),
        "column": np.concatenate([x for _, x, _ in rows]),
        "value": np.concatenate([x for *_, x in rows]),
    }
    parquet.write_table(pa.table(table), path)
    return path


FIELDS = {"row": "site", "column": "column", "value": "value"}


def assert_same(found, expected):
    assert found.values.tobytes() == expected.values.tobytes() and found.rows.tobytes() == expected.rows.tobytes()
    assert found.shape == expected.shape
    assert (found.row_names is None) == (expected.row_names is None)
    assert found.row_names is None or list(found.row_names) == list(expected.row_names)


@pytest.mark.parametrize(
    "names, kind",
    [(NAMES, pa.string()), (list(range(14)), pa.int64()), ([3 * k for k in range(14)], pa.int64())],
    ids=["text", "positions", "numbers"],
)
def test_folders_are_a_column_that_the_files_lack(tmp_path, names, kind):
    M, rows = by_rows(names)
    folder, same = written(tmp_path / "x", rows), one_file(tmp_path / "same.parquet", rows, kind)
    found = co.read(folder, hive=True, **FIELDS)
    assert_same(found, co.read(same, **FIELDS))
    assert found.values.size == np.count_nonzero(~np.isnan(M))
    turned = {"row": "column", "column": "site", "value": "value"}
    for how in ({**FIXED, **FIELDS}, {"rank": 1, **turned}):
        here = co.complete_triples(folder, tmp_path / f"a{len(how)}", hive=True, block_entries=50, **how)
        there = co.complete_triples(same, tmp_path / f"b{len(how)}", block_entries=50, **how)
        assert here.coefficients.tobytes() == there.coefficients.tobytes()
        assert_same(here.observations, there.observations)


def test_escaped_names_and_leading_zeros_are_read_as_arrow_reads_them(tmp_path):
    _, rows = by_rows(["a b", "50%", "x/y"], n=20)
    names = {"a b": "a%20b", "50%": "50%25", "x/y": "x%2Fy"}
    found = co.read(written(tmp_path / "x", rows, as_folder=names.get), hive=True, **FIELDS)
    assert list(found.row_names) == ["50%", "a b", "x/y"]
    _, rows = by_rows([7, 8, 11], n=20)
    found = co.read(written(tmp_path / "y", rows, as_folder="{:02d}".format), hive=True, **FIELDS)
    assert list(found.row_names) == ["7", "8", "11"]


def test_folders_say_nothing_unless_asked(tmp_path):
    _, rows = by_rows(NAMES)
    folder = written(tmp_path / "x", rows)
    with pytest.raises(ValueError, match="has no column 'site'; it has 'column', 'value'"):
        co.read(folder, **FIELDS)


def test_what_cannot_be_read(tmp_path, run):
    _, rows = by_rows(NAMES)
    folder = written(tmp_path / "x", rows)
    parquet.write_table(pa.table({"site": ["a"], "column": [0], "value": [1.0]}), tmp_path / "x" / "site=b.parquet")
    with pytest.raises(ValueError, match="has no column 'day'; it has 'column', 'value', 'unused', 'site'"):
        co.read(written(tmp_path / "y", rows[:1]), hive=True, row="day", column="column", value="value")
    (tmp_path / "x" / "site=b.parquet").rename(tmp_path / "x" / "site=plain" / "t.parquet")
    with pytest.raises(ValueError, match="has a column 'site', and so has one of its folders"):
        co.read(folder, hive=True, **FIELDS)
    with pytest.raises(ValueError, match=r"no folder of .* is named KEY=VALUE"):
        co.read(one_file(tmp_path / "t.parquet", rows, pa.string()), hive=True, **FIELDS)
    nobody = tmp_path / "z" / "site=__HIVE_DEFAULT_PARTITION__" / "t.parquet"
    nobody.parent.mkdir(parents=True)
    parquet.write_table(pa.table({"column": [0, 1], "value": [1.0, 2.0]}), nobody)
    with pytest.raises(ValueError, match=r"folders of .*t\.parquet cannot be read as columns: .*'site'"):
        co.read(tmp_path / "z", hive=True, **FIELDS)
    written(tmp_path / "z", rows[:1])
    with pytest.raises(ValueError, match="2 cells of the column 'site' are empty"):
        co.read(tmp_path / "z", hive=True, **FIELDS)
    with pytest.raises(ValueError, match=r"(some|2) cells of the column 'site' are empty"):
        co.complete_triples(tmp_path / "z", tmp_path / "out", hive=True, **FIELDS)
    with pytest.raises(ValueError, match="hive must be"):
        co.read(folder, hive="yes", **FIELDS)
    code, _, err = run("inspect", nobody, "--hive")
    assert code != 0 and "--hive" in err and err.count("\n") == 1


def test_a_folder_that_gets_another_name_is_another_input(tmp_path):
    _, rows = by_rows(list(range(14)))
    folder = written(tmp_path / "x", rows)
    co.complete_triples(folder, tmp_path / "out", hive=True, **FIXED, **FIELDS)
    co.complete_triples(folder, tmp_path / "out", hive=True, resume=True, **FIXED, **FIELDS)
    (folder / "site=13").rename(folder / "site=99")
    with pytest.raises(FileExistsError):
        co.complete_triples(folder, tmp_path / "out", hive=True, resume=True, **FIXED, **FIELDS)


def test_the_command_line_in_memory_on_the_disk_and_estimated(folder, run):
    _, rows = by_rows(NAMES)
    written(folder / "x", rows)
    one_file(folder / "same.parquet", rows, pa.string())
    words = "--row", "site", "--column", "column", "--value", "value"
    fixed = "--rank", "3", "--center", "no", "--shrinkage", "0", "--refine", "0", "--method", "full-columns"
    for engine in ("memory", "local"):
        assert run("complete", "x", "-o", f"a-{engine}", "--hive", "--engine", engine, *words, *fixed)[0] == 0
        assert run("complete", "same.parquet", "-o", f"b-{engine}", "--engine", engine, *words, *fixed)[0] == 0
        found, expected = co.Completion.load(f"a-{engine}"), co.Completion.load(f"b-{engine}")
        assert found.coefficients.tobytes() == expected.coefficients.tobytes()
        assert list(found.row_names) == sorted(NAMES)
    code, out, _ = run("complete", "x", "--hive", "--dry-run", *words)
    assert code == 0 and "Input: " in out
    code, out, _ = run("inspect", "x", "--hive", *words)
    assert code == 0 and "colonnade complete x" in out and "--hive" in out


@pytest.mark.parametrize("names", [NAMES, list(range(14)), [5 * k for k in range(14)]], ids=["text", "0..", "0, 5.."])
def test_a_cluster_reads_folders_as_columns(client, tmp_path, names):
    _, rows = by_rows(names)
    folder = written(tmp_path / "x", rows)
    how = {"hive": True, "block_entries": 50, **FIXED, **FIELDS}
    there = co.dask.complete(folder, client, out=tmp_path / "there", **how)
    here = co.complete_triples(folder, tmp_path / "here", **how)
    assert there.coefficients.tobytes() == here.coefficients.tobytes()
    assert_same(there.observations, here.observations)


def test_a_store_reads_folders_as_columns(tmp_path):
    _, rows = by_rows(NAMES)
    local, far = written(tmp_path / "x", rows), Url("memory://hive")
    for path in local.rglob("*.parquet"):
        (far / path.relative_to(local).as_posix()).write_bytes(path.read_bytes())
    try:
        assert_same(co.read("memory://hive/", hive=True, **FIELDS), co.read(local, hive=True, **FIELDS))
        made = co.complete_triples("memory://hive", "memory://hive-out", hive=True, **FIXED, **FIELDS)
        here = co.complete_triples(local, tmp_path / "here", hive=True, **FIXED, **FIELDS)
        assert made.coefficients.tobytes() == here.coefficients.tobytes()
    finally:
        far.remove_tree()
        Url("memory://hive-out").remove_tree()
