"""Tables whose columns are variables in units of their own, with complete columns or without."""

import numpy as np
import pytest

import colonnade as co

LEVELS = np.array([45, 172, 48_000, 0.02, 13.5])  # Age, height in cm, income, a concentration, haemoglobin.
SPREADS = np.array([12, 9, 15_000, 0.005, 1.5])


def people(rng, n):
    return LEVELS + SPREADS * (rng.standard_normal((n, 1)) + 0.4 * rng.standard_normal((n, 5)))


@pytest.mark.parametrize("n", [10, 20, 200])
@pytest.mark.parametrize("with_gaps", [[2, 3], [0, 1, 2, 3, 4]])
def test_small_units_are_not_drowned_by_large_ones(rng, n, with_gaps):
    X = people(rng, n)
    hidden = np.zeros(X.shape, bool)
    hidden[:, with_gaps] = rng.random((n, len(with_gaps))) < 0.2
    hidden[0, 3] = True
    for turn in (False, True):
        table = np.where(hidden, np.nan, X)
        completion = co.complete(table.T if turn else table)
        filled = completion.to_dense().T if turn else completion.to_dense()
        assert np.abs((filled - X)[hidden] / np.broadcast_to(SPREADS, X.shape)[hidden]).max() < 4
        assert ("differ in unit" in completion.choices["orientation"]) and completion.verdict.word != "do not use it"


def test_side_of_units_knows_no_order_and_no_scale(rng):
    from colonnade.model.table import side_of_units

    X = people(rng, 50)
    for table, side in ((X, "columns"), (X.T, "rows"), (X / SPREADS, None), ((X / SPREADS).T, None)):
        for scale in (1e-200, 1.0, 1e200):
            assert side_of_units(co.Observations.from_dense(table * scale)) == side


def test_gaps_do_not_make_units_of_samples(rng):
    """Rows that lack variables of another level seem to differ in unit; they do not."""
    from colonnade.model.table import side_of_units

    n = 300
    X = np.column_stack([-95 + rng.standard_normal((n, 1)), 48 + rng.standard_normal((n, 1)), rng.poisson(1.0, (n, 3))])
    X[rng.random(X.shape) < 0.2] = np.nan
    scaled = X * 10.0 ** np.arange(5)
    for table, side in ((X, None), (X.T, None), (scaled, "columns"), (scaled.T, "rows")):
        assert side_of_units(co.Observations.from_dense(table)) == side


def test_hidden_entries_correct_a_side_that_only_seems_to_have_units(seed):
    """Answers to a few steps of a scale, written with different digits: rows of equal answers have tiny spreads."""
    from colonnade.model.table import side_of_units

    rng = np.random.default_rng(seed)
    level = rng.standard_normal((80, 1))
    steps = np.round((5 + 4 * level + 1.5 * rng.standard_normal((80, 8))) * 0.3) / 0.3
    answers = np.clip(steps, 0, 10) * (1 + 1e-6 * rng.integers(0, 3, (80, 8)))
    others = [5.0, 4.8, 3.6] + np.array([0.7, 1.5, 1.4]) * (0.9 * level + 0.4 * rng.standard_normal((80, 3)))
    X = np.hstack([answers, others])
    hidden = rng.random(X.shape) < 0.2
    table = np.where(hidden, np.nan, X)
    assert side_of_units(co.Observations.from_dense(table)) == "rows"
    errors = []
    for orientation in ("auto", "rows"):
        filled = co.complete(table, orientation=orientation).to_dense()
        errors.append(np.sqrt(np.mean(((filled - X) / X.std(axis=0))[hidden] ** 2)))
    assert errors[0] < 1.05 * errors[1] < 0.8  # 1.3 to 1.8 with units of the rows.


def test_an_exact_table_with_an_open_row_is_only_exact_in_part():
    rng = np.random.default_rng(18)
    M = rng.uniform(1, 5, (12, 1)) @ rng.uniform(1, 5, (1, 5))
    hidden = rng.random(M.shape) < 0.2
    completion = co.complete(np.where(hidden, np.nan, M))
    assert (~hidden).sum(axis=1).min() == 1 and completion.learned.is_exact
    assert completion.verdict.word == "use it with care" and "only estimates" in completion.verdict.sentence
