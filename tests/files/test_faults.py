"""What a long run must survive: failing disks, kill -9, signals, changed input, damaged files. Tested for real."""

import errno
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import colonnade as co
from colonnade._support.ownership import MARKS
from colonnade.files.results import checkpoints
from colonnade.scaling.blocks import complete_triples

from made_triples import FIXED, contents, problem, triples_of, write_triples

BLOCKS = {"block_entries": 500, **FIXED}


@pytest.fixture(scope="module")
def ordered(tmp_path_factory):
    """Triples in order, and the bytes of an undisturbed run."""
    return undisturbed(tmp_path_factory.mktemp("ordered"), triples_of(problem(np.random.default_rng(0))))


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory):
    rng = np.random.default_rng(1)
    return undisturbed(tmp_path_factory.mktemp("shuffled"), triples_of(problem(rng, n=400), rng))


def undisturbed(folder, triples):
    path = write_triples(folder / "t.parquet", triples)
    complete_triples(path, folder / "out", **BLOCKS)
    return path, contents(folder / "out")


class Disk:
    """Fails the N-th time that somebody writes, renames or brings something to the disk."""

    def __init__(self, monkeypatch, fail_at):
        self.count, self.fail_at, self._lock = 0, fail_at, threading.Lock()
        monkeypatch.setattr(os, "replace", self.failing(os.replace))
        monkeypatch.setattr(os, "fsync", self.failing(os.fsync))
        monkeypatch.setattr(checkpoints, "open", self.open, raising=False)

    def failing(self, function):
        def call(*arguments):
            with self._lock:
                self.count += 1
                if self.count == self.fail_at:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*arguments)

        return call

    def open(self, path, mode="r"):
        return FailingFile(open(path, mode), self) if "w" in mode else open(path, mode)


class FailingFile:
    def __init__(self, file, disk):
        self._file, self.write = file, disk.failing(file.write)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


@pytest.mark.slow
def test_any_write_rename_or_sync_may_fail(ordered, tmp_path):
    path, expected = ordered
    fail_at, is_complete = 0, False
    while not is_complete:
        fail_at += 1
        out = tmp_path / f"out{fail_at}"
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, fail_at)
            try:
                complete_triples(path, out, **BLOCKS)
                is_complete = disk.count < fail_at
            except OSError as error:
                assert error.errno == errno.ENOSPC
        assert contents(out) == expected if out.exists() else not is_complete
        assert not list(tmp_path.rglob("*.unfinished"))
        complete_triples(path, out, resume=True, **BLOCKS)
        assert contents(out) == expected
        assert [found.name for found in tmp_path.iterdir()] == [out.name]
        shutil.rmtree(out)
    assert fail_at > 60


def test_a_full_disk(ordered, tmp_path):
    path, expected = ordered
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], capture_output=True).returncode:
        pytest.skip("no right to mount a small disk; the test above fails writes one by one")
    try:
        with pytest.raises(OSError, match="No space left"):
            complete_triples(path, small / "out", **BLOCKS)
        assert not (small / "out").exists() and not list(small.rglob("*.unfinished"))
        subprocess.run(["mount", "-o", "remount,size=4m", small], check=True)
        complete_triples(path, small / "out", resume=True, **BLOCKS)
        assert contents(small / "out") == expected
    finally:
        subprocess.run(["umount", small], check=True)


def work(path, out):
    complete_triples(path, out, resume=True, **BLOCKS)


@pytest.mark.slow
def test_twenty_times_kill_9(shuffled, tmp_path):
    path, expected = shuffled
    rng = np.random.default_rng()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["colonnade.scaling.blocks", "colonnade.model.kernels.column_kernels", "duckdb", "pyarrow.parquet"]
    )
    out, kills, longest = tmp_path / "out", 0, 1.0
    while kills < 20:
        process = context.Process(target=work, args=(path, out))
        start = time.monotonic()
        process.start()
        process.join(rng.uniform(0, longest))
        if process.is_alive():
            process.kill()
            kills += 1
        else:
            longest = min(longest, time.monotonic() - start)
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        if out.exists():
            complete_triples(path, out, resume=True, **BLOCKS)
            assert contents(out) == expected
            shutil.rmtree(out)
    complete_triples(path, out, resume=True, **BLOCKS)
    assert contents(out) == expected


@pytest.mark.parametrize("stage", ["grouping", "learning", "solving"])
def test_interrupted_in_any_stage(ordered, tmp_path, stage):
    path, expected = ordered

    def interrupt(now, done, total):
        if now == stage:
            raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            complete_triples(path, tmp_path / "out", resume=True, progress=interrupt, **BLOCKS)
        assert not (tmp_path / "out").exists()
    with pytest.raises(FileExistsError, match="--resume"):
        complete_triples(path, tmp_path / "out", **BLOCKS)
    complete_triples(path, tmp_path / "out", resume=True, **BLOCKS)
    assert contents(tmp_path / "out") == expected


def interrupted(path, out, stage="solving"):
    """A run that was stopped in this stage."""

    def interrupt(now, done, total):
        if now == stage and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        complete_triples(path, out, progress=interrupt, **BLOCKS)
    return out.with_name(out.name + ".partial")


def test_changed_input_and_settings_are_refused(shuffled, tmp_path):
    path = Path(shutil.copy2(shuffled[0], tmp_path / "t.parquet"))
    partial = interrupted(path, tmp_path / "out")
    before = contents(partial)
    for change in ({"rank": 2}, {"center": True}, {"bounds": (0, 1)}, {"duplicates": "mean"}, {"block_entries": 50}):
        with pytest.raises(FileExistsError, match="begun with other"):
            complete_triples(path, tmp_path / "out", resume=True, **{**BLOCKS, **change})
    os.utime(path)
    with pytest.raises(FileExistsError, match="other input"):
        complete_triples(path, tmp_path / "out", resume=True, **BLOCKS)
    facts = path.stat()
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with pytest.raises(FileExistsError, match="other input"):
        complete_triples(path, tmp_path / "out", resume=True, **BLOCKS)
    assert contents(partial) == before


def test_input_that_changes_while_it_is_read(shuffled, tmp_path):
    path = Path(shutil.copy2(shuffled[0], tmp_path / "t.parquet"))

    def touch(stage, done, total):
        os.utime(path)

    with pytest.raises(ValueError, match="has changed while it was read"):
        complete_triples(path, tmp_path / "out", progress=touch, **BLOCKS)
    assert [found.name for found in tmp_path.iterdir()] == ["t.parquet"]


def killed_at_its_very_end(path, out):
    """A run that replaces a result, and has no time to remove its marks and the old result."""

    def die(out):
        raise SystemExit

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(checkpoints, "remove_marks", die)
        complete_triples(path, out, force=True, **BLOCKS)
    assert all((out / name).exists() for name in MARKS)


def test_two_runs_into_one_folder(ordered, tmp_path):
    path, expected = ordered
    refused = []

    def second_run(stage, done, total):
        if stage == "solving" and not refused:
            with pytest.raises(FileExistsError, match="another run works in") as found:
                complete_triples(path, tmp_path / "out", resume=True, **BLOCKS)
            refused.append(found)

    complete_triples(path, tmp_path / "out", progress=second_run, **BLOCKS)
    assert refused and contents(tmp_path / "out") == expected
    with pytest.raises(FileExistsError, match="exists"):
        complete_triples(path, tmp_path / "out", **BLOCKS)
    complete_triples(path, tmp_path / "out", resume=True, **BLOCKS)  # the same run, complete already
    complete_triples(path, tmp_path / "out", force=True, **BLOCKS)
    assert contents(tmp_path / "out") == expected
    for again in ({"resume": True}, {"force": True}):
        killed_at_its_very_end(path, tmp_path / "out")
        assert np.isfinite(co.Completion.load(tmp_path / "out").to_dense()).all()
        complete_triples(path, tmp_path / "out", **again, **BLOCKS)
        assert contents(tmp_path / "out") == expected and os.listdir(tmp_path) == ["out"]
    (tmp_path / "out" / "mine.txt").write_text("not ours")
    with pytest.raises(FileExistsError, match="other things"):
        complete_triples(path, tmp_path / "out", force=True, **BLOCKS)


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "truncated":
        content = content[: len(content) // 2]
    elif how == "flipped":
        content[-1 - len(content) // 3] ^= 4
    else:  # a header that declares 10 TB
        content = content.replace(b"'shape': (", b"'shape': (1250000000000, ")
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["truncated", "flipped", "enormous"])
def test_damage_to_a_result_is_found(ordered, tmp_path, how):
    path, expected = ordered
    complete_triples(path, tmp_path / "out", **BLOCKS)
    for name in expected:
        file = tmp_path / "out" / name
        whole = file.read_bytes()
        damage(file, how)
        if file.read_bytes() == whole:  # facts.json has no such header
            continue
        with pytest.raises(ValueError, match="damaged"):
            co.Completion.load(tmp_path / "out").to_dense()
        file.write_bytes(whole)
    assert np.isfinite(co.Completion.load(tmp_path / "out").to_dense()).all()


@pytest.mark.parametrize("how", ["truncated", "flipped"])
def test_damage_to_an_unfinished_run_is_mended(shuffled, tmp_path, how):
    path, expected = shuffled
    partial = interrupted(path, tmp_path / "out")
    for file in [partial / "basis.npy", *sorted((partial / "blocks").glob("*.npy"))[::3]]:
        damage(file, how)
    complete_triples(path, tmp_path / "out", resume=True, **BLOCKS)
    assert contents(tmp_path / "out") == expected


@pytest.mark.parametrize("kept", [0, 4, 1000, -1])
def test_truncated_input(shuffled, tmp_path, kept):
    path = tmp_path / "t.parquet"
    path.write_bytes(shuffled[0].read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"t\.parquet is (empty|damaged|not parquet)"):
        complete_triples(path, tmp_path / "out", **BLOCKS)
    assert [found.name for found in tmp_path.iterdir()] == ["t.parquet"]


def test_folders_that_cannot_be_written(ordered, tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        complete_triples(ordered[0], tmp_path / "nowhere" / "out", **BLOCKS)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OSError):
        complete_triples(ordered[0], file / "out", **BLOCKS)


def command(path, out, **environment):
    settings = ["--rank", "3", "--center", "no", "--shrinkage", "0", "--refine", "0", "--engine", "local"]
    settings += ["--resume", "-o", str(out)]
    return subprocess.Popen(
        [sys.executable, "-m", "colonnade", "complete", str(path), *settings],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def larger(tmp_path_factory):
    """Triples that take a second or two, and the bytes of a run with one thread in another locale."""
    folder, rng = tmp_path_factory.mktemp("larger"), np.random.default_rng(2)
    path = write_triples(folder / "t.parquet", triples_of(problem(rng, m=500, n=8_000, s=60), rng), 100_000)
    process = command(path, folder / "out", OMP_NUM_THREADS="1", LC_ALL="C", PYTHONUTF8="0")
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert "Verdict: not computed for results in blocks" in out and "Written:" in out and err == ""
    return path, contents(folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_signals_stop_the_command_and_resume_goes_on(larger, tmp_path, number, code):
    path, expected = larger
    process = command(path, tmp_path / "out")
    while not (tmp_path / "out.partial").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(np.random.default_rng().uniform(0, 1))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    marks = [name for name in MARKS if (tmp_path / "out" / name).exists()]
    if (tmp_path / "out").exists() and not marks:  # it was quicker
        assert contents(tmp_path / "out") == expected
        return
    # If code run by exec was interrupted, Python ends by the signal itself, for which shells say 130 as well.
    assert process.returncode == code or process.returncode == -signal.SIGINT == -number, err
    assert len(err.split("Interrupted")) == 1 + (number == signal.SIGINT) and "Traceback" not in err
    process = command(path, tmp_path / "out")
    process.communicate(timeout=100)
    assert process.returncode == 0
    assert contents(tmp_path / "out") == expected


def test_a_forked_process_computes_the_same(ordered, tmp_path):
    path, expected = ordered
    co.complete(problem(np.random.default_rng(3)))  # BLAS and the compiled loops have run
    process = multiprocessing.get_context("fork").Process(target=work, args=(path, tmp_path / "out"))
    process.start()
    process.join(60)
    if process.is_alive():
        process.kill()
    assert process.exitcode == 0 and contents(tmp_path / "out") == expected


def test_facts_say_what_was_run(ordered):
    path, _ = ordered
    facts = json.loads((path.parent / "out" / "facts.json").read_text())
    assert facts["run"]["input"][0]["size"] == path.stat().st_size and facts["shape"] == [40, 90]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (1,), (1, 4), (4, 1), (5, 4)])
def test_an_array_is_read_back_whole_whatever_its_shape(tmp_path, shape):
    array = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    path = tmp_path / "array.npy"
    checkpoints.publish_array(path, array)
    for mapped in (False, True):
        found = checkpoints.read_array(path, checkpoints.checksum(array), mapped=mapped)
        assert found.shape == shape and found.tobytes() == array.tobytes()
        assert isinstance(found, np.memmap) == (mapped and array.size > 0)  # an empty file cannot be mapped
