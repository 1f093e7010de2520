"""Where no column is full: what the message names, and that what it advises helps."""

import numpy as np
import pytest

import colonnade as co
from colonnade.nothing_full import rows_to_drop

from problems import hide


def refusal(known, **names):
    with pytest.raises(ValueError, match="no column is known in all") as caught:
        co.complete(co.Observations.from_dense(known, **names))
    return str(caught.value)


def test_rows_without_which_columns_are_full(rng):
    known, _ = hide(rng, rng.standard_normal((20, 15)), 6, 8)
    known[[4, 11], :] = np.nan
    words = refusal(known)
    assert "drop the 2 rows 4, 11, and the 6 fullest columns are full" in words
    assert co.complete(np.delete(known, [4, 11], axis=0)).observations.full_columns.size == 6
    assert "drop the 2 rows 'r4', 'r11', and" in refusal(known, row_names=[f"r{i}" for i in range(20)])


def test_a_row_without_an_entry_is_named_if_that_helps(rng):
    known = np.full((20, 15), np.nan)
    known[:6] = np.where(rng.random((6, 15)) < 0.5, 1.0, np.nan)
    known[np.arange(15) % 6, np.arange(15)] = np.nan
    assert "drop" not in refusal(known) and "transpose" not in refusal(known)
    known[:, 3] = 1.0
    known[17] = np.nan
    assert "drop row 17, without an entry; or measure some columns in full" in refusal(known)


def test_full_rows_are_for_the_other_way(rng):
    known = hide(rng, rng.standard_normal((20, 15)), 4, 8)[0].T
    assert refusal(known).endswith("or transpose the data (M.T or --transpose), of which 4 rows are complete")
    assert "transpose" not in refusal(known[:, [np.flatnonzero(np.isnan(known).any(axis=0))[0]]])


def test_names_that_begin_alike_are_several_columns():
    known = np.array([[1.0, np.nan], [np.nan, 2.0]])
    words = refusal(known, column_names=["x" * 50 + "1", "x" * 50 + "2"])
    assert words.count("with 1") == 2 and "the fullest are" in words


@pytest.mark.parametrize("m", range(2, 12))
def test_at_most_half_of_the_rows_are_to_drop(rng, m):
    known = np.where(rng.random((m, 30)) < 0.8, 1.0, np.nan)
    found = rows_to_drop(co.Observations.from_dense(known))
    if found is not None:
        n_columns, rows = found
        assert 0 < 2 * rows.size <= m and n_columns >= 2
        assert (~np.isnan(np.delete(known, rows, axis=0)).any(axis=0)).sum() >= n_columns
