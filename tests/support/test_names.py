"""Whatever a file, a folder or a column is called, the numbers are the same, and nothing that is printed is obeyed."""

import ast
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zarr
from pyarrow import parquet
from scipy import sparse

import colonnade as co
from colonnade import files, harness
from colonnade.scaling.blocks import complete_triples

from made_logs import sample as line
from made_logs import write_log
from made_triples import frame_of
from problems import hide, low_rank

pytestmark = pytest.mark.slow

NAMES = [
    "value=3",
    "row=7",
    "column=9",
    "VALUE=3",
    "__HIVE_DEFAULT_PARTITION__=1",
    "it's",
    'a"b',
    "a[1]",
    "b*",
    "c?",
    "{x,y}",
    "é 漢字",
    "\x1b[31mred\x1b[0m",
    "new\nline\ttab",
    " two blanks ",
    "-o",
    "100%20",
    "~",
    "$HOME",
    "s3:",
    "a;b--",
    "a\\b",
    "\udcff",  # not text in UTF-8
    "\u202eback",
]
FIXED = {"rank": 2, "center": False, "shrinkage": 0.0, "refine": 0}
KINDS = "csv", "tsv", "npy", "npz", "sparse.npz", "parquet", "zarr", "group.zarr", "triples.csv", "triples.parquet"


def matrix(scale=1.0):
    rng = np.random.default_rng(0)
    L, R = low_rank(rng, 8, 12, 2)
    return hide(rng, scale * (L @ R), 4, 4)[0]


def write_kind(M, kind, path):
    frame = pd.DataFrame(M, index=[f"r{i}" for i in range(M.shape[0])], columns=[f"c{j}" for j in range(M.shape[1])])
    known = frame_of(M)
    if kind in ("csv", "tsv"):
        frame.to_csv(path, sep="\t" if kind == "tsv" else ",")
    elif kind == "npy":
        np.save(path, M)
    elif kind == "npz":
        with open(path, "wb") as file:
            np.savez(file, X=M)
    elif kind == "sparse.npz":
        with open(path, "wb") as file:
            sparse.save_npz(file, sparse.coo_array((known.value, (known.row, known.column)), M.shape).tocsc())
    elif kind == "parquet":
        with open(path, "wb") as file:
            frame.to_parquet(file)
    elif kind == "zarr":
        zarr.create_array(path, data=M)
    elif kind == "group.zarr":
        zarr.create_group(path).create_array("X", shape=M.shape, dtype=M.dtype)[:] = M
    elif kind == "triples.csv":
        frame_of(M, labels=True).to_csv(path, index=False)
    else:
        with open(path, "wb") as file:
            known.to_parquet(file, index=False)
    return path


def content(path):
    """The bytes of a file, or of all files of a folder."""
    if path.is_dir():
        return {str(one.relative_to(path)): one.read_bytes() for one in path.rglob("*") if one.is_file()}
    return path.read_bytes()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Of every kind: a file with a plain name, what it holds, its completion, and how that is written."""
    found = {}
    for kind in KINDS:
        here = tmp_path_factory.mktemp("plain")
        path = write_kind(matrix(), kind, here / f"in.{kind}")
        observations = co.read(path)
        completion = co.complete(observations, **FIXED)
        files.write(completion, here / f"out.{kind}")
        found[kind] = path, observations, completion, content(here / f"out.{kind}")
    return found


def decoys(path, kind):
    """Other numbers in files that a pattern of this name would find."""
    for pattern in ("a1", "b", "bb", "cc", "x", "y"):
        if pattern != path.name.split(".")[0]:
            write_kind(matrix(scale=7.0), kind, path.with_name(f"{pattern}.{kind}"))


@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_any_name_in_a_folder_of_any_name(plain, tmp_path, kind, name):
    source, expected, completion, written = plain[kind]
    below = tmp_path / name
    below.mkdir()
    path = below / f"{name}.{kind}"
    (shutil.copytree if source.is_dir() else shutil.copyfile)(source, path)
    found = co.read(path)
    for part in ("indptr", "rows", "values"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
    assert found.shape == expected.shape
    files.write(completion, below / f"{name} out.{kind}")
    assert content(below / f"{name} out.{kind}") == written
    assert sorted(os.listdir(below)) == sorted([path.name, f"{name} out.{kind}"])


def write_others(completion, below):
    """Asked entries, scores, observations and a result in a folder; the contents, by the ends of their names."""
    observations, file = completion.observations, below / below.name
    below.mkdir()
    with open(f"{file}.csv", "w") as text:
        pd.DataFrame({"row": ["r0", "r3"], "column": ["c1", "c2"]}).to_csv(text, index=False)
    files.write_entries(completion, f"{file}.csv", f"{file} entries.parquet")
    files.write_entries(completion, f"{file}.csv", f"{file} entries.csv")
    table = np.rec.array([(float(j),) for j in range(observations.shape[1])], names="score")
    files.write_scores(table, observations.column_names, f"{file} scores.parquet")
    files.write_observed(observations, f"{file} observed.parquet")
    completion.save(f"{file} result")
    return {one.name.removeprefix(below.name): content(one) for one in below.iterdir()}


@pytest.fixture(scope="module")
def others(plain, tmp_path_factory):
    return write_others(plain["csv"][2], tmp_path_factory.mktemp("others") / "plain")


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_other_files_of_any_name(plain, others, tmp_path, name):
    completion = plain["csv"][2]
    found = write_others(completion, tmp_path / name)
    assert found.keys() == others.keys()
    for end in found.keys() - {" result"}:
        assert found[end] == others[end], end
    loaded = co.Completion.load(tmp_path / name / f"{name} result")
    np.testing.assert_array_equal(loaded.to_dense(), completion.to_dense())


@pytest.fixture(scope="module")
def by_blocks(tmp_path_factory):
    """Triples with plain names, completed by blocks."""
    found = {}
    for kind in ("triples.csv", "triples.parquet"):
        here = tmp_path_factory.mktemp("blocks")
        path = write_kind(matrix(), kind, here / f"in.{kind}")
        found[kind] = path, complete_triples(path, here / "out", block_entries=20, **FIXED).to_dense()
    return found


@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("kind", ["triples.csv", "triples.parquet"])
def test_blocks_below_folders_of_any_name(by_blocks, tmp_path, kind, name):
    source, expected = by_blocks[kind]
    below = tmp_path / name
    below.mkdir()
    path = below / f"{name}.{kind}"
    shutil.copyfile(source, path)
    decoys(path, kind)

    def stop(stage, done, total):
        if stage == "learning":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete_triples(path, below / name, block_entries=20, progress=stop, **FIXED)
    found = complete_triples(path, below / name, block_entries=20, resume=True, **FIXED)
    np.testing.assert_array_equal(found.to_dense(), expected)
    assert not (below / f"{name}.partial").exists()


def test_duplicates_and_scattered_labels_below_a_folder_like_a_partition(tmp_path):
    """The last of two entries of a place, and labels that do not count from 0, which are looked for by DuckDB."""
    known = frame_of(matrix())
    known = pd.concat([known.assign(value=-5.0), known])
    known["row"] = 10 * known["row"] + 3
    answers = []
    for name in ("value=3", "plain"):
        below = tmp_path / name / "row=7" / "column=9"
        below.mkdir(parents=True)
        known.to_parquet(below / "t.parquet", index=False)
        done = complete_triples(below / "t.parquet", below / "out", duplicates="last", block_entries=20, **FIXED)
        answers.append(done.to_dense())
    np.testing.assert_array_equal(*answers)
    known = ~np.isnan(matrix())
    np.testing.assert_array_equal(answers[0][known], matrix()[known])


@pytest.mark.parametrize("order", [("VAL", "val"), ("val", "VAL")])
def test_columns_that_differ_by_case_only(tmp_path, order):
    known = frame_of(matrix())
    frame = known.assign(ROW=0, Column=0, **{order[0]: -7.0, order[1]: -7.0})
    frame["val"] = known["value"]
    path = tmp_path / "t.parquet"
    frame[["ROW", "Column", "row", "column", *order]].to_parquet(path, index=False)
    named = {"row": "row", "column": "column", "value": "val"}
    stored = complete_triples(path, tmp_path / "out", block_entries=20, **named, **FIXED).observations
    for o in (co.read(path, **named), stored):
        np.testing.assert_array_equal(o.to_dense(), matrix())


def test_a_field_of_a_structure_is_not_a_column(tmp_path):
    """Its least and largest value stand in the footer under the same last name."""
    known = frame_of(matrix())
    inner = [{"row": 10**6 + k, "column": 0} for k in range(len(known))]
    table = pa.table({"s": inner, "value.x": np.zeros(len(known)), **{name: known[name] for name in known}})
    parquet.write_table(table, tmp_path / "t.parquet")
    names = {name: name for name in ("row", "column", "value")}
    stored = complete_triples(tmp_path / "t.parquet", tmp_path / "out", **names, **FIXED)
    np.testing.assert_array_equal(stored.observations.to_dense(), matrix())


def test_several_columns_of_one_name(tmp_path):
    known = frame_of(matrix())
    arrays = [pa.array(known[name]) for name in ("row", "column", "value", "value")]
    parquet.write_table(pa.Table.from_arrays(arrays, ["row", "column", "value", "value"]), tmp_path / "t.parquet")
    known.assign(other=1.0).rename(columns={"other": "value"}).to_csv(tmp_path / "t.csv", index=False)
    for path in (tmp_path / "t.parquet", tmp_path / "t.csv"):
        for reading in (co.read, lambda path, **names: complete_triples(path, tmp_path / "out", **names)):
            with pytest.raises(ValueError, match="several columns 'value'"):
                reading(path, row="row", column="column", value="value")


def test_row_names_and_a_column_of_one_name(tmp_path):
    M = matrix()
    names = pa.array([f"r{i}" for i in range(M.shape[0])])
    table = pa.Table.from_arrays([names, *(pa.array(M[:, j], from_pandas=True) for j in range(M.shape[1]))], ["a"] * 13)
    parquet.write_table(table, tmp_path / "t.parquet")
    o = co.read(tmp_path / "t.parquet")
    np.testing.assert_array_equal(o.to_dense(), M)
    files.write(co.complete(o, **FIXED), tmp_path / "u.parquet")
    back = parquet.ParquetFile(tmp_path / "u.parquet").read()
    assert back.column_names == table.column_names and back.column(0).equals(table.column(0))


def test_a_column_for_row_names_finds_a_title(tmp_path):
    titles = ["name", "_name", "__name", "row_name", "_row_name"]
    M = np.arange(20.0).reshape(4, 5) ** 1.5
    o = co.Observations.from_dense(M, row_names=list("abcd"), column_names=titles)
    files.write(co.complete(o, **FIXED), tmp_path / "t.parquet")
    np.testing.assert_array_equal(co.read(tmp_path / "t.parquet").to_dense(), M)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_logs_below_folders_of_any_name(tmp_path, name):
    logs = tmp_path / name / "logs"
    for k, model in enumerate((name, "plain")):
        write_log(logs, model, "t=1[2]*", [line(i, acc=float(i + k)) for i in range(3)])
    o = harness.read_logs(logs)
    values = dict(zip(o.column_names, o.to_dense().T.tolist()))
    assert values == {name: [0.0, 1.0, 2.0], "plain": [1.0, 2.0, 3.0]}
    assert harness.write_samples(o, [1], tmp_path / name / f"{name}.json") == {"t=1[2]*": [1]}


def test_the_folder_above_has_its_name(tmp_path, monkeypatch):
    write_log(tmp_path, "model", "t", [line(0, acc=1.0)])
    (tmp_path / "model" / "below").mkdir()
    monkeypatch.chdir(tmp_path / "model" / "below")
    assert harness.read_logs("..").column_names.tolist() == ["model"]


# ------------------------------------------------------------------------------------------------ npz keys


@pytest.mark.parametrize("key", ["../../evil", "/etc/evil", "..\\evil", "C:evil", "a/../../evil", "evil\x1b[0m"])
def test_keys_that_lead_out_of_a_folder_are_refused(tmp_path, key):
    with open(tmp_path / "t.npz", "wb") as file:
        np.savez(file, **{key: matrix()})
    with pytest.raises(ValueError, match="not safe to write again") as refusal:
        co.read(tmp_path / "t.npz")
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("key", ["file", "allow_pickle", "a/b", "x.npy", "é", "row_names", "self"])
def test_keys_of_any_other_name_come_back(tmp_path, key):
    files.write(co.complete(matrix(), **FIXED), tmp_path / "plain.npz")
    with np.load(tmp_path / "plain.npz") as arrays:
        expected = arrays["X"]
    files.tables.writing.write_arrays(tmp_path / "t.npz", {key: matrix()})
    files.write(co.complete(co.read(tmp_path / "t.npz"), **FIXED), tmp_path / "u.npz")
    with np.load(tmp_path / "u.npz") as arrays:
        assert arrays.files == [key]
        np.testing.assert_array_equal(arrays[f"{key}.npy"], expected)


def test_two_members_of_one_key(tmp_path):
    import io
    import zipfile

    def npy(M):
        content = io.BytesIO()
        np.save(content, M)
        return content.getvalue()

    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", npy(matrix()))
        archive.writestr("X", npy(7 * matrix()))
    with pytest.raises(ValueError, match="two arrays 'X'"):
        co.read(tmp_path / "t.npz")


# ------------------------------------------------------------------------------------------------ csv cells


SIGNS = "=+-@＝＋－＠﹦﹢﹣﹫"


@pytest.mark.parametrize(
    "before", ["", " ", "   ", "\t", "\n", "\r", "\u3000", "\xa0", "\ufeff", "\u200b", "\x00", " \t"]
)
def test_no_cell_begins_with_a_formula(before):
    for sign in SIGNS:
        name = f"{before}{sign}cmd()"
        for k in range(3):  # also with the mark already there
            marked = files.tables.csv.guarded("'" * k + name)
            assert marked == "'" * (k + 1) + name
            assert files.tables.csv.plain([marked]) == ["'" * k + name]


def test_numbers_and_plain_names_are_not_marked():
    for name in ("-1.5", "+3", " -1e5 ", "-inf", "a=b", "a -b", "", " ", "'a", "1+1"):
        assert files.tables.csv.guarded(name) == name and files.tables.csv.plain([name]) == [name]


def test_formulas_come_back_from_csv(tmp_path):
    names = [" =a", "＝a", "　＋a", "\t@a", "' =a", "-a", " b", "＠"]
    M = np.arange(64.0).reshape(8, 8) ** 1.5
    o = co.Observations.from_dense(M, row_names=names, column_names=names)
    for path in (tmp_path / "t.csv", tmp_path / "t.tsv"):
        files.write(co.complete(o, **FIXED), path)
        cells = re.findall(r'"([^"]*)"', path.read_text(encoding="utf-8"))
        assert sum(cell.startswith("'") for cell in cells) == 14
        found = co.read(path)
        assert found.row_names.tolist() == names and found.column_names.tolist() == names


# ------------------------------------------------------------------------------------------------ the terminal


def control_characters(text):
    return {c for c in text if not c.isprintable() and c != "\n"}


@pytest.fixture
def odd(folder):
    """The beginning of the names of some files, and the files: a table, triples, a damaged array and logs."""
    name = "\x1b[31m\nx\u202e\udcff\x07"
    pd.DataFrame(matrix()).to_csv(folder / f"{name}.csv", index=False)
    with open(folder / f"{name}.parquet", "wb") as file:
        frame_of(matrix()).to_parquet(file, index=False)
    (folder / f"{name}.npy").write_bytes(b"\x93NUMPY")
    for k, model in enumerate(("m0", "m1", "m2", "\x1b[31m\n")):
        write_log(folder / f"{name} logs", model, "t", [line(i, acc=float(i * k)) for i in range(6 if k < 3 else 2)])
    return name


def test_what_is_printed_when_all_is_well_is_not_obeyed(run, odd):
    for arguments in (
        ("complete", f"{odd}.csv", "-o", f"{odd} out.csv", "--report", f"{odd}.html"),
        ("complete", f"{odd}.csv", "-o", f"{odd} result"),
        ("complete", f"{odd}.parquet", "--engine", "local", "-o", f"{odd} blocks"),
        ("inspect", f"{odd}.csv"),
        ("plan", "--select-rows", "2", f"{odd} result"),
        ("harness", "read", f"{odd} logs", "-o", f"{odd} logs.csv"),
        ("harness", "select", f"{odd} logs", "-k", "2", "-o", f"{odd} samples.json"),
        ("harness", "score", f"{odd} logs"),
    ):
        code, out, err = run(*arguments)
        assert code == 0, (arguments, err)
        assert not control_characters(out + err), arguments
    code, out, _ = run("complete", f"{odd}.csv", "-o", "x.csv", "--json")
    assert code == 0 and out.isascii() and json.loads(out)["inputs"] == [f"{odd}.csv"]


def test_what_is_printed_of_a_failure_is_not_obeyed(run, odd):
    os.mkdir(f"{odd} empty")
    for arguments in (
        ("complete", f"{odd}.npy"),
        ("complete", f"{odd}.csv", "-o", f"{odd}.csv"),
        ("complete", f"{odd} none.csv"),
        ("complete", f"{odd} empty"),
        ("complete", f"{odd}.parquet", "--engine", "local", "-o", f"{odd} none/out"),
        ("complete", f"{odd}.parquet", "--row", "a", "--column", "b", "--value", f"{odd}"),
        ("report", odd),
        ("report", f"{odd}.csv", "-o", f"{odd} 3.html"),
        ("harness", "read", odd, "-o", "y.csv"),
        ("harness", "read", f"{odd} empty", "-o", "y.csv"),
        ("compare", f"{odd}.csv", "--plot", f"{odd}.txt"),
        ("demo", "--out", f"{odd}.jpg"),
    ):
        code, out, err = run(*arguments)
        assert code in (2, 3, 5), (arguments, code, err)
        assert err.count("\n") == 1 and not control_characters(out + err), arguments


@pytest.mark.parametrize("read", [co.read, co.Completion.load, harness.read_logs])
def test_exceptions_can_be_printed(odd, read):
    for name in (f"{odd}.npy", f"{odd} none"):
        with pytest.raises((ValueError, OSError)) as failure:
            read(name)
        assert str(failure.value).isprintable()


def test_messages_show_paths_by_one_function():
    """No sentence of the library holds a path as it is; the commands print by `say`, which escapes all."""
    paths = {"path", "folder", "out", "output", "working", "scratch"}
    wrong = []
    root = Path(co.__file__).parent
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            where = f"{file.relative_to(root)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Raise) and file.parent.name != "cli":
                shown = [one.value for one in ast.walk(node) if isinstance(one, ast.FormattedValue)]
                wrong += [where for one in shown if isinstance(one, ast.Name) and one.id in paths]
            if (
                isinstance(node, ast.Attribute)
                and node.attr == "echo"
                and file.parts[-2:] not in (("cli", "_lines.py"), ("cli", "__init__.py"))
            ):
                wrong.append(where)
    assert not wrong


def test_no_name_and_no_path_is_in_sql():
    """DuckDB is used in one module, with sentences that are written there, and can open no file."""
    root = Path(co.__file__).parent
    assert [file.name for file in root.rglob("*.py") if "duckdb.connect" in file.read_text()] == ["grouping.py"]
    text = (root / "scaling" / "triples" / "grouping.py").read_text()
    assert "enable_external_access = false" in text
    assert not re.search(r"read_parquet|read_csv|glob", text)
