"""Out of core: the numbers of `complete`, whatever the order of the triples, the size of the blocks and the threads."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from threadpoolctl import threadpool_limits

import colonnade as co
from colonnade.scaling.block_solving import solve_block
from colonnade.scaling.blocks import complete_triples

from made_triples import FIXED, LABELS, broken, contents, problem, triples_of, write_triples


def in_memory(path, **settings):
    with threadpool_limits(1, user_api="blas"):
        return co.complete(co.read(path), method="full columns", **settings)


@pytest.mark.parametrize("settings", [FIXED, {}], ids=["fixed", "auto"])
def test_the_numbers_are_those_of_complete(rng, tmp_path, settings):
    path = write_triples(tmp_path / "t.parquet", triples_of(problem(rng, noise=0.1), rng))
    stored, whole = complete_triples(path, tmp_path / "out", block_entries=100, **settings), in_memory(path, **settings)
    assert stored.n_blocks > 5
    assert stored.coefficients.tobytes() == whole.coefficients.tobytes()
    assert stored.basis.tobytes() == whole.basis.tobytes()
    np.testing.assert_array_equal(stored.status, whole.status)
    for name in ("indptr", "rows", "values", "full_columns"):
        np.testing.assert_array_equal(getattr(stored.observations, name), getattr(whole.observations, name))
    assert stored.choices == whole.choices
    assert stored.penalty.tobytes() == whole.penalty.tobytes()


def test_a_stored_completion_answers_like_one_in_memory(rng, tmp_path):
    M = problem(rng, noise=0.1)
    path = write_triples(tmp_path / "t.parquet", triples_of(M, rng))
    complete_triples(path, tmp_path / "out", block_entries=100, bounds=(-3, 3))
    stored, whole = co.Completion.load(tmp_path / "out"), in_memory(path, bounds=(-3, 3))
    m, n = M.shape
    rows, columns = rng.integers(0, m, 300), rng.integers(0, n, 300)
    which = rng.permutation(n)[:20]
    rounding = {"rtol": 0, "atol": 1e-14 * np.abs(M[~np.isnan(M)]).max()}  # of products of other shapes
    np.testing.assert_allclose(stored.columns(which), whole.columns(which), **rounding)
    np.testing.assert_array_equal(stored.entries(rows, columns), whole.entries(rows, columns))
    np.testing.assert_allclose(stored.to_dense(), whole.to_dense(), **rounding)
    for ours, theirs in zip(stored.interval(rows, columns), whole.interval(rows, columns)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(stored.column_means(), whole.column_means()):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    certificates, expected = stored.certificates(), whole.certificates()
    for field in ("column", "n_observed", "verdict"):
        np.testing.assert_array_equal(certificates[field], expected[field])
    np.testing.assert_allclose(certificates.residual, expected.residual, rtol=1e-9)
    assert "in " in repr(stored) and "blocks" in repr(stored)
    stored.save(tmp_path / "again")
    np.testing.assert_array_equal(co.Completion.load(tmp_path / "again").to_dense(), whole.to_dense())


def test_means_are_calibrated_on_full_columns_of_all_blocks(rng, tmp_path, monkeypatch):
    path = write_triples(tmp_path / "t.parquet", triples_of(problem(rng, n_full=30, noise=0.5), rng))
    stored, whole = complete_triples(path, tmp_path / "out", block_entries=100), in_memory(path)
    full = whole.observations.full_matrix()
    np.testing.assert_array_equal(stored.accuracy.calibration_columns().observations.full_matrix(), full)
    for ours, theirs in zip(stored.column_means(), whole.column_means()):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr("colonnade.uncertainty.accuracy.MOST_FULL", 4)
    np.testing.assert_array_equal(
        stored.accuracy.calibration_columns().observations.full_matrix(), full[:, [0, 9, 19, 29]]
    )


@pytest.mark.parametrize("penalised", [False, True])
def test_a_column_has_the_same_bytes_in_any_block_and_with_any_threads(rng, penalised):
    M = problem(rng, n=200, noise=0.1)
    M[:, 50:80] = np.where(np.isnan(M[:, [50]]), np.nan, rng.standard_normal((40, 30)))  # these share their rows
    o = co.Observations.from_dense(M)
    space = co.fit_column_space(o, rank=5)
    penalty = np.linspace(0.1, 1, 5) if penalised else np.zeros(5)
    whole, status = solve_block(space, penalty, o, typical=12)
    for size in (1, 7, 64):
        for lo in range(0, 200, size):
            columns = np.arange(lo, min(lo + size, 200))
            block = co.Observations.from_dense(M[:, columns])
            part, codes = solve_block(space, penalty, block, typical=12, n_threads=1 + lo % 2)
            assert part.tobytes() == whole[columns].tobytes()
            np.testing.assert_array_equal(codes, status[columns])


def test_order_of_the_triples_and_their_files_change_no_byte(rng, tmp_path):
    M = problem(rng)
    made = []
    for k, given in enumerate((triples_of(M), triples_of(M, rng))):
        path = write_triples(tmp_path / f"{k}.parquet", given)
        made.append(complete_triples(path, tmp_path / f"out{k}", block_entries=100, **FIXED))
    folder = tmp_path / "several"
    folder.mkdir()
    given = triples_of(M, rng)
    for k in range(3):
        write_triples(folder / f"{k}.parquet", {name: column[k::3] for name, column in given.items()})
    made.append(complete_triples(folder, tmp_path / "out2", block_entries=100, **FIXED))
    trees = [contents(tmp_path / f"out{k}") for k in range(3)]
    facts = [json.loads((tmp_path / f"out{k}" / "facts.json").read_text()) for k in range(3)]
    for tree, fact in zip(trees, facts):
        del tree["facts.json"], fact["run"], fact["sha256_of_facts"]
    assert trees[0] == trees[1] == trees[2] and facts[0] == facts[1] == facts[2]


@pytest.mark.slow
def test_size_of_blocks_and_memory_change_no_number(rng, tmp_path):
    path = write_triples(tmp_path / "t.parquet", triples_of(problem(rng), rng))
    sizes = ({"block_entries": 1}, {"block_entries": 77, "memory_limit": 6e8}, {"memory_limit": 2e9}, {})
    made = [complete_triples(path, tmp_path / f"out{k}", **size, **FIXED) for k, size in enumerate(sizes)]
    assert made[0].n_blocks == 90 and made[3].n_blocks == 1
    assert len({one.coefficients.tobytes() for one in made}) == 1
    assert contents(tmp_path / "out2") == contents(tmp_path / "out3")


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_labels_are_read_like_colonnade_read_does(tmp_path, labels, ending):
    rng = np.random.default_rng(5)
    given = triples_of(problem(rng), rng)
    for side, label in zip(("row", "column"), LABELS[labels]):
        given[side] = [label(int(k)) for k in given[side]]
    path = tmp_path / f"t.{ending}"
    if ending == "parquet":
        write_triples(path, given)
    else:
        csv.write_csv(pa.table(given), path)
    if labels == "floats" and ending == "csv":
        given["row"] = [f"{label:.0f}" for label in given["row"]]
        csv.write_csv(pa.table(given), path, csv.WriteOptions(quoting_style="none"))
    stored, whole = complete_triples(path, tmp_path / "out", block_entries=100, **FIXED), in_memory(path, **FIXED)
    for name in ("indptr", "rows", "values", "row_names", "column_names"):
        np.testing.assert_array_equal(getattr(stored.observations, name), getattr(whole.observations, name))
    assert stored.coefficients.tobytes() == whole.coefficients.tobytes()


def test_fields_shape_and_transpose(rng, tmp_path):
    M = problem(rng)
    M[:, 10] = np.nan
    given = triples_of(M, rng)
    path = write_triples(tmp_path / "t.parquet", {"i": given["column"], "j": given["row"], "x": given["value"]})
    stored = complete_triples(
        path, tmp_path / "out", row="i", column="j", value="x", transpose=True, shape=(90, 40), **FIXED
    )
    assert stored.shape == (40, 90)
    expected = co.complete(M, **FIXED)
    np.testing.assert_allclose(stored.to_dense(), expected.to_dense(), rtol=1e-9, atol=1e-9)
    assert co.Status(stored.status[10]) is co.Status.NO_OBSERVATION


def test_values_that_are_not_known_and_single_precision(rng, tmp_path):
    M = problem(rng).astype(np.float32)
    given = triples_of(M, rng)
    for side, more in (("row", 3), ("column", 4), ("value", np.nan)):
        given[side] = np.append(given[side], np.array([more] * 5, given[side].dtype))
    path = write_triples(tmp_path / "t.parquet", given)
    stored = complete_triples(path, tmp_path / "out", block_entries=100)
    assert stored.dtype == np.float32 and stored.coefficients.dtype == np.float32
    np.testing.assert_array_equal(stored.observations.values, co.Observations.from_dense(M).values)


@pytest.mark.parametrize("how", ["mean", "last"])
def test_places_given_twice(rng, tmp_path, how):
    given = triples_of(problem(rng), rng)
    again = rng.integers(0, given["row"].size, 30)
    given = {name: np.concatenate([column, column[again], column[again]]) for name, column in given.items()}
    given["value"][-60:] += rng.standard_normal(60)
    path = write_triples(tmp_path / "t.parquet", given)
    stored = complete_triples(path, tmp_path / "out", duplicates=how, block_entries=100, **FIXED)
    np.testing.assert_array_equal(stored.observations.values, co.read(path, duplicates=how).values)


@pytest.mark.parametrize(
    "kind, message",
    {
        "twice": "3 entries are given twice, the first at row",
        "infinite": r"is inf \(2 infinite in all\)",
        "negative": "negative, the least is -3",
        "null": "'column' are empty",
        "no full column": r"no column is known in all.*Leave out center",
        "text": "'value' must hold numbers",
        "none": "has no entry",
    }.items(),
)
def test_bad_triples_are_refused_and_nothing_is_left(rng, tmp_path, kind, message):
    path = write_triples(tmp_path / "t.parquet", broken(rng, kind))
    with pytest.raises((ValueError, TypeError), match=message):
        complete_triples(path, tmp_path / "out", block_entries=100, center=True)
    assert [found.name for found in tmp_path.iterdir()] == ["t.parquet"]


def test_bad_arguments(rng, tmp_path):
    path = write_triples(tmp_path / "t.parquet", triples_of(problem(rng), rng))
    for wrong, message in (
        ({"rank": 9}, "from 1 to 8"),
        ({"memory_limit": 1e6}, "memory_limit must be"),
        ({"block_entries": 0}, "block_entries must be"),
        ({"value": "x"}, "three different columns"),
        ({"row": "a", "column": "b", "value": "c"}, "has no column 'a'"),
        ({"random_state": 1.5}, "random_state must be"),
        ({"shape": (10, 10)}, "whole numbers in 0..9"),
    ):
        with pytest.raises((ValueError, TypeError, IndexError), match=message):
            complete_triples(path, tmp_path / "out", **wrong)
    assert [found.name for found in tmp_path.iterdir()] == ["t.parquet"]


def test_every_column_full(tmp_path):
    M = np.arange(12.0).reshape(3, 4)
    stored = complete_triples(write_triples(tmp_path / "t.parquet", triples_of(M)), tmp_path / "out")
    np.testing.assert_array_equal(stored.to_dense(), M)
