"""Gaps in blocks, whose neighbours are gaps too: their intervals come from entries that are hidden in the same way."""

import numpy as np
import pytest

import colonnade as co


def with_dependent_errors(rng, m=80, n=150):
    """Two patterns, and errors that neighbouring rows share nearly all of: a random walk that forgets."""
    errors = rng.standard_normal((m, n))
    for i in range(1, m):
        errors[i] = 0.97 * errors[i - 1] + np.sqrt(1 - 0.97**2) * errors[i]
    patterns = 2 * rng.standard_normal((m, 2)) @ rng.standard_normal((2, n))
    return patterns + errors + 0.1 * rng.standard_normal((m, n))


def in_blocks(rng, shape):
    hidden = np.zeros(shape, bool)
    for j in range(shape[1]):
        length = int(shape[0] * rng.uniform(0.15, 0.45))
        first = rng.integers(0, shape[0] - length + 1)
        hidden[first : first + length, j] = True
    return hidden


def share_inside(completion, truth, hidden):
    low, high = completion.interval(*np.nonzero(hidden), level=0.9)
    return np.mean((low <= truth[hidden]) & (truth[hidden] <= high))


def test_intervals_hold_in_blocks_of_gaps(rng):
    """Single hidden entries have their neighbours: intervals from these hold 69 to 74 %."""
    X = with_dependent_errors(rng)
    hidden = in_blocks(rng, X.shape)
    for turn in (False, True):
        truth, gaps = (X.T, hidden.T) if turn else (X, hidden)
        completion = co.complete(np.where(gaps, np.nan, truth))
        assert completion.learned.held_out.like_gaps
        assert 0.82 < share_inside(completion, truth, gaps) < 0.96
        error = float(completion.choices["fit"].split("typical error is ")[1].split(" %")[0]) / 100
        spread = truth.std(axis=0 if completion.learned.is_turned else 1, keepdims=True)
        true = np.sqrt(np.mean(((completion.to_dense() - truth) / spread)[gaps] ** 2))
        assert 0.7 < error / true < 1.4  # Of single hidden entries .3 to .5.


def test_a_saved_result_keeps_its_intervals(rng, tmp_path):
    X = with_dependent_errors(rng)
    hidden = in_blocks(rng, X.shape)
    completion = co.complete(np.where(hidden, np.nan, X))
    loaded = co.Completion.load(completion.save(tmp_path / "result") or tmp_path / "result")
    for ends, others in zip(completion.interval(*np.nonzero(hidden)), loaded.interval(*np.nonzero(hidden))):
        np.testing.assert_array_equal(ends, others)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_gaps_at_random_are_no_harder_than_single_entries(share):
    rng = np.random.default_rng(0)
    X = with_dependent_errors(rng)
    hidden = rng.random(X.shape) < share
    assert not co.complete(np.where(hidden, np.nan, X)).learned.held_out.like_gaps


def test_a_large_table_is_tested_on_neighbouring_columns(monkeypatch):
    from colonnade.model import selection

    rng = np.random.default_rng(1)
    X = with_dependent_errors(rng, n=400)
    hidden = in_blocks(rng, X.shape)
    monkeypatch.setattr(selection, "_LARGE", 10_000)
    completion = co.complete(np.where(hidden, np.nan, X))
    found = completion.learned.held_out
    assert found.like_gaps and found.rows.size < 1_500
    np.testing.assert_array_equal(found.truth, X[found.rows, found.columns])
    assert 0.8 < share_inside(completion, X, hidden) < 0.97
