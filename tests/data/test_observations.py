import dataclasses
import hashlib
import sys

import numpy as np
import pytest
from scipy import sparse

import colonnade as co

from problems import hide


def same(a, b):
    return (
        a.shape == b.shape
        and (a.indptr == b.indptr).all()
        and (a.rows == b.rows).all()
        and (a.values == b.values).all()
        and (a.full_columns == b.full_columns).all()
        and (a.weights is None) == (b.weights is None)
        and (a.weights is None or (a.weights == b.weights).all())
    )


def test_all_doors_give_the_same_observations(rng):
    M = rng.standard_normal((7, 9))
    known, seen = hide(rng, M, 2, 3)
    expected = co.Observations.from_dense(known)
    i, j = np.nonzero(seen)
    shuffled = rng.permutation(i.size)
    i, j = i[shuffled], j[shuffled]
    S = sparse.coo_array((M[i, j], (i, j)), shape=M.shape)
    doors = [
        co.Observations.from_dense(np.ma.array(M, mask=~seen)),
        co.Observations.from_dense(np.ma.array(np.where(seen, M, np.inf), mask=~seen)),
        co.Observations.from_dense(known.tolist()),
        co.Observations.from_triplets(i, j, M[i, j], M.shape),
        co.Observations.from_triplets(i.astype(float), j.astype(np.uint8), M[i, j], M.shape),
        *(co.Observations.from_sparse(S.asformat(kind)) for kind in ("coo", "csc", "csr", "lil", "dok")),
    ]
    assert all(same(expected, o) for o in doors)
    assert (expected.n_observed == seen.sum(axis=0)).all()
    assert set(expected.full_columns) == set(np.flatnonzero(seen.all(axis=0)))
    assert set(expected.partial_columns) == set(np.flatnonzero(~seen.all(axis=0)))


def test_blocks_do_not_change_the_observations(rng, monkeypatch):
    known, _ = hide(rng, rng.standard_normal((11, 23)), 3, 4)
    weights = 1 + rng.random(known.shape)
    whole = co.Observations.from_dense(known, weights=weights)
    monkeypatch.setattr("colonnade.data.observations.BLOCK_CELLS", 30)
    assert same(whole, co.Observations.from_dense(known, weights=weights))


def test_explicit_zeros_are_observations():
    S = sparse.csc_array(([0.0, 2.0], ([0, 1], [0, 0])), shape=(2, 2))
    o = co.Observations.from_sparse(S)
    assert o.n_observed.tolist() == [2, 0] and o.values.tolist() == [0.0, 2.0] and o.full_columns.tolist() == [0]


def test_duplicates_are_refused_averaged_or_the_last_wins():
    rows, columns, values = [1, 0, 1, 1], [0, 1, 0, 0], [1.0, 7.0, 2.0, 6.0]
    with pytest.raises(ValueError, match="2 entries are given twice, the first at row 1, column 0: choose duplicates="):
        co.Observations.from_triplets(rows, columns, values, (2, 2))
    mean = co.Observations.from_triplets(rows, columns, values, (2, 2), duplicates="mean")
    assert mean.values.tolist() == [3.0, 7.0]
    last = co.Observations.from_triplets(rows, columns, values, (2, 2), duplicates="last")
    assert last.values.tolist() == [6.0, 7.0]
    weighted = co.Observations.from_triplets(rows, columns, values, (2, 2), weights=[1, 1, 1, 2], duplicates="mean")
    assert weighted.values.tolist() == [3.75, 7.0] and weighted.weights.tolist() == [4.0, 1.0]
    huge = co.Observations.from_triplets([0, 0], [0, 0], [1.5e308, 1.5e308], (1, 1), duplicates="mean")
    assert huge.values.tolist() == [1.5e308]
    twice = sparse.coo_array(([1.0, 2.0], ([0, 0], [0, 0])), shape=(2, 2))
    with pytest.raises(ValueError, match="1 entry is given twice, at"):
        co.Observations.from_sparse(twice)


@pytest.mark.parametrize(
    "make",
    [
        lambda M: M.astype(np.float64),
        lambda M: M.astype(np.float16).astype(np.float64),
        np.asfortranarray,
        lambda M: M.astype(">f8"),
        lambda M: np.repeat(M, 2, axis=0)[::2],
        lambda M: _frozen(M.copy()),
    ],
)
def test_layout_and_input_do_not_matter(make):
    M = np.arange(12.0).reshape(3, 4)
    M[1, 2] = np.nan
    data = make(M)
    before = hashlib.sha256(np.ascontiguousarray(data)).hexdigest()
    assert same(co.Observations.from_dense(M), co.Observations.from_dense(data))
    assert hashlib.sha256(np.ascontiguousarray(data)).hexdigest() == before


def _frozen(a):
    a.setflags(write=False)
    return a


def test_dtypes():
    whole = np.arange(6).reshape(2, 3)
    for kind in (np.int8, np.uint16, bool, np.float16):
        assert co.Observations.from_dense(whole.astype(kind)).values.dtype == np.float64
    assert co.Observations.from_dense(whole.astype(np.float32)).values.dtype == np.float32


def test_memory_map(tmp_path, rng):
    M = rng.standard_normal((5, 6))
    np.save(tmp_path / "m.npy", M)
    mapped = np.load(tmp_path / "m.npy", mmap_mode="r")
    assert same(co.Observations.from_dense(M), co.Observations.from_dense(mapped))


def test_locate_finds_what_is_there_and_nothing_else(rng):
    known, seen = hide(rng, rng.standard_normal((13, 17)), 2, 4)
    known[:, 5] = np.nan
    seen[:, 5] = False
    o = co.Observations.from_dense(known)
    i, j = (k.ravel() for k in np.indices(known.shape))
    at = o.locate(i, j)
    assert ((at >= 0) == seen.ravel()).all()
    assert (o.values[at[at >= 0]] == known[seen]).all()


def test_observe_follows_algorithm_1(rng, seed):
    M = rng.standard_normal((30, 50))
    p = 1 + np.arange(50.0)
    p /= p.sum()
    source = co.Source(M)
    o = co.observe(source, n_full_columns=20, n_entries=40, probabilities=p, random_state=seed)
    # what was drawn: the same draws from the same generator
    draws = np.random.default_rng(seed).choice(50, size=20, p=p)
    full, times = np.unique(draws, return_counts=True)
    assert (o.full_columns == full).all()
    np.testing.assert_allclose(o.full_scales**2, times / (20 * p[full]), rtol=1e-14)
    dense = np.full(M.shape, np.nan)
    for j in range(50):
        at = slice(o.indptr[j], o.indptr[j + 1])
        assert (np.diff(o.rows[at]) > 0).all() and (o.values[at] == M[o.rows[at], j]).all()
        if j not in full:
            assert o.weights[at].sum() == 40, "every draw is counted"
        dense[o.rows[at], j] = o.values[at]
    assert source.entries_read == np.isfinite(dense).sum() == o.values.size


def test_observe_does_not_depend_on_its_blocks(monkeypatch, seed):
    M = np.random.default_rng(1).standard_normal((20, 40))
    whole = co.observe(M, n_full_columns=5, n_entries=7, random_state=seed)
    monkeypatch.setattr(sys.modules["colonnade.data.sampling"], "BLOCK_CELLS", 21)
    assert same(whole, co.observe(M, n_full_columns=5, n_entries=7, random_state=seed))


def test_rows_are_drawn_uniformly(seed):
    o = co.observe(np.zeros((10, 4001)), n_full_columns=1, n_entries=5, random_state=seed)
    partial = o.partial_columns
    weights = np.concatenate([o.weights[o.indptr[j] : o.indptr[j + 1]] for j in partial])
    rows = np.concatenate([o.rows[o.indptr[j] : o.indptr[j + 1]] for j in partial])
    counts = np.bincount(rows, weights=weights, minlength=10)
    chi_squared = ((counts - 2000) ** 2 / 2000).sum()
    assert counts.sum() == 20_000 and chi_squared < 40.0  # 9 degrees of freedom: exceeded once in 130,000


def test_source_of_a_function_and_of_a_map(tmp_path):
    M = np.arange(20.0).reshape(4, 5)
    np.save(tmp_path / "m.npy", M)
    for source in (
        co.Source(lambda i, j: M[i, j], shape=(4, 5)),
        co.Source(np.load(tmp_path / "m.npy", mmap_mode="r")),
        co.Source(M.astype(np.int64)),
    ):
        assert (source.columns([3, 1]) == M[:, [3, 1]]).all()
        assert (source.entries([0, 3], [4, 2]) == [4.0, 17.0]).all()
        assert source.entries_read == 10


def test_transposed_is_the_transposed_matrix(rng):
    known, _ = hide(rng, rng.standard_normal((7, 9)), 2, 3)
    known[4] = 0.0  # a full row, of zeros that are observations
    weights = rng.uniform(1, 2, known.shape)
    there = co.Observations.from_dense(known, weights=weights)
    back = co.Observations.from_dense(known.T, weights=weights.T)
    assert same(there.transposed(), back) and back.full_columns.tolist() == [4]
    assert same(there.transposed().transposed(), there)


def test_triplets_of_a_matrix_with_more_places_than_a_number_can_count(rng):
    known, seen = hide(rng, rng.standard_normal((7, 9)), 2, 3)
    i, j = np.nonzero(seen)
    order = rng.permutation(i.size)
    i, j = i[order], j[order]
    small = co.Observations.from_triplets(i, j, known[i, j], known.shape)
    huge = co.Observations.from_triplets(i * 10**12, j, known[i, j], (10**13, 2 * 10**6))
    assert (huge.values == small.values).all() and (huge.rows == small.rows.astype(np.int64) * 10**12).all()


@pytest.mark.parametrize("dtype", [np.float16, ">f8"])
def test_floats_that_compiled_loops_do_not_know_are_refused(dtype):
    o = co.Observations.from_dense(np.ones((3, 4)))
    with pytest.raises(TypeError, match="values must be an array of 12 floats of 4 or 8 bytes"):
        dataclasses.replace(o, values=o.values.astype(dtype))


def test_a_matrix_without_columns_has_no_transposed():
    with pytest.raises(ValueError, match="shape"):
        co.Observations.from_dense(np.ones((3, 4))).take([]).transposed()


@pytest.mark.parametrize("weighted", [False, True])
def test_without_some_entries(rng, weighted):
    """As if they had never been there; full columns that lose one are partial, and the scales of the others stay."""
    known = np.where(rng.random((9, 12)) < 0.5, rng.standard_normal((9, 12)), np.nan)
    known[:, [1, 4, 7]] = rng.standard_normal((9, 3))
    weights = rng.uniform(1, 2, known.shape) if weighted else None
    o = dataclasses.replace(co.Observations.from_dense(known, weights=weights), full_scales=np.array([1.0, 2.0, 3.0]))
    places = rng.choice(o.values.size, 10, replace=False)
    places = places[~np.isin(o.columns_of(places), (1, 7))]
    gone = o.rows[places], o.columns_of(places)
    assert (known[gone] == o.values[places]).all()
    left = known.copy()
    left[gone] = np.nan
    left[0, 4] = np.nan
    found, expected = o.without([*places, o.indptr[4]]), co.Observations.from_dense(left, weights=weights)
    for name in ("indptr", "rows", "values", "full_columns"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert not weighted or (found.weights == expected.weights).all()
    assert found.full_scales.tolist() == [1.0, 3.0] and o.without(places[:0]) is o


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_weights_that_are_none(weight):
    whole = co.Observations.from_dense(np.ones((3, 2)), weights=np.ones((3, 2)))
    with pytest.raises(ValueError, match="weights must be positive and finite"):
        dataclasses.replace(whole, weights=np.array([1, 1, 1, 1, 1, weight]))
