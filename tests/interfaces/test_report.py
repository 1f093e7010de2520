"""The report of a completion: what it says is true, it asks for nothing, and names do nothing."""

import base64
import csv
import html
import io
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

import colonnade as co
from colonnade.data.gap_weights import gap_weights
from colonnade.interfaces.report import details
from colonnade.interfaces.report.cells import plain_name
from colonnade.interfaces.report.page import report_html, write_report
from colonnade.interfaces.summary import label_of
from colonnade.uncertainty.column_verdict import ColumnVerdict, remedy
from colonnade.uncertainty.diagnostics import hold_out, spectrum

from problems import HOSTILE, hide, low_rank, noisy


def script_kinds(page):
    """The type of every script; only one without a type runs."""
    return [attributes.get("type") for tag, attributes in page.tags if tag == "script"]


def facts_of(text):
    """What the script reads."""
    return json.loads(re.search(r'<script type="application/json" id="facts">(.*?)</script>', text, re.S).group(1))


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
    found = hold_out(co.complete(o, method="full columns"))
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
    missing = 4_800 - o.rows.size
    assert f"{missing:,} of 4,800 values" in words and "60 rows × 80 columns" in words
    assert completion.verdict.word.capitalize() in words and completion.verdict.sentence in words
    table = completion.certificates()
    for verdict in np.unique(table.verdict):
        assert f"{(table.verdict == verdict).sum():,} {ColumnVerdict(verdict).shown}" in words
    worst = table[~np.isin(table.verdict, ("recovered", "observed in full"))]
    rows = re.findall(r'<th scope="row" data-sort="(\d+)">(\w+)</th>', text)
    assert sorted(int(j) for j, _ in rows) == sorted(worst.column) and all(name == f"c{j}" for j, name in rows)
    for one in worst:
        assert remedy(str(one.verdict), int(one.more_entries), completion.shape[0] - int(one.n_observed)) in words
    for name, chosen in completion.choices.items():
        assert name == "fit" or (label_of(name) in words and chosen in words)
    assert "colonnade complete t.csv --seed 7" in words and "random_state=7" in words
    assert "Random seed: 7." in words
    assert f"numpy {np.__version__}" in words and f"colonnade {co.__version__}" in words
    kinds = [attributes.get("class") for tag, attributes in page.tags if tag == "svg"]
    assert kinds.count("picture") == 2 and kinds.count("chart") == 10
    pictures = [attributes for tag, attributes in page.tags if tag == "svg" and "aria-hidden" not in attributes]
    assert all(one["role"] == "img" and one["aria-label"] for one in pictures)
    assert all(attributes["alt"] for tag, attributes in page.tags if tag == "img")
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
    assert script_kinds(page) == ["application/json", None] and len(text) < 3_000_000
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    heads = [tag for tag, _ in page.tags if tag in ("h1", "h2", "h3")]
    assert heads[0] == "h1" and heads.count("h1") == 1 and heads.count("h2") == 7
    assert all(f'aria-labelledby="{one}"' in text for one in ("next", "gaps", "tested", "worst", "columns", "details"))


def test_hostile_names_do_nothing():
    _, o = noisy(np.random.default_rng(0), names=HOSTILE)
    completion = co.complete(o)
    text = report_html(completion, command="colonnade complete '</script><script>'")
    cleaned = report_html(
        replace(completion, solution=replace(completion.solution, observations=replace(o, column_names=None))),
        command="none",
    )
    page = Page(text)
    found = {tag for tag, _ in page.tags}
    # A name of 1 MB makes the files to download too large.
    assert found == {tag for tag, _ in Page(cleaned).tags} - {"a"}
    assert all(attributes["src"].startswith("data:image/png") for tag, attributes in page.tags if tag == "img")
    assert script_kinds(page) == ["application/json", None]
    assert "\x1b" not in text and "\u202e" not in text and "x" * 100 not in text and len(text) < 3_000_000
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
    assert len(text) < 3_000_000 and "the first 300 are shown" in text and text.count('<th scope="row"') == 300


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
    gaps, tables = r'alt="Map of the gaps.*?</div>', r'<div class="maps".*?</div><figcaption>'
    for pattern in (gaps, tables):
        assert re.findall(pattern, text, re.S) == re.findall(pattern, whole, re.S)
    assert "colonnade.complete_triples(paths, out" in text


def test_outliers_are_left_out_of_the_picture(rng):
    M = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 60))
    known = np.where(rng.random(M.shape) < 0.4, M, np.nan)
    known[:, :8] = M[:, :8]
    known[3, 20], known[4, 30] = 1e308, -1e308
    completion = co.complete(known)
    verdicts = set(completion.certificates().verdict[[20, 30]])
    assert "recovered" not in verdicts and all(ColumnVerdict(one).shown in report_html(completion) for one in verdicts)
    ax = Figure().subplots()
    completion.plot("prediction", ax=ax)
    assert "outliers are not shown" in ax.get_title() and max(map(abs, ax.get_ylim())) < 1e3


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


@pytest.mark.slow
def test_the_commands_write_the_report(run, tmp_path, monkeypatch):
    _, o = noisy(np.random.default_rng(0))
    dense = np.full(o.shape, np.nan)
    dense[o.rows, np.repeat(np.arange(o.shape[1]), o.n_observed)] = o.values
    np.save("m.npy", dense)
    code, out, err = run("complete", "m.npy", "--seed", 3, "-o", "result", "--report", "a.html", "--json")
    assert code == 0 and err == "" and json.loads(out)["outputs"] == ["result", "a.html"]
    text = (tmp_path / "a.html").read_text()
    assert "colonnade complete m.npy --seed 3 -o result --report a.html --json" in text
    assert run("report", "result") == (0, "Written: result.html\n", "")
    assert (tmp_path / "result.html").read_text() == text
    os.makedirs("deep/er")
    os.rename("result", "deep/er/result")
    assert run("report", "deep/er/result") == (0, "Written: deep/er/result.html\n", "")  # Beside the result.
    assert (tmp_path / "deep" / "er" / "result.html").read_text() == text and "<h1>m.npy</h1>" in text
    os.rename("deep/er/result", "result")
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
    _, o = noisy(np.random.default_rng(0))
    command = ("colonnade complete " + "x" * length)[:length]
    shown = details.run_facts(co.complete(o, rank=2, refine=0), command)["command"]
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
@pytest.mark.slow
def test_a_report_without_a_full_column_does_not_speak_of_full_columns(empty_row):
    known = gappy(empty_row=empty_row)
    completion = co.complete(known, orientation="columns")
    text = " ".join(" ".join(Page(report_html(completion)).words).split())
    summary = completion.summary()
    for words in (text, summary):
        assert "full columns" not in words and "column in full" not in words and "columns in full" not in words
    assert "Complete: 0 of 200 columns and 0 of 60 rows." in text and "Every column has gaps" in summary
    assert f"{spectrum(completion).n_above_noise} of " in text and "above the dashed line" in text
    found = hold_out(completion)
    assert f"{found.truth.size:,} known values were hidden and predicted from the rest of the table." in text
    assert ("Left empty" in text) == empty_row
    assert ("Not filled: 1 row " in summary) == empty_row


@pytest.mark.slow
def test_the_evidence_of_the_factor_model_is_true():
    """Held-out entries are known ones, errors are in the same unit as the choices, and intervals hold."""
    known = gappy()
    completion = co.complete(known)
    found, held = hold_out(completion), completion.learned.held_out
    np.testing.assert_array_equal(found.truth, known[held.rows, held.columns])
    weights = gap_weights(completion.observations, held.rows, held.columns)
    squares = (found.truth - found.predicted) ** 2
    assert found.error == pytest.approx(np.sqrt(np.average(squares, weights=weights)), rel=1e-12)
    share = 100 * found.error / found.spread
    assert f"the typical error is {share:.3g} % of the data's standard deviation" in completion.choices["fit"]
    assert np.abs(found.coverage - found.levels).max() < 0.05
    seen = spectrum(completion)
    # The table has three directions; the largest of the noise is near the line, a tenth of the third.
    assert seen.deviations[2] > 8 * seen.deviations[3] and seen.n_above_noise in (3, 4)
    assert seen.of_full_columns is None
    assert seen.noise_std == pytest.approx(0.5, rel=0.15)


@pytest.mark.slow
def test_the_directions_of_columns_in_units_of_their_own_do_not_depend_on_the_units(rng):
    M = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 12)) + 0.2 * rng.standard_normal((80, 12))
    known = np.where(rng.random(M.shape) < 0.2, np.nan, M)
    found = []
    for units in (10.0 ** np.arange(-6, 6), 10.0 ** np.arange(-4, 8)[::-1]):
        completion = co.complete(units * known)
        seen = spectrum(completion)
        assert seen.side == "row" and seen.is_relative and seen.deviations[1] > 3 * seen.deviations[2]
        text = " ".join(" ".join(Page(report_html(completion)).words).split())
        assert "known values of a typical row determine them" in text
        assert "all numbers are in standard deviations of each column" in text
        found.append([*seen.deviations[:2], seen.noise_std])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    assert 0.05 < found[0][2] < 0.4  # The noise is a seventh of a usual column's spread.


def test_a_report_of_a_table_that_could_not_be_filled_says_what_to_measure():
    text = " ".join(" ".join(Page(report_html(co.complete(np.array([[1, np.nan, 3, 4, np.nan]])))).words).split())
    assert "Do not use it" in text and "2 columns stay empty" in text and "hardly predict" not in text


@pytest.mark.slow
def test_the_pictures_of_the_factor_model(tmp_path):
    completion = co.complete(gappy())
    figure = completion.plot()
    figure.savefig(tmp_path / "four.png")
    ax = completion.plot("spectrum", ax=Figure().subplots())
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "of the full columns" not in labels and any("noise" in label for label in labels)
    assert all(float(tick) == int(tick) for tick in ax.get_xticks())


@pytest.mark.slow
def test_exact_data_without_a_full_column_have_no_noise():
    known = gappy(noise=0.0)
    text = report_html(co.complete(known))
    assert "The known values fit exactly, so there is no noise." in text and "above the dashed line" not in text


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_report_of_another_method_without_a_full_column():
    text = report_html(co.complete(gappy(), method="als"))
    assert "full columns" not in text and "Uncertainty: the stronger" not in text and "was not tested" in text


@pytest.mark.slow
def test_a_saved_result_has_the_same_report(tmp_path):
    completion = co.complete(gappy())
    completion.save(tmp_path / "result")
    assert report_html(co.Completion.load(tmp_path / "result")) == report_html(completion)


# ---------------------------------------------------------------------------------- first screen and pictures


@pytest.mark.parametrize(("noise", "light"), [(0.3, "good"), (30.0, "bad")])
@pytest.mark.slow
def test_the_first_screen_shows_the_verdict_as_a_traffic_light(noise, light):
    completion = co.complete(gappy(noise=noise))
    text = report_html(completion, name="plant.csv")
    first = " ".join(Page(text[: text.index("The table before and after")]).words)
    assert "plant.csv" in first and f'<div class="verdict {light}">' in text
    found = hold_out(completion)
    assert (
        f"{100 * found.error / found.spread:.3g}\N{NO-BREAK SPACE}%" in first and completion.verdict.sentence in first
    )
    assert "What to do next" in first and ("Do not use" in first) == (light == "bad")


@pytest.mark.slow
def test_held_out_intervals_are_those_of_the_coverage():
    for completion in (co.complete(gappy()), co.complete(noisy(np.random.default_rng(0))[1], refine=0)):
        found = hold_out(completion)
        inside = (found.low <= found.truth) & (found.truth <= found.high)
        at = int(np.argmin(np.abs(found.levels - 0.9)))
        assert abs(inside.mean() - found.coverage[at]) < 0.03  # The coverage weighs columns by their gaps.
        np.testing.assert_array_equal(completion.entries(found.rows, found.columns), found.truth)


@pytest.mark.parametrize("shape", [(30, 20), (700, 300)])
@pytest.mark.slow
def test_the_pointer_shows_values_and_intervals_of_the_completion(shape):
    rng = np.random.default_rng(0)
    M = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1])) + 0.1 * rng.standard_normal(shape)
    M[rng.random(shape) < 0.2] = np.nan
    completion = co.complete(M, rank=2)
    text = report_html(completion)
    facts = facts_of(text)
    rows, columns = np.array(facts["rows"], int), np.array(facts["columns"], int)
    assert (rows.size, columns.size) == shape or 16_000 < rows.size * columns.size <= 20_000
    values = np.array(facts["values"]).reshape(rows.size, columns.size)
    np.testing.assert_allclose(values, completion.entries(rows[:, None], columns), rtol=1e-4)
    filled = np.array(list(facts["filled"])) == "1"
    np.testing.assert_array_equal(filled.reshape(values.shape), np.isnan(M)[rows[:, None], columns])
    low, high = completion.interval(rows[:, None], columns)
    np.testing.assert_allclose(facts["low"], low.ravel()[filled], rtol=1e-4)
    np.testing.assert_allclose(facts["high"], high.ravel()[filled], rtol=1e-4)
    assert len(text) < 3_000_000 and ("The pictures show" in text) == (shape == (700, 300))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.slow
def test_small_tables_can_be_downloaded_from_the_page(kind):
    known = gappy().astype(kind)[:, :40]
    o = replace(co.Observations.from_dense(known), column_names=np.array([f"=c{j}" for j in range(40)], object))
    completion = co.complete(o)
    links = {a["download"]: a["href"] for tag, a in Page(report_html(completion)).tags if tag == "a"}
    assert list(links) == ["filled.csv", "intervals.csv"]
    head = "data:text/csv;base64,"
    table, intervals = (
        list(csv.reader(io.StringIO(base64.b64decode(links[name].removeprefix(head)).decode()))) for name in links
    )
    assert table[0] == [f"'=c{j}" for j in range(40)]  # Guarded as in the files that are written.
    np.testing.assert_array_equal(np.array(table[1:], kind), completion.to_dense())
    rows, columns = np.nonzero(np.isnan(known))
    assert len(intervals) == rows.size + 1 and intervals[0] == ["row", "column", "value", "low_90", "high_90"]
    low, high = completion.interval(rows, columns)
    got = np.array([line[2:] for line in intervals[1:]], kind)
    np.testing.assert_array_equal(got, np.column_stack([completion.entries(rows, columns), low, high]))


@pytest.mark.slow
def test_large_tables_are_not_in_the_page():
    rng = np.random.default_rng(0)
    M = np.where(rng.random((300, 200)) < 0.1, np.nan, rng.standard_normal((300, 200)))
    assert "Download:" not in report_html(co.complete(M, rank=1))


@pytest.mark.slow
def test_the_least_certain_column_comes_first():
    rng = np.random.default_rng(0)
    M = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 30)) + 0.1 * rng.standard_normal((80, 30))
    M[:, 11] += 3 * rng.standard_normal(80)
    M[rng.random(M.shape) < 0.2] = np.nan
    text = report_html(co.complete(M, orientation="rows"))
    assert re.findall(r"<h3>(Column|Row) (\d+)</h3>", text)[0] == ("Column", "11")


@pytest.mark.slow
def test_a_result_in_many_blocks_reads_few_of_them_for_pictures(tmp_path, monkeypatch):
    from colonnade.interfaces.report.cells import sampled

    rng = np.random.default_rng(0)
    L, R = low_rank(rng, 30, 400, 2)
    columns, rows = np.divmod(np.arange(30 * 400), 30)
    kept = (columns < 10) | (rng.random(columns.size) < 0.3)
    values = (L @ R + 0.1 * rng.standard_normal((30, 400)))[rows, columns]
    lines = [f"{i},{j},{float(x)!r}\n" for i, j, x in zip(rows[kept], columns[kept], values[kept])]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("row,column,value\n" + "".join(lines))
    stored = co.complete_triples("t.csv", "result", refine=0, block_entries=100)
    assert stored.n_blocks > 20
    cells = sampled(stored, 2_000)
    owners = np.unique(np.searchsorted(stored.starts, cells.columns, side="right"))
    assert owners.size == 12 and cells.values.size <= 2_000
    np.testing.assert_array_equal(cells.values, stored.entries(cells.rows[:, None], cells.columns))
    known = np.zeros((30, 400), bool)
    known[stored.observations.rows, stored.observations.entry_columns] = True
    np.testing.assert_array_equal(cells.is_seen, known[cells.rows[:, None], cells.columns])
    assert "The pictures show 30 of 30 rows" in report_html(stored)


@pytest.mark.slow
def test_held_out_values_without_places_are_shown_without_them():
    from colonnade.interfaces.report import evidence
    from colonnade.interfaces.report.cells import sampled, units_of

    completion = co.complete(gappy())
    found = replace(hold_out(completion), rows=None, columns=None, low=None, high=None)
    units = units_of(completion, sampled(completion, 1_000))
    chart = evidence.prediction(completion, found, units)["chart"]
    assert 'data-tip="true value' in chart and "interval" not in chart
    assert evidence.coverage(completion, found, units) is None
