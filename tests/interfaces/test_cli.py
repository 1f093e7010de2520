import os
import subprocess
import sys

import numpy as np
import pytest

import colonnade


def start(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "colonnade", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=120,
    )


def test_version(tmp_path):
    done = start("--version", cwd=tmp_path)
    assert done.returncode == 0 and colonnade.__version__ in done.stdout


def test_without_arguments_it_shows_its_help(tmp_path):
    done = start(cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("Usage: ") and len(done.stderr.splitlines()) > 15


@pytest.mark.slow
def test_demo_writes_a_picture_and_three_lines(run, tmp_path):
    from matplotlib.image import imread

    done = start("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and "128 of 640 columns" in lines[0] and lines[2].startswith("Next:")
    assert os.listdir(tmp_path) == ["colonnade-demo.png"]
    picture = imread(tmp_path / "colonnade-demo.png")
    assert picture.ndim == 3 and picture.shape[1] > 1000 and picture[..., :3].std() > 0.1
    code, _, err = run("demo")
    assert code == 2 and "--force" in err and len(err.splitlines()) == 1


@pytest.mark.slow
def test_demo_is_as_good_as_it_says(tmp_path):
    """With every pixel seen nothing is off; with fewer the error grows."""
    from colonnade.interfaces.demo import complete_photograph

    errors = []
    for share in (1.0, 0.5, 0.2):
        lines = complete_photograph(tmp_path / f"{share}.png", share=share)
        errors.append(float(lines[1].split("typical error is ")[1].split("%")[0]))
    assert errors[0] == 0 and errors[0] < errors[1] < errors[2] < 10
    assert np.isfinite(errors).all()


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["demo", "--columns", "0"], 2, "--columns"),
        (["demo", "--out", "picture.jpeg"], 3, "must end in .png"),
        (["demo", "--columns", "641"], 3, "got 641"),
        (["demo", "--share", "1.5"], 2, "--share"),
        (["demo", "--out", "nowhere/picture.png"], 5, "nowhere"),
        (["wrong"], 2, "wrong"),
    ],
)
def test_errors_are_one_line(run, tmp_path, arguments, code, words):
    found, _, err = run(*arguments)
    assert found == code
    assert words in err and len(err.splitlines()) == 1
    assert os.listdir(tmp_path) == []


def test_without_the_extra_the_command_says_what_it_needs(tmp_path):
    (tmp_path / "click.py").write_text("raise ModuleNotFoundError(\"No module named 'click'\", name='click')")
    done = start("demo", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2 and "pip install 'colonnade[cli]'" in done.stderr
    done = start("--version", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0 and colonnade.__version__ in done.stdout


def test_a_missing_module_of_our_own_is_not_taken_for_a_missing_extra(monkeypatch):
    from colonnade.__main__ import main

    monkeypatch.setitem(sys.modules, "colonnade.interfaces.cli", None)
    with pytest.raises(ModuleNotFoundError, match=r"colonnade\.interfaces\.cli"):
        main()
