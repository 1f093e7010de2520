"""A disk that is full: the error names the file that was to be written, and nothing is left of it."""

import errno
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import colonnade as co
from colonnade import files, harness
from colonnade.experiments._results import write_atomically
from colonnade.interfaces.cli import _explained
from colonnade.interfaces.report import page
from colonnade.scaling.blocks import complete_triples

from made_triples import FIXED, frame_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A disk of 64 kB."""
    place = tmp_path_factory.mktemp("disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.fixture(scope="module")
def completion():
    """Of a matrix whose numbers need 160 kB, with long names."""
    rng = np.random.default_rng(0)
    M = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 100))
    M[:150, 50:] = np.nan
    names = [f"{k:0500}" for k in range(200)]
    o = co.Observations.from_dense(M, row_names=names, column_names=names[:100])
    return co.complete(o, **FIXED)


def refused(action, path, place):
    with pytest.raises(OSError) as failure:
        action()
    assert failure.value.errno == errno.ENOSPC and failure.value.filename == str(path)
    code, message = _explained(failure.value)
    assert code == 5 and str(path) in message
    assert os.listdir(place) == []


@pytest.mark.parametrize("name", ["f.npy", "f.npz", "f.csv", "f.tsv", "f.parquet", "f.zarr"])
@pytest.mark.parametrize("looked", [True, False], ids=["beforehand", "while it is written"])
def test_tables(small, completion, name, looked, monkeypatch):
    if not looked:
        monkeypatch.setattr(files.tables.writing, "refuse_without_room", lambda path, needed: None)
    refused(lambda: files.write(completion, small / name), small / name, small)


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_triples(small, name, tmp_path, monkeypatch):
    monkeypatch.setattr(files.tables.writing, "refuse_without_room", lambda path, needed: None)
    rng = np.random.default_rng(0)
    source = tmp_path / "t.parquet"
    frame_of(rng.standard_normal((100, 200))).to_parquet(source, index=False)
    completion = co.complete(co.read(source), **FIXED)
    refused(lambda: files.write(completion, small / name), small / name, small)


def test_other_files(small, completion, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "report_html", lambda completion, **given: "x" * 100_000)
    o = completion.observations
    asked = pd.DataFrame({"row": o.row_names[:200], "column": o.column_names[0]})
    asked.to_csv(tmp_path / "asked.csv", index=False)
    table = np.rec.array([(float(j),) for j in range(100)], names="score")
    answered = co.Observations.from_dense(np.ones((20_000, 1)), row_names=[f"t/{k}" for k in range(20_000)])
    for name, action in {
        "f.csv": lambda path: files.write_entries(completion, tmp_path / "asked.csv", path),
        "f.parquet": lambda path: files.write_observed(o, path),
        "g.csv": lambda path: files.write_scores(table, [f"{j:0900}" for j in range(100)], path),
        "f.html": lambda path: page.write_report(completion, path),
        "f.json": lambda path: harness.write_samples(answered, np.arange(20_000), path),
        "result": lambda path: completion.save(path),
    }.items():
        refused(lambda: action(small / name), small / name, small)  # noqa: B023


def test_an_experiment(small):
    with pytest.raises(OSError) as failure:
        write_atomically(small / "figure.csv", bytes(100_000))
    assert failure.value.filename == str(small / "figure.csv")
    assert list(small.iterdir()) == []


def test_a_run_by_blocks(small, tmp_path):
    """The name is that of a file in the folder where the run works, which is kept to be continued."""
    source = tmp_path / "t.parquet"
    frame_of(np.random.default_rng(0).standard_normal((100, 200))).to_parquet(source, index=False)
    with pytest.raises(OSError) as failure:
        complete_triples(source, small / "out", **FIXED)
    assert failure.value.errno == errno.ENOSPC
    assert failure.value.filename.startswith(str(small / "out.partial" / "blocks"))
    assert failure.value.filename.endswith(".npy")
    subprocess.run(["rm", "-r", small / "out.partial"], check=True)


def test_an_error_that_names_the_file_under_which_it_was_begun(tmp_path, completion, monkeypatch):
    """The user does not know the temporary name."""

    def fail(path, *arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(files.tables.writing, "write_arrays", fail)
    refused(lambda: files.write(completion, tmp_path / "f.npz"), tmp_path / "f.npz", tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_standard_output(option):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "colonnade", "plan", "--shape", "100", "100", "--rank", "3", *option]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 5 and "No space left on device: standard output" in done.stderr
    assert done.stderr.count("\n") == 1
