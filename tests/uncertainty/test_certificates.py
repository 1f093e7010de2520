import numpy as np
import pytest

import colonnade as co

from problems import hide, low_rank


def paper(known, rank):
    return co.complete(known, rank=rank, center=False, shrinkage=0, refine=0)


def test_the_numbers_by_hand(rng):
    M = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 40)) + 0.1 * rng.standard_normal((50, 40))
    completion = co.algorithm1(M, rank=3, n_full_columns=15, n_entries=30, random_state=rng)
    o, U = completion.observations, completion.basis
    table = completion.certificates()
    for j in o.partial_columns:
        at = slice(o.indptr[j], o.indptr[j + 1])
        omega, w, x = o.rows[at], o.weights[at].astype(float), o.values[at]
        drawn = np.repeat(U[omega], w.astype(int), axis=0)  # U_O with every draw as a row, as in Lemma 2
        values = np.linalg.eigvalsh(drawn.T @ drawn)
        row = table[j]
        assert row.column == j and row.n_observed == omega.size
        np.testing.assert_allclose(row.smallest_eigenvalue, values[0] * 50 / 30, rtol=1e-9)
        np.testing.assert_allclose(row.condition, np.sqrt(values[-1] / values[0]), rtol=1e-9)
        e = x - U[omega] @ completion.coefficients[:, j]
        s = omega.size
        np.testing.assert_allclose(row.residual**2, (w @ e**2) / w.sum() * s / (s - 3), rtol=1e-9)


def test_unit_weights_give_the_residual_per_degree_of_freedom(rng):
    M = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 300)) + 0.5 * rng.standard_normal((60, 300))
    known, seen = hide(rng, M, 100, 20)
    completion = paper(known, rank=2)
    table = completion.certificates()
    partial = completion.observations.partial_columns
    pooled = np.sqrt(np.mean(table.residual[partial] ** 2))
    # 200 columns of 18 degrees of freedom each; noise in the basis adds about r/d to the variance
    assert abs(pooled / 0.5 - 1) < 0.08
    assert abs(completion.noise_std / 0.5 - 1) < 0.05
    assert set(table.verdict[seen.all(axis=0)]) == {"observed in full"}


def test_full_columns_are_determined_perfectly(rng):
    M = rng.standard_normal((30, 10))
    completion = paper(M, rank=4)
    table = completion.certificates()
    np.testing.assert_allclose(table.smallest_eigenvalue, 1, rtol=1e-12)
    np.testing.assert_allclose(table.condition, 1, rtol=1e-12)


def test_verdicts(rng):
    L, R = low_rank(rng, 100, 12, 3)
    M = L @ R
    M[:, 7] += rng.standard_normal(100)  # not of the column space
    known = np.full(M.shape, np.nan)
    known[:, :6] = M[:, :6]
    known[:40, 6] = M[:40, 6]  # enough
    known[:40, 7] = M[:40, 7]  # enough, but off the space
    known[:3, 8] = M[:3, 8]  # as many as the rank: fits whatever is there
    known[:2, 9] = M[:2, 9]  # too few
    known[0, 11] = M[0, 11]
    verdicts = paper(known, rank=3).certificates().verdict
    assert set(verdicts[:6]) == {"observed in full"}
    assert verdicts[6:].tolist() == [
        "recovered",
        "off the column space",
        "unchecked",
        "too few entries",
        "no observation",
        "too few entries",
    ]


def test_weak_rows_are_called_weak(rng):
    U = np.linalg.qr(rng.standard_normal((200, 3)))[0]
    U[:10] *= 0.05  # rows that hardly see the space
    M = U @ rng.standard_normal((3, 20))
    known = np.full(M.shape, np.nan)
    known[:, :8] = M[:, :8]
    known[:10, 8:] = M[:10, 8:]
    completion = co.complete(known)
    table = completion.certificates()
    assert set(table.verdict[8:]) == {"weakly determined"} and (table.smallest_eigenvalue[8:] < 0.01).all()
    np.testing.assert_allclose(completion.to_dense(), M, atol=1e-12)


@pytest.mark.parametrize(("growth", "verdict"), [(9, "recovered"), (11, "weakly determined")])
def test_noise_that_may_grow_more_than_tenfold_is_called_weak(growth, verdict):
    """Entries of u that are 1 / growth of the usual size multiply the noise of a column seen there by growth."""
    u = np.ones((100, 1))
    u[:4] = 1 / growth
    u[4:] *= np.sqrt((100 - (u[:4] ** 2).sum()) / 96)  # |u|^2 = 100: the usual size is 1
    M = u @ np.arange(1.0, 6.0)[None]
    known = M.copy()
    known[4:, 4] = np.nan
    row = paper(known, rank=1).certificates()[4]
    np.testing.assert_allclose(row.smallest_eigenvalue, growth**-2, rtol=1e-9)
    assert row.verdict == verdict


@pytest.mark.parametrize(("times", "verdict"), [(4.5, "recovered"), (5.5, "off the column space")])
def test_a_residual_over_five_times_the_noise_is_off_the_column_space(rng, times, verdict):
    M = 100 + 0.1 * rng.standard_normal((60, 12))
    known = M.copy()
    known[20:, 11] = np.nan
    completion = paper(known, rank=1)
    u = completion.basis[:20]
    off = np.linalg.qr(np.hstack([u, rng.standard_normal((20, 1))]))[0][:, 1]  # no coefficient takes any of it
    known[:20, 11] = 100 * u[:, 0] / u.mean() + times * completion.noise_std * np.sqrt(19) * off
    row = paper(known, rank=1).certificates()[11]
    np.testing.assert_allclose(row.residual, times * completion.noise_std, rtol=1e-6)
    assert row.verdict == verdict


@pytest.mark.slow
def test_lemma_2_holds_at_its_number_of_entries():
    """lambda_min(U_O'U_O) m/s >= 1/2 in all columns, with probability at least 0.9 by the lemma; here in every run."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        L, R = low_rank(rng, 2000, 200, 4)
        s = co.theory.lemma2(4, co.theory.basis_coherence(np.linalg.qr(L)[0]), 200, delta=0.1)
        completion = co.algorithm1(L @ R, rank=4, n_full_columns=8, n_entries=s, random_state=seed)
        assert completion.certificates().smallest_eigenvalue.min() >= 0.5


def test_the_table_becomes_a_data_frame(rng):
    import pandas as pd

    known, _ = hide(rng, rng.standard_normal((10, 8)), 3, 5)
    frame = pd.DataFrame(co.complete(known, rank=2).certificates())
    fields = ["column", "n_observed", "smallest_eigenvalue", "condition", "residual"]
    fields += ["uncertainty", "more_entries", "verdict"]
    assert list(frame.columns) == fields and len(frame) == 8


@pytest.mark.parametrize("size", [1e100, 1e200, 1e300, 1e308])
def test_a_wild_entry_is_never_called_recovered(rng, size):
    L, R = low_rank(rng, 40, 60, 3)
    known, _ = hide(rng, L @ R, 8, 12)
    wild, *others = np.flatnonzero(np.isnan(known).any(axis=0))  # which columns are full is drawn too
    known[np.flatnonzero(~np.isnan(known[:, wild]))[0], wild] = size
    verdict = co.complete(known).certificates().verdict
    assert verdict[wild] in ("off the column space", "overflow") and (verdict[others] == "recovered").all()


def test_nobody_is_told_to_measure_no_entry(rng):
    """As many full columns as directions cannot tell the noise, and no number of entries would."""
    M = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 50)) + 0.1 * rng.standard_normal((40, 50))
    known, _ = hide(rng, M, 3, 12)
    summary = paper(known, 3).summary()
    assert "too few to estimate the noise" in summary and "about 0 " not in summary


@pytest.mark.parametrize("refine", ["auto", 0, 2])
def test_columns_that_raise_the_noise_are_off_all_the_same(rng, tmp_path, refine):
    """Ten columns have a direction that no full one has; sweeps over the rows learn enough of it to fit the entries."""
    M = rng.standard_normal((200, 4)) @ rng.standard_normal((4, 120))
    M[:, 110:] += rng.standard_normal((200, 1))
    known = M + 0.1 * rng.standard_normal(M.shape)
    known[:, 20:][rng.random((200, 100)) > 0.15] = np.nan
    completion = co.complete(known, refine=refine, method="full columns")
    verdict = completion.certificates().verdict
    errors = np.sqrt(np.mean((completion.to_dense() - M) ** 2, axis=0))
    assert (errors[110:] > 0.3).all() and (errors[20:110] < 0.3).all()
    assert set(verdict[110:]) == {"off the column space"} and "off the column space" not in verdict[20:110]
    assert completion.moved_rows or refine != 2
    completion.save(tmp_path / "result")
    assert (co.Completion.load(tmp_path / "result").certificates().verdict == verdict).all()


def test_several_times_the_usual_residual_is_not_recovered(rng):
    """Five times the noise of the others; in columns five times as large that is as good as in others."""
    M = rng.standard_normal((200, 4)) @ rng.standard_normal((4, 120))
    scale, noise = np.ones(120), np.full(120, 0.1)
    noise[100:], scale[110:] = 0.5, 5.0
    known = scale * M + noise * rng.standard_normal(M.shape)
    known[:, 20:][rng.random((200, 100)) > 0.2] = np.nan
    verdict = co.complete(known, refine=0).certificates().verdict
    assert np.mean(np.isin(verdict[100:110], ("poor fit", "off the column space"))) >= 0.5
    assert np.mean(verdict[20:100] == "recovered") >= 0.95 and np.mean(verdict[110:] == "recovered") >= 0.7


@pytest.mark.parametrize("times", [0.2, 1.0, 5.0])
def test_the_uncertainty_does_not_hang_on_the_noise_that_was_told(rng, times):
    """With entries enough predictions hardly depend on it, and errors of entries left out tell how large it is."""
    M = rng.standard_normal((150, 3)) @ rng.standard_normal((3, 120))
    known, _ = hide(rng, M + 0.1 * rng.standard_normal(M.shape), 40, 60)
    completion = co.complete(known, rank=3, center=False, shrinkage=(0.1 * times) ** 2, refine=0)
    table = completion.certificates()
    partial = completion.observations.partial_columns
    assert np.median(table.uncertainty[partial]) == pytest.approx(0.1 * np.sqrt(3 / 60), rel=0.2)
    assert np.mean(table.verdict[partial] == "recovered") > 0.95


@pytest.mark.slow
def test_columns_of_which_half_is_missed_are_not_recovered(rng):
    """With a long tail of directions most of a column stays open, however little its residual is."""
    m, n, d, s = 100, 400, 200, 70
    M = np.linalg.qr(rng.standard_normal((m, m)))[0] * np.arange(1, m + 1) ** -0.5 @ rng.standard_normal((m, n))
    seen = np.argsort(rng.random((m, n)), axis=0) < s
    seen[:, :d] = True
    completion = co.complete(np.where(seen, M, np.nan))
    hidden = np.where(seen, 0.0, completion.to_dense() - M)
    missed = np.linalg.norm(hidden, axis=0)[d:] > 0.5 * np.linalg.norm(np.where(seen, 0.0, M), axis=0)[d:]
    recovered = completion.certificates().verdict[d:] == "recovered"
    assert missed.mean() > 0.9 and recovered[missed].mean() < 0.1


def test_columns_of_other_units_are_not_recovered_for_being_small(rng):
    """Numbers about 13, nothing to do with those of thousands: beside zero they would seem well explained."""
    X = np.column_stack([rng.uniform(500, 1500, 200), rng.uniform(50, 150, 200), rng.normal(13, 0.8, 200)])
    known = X.copy()
    known[rng.random(200) < 0.4, 2] = np.nan
    completion = co.complete(known)
    assert completion.certificates().verdict[2] == "poor fit"


def test_a_table_in_which_hidden_full_columns_tell_nothing():
    """Two columns lack one of two rows: none of the full columns can be filled from the others."""
    known = np.array([[1, 0, 0, 2, 1, 2, 0, 2, 2, 0], [np.nan, 1, 1, 2, np.nan, 0, 1, 1, 1, 0]])
    completion = co.complete(known, center=True)
    assert completion.certificates().size == 10
    assert np.isnan([completion.entries(1, 0), *completion.interval(1, 0)]).all()


def test_a_partial_column_of_zeros_is_recovered(rng):
    L, R = low_rank(rng, 30, 8, 2)
    R[:, 6] = 0
    known = L @ R
    known[12:, 6:] = np.nan
    row = paper(known, rank=2).certificates()[6]
    assert row.verdict == "recovered" and row.residual == 0 and row.more_entries == 0


def test_the_spectrum_of_nearly_dependent_rows_keeps_its_digits():
    """Singular values 1, 1/2 and 1e-6: a Gram matrix holds the square of the last to four digits only."""
    from colonnade.uncertainty.certificates import _spectrum

    rng = np.random.default_rng(0)
    Q, V = (np.linalg.qr(rng.standard_normal((k, 3)))[0] for k in (7, 3))
    scaled = Q * [1, 0.5, 1e-6] @ V.T
    low, condition = _spectrum(scaled[None], np.full((1, 7), 1 / 20), 20)
    np.testing.assert_allclose(low, 1e-12, rtol=1e-8)
    np.testing.assert_allclose(condition, 1e6, rtol=1e-8)


def test_variables_that_others_predict_need_no_more_entries(rng):
    """Samples near the mean have small predictions, which say nothing about what the entries leave open."""
    loadings = np.array([0.3, 0.4, 0.85, 0.5, 1.5, 0.0])
    X = rng.standard_normal((150, 1)) * loadings + 0.1 * rng.standard_normal((150, 6))
    X = 10.0 ** np.arange(6) * np.where(rng.random(X.shape) < 0.15, np.nan, X)
    for scale in (1.0, 1e-3):
        table = co.complete(X * scale).certificates()
        assert list(table.verdict) == ["recovered"] * 5 + ["poor fit"]
        assert (table.more_entries[:5] == 0).all() and table.more_entries[5] > 0


@pytest.mark.parametrize("seen", [[1, 2, 3], [0, 2, 3]])
def test_a_table_of_one_number_needs_no_more_entries(seen):
    """Nothing differs, so the model has no loadings, and no entry could tell more."""
    known = np.full((4, 1), np.nan)
    known[seen] = -2.5
    o = co.Observations.from_dense(known, weights=np.array([[1.0], [1], [3], [1]]))
    table = co.complete(o).certificates()
    assert list(table.verdict) == ["recovered"] and table.more_entries[0] == 0
