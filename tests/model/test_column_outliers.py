"""Typos and codes in partial columns: what is out of line decides nothing, what is large for a reason does."""

from dataclasses import replace

import numpy as np
import pytest

import colonnade as co
from colonnade.model.full_columns.column_outliers import column_outliers
from colonnade.model.full_columns.outlier_screening import Whole, rare_code
from colonnade.model.full_columns.refine import _single
from colonnade.scaling.blocks import complete_triples

from problems import hide, low_rank


def noisy(rng, m=60, n=120, n_full=40, n_entries=14):
    """About 10, with deviations of about 2 and noise of 0.1."""
    L, R = low_rank(rng, m, n, 3)
    M = 10 + L @ R + 0.1 * rng.standard_normal((m, n))
    return M, *hide(rng, M, n_full, n_entries)


def with_typos(rng, known, seen, number, n_columns=3, each=1):
    """Some columns get the number at some of their entries; the table, and where they are."""
    spoiled, typos = known.copy(), np.zeros(known.shape, bool)
    for j in rng.choice(np.flatnonzero(~seen.all(axis=0)), n_columns, replace=False):
        typos[rng.choice(np.flatnonzero(seen[:, j]), each, replace=False), j] = True
    spoiled[typos] = number
    return spoiled, typos


@pytest.mark.parametrize("number, each", [(-999.0, 1), (-999.0, 3), (1e6, 1), (1e200, 2)])
def test_the_answer_is_that_of_a_table_without_the_typos(rng, number, each):
    _, known, seen = noisy(rng)
    spoiled, typos = with_typos(rng, known, seen, number, each=each)
    expected, found = co.complete(np.where(typos, np.nan, known)), co.complete(spoiled)
    np.testing.assert_array_equal(found.to_dense()[typos], number)
    np.testing.assert_allclose(found.to_dense()[~typos], expected.to_dense()[~typos], rtol=1e-8)
    i, j = np.nonzero(~seen)
    for end, without in zip(found.interval(i, j), expected.interval(i, j), strict=True):
        np.testing.assert_allclose(end, without, rtol=1e-6)
    means = found.column_means(unbiased=False)[0]
    np.testing.assert_allclose(means, expected.column_means(unbiased=False)[0], rtol=1e-6)
    assert (
        f"{number:g}" in found.choices["suspicious values"]
        and "nothing was learned from" in found.choices["suspicious values"]
    )
    assert not np.isin(found.certificates().verdict[typos.any(axis=0)], ["recovered"]).any(), "they are looked at"


def test_every_way_to_solve_leaves_them_out(rng, tmp_path):
    _, known, seen = noisy(rng)
    spoiled, typos = with_typos(rng, known, seen, -999.0)
    expected = co.complete(spoiled, method="full columns")
    rows, columns = np.nonzero(~np.isnan(spoiled))
    lines = [f"{i},{j},{float(spoiled[i, j])!r}\n" for i, j in zip(rows, columns)]
    (tmp_path / "x.csv").write_text("".join(["row,column,value\n", *lines]))
    stored = complete_triples(tmp_path / "x.csv", tmp_path / "out", shape=known.shape)
    at = np.nonzero(~seen)
    np.testing.assert_allclose(stored.entries(*at), expected.entries(*at), rtol=1e-9)
    for end, other in zip(stored.interval(*at), expected.interval(*at), strict=True):
        np.testing.assert_allclose(end, other, rtol=1e-6)
    imputer = co.CompleteRowsImputer().fit(known.T)
    new = spoiled.T[typos.any(axis=0)]
    alone = imputer.transform(np.where(new == -999, np.nan, new))
    np.testing.assert_allclose(imputer.transform(new)[new != -999], alone[new != -999], rtol=1e-8)


def test_the_paper_uses_every_entry(rng):
    _, known, seen = noisy(rng)
    spoiled, typos = with_typos(rng, known, seen, -999.0)
    completion = co.complete(spoiled, rank=3, center=False, shrinkage=0, refine=0)
    assert completion.used is completion.observations
    j = np.flatnonzero(typos.any(axis=0))[0]
    O = np.flatnonzero(seen[:, j])
    z = np.linalg.lstsq(completion.basis[O], spoiled[O, j], rcond=None)[0]
    np.testing.assert_allclose(completion.coefficients[:, j], z, rtol=1e-8)


@pytest.mark.slow
def test_large_columns_and_units_of_rows_are_in_line(rng):
    _, known, _ = noisy(rng)
    for units in (10.0 ** rng.integers(-6, 7, (60, 1)), np.where(np.arange(120) % 7 == 0, 1e4, 1.0)):
        completion = co.complete(known * units)
        assert completion.used is completion.observations


def test_what_others_foretell_is_in_line(rng):
    """Half of the full columns, and one partial one a hundred times as much, have a bump at some rows."""
    bump = np.where(np.arange(60) < 12, 1.0, 0.0)
    M, _, seen = noisy(rng)
    M[:, ::2] += bump[:, None] * rng.standard_normal(60)
    j = np.flatnonzero(~seen.all(axis=0))[0]
    M[:, j] += 300 * bump
    seen[[0, 3, 6, 9], j], seen[[1, 2], j] = True, False
    completion = co.complete(np.where(seen, M, np.nan), method="full columns")
    assert completion.used is completion.observations
    assert np.abs(completion.entries([1, 2], [j, j]) - M[[1, 2], j]).max() < 60


def test_weights_and_small_columns(rng):
    """An entry of little weight may be far off; of two entries the unlikely one is out of line; of one nothing is."""
    M, known, seen = noisy(rng)
    completion = co.complete(known)
    a, b, c = np.flatnonzero(~seen.all(axis=0))[:3]
    table = known.copy()
    table[:, [a, b]] = np.nan
    table[[4, 9], a] = M[4, a], 5000.0
    table[4, b] = 5000.0
    table[np.flatnonzero(seen[:, c])[0], c] = 5000.0
    o = co.Observations.from_dense(table)
    found = column_outliers(completion.space, o, completion.penalty, None)
    assert set(o.entry_columns[found]) == {a, c} and (o.values[found] == 5000).all() and found.size == 2
    light = replace(o, weights=np.where(o.values == 5000, 1e-12, 1.0))
    assert column_outliers(completion.space, light, completion.penalty, None).size == 0


def test_many_columns_are_looked_at_piece_by_piece(rng, monkeypatch):
    _, known, seen = noisy(rng)
    spoiled, _ = with_typos(rng, known, seen, 1e5, n_columns=10)
    completion = co.complete(spoiled)
    expected = column_outliers(completion.space, completion.observations, completion.penalty, None)
    assert expected.size == 10
    monkeypatch.setattr("colonnade.model.full_columns.column_outliers._PIECE_ENTRIES", 50)
    np.testing.assert_array_equal(
        column_outliers(completion.space, completion.observations, completion.penalty, None), expected
    )


@pytest.mark.slow
def test_a_number_that_stands_for_nothing_is_named(rng):
    M, known, seen = noisy(rng)
    assert "suspicious values" not in co.complete(known).choices
    full = np.flatnonzero(seen.all(axis=0))
    known[5, full[:4]] = known[6, full[2:7]] = -999
    assert co.complete(known).choices["suspicious values"].startswith("-999 stands at 9 places")
    assert "suspicious values" not in co.complete((M > 10).astype(float) * np.where(seen, 1.0, np.nan)).choices


@pytest.mark.parametrize("sized, dropped", [(15.0, False), (100.0, True)])
def test_how_far_is_an_outlier(rng, sized, dropped):
    """In deviations of the prior; the entry moves the column, so that the others are worse predicted with it."""
    _M, known, _ = noisy(rng)
    completion = co.complete(known)
    spread = np.sqrt((completion.basis**2) @ completion.space.variances + completion.noise_variance)
    o = completion.observations
    places = []
    for j in o.partial_columns[:20]:
        at = o.indptr[j] + np.argmax(np.linalg.norm(completion.basis[o.rows[o.indptr[j] : o.indptr[j + 1]]], axis=1))
        i = o.rows[at]
        center = 0.0 if completion.center is None else completion.center[i]
        values = o.values.copy()
        values[at] = center + sized * spread[i]
        places.append(column_outliers(completion.space, replace(o, values=values), completion.penalty, None))
        if dropped:
            assert places[-1].tolist() == [at]
    assert dropped or not any(place.size for place in places)


def test_an_entry_that_harms_no_other_stays(rng):
    """A row that has nothing to do with the others: its entry is far off, but its column is filled as well with it."""
    M, _, seen = noisy(rng)
    M[7] = 0.1 * rng.standard_normal(M.shape[1])
    known = np.where(seen, M, np.nan)
    completion = co.complete(known)
    j = completion.observations.partial_columns[0]
    known[7, j] = 40.0
    o, space = co.Observations.from_dense(known), completion.space
    U = space.basis.copy()
    U[7] = 0.0
    assert column_outliers(replace(space, basis=U), o, completion.penalty, None).size == 0


def test_unbiased_means_count_what_is_an_outlier(rng):
    _, known, seen = noisy(rng)
    spoiled, typos = with_typos(rng, known, seen, -999.0)
    columns = typos.any(axis=0)
    clean = co.complete(np.where(typos, np.nan, known)).column_means()[0]
    assert np.abs(co.complete(spoiled).column_means()[0] - clean)[columns].max() > 10


def test_a_typo_beside_one_entry_leaves_what_one_entry_leaves(rng):
    M, known, seen = noisy(rng)
    j = np.flatnonzero(~seen.all(axis=0))[0]
    known[:, j] = np.nan
    known[4, j] = M[4, j]
    expected = co.complete(known).interval([0, 9], [j, j])
    known[30, j] = -5000.0
    completion = co.complete(known)
    assert completion.used.n_observed[j] == 1
    for end, other in zip(completion.interval([0, 9], [j, j]), expected, strict=True):
        np.testing.assert_allclose(end, other, rtol=1e-6)


def test_codes_in_full_columns_are_not_learned_from(rng):
    """Several in a row and in a column, where each hides the others."""
    M, known, seen = noisy(rng)
    full = np.flatnonzero(seen.all(axis=0))
    spoiled = known.copy()
    spoiled[5, full[:4]] = spoiled[8:11, full[6]] = -999.0
    gaps = ~seen
    before = np.linalg.norm((co.complete(known).to_dense() - M)[gaps])
    completion = co.complete(spoiled)
    assert np.linalg.norm((completion.to_dense() - M)[gaps]) < 1.3 * before
    assert (
        completion.choices["suspicious values"].startswith("-999 stands at 7 places")
        and "learned from them" in completion.choices["suspicious values"]
    )
    assert completion.summary().index("Trust: check the data first") > 0 and "suspicious values" in repr(completion)


def test_numbers_that_are_no_codes(rng):
    """Powers of ten, marks beside zeros and ones, and a column that is so."""
    _M, known, seen = noisy(rng)
    powers = 10.0 ** rng.integers(0, 4, known.shape)
    marks = rng.choice([0.0, 1.0, 10.0], known.shape, p=[0.6, 0.3, 0.1])
    percent = known / 20
    percent[:, np.flatnonzero(seen.all(axis=0))[0]] = rng.choice([0.0, 100.0], 60)
    for table in (powers, marks, percent):
        assert rare_code(Whole(co.Observations.from_dense(np.where(seen, table, np.nan)))) is None


def test_many_typos_do_not_hide_each_other(rng):
    """In every third partial column one of a size of its own, by which the noise would be thought large."""
    M, known, seen = noisy(rng)
    spoiled, typos = with_typos(rng, known, seen, 0.0, n_columns=25)
    spoiled[typos] = rng.choice([-1.0, 1.0], 25) * rng.uniform(2000, 4000, 25)
    gaps = ~seen
    before = np.linalg.norm((co.complete(known).to_dense() - M)[gaps])
    assert np.linalg.norm((co.complete(spoiled).to_dense() - M)[gaps]) < 1.3 * before


def test_a_code_is_named_however_common(rng):
    """Of which it is too common to be left out, too."""
    _, known, seen = noisy(rng)
    known[~seen & (rng.random(known.shape) < 0.5)] = -999.0
    assert (
        co.complete(known)
        .choices["suspicious values"]
        .startswith(f"-999 stands at {int((known == -999).sum()):,} places")
    )


def test_what_gathers_in_a_row_is_counted_among_partial_columns(rng):
    """Five of twenty entries that partial columns have in a row, which all hundred full columns have too."""
    known = np.full((30, 150), np.nan)
    known[:, :100] = rng.standard_normal((30, 100))
    known[0, 100:120] = 1.0
    known[1:4, 100:] = 1.0
    o = co.Observations.from_dense(known)
    row = o.locate(np.zeros(5, int), np.arange(100, 105))
    assert _single(o, row).size == 0
    assert _single(o, row[:4]).size == 4


@pytest.mark.parametrize("n_foreign, size, refine", [(15, 1e3, "auto"), (1, 1e12, "auto"), (1, 1e12, 2)])
@pytest.mark.slow
def test_columns_out_of_all_proportion_do_not_spoil_the_others(rng, n_foreign, size, refine):
    """Numbers that have nothing to do with the rest, in some columns or in one."""
    M = rng.standard_normal((100, 4)) @ rng.standard_normal((4, 120)) + 0.1 * rng.standard_normal((100, 120))
    known, seen = hide(rng, M, 30, 20)
    foreign = np.flatnonzero(~seen.all(axis=0))[:n_foreign]
    others = np.setdiff1d(np.arange(120), foreign)

    def error(table):
        return np.sqrt(
            np.mean((co.complete(table, refine=refine).to_dense()[:, others] - M[:, others])[~seen[:, others]] ** 2)
        )

    spoiled = known.copy()
    spoiled[:, foreign] = np.where(seen[:, foreign], size * rng.standard_normal((100, n_foreign)), np.nan)
    assert error(spoiled) < 1.1 * error(known)
