"""Triples grouped by tasks that run anywhere give the bytes of the local engine, whatever the labels and the order."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import colonnade as co
from colonnade.scaling.blocks import complete_triples
from colonnade.scaling.triples import sorted_runs
from colonnade.scaling.triples.cutting import cut
from colonnade.scaling.triples.grouping import Batch

from made_triples import FIXED, LABELS, broken, contents, problem, triples_of, write_triples

pytest.importorskip("distributed", reason="the extra dask is not installed")


class OneByOne:
    """A cluster whose tasks run here, each twice, because workers may do the same."""

    def results(self, names, tasks, report=lambda done: None):
        found = {}
        for key in reversed(list(names)):
            function, *arguments = tasks[key]
            function(*arguments)
            found[key] = function(*arguments)
            report(len(found))
        return {key: found[key] for key in names}

    def call(self, what, function, *arguments):
        return self.results({0: what}, {0: (function, *arguments)})[0]

    def beginning(self, tasks):
        return lambda keys: list(self.results(keys, tasks).values())

    def finished(self, names, submit):
        return iter([(key, future) for key, future in zip(names, submit(list(names)))])


@pytest.fixture
def engine(monkeypatch):
    from colonnade.scaling.dask import triples

    monkeypatch.setattr(sorted_runs, "RUN_LINES", 150)
    return triples.engine_of(OneByOne())


def assert_same_bytes(paths, tmp_path, engine, **settings):
    settings = {"block_entries": 100, **settings}
    complete_triples(paths, tmp_path / "there", engine=engine, **settings)
    complete_triples(paths, tmp_path / "here", **settings)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    return co.Completion.load(tmp_path / "there")


@pytest.mark.parametrize("settings", [FIXED, {}], ids=["fixed", "auto"])
@pytest.mark.parametrize("is_ordered", [False, True], ids=["shuffled", "ordered"])
def test_the_bytes_of_the_local_engine(rng, tmp_path, engine, settings, is_ordered):
    given = triples_of(problem(rng, noise=0.1), None if is_ordered else rng)
    stored = assert_same_bytes(write_triples(tmp_path / "t.parquet", given), tmp_path, engine, **settings)
    assert stored.n_blocks > 5


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_labels(tmp_path, engine, labels, ending):
    rng = np.random.default_rng(5)
    given = triples_of(problem(rng), rng)
    for side, label in zip(("row", "column"), LABELS[labels]):
        given[side] = [label(int(k)) for k in given[side]]
    if labels == "floats" and ending == "csv":
        given["row"] = [f"{label:.0f}" for label in given["row"]]
    if ending == "parquet":
        path = write_triples(tmp_path / "t.parquet", given)
    else:
        path = tmp_path / "t.csv"
        csv.write_csv(pa.table(given), path)
    assert_same_bytes(path, tmp_path, engine, **FIXED)


def test_labels_that_do_not_occur_several_files_and_single_precision(rng, tmp_path, engine):
    M = problem(rng).astype(np.float32)
    given = triples_of(M, rng)
    given["row"], given["column"] = given["row"] * 2, given["column"] + (given["column"] > 40)
    (tmp_path / "x").mkdir()
    for k in range(3):
        write_triples(tmp_path / "x" / f"{k}.parquet", {name: column[k::3] for name, column in given.items()})
    stored = assert_same_bytes(tmp_path / "x", tmp_path, engine, **FIXED)
    assert stored.dtype == np.float32 and stored.row_names[-1] == "78" and stored.shape == (40, 90)


@pytest.mark.parametrize("how", ["mean", "last"])
def test_places_given_twice(rng, tmp_path, engine, how):
    given = triples_of(problem(rng), rng)
    again = rng.integers(0, given["row"].size, 30)
    given = {name: np.concatenate([column, column[again], column[again]]) for name, column in given.items()}
    given["value"][-60:] += rng.standard_normal(60)
    assert_same_bytes(write_triples(tmp_path / "t.parquet", given), tmp_path, engine, duplicates=how, **FIXED)


def test_a_shape_a_transposed_matrix_and_values_that_are_not_known(rng, tmp_path, engine):
    M = problem(rng)
    M[:, 10] = np.nan
    given = triples_of(M, rng)
    given = {"i": given["column"], "j": given["row"], "x": given["value"]}
    for side, more in (("i", 4), ("j", 3), ("x", np.nan)):
        given[side] = np.append(given[side], np.array([more] * 5, given[side].dtype))
    fields = {"row": "i", "column": "j", "value": "x", "transpose": True, "shape": (90, 40)}
    stored = assert_same_bytes(write_triples(tmp_path / "t.parquet", given), tmp_path, engine, **fields, **FIXED)
    assert stored.shape == (40, 90)


@pytest.mark.parametrize("kind", ["twice", "infinite", "negative", "null", "no full column", "text", "none"])
def test_bad_triples_have_the_messages_of_the_local_engine(rng, tmp_path, engine, kind):
    path = write_triples(tmp_path / "t.parquet", broken(rng, kind))
    with pytest.raises((ValueError, TypeError)) as expected:
        complete_triples(path, tmp_path / "here", block_entries=100, center=True)
    with pytest.raises((ValueError, TypeError)) as found:
        complete_triples(path, tmp_path / "there", block_entries=100, center=True, engine=engine)
    assert str(found.value) == str(expected.value)
    assert [found.name for found in tmp_path.iterdir()] == ["t.parquet"]


def test_blocks_are_cut_where_the_local_engine_cuts(monkeypatch):
    for module in ("cutting", "sorted_runs"):
        monkeypatch.setattr(f"colonnade.scaling.triples.{module}.MOST_COLUMNS", 7)
    for seed in range(50):
        rng = np.random.default_rng(seed)
        counts = rng.integers(0, 9, rng.integers(1, 60)) * rng.integers(0, 2, 1)[0] ** rng.integers(0, 2)
        columns = np.repeat(np.arange(counts.size), counts)
        batches = [Batch(part, part, part * 1.0) for part in np.array_split(columns, 5)]
        target = int(rng.integers(1, 30))
        expected = [lo for lo, _, _ in cut(batches, (9, counts.size), 0, target)] + [counts.size]
        np.testing.assert_array_equal(sorted_runs.cut_by_counts(counts, target), expected)


@pytest.mark.parametrize("high", [5, 10**6, 10**18])
def test_the_order_is_stable(rng, high):
    keys = [rng.integers(0, high, 3_000), rng.integers(0, high, 3_000)]
    np.testing.assert_array_equal(sorted_runs.order_of(keys), np.lexsort(keys[::-1]))
    np.testing.assert_array_equal(sorted_runs.order_of(keys[:1]), np.argsort(keys[0], kind="stable"))


def test_a_run_that_was_killed_goes_on_after_every_file(rng, tmp_path, engine, monkeypatch):
    from colonnade.files.results import checkpoints

    path = write_triples(tmp_path / "t.parquet", triples_of(problem(rng), rng), group=400)
    settings = {"block_entries": 300, **FIXED}
    complete_triples(path, tmp_path / "here", **settings)
    publish, n_killed = checkpoints.publish, 0

    class Killed(BaseException):
        pass

    while True:
        left = [11]

        def counted(*arguments, left=left):
            if not left[0]:
                raise Killed
            left[0] -= 1
            publish(*arguments)

        monkeypatch.setattr(checkpoints, "publish", counted)
        try:
            complete_triples(path, tmp_path / "there", engine=engine, resume=True, **settings)
            break
        except Killed:
            n_killed += 1
    assert n_killed > 4 and contents(tmp_path / "there") == contents(tmp_path / "here")


def test_files_in_a_store(rng, tmp_path, engine):
    pytest.importorskip("fsspec", reason="the extra remote is not installed")
    from colonnade._support.storage import Url

    path = write_triples(tmp_path / "t.parquet", triples_of(problem(rng), rng))
    Url("memory://cluster/t.parquet").write_bytes(path.read_bytes())
    settings = {"block_entries": 100, **FIXED}
    there = complete_triples("memory://cluster/t.parquet", "memory://cluster/out", engine=engine, **settings)
    here = complete_triples(path, tmp_path / "here", **settings)
    assert there.coefficients.tobytes() == here.coefficients.tobytes()
    blocks = {found.name: found.read_bytes() for found in (Url("memory://cluster/out")).rglob("*.npy")}
    expected = {found.name: found.read_bytes() for found in (tmp_path / "here").rglob("*.npy")}
    assert {name: hashlib.sha256(x).digest() for name, x in blocks.items()} == {
        name: hashlib.sha256(x).digest() for name, x in expected.items()
    }
    assert parquet.ParquetFile(path).metadata.num_row_groups > 3
    Url("memory://cluster").remove_tree()
