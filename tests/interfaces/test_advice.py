"""What `inspect` and the summary advise: each sentence must hold, and lead to something that can be done."""

import numpy as np
import pytest
from click.testing import CliRunner

import colonnade as co
from colonnade.interfaces.cli import cli
from colonnade.interfaces.report.page import report_html
from colonnade.interfaces.skew import about_bounds, about_logarithms
from colonnade.uncertainty.column_verdict import verdicts_in_words


def with_gaps(rng, M, share=0.2):
    return np.where(rng.random(M.shape) < share, np.nan, M)


def skewed_counts(rng):
    rates = np.exp(rng.standard_normal((120, 2)) @ rng.standard_normal((2, 15)) + 1)
    return rng.poisson(rates).astype(float)


@pytest.mark.parametrize("values", [[[1, np.nan, 3, 4, np.nan]], [[1], [np.nan], [3], [4], [np.nan]]])
def test_gaps_in_empty_rows_or_columns_are_said_to_stay(values):
    table = np.array(values, float)
    facts = co.inspect(table)
    assert facts["verdict"].startswith("This table cannot be filled: ") and facts["method"] is None
    assert len(facts["advice"]) == 1 and "without any value" in facts["advice"][0]
    completion = co.complete(table)
    assert np.array_equal(np.isnan(completion.to_dense()), np.isnan(table))
    assert completion.verdict.word == "do not use it" and "No gap could be filled" in completion.verdict.sentence


def test_empty_columns_lead_to_something_that_can_be_done(rng):
    known = with_gaps(rng, rng.standard_normal((50, 2)) @ rng.standard_normal((2, 6)))
    known[:, 4:] = np.nan
    (advice,) = (line for line in co.inspect(known)["advice"] if "column" in line)
    assert advice == (
        "2 columns (4, 5) without any value cannot be predicted. Leave them out (--ignore, ignore=...), or measure some"
        " of their values."
    )
    summary = co.complete(known).summary()
    assert "2 columns have no known value (4, 5): measure about" in summary and "leave them out with ignore" in summary
    assert "Not filled: 2 columns (4, 5). Each has no known value and stays NaN." in summary


def test_counts_with_zeros_are_advised_to_take_logarithms_which_helps(rng):
    M = skewed_counts(rng)
    known = with_gaps(rng, M)
    (sentence,) = about_logarithms(co.Observations.from_dense(known))
    assert "log(1 + x)" in sentence and any(sentence in line for line in co.inspect(known).lines())
    gaps = np.isnan(known)
    plain, logs = co.complete(known).to_dense(), np.expm1(co.complete(np.log1p(known)).to_dense())
    off = [np.sqrt(np.mean((np.log1p(np.maximum(x, 0)) - np.log1p(M))[gaps] ** 2)) for x in (plain, logs)]
    assert off[1] < off[0]


@pytest.mark.slow
def test_filled_values_outside_a_scale_or_below_zero_lead_to_bounds(rng):
    ratings = np.clip(np.rint(3.5 + rng.standard_normal((100, 3)) @ rng.standard_normal((3, 40))), 1, 5)
    known = with_gaps(rng, ratings, 0.6)
    completion = co.complete(known)
    outside = int(((completion.to_dense() < 1) | (completion.to_dense() > 5)).sum())
    (sentence,) = about_bounds(completion)
    assert (
        sentence.startswith(f"{outside} filled values are outside 1 to 5")
        and "--bounds 1 5 (bounds=(1, 5))" in sentence
    )
    assert sentence in completion.summary() and about_bounds(co.complete(known, bounds=(1, 5))) == []
    counts = co.complete(with_gaps(rng, skewed_counts(rng)))
    assert counts.verdict.word != "do not use it" or "below 0" not in counts.summary()
    assert "below 0" in about_bounds(counts)[0] and "(bounds=(0, np.inf))" in about_bounds(counts)[0]
    exact = rng.random((40, 2)) @ rng.random((2, 30))
    assert about_bounds(co.complete(with_gaps(rng, exact - exact.min()))) == []  # Rounding is not below 0.
    assert about_bounds(co.complete(with_gaps(rng, rng.standard_normal((40, 30))))) == []


def test_columns_that_need_most_of_their_gaps_are_to_be_measured_in_full(rng):
    completion = co.complete(with_gaps(rng, rng.standard_normal((60, 5)), 0.1))
    table = completion.certificates(as_frame=False)
    table.verdict = "approximate"
    n_gaps = 60 - table.n_observed
    table.more_entries = n_gaps
    table.more_entries[0] -= 1  # The medians of gaps and of entries now differ.
    (line,) = verdicts_in_words(completion, table)
    assert "measure them in full" in line and "about" not in line
    table.more_entries = 1
    assert "measure about 1 more value of each" in verdicts_in_words(completion, table)[0]


def test_columns_with_noise_are_not_called_recovered(rng):
    """Their entries tell their pattern; single values stay unsure, so that the word is well determined."""
    M = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 200)) + 0.2 * rng.standard_normal((40, 200))
    completion = co.complete(with_gaps(rng, M, 0.2))
    table = completion.certificates(as_frame=False)
    assert (table.verdict == "recovered").sum() > 10
    shown = [completion.summary(), table._repr_html_(), report_html(completion)]
    assert all("well determined" in text and "recovered" not in text for text in shown)


@pytest.mark.slow
def test_the_reason_for_the_factor_model_is_one_reason(rng):
    M = rng.standard_normal((60, 6)) @ rng.standard_normal((6, 40)) + 0.1 * rng.standard_normal((60, 40))
    known = with_gaps(rng, M, 0.3)
    known[:, :2] = M[:, :2]
    share = 100 * 120 / np.isfinite(known).sum()
    completion = co.complete(known)
    assert completion.choices["method"].endswith(
        f"because the complete columns hold only {share:.2g} % of the known values"
    )
    assert completion.choices["method"].partition(", ")[2] in co.inspect(known)["verdict"]
    units = known * 10.0 ** np.arange(-6, 6).repeat(5)[:, None]
    assert co.complete(units).choices["method"].endswith("because the rows differ in unit")


@pytest.mark.slow
def test_a_plan_for_a_table_without_gaps_learns_from_a_part(rng, tmp_path):
    """Rows were chosen from a space without a direction: always the first ones."""
    M = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 200)) + 0.01 * rng.standard_normal((60, 200))
    M[:20] *= 1e-3  # The first rows tell nothing.
    np.save(tmp_path / "t.npy", M)
    done = CliRunner().invoke(cli, ["plan", "--select-rows", "5", str(tmp_path / "t.npy")])
    assert done.exit_code == 0 and min(map(int, done.output.split())) >= 20
    done = CliRunner().invoke(cli, ["plan", str(tmp_path / "t.npy")])
    assert done.exit_code == 0 and " of 200 columns in full and " in done.output
    (tmp_path / "one.csv").write_text("a\n1\n\n3\n", encoding="utf-8")
    for command in (["plan"], ["plan", "--select-rows", "1"]):
        done = CliRunner().invoke(cli, [*command, str(tmp_path / "one.csv")])
        assert "this table shows no pattern to plan with" in str(done.exception or done.output)
