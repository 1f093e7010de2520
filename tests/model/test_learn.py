"""The automatic settings: exact on exact data, close to the best on others, honest where nothing helps."""

import numpy as np
import pytest

import colonnade as co
from colonnade import Status
from colonnade.model.full_columns.learn import learn
from colonnade.model.full_columns.validation import ValidationColumns, _weights_of, best_noise, with_midpoints
from colonnade.model.leaving_out import column_losses, is_no_chance, leave_one_out

from problems import hide, low_rank


def error(completion, M, seen):
    hidden = ~seen & ~seen.all(axis=0)
    return np.linalg.norm((completion.to_dense() - M)[hidden]) / np.linalg.norm(M[hidden])


def noisy(rng, m=150, n=200, r=4, d=25, s=15, noise=0.3, level=0.0):
    L, R = low_rank(rng, m, n, r)
    M = L @ R + level + noise * rng.standard_normal((m, n))
    return M, *hide(rng, M, d, s)


def test_leaving_one_out_is_what_it_says(rng):
    """Against predicting every entry from the others of its column, one by one."""
    _, known, _ = noisy(rng, n=40)
    o = co.Observations.from_dense(known)
    for center, r in ((True, 10), (False, 20)):
        space = co.fit_column_space(o, rank=r, center=center)
        some = o.take(o.partial_columns[:3])
        errors, deviations = leave_one_out(space, some, [0.05])
        c = 0 if space.center is None else space.center
        F = space.basis * np.sqrt(space.variances)
        K = F @ F.T + 0.05 * np.eye(150)
        for j in range(3):
            rows = some.rows[some.indptr[j] : some.indptr[j + 1]]
            x = (some.values[some.indptr[j] : some.indptr[j + 1]]) - (c[rows] if space.center is not None else 0)
            for k, i in enumerate(rows):
                others = np.delete(rows, k)
                weights = np.linalg.solve(K[np.ix_(others, others)], K[others, i])
                at = some.indptr[j] + k
                np.testing.assert_allclose(errors[at, 0], x[k] - weights @ np.delete(x, k), atol=1e-9)
                np.testing.assert_allclose(deviations[at, 0] ** 2, K[i, i] - weights @ K[others, i], rtol=1e-8)


def test_losses_are_means_over_columns_or_squares_of_entries(rng):
    _, known, _ = noisy(rng, n=60)
    o = co.Observations.from_dense(known)
    space, noise = co.fit_column_space(o, center=True), [0.01, 1.0]
    for k in (30, 5):
        some = o.take(o.partial_columns[:k])
        asked = ValidationColumns(some)
        losses, surprises = asked.judge(space, noise)
        losses = losses / asked.weights[:, None]
        errors, deviations = leave_one_out(space, some, noise)
        size = np.median(np.abs(some.values))
        np.testing.assert_allclose(losses, column_losses((errors / size) ** 2, some.entry_columns), rtol=1e-9)
        expected = column_losses((errors / deviations) ** 2 + 2 * np.log(deviations), some.entry_columns)
        np.testing.assert_allclose(surprises, expected, rtol=1e-9)
        about = ((some.values - space.center[some.rows]) / size) ** 2
        np.testing.assert_allclose(asked.sizes(space.center), column_losses(about, some.entry_columns), rtol=1e-9)


def test_a_large_loss_counts_for_a_part(rng):
    least = rng.uniform(0.5, 1.5, 100)
    least[:2] = 1e3, 1e9
    weights = _weights_of(least)
    assert (weights[2:] == 1).all()
    np.testing.assert_allclose((weights * least)[:2], 10 * np.median(least))
    np.testing.assert_allclose(_weights_of(7 * least), weights)  # whatever the unit
    assert (_weights_of(np.zeros(5)) == 1).all()


def test_between_values_lie_those_of_a_smooth_curve():
    x = np.arange(8.0)
    values, between = (np.stack([t**2 - 3 * t + 1, 2 - t]) for t in (x, np.arange(0, 7.5, 0.5)))
    np.testing.assert_allclose(with_midpoints(values), between, atol=1e-12)
    np.testing.assert_allclose(with_midpoints(x**3)[2:-2], np.arange(1, 6.5, 0.5) ** 3, atol=1e-10)
    infinite = with_midpoints(np.array([1.0, 2.0, np.inf, 4.0, 5.0]))
    np.testing.assert_array_equal(infinite, [1, np.inf, 2, np.inf, np.inf, np.inf, 4, np.inf, 5])
    np.testing.assert_array_equal(with_midpoints(np.array([[3.0]])), [[3.0]])


def test_plain_least_squares_is_left_out_too(rng):
    _, known, _ = noisy(rng, n=40)
    o = co.Observations.from_dense(known)
    space = co.fit_column_space(o, rank=5)
    some = o.take(o.partial_columns[:2])
    errors, _ = leave_one_out(space, some, [0.0])
    for at in range(15):
        rest = np.delete(np.arange(15), at)
        z = np.linalg.lstsq(space.basis[some.rows[:15][rest]], some.values[:15][rest], rcond=None)[0]
        np.testing.assert_allclose(errors[at, 0], some.values[at] - space.basis[some.rows[at]] @ z, rtol=1e-7)


def test_exact_data_are_recognised(rng):
    L, R = low_rank(rng, 80, 90, 5)
    for M in (L @ R, (L @ R).astype(np.float32)):
        known, seen = hide(rng, M, 12, 10)
        completion = co.complete(known)
        assert completion.noise_variance == 0 and completion.rank == 5
        assert error(completion, M, seen) < (1e-12 if M.dtype == np.float64 else 1e-4)


@pytest.mark.slow
def test_noisy_data_are_filled_nearly_as_well_as_with_the_truth_at_hand(rng):
    """The best that any rank, center and noise variance of a grid can do, judged by the hidden entries themselves."""
    M, known, seen = noisy(rng)
    automatic = error(co.complete(known), M, seen)
    best = min(
        error(co.complete(known, rank=r, center=c, shrinkage=t, refine=0), M, seen)
        for r in (2, 3, 4, 5, 8, 25)
        for c in (False, True)
        for t in (0, 0.03, 0.1, 0.3, 1)
        if r < 15 or t
    )
    assert automatic < 1.08 * best


def test_directions_beyond_a_drop_are_taken_for_noise(rng):
    ranks = []
    for _ in range(5):
        M = rng.standard_normal((150, 4)) @ rng.standard_normal((4, 200)) + 0.05 * rng.standard_normal((150, 200))
        known = np.where(rng.random(M.shape) < 0.2, M, np.nan)
        known[:, :20] = M[:, :20]
        ranks.append(co.complete(known, refine=0).rank)
    assert np.median(ranks) == 4  # of one draw in forty another rank happens to predict better


def noisy_problem(rng, m=120, n=150, rank=3, noise=0.05, d=25):
    M = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) + noise * rng.standard_normal((m, n))
    known = np.where(rng.random(M.shape) < 0.2, M, np.nan)
    known[:, :d] = M[:, :d]
    return M, known


def test_noise_is_found_where_nothing_needs_shrinking(rng):
    _, known = noisy_problem(rng)
    completion = co.complete(known, refine=0)
    assert 0.3 < completion.noise_variance / 0.05**2 < 5
    assert not (completion.certificates().verdict == "off the column space").any()


def test_columns_of_zeros_say_nothing_of_the_noise(rng):
    _, known, seen = noisy(rng, m=80, n=400, r=3, d=20, s=30)
    silent = np.setdiff1d(np.flatnonzero(~seen.all(axis=0)), np.arange(60))
    known[:, silent] *= 0.0
    completion = co.complete(known, refine=0)
    assert 0.3 < completion.noise_variance / 0.3**2 < 3


@pytest.mark.parametrize("noise", [0.003, 0.01, 0.1])
def test_the_rank_at_a_drop_and_the_noise_are_found(rng, noise):
    _, known, _ = noisy(rng, m=100, n=200, r=3, d=20, s=20, noise=noise)
    from_full = learn(co.Observations.from_dense(known))
    assert from_full.space.rank == 3
    assert 0.5 < np.sqrt(from_full.noise_variance) / noise < 2


def test_a_given_shrinkage_of_numbers_without_variances(rng):
    _, known, seen = noisy(rng)
    completion = co.complete(1e200 * known, shrinkage=1.0)
    assert "rescale" in completion.choices["fit"]
    np.testing.assert_array_equal(completion.to_dense()[seen], (1e200 * known)[seen])


def test_equal_full_columns_about_their_means_have_no_direction():
    known = np.ones((5, 6))
    known[2:, 4:] = np.nan
    completion = co.complete(known, rank=1, center=True)
    assert completion.rank == 0
    np.testing.assert_allclose(completion.to_dense(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e200])
def test_gains_of_any_size_are_no_chance_or_are(unit):
    assert is_no_chance(unit * np.array([3.0, 2.0, 1.0, 1.5, 2.5]), 2.0)
    assert not is_no_chance(unit * np.array([3.0, -2.0, 1.0, -1.5, 0.2]), 2.0)


def test_no_single_entry_decides_the_noise():
    """Each of two noises is better in half of the columns: the one is taken that says how large the errors are."""
    column = np.repeat(np.arange(40), 10)
    errors = np.where(column[:, None] % 2 == [0, 1], 0.9, 1.1)
    deviations = np.broadcast_to([0.1, 1.0], errors.shape)
    errors[0] = 1.0, 3.0

    def best():
        losses, surprises = errors**2, (errors / deviations) ** 2 + 2 * np.log(deviations)
        return best_noise(column_losses(losses, column), column_losses(surprises, column))

    assert np.argmin((errors**2).mean(axis=0)) == 0
    assert best() == 1
    errors[:, 0] *= 0.7  # all columns agree that this is better
    assert best() == 0


@pytest.mark.parametrize("wild", [pytest.param(999.0, marks=pytest.mark.slow), 1e100, 1e300])
def test_an_outlier_spoils_its_own_column_only(rng, wild):
    M, known = noisy_problem(rng)
    hidden = np.isnan(known)
    hidden[:, 60] = False
    known[np.flatnonzero(~np.isnan(known[:, 60]))[0], 60] = wild
    for method in ("auto", "full columns"):
        completion = co.complete(known, method=method)
        assert np.sqrt(np.mean((completion.to_dense() - M)[hidden] ** 2)) < 1.5 * 0.05
    assert (completion.certificates().verdict == "off the column space").nonzero()[0].tolist() == [60]


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_columns_of_zeros_tell_nothing_of_the_others(rng, noise):
    M, known = noisy_problem(rng, noise=noise)
    zero = 25 + rng.permutation(125)[:80]
    known[:, zero] = np.where(np.isnan(known[:, zero]), np.nan, 0.0)
    M[:, zero] = 0.0
    completion = co.complete(known, method="full columns")
    if noise == 0:
        np.testing.assert_allclose(completion.to_dense(), M, rtol=0, atol=1e-12)
    else:
        assert "exact" not in completion.choices["fit"] and completion.noise_variance > 0.01 * noise**2


def test_a_common_level_is_centered(rng):
    M, known, seen = noisy(rng, level=20.0)
    completion = co.complete(known)
    assert completion.center is not None and "row means" in completion.choices["center"]
    assert (
        error(completion, M, seen)
        < error(co.complete(known, center=False, shrinkage=0, rank=4, refine=0), M, seen) * 1.02
    )


def test_a_single_gappy_column_of_a_table(rng):
    """Three complete features and one with gaps that depends on them: an ordinary data frame."""
    A = rng.standard_normal((200, 3))
    M = np.column_stack([A, A @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(200)])
    seen = np.ones(M.shape, bool)
    seen[rng.choice(200, 60, replace=False), 3] = False
    completion = co.complete(np.where(seen, M, np.nan))
    off = completion.to_dense()[~seen] - M[~seen]
    assert np.sqrt(np.mean(off**2)) < 0.2  # the noise is 0.1, the spread 2.3


def test_pure_noise_is_called_so(rng):
    M = rng.standard_normal((60, 80))
    known, seen = hide(rng, M, 20, 15)
    completion = co.complete(known)
    assert "not of low rank" in completion.choices["fit"]
    assert error(completion, M, seen) < 1.1  # not much worse than saying nothing
    partial = completion.observations.partial_columns
    verdict = co.complete(known, center=False, shrinkage=0, rank=5, refine=0).certificates().verdict[partial]
    assert np.mean(verdict == "recovered") < 0.1  # one of 60 may look like more than it is


def test_few_entries_and_few_columns_are_survived(rng):
    for d, s in ((1, 3), (2, 1), (3, 2), (5, 1)):
        M, known, seen = noisy(rng, m=10, n=12, r=1, d=d, s=s)
        completion = co.complete(known)
        dense = completion.to_dense()
        assert (dense[seen] == M[seen]).all()
        for j in range(12):
            assert np.isfinite(dense[:, j]).all() == Status(completion.status[j]).is_filled


@pytest.mark.slow
def test_the_same_answer_every_time(rng):
    _, known, _ = noisy(rng, n=400)
    one, two = co.complete(known), co.complete(known)
    assert one.to_dense().tobytes() == two.to_dense().tobytes()
    seeded = co.complete(known, random_state=3).to_dense().tobytes()
    assert seeded == co.complete(known, random_state=3).to_dense().tobytes()


def test_what_is_given_is_kept(rng):
    _, known, _ = noisy(rng)
    o = co.Observations.from_dense(known)
    assert learn(o, rank=7).space.rank == 7
    assert learn(o, center=False).space.center is None
    assert learn(o, shrinkage=0.5).noise_variance == 0.5
    assert learn(o, shrinkage=0).noise_variance == 0 and learn(o, shrinkage=0).space.rank < 15


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_does_not_change_the_choices(rng, scale):
    _, known, _ = noisy(rng)
    np.testing.assert_allclose(
        co.complete(known * scale).to_dense() / scale, co.complete(known).to_dense(), rtol=1e-6, atol=1e-7
    )


def decaying(rng, m, n, d, share):
    """Columns whose part along each direction is a third of that along the one before, seen in full or a little."""
    U = np.linalg.qr(rng.standard_normal((m, 30)))[0]
    M = 3 + U @ ((30 * 0.35 ** np.arange(30))[:, None] * rng.standard_normal((30, n)))
    seen = rng.random(M.shape) < share
    seen[:, :d] = True
    return M, np.where(seen, M, np.nan), seen


@pytest.mark.slow
def test_a_spectrum_whose_end_is_lost_in_rounding_is_not_exact(rng):
    """In float32 most columns fit to rounding, and have fewer entries than there are directions left."""
    M, known, seen = decaying(rng, 100, 215, 40, 0.12)
    double, single = co.complete(known), co.complete(known.astype(np.float32))
    assert np.isfinite(single.to_dense()).all() and "rounding" not in single.choices["fit"]
    assert error(single, M, seen) < 1.01 * error(double, M, seen)


@pytest.mark.parametrize("n_wild", [0, 10, 20])
def test_wild_columns_do_not_make_the_fit_look_good(rng, n_wild):
    known, seen = hide(rng, rng.standard_normal((60, 130)), 30, 12)
    for j in np.flatnonzero(~seen.all(axis=0))[:n_wild]:
        known[np.flatnonzero(~np.isnan(known[:, j]))[0], j] = 1e4
    fit = co.complete(known).choices["fit"]
    assert "explain little" in fit and 80 < float(fit.split("error is ")[1].split("%")[0]) < 120


def test_large_columns_that_are_well_explained_are_not_wild(rng):
    """The full columns vary little, half of the others a hundred times more."""
    L, R = low_rank(rng, 120, 200, 3)
    M, (_, seen) = L @ R, hide(rng, L @ R, 60, 6)
    M[:, np.flatnonzero(~seen.all(axis=0))[::2]] *= 100
    M += 2 * rng.standard_normal(M.shape)
    known = np.where(seen, M, np.nan)
    best = min(error(co.complete(known, refine=0, rank=3, shrinkage=t), M, seen) for t in (0.001, 0.01, 0.1, 1.0, 10.0))
    assert error(co.complete(known, refine=0), M, seen) < 1.15 * best


def test_full_columns_of_any_scale_are_exact(rng):
    L, R = low_rank(rng, 30, 40, 4)
    known, seen = hide(rng, L @ R, 10, 8)
    known[:, seen.all(axis=0)] *= 10.0 ** rng.integers(-300, 300, 10)
    completion = co.complete(known)
    assert "exact" in completion.choices["fit"] and error(completion, L @ R, seen) < 1e-12


@pytest.mark.parametrize("offset", [1e6, 2e8, 1e10])
def test_noise_beside_a_large_offset_is_no_rounding(rng, offset):
    """Of which relative residuals tell nothing; exact data beside it are exact all the same."""
    M = rng.standard_normal((150, 4)) @ rng.standard_normal((4, 100))
    noisy, seen = hide(rng, offset + M + 0.1 * rng.standard_normal(M.shape), 20, 30)
    completion, alone = co.complete(noisy), co.complete(noisy - offset)
    assert completion.noise_variance > 0
    filled = completion.to_dense() - offset, alone.to_dense()
    error, least = (np.sqrt(np.mean((answer - M)[~seen] ** 2)) for answer in filled)
    assert error < 1.5 * least
    exact = co.complete(np.where(seen, offset + M, np.nan))
    assert exact.noise_variance == 0 and np.abs(exact.to_dense() - offset - M).max() < 1e-13 * offset


@pytest.mark.parametrize("size", [1e14, 1e18])
def test_a_row_so_large_that_all_else_is_rounding_beside_it(rng, size):
    """The others then fit to rounding whatever they are; beside the larger row nothing is left of them."""
    M = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 80))
    known, seen = hide(rng, M + 0.1 * rng.standard_normal(M.shape), 15, 20)
    known[3], seen[3] = size, True
    completion = co.complete(known, method="full columns")
    assert completion.noise_variance > 0 and "stands at 80 places" in completion.choices["suspicious values"]
    if size == 1e14:
        assert np.sqrt(np.mean((completion.to_dense() - M)[~seen] ** 2)) < 0.3
    else:
        assert "recovered" not in completion.certificates().verdict


@pytest.mark.parametrize("n_full, s", [(12, 40), (40, 40), pytest.param(150, 100, marks=pytest.mark.slow)])
def test_the_noise_is_found(rng, n_full, s):
    """Whatever noise the prior predicts best with; 5 % is six standard errors of a mean square of 8,000 errors."""
    M = rng.standard_normal((150, 5)) @ rng.standard_normal((5, 280))
    known, _ = hide(rng, M + 0.3 * rng.standard_normal(M.shape), n_full, s)
    assert abs(co.complete(known).noise_std / 0.3 - 1) < 0.05
