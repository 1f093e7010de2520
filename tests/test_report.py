"""The report of a completion: what it says is true, it asks for nothing, and names do nothing."""

import html
import json
import os
import re
import signal
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

import colonnade as co
from colonnade.interfaces import cli
from colonnade.interfaces.report.page import plain_name, report_html, write_report
from colonnade.uncertainty.certificates import remedy
from colonnade.uncertainty.diagnostics import hold_out, spectrum

from problems import HOSTILE, hide, low_rank, noisy


class Page(HTMLParser):
    """What a browser would see: tags with their attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)


# -------------------------------------------------------------------------------------------------- evidence


def test_entries_left_out_are_predicted_without_them(rng):
    """Hiding an entry and completing with the same space and noise gives the same prediction."""
    _, o = noisy(rng)
    completion = co.complete(o, refine=0)
    found = hold_out(completion)
    dense = np.full(o.shape, np.nan)
    columns = np.repeat(np.arange(o.shape[1]), o.n_observed)
    dense[o.rows, columns] = o.values
    i, j = next((i, j) for i, j in zip(o.rows, columns) if o.n_observed[j] == 14)
    at = int(np.flatnonzero(found.truth == dense[i, j])[0])
    dense[i, j] = np.nan
    coefficients, _ = co.solve_columns(completion.space, co.Observations.from_dense(dense), penalty=completion.penalty)
    center = 0 if completion.center is None else completion.center[i]
    np.testing.assert_allclose(found.predicted[at], completion.basis[i] @ coefficients[:, j] + center, rtol=1e-8)
    np.testing.assert_allclose(found.error, np.sqrt(np.mean((found.truth - found.predicted) ** 2)), rtol=1e-12)


def test_coverage_is_near_its_level(rng):
    """The intervals of one half say nothing of the other by construction, and hold all the same."""
    _, o = noisy(rng, n=300, s=20)
    found = hold_out(co.complete(o))
    assert found.truth.size > 4_000 and abs(found.coverage - found.levels).max() < 0.06
    assert 0.1 < found.error < 0.25 and found.spread > 5 * found.error


def test_nothing_left_out_is_none(rng):
    M, _ = noisy(rng)
    assert hold_out(co.complete(M)) is None
    assert hold_out(co.methods.nystrom(M, rank=3, n_columns=10, n_rows=10, random_state=0)) is None


def test_spectrum_is_that_of_the_full_columns(rng):
    M, o = noisy(rng)
    completion = co.complete(o, rank=4, center=True, shrinkage=0.01, refine=0)
    found = spectrum(completion)
    A = M[:, o.full_columns]
    values = np.linalg.svd(A - A.mean(axis=1, keepdims=True), compute_uv=False)[:24]
    np.testing.assert_allclose(found.of_full_columns, values / 5, rtol=1e-10)
    np.testing.assert_allclose(found.deviations, values[:4] / 5, rtol=1e-10)
    assert found.noise_std == completion.noise_std
    assert found.blurred == pytest.approx(found.noise_std * np.sqrt(60 / 14))


# ---------------------------------------------------------------------------------------------------- report


@pytest.mark.slow
def test_the_report_says_what_the_completion_says(rng):
    _, o = noisy(rng)
    completion = co.complete(o, random_state=7)
    text = report_html(completion, command="colonnade complete t.csv --seed 7")
    page = Page(text)
    words = html.unescape(" ".join(page.words))
    assert f"{o.rows.size:,} of 4,800 entries" in words and "25 of 80 columns in full" in words
    table = completion.certificates()
    for verdict in np.unique(table.verdict):
        assert f"{(table.verdict == verdict).sum():,} {verdict}" in words
    worst = table[~np.isin(table.verdict, ("recovered", "observed in full"))]
    rows = re.findall(r'<th scope="row" data-sort="(\d+)">(\w+)</th>', text)
    assert sorted(int(j) for j, _ in rows) == sorted(worst.column) and all(name == f"c{j}" for j, name in rows)
    for one in worst:
        assert remedy(str(one.verdict), int(one.more_entries)) in words
    for name, chosen in completion.choices.items():
        assert name in words and chosen in words
    assert "colonnade complete t.csv --seed 7" in words and "random_state=7" in words and "Seed: 7." in words
    assert f"numpy {np.__version__}" in words and f"colonnade {co.__version__}" in words
    pictures = [attributes for tag, attributes in page.tags if tag == "svg" and attributes.get("class") == "picture"]
    assert len(pictures) == 4 and all(one["role"] == "img" and one["aria-label"] for one in pictures)
    assert text == report_html(completion, command="colonnade complete t.csv --seed 7")


def test_the_report_stands_alone():
    _, o = noisy(np.random.default_rng(0))
    text = report_html(co.complete(o))
    page = Page(text)
    allowed = "http://www.w3.org/"  # names of kinds of XML, never fetched
    assert not [link for link in re.findall(r"https?://[^\"' <]*", text) if not link.startswith(allowed)]
    for tag, attributes in page.tags:
        assert tag not in ("iframe", "object", "embed", "base", "form", "audio", "video")
        assert "style" not in attributes and not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "xlink:href"):
            assert attributes.get(name, "#").startswith(("#", "data:"))
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert sum(tag == "script" for tag, _ in page.tags) == 1 and len(text) < 1_500_000
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    heads = [tag for tag, _ in page.tags if tag in ("h1", "h2", "h3")]
    assert heads[0] == "h1" and heads.count("h1") == 1 and heads.count("h2") == 7
    assert all(f'aria-labelledby="{one}"' in text for one in ("trust", "coverage", "spectrum", "columns", "again"))


def test_hostile_names_do_nothing():
    _, o = noisy(np.random.default_rng(0), names=HOSTILE)
    completion = co.complete(o)
    text = report_html(completion, command="colonnade complete '</script><script>'")
    tame = report_html(replace(completion, observations=replace(o, column_names=None)), command="none")
    page = Page(text)
    found = {tag for tag, _ in page.tags}
    assert found == {tag for tag, _ in Page(tame).tags} and "img" not in found
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert "\x1b" not in text and "\u202e" not in text and "x" * 100 not in text and len(text) < 1_500_000
    assert "{{ 7 * 7 }}" in " ".join(page.words) and "[/bold]" in text and "$x_{$" in text
    notebook = completion._repr_html_()
    assert "<script" not in notebook and "<img" not in notebook and "\x1b" not in notebook and len(notebook) < 20_000


def test_names_are_shortened_and_shown():
    assert plain_name("a b") == "a b" and plain_name("\x1b[0m\n") == r"\x1b[0m\n"
    assert len(plain_name("x" * 10_000)) == 60 and plain_name("ü" * 61).endswith("...")


@pytest.mark.parametrize("case", ["all full", "zero", "plain", "nothing seen", "one column", "wild", "float32"])
def test_any_completion_has_a_report(case, tmp_path):
    rng = np.random.default_rng(0)
    L, R = low_rank(rng, 20, 12, 2)
    M, known = L @ R, hide(rng, L @ R, 4, 6)[0]
    data = {
        "all full": M,
        "zero": np.where(np.isnan(known), np.nan, 0.0),
        "nothing seen": np.where(np.arange(12) < 4, M, np.nan),
        "one column": M[:, :1],
        "wild": known * 1e200,
        "float32": known.astype(np.float32),
    }.get(case, known)
    settings = {"rank": 2, "center": False, "shrinkage": 0, "refine": 0} if case == "plain" else {}
    completion = co.complete(data, **settings)
    write_report(completion, tmp_path / "r.html")
    assert "</html>" in (tmp_path / "r.html").read_text() and completion._repr_html_()
    with pytest.raises(FileExistsError):
        write_report(completion, tmp_path / "r.html")
    assert os.listdir(tmp_path) == ["r.html"]


def test_large_results_have_small_reports():
    _, o = noisy(np.random.default_rng(0), n=4_000)
    text = report_html(co.complete(o, rank=20, center=False, shrinkage=0, refine=0))
    assert len(text) < 1_500_000 and "the first 500 are shown" in text and text.count('<th scope="row"') == 500


@pytest.mark.slow
def test_results_remember_how_they_were_made(tmp_path):
    _, o = noisy(np.random.default_rng(0))
    completion = co.complete(o, rank=np.int64(3), bounds=(-9, 9), random_state=np.random.default_rng(0))
    assert completion.run["settings"]["rank"] == 3 and completion.run["settings"]["bounds"] == [-9.0, 9.0]
    completion.save(tmp_path / "result")
    back = co.Completion.load(tmp_path / "result")
    assert back.run == json.loads(json.dumps(completion.run))
    assert report_html(back) == report_html(completion)


@pytest.mark.slow
def test_the_order_does_not_hang_on_the_unit():
    _, o = noisy(np.random.default_rng(0))
    tables = [
        report_html(co.complete(replace(o, values=o.values * unit), refine=0)) for unit in (1.0, 2.0**-30, 2.0**200)
    ]
    orders = [re.findall(r'<th scope="row" data-sort="(\d+)">', text) for text in tables]
    assert len(orders[0]) > 5 and orders[0] == orders[1] == orders[2]


@pytest.mark.slow
def test_a_result_in_blocks_has_the_same_table(tmp_path, monkeypatch):
    _, o = noisy(np.random.default_rng(0))
    columns = np.repeat(np.arange(o.shape[1]), o.n_observed)
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},c{j},{float(x)!r}\n" for i, j, x in zip(o.rows, columns, o.values)]
    (tmp_path / "t.csv").write_text("row,column,value\n" + "".join(lines))
    stored = co.complete_triples("t.csv", "result", refine=0, block_entries=500)
    whole = report_html(co.complete(co.read("t.csv"), refine=0))
    text = report_html(co.Completion.load("result"))
    assert stored.n_blocks > 1
    assert re.findall(r"<tbody>.*</tbody>", text, re.S) == re.findall(r"<tbody>.*</tbody>", whole, re.S)
    assert re.findall(r"<image.*?>", text, re.S) == re.findall(r"<image.*?>", whole, re.S)
    assert "colonnade.complete_triples(paths, out" in text


def test_wild_entries_are_left_out_of_the_picture(rng):
    M = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 60))
    known = np.where(rng.random(M.shape) < 0.4, M, np.nan)
    known[:, :8] = M[:, :8]
    known[3, 20], known[4, 30] = 1e308, -1e308
    completion = co.complete(known)
    verdicts = set(completion.certificates().verdict[[20, 30]])
    assert "recovered" not in verdicts and all(verdict in report_html(completion) for verdict in verdicts)
    ax = Figure().subplots()
    completion.plot("prediction", ax=ax)
    assert "wild entries are not shown" in ax.get_title() and max(map(abs, ax.get_ylim())) < 1e3


# ------------------------------------------------------------------------------------------------- pictures


def test_plots_draw_on_axes():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, o = noisy(np.random.default_rng(0), names=HOSTILE)
    completion = co.complete(o)
    try:
        assert len(completion.plot().axes) == 4
        ax = completion.plot("calibration")
        np.testing.assert_array_equal(ax.lines[1].get_ydata(), hold_out(completion).coverage)
        assert completion.plot("coverage", ax=pyplot.figure().subplots()).images
        with pytest.raises(ValueError, match="what must be one of"):
            completion.plot("shape")
        pyplot.gcf().canvas.draw()
    finally:
        pyplot.close("all")


# ----------------------------------------------------------------------------------------------- command line


def test_the_commands_write_the_report(tmp_path, monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["colonnade", *map(str, arguments)])
        before, code = signal.getsignal(signal.SIGTERM), 0
        try:
            cli.run()
        except SystemExit as end:
            code = end.code
        finally:
            signal.signal(signal.SIGTERM, before)
        return code, *capsys.readouterr()

    _, o = noisy(np.random.default_rng(0))
    dense = np.full(o.shape, np.nan)
    dense[o.rows, np.repeat(np.arange(o.shape[1]), o.n_observed)] = o.values
    monkeypatch.chdir(tmp_path)
    np.save("m.npy", dense)
    code, out, err = run("complete", "m.npy", "--seed", 3, "-o", "result", "--report", "a.html", "--json")
    assert code == 0 and err == "" and json.loads(out)["outputs"] == ["result", "a.html"]
    text = (tmp_path / "a.html").read_text()
    assert "colonnade complete m.npy --seed 3 -o result --report a.html --json" in text
    assert run("report", "result") == (0, "Written: result.html\n", "")
    assert (tmp_path / "result.html").read_text() == text
    before = sorted(os.listdir())
    for arguments, expected, words in [
        (["report", "result"], 2, "exists; choose another name"),
        (["report", "absent", "-o", "b.html"], 5, "there is no folder absent"),
        (["report", "result", "-o", "b.pdf"], 2, "must end in .html"),
        (["report", "result", "-o", "nowhere/b.html"], 5, "create it first"),
        (["complete", "m.npy", "--report", "a.html"], 2, "exists; choose another name"),
    ]:
        code, out, err = run(*arguments)
        assert (code, out) == (expected, "") and words in err
        assert len(err.splitlines()) == 1 and sorted(os.listdir()) == before

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    code, out, err = run("report", "result", "-o", "b.html")
    assert (code, out) == (5, "") and "No space left" in err and sorted(os.listdir()) == before


@pytest.mark.parametrize("length", [1_999, 2_000, 2_001, 100_000])
def test_a_long_command_is_cut_to_2000_characters(length):
    from colonnade.interfaces.report.page import _run

    _, o = noisy(np.random.default_rng(0))
    command = ("colonnade complete " + "x" * length)[:length]
    shown = _run(co.complete(o, rank=2, refine=0), command)["command"]
    assert shown == command if length <= 2_000 else len(shown) == 2_000 and shown == command[:1_997] + "..."


# ---------------------------------------------------------------------------------- tables with gaps anywhere


def gappy(noise=0.5, empty_row=False):
    """60 x 200 of rank 3 plus noise, a fifth of it missing: no column and no row is complete."""
    rng = np.random.default_rng(0)
    L, R = low_rank(rng, 60, 200, 3)
    M = 10 + L @ R + noise * rng.standard_normal((60, 200))
    known = np.where(rng.random(M.shape) < 0.2, np.nan, M)
    known[np.arange(200) % 60, np.arange(200)] = np.nan
    if empty_row:
        known[7] = np.nan
    return known


@pytest.mark.parametrize("empty_row", [False, True])
def test_a_report_without_a_full_column_does_not_speak_of_full_columns(empty_row):
    known = gappy(empty_row=empty_row)
    completion = co.complete(known, orientation="columns")
    text = " ".join(" ".join(Page(report_html(completion)).words).split())
    summary = completion.summary()
    for words in (text, summary):
        assert "full columns" not in words and "column in full" not in words and "columns in full" not in words
        assert "every column has gaps." in words
    assert "What all columns taught" in text and "3 of " in text and "above the dashed line" in text
    found = hold_out(completion)
    assert f"{found.truth.size:,} known entries, hidden together and predicted from the rest of the table." in text
    assert ("1 row without any entry is left empty." in text) == empty_row
    assert ("Not filled: 1 row without any entry" in summary) == empty_row


def test_the_evidence_of_the_factor_model_is_true():
    """Held-out entries are known ones, errors are in the same unit as the choices, and intervals hold."""
    known = gappy()
    completion = co.complete(known)
    found, held = hold_out(completion), completion.learned.held_out
    np.testing.assert_array_equal(found.truth, known[held.rows, held.columns])
    assert found.error == pytest.approx(np.sqrt(np.mean((found.truth - found.predicted) ** 2)), rel=1e-12)
    share = 100 * found.error / found.spread
    assert f"is {share:.3g} % of the standard deviation of the " in completion.choices["fit"]
    assert np.abs(found.coverage - found.levels).max() < 0.05
    seen = spectrum(completion)
    assert seen.n_above_noise == 3 and seen.of_full_columns is None
    assert seen.noise_std == pytest.approx(0.5, rel=0.15)


def test_the_pictures_of_the_factor_model(tmp_path):
    completion = co.complete(gappy())
    figure = completion.plot()
    figure.savefig(tmp_path / "four.png")
    ax = completion.plot("spectrum", ax=Figure().subplots())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "of the full columns" not in labels and any("noise" in label for label in labels)
    assert all(float(tick) == int(tick) for tick in ax.get_xticks())


def test_exact_data_without_a_full_column_have_no_noise():
    known = gappy(noise=0.0)
    text = report_html(co.complete(known))
    assert "The entries fit to rounding, so there is no noise." in text and "above the dashed line" not in text


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_report_of_another_method_without_a_full_column():
    text = report_html(co.complete(gappy(), method="als"))
    assert "What was learned" in text and "full columns" not in text and "every column has gaps." in text


def test_a_saved_result_has_the_same_report(tmp_path):
    completion = co.complete(gappy())
    completion.save(tmp_path / "result")
    assert report_html(co.Completion.load(tmp_path / "result")) == report_html(completion)
