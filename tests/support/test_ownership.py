"""Files and folders of the user's are never removed, adopted or laid open; what killed runs have left is removed."""

import json
import os
import shutil
import stat
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import colonnade as co
from colonnade._support import atomic_writing
from colonnade._support.atomic_writing import new_file
from colonnade._support.ownership import begun_folder, locked
from colonnade.experiments import reproduce
from colonnade.files import write, write_observed
from colonnade.files.results import checkpoints
from colonnade.interfaces.report.page import write_report
from colonnade.scaling import block_solving
from colonnade.scaling.blocks import complete_triples

from made_triples import FIXED, contents, problem, triples_of, write_triples

BLOCKS = {"block_entries": 500, **FIXED}
LOCAL = "--engine", "local", "--rank", "3", "--center", "no", "--shrinkage", "0", "--refine", "0"


@pytest.fixture
def triples(folder):
    return write_triples(folder / "t.parquet", triples_of(problem(np.random.default_rng(0))))


def state(place):
    """Names, modes and contents of all that is in a folder, links as links."""
    found = {}
    for path in sorted(place.rglob("*")):
        kind = path.lstat().st_mode
        content = os.readlink(path) if stat.S_ISLNK(kind) else path.read_bytes() if stat.S_ISREG(kind) else None
        found[str(path.relative_to(place))] = kind, content
    return found


def a_folder(path, **files):
    path.mkdir()
    for name, content in files.items():
        (path / name.replace("_", ".")).write_text(content)


FOREIGN = {
    "empty folder": lambda path: a_folder(path),
    "folder with data": lambda path: a_folder(path, lock="", thesis_txt="years of work"),
    "folder with a run.json": lambda path: a_folder(path, run_json='{"epochs": 3, "settings": {}}', model="weights"),
    "folder with a broken run.json": lambda path: a_folder(path, run_json="{", model="weights"),
    "file": lambda path: path.write_text("years of work"),
    "link to a folder": lambda path: (a_folder(path.parent / "else", thesis="work"), path.symlink_to("else")),
    "link to a folder of ours": lambda path: (begun_folder(path, {}, path.parent / "else"), path.symlink_to("else")),
    "link to nothing": lambda path: path.symlink_to("nothing"),
}


@pytest.mark.parametrize("options", [(), ("--resume",), ("--force",), ("--force", "--resume")], ids=" ".join)
@pytest.mark.parametrize("kind", FOREIGN)
def test_what_has_the_name_of_the_working_folder_is_refused(triples, run, kind, options):
    FOREIGN[kind](triples.parent / "res.partial")
    before = state(triples.parent)
    code, out, err = run("complete", triples, "-o", "res", *LOCAL, *options)
    assert code == 5 and out == "" and err.count("\n") == 1
    assert "res.partial is not a folder of an unfinished run" in err and "or choose another name" in err
    assert state(triples.parent) == before


def test_neighbours_with_names_like_ours_are_left_alone(triples, tmp_path, monkeypatch):
    mine = ["res.replaced", "res.partial.removed", ".res.partial", ".res.12345678.partial", ".res.1234567g.partial"]
    for name in mine:
        a_folder(tmp_path / name, run_json='{"result": "res"}', thesis="work")
    (tmp_path / ".t.csv.12345678.partial").write_text("work")
    before = state(tmp_path)
    complete_triples(triples, tmp_path / "res", **BLOCKS)
    complete_triples(triples, tmp_path / "res", force=True, **BLOCKS)
    with pytest.raises(ValueError, match="rank"):
        complete_triples(triples, tmp_path / "res", force=True, **{**BLOCKS, "rank": 30})
    with new_file(tmp_path / "t.csv") as working:
        working.write_text("1")
    shutil.rmtree(tmp_path / "res")
    (tmp_path / "t.csv").unlink()
    assert state(tmp_path) == before


def test_force_a_kill_and_force_with_resume_leave_nothing(triples, run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    command = "complete", triples, "-o", "res", *LOCAL
    assert run(*command)[0] == 0
    before = state(triples.parent)
    with monkeypatch.context() as patch:
        patch.setattr(block_solving, "solve_block", interrupt)
        assert run(*command, "--force")[0] == 130
    assert (triples.parent / "res.partial").exists()
    assert run(*command, "--force", "--resume")[0] == 0
    assert state(triples.parent) == before
    assert run(*command, "--force")[0] == 0
    assert state(triples.parent) == before


def test_a_finished_run_removes_what_one_killed_at_its_beginning_has_left(triples, tmp_path):
    complete_triples(triples, tmp_path / "res", **BLOCKS)
    before = state(tmp_path)
    begun_folder(tmp_path / "res", {})
    complete_triples(triples, tmp_path / "res", force=True, resume=True, **BLOCKS)
    assert state(tmp_path) == before


def test_a_finished_run_leaves_an_unfinished_one_of_other_settings(triples, run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    command = "complete", triples, "-o", "res", *LOCAL
    assert run(*command)[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(block_solving, "solve_block", interrupt)
        assert run(*command, "--force", "--bounds", "0", "1")[0] == 130
    before = state(triples.parent)
    assert run(*command, "--resume")[0] == 0
    assert state(triples.parent) == before


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def private(path):
    path.chmod(0o700 if path.is_dir() else 0o600)
    return path


@pytest.mark.slow
def test_force_keeps_the_mode_through_every_door(folder):
    completion = co.complete(problem(np.random.default_rng(1)), rank=3)
    names = ["res.csv", "res.parquet", "res.npy", "res.npz", *(["res.zarr"] if find_spec("zarr") else [])]
    for name in names:
        write(completion, name)
        write(completion, private(folder / name), force=True)
    completion.save("res")
    completion.save(private(folder / "res"), force=True)
    write_report(completion, "r.html")
    write_report(completion, private(folder / "r.html"), force=True)
    write_observed(completion.observations, "o.csv")
    write_observed(completion.observations, private(folder / "o.csv"), force=True)
    for path in folder.iterdir():
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    assert len(os.listdir()) == len(names) + 3


def test_force_keeps_the_mode_of_a_result_by_blocks_from_the_beginning(triples, tmp_path):
    complete_triples(triples, tmp_path / "res", **BLOCKS)
    (tmp_path / "res").chmod(0o700)
    seen = []

    def look(*_):
        seen.append(mode(tmp_path / "res.partial"))

    complete_triples(triples, tmp_path / "res", force=True, progress=look, **BLOCKS)
    assert set(seen) == {0o700} and mode(tmp_path / "res") == 0o700


def test_a_new_file_has_the_usual_mode_and_is_made_where_nobody_else_looks(tmp_path):
    (tmp_path / "usual").write_text("")
    with new_file(tmp_path / "new") as working:
        working.write_text("")
        assert mode(working.parent) == 0o700
    assert mode(tmp_path / "new") == mode(tmp_path / "usual")


@pytest.mark.parametrize("kind, words", [("link", "it is a link"), ("pipe", "neither a file nor a folder")])
def test_force_replaces_neither_links_nor_pipes(folder, run, kind, words):
    np.save(folder / "t.npy", problem(np.random.default_rng(1)))
    (folder / "other.csv").write_text("years of work")
    if kind == "link":
        (folder / "res.csv").symlink_to("other.csv")
    else:
        os.mkfifo(folder / "res.csv")
    before = state(folder)
    code, _, err = run("complete", "t.npy", "-o", "res.csv", "--force")
    assert code == 5 and words in err and "res.csv" in err and err.count("\n") == 1 and state(folder) == before


def killed_while_writing(path):
    """The hidden folder that is left of a process that was killed while it wrote `path`."""
    left = begun_folder(path, {})
    (left / "content").write_text("half")
    return left


def test_the_next_run_removes_what_a_killed_one_has_left(tmp_path):
    path = tmp_path / "t.csv"
    left, beside = killed_while_writing(path), killed_while_writing(tmp_path / "other.csv")
    empty, begun = tmp_path / ".t.csv.00000000.partial", tmp_path / ".t.csv.00000001.partial"
    a_folder(empty)
    a_folder(begun, run_json="")
    works = begun_folder(tmp_path / "t.csv", {})
    assert not left.exists() and not empty.exists() and not begun.exists()
    with locked(works), new_file(path) as working:
        working.write_text("1")
    assert path.read_text() == "1" and works.exists() and beside.exists()
    with new_file(path, force=True) as working:
        working.write_text("2")
    assert sorted(os.listdir(tmp_path)) == sorted([beside.name, "t.csv"])


def test_a_result_returns_if_the_run_that_replaces_it_is_killed_in_between(tmp_path, monkeypatch):
    completion = co.complete(problem(np.random.default_rng(2)))
    completion.save(tmp_path / "res")
    before = contents(tmp_path / "res")
    with monkeypatch.context() as patch:
        patch.setattr(atomic_writing, "discard", lambda folder, path: None)
        patch.setattr(os, "rename", renaming_fails_for("content"))
        with pytest.raises(OSError, match="disk"):
            completion.save(tmp_path / "res", force=True)
    (left,) = os.listdir(tmp_path)
    assert left != "res"
    with pytest.raises(FileExistsError):
        completion.save(tmp_path / "res")
    assert contents(tmp_path / "res") == before and os.listdir(tmp_path) == ["res"]


def renaming_fails_for(name):
    def rename(old, new, original=os.rename):
        if os.path.basename(old) == name:
            raise OSError("the disk is gone")
        return original(old, new)

    return rename


def test_a_result_by_blocks_returns_if_it_cannot_be_replaced(triples, tmp_path, monkeypatch):
    complete_triples(triples, tmp_path / "res", **BLOCKS)
    before = contents(tmp_path / "res")

    def replace(old, new, original=os.replace):
        if str(new).endswith("res"):
            raise OSError("the disk is gone")
        return original(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(OSError, match="disk"):
            complete_triples(triples, tmp_path / "res", force=True, **BLOCKS)
    assert contents(tmp_path / "res") == before
    complete_triples(triples, tmp_path / "res", force=True, resume=True, **BLOCKS)
    assert contents(tmp_path / "res") == before and sorted(os.listdir(tmp_path)) == ["res", "t.parquet"]


def test_marks_in_a_result_that_are_not_ours_are_left_alone(triples, tmp_path):
    complete_triples(triples, tmp_path / "res", **BLOCKS)
    (tmp_path / "res" / "lock").write_text("mine")
    (tmp_path / "res" / "notes.unfinished").write_text("mine")
    before = state(tmp_path)
    complete_triples(triples, tmp_path / "res", resume=True, **BLOCKS)
    with pytest.raises(FileExistsError, match="other things"):
        complete_triples(triples, tmp_path / "res", force=True, **BLOCKS)
    assert state(tmp_path) == before


def test_a_zarr_folder_with_other_things_is_not_replaced(folder, run):
    zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")
    M = problem(np.random.default_rng(1))
    group = zarr.create_group(str(folder / "t.zarr"))
    for name in ("X", "years_of_work"):
        group.create_array(name, shape=M.shape, dtype=M.dtype)[:] = M
    before = state(folder)
    code, _, err = run("complete", "t.zarr", "--key", "X", "-o", "t.zarr", "--force")
    assert code == 5 and "folder with other things" in err and state(folder) == before


def test_experiments_leave_other_files_alone(tmp_path):
    for name in ("figure1.png", ".figure1.csv.partial"):
        (tmp_path / name).write_text("mine")
    before = state(tmp_path)
    with pytest.raises(ValueError, match="other files of their names"):
        reproduce("figure1", tmp_path, quick=True)
    assert state(tmp_path) == before


def test_the_record_of_a_run_says_for_what_it_is(triples, tmp_path):
    found = []

    def look(*_):
        found.append(json.loads((tmp_path / "res.partial" / "run.json").read_text()))

    complete_triples(triples, tmp_path / "res", progress=look, **BLOCKS)
    assert found[0]["format"] == "colonnade run 1" and found[0]["result"] == "res"
    assert checkpoints.partial_folder(tmp_path / "res").name == "res.partial"
    assert not pd.isna(co.Completion.load(tmp_path / "res").to_dense()).any()
