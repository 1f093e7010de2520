"""Ways to a filled table: which entries were filled, the long frame, the verdict, and the inspection beforehand."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import colonnade as co
from colonnade.uncertainty.verdict import judge

from problems import hide, low_rank


def tables(rng, m=30, n=40, noise=0.1):
    """The same noisy table with some full columns, and with gaps anywhere."""
    L, R = low_rank(rng, m, n, 3)
    M = L @ R + noise * rng.standard_normal((m, n))
    return hide(rng, M, 15, 12)[0], np.where(rng.random((m, n)) < 0.5, M, np.nan)


@pytest.mark.slow
def test_the_mask_is_true_where_a_number_took_the_place_of_a_gap(rng):
    for known in tables(rng):
        mask = co.complete(known).filled_mask()
        assert mask.dtype == bool and (mask == np.isnan(known)).all()


@pytest.mark.slow
def test_the_mask_is_false_where_nothing_could_be_filled(rng):
    known = tables(rng)[1]
    known[3] = np.nan
    completion = co.complete(known, orientation="columns")
    filled = completion.to_dense()
    assert np.isnan(filled[3]).all() and not completion.filled_mask()[3].any()
    paper = co.complete(np.array([[1.0, 2, 1], [2, 4, np.nan], [1, 3, np.nan]]), rank=2, shrinkage=0, center=False)
    assert np.isnan(paper.to_dense()[1:, 2]).all() and not paper.filled_mask().any()


@pytest.mark.slow
def test_the_long_frame_has_a_line_for_each_entry(rng):
    for known in tables(rng):
        completion = co.complete(known)
        frame = completion.to_frame(interval=0.8)
        assert frame.columns.tolist() == ["row", "column", "value", "low", "high", "kind"]
        assert (frame.value.to_numpy() == completion.to_dense().ravel()).all()
        low, high = completion.interval(frame.row, frame.column, level=0.8)
        assert (frame.low == low).all() and (frame.high == high).all()
        assert ((frame.kind == "filled").to_numpy() == np.isnan(known).ravel()).all()
        assert set(frame.kind) == {"observed", "filled"}


@pytest.mark.slow
def test_the_long_frame_is_of_the_library_that_came_in_and_has_its_names(rng):
    known = tables(rng)[1]
    names = [f"c{j}" for j in range(known.shape[1])]
    index = [f"r{i}" for i in range(known.shape[0])]
    frame = co.complete(pd.DataFrame(known, index, names)).to_frame(interval=0.9)
    assert frame.row[:41].tolist() == ["r0"] * 40 + ["r1"] and frame.column[:41].tolist() == [*names, "c0"]
    polars = co.complete(pl.DataFrame(known, schema=names)).to_frame(interval=0.9)
    arrow = co.complete(pa.table(list(known.T), names=names)).to_frame(interval=0.9)
    assert isinstance(polars, pl.DataFrame) and isinstance(arrow, pa.Table)
    assert polars["row"][:41].to_list() == [0] * 40 + [1] and polars["column"].to_list() == frame.column.tolist()
    for name in ("value", "low", "high", "kind"):
        assert polars[name].to_list() == frame[name].tolist() == arrow[name].to_pylist()


@pytest.mark.slow
def test_what_could_not_be_filled_is_missing_in_the_long_frame(rng):
    known = tables(rng)[1]
    known[3] = np.nan
    names = [f"c{j}" for j in range(known.shape[1])]
    frame = co.complete(pl.DataFrame(known, schema=names, nan_to_null=True), orientation="columns").to_frame(
        interval=0.9
    )
    row = frame.filter(pl.col("row") == 3)
    assert set(row["kind"]) == {"missing"} and row["value"].null_count() == row["high"].null_count() == 40


@pytest.mark.filterwarnings("ignore:als did not converge")
def test_a_method_without_intervals_has_no_long_frame_of_them(rng):
    completion = co.complete(tables(rng)[1], method="als")
    with pytest.raises(ValueError, match="ALS has no intervals"):
        completion.to_frame(interval=0.9)
    with pytest.raises(ValueError, match=r"interval must be a finite number in \(0, 1\); got 90"):
        completion.to_frame(interval=90)


@pytest.mark.parametrize(
    "error, coverage, word",
    [
        (1e-9, 0.1, "use it"),
        (0.49, 0.80, "use it"),
        (0.49, 0.98, "use it"),
        (0.49, 0.79, "use it with care"),
        (0.49, 0.99, "use it with care"),
        (0.50, 0.90, "use it with care"),
        (0.94, 0.90, "use it with care"),
        (0.96, 0.90, "do not use it"),
        (1.00, 0.90, "do not use it"),
        (np.nan, 0.90, "use it with care"),
    ],
)
def test_the_verdict_follows_error_and_coverage(error, coverage, word):
    found = judge(error, coverage)
    assert found.word == word and str(found) == f"{word}. {found.sentence}" and found.sentence.endswith(".")


@pytest.mark.filterwarnings("ignore:als did not converge")
@pytest.mark.slow
def test_verdicts_on_tables(rng):
    for noise, word in ((0.1, "use it"), (0.0, "use it")):
        for known in tables(rng, 60, 80, noise):
            assert co.complete(known).verdict.word == word
    known = np.where(rng.random((60, 80)) < 0.5, rng.standard_normal((60, 80)), np.nan)
    assert co.complete(known).verdict.word != "use it"  # Pure noise: the error is that of the mean, up to chance.
    few = co.complete(np.array([[1.0, np.nan, 2], [np.nan, 3, 1], [2, 1, np.nan]]))
    assert few.verdict.word == "use it with care" and "too few known values" in few.verdict.sentence
    als = co.complete(known, method="als")
    assert als.verdict.word == "use it with care" and "ALS was not tested on known values" in als.verdict.sentence
    assert "Every value is known" in co.complete(rng.standard_normal((5, 4))).verdict.sentence


@pytest.mark.parametrize("level", ["of all", "of columns", "of rows"])
def test_noise_about_a_level_is_not_recovered(rng, level):
    """With complete columns too, the error is beside the means and not beside the size of the values."""
    levels = {"of all": 1.0, "of columns": rng.standard_normal(12), "of rows": rng.standard_normal((80, 1))}
    M = 1000 * levels[level] + rng.standard_normal((80, 12))
    M[(rng.random(M.shape) < 0.3) & (np.arange(12) >= 8)] = np.nan
    completion = co.complete(M, method="full columns")
    assert completion.verdict.word == "do not use it" and "well determined" not in completion.summary()


def test_rows_without_any_spread_are_predicted_exactly(rng):
    M = np.repeat(rng.standard_normal((40, 1)), 12, axis=1)
    M[(rng.random(M.shape) < 0.3) & (np.arange(12) >= 5)] = np.nan
    for how in ({}, {"method": "full columns"}):
        assert co.complete(M, **how).verdict.word == "use it"


@pytest.mark.slow
def test_there_is_one_number_for_the_fit_and_skewed_tables_get_advice(rng):
    A = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 8))
    gaps = rng.random(A.shape) < 0.2
    skewed = np.where(gaps, np.nan, np.exp(2 * A + 0.1 * rng.standard_normal(A.shape)))
    for table in (skewed, np.where(gaps & (np.arange(8) > 3), np.nan, 20 + A), skewed[:30]):
        summary = co.complete(table).summary()
        assert summary.count("typical error is") <= 1 and "\nFit: cross-validation" not in summary
    summary = co.complete(skewed).summary()
    assert "Verdict: use it." not in summary and "Try their logarithms" in summary


@pytest.mark.slow
def test_units_do_not_change_the_verdict(rng):
    for known in tables(rng):
        assert str(co.complete(known).verdict) == str(co.complete(1024 * known).verdict)


@pytest.mark.slow
def test_the_verdict_leads_the_summary(rng):
    for known in tables(rng):
        completion = co.complete(known)
        assert completion.summary().splitlines()[0] == f"Verdict: {completion.verdict}"


def test_inspect_says_what_a_table_is_like(rng):
    known = tables(rng)[0]
    found = co.inspect(pd.DataFrame(known))
    assert found["shape"] == [30, 40] and found["columns"]["full"] == 15 and found["method"] == "full columns"
    assert str(found).startswith("This table can be filled: 15 of 40 columns are complete") and "\nAdvice: " in str(
        found
    )
    assert "<th" in found._repr_html_() and "Advice" in found._repr_html_()
    assert json.loads(json.dumps(found)) == found
    assert co.inspect(co.Observations.from_dense(known)) == found


def test_names_in_an_inspection_are_no_html():
    frame = pd.DataFrame({"<b>": [1.0, np.nan], "c": [np.nan, 1.0]})
    assert "<b>" not in co.inspect(frame)._repr_html_()


@pytest.mark.slow
def test_certificates_are_a_frame_with_names_where_the_data_were_one(rng):
    M = tables(rng)[1]
    names = [f"c{j}" for j in range(M.shape[1])]
    array = co.complete(M).certificates()
    assert isinstance(array, np.recarray)
    for library in (pd, pl):
        completion = co.complete(library.DataFrame(dict(zip(names, M.T))))
        frame = completion.certificates()
        assert isinstance(frame, library.DataFrame) and list(frame["name"]) == names
        assert list(frame["verdict"]) == array.verdict.tolist()
        assert str(completion.certificates(as_frame=False).tolist()) == str(array.tolist())
    assert list(co.complete(M).certificates(as_frame=True)["name"]) == list(range(M.shape[1]))
