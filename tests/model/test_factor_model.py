"""The factor model: its updates against dense formulas, its bound, exact data, units, outliers, empty sides."""

import numpy as np
import pytest

import colonnade as co
from colonnade import Observations
from colonnade.model.factor_model import Settings
from colonnade.model.kernels import sweep_kernels
from colonnade.model.packed import unpacked
from colonnade.model.selection import learn_table
from colonnade.model.sweeps import Sweeps
from colonnade.model.table import scaled_table


def gappy(rng, m, n, rank=3, noise=0.1, share=0.5):
    """A table of low rank plus noise with a share of it seen, and the whole of it."""
    truth = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) + noise * rng.standard_normal((m, n))
    return np.where(rng.random((m, n)) < share, truth, np.nan), truth


def columns_in_numpy(M, U, T, v):
    """z_j and S_j of DESIGN's equations, column by column, with the level as the last coordinate of U."""
    r = U.shape[1] - 1
    for j in range(M.shape[1]):
        seen = np.flatnonzero(~np.isnan(M[:, j]))
        second = np.einsum("ia,ib->iab", U, U) + T
        precision = np.eye(r) + np.einsum("i,iab->ab", 1 / v[seen], second[seen, :r, :r])
        h = sum((U[i, :r] * M[i, j] - second[i, :r, r]) / v[i] for i in seen)
        S = np.linalg.inv(precision)
        yield S @ h, S, np.linalg.slogdet(precision)[1]


def test_columns_are_updated_as_the_equations_say(rng):
    m, n, r = 12, 9, 3
    q = r + 1
    M = np.where(rng.random((m, n)) < 0.6, rng.standard_normal((m, n)), np.nan)
    U, v = rng.standard_normal((m, q)), rng.random(m) + 0.5
    root = rng.standard_normal((m, q, q)) * 0.3
    T = root @ root.transpose(0, 2, 1)
    lower = np.tril_indices(q)
    moments = (np.einsum("ia,ib->iab", U, U) + T)[:, lower[0], lower[1]]
    o = co.Observations.from_dense(M)
    Z, S, logs = np.zeros((n, q)), np.zeros((n, r * (r + 1) // 2)), np.zeros(n)
    given = 0, n, (o.indptr, o.rows, o.values, np.zeros(0)), (o.indptr, o.rows, np.zeros(n, bool))
    sweep_kernels.update_groups(
        *given,
        *(np.zeros((2, moments.shape[1])), U, np.ascontiguousarray(moments), 1 / v, np.ones(n), np.eye(r)),
        *(np.zeros(q), (Z, S, logs, np.zeros(0)), sweep_kernels.memory_of(m, q, r)),
    )
    for j, (z, covariance, log) in enumerate(columns_in_numpy(M, U, T, v)):
        np.testing.assert_allclose(Z[j, :r], z, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(unpacked(S[j], r), covariance, rtol=1e-10, atol=1e-12)
        assert logs[j] == pytest.approx(log)


def test_rows_are_updated_as_the_equations_say(rng):
    m, n, r = 7, 15, 2
    q = r + 1
    M = np.where(rng.random((m, n)) < 0.7, rng.standard_normal((m, n)), np.nan)
    Z = np.column_stack([rng.standard_normal((n, r)), np.ones(n)])
    root = rng.standard_normal((n, r, r)) * 0.3
    S = np.zeros((n, q, q))
    S[:, :r, :r] = root @ root.transpose(0, 2, 1)
    second = np.einsum("ja,jb->jab", Z, Z) + S
    lower, v = np.tril_indices(q), rng.random(m) + 0.5
    prior, shift = np.diag([1.0, 2.0, 0.1]), np.array([0.3, -0.2, 0.0])
    across = co.Observations.from_dense(M).transposed()
    U, T, logs, squares = np.zeros((m, q)), np.zeros((m, q * (q + 1) // 2)), np.zeros(m), np.zeros(m)
    given = 0, m, (across.indptr, across.rows, across.values, np.zeros(0))
    given = *given, (across.indptr, across.rows, np.zeros(m, bool))
    sweep_kernels.update_groups(
        *(*given, np.zeros((2, lower[0].size)), Z),
        *(np.ascontiguousarray(second[:, lower[0], lower[1]]), np.ones(n), 1 / v, prior, shift),
        *((U, T, logs, squares), sweep_kernels.memory_of(n, q, q)),
    )
    for i in range(m):
        seen = np.flatnonzero(~np.isnan(M[i]))
        covariance = np.linalg.inv(prior + second[seen].sum(axis=0) / v[i])
        mean = covariance @ (shift + M[i, seen] @ Z[seen] / v[i])
        np.testing.assert_allclose(U[i], mean, rtol=1e-10)
        np.testing.assert_allclose(unpacked(T[i], q), covariance, rtol=1e-10, atol=1e-13)
        full = np.outer(mean, mean) + covariance
        expected = sum(M[i, j] ** 2 - 2 * M[i, j] * mean @ Z[j] + (full * second[j]).sum() for j in seen)
        assert squares[i] == pytest.approx(expected)


def test_predictive_variances_are_those_of_a_product(rng):
    """Var[u'z] of independent Gaussian vectors, by drawing them."""
    r, draws = 2, 200_000
    q = r + 1
    root, half = rng.standard_normal((q, q)) * 0.4, rng.standard_normal((r, r)) * 0.4
    U, Z = rng.standard_normal((1, q)), np.append(rng.standard_normal(r), 1.0)[None]
    T, S = root @ root.T, half @ half.T
    found = np.zeros(1)
    at = np.zeros(1, np.int64)
    packed = T[np.tril_indices(q)][None], S[np.tril_indices(r)][None]
    sweep_kernels.fit_variances(at, at, U, packed[0], Z, packed[1], found)
    u = U + rng.standard_normal((draws, q)) @ root.T
    z = np.column_stack([Z[0, :r] + rng.standard_normal((draws, r)) @ half.T, np.ones(draws)])
    assert found[0] == pytest.approx(float((u * z).sum(axis=1).var()), rel=0.03)


@pytest.mark.parametrize("tail", [0.02, 1e-6])
def test_the_bound_never_falls(rng, tail):
    M, _ = gappy(rng, *rng.integers(8, 40, 2).tolist())
    sweeps = Sweeps(scaled_table(co.Observations.from_dense(M)), Settings(5, tail))
    bounds = []
    for _ in range(40):
        sweeps.sweep()
        bounds.append(sweeps.bound())
    assert (np.diff(bounds) > -1e-8 * np.abs(bounds[-1])).all()


@pytest.mark.slow
def test_data_of_low_rank_are_recovered_exactly_from_gaps_anywhere(rng):
    M, truth = gappy(rng, 100, 120, rank=3, noise=0.0, share=0.4)
    completion = co.complete(M)
    assert np.abs(completion.to_dense() - truth).max() < 1e-8 * np.abs(truth).max()
    low, high = completion.interval(0, np.arange(120))
    assert (high - low <= 1e-6 * np.abs(truth).max()).all()
    assert "exact" in completion.choices["fit"]


@pytest.mark.slow
@pytest.mark.parametrize("draw", range(6))
def test_a_quarter_of_an_exact_table_is_enough(draw):
    M, truth = gappy(np.random.default_rng(draw), 300, 400, rank=5, noise=0.0, share=0.25)
    assert np.abs(co.complete(M).to_dense() - truth).max() < 1e-8 * np.abs(truth).max()


@pytest.mark.parametrize("orientation", ["columns", "rows"])
@pytest.mark.slow
def test_units_of_a_side_change_nothing_but_units(rng, orientation):
    M, _ = gappy(rng, 40, 30, share=0.7)
    units, levels = 10.0 ** rng.integers(-4, 5, 40), rng.standard_normal(40) * 100
    if orientation == "columns":
        plain, other = M, M * units[:, None] + (levels * units)[:, None]
        back = lambda X: X / units[:, None] - levels[:, None]  # noqa: E731
    else:
        plain, other = M.T, (M * units[:, None]).T
        back = lambda X: X / units  # noqa: E731
    first = co.complete(plain, method="factor model", orientation=orientation)
    second = co.complete(other, method="factor model", orientation=orientation)
    np.testing.assert_allclose(back(second.to_dense()), first.to_dense(), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_table_and_its_transpose_have_the_same_answer(rng):
    M, _ = gappy(rng, 40, 30)
    one = co.complete(M, method="factor model", orientation="columns")
    other = co.complete(M.T, method="factor model", orientation="rows")
    assert one.learned.is_turned is False and other.learned.is_turned is True
    missing = np.isnan(M)
    gap = np.abs(one.to_dense() - other.to_dense().T)[missing]
    assert np.sqrt(np.mean(gap**2)) < 0.1  # Other entries are hidden, so that other settings may be chosen.


@pytest.mark.slow
def test_intervals_hold_and_know_where_little_is_known(rng):
    M, truth = gappy(rng, 60, 80, noise=0.5, share=0.6)
    M[:, :5] = np.where(rng.random((60, 5)) < 0.1, truth[:, :5], np.nan)
    completion = co.complete(M, method="factor model")
    rows, columns = np.nonzero(np.isnan(M))
    low, high = completion.interval(rows, columns, level=0.9)
    held = (low <= truth[rows, columns]) & (truth[rows, columns] <= high)
    assert 0.85 < held.mean() < 0.96
    width, sparse = high - low, columns < 5
    assert np.median(width[sparse]) > 1.1 * np.median(width[~sparse])
    assert held[sparse].mean() > 0.75


def test_observed_entries_are_kept_and_have_no_width(rng):
    M, _ = gappy(rng, 20, 25)
    completion = co.complete(M)
    rows, columns = np.nonzero(~np.isnan(M))
    low, high = completion.interval(rows, columns)
    assert (completion.to_dense()[rows, columns] == M[rows, columns]).all()
    assert (low == M[rows, columns]).all() and (high == M[rows, columns]).all()


@pytest.mark.slow
def test_codes_for_missing_do_not_spoil_the_table(rng):
    M, truth = gappy(rng, 120, 80)
    missing = np.isnan(M)
    dirty = M.copy()
    dirty[(rng.random(M.shape) < 0.01) & ~missing] = -999.0
    answers = [co.complete(X) for X in (M, dirty)]
    errors = [np.sqrt(np.mean((answer.to_dense() - truth)[missing] ** 2)) for answer in answers]
    assert errors[1] < 1.1 * errors[0]
    n_codes = int((dirty == -999).sum())
    assert answers[1].choices["outliers"].startswith(f"{n_codes} known values look like outliers")
    assert answers[1].choices["outliers"].endswith(": -999")


def test_empty_rows_and_columns_are_named_or_filled_by_the_typical_answer(rng):
    M, _ = gappy(rng, 20, 25)
    M[3], M[:, 7] = np.nan, np.nan
    completion = co.complete(M, orientation="columns")
    filled = completion.to_dense()
    assert np.isnan(filled[3]).all() and "row 3 without any value stays NaN" in completion.choices["empty rows"]
    assert co.Status(completion.status[7]) is co.Status.PRIOR_ONLY
    assert np.isfinite(np.delete(filled, 3, axis=0)).all()


def test_a_constant_row_stays_constant(rng):
    M, _ = gappy(rng, 20, 25)
    M[4, :15], M[4, 15:] = 3.7, np.nan
    filled = co.complete(M, orientation="columns").to_dense()
    assert (filled[4] == 3.7).all()


def error_of(M, truth, **settings):
    hidden = np.isnan(M)
    return np.sqrt(np.mean((co.complete(M, **settings).to_dense() - truth)[hidden] ** 2))


@pytest.mark.slow
def test_full_columns_that_lack_directions_hand_over_to_the_model(rng):
    """Two full columns of eight directions say little; the others, half seen, say all."""
    M, truth = gappy(rng, 60, 120, rank=8, noise=0.3)
    M[:, :2] = truth[:, :2]
    completion = co.complete(M)
    assert completion.learned is not None and (completion.status[:2] == co.Status.FULL).all()
    assert error_of(M, truth) < 0.9 * error_of(M, truth, method="full columns")
    assert co.complete(M, method="full columns").learned is None


def test_many_full_columns_fill_the_others_themselves(rng):
    """Of most columns six entries are seen, which teach little beside 80 columns that are full."""
    truth = gappy(rng, 60, 120, rank=8, noise=0.3)[1]
    M = np.where(rng.random(truth.shape).argsort(axis=0) < 6, truth, np.nan)
    M[:, :80] = truth[:, :80]
    assert co.complete(M).learned is None


def test_a_saved_result_has_the_same_answers(rng, tmp_path):
    completion = co.complete(gappy(rng, 20, 25)[0])
    completion.save(tmp_path / "result")
    loaded = co.Completion.load(tmp_path / "result")
    assert (loaded.to_dense() == completion.to_dense()).all()
    for ours, theirs in zip(completion.interval(2, np.arange(25)), loaded.interval(2, np.arange(25))):
        assert (ours == theirs).all()
    assert loaded.certificates().tobytes() == completion.certificates().tobytes()


def test_the_mean_of_a_column_is_inside_its_interval(rng):
    M, truth = gappy(rng, 60, 80, noise=0.3, share=0.4)
    completion = co.complete(M)
    mean, low, high = completion.column_means(level=0.9)
    np.testing.assert_allclose(mean, completion.to_dense().mean(axis=0))
    held = (low <= truth.mean(axis=0)) & (truth.mean(axis=0) <= high)
    assert held.mean() > 0.75


@pytest.mark.slow
def test_the_number_of_threads_changes_no_byte(rng, monkeypatch):
    M, _ = gappy(rng, 30, 40)
    first = co.complete(M).to_dense()
    monkeypatch.setattr("colonnade._support.threads.default_threads", lambda: 1)
    assert first.tobytes() == co.complete(M).to_dense().tobytes()


def test_another_method_runs_by_its_name(rng):
    M, _ = gappy(rng, 20, 25)
    named = co.complete(M, method="als", random_state=0)
    assert named.choices["method"] == "ALS"
    assert (named.to_dense() == co.methods.als(M, random_state=0).to_dense()).all()
    with pytest.raises(ValueError, match=r"method must be one of 'auto', .*'als'.*; got 'alps'"):
        co.complete(M, method="alps")


def test_a_table_without_an_entry_is_refused():
    with pytest.raises(ValueError, match="no entry of the 3 x 4 table is known"):
        co.complete(np.full((3, 4), np.nan), method="factor model")


def test_the_rank_that_is_asked_for_is_a_bound(rng):
    learned = learn_table(co.Observations.from_dense(gappy(rng, 30, 40, rank=6)[0]), rank=2)
    assert learned.model.rank == 2


@pytest.mark.slow
def test_entries_of_large_weight_teach_more(rng):
    truth = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 80))
    weights = np.where(rng.random(truth.shape) < 0.25, 100.0, 1.0)
    seen = rng.random(truth.shape) < 0.5
    measured = np.where(seen, truth + 0.5 / np.sqrt(weights) * rng.standard_normal(truth.shape), np.nan)
    o = co.Observations.from_dense(measured, weights=np.where(seen, weights, 1.0))
    errors = [np.sqrt(np.mean((co.complete(x).to_dense() - truth)[~seen] ** 2)) for x in (o, measured)]
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize("orientation", ["columns", "rows"])
def test_a_column_that_is_not_determined_is_wide_beside_exact_data(rng, orientation):
    M, truth = gappy(rng, 60, 80, noise=0.0)
    M[:, 5], M[9] = np.nan, np.nan
    M[7, 5], M[9, 3] = truth[7, 5], truth[9, 3]
    completion = co.complete(M, orientation=orientation)
    error = np.abs(completion.to_dense() - truth)
    assert np.delete(np.delete(error, 9, axis=0), 5, axis=1).max() < 1e-7
    assert completion.certificates().verdict[5] != "recovered"
    for rows, columns in ((np.arange(60), 5), (9, np.arange(80))):
        low, high = completion.interval(rows, columns)
        # One entry does not tell the unit of a row, so that no more than a part can be asked for.
        assert ((low <= truth[rows, columns]) & (truth[rows, columns] <= high)).mean() > 0.25


def test_a_column_with_one_entry_beside_exact_data_has_the_size_of_the_others(rng):
    """Rounding of its covariance, times entries weighed by 1e12, once gave it values of a thousand times their size."""
    M, truth = gappy(rng, 60, 80, noise=0.0)
    M[:, 5] = np.nan
    M[7, 5] = truth[7, 5]
    completion = co.complete(M, orientation="columns")
    assert completion.learned.is_exact
    assert np.abs(completion.columns(5)).max() < 5 * np.abs(truth).max()


def test_a_single_code_among_thousands_changes_nothing(rng):
    truth = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 12)) + rng.uniform(-5, 5, 12)
    truth += 0.3 * rng.standard_normal(truth.shape)
    M = np.where(rng.random(truth.shape) < 0.15, np.nan, truth)
    M[61, 1] = -999.0
    hidden = np.isnan(M)
    completion = co.complete(M)
    assert np.sqrt(np.mean((completion.to_dense() - truth)[hidden] ** 2)) < 0.5
    assert "at row 61, column 1: -999" in completion.choices["outliers"]


def test_a_complete_column_that_tells_nothing_does_no_harm(rng):
    truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 5)) + 10 + 0.1 * rng.standard_normal((60, 5))
    M = np.where(rng.random(truth.shape) < 0.15, np.nan, truth)
    hidden = np.isnan(M)
    tables = M, np.column_stack([M, rng.random(60) < 0.5])
    errors = [np.sqrt(np.mean((co.complete(X).to_dense()[:, :5] - truth)[hidden] ** 2)) for X in tables]
    assert errors[1] < 0.5 * np.nanstd(M) and errors[1] < 3 * errors[0]


def test_equal_entries_make_a_row_constant_only_if_there_are_enough():
    few, many = np.array([[2.0, 2.0, np.nan]]), np.full((1, 1000), 0.1)
    others = np.random.default_rng(0).standard_normal((20, 1000))
    assert scaled_table(co.Observations.from_dense(np.vstack([many, others]))).unit[0] == 0
    assert scaled_table(co.Observations.from_dense(np.vstack([few, others[:, :3]]))).unit[0] > 0


@pytest.mark.parametrize("name", ["factor model", "factor-model", "factor_model"])
def test_names_of_methods_are_spelled_in_any_way(rng, name):
    assert co.complete(gappy(rng, 20, 25)[0], method=name).learned is not None


@pytest.mark.slow
def test_small_tables_hide_several_tenths_and_none_twice(rng):
    """200 errors choose and calibrate where there are so many; else five tenths, of entries that differ."""
    from colonnade.model.hidden_entries import far_places, folds_of

    for m in (400, 60):
        X = rng.standard_normal((m, 1)) + rng.standard_normal((m, 7))
        X[rng.random(X.shape) < 0.2] = np.nan
        o = Observations.from_dense(X)
        folds = folds_of(o, far_places(o), np.random.default_rng(0))
        together = np.concatenate(folds)
        assert np.unique(together).size == together.size >= (200 if m == 400 else 0.35 * o.values.size)
        found = learn_table(o).held_out
        assert found.rows.size == together.size
        np.testing.assert_array_equal(np.sort(o.locate(found.rows, found.columns)), np.sort(together))


def test_hidden_entries_follow_the_pattern_of_the_gaps(rng):
    """Where lines with gaps never show some places, complete lines lose these; before, nothing was tested there."""
    from colonnade.model.hidden_entries import hidden_places

    M = np.outer(rng.standard_normal(40), rng.standard_normal(150)) + 0.1 * rng.standard_normal((40, 150))
    known = np.full_like(M, np.nan)
    known[::4] = M[::4]  # A cheap instrument reads every fourth wavelength, and some readings fail.
    known[np.arange(0, 40, 4), np.arange(40, 50)] = np.nan
    known[:, :30] = M[:, :30]  # A good instrument reads all.
    for table, turn in ((known, False), (known.T, True)):
        o = co.Observations.from_dense(table)
        at = hidden_places(o, rng)
        rows, columns = o.rows[at], o.columns_of(at)
        wavelengths, samples = (columns, rows) if turn else (rows, columns)
        in_complete = samples < 30
        assert np.isin(np.flatnonzero(np.arange(40) % 4), wavelengths[in_complete]).all()
        assert np.unique(samples[in_complete]).size == 6
        hidden = o.without(at)
        assert (hidden.n_observed == hidden.shape[0]).sum() == hidden.full_columns.size


def test_complete_columns_beside_a_grid_of_readings(rng):
    """Errors of both learners are compared where the gaps are."""
    U = rng.standard_normal((60, 4))
    M = U @ rng.standard_normal((4, 80)) + 0.05 * rng.standard_normal((60, 80))
    known = np.full_like(M, np.nan)
    known[::5], known[:, :20] = M[::5], M[:, :20]
    completion = co.complete(known)
    gaps = np.isnan(known)
    assert np.sqrt(np.mean((completion.to_dense() - M)[gaps] ** 2)) < 0.2  # The noise is .05, the spread 2.
    assert completion.verdict.word == "use it"


def test_scores_are_those_of_a_fit_with_as_many_sweeps(rng):
    from colonnade.model.hidden_entries import hidden_places
    from colonnade.model.table import scaled_table

    M = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 90)) + 0.5 * rng.standard_t(3, (40, 90))
    M[rng.random(M.shape) < 0.4] = np.nan
    o = co.Observations.from_dense(M)
    learned = learn_table(o)
    hidden = hidden_places(o, np.random.default_rng(0))
    seen = o.without(hidden).transposed() if learned.is_turned else o.without(hidden)
    settings = learned.model.settings
    sweeps = Sweeps(scaled_table(seen, one_unit=settings.one_unit), settings)
    first = learned.held_out.rows[: hidden.size], learned.held_out.columns[: hidden.size]
    counted = {}
    for stop in (15, 30, 60, 120, 240):
        model = sweeps.run(stop - sweeps.n_sweeps, 1e-4)
        counted[model.n_sweeps] = model.predict(*(first[::-1] if learned.is_turned else first))
    chosen = [n for n, p in counted.items() if np.allclose(p, learned.held_out.predicted[: hidden.size], atol=1e-9)]
    assert len(chosen) == 1
    # The final fit has gone as far, and further hidden entries calibrate a table as small as this one.
    assert learned.model.n_sweeps in (chosen[0], chosen[0] - chosen[0] // 2)
    assert learned.held_out.rows.size >= 200
    places = learned.held_out.rows * 90 + learned.held_out.columns
    assert np.unique(places).size == places.size
