"""`colonnade complete` as a user runs it: what it writes, what it says, and how it ends."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import colonnade as co

from problems import ODD_NAMES, hide, low_rank

ODD = [*ODD_NAMES, "x" * 1_000_000, "c7", "c8", "c9"]


def table(seed=0, m=12, n=10):
    rng = np.random.default_rng(seed)
    L, R = low_rank(rng, m, n, 2)
    M = L @ R
    return M, hide(rng, M, 4, 6)[0]


def test_a_table_is_filled_and_described(run, folder):
    M, known = table()
    pd.DataFrame(known, index=[f"r{i}" for i in range(12)], columns=ODD).to_csv("t.csv")
    code, out, err = run("complete", "t.csv")
    assert code == 0 and err == ""
    assert out.startswith("Verdict: ") and "4 of 10 columns are complete." in out
    assert out.partition("\n")[2].startswith("Read: csv with names of rows and columns.\nKnown: ")
    assert f"Filled: {int(np.isnan(known).sum())} values in 6 columns." in out
    assert "Trust: 6 columns are well determined.\nTrust: 4 columns are observed in full." in out and out.endswith(
        "Written: t-filled.csv\n"
    )
    back = co.read("t-filled.csv")
    np.testing.assert_allclose(back.full_matrix(), M, rtol=0, atol=1e-12)
    assert back.column_names.tolist() == ODD
    assert sorted(os.listdir()) == ["t-filled.csv", "t.csv"]


def test_json_says_the_same_to_machines(run, folder):
    _, known = table()
    np.save("m.npy", known.astype(np.float32))
    code, out, err = run("complete", "m.npy", "--json", "--rank", 2, "-o", "f.npy", "-o", "result")
    facts = json.loads(out)
    assert code == 0 and err == "" and facts["outputs"] == ["f.npy", "result"] and facts["shape"] == [12, 10]
    assert facts["n_full_columns"] == 4 and facts["n_filled_columns"] == 6 and facts["n_unfilled_columns"] == 0
    assert facts["rank"] == 2 and sum(facts["verdicts"].values()) == 10 and "rank" in facts["choices"]
    completion = co.Completion.load("result")
    np.testing.assert_array_equal(np.load("f.npy"), completion.to_dense())
    assert np.load("f.npy").dtype == np.float32
    expected = co.complete(known.astype(np.float32), rank=2)
    np.testing.assert_array_equal(completion.to_dense(), expected.to_dense())


def test_settings_reach_the_library(run, folder):
    _, known = table()
    np.save("m.npy", known)
    settings = ["--rank", 2, "--center", "no", "--shrinkage", 0, "--refine", 0, "--bounds", -1, 1.5, "--seed", 3]
    assert run("complete", "m.npy", *settings)[0] == 0
    expected = co.complete(known, rank=2, center=False, shrinkage=0, refine=0, bounds=(-1, 1.5), random_state=3)
    np.testing.assert_array_equal(np.load("m-filled.npy"), expected.to_dense())


def test_transposed_tables_come_back_as_they_were(run, folder):
    M, known = table()
    pd.DataFrame(known.T, index=[f"c{j}" for j in range(10)]).to_parquet("t.parquet")
    code, out, _ = run("complete", "t.parquet", "--transpose")
    assert code == 0 and "its rows are called columns below" in out
    np.testing.assert_allclose(pd.read_parquet("t-filled.parquet").to_numpy(), M.T, rtol=0, atol=1e-12)


def test_triples_give_factors_and_asked_entries(run, folder):
    M, known = table()
    i, j = np.nonzero(~np.isnan(known))
    frame = pd.DataFrame({"day": i + 1, "station": [f"s{k}" for k in j], "wind": known[i, j]})
    os.mkdir("data")
    frame[:30].to_csv("data/a.csv", index=False)
    frame[30:].to_csv("data/b.csv", index=False)
    fields = ["--row", "day", "--column", "station", "--value", "wind"]
    assert run("complete", "data", *fields)[0] == 0
    np.testing.assert_allclose(co.Completion.load("data-completed").to_dense(), M, rtol=0, atol=1e-12)
    a, b = np.nonzero(np.isnan(known))
    pd.DataFrame({"day": a + 1, "station": [f"s{k}" for k in b]}).to_parquet("wanted.parquet")
    code, _, _ = run("complete", "data/a.csv", "data/b.csv", *fields, "--entries", "wanted.parquet", "--level", 0.8)
    found = pd.read_parquet("wanted-filled.parquet")
    assert code == 0 and list(found) == ["day", "station", "value", "low", "high"]
    np.testing.assert_allclose(found["value"], M[a, b], rtol=0, atol=1e-12)
    assert (found["low"] <= found["value"]).all() and (found["value"] <= found["high"]).all()
    assert (found["day"].to_numpy() == a + 1).all()


def test_strict_ends_with_four_after_writing(run, folder):
    _, known = table()
    known[:, 5] = [1.0] + [np.nan] * 11
    known[:, :2] = table()[0][:, :2]
    pd.DataFrame(known, columns=ODD).to_csv("t.csv", index=False)
    settings = ["--rank", 2, "--shrinkage", 0, "--center", "no"]
    code, out, err = run("complete", "t.csv", *settings, "--strict")
    assert code == 4 and len(err.splitlines()) == 1 and "Not filled: 1 column ('a,b'). It has fewer" in err
    assert "Written: t-filled.csv" in out and os.path.exists("t-filled.csv")
    assert run("complete", "t.csv", *settings, "--force")[0] == 0


@pytest.mark.parametrize(
    "content, arguments, code, words",
    [
        ("a,b\n1,2\n", ["absent.csv"], 5, "there is no file absent.csv"),
        ("a,b\n1,x\n3,4\n", ["t.csv"], 3, "in line 2, column 'b': 'x'"),
        ("a,b\n1,\x1b[31m\n3,4\n", ["t.csv"], 3, r"column 'b': '\x1b[31m'"),
        ("a,b\n,1\n2,\n", ["t.csv", "--shrinkage", "0"], 3, "Leave out shrinkage (--shrinkage)"),
        ("a,b\n,1\n2,\n", ["t.csv", "--method", "full-columns"], 3, "The fullest are column 'a' with 1, column 'b'"),
        ("a,b\n,1\n2,\n", ["t.csv", "--scores", "s.csv"], 3, "0 of 2 are complete. Leave --scores out."),
        ("a,b\n,\n,\n", ["t.csv"], 3, "no entry of the 2 x 2 table is known, so there is nothing to learn from"),
        ("a,b\n,1\n2,\n", ["t.csv", "--method", "magic"], 2, "unknown method 'magic'; choose one of auto, factor-"),
        ("a,b\n,1\n2,\n", ["t.csv", "--method", "als", "--center", "no"], 3, "'als' does not use center; leave it out"),
        ("a,b\n,1\n2,\n", ["t.csv", "--orientation", "up"], 2, "--orientation"),
        ("a,b\n,1\n2,\n", ["t.csv", "--method", "als", "--entries", "t.csv"], 2, "writes intervals, but als has none"),
        ("a,b\n,1\n2,\n", ["t.csv", "--engine", "dask", "--method", "als"], 2, "use --engine memory"),
        ("a,b\n1,inf\n", ["t.csv"], 3, "is inf"),
        ("a,b\n1,2\n", ["t.csv", "--rank", "0"], 2, "--rank"),
        ("a,b\n1,2\n", ["t.csv", "--rank", "two"], 2, "--rank"),
        ("a,b\n1,2\n", ["t.csv", "--rank", "3"], 3, "got 3"),
        ("a,b\n1,2\n", ["t.csv", "--row", "a"], 3, "three different columns"),
        ("a,b\n1,2\n", ["t.csv", "-o", "t.csv"], 2, "t.csv exists; choose another name with --output"),
        ("a,b\n1,2\n", ["t.csv", "-o", "t.xls"], 2, "must end in one of .npy"),
        ("a,b\n1,2\n", ["t.csv", "-o", "-"], 2, "name a file or a folder"),
        ("a,b\n1,2\n", ["t.csv", "-o", "nowhere/f.csv"], 5, "create it first: "),
        ("a,b\n1,2\n", ["t.csv", "--entries", "t.csv"], 3, "no column 'row', 'column'; it has 'a', 'b'"),
        ("a,b\n1,2\n", ["t.csv", "--entries", "t.csv", "-o", "f.npy"], 2, "with --entries the output must be a csv"),
        ("a,b\n1,2\n", ["t.csv", "--bounds", "2", "1"], 3, "bounds must be"),
        ("a,b\n1,2\n", ["t.csv", "--wrong"], 2, "--wrong"),
        ("a,b\n1,2\n", [], 2, "INPUT"),
    ],
)
def test_errors_are_one_line_and_nothing_is_written(run, folder, content, arguments, code, words):
    (folder / "t.csv").write_text(content)
    found, out, err = run("complete", *arguments)
    assert found == code and out == "" and words in err and len(err.splitlines()) == 1 and err.startswith("Error: ")
    assert "\x1b" not in err and os.listdir() == ["t.csv"]


def test_what_was_not_foreseen_is_still_one_line(run, folder, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("by zero")

    (folder / "t.csv").write_text("a,b\n1,2\n")
    monkeypatch.setattr("colonnade.files.tables.reading.read_csv", fail)
    code, _, err = run("complete", "t.csv")
    assert (
        code == 1
        and err == "Error: unexpected ZeroDivisionError: by zero; run the command again with --debug for details\n"
    )
    for arguments in (["--debug", "complete", "t.csv"], ["complete", "t.csv", "--debug"]):
        with pytest.raises(ZeroDivisionError):
            run(*arguments)


def test_a_disk_that_fails_leaves_nothing(run, folder, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    _, known = table()
    np.save("m.npy", known)
    monkeypatch.setattr(os, "fsync", fail)
    for output in ("f.csv", "f.npy", "f.parquet", "f.zarr", "result"):
        code, _, err = run("complete", "m.npy", "-o", output)
        assert code == 5 and "No space left on device" in err and os.listdir() == ["m.npy"]


def test_what_stands_for_nothing_is_filled(run):
    M, known = table()
    marked = np.where(np.isnan(known), -999, known)
    np.save("m.npy", marked)
    assert run("complete", "m.npy", "--missing", "-999", "-o", "f.npy")[0] == 0
    assert np.abs(np.load("f.npy") - M).max() < 1e-10 and (np.load("m.npy") == marked).all()


@pytest.mark.slow
def test_the_process_itself(folder):
    """One run that ends well, one that does not, and the two signals; standard output stays clean."""
    _, known = table()
    np.save("m.npy", known)
    start = [sys.executable, "-m", "colonnade"]
    good = subprocess.run([*start, "complete", "m.npy", "--json"], capture_output=True, text=True, timeout=120)
    assert good.returncode == 0 and good.stderr == "" and json.loads(good.stdout)["shape"] == [12, 10]
    bad = subprocess.run([*start, "complete", "none.npy"], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 5 and bad.stdout == "" and bad.stderr == "Error: there is no file none.npy\n"
    code = (  # hangs where a long solve would be, and tells that it is there
        "import sys, time, colonnade.completion.completing as c, colonnade.interfaces.cli as cli\n"
        "def slow(*a, **k):\n    print('here', flush=True)\n    time.sleep(600)\n"
        "c.solve_columns = slow\n"
        "sys.argv = ['colonnade', 'complete', 'm.npy', '-o', 'f.npy']\n"
        "cli.run()"
    )
    for number, expected in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "here\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
        assert process.returncode == expected and "Traceback" not in err
    assert sorted(os.listdir()) == ["m-filled.npy", "m.npy"]


# ------------------------------------------------------------------------------------- tables with gaps anywhere


def gappy(folder, name="t.csv", m=30, n=20, noise=0.0):
    """A table of rank 2 without a complete row or column, in a file; what it is, and what is known of it."""
    rng = np.random.default_rng(7)
    L, R = low_rank(rng, m, n, 2)
    M = L @ R + noise * rng.standard_normal((m, n))
    gaps = rng.random((m, n)) < 0.25
    gaps[np.arange(n) % m, np.arange(n)] = gaps[np.arange(m), np.arange(m) % n] = True
    known = np.where(gaps, np.nan, M)
    frame = pd.DataFrame(known, columns=[f"c{j}" for j in range(n)])
    frame.to_csv(folder / name, index=False)
    return M, known


@pytest.mark.slow
def test_a_table_without_a_complete_column_is_filled(run, folder):
    M, known = gappy(folder)
    code, out, err = run("complete", "t.csv", "-o", "f.csv", "--json")
    facts = json.loads(out)
    assert code == 0 and err == "" and facts["method"] == "factor model" and facts["n_full_columns"] == 0
    assert facts["n_filled_entries"] == np.isnan(known).sum() and facts["verdicts"] == {"recovered": 20}
    assert np.abs(pd.read_csv("f.csv").to_numpy() - M).max() < 1e-9 * np.abs(M).max()
    out = run("complete", "t.csv", "-o", "g.csv")[1]
    assert "Every column has gaps; colonnade learned from all of them." in out and "full" not in out
    assert "Method: factor model learned from all columns, because every column has gaps." in out


@pytest.mark.parametrize("orientation", ["columns", "rows"])
@pytest.mark.parametrize(
    "name", ["factor-model", *(pytest.param(name, marks=pytest.mark.slow) for name in ("factor model", "Factor_Model"))]
)
def test_orientation_and_method_reach_the_library(run, folder, name, orientation):
    _, known = gappy(folder, noise=0.3)
    code, out, err = run("complete", "t.csv", "-o", "f.csv", "--method", name, "--orientation", orientation, "--json")
    facts = json.loads(out)
    assert code == 0 and err == "" and facts["orientation"] == orientation
    expected = co.complete(known, method="factor model", orientation=orientation)
    np.testing.assert_allclose(pd.read_csv("f.csv").to_numpy(), expected.to_dense(), rtol=1e-12)
    assert facts["choices"]["method"].endswith("as given") and "as given" in facts["choices"]["orientation"]


@pytest.mark.parametrize("name", ["als", "soft-impute", "soft_impute"])
def test_other_methods_by_name(run, folder, name):
    _, known = gappy(folder, noise=0.3)
    code, out, err = run("complete", "t.csv", "-o", "f.csv", "--method", name, "--rank", 2, "--json")
    assert code == 0 and err == "" and json.loads(out)["method"] in ("ALS", "SoftImpute")
    expected = co.complete(known, method=name.replace("-", "_"), rank=2).to_dense()
    np.testing.assert_allclose(pd.read_csv("f.csv").to_numpy(), expected, rtol=1e-10)


@pytest.mark.slow
def test_triples_need_no_full_column_in_memory_and_in_blocks(run, folder):
    M, known = gappy(folder)
    i, j = np.nonzero(~np.isnan(known))
    pd.DataFrame({"row": i, "column": j, "value": known[i, j]}).to_csv("triples.csv", index=False)
    code, _, err = run("complete", "triples.csv", "-o", "f.npy")
    assert code == 0 and err == "" and np.abs(np.load("f.npy") - M).max() < 1e-9 * np.abs(M).max()
    code, out, err = run("complete", "triples.csv", "-o", "out", "--engine", "local")
    assert code == 0 and "Every column has gaps; colonnade learned from all of them." in out
    assert np.abs(co.Completion.load("out").to_dense() - M).max() < 1e-9 * np.abs(M).max()
    given = "complete", "triples.csv", "-o", "other", "--engine", "local"
    code, out, err = run(*given, "--method", "als")
    assert code == 2 and out == "" and "--method als cannot be used in blocks or on a cluster" in err
    code, out, err = run(*given, "--orientation", "rows")
    assert code == 2 and out == "" and "use --transpose" in err


def test_a_row_without_an_entry_is_counted_as_not_filled(run, folder):
    _, known = gappy(folder)
    known[4] = np.nan
    np.save("m.npy", known)
    code, out, err = run("complete", "m.npy", "-o", "f.npy", "--orientation", "columns", "--strict")
    filled = np.load("f.npy")
    assert code == 4 and "Not filled: 1 row without any value" in err and np.isnan(filled[4]).all()
    assert np.isfinite(np.delete(filled, 4, axis=0)).all()
    n_filled = np.isnan(known).sum() - 20
    assert f"Filled: {n_filled:,} values in 20 columns." in out


def test_help_says_what_an_option_does_and_its_default(run):
    code, out, _ = run("complete", "--help")
    for option in ("--method", "--orientation", "--rank", "--center", "--shrinkage", "--refine", "--bounds", "--seed"):
        words = out[out.index(f"  {option} ") :].split("\n  --")[0]
        assert "Default:" in words, option
    assert code == 0


@pytest.mark.slow
def test_asked_entries_of_a_table_without_a_complete_column_have_intervals(run, folder):
    M, known = gappy(folder, m=40, n=60, noise=0.3)
    i, j = np.nonzero(np.isnan(known))
    pd.DataFrame({"row": i, "column": [f"c{k}" for k in j]}).to_csv("wanted.csv", index=False)
    code, _, err = run("complete", "t.csv", "--entries", "wanted.csv", "-o", "answers.csv", "--level", 0.9)
    found = pd.read_csv("answers.csv")
    assert code == 0 and err == "" and (found.low < found.value).all() and (found.value < found.high).all()
    assert 0.84 < ((found.low <= M[i, j]) & (M[i, j] <= found.high)).mean() < 0.96


@pytest.mark.slow
def test_all_filled_entries_are_listed_with_their_intervals(run, folder):
    M, known = gappy(folder, m=40, n=60, noise=0.3)
    code, out, err = run("complete", "t.csv", "-o", "filled.csv", "--intervals", "listed.csv", "--level", 0.9)
    found, filled = pd.read_csv("listed.csv"), pd.read_csv("filled.csv")
    assert code == 0 and err == "" and "listed.csv" in out
    i, j = np.nonzero(np.isnan(known))
    assert found.row.tolist() == i.tolist() and found.column.tolist() == [f"c{k}" for k in j]
    assert np.allclose(found.value, filled.to_numpy()[i, j]) and (found.low < found.value).all()
    assert 0.84 < ((found.low <= M[i, j]) & (M[i, j] <= found.high)).mean() < 0.96
    code, _, err = run("complete", "t.csv", "-o", "more.csv", "--intervals", "listed.csv")
    assert code == 2 and "listed.csv exists" in err
    assert run("complete", "t.csv", "-o", "more.csv", "--intervals", "listed.npy")[0] == 2


def test_the_output_stands_beside_the_input(run, folder):
    """As a report stands beside its result."""
    _, known = table()
    (folder / "in").mkdir()
    pd.DataFrame(known).to_csv("in/t.csv", index=False)
    code, out, err = run("complete", "in/t.csv")
    assert code == 0 and out.endswith("Written: in/t-filled.csv\n"), err
    assert os.listdir() == ["in"] and sorted(os.listdir("in")) == ["t-filled.csv", "t.csv"]


def test_advice_to_measure_all_gaps_says_so():
    from colonnade.uncertainty.column_verdict import remedy

    assert remedy("approximate", 8, 20) == "measure about 8 more values for a precise answer"
    assert remedy("approximate", 8, 8) == "measure it in full, because fewer values would leave the rest uncertain"
    assert remedy("prior decides", 8, 8) == "measure more values"
