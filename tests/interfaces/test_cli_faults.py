"""What a run must survive, through the command line: exit codes, one line of explanation, nothing half-written."""

import errno
import os
import subprocess

import numpy as np
import pytest

import colonnade as co
from colonnade._support import ownership
from colonnade.scaling import block_solving, blocks

from bad_files import bad_files
from made_triples import contents, problem, triples_of, write_triples

LOCAL = "--engine", "local", "--rank", "3", "--center", "no", "--shrinkage", "0", "--refine", "0"


@pytest.fixture
def triples(folder, monkeypatch):
    """A file of triples in any order, which are completed by several blocks."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(blocks, "BLOCK_ENTRIES", 300)
    return write_triples(folder / "t.parquet", triples_of(problem(rng), rng))


@pytest.fixture
def expected(triples, run):
    """The files of an undisturbed run."""
    assert run("complete", triples, "-o", "expected", *LOCAL)[0] == 0
    return contents(triples.parent / "expected")


@pytest.mark.parametrize("name, content, words", [pytest.param(*case, id=case[0]) for case in bad_files()])
def test_bad_files(run, folder, name, content, words):
    (folder / name).write_bytes(content)
    for arguments in ([], ["-o", "out"], ["-o", "filled.npy"]):
        code, out, err = run("complete", name, *arguments)
        assert code == 3 and out == "" and name in err and err.startswith("Error: ") and err.count("\n") == 1
        assert os.listdir() == [name]


def test_files_that_are_larger_than_they_look(run, folder, monkeypatch):
    np.savez_compressed(folder / "b.npz", X=np.zeros((1000, 2000)))
    monkeypatch.setattr("colonnade.files.tables.kinds.memory_size", lambda: 10e6)
    code, _, err = run("complete", "b.npz")
    assert code == 3 and "this machine has 10.0 MB" in err and err.count("\n") == 1 and os.listdir() == ["b.npz"]


@pytest.mark.parametrize("kept", [0, 4, 1000, -1])
def test_truncated_triples(triples, run, kept):
    triples.write_bytes(triples.read_bytes()[:kept])
    named = "--row", "row", "--column", "column", "--value", "value"
    code, _, err = run("complete", triples, "-o", "out", *LOCAL, *named)
    assert code == 3 and "t.parquet is" in err and err.count("\n") == 1 and os.listdir() == ["t.parquet"]


@pytest.mark.parametrize("fail_at", [1, 4, 20, 40])
def test_a_full_disk_and_resume(triples, expected, run, monkeypatch, fail_at):
    count = []

    def fsync(handle, original=os.fsync):
        count.append(handle)
        if len(count) >= fail_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        code, out, err = run("complete", triples, "-o", "out", *LOCAL)
    assert code == 5 and out == "" and "No space left on device" in err and err.count("\n") == 1
    assert not os.path.exists("out") and not list(triples.parent.rglob("*.unfinished"))
    assert run("complete", triples, "-o", "out", *LOCAL, "--resume")[0] == 0
    assert contents(triples.parent / "out") == expected


@pytest.fixture
def locked(folder):
    """A folder that cannot be written to, also by root."""
    place = folder / "locked"
    place.mkdir(mode=0o500)
    if not os.access(place, os.W_OK):
        yield place
        return
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("root may write everywhere, and has no right to mount a disk that is read-only")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_folder_that_cannot_be_written_to(triples, locked, run):
    for arguments in (["-o", "locked/out", *LOCAL], ["-o", "locked/out"], ["-o", "locked/filled.parquet"]):
        code, _, err = run("complete", triples, *arguments)
        assert code == 5 and "cannot be written to" in err and err.count("\n") == 1 and not os.listdir(locked)


def test_interrupted_runs_are_continued_as_they_were_begun_or_refused(triples, expected, run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(block_solving, "solve_block", interrupt)
        code, out, err = run("complete", triples, "-o", "out", *LOCAL)
    assert code == 130 and not out and "kept in out.partial" in err and "--resume" in err
    before, facts = contents(triples.parent / "out.partial"), triples.stat()
    arguments = "complete", triples, "-o", "out", *LOCAL

    def refused(words, *more):
        code, out, err = run(*arguments, *more)
        assert code == 5 and out == "" and words in err and err.count("\n") == 1
        assert contents(triples.parent / "out.partial") == before and not os.path.exists("out")

    refused("an unfinished run is in")
    refused("begun with other settings", "--resume", "--bounds", "0", "1")
    os.utime(triples)
    refused("begun with other input", "--resume")
    os.utime(triples, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with ownership.locked(triples.parent / "out.partial"):
        refused("another run works in", "--resume")
    assert run(*arguments, "--resume")[0] == 0
    assert contents(triples.parent / "out") == expected


def test_sizes_of_blocks_and_threads_change_no_number(triples, run, monkeypatch):
    made = []
    for entries, threads in ((300, "1"), (300, "2"), (10_000, "2")):
        monkeypatch.setattr(blocks, "BLOCK_ENTRIES", entries)
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        assert run("complete", triples, "-o", f"out{len(made)}", "--engine", "local")[0] == 0
        made.append(co.Completion.load(f"out{len(made)}"))
    assert made[0].n_blocks > made[2].n_blocks == 1
    assert len({(one.basis.tobytes(), one.coefficients.tobytes()) for one in made}) == 1
