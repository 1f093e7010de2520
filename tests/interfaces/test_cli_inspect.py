"""`colonnade inspect`, `plan` and `doctor` as a user runs them."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import colonnade as co
from colonnade.data.seen_grid import PLAIN_SHADES, as_characters, seen_shares
from colonnade.interfaces.cli import COMMANDS, cli
from colonnade.interfaces.inspection import inspect_observations

from problems import hide, low_rank

GAPS_EVERYWHERE = "This table can be filled: every column has gaps, so colonnade learns from all of them."
ODD = ["</script><script>", "=cmd()", "[/bold]", "$x_{$", "\x1b[31mred\x1b[0m", "x" * 1_000_000]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in its own folder; gives the exit code, the output and the messages."""
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)

    def go(*arguments):
        done = CliRunner().invoke(cli, list(map(str, arguments)))
        return done.exit_code, done.stdout, done.stderr if done.exception is None else str(done.exception) + done.stderr

    return go


def example(rng, m=40, n=30, r=3, n_full=8, s=10, noise=0.0):
    L, R = low_rank(rng, m, n, r)
    M = L @ R + noise * rng.standard_normal((m, n))
    return M, hide(rng, M, n_full, s)[0]


# ---------------------------------------------------------------------------------------------------- coverage


def test_coverage_counts_every_entry_once(rng):
    known = np.where(rng.random((37, 53)) < 0.3, 1.0, np.nan)
    known[:, 7] = 1.0
    o = co.Observations.from_dense(known)
    order = np.argsort(-o.n_observed, kind="stable")
    np.testing.assert_array_equal(seen_shares(o, 37, 53), ~np.isnan(known)[:, order])
    shares = seen_shares(o, 5, 10)
    i, j = np.arange(37) * 5 // 37, np.arange(53) * 10 // 53
    expected = [[(~np.isnan(known))[i == a][:, order[j == b]].mean() for b in range(10)] for a in range(5)]
    np.testing.assert_allclose(shares, expected, rtol=1e-14)


def test_only_nothing_is_blank_and_only_all_is_solid():
    assert as_characters(np.array([[0, 0.001, 0.4, 0.999, 1]]), PLAIN_SHADES) == [" .:*#"]


# ----------------------------------------------------------------------------------------------------- inspect


def test_inspect_knows_what_is_full(rng):
    M, known = example(rng)
    known[:, -1] = np.nan
    o = co.Observations.from_dense(known)
    facts = inspect_observations(o)
    json.dumps(facts, allow_nan=False)
    counts = (~np.isnan(known)).sum(axis=0)
    assert facts["columns"]["full"] == (counts == 40).sum() and facts["columns"]["empty"] == 1
    assert facts["columns"]["least"] == 10 and facts["columns"]["median"] == 10 and facts["n_observed"] == counts.sum()
    assert facts["complete_side"] == "columns" and facts["method"] == "full columns"
    assert facts["spectrum"]["numerical_rank"] == 3 and "exact" in facts["trial"]["fit"]
    values = np.linalg.svd(M[:, o.full_columns] - M[:, o.full_columns].mean(axis=1, keepdims=True))[1]
    np.testing.assert_allclose(facts["spectrum"]["relative_values"], values[:3] / values[0], rtol=1e-10)
    assert any("without any value" in line for line in facts["advice"])


def test_inspect_finds_the_complete_side(rng):
    M, known = example(rng)
    turned = inspect_observations(co.Observations.from_dense(known.T))
    assert turned["complete_side"] == "rows" and turned["method"] == "factor model" and turned["trial"] is None
    assert turned["verdict"] == GAPS_EVERYWHERE
    whole = inspect_observations(co.Observations.from_dense(M))
    assert whole["verdict"] == "This table is complete: there is nothing to fill."
    assert whole["method"] is None and whole["advice"] == []


def test_inspect_names_rows_and_columns_of_which_too_little_is_known(rng):
    M, _ = example(rng)
    known = np.where(rng.random(M.shape) < 0.7, M, np.nan)
    assert inspect_observations(co.Observations.from_dense(known))["advice"] == []
    known[3], known[:, 5], known[:, 7] = np.nan, np.nan, np.nan
    known[10:12, 7] = M[10:12, 7]
    facts = inspect_observations(co.Observations.from_dense(known))
    assert facts["complete_side"] == "neither" and facts["verdict"] == GAPS_EVERYWHERE
    assert [line.split(" without")[0].split(" with")[0] for line in facts["advice"]] == [
        "1 row (3)",
        "1 column (5)",
        "1 column (7)",
    ]
    assert "fewer than 3 known values" in facts["advice"][2]


@pytest.mark.slow
def test_inspect_says_what_complete_does(rng):
    """With many, few and no complete columns."""
    L, R = low_rank(rng, 30, 80, 3)
    M = L @ R + 0.3 * rng.standard_normal((30, 80))
    known = np.where(rng.random(M.shape) < 0.7, M, np.nan)
    known[rng.integers(0, 30, 80), np.arange(80)] = np.nan
    for n_full, method in ((0, "factor model"), (2, "factor model"), (40, "full columns")):
        known[:, :n_full] = M[:, :n_full]
        facts = inspect_observations(co.Observations.from_dense(known))
        assert facts["method"] == method and facts["verdict"].startswith("This table can be filled: ")
        assert (co.complete(known).learned is not None) == (method == "factor model")
        assert (f"{n_full} of 80 columns are complete" in facts["verdict"]) == (n_full > 0)


def test_inspect_refuses_a_table_without_any_entry(run):
    np.save("m.npy", np.full((3, 4), np.nan))
    code, out, err = run("inspect", "m.npy")
    assert code != 0 and out == "" and "no entry of the 3 x 4 table is known" in err
    with pytest.raises(ValueError, match="no entry of the 3 x 4 table is known"):
        inspect_observations(co.Observations.from_dense(np.full((3, 4), np.nan)))


@pytest.mark.slow
def test_the_last_line_of_inspect_can_be_copied(run):
    _, known = example(np.random.default_rng(0))
    names = [f"c {k}" for k in range(30)]
    pd.DataFrame(known, columns=names).to_csv("my table.csv", index=False, na_rep="?")
    code, out, _ = run("inspect", "my table.csv", "--missing", "?", "--ignore", "c 3", "--header", "--transpose")
    last = out.splitlines()[-1].removeprefix("Next: colonnade ")
    assert code == 0 and last.startswith("complete 'my table.csv' ")
    code, out, err = run(*shlex.split(last), "--json")
    assert code == 0 and err == "" and json.loads(out)["shape"] == [29, 40]
    assert os.path.exists("my table-filled.csv")


def test_inspect_prints_a_picture_and_advice(run):
    _, known = example(np.random.default_rng(0))
    pd.DataFrame(known, columns=ODD + [f"c{k}" for k in range(24)]).to_csv("t.csv", index=False)
    code, out, err = run("inspect", "t.csv")
    assert code == 0 and err == "" and "\x1b" not in out and len(out) < 10_000
    verdict, source, *lines = out.splitlines()
    assert source.startswith("Read: csv with names of columns. Its rows are counted from 0.")
    assert (
        verdict == "This table can be filled: 8 of 30 columns are complete, and colonnade fills the others from them."
    )
    assert lines[1] == "+" + "-" * 30 + "+" and all(len(line) == 32 for line in lines[1:15])
    assert all(line.startswith("|████████") for line in lines[2:14])
    assert "Columns: 8 complete, 22 with gaps, 0 empty" in out
    assert any(line.startswith("Advice: ") for line in lines) and lines[-1].startswith("Next: ")
    code, out, err = run("inspect", "t.csv", "--json")
    assert code == 0 and err == "" and json.loads(out)["columns"]["full"] == 8
    assert os.listdir() == ["t.csv"]


# -------------------------------------------------------------------------------------------------------- plan


def test_plan_says_what_the_library_says(run):
    code, out, err = run("plan", "--shape", 1000, 800, "--rank", 5, "--noise-std", 0.1)
    assert code == 0 and err == "" and out == f"{co.plan((1000, 800), 5, noise_std=0.1)}\n"
    facts = json.loads(run("plan", "--shape", 1000, 800, "--rank", 5, "--json")[1])
    assert facts["practical"]["n_full_columns"] == co.plan((1000, 800), 5).practical.n_full_columns


def test_plan_learns_from_a_file(run):
    _, known = example(np.random.default_rng(1), noise=0.01)
    np.save("m.npy", known.astype(np.float32))
    facts = json.loads(run("plan", "m.npy", "--json")[1])
    assert facts["shape"] == [40, 30] and 3 <= facts["rank"] <= 7
    assert facts["noise_std"] == co.complete(known.astype(np.float32)).noise_std
    assert run("plan", "m.npy", "--rank", 3)[0] == 0
    assert "--rank must be at most" in run("plan", "m.npy", "--rank", 30)[2]


def test_a_small_table_is_too_small_to_plan_for(run, tmp_path):
    known = np.random.default_rng(0).standard_normal((40, 3)) @ np.random.default_rng(1).standard_normal((3, 12))
    known[np.random.default_rng(2).random(known.shape) < 0.2] = np.nan
    np.save("small.npy", known)
    code, out, err = run("plan", "small.npy")
    assert code == 0 and err == "" and len(out.splitlines()) == 1
    assert out.startswith("This table of 40 x 12 values is too small to plan for") and "Measure all of it." in out
    assert "too small" not in run("plan", "--shape", 1000, 800, "--rank", 5)[1]


def test_plan_prints_the_rows_to_measure(run):
    _, known = example(np.random.default_rng(2), noise=0.01)
    names = [f"row {i}" for i in range(39)] + ["\x1b[31m" + "x" * 1000]
    pd.DataFrame(known, index=names).to_csv("t.csv")
    completion = co.complete(co.read("t.csv"))
    expected = co.select_rows(completion, 6)
    code, out, err = run("plan", "--select-rows", 6, "t.csv")
    assert code == 0 and err == "" and len(out.splitlines()) == 6 and "\x1b" not in out
    assert [line for line in out.splitlines() if line.startswith("row")] == [names[i] for i in expected if i < 39]
    completion.save("result")
    facts = json.loads(run("plan", "result", "--select-rows", 6, "--json")[1])
    assert facts["rows"] == expected.tolist() and facts["names"] == [names[i] for i in expected]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["plan"], "--shape ROWS COLUMNS and --rank"),
        (["plan", "--shape", 3, 4], "--rank"),
        (["plan", "--select-rows", 3], "needs a file"),
        (["plan", "--select-rows", 3, "t.csv", "--rank", 2], "--rank cannot be used"),
        (["plan", "t.csv", "--shape", 3, 4], "the file has its own"),
        (["plan", "--shape", 3, 4, "--rank", 5], "rank"),
        (["inspect"], "INPUT"),
        (["inspect", "absent.csv"], "there is no file absent.csv"),
    ],
)
def test_what_cannot_be_planned(run, arguments, words):
    code, out, err = run(*arguments)
    assert code != 0 and out == "" and words in err


# ------------------------------------------------------------------------------------------------------ doctor


def test_doctor_knows_the_installation(run):
    code, out, err = run("doctor", "--json")
    facts = json.loads(out)
    assert code == 0 and err == "" and facts["versions"]["numpy"] == np.__version__
    assert facts["threads"] >= 1 and facts["kernel_lanes"] in (2, 4, 8) and facts["blas"]
    assert facts["optional"]["click"] and os.path.isabs(facts["cache"]["folder"])
    out = run("doctor")[1]
    assert f"colonnade {co.__version__} in " in out and "Kernel: vectors of" in out and "Cache: " in out


def test_doctor_says_what_is_missing(run, monkeypatch):
    from importlib import metadata

    real = metadata.version

    def version(name):
        if name == "zarr":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.devnull + "/nowhere")
    out = run("doctor")[1]
    assert "zarr missing (pip install 'colonnade[zarr]')" in out and "the first run compiles" in out


def test_doctor_knows_whether_the_kernel_is_compiled(tmp_path, run, monkeypatch):
    cache = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    found = []
    for make in (lambda: None, cache.mkdir, (cache / "column_kernels.solve-1.py311.nbi").touch):
        make()
        found.append(json.loads(run("doctor", "--json")[1])["cache"])
    assert [facts["compiled"] for facts in found] == [False, False, True]
    assert all(facts["writable"] and facts["folder"] == str(cache) for facts in found)


# -------------------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example_first(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0 and "Example" in out and out.index(f"colonnade {name}") < out.index("Options:")


def test_help_is_quick(tmp_path):
    """It imports none of the packages that take long; counting them does not depend on how busy the machine is."""
    heavy = {"dask", "duckdb", "matplotlib", "numba", "numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn"}
    script = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); sys.argv[0] = 'colonnade'"
    script += "; from colonnade.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "--help"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    imported = done.stdout.splitlines()[-1].split()
    assert "click" in imported and not heavy & set(imported)


def test_a_step_of_the_bars_is_half_a_decade():
    from colonnade.interfaces.cli.inspect import _BARS, _PLAIN_BARS, _spectrum_bars

    for blocks, bars in ((True, _BARS), (False, _PLAIN_BARS)):
        steps = np.arange(len(bars))
        values = [*10 ** (-0.5 * steps), 1e-300, 0.0]
        (line,) = _spectrum_bars({"spectrum": {"relative_values": values}}, blocks)
        assert line.endswith(": " + "".join([*bars[::-1], bars[0], bars[0]]))
    assert _spectrum_bars({"spectrum": None}, True) == []


def test_columns_that_do_not_vary_have_no_direction():
    known = np.tile([[1.0], [2.0], [5.0]], (1, 5))
    known[0, 4] = np.nan
    found = inspect_observations(co.Observations.from_dense(known))["spectrum"]
    assert found["numerical_rank"] == found["directions_for_90"] == found["directions_for_99"] == 0
    assert found["relative_values"] == []


@pytest.mark.parametrize(("n_full", "rank"), [(20, 19), (60, None)])
def test_of_large_data_the_first_50_directions_are_looked_at(monkeypatch, n_full, rank):
    monkeypatch.setattr("colonnade.interfaces.inspection._LARGE", 100)
    known = np.random.default_rng(0).standard_normal((100, n_full + 1))
    known[0, 0] = np.nan
    found = inspect_observations(co.Observations.from_dense(known))["spectrum"]
    assert found["numerical_rank"] == rank and found["directions_for_99"] <= 50


def test_a_command_needs_its_input(run):
    code, out, err = run("complete")
    assert code == 2 and out == "" and "Missing argument" in err


@pytest.mark.parametrize("n_full", [0, 10])
@pytest.mark.slow
def test_logarithms_are_advised_for_skewed_positive_values(rng, n_full):
    L = 0.8 * rng.standard_normal((60, 3)) @ rng.standard_normal((3, 40)) + 0.1 * rng.standard_normal((60, 40))
    L[:, n_full:][rng.random((60, 40 - n_full)) < 0.4] = np.nan
    for unit in (1e-200, 1.0, 1e200):
        assert any("Try their logarithms" in one for one in co.inspect(unit * np.exp(L))["advice"])
    for other in (L, L + 100, L - np.nanmin(L) + 0.1):
        assert not any("logarithms" in one for one in co.inspect(other)["advice"])


def test_compare_names_suspicious_values_by_their_line(rng, run):
    M, _ = example(rng)
    M[2, 3] = 1e6
    lines = [",".join(f"c{j}" for j in range(M.shape[1])), *(",".join(map(repr, row)) for row in M.tolist())]
    Path("t.csv").write_text("\n".join(lines).replace(repr(float(M[5, 1])), ""))
    _, out, _ = run("compare", "t.csv", "--methods", "complete,row_means")
    assert "Note: Check the data first: row 2 (line 4) of column 'c3' is 1e+06" in out


def test_explain_takes_places_where_there_are_names(rng, run):
    M, _ = example(rng)
    o = co.Observations.from_dense(M, row_names=[f"r{i}" for i in range(len(M))])
    co.complete(o).save("result")
    by_name, by_place = (run("explain", "result", row, "2") for row in ("r7", "7"))
    assert by_name[0] == 0 and by_name[1] == by_place[1] and "Row 'r7'" in by_place[1]
    assert "none is called 'r99'" in run("explain", "result", "r99", "2")[2]
