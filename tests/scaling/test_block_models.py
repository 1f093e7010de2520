"""Tables without complete columns in blocks: the factor model of a sample of the columns solves all of them."""

import numpy as np
import pytest

import colonnade as co
from colonnade.scaling import model_learning
from colonnade.scaling.blocks import complete_triples

from made_triples import contents, triples_of, write_triples

LARGE = 10**9


def gappy(rng, m=60, n=200, rank=3, noise=0.1, share=0.3):
    """A table of low rank whose rows have units of their own, and what is known of it."""
    M = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) + noise * rng.standard_normal((m, n))
    M = M * 10.0 ** rng.integers(-2, 3, (m, 1)) + rng.standard_normal((m, 1))
    return M, np.where(rng.random(M.shape) < share, M, np.nan)


def with_faults(rng):
    """Codes, an empty row and an empty column."""
    M, known = gappy(rng)
    known[rng.random(known.shape) < 0.003] = -99999.0
    known[4], known[:, 7] = np.nan, np.nan
    return M, known


def relative(error, M):
    return np.sqrt(np.nanmean((error / M.std(axis=1, keepdims=True)) ** 2))


@pytest.mark.parametrize("table", [gappy, with_faults], ids=["plain", "faults"])
@pytest.mark.slow
def test_blocks_of_any_size_are_the_answer_in_memory(rng, tmp_path, table):
    M, known = table(rng)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    whole = co.complete(known, method="factor model", orientation="columns", bounds=(-1e4, 1e4))
    given, found = {"shape": known.shape, "bounds": (-1e4, 1e4)}, []
    for k, size in enumerate((LARGE, 700, 60)):
        found.append(complete_triples(path, tmp_path / f"out{k}", block_entries=size, **given))
        assert (found[-1].n_blocks > 1) == (size < LARGE)
    i, j = rng.integers(0, known.shape[0], 100), rng.integers(0, known.shape[1], 100)
    for stored in found:
        assert stored.coefficients.tobytes() == found[0].coefficients.tobytes()
        assert stored.status.tobytes() == found[0].status.tobytes() == whole.status.tobytes()
        assert stored.choices == found[0].choices
        assert stored.choices.get("outliers") == whole.choices.get("outliers")
        unit = M.std(axis=1, keepdims=True)
        np.testing.assert_allclose(stored.to_dense() / unit, whole.to_dense() / unit, rtol=1e-9, atol=1e-9)
        for level in (0.5, 0.9):
            for ours, first, theirs in zip(*(x.interval(i, j, level) for x in (stored, found[0], whole))):
                np.testing.assert_array_equal(ours, first)
                np.testing.assert_allclose(ours / unit[i, 0], theirs / unit[i, 0], rtol=1e-9, atol=1e-9)
        for ours, theirs in zip(stored.column_means(), whole.column_means()):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9)
        ours, theirs = stored.certificates(), whole.certificates()
        for name in ("column", "n_observed", "verdict", "more_entries"):
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
        assert str(stored.verdict) == str(whole.verdict) and stored.noise_std == pytest.approx(whole.noise_std)


def test_a_result_in_blocks_draws_explains_and_is_copied(rng, tmp_path):
    _, known = gappy(rng)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    stored = complete_triples(path, tmp_path / "out", block_entries=300, shape=known.shape)
    stored.save(tmp_path / "copy")
    loaded = co.Completion.load(tmp_path / "copy")
    assert {k: v for k, v in contents(tmp_path / "copy").items() if k != "facts.json"} == {
        k: v for k, v in contents(tmp_path / "out").items() if k != "facts.json"
    }
    rows, columns = [2, 5, 9], [150, 3, 4, 190]
    draws = loaded.sample(400, rows=rows, columns=columns, random_state=0)
    seen = ~np.isnan(known[np.ix_(rows, columns)])
    assert (draws[:, seen] == known[np.ix_(rows, columns)][seen]).all()
    low, high = stored.interval(*np.meshgrid(rows, columns, indexing="ij"))
    inside = ((low <= draws) & (draws <= high)).mean(axis=0)[~seen]
    assert ((inside > 0.8) & (inside < 0.97)).all()
    i, j = 2, int(np.flatnonzero(np.isnan(known[2]))[-1])
    told = stored.explain(i, j)
    np.testing.assert_allclose(told.level + told.offset + told.contributions.sum(), told.prediction, rtol=1e-9)
    np.testing.assert_allclose(told.prediction, stored.entries(i, j), rtol=1e-9)


@pytest.mark.slow
def test_a_sample_that_shows_every_row_predicts_all_columns(rng, tmp_path, monkeypatch):
    M, known = gappy(rng, m=40, n=2_000)
    known[7] = np.nan
    known[7, [1_003, 1_777]] = M[7, [1_003, 1_777]]
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    monkeypatch.setattr(model_learning, "_MOST_ENTRIES", 4_000)
    found = [
        complete_triples(path, tmp_path / f"out{k}", block_entries=size, shape=known.shape)
        for k, size in enumerate((LARGE, 5_000))
    ]
    assert found[0].coefficients.tobytes() == found[1].coefficients.tobytes()
    stored, hidden = found[1], np.isnan(known)
    assert "of 2,000 columns" in stored.choices["method"] and np.isfinite(stored.to_dense()).all()
    whole = co.complete(known, method="factor model", orientation="columns")
    hidden[7] = False  # Two entries are too few for any model.
    errors = [relative(np.where(hidden, x.to_dense() - M, np.nan), M) for x in (stored, whole)]
    assert errors[0] < 1.3 * errors[1]  # A sixth of the entries was learned from.
    i, j = np.nonzero(hidden)
    some = rng.permutation(i.size)[:4_000]
    low, high = stored.interval(i[some], j[some])
    assert 0.85 < np.mean((low <= M[i[some], j[some]]) & (M[i[some], j[some]] <= high)) < 0.95
    assert stored.verdict.word == "use it"


@pytest.mark.slow
def test_exact_data_are_recovered_where_all_columns_were_learned_from(rng, tmp_path, monkeypatch):
    M, known = gappy(rng, noise=0.0, share=0.4)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    stored = complete_triples(path, tmp_path / "out", block_entries=700, shape=known.shape)
    assert relative(stored.to_dense() - M, M) < 1e-10 and stored.learned.is_exact
    low, high = stored.interval(np.arange(60), np.arange(60))
    assert np.abs(high - low).max() < 1e-9 * np.abs(M).max()
    monkeypatch.setattr(model_learning, "_MOST_ENTRIES", 3_000)
    stored = complete_triples(path, tmp_path / "sample", block_entries=700, shape=known.shape)
    assert not stored.learned.is_exact and relative(stored.to_dense() - M, M) < 1e-2


def test_few_full_columns_do_not_decide_alone(rng, tmp_path):
    M, known = gappy(rng, n=400, rank=4, share=0.4)
    known[:, :3] = M[:, :3]
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    how = {"shape": known.shape, "block_entries": 900}
    stored = complete_triples(path, tmp_path / "auto", **how)
    assert "because few columns are complete" in stored.choices["method"]
    by_full = complete_triples(path, tmp_path / "full", method="full columns", **how)
    hidden = np.isnan(known)
    errors = [relative(np.where(hidden, x.to_dense() - M, np.nan), M) for x in (stored, by_full)]
    assert by_full.learned is None and errors[0] < 0.5 * errors[1]
    np.testing.assert_array_equal(stored.columns([0, 1, 2]), M[:, :3])


def interrupted(stage):
    def stop(now, done, total):
        if now == stage and done:
            raise KeyboardInterrupt

    return stop


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_bytes(rng, tmp_path):
    _, known = gappy(rng)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    complete_triples(path, tmp_path / "here", block_entries=300)
    for stage in ("grouping", "learning", "solving"):
        with pytest.raises(KeyboardInterrupt):
            complete_triples(path, tmp_path / stage, block_entries=300, progress=interrupted(stage))
        complete_triples(path, tmp_path / stage, block_entries=300, resume=True)
        assert contents(tmp_path / stage) == contents(tmp_path / "here")


def test_what_blocks_cannot_do_is_refused(rng, tmp_path):
    _, known = gappy(rng)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    for wrong, message in (
        ({"method": "als"}, "needs data that fit into memory"),
        ({"method": "guess"}, "method must be"),
        ({"method": "factor model", "center": True}, "does not use center"),
        ({"method": "full columns"}, r"no column is known in all 60 rows.*Leave out method"),
        ({"shrinkage": 0}, r"no column is known in all 60 rows.*Leave out shrinkage"),
    ):
        with pytest.raises(ValueError, match=message):
            complete_triples(path, tmp_path / "out", **wrong)
    assert [found.name for found in tmp_path.iterdir()] == ["t.parquet"]
