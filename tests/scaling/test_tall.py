"""Tall matrices by blocks of rows: the sums, the basis on the disk, and the answer of the ordinary path to rounding."""

import json

import numpy as np
import pytest

import colonnade as co
from colonnade.files.results.block_files import Block, write_entries
from colonnade.files.results.checkpoints import publish_array
from colonnade.files.results.disk_columns import FullColumns, RowFile
from colonnade.model import directions
from colonnade.model.full_columns.learn import FullColumnModel
from colonnade.model.full_columns.outlier_screening import Screening
from colonnade.model.kernels import gram_kernels
from colonnade.scaling import block_solving, tall
from colonnade.scaling.blocks import complete_triples

from made_triples import contents, everything_is_tall, problem, triples_of, write_triples
from problems import orthonormality


def columns_of_every_kind(rng, m, r):
    """A basis and columns: full, ordinary, of r entries, empty, too few, in rows that do not determine them."""
    U = np.linalg.qr(rng.standard_normal((m, r)))[0]
    U[: m // 4, 0] = 0  # rows that say nothing about the first direction, so that U is no longer orthonormal
    U = np.linalg.qr(U)[0]
    M = U @ rng.standard_normal((r, 40)) + 0.01 * rng.standard_normal((m, 40))
    seen = rng.random((m, 40)) < 0.5
    seen[:, :3] = True
    seen[:, 3:] &= rng.random(37) < rng.uniform(0.2, 1, 37)
    seen[:, 3] = False
    seen[:, 4] = np.arange(m) < r - 1
    seen[:, 5] = np.arange(m) < r
    seen[:, 6] = np.arange(m) < m // 4  # a bad condition, or none
    return U, np.where(seen, M, np.nan)


def on_disk(folder, U, M, size=7):
    """A basis and blocks of columns in files."""
    (folder / "blocks").mkdir()
    publish_array(folder / "basis.npy", U)
    for k, lo in enumerate(range(0, M.shape[1], size)):
        o = co.Observations.from_dense(M[:, lo : lo + size])
        write_entries(folder, k, Block(lo, lo + o.shape[1], o.indptr, o.rows, o.values), M.shape[0])
    return list(range(k + 1))


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("with_center", [False, True])
def test_the_answer_of_the_ordinary_path(rng, tmp_path, monkeypatch, with_prior, with_center):
    m, r = 3_000, 6
    U, M = columns_of_every_kind(rng, m, r)
    center = rng.standard_normal(m) if with_center else None
    M = M if center is None else M + center[:, None]
    space = co.ColumnSpace(U, np.ones(r), center, np.logspace(0, -2, r), np.nan, rng.standard_normal(m))
    from_full = FullColumnModel(space, 1e-4 if with_prior else 0.0, {})
    which = on_disk(tmp_path, U, M)
    parts = tall.solve_by_row_blocks(tmp_path, which, from_full, 1024 * 16 * 8 * r, [Screening()] * len(which))
    Z, status = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    o = co.Observations.from_dense(M)
    expected, expected_status = co.solve_columns(space, o, penalty=from_full.penalty)
    np.testing.assert_array_equal(status, expected_status)
    assert Z[:3].tobytes() == expected.T[:3].tobytes()  # full columns
    for j in range(3, 40):
        U_O = U[~np.isnan(M[:, j])]
        stacked = np.vstack([U_O, np.diag(np.sqrt(from_full.penalty))])
        condition = np.linalg.cond(stacked) if U_O.size else 1.0
        bound = 20 * r * np.finfo(float).eps * condition * np.linalg.norm(expected[:, j])
        assert np.isnan(Z[j]).all() == np.isnan(expected[:, j]).all()
        assert not np.linalg.norm(Z[j] - expected[:, j]) > bound


def test_blocks_of_rows_and_of_columns_change_no_byte(rng, tmp_path):
    m, r = 5_000, 4
    U, M = columns_of_every_kind(rng, m, r)
    from_full = FullColumnModel(co.ColumnSpace(U, np.ones(r), None, np.ones(r), np.nan), 1e-3, {})
    which = on_disk(tmp_path, U, M)
    for memory in (1, 1e9):
        together = tall.solve_by_row_blocks(tmp_path, which, from_full, memory, [Screening()] * len(which))
        alone = [tall.solve_by_row_blocks(tmp_path, [k], from_full, 1e9, [Screening()])[0] for k in which]
        assert [part[0].tobytes() for part in together] == [part[0].tobytes() for part in alone]


def test_groups_hold_every_block_once():
    entries = [{"first": 10 * k, "stop": 10 * (k + 1)} for k in range(20)]
    for memory in (1, 1e5, 1e9):
        groups = list(tall.groups_of_blocks(entries, list(range(3, 20)), 5, memory))
        assert [k for group in groups for k in group] == list(range(3, 20))
    assert len(groups) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_agree_with_numpy(rng, dtype):
    m, r = 50, 5
    U, center = rng.standard_normal((m, r)).astype(dtype), rng.standard_normal(m)
    o = co.Observations.from_dense(
        np.where(rng.random((m, 9)) < 0.5, rng.standard_normal((m, 9)).astype(dtype), np.nan)
    )
    Z = rng.standard_normal((9, r))
    found = []
    for grams, residuals in (
        (gram_kernels.add_grams, gram_kernels.add_residuals),
        (gram_kernels.add_grams_in_numpy, gram_kernels.add_residuals_in_numpy),
    ):
        G, b, t = np.zeros((9, r, r)), np.zeros((9, r)), np.zeros((9, r))
        at, again = o.indptr[:-1].copy(), o.indptr[:-1].copy()
        for lo in range(0, m, 20):
            block = U[lo : lo + 20], lo, center[lo : lo + 20], o.indptr, o.rows, o.values
            grams(*block, at, 0, 9, G, b)
            residuals(*block, again, 0, 9, Z, t)
        np.testing.assert_array_equal(at, o.indptr[1:])
        found.append((G, b, t))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=40 * m * np.finfo(dtype).eps)


@pytest.mark.parametrize("center", [False, True])
def test_a_column_space_whose_basis_is_written(rng, tmp_path, monkeypatch, center):
    m, d, r = 2_000, 12, 5
    A = rng.standard_normal((m, r)) @ rng.standard_normal((r, d)) + 1e-3 * rng.standard_normal((m, d)) + 1
    monkeypatch.setattr(directions, "_TALL", 0)
    monkeypatch.setattr(directions, "CACHE_CELLS", 3_000)
    expected = co.fit_column_space(A, rank=r, center=center)
    on_disk(tmp_path, np.eye(2), A, size=5)
    entries = [{"first": 5 * k, "full": count} for k, count in enumerate((5, 5, 2))]
    columns = FullColumns(tmp_path, entries, m, 100)
    np.testing.assert_array_equal(columns.read_rows(10, 20), A[10:20])
    np.testing.assert_array_equal(columns.at_rows([5, 1_999]), A[[5, 1_999]])
    for rows in (None, 100, 777):
        with open(tmp_path / "written.npy", "wb+") as file:
            space = co.model.column_space.fit_stored_column_space(
                columns, lambda k, kind: RowFile(file, m, k, kind, is_new=True), rank=r, center=center, block_rows=rows
            )
        U = np.load(tmp_path / "written.npy")
        if rows is None:
            assert U.tobytes() == expected.basis.tobytes()
        np.testing.assert_allclose(U, expected.basis, rtol=0, atol=1e-12)
        assert orthonormality(U) < 10
        np.testing.assert_allclose(space.singular_values, expected.singular_values, rtol=1e-12)
        np.testing.assert_allclose(space.noise_std, expected.noise_std, rtol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_run_with_a_basis_larger_than_memory(rng, tmp_path, monkeypatch, noise):
    M = problem(rng, m=200, n=60, n_full=8, s=60, noise=noise)
    path = write_triples(tmp_path / "t.parquet", triples_of(M, rng))
    settings = {"rank": 3, "center": noise > 0, "shrinkage": noise**2, "refine": 0, "block_entries": 500}
    expected = complete_triples(path, tmp_path / "ordinary", **settings)
    everything_is_tall(monkeypatch)
    done = complete_triples(path, tmp_path / "tall", **settings)
    np.testing.assert_allclose(done.to_dense(), expected.to_dense(), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(done.status, expected.status)
    automatic = complete_triples(path, tmp_path / "automatic", block_entries=500)
    assert "of 200 rows" in automatic.choices["settings"] and "memory limit" in automatic.choices["refine"]
    assert done.choices["rank"] == "3 directions, as given"
    if noise == 0:
        np.testing.assert_allclose(automatic.to_dense(), expected.to_dense(), rtol=0, atol=1e-12)


def test_a_tall_run_is_resumed(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    everything_is_tall(monkeypatch)
    monkeypatch.setattr(block_solving, "groups_of_blocks", lambda entries, todo, r, memory: [[k] for k in todo])
    path = write_triples(tmp_path / "t.parquet", triples_of(problem(rng, m=200, s=60), rng))
    settings = {"rank": 3, "center": False, "shrinkage": 0.0, "block_entries": 500}
    complete_triples(path, tmp_path / "expected", **settings)

    def interrupt(stage, done, total):
        if stage in ("learning", "solving"):
            raise KeyboardInterrupt

    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            complete_triples(path, tmp_path / "out", resume=True, progress=interrupt, **settings)
    complete_triples(path, tmp_path / "out", resume=True, **settings)
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")
    assert json.loads((tmp_path / "out" / "facts.json").read_text())["space"]["shape"] == [200, 3]


@pytest.mark.parametrize(("rows", "fits"), [(999, True), (1_001, False)])
def test_a_basis_and_its_copy_may_take_half_of_the_memory(rows, fits):
    assert tall.exceeds_memory((rows, 5), 2 * 2 * 8 * 1_000 * 5) == (not fits)
