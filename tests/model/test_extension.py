"""New columns filled by what was learned: the old answers stay, the new ones are those of the equations."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import colonnade as co
from colonnade.model.solve import solve_columns

from problems import hide, low_rank


def split_table(rng, m=40, n=60, k=8, noise=0.1, dtype=np.float64):
    """A table with full columns, one with gaps anywhere, new columns seen at half of their rows, and their truth."""
    L, R = low_rank(rng, m, n + k, 3)
    M = (L @ R + noise * rng.standard_normal((m, n + k))).astype(dtype)
    new = np.where(rng.random((m, k)) < 0.5, M[:, n:], dtype(np.nan))
    gappy = np.where(rng.random((m, n)) < 0.5, M[:, :n], dtype(np.nan))
    return hide(rng, M[:, :n], 25, 15)[0], gappy, new, M[:, n:]


def completions(rng, **kind):
    full, gappy, new, truth = split_table(rng, **kind)
    yield co.complete(full), new, truth
    for side in ("columns", "rows"):
        yield co.complete(gappy, method="factor model", orientation=side), new, truth


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.slow
def test_old_answers_stay_and_new_columns_are_filled(rng, dtype):
    for old, new, truth in completions(rng, dtype=dtype):
        longer = old.extend(new)
        n, missing = old.shape[1], np.isnan(new)
        assert longer.shape == (40, 68) and longer.dtype == dtype
        assert longer.columns(np.arange(n)).tobytes() == old.to_dense().tobytes()
        assert longer.to_dense()[:, :n].tobytes() == old.to_dense().tobytes()
        filled = longer.columns(np.arange(n, 68))
        assert (filled[~missing] == new[~missing]).all()
        error = np.sqrt(np.mean((filled - truth)[missing] ** 2))
        assert error < 0.15 * truth.std()  # The noise is 6 % of it.
        assert (longer.filled_mask()[:, n:] == missing).all()
        rows, columns = np.nonzero(missing)
        low, high = longer.interval(rows, columns + n)
        held = np.mean((low <= truth[missing]) & (truth[missing] <= high))
        assert 0.75 < held <= 1


@pytest.mark.slow
def test_intervals_of_the_factor_model_stay_for_old_columns(rng):
    for old, new, _ in list(completions(rng))[1:]:
        longer = old.extend(new)
        for before, after in zip(old.interval(3, np.arange(60)), longer.interval(3, np.arange(60))):
            assert before.tobytes() == after.tobytes()


def test_new_columns_are_solved_by_the_same_equation(rng):
    full, _, new, _ = split_table(rng)
    old = co.complete(full)
    expected, _ = solve_columns(old.space, co.Observations.from_dense(new), penalty=old.penalty)
    np.testing.assert_allclose(old.extend(new).coefficients[:, 60:], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("side", ["columns", "rows"])
def test_old_columns_that_come_again_get_their_old_answer(rng, side):
    """A known column is one update away from itself, at convergence."""
    gappy = split_table(rng)[1]
    old = co.complete(gappy, method="factor model", orientation=side)
    again = old.extend(gappy[:, :10]).columns(np.arange(60, 70))
    gap = np.abs(again - old.columns(np.arange(10)))
    assert gap.max() < (1e-9 if side == "columns" else 0.05)


@pytest.mark.parametrize("side", ["columns", "rows"])
def test_exact_tables_are_extended_exactly(rng, side):
    L, R = low_rank(rng, 60, 88, 3)
    M = L @ R
    gappy = np.where(rng.random(M.shape) < 0.5, M, np.nan)
    old = co.complete(gappy[:, :80], method="factor model", orientation=side)
    assert old.learned.is_exact
    longer = old.extend(gappy[:, 80:])
    assert np.abs(longer.to_dense() - M).max() < 1e-7 * np.abs(M).max()
    few = np.full((60, 1), np.nan)
    few[0] = 1.0
    assert co.Status(old.extend(few).status[-1]) is co.Status.TOO_FEW
    with pytest.raises(ValueError, match="new column 0 does not fit the model"):
        old.extend(rng.standard_normal((60, 1)))


@pytest.mark.parametrize("side", ["columns", "rows"])
def test_columns_without_an_entry_and_full_ones(rng, side):
    _, gappy, _, truth = split_table(rng)
    old = co.complete(gappy, method="factor model", orientation=side)
    nothing = np.full((40, 1), np.nan)
    longer = old.extend(np.hstack([nothing, truth[:, :1]]))
    expected = co.Status.PRIOR_ONLY if side == "columns" else co.Status.NO_OBSERVATION
    assert co.Status(longer.status[60]) is expected and co.Status(longer.status[61]) is co.Status.FULL
    assert (longer.columns(61)[:, 0] == truth[:, 0]).all()
    assert np.isnan(longer.columns(60)).any() == (side == "rows")


@pytest.mark.parametrize("side", ["columns", "rows"])
def test_a_typing_error_in_a_new_column_counts_little_where_noise_has_long_tails(rng, side):
    _, gappy, new, truth = split_table(rng)
    gappy[(rng.random(gappy.shape) < 0.03) & ~np.isnan(gappy)] *= 30
    old = co.complete(gappy, method="factor model", orientation=side)
    if not np.isfinite(old.learned.model.settings.degrees):
        pytest.skip("this draw prefers Gaussian noise")
    wrong = new.copy()
    wrong[np.flatnonzero(~np.isnan(new[:, 0]))[0], 0] = 60.0
    missing = np.isnan(new[:, 0])
    clean, spoiled = (old.extend(x).columns(60)[missing, 0] for x in (new, wrong))
    assert np.abs(spoiled - clean).max() < 0.3 * truth.std()


@pytest.mark.slow
def test_weights_count_in_the_units_of_the_old_ones(rng):
    _, gappy, new, _ = split_table(rng)
    weights = np.full(gappy.shape, 4.0)
    weighted = co.Observations.from_dense(gappy, weights=weights)
    plain, scaled = co.complete(gappy, method="factor model"), co.complete(weighted, method="factor model")
    one = plain.extend(new).to_dense()
    other = scaled.extend(co.Observations.from_dense(new, weights=np.full(new.shape, 4.0))).to_dense()
    # With weights, sums run over known entries, without over the missing ones. Sweeps enlarge the rounding.
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-7 * gappy[~np.isnan(gappy)].std())


@pytest.mark.slow
def test_names_and_frames_go_along(rng):
    _, gappy, new, _ = split_table(rng)
    names, added = [f"c{j}" for j in range(60)], [f"n{j}" for j in range(8)]
    for make in (lambda M, c: pd.DataFrame(M, columns=c), lambda M, c: pl.DataFrame(M, schema=c, nan_to_null=True)):
        longer = co.complete(make(gappy, names)).extend(make(new, added))
        frame = longer.to_frame()
        assert list(frame.columns) == names + added and longer.column_names.tolist() == names + added
        assert (frame.to_numpy() == longer.to_dense()).all()
        with pytest.raises(ValueError, match="the table has 'c3' already"):
            longer.extend(make(new[:, :1], ["c3"]))
    plain = co.complete(gappy).extend(new)
    assert plain.column_names is None and plain.to_frame().columns.tolist() == list(range(68))
    index = [f"r{i}" for i in range(40)]
    with pytest.raises(ValueError, match="row 0 is 'r0' in the table and 'r39' in the new columns"):
        co.complete(pd.DataFrame(gappy, index)).extend(pd.DataFrame(new, index[::-1]))


def test_an_extended_result_is_saved_and_extended_again(rng, tmp_path):
    for k, (old, new, _) in enumerate(completions(rng)):
        longer = old.extend(new[:, :3]).extend(new[:, 3:])
        longer.save(tmp_path / str(k))
        loaded = co.Completion.load(tmp_path / str(k))
        assert loaded.to_dense().tobytes() == longer.to_dense().tobytes()
        np.testing.assert_allclose(longer.to_dense(), old.extend(new).to_dense(), rtol=1e-6, atol=1e-2)
        assert longer.certificates().size == 68 and "5 columns added later" in longer.summary()
        assert longer.sample(2, columns=[0, 67], random_state=0).shape == (2, 40, 2)


@pytest.mark.filterwarnings("ignore:als did not converge")
def test_what_cannot_be_extended_is_refused(rng):
    full, gappy, new, _ = split_table(rng)
    with pytest.raises(ValueError, match="ALS cannot fill new columns"):
        co.complete(gappy, method="als").extend(new)
    with pytest.raises(ValueError, match="new columns must have 40 rows as the table has; got 39"):
        co.complete(full).extend(new[:39])
    with pytest.raises(ValueError, match=r"new columns must be numbers; 'day' \(text\)"):
        co.complete(full).extend(pd.DataFrame(new).assign(day="Monday"))
    with pytest.raises(ValueError, match="no direction was learned"):
        co.complete(rng.standard_normal((40, 5))).extend(new)


def test_weights_of_new_columns_do_not_change_intervals_of_old_ones(rng):
    M = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 50)) + 0.3 * rng.standard_normal((30, 50))
    M[rng.random(M.shape) < 0.4] = np.nan
    o = co.Observations.from_dense(M[:, :40], weights=np.full((30, 40), 2.0))
    new = co.Observations.from_dense(M[:, 40:], weights=np.full((30, 10), 200.0))
    before = co.complete(o, method="factor model", orientation="columns")
    after = before.extend(new)
    rows, columns = np.indices((30, 40))
    for old, found in zip(before.interval(rows, columns), after.interval(rows, columns)):
        np.testing.assert_allclose(found, old, rtol=1e-10)
