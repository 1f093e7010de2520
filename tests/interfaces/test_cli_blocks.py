"""`colonnade complete` by blocks, as a user runs it."""

import json

import numpy as np
import pandas as pd
import pytest

import colonnade as co
from colonnade.interfaces.cli._by_blocks import Size

from made_triples import contents, problem, triples_of, write_triples
from problems import read_csv_exactly


@pytest.fixture
def triples(folder):
    rng = np.random.default_rng(0)
    return write_triples(folder / "t.parquet", triples_of(problem(rng), rng))


def test_a_result_by_blocks_and_asked_entries(triples, folder, run):
    pd.DataFrame({"row": [3, 0], "column": [7, 80]}).to_csv(folder / "wanted.csv", index=False)
    arguments = "complete", triples, "--engine", "local", "--entries", "wanted.csv", "-o", "out", "-o", "answers.csv"
    code, out, err = run(*arguments)
    assert code == 0 and err == "" and "Read: triples of t.parquet, in 1 block of" in out, err
    completion = co.Completion.load("out")
    answers = read_csv_exactly("answers.csv")
    np.testing.assert_array_equal(answers.value, completion.entries([3, 0], [7, 80]))
    assert list(answers) == ["row", "column", "value", "low", "high"]
    before = contents(folder / "out")
    code, out, err = run(*arguments)
    assert code == 2 and "--force" in err and contents(folder / "out") == before
    code, out, err = run("complete", triples, "--engine", "local", "-o", "out", "--force", "--json")
    summary = json.loads(out)
    assert code == 0 and summary["shape"] == [40, 90] and summary["n_full_columns"] == 8 and summary["rank"] == 3
    assert contents(folder / "out") == before


def test_the_engine_goes_by_the_memory_limit(triples, run, monkeypatch):
    from colonnade.scaling import dry_run

    code, out, _ = run("complete", triples, "-o", "one", "--memory-limit", "1GB")
    assert code == 0 and "blocks" not in out and isinstance(co.Completion.load("one"), co.Completion)
    monkeypatch.setattr(dry_run, "BYTES_IN_MEMORY", 10**9)
    code, out, _ = run("complete", triples, "-o", "two", "--memory-limit", "1GB")
    assert code == 0 and "in 1 block of" in out
    np.testing.assert_allclose(co.Completion.load("one").to_dense(), co.Completion.load("two").to_dense(), rtol=1e-9)
    code, out, _ = run("complete", triples, "-o", "three", "--memory-limit", "1GB", "--engine", "memory")
    assert code == 0 and "blocks" not in out


def test_dry_run_writes_nothing(triples, folder, run):
    code, out, err = run("complete", triples, "--dry-run", "--rank", "3")
    assert code == 0 and err == ""
    for words in ("1,304 entries of a 40 x 90 matrix, not in order", "Memory: at most", "Disk: about", "Time: about"):
        assert words in out
    assert "filled in memory" in out and [path.name for path in folder.iterdir()] == ["t.parquet"]
    code, out, err = run("complete", triples, "--dry-run", "--engine", "local")
    assert code == 0 and "in blocks of columns" in out and [path.name for path in folder.iterdir()] == ["t.parquet"]
    pd.read_parquet(triples).to_csv(folder / "t.csv", index=False)
    code, out, err = run("complete", "t.csv", "--dry-run")
    assert code == 0 and "shape not known yet" in out


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["t.parquet", "--engine", "local", "-o", "filled.parquet"], 2, "writes one folder"),
        (["wide.csv", "--engine", "local"], 2, "needs triples"),
        (["t.parquet", "--engine", "local", "--missing", "-9"], 2, "--missing needs data that fit into memory"),
        (["wide.csv", "--resume"], 2, "--resume needs triples"),
        (["t.parquet", "--memory-limit", "much"], 2, "not a size"),
        (["t.parquet", "--memory-limit", "1MB"], 3, "memory_limit must be"),
        (["t.parquet", "--engine", "local", "--rank", "9"], 3, "from 1 to 8"),
        (["t.parquet", "--engine", "local", "-o", "nowhere/out"], 5, "nowhere"),
    ],
)
def test_wrong_usage(triples, folder, run, arguments, code, words):
    (folder / "wide.csv").write_text("a,b\n1,2\n3,\n")
    found, _, err = run("complete", *arguments)
    assert found == code and words in err and len(err.splitlines()) == 1, err
    assert {path.name for path in folder.iterdir()} == {"t.parquet", "wide.csv"}


def test_sizes():
    for text, expected in {"6GB": 6e9, "500 MB": 5e8, "1.5g": 1.5e9, "2GiB": 2 * 2**30, "1000": 1000}.items():
        assert Size().convert(text, None, None) == pytest.approx(expected)


@pytest.mark.slow
def test_the_room_on_the_disk_is_estimated_well(tmp_path):
    from colonnade.scaling.dry_run import estimate
    from colonnade.scaling.triples.labels import TripleFiles

    rng = np.random.default_rng(0)
    M = problem(rng, m=60, n=2_000, n_full=25, s=30, noise=0.1)
    path = write_triples(tmp_path / "t.parquet", triples_of(M), group=100_000)
    co.complete_triples(path, tmp_path / "out", rank=20, center=False, shrinkage=0, refine=0)
    used = sum(part.stat().st_size for part in (tmp_path / "out").rglob("*") if part.is_file())
    assert estimate(TripleFiles((path,)), rank=20).disk == pytest.approx(used, rel=0.2)
