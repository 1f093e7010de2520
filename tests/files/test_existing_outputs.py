"""An output that exists is kept, and refused before the input is read."""

import numpy as np
import pytest

import colonnade as co
from colonnade import files

MEMORY = "--engine", "memory"


@pytest.mark.parametrize("broken_link", [False, True])
@pytest.mark.parametrize(
    ("arguments", "name", "code"),
    [
        (["complete", "broken.npy", *MEMORY, "-o"], "old.csv", 2),
        (["complete", "broken.npy", *MEMORY, "-o"], "old", 2),
        (["complete", "broken.npy", *MEMORY, "-o", "new.csv", "--scores"], "old.csv", 2),
        (["complete", "broken.npy", *MEMORY, "-o", "new.csv", "--report"], "old.html", 2),
        (["report", "broken.npy", "-o"], "old.html", 2),
        (["compare", "broken.npy", "--plot"], "old.png", 2),
        (["demo", "--out"], "old.png", 2),
        (["harness", "read", "broken.npy", "-o"], "old.csv", 5),
        (["harness", "select", "broken.npy", "-k", "3", "-o"], "old.json", 5),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_it_is_refused_before_the_input_is_read(tmp_path, run, arguments, name, code, broken_link):
    (tmp_path / "broken.npy").write_text("no array")
    if broken_link:
        (tmp_path / name).symlink_to("nowhere")
    else:
        (tmp_path / name).write_text("kept")
    found, out, err = run(*arguments, name)
    assert out == "" and len(err.splitlines()) == 1 and name in err and "force" in err
    assert found in (code, 5) if broken_link else found == code
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["broken.npy", name])
    assert (tmp_path / name).is_symlink() if broken_link else (tmp_path / name).read_text() == "kept"


@pytest.mark.parametrize("name", ["f.csv", "f.parquet", "f.npy", "f.npz", "folder"])
def test_functions_keep_it_unless_forced(tmp_path, name):
    M = np.arange(12.0).reshape(4, 3) ** 2
    o = co.Observations.from_dense(np.where(np.arange(4)[:, None] == [9, 9, 1], np.nan, M))
    completion, path = co.complete(o, rank=1, center=False, shrinkage=0), tmp_path / name
    if name == "folder":
        writers = [completion.save]
    else:
        writers = [lambda path, **force: files.write(completion, path, **force)]
        if path.suffix in (".csv", ".parquet"):
            writers.append(lambda path, **force: files.write_observed(o, path, **force))
    for write in writers:
        write(path, force=True)
        before = {part: part.read_bytes() for part in [path, *path.rglob("*")] if part.is_file()}
        with pytest.raises(FileExistsError, match=name):
            write(path)
        assert {part: part.read_bytes() for part in [path, *path.rglob("*")] if part.is_file()} == before
