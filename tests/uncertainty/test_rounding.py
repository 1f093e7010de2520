"""Filled numbers with the digits that their uncertainty supports; observed ones keep all of theirs."""

from decimal import Decimal

import numpy as np
import pytest

import colonnade as co
from colonnade.files import read, write
from colonnade.files.tables.rounding import rounded


def test_the_second_digit_of_the_deviation_decides():
    values = np.array([1234.5678, 1234.5678, 1234.5678, -0.00123456, 0.0, 7.25, 3.0])
    deviations = np.array([0.0123, 99.0, 1.0, 4e-5, 0.5, np.inf, 0.0])
    assert rounded(values, deviations).tolist() == [1234.568, 1235.0, 1234.6, -0.001235, 0.0, 7.25, 3.0]


def test_rounding_is_short_and_off_by_a_twentieth_of_the_deviation(seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(2_000) * 10.0 ** rng.integers(-300, 300, 2_000)
    deviations = np.abs(values) * 10.0 ** rng.uniform(-20, 3, 2_000)
    found = rounded(values, deviations)
    assert np.all(np.abs(found - values) <= deviations / 20 * (1 + 1e-9) + 1e-15 * np.abs(values))
    for x, s in zip(found[:300].tolist(), deviations[:300].tolist()):
        digits = Decimal(repr(x)).normalize()
        place = 1 - np.floor(np.log10(s))
        assert x == 0 or -digits.as_tuple().exponent <= max(place, 0) or place >= 15 - np.floor(np.log10(abs(x)))


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
@pytest.mark.parametrize("bounds", [None, (-1.0001, 1.5002)])
def test_files_hold_rounded_predictions_and_exact_observations(tmp_path, ending, bounds):
    rng = np.random.default_rng(5)
    M = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 6)) + 0.1 * rng.standard_normal((40, 6))
    M = np.clip(M, -1, 1.5)
    known = np.where(rng.random(M.shape) < 0.25, np.nan, M)
    completion = co.complete(known, bounds=bounds)
    write(completion, tmp_path / f"t.{ending}", rounding="auto")
    found, plain = read(tmp_path / f"t.{ending}", row_names=False).to_dense(), completion.to_dense()
    gaps = np.isnan(known)
    np.testing.assert_array_equal(found[~gaps], known[~gaps])
    low, high = completion.interval(*np.nonzero(gaps), 0.6826894921370859)
    assert np.all(np.abs(found[gaps] - plain[gaps]) <= (high - low) / 40 * (1 + 1e-9) + 1e-12)
    assert max(len(repr(x)) for x in found[gaps].tolist()) <= 9 < max(len(repr(x)) for x in plain[gaps].tolist())
    assert bounds is None or (found.min() >= bounds[0] and found.max() <= bounds[1])


def test_triples_are_rounded_too(tmp_path):
    rng = np.random.default_rng(6)
    M = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8)) + 0.1 * rng.standard_normal((30, 8))
    lines = [f"{i},{j},{M[i, j]}" for i in range(30) for j in range(8) if j < 4 or (i + j) % 2]
    (tmp_path / "t.csv").write_text("row,column,value\n" + "\n".join(lines) + "\n")
    completion = co.complete(read(tmp_path / "t.csv"))
    write(completion, tmp_path / "out.csv", rounding="auto")
    found, plain = read(tmp_path / "out.csv").to_dense(), completion.to_dense()
    changed = found != plain
    np.testing.assert_array_equal(changed, completion.filled_mask())


def test_other_files_and_methods_without_uncertainty_are_refused(tmp_path):
    M = np.random.default_rng(0).standard_normal((12, 5))
    M[0, 0] = np.nan
    with pytest.raises(ValueError, match="rounded numbers are for csv and xlsx files"):
        write(co.complete(M), tmp_path / "t.parquet", rounding="auto")
    with pytest.raises(ValueError, match="has no intervals"):
        write(co.complete(M, method="als"), tmp_path / "t.csv", rounding="auto")
    with pytest.raises(ValueError, match="rounding"):
        write(co.complete(M), tmp_path / "t.csv", rounding=3)
    assert list(tmp_path.iterdir()) == []
