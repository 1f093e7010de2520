"""One answer whatever computes it: in memory, by blocks of any size, by blocks of rows, saved and loaded."""

import numpy as np
import pytest
from made_tables import full_with_a_code, noisy, typos, uniform_with_a_code, unseen_direction
from threadpoolctl import threadpool_limits

import colonnade as co
from colonnade.scaling.blocks import complete_triples

from made_triples import everything_is_tall, triples_of, write_triples

LARGE = 10**9


def in_memory(known, **settings):
    with threadpool_limits(1, user_api="blas"):
        return co.complete(known, method="full columns", **settings)


TABLES = [uniform_with_a_code, full_with_a_code, typos, unseen_direction]
IDS = [table.__name__ for table in TABLES]


def assert_same_numbers(found, expected):
    assert found.coefficients.tobytes() == expected.coefficients.tobytes()
    assert found.basis.tobytes() == expected.basis.tobytes()
    assert found.status.tobytes() == expected.status.tobytes()
    assert (found.noise_variance, found.optimism) == (expected.noise_variance, expected.optimism)
    for name in ("indptr", "rows", "values", "full_columns"):
        np.testing.assert_array_equal(getattr(found.used, name), getattr(expected.used, name))
    assert found.choices == expected.choices


def assert_same_answers(found, expected, rng):
    """Every public method; `rtol` is for products of other shapes, whose last bits differ."""
    m, n = expected.shape
    close = {"rtol": 1e-9, "atol": 1e-9 * np.nanmax(np.abs(expected.observations.values))}
    for name in ("shape", "rank", "dtype", "bounds", "by_columns", "moved_rows", "noise_std", "has_variances"):
        assert getattr(found, name) == getattr(expected, name), name
    np.testing.assert_array_equal(found.n_observed, expected.n_observed)
    np.testing.assert_array_equal(found.penalty, expected.penalty)
    i, j = rng.integers(0, m, 200), rng.integers(0, n, 200)
    np.testing.assert_array_equal(found.entries(i, j), expected.entries(i, j))
    np.testing.assert_allclose(found.to_dense(), expected.to_dense(), **close)
    np.testing.assert_allclose(found.columns([3, n - 1, 0]), expected.columns([3, n - 1, 0]), **close)
    for level in (0.5, 0.9):
        for ours, theirs in zip(found.interval(i, j, level), expected.interval(i, j, level), strict=True):
            np.testing.assert_allclose(ours, theirs, **close)
        for unbiased in (True, False):
            pairs = zip(found.column_means(level, unbiased=unbiased), expected.column_means(level, unbiased=unbiased))
            for ours, theirs in pairs:
                np.testing.assert_allclose(ours, theirs, **close)
    ours, theirs = found.certificates(), expected.certificates()
    for field in ("column", "n_observed", "verdict", "more_entries"):
        np.testing.assert_array_equal(ours[field], theirs[field], err_msg=field)
    for field in ("smallest_eigenvalue", "condition", "residual", "uncertainty"):
        np.testing.assert_allclose(ours[field], theirs[field], rtol=1e-7, err_msg=field)
    assert found.summary() == expected.summary()


@pytest.mark.parametrize("table", TABLES, ids=IDS)
@pytest.mark.slow
def test_engines_and_block_sizes_give_the_same_bytes(rng, tmp_path, table):
    known = table(rng)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    whole = in_memory(known, bounds=(-3, 3))
    for k, size in enumerate((LARGE, 700, 60)):
        stored = complete_triples(path, tmp_path / f"out{k}", shape=known.shape, block_entries=size, bounds=(-3, 3))
        assert (stored.n_blocks > 1) == (size < LARGE)
        assert_same_numbers(stored, whole)
    assert_same_answers(stored, whole, rng)
    stored.save(tmp_path / "saved")
    loaded = co.Completion.load(tmp_path / "saved")
    assert_same_numbers(loaded, whole)
    assert_same_answers(loaded, whole, rng)


def test_both_codes_are_dropped_whatever_the_blocks(rng, tmp_path):
    known = uniform_with_a_code(rng)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    code = np.nanmin(known)
    for k, size in enumerate((LARGE, 600)):
        stored = complete_triples(path, tmp_path / f"out{k}", shape=known.shape, block_entries=size)
        assert (stored.observations.values == code).sum() == 2 and code not in stored.used.values
        z, _ = co.solve_columns(stored.space, stored.used, penalty=stored.penalty)
        np.testing.assert_allclose(stored.coefficients, z, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("table", [full_with_a_code, typos])
@pytest.mark.parametrize(
    "settings", [{"rank": 3, "center": True, "shrinkage": 0.01, "refine": 0}, {}], ids=["fixed", "auto"]
)
def test_tall_matrices_are_screened_too(rng, tmp_path, monkeypatch, table, settings):
    known = table(rng, m=200)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    settings = settings | {"shape": known.shape, "block_entries": 700}
    expected = complete_triples(path, tmp_path / "ordinary", **settings)
    everything_is_tall(monkeypatch)
    tall = complete_triples(path, tmp_path / "tall", **settings)
    assert "memory limit" in tall.choices["refine"]
    assert expected.observations.values.size - expected.used.values.size >= 2
    np.testing.assert_array_equal(tall.used.values, expected.used.values)
    if "rank" in settings:
        np.testing.assert_allclose(tall.coefficients, expected.coefficients, rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(tall.status, expected.status)
    z, _ = co.solve_columns(tall.space, tall.used, penalty=tall.penalty)
    np.testing.assert_allclose(tall.coefficients, z, rtol=1e-8, atol=1e-10)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["ordinary", "t.parquet", "tall"]


@pytest.mark.slow
def test_the_usual_residual_is_that_of_all_columns(rng, tmp_path):
    """Ten neighbours have four times the noise of the others: in blocks of their own they would look usual."""
    R = rng.standard_normal((3, 110))
    M = rng.standard_normal((100, 3)) @ (R / np.linalg.norm(R, axis=0))
    noise = np.where(np.arange(110) < 100, 0.1, 0.4)
    known = M + noise * rng.standard_normal(M.shape)
    known[:, 20:][rng.random((100, 90)) > 0.4] = np.nan
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    settings = {"rank": 3, "center": False, "shrinkage": 0.01, "refine": 0}
    expected = in_memory(known, **settings).certificates().verdict
    assert np.isin(expected[100:], ("poor fit", "off the column space")).mean() > 0.5
    assert (expected[20:100] == "recovered").mean() > 0.95
    for k, size in enumerate((LARGE, 420, 100)):  # 100: a few columns in a block
        stored = complete_triples(path, tmp_path / f"out{k}", block_entries=size, **settings)
        np.testing.assert_array_equal(stored.certificates().verdict, expected)


def test_what_sweeps_hide_is_seen_in_stored_certificates(rng, tmp_path):
    """Sweeps over the rows learn enough of a direction that no full column has to fit the entries."""
    known = unseen_direction(rng)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    whole = in_memory(known, refine=2)
    assert (whole.certificates().verdict[80:] == "off the column space").mean() > 0.5
    for k, size in enumerate((LARGE, 500)):
        stored = complete_triples(path, tmp_path / f"out{k}", block_entries=size, refine=2)
        assert stored.moved_rows
        np.testing.assert_array_equal(stored.certificates().verdict, whole.certificates().verdict)


def test_plain_least_squares_has_one_noise(rng, tmp_path):
    """As many full columns as directions do not tell the noise; entries left out of all columns do."""
    known, _ = noisy(rng, n_full=3)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    settings = {"rank": 3, "center": False, "shrinkage": 0, "refine": 0}
    whole = in_memory(known, **settings)
    assert np.isnan(whole.space.noise_std) and np.isfinite(whole.noise_std)
    assert_same_answers(complete_triples(path, tmp_path / "out", block_entries=60, **settings), whole, rng)
