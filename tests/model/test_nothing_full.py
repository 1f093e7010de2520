"""Where no column is full: the table is filled, and what needs full columns says what to leave out."""

import re

import numpy as np
import pytest

import colonnade as co
from colonnade.methods import tall_project

from problems import hide, low_rank

PAPER = {"rank": 2, "center": False, "shrinkage": 0, "refine": 0}


def refusal(fill, data, **settings):
    with pytest.raises(ValueError, match="no column is known in all") as caught:
        fill(data, **settings)
    return str(caught.value)


def without_a_full_column(rng, m=30, n=25, r=2, share=0.7):
    """A table of rank r, and what is known of it: no column and no row is complete."""
    L, R = low_rank(rng, m, n, r)
    gaps = rng.random((m, n)) > share
    gaps[np.arange(n) % m, np.arange(n)] = True
    gaps[np.arange(m), np.arange(m) % n] = True
    return L @ R, np.where(gaps, np.nan, L @ R)


@pytest.mark.slow
def test_exact_data_are_recovered_though_no_column_is_full(rng):
    M, known = without_a_full_column(rng)
    completion = co.complete(known)
    assert np.abs(completion.to_dense() - M).max() < 1e-9 * np.abs(M).max()
    assert completion.learned is not None and completion.observations.full_columns.size == 0


def test_the_settings_of_the_paper_need_full_columns_and_the_message_says_what_to_leave_out(rng):
    _, known = without_a_full_column(rng)
    counts = (~np.isnan(known)).sum(axis=0)
    first = int(np.argmax(counts))
    words = refusal(co.complete, known, **PAPER)
    assert words.startswith("no column is known in all 30 rows, and this method learns from such columns. The fullest")
    assert f"column {first} with {counts[first]}" in words and "transpose" not in words
    assert "Leave out center, shrinkage and refine (--center, --shrinkage, --refine): then colonnade learns" in words
    assert "Leave out refine (--refine): " in refusal(co.complete, known, refine=3)
    assert "Leave out method (--method): " in refusal(co.complete, known, method="full columns")
    assert "Use colonnade.complete(data): it learns from all columns." in refusal(tall_project, known)
    assert co.complete(known, rank=2).shape == known.shape  # What the message advises helps.


def test_full_rows_are_for_the_other_way(rng):
    known = hide(rng, rng.standard_normal((20, 15)), 4, 8)[0].T
    words = refusal(co.complete, known, **PAPER)
    assert words.endswith("Or transpose the data (M.T or --transpose): 4 rows are complete.")
    assert co.complete(known.T, **PAPER).observations.full_columns.size == 4
    one = known[:, [np.flatnonzero(np.isnan(known).any(axis=0))[0]]]
    assert "transpose" not in refusal(co.complete, one, shrinkage=0)


def test_names_that_begin_alike_are_several_columns():
    known = co.Observations.from_dense(
        np.array([[1.0, np.nan], [np.nan, 2.0]]), column_names=["x" * 50 + "1", "x" * 50 + "2"]
    )
    words = refusal(co.complete, known, shrinkage=0)
    assert words.count("with 1") == 2 and "The fullest are" in words


@pytest.mark.parametrize("settings", [{}, PAPER, {"method": "factor model"}, {"method": "full columns"}])
def test_a_table_without_any_entry_is_refused(settings):
    with pytest.raises(ValueError, match="no entry of the 4 x 3 table is known, so there is nothing to learn from"):
        co.complete(np.full((4, 3), np.nan), **settings)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"method": "als", "shrinkage": 0}, "method 'als' does not use shrinkage; leave it out"),
        ({"method": "svt", "bounds": (0, 1), "center": True}, "does not use center, bounds; leave them out"),
        ({"method": "factor model", "refine": 2}, "method 'factor model' does not use refine; leave it out"),
        ({"method": "full columns", "orientation": "rows"}, "method 'full columns' does not use orientation"),
        ({"shrinkage": 0, "orientation": "rows"}, "shrinkage cannot be combined with orientation='rows'"),
        ({"method": "magic"}, "method must be one of 'auto', 'factor model', 'full columns', 'als'"),
        ({"orientation": "up"}, "orientation must be one of 'auto', 'columns', 'rows'"),
    ],
)
def test_settings_without_effect_are_refused(settings, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        co.complete(np.eye(3), **settings)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["als", "soft_impute", "svt", "optspace"])
def test_the_rank_reaches_every_method(rng, method):
    _, known = without_a_full_column(rng, r=4)
    assert co.complete(known, method=method, rank=2).rank <= 2
