import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import colonnade as co
from colonnade import Status
from colonnade.files.results.manifests import sealed
from colonnade.model.full_columns.outlier_screening import Whole, extreme_entries

from problems import hide, low_rank, relative_error


@pytest.fixture
def case(rng):
    L, R = low_rank(rng, 40, 60, 3)
    M = L @ R + 0.01 * rng.standard_normal((40, 60))
    known, seen = np.full(M.shape, np.nan), np.zeros(M.shape, bool)
    known[:, :59], seen[:, :59] = hide(rng, M[:, :59], 8, 9)
    return M, known, seen


def paper(data, rank=3, **settings):
    return co.complete(data, rank=rank, center=False, shrinkage=0, refine=0, **settings)


def test_the_paper_s_recovery_by_hand(case):
    M, known, seen = case
    full = np.flatnonzero(seen.all(axis=0))
    U = np.linalg.svd(M[:, full])[0][:, :3]
    completion = paper(known)
    for j in range(59):
        omega = np.flatnonzero(seen[:, j])
        z = np.linalg.lstsq(U[omega], M[omega, j], rcond=None)[0]
        expected = np.where(seen[:, j], M[:, j], U @ z)
        np.testing.assert_allclose(completion.columns(j)[:, 0], expected, atol=1e-10)
    assert completion.status[59] == Status.NO_OBSERVATION and np.isnan(completion.columns(59)).all()


def test_observed_entries_are_returned_as_they_were(case):
    _, known, seen = case
    dense = paper(known).to_dense()
    assert (dense[seen] == known[seen]).all()
    assert np.isfinite(dense[:, :59]).all()


def test_columns_and_entries_agree_with_the_dense_matrix(case, rng):
    _, known, _ = case
    completion = paper(known, bounds=(-2, 2))
    dense = completion.to_dense()
    np.testing.assert_array_equal(completion.columns([5, 59, 2]), dense[:, [5, 59, 2]])
    i, j = np.indices(dense.shape)
    np.testing.assert_allclose(completion.entries(i, j), dense, rtol=0, atol=1e-13)
    assert completion.entries(3, 4).shape == ()
    np.testing.assert_allclose(completion.entries(np.arange(40)[:, None], [1, 7]), dense[:, [1, 7]], atol=1e-13)


def test_blocks_do_not_change_the_answer(case, monkeypatch):
    _, known, _ = case
    completion = paper(known)
    dense, entries = completion.to_dense(), completion.entries(*np.indices(known.shape))
    monkeypatch.setattr("colonnade.model.prediction.BLOCK_CELLS", 70)
    np.testing.assert_allclose(completion.to_dense(), dense, atol=1e-13)
    np.testing.assert_array_equal(completion.entries(*np.indices(known.shape)), entries)


def test_bounds_hold_for_predictions_only(case):
    M, known, seen = case
    dense = paper(known, bounds=(-0.5, 0.5)).to_dense()
    hidden = ~seen & np.isfinite(dense)
    assert (np.abs(dense[hidden]) <= 0.5).all() and (np.abs(M[hidden]) > 0.5).any()
    assert (dense[seen] == M[seen]).all()


def test_observed_entries_out_of_bounds_are_counted(case):
    M, known, seen = case
    outside = int((np.abs(M[seen]) > 0.5).sum())
    assert paper(known, bounds=(-0.5, 0.5)).choices["bounds"].startswith(f"{outside:,} known values lie outside")
    high = np.nanmax(known)
    row, column = np.argwhere(known == high)[0]
    words = paper(known, bounds=(-99, high - 1e-9)).choices["bounds"]
    assert words.startswith("1 known value lies outside") and words.endswith(f"row {row}, column {column}: {high:.9g}")
    assert "bounds" not in paper(known, bounds=(-1e9, 1e9)).choices


@pytest.mark.slow
def test_names_stand_for_numbers(case):
    _, known, _ = case
    m, n = known.shape
    o = co.Observations.from_dense(
        known, row_names=[f"r{i}" for i in range(m)], column_names=["x"] * 2 + list(map(str, range(2, n)))
    )
    completion = co.complete(o)
    np.testing.assert_array_equal(completion.columns(["7", "3"]), completion.columns([7, 3]))
    np.testing.assert_array_equal(completion.columns("7"), completion.columns(7))
    np.testing.assert_array_equal(completion.entries("r4", ["5", "6"]), completion.entries(4, [5, 6]))
    np.testing.assert_array_equal(completion.interval(["r4"], ["5"]), completion.interval([4], [5]))
    with pytest.raises(ValueError, match=r"one of the names 'x', 'x', '2', .*; 2 are called 'x'"):
        completion.columns("x")
    with pytest.raises(ValueError, match=r"one of the names 'r0', 'r1', 'r2', .*; none is called 'nobody'"):
        completion.entries("nobody", 0)
    with pytest.raises(TypeError, match="all numbers or all names; got '1' beside names"):
        completion.columns(["7", 1])
    with pytest.raises(TypeError, match="the data have no names; got '7'"):
        paper(known).columns(["7"])


def test_invariances(case, rng):
    """Permuted rows and columns, another scale, and another full column of the span."""
    _, known, _ = case
    dense = paper(known).to_dense()
    i, j = rng.permutation(40), rng.permutation(60)
    np.testing.assert_allclose(paper(known[i][:, j]).to_dense(), dense[i][:, j], atol=1e-10)
    np.testing.assert_allclose(paper(known * -8).to_dense(), dense * -8, atol=1e-9)
    L, R = low_rank(rng, 40, 50, 3)
    exact, seen = hide(rng, L @ R, 5, 8)
    full = np.flatnonzero(seen.all(axis=0))
    more = np.column_stack([exact, exact[:, full] @ rng.standard_normal(full.size)])
    np.testing.assert_allclose(co.complete(more).to_dense()[:, :50], co.complete(exact).to_dense(), atol=1e-10)


def test_copies_of_full_columns_change_nothing_on_exact_data(rng):
    L, R = low_rank(rng, 40, 50, 3)
    exact, seen = hide(rng, L @ R, 5, 8)
    full = np.flatnonzero(seen.all(axis=0))
    more = np.column_stack([exact, exact[:, full], np.zeros((40, 2))])
    completion = co.complete(more)
    assert completion.rank == 3
    np.testing.assert_allclose(completion.to_dense()[:, :50], co.complete(exact).to_dense(), atol=1e-10)


def test_every_column_full_gives_a_copy(rng):
    M = rng.standard_normal((6, 5))
    completion = co.complete(M)
    dense = completion.to_dense()
    assert (dense == M).all() and not np.shares_memory(dense, M)
    assert (completion.status == Status.FULL).all()
    assert (co.complete(M, rank=2).to_dense() == M).all()


def test_zero_full_columns(rng):
    known = np.full((5, 4), np.nan)
    known[:, :2] = 0
    known[1, 2] = 0
    completion = co.complete(known)
    assert completion.rank == 0
    assert completion.status.tolist() == [Status.FULL, Status.FULL, Status.SOLVED, Status.NO_OBSERVATION]
    assert (completion.columns([2]) == 0).all() and np.isnan(completion.columns([3])).all()
    assert np.isnan(completion.entries(0, 3)) and completion.entries(0, 2) == 0


def test_center_and_shrinkage_are_the_posterior_mean(rng):
    """(U_O'U_O + sigma^2 / variance) z = U_O'(x - c), every direction by its own variance."""
    M = rng.standard_normal((30, 4)) @ rng.standard_normal((4, 50)) + 3 + 0.1 * rng.standard_normal((30, 50))
    known, seen = hide(rng, M, 20, 10)
    full = np.flatnonzero(seen.all(axis=0))
    completion = co.complete(known, rank=6, center=True, shrinkage=0.02, refine=0)
    c = M[:, full].mean(axis=1)
    U, values, _ = np.linalg.svd(M[:, full] - c[:, None])
    U, penalty = U[:, :6], 0.02 / (values[:6] ** 2 / full.size)
    for j in np.flatnonzero(~seen.all(axis=0)):
        X = U[seen[:, j]]
        z = np.linalg.solve(X.T @ X + np.diag(penalty), X.T @ (M[:, j] - c)[seen[:, j]])
        expected = np.where(seen[:, j], M[:, j], c + U @ z)
        np.testing.assert_allclose(completion.columns(j)[:, 0], expected, atol=1e-9)


@pytest.mark.slow
def test_same_seed_same_bytes_and_input_untouched(rng, seed):
    M = rng.standard_normal((50, 40))
    before = M.tobytes()
    one, two = (co.algorithm1(M, rank=3, n_full_columns=6, n_entries=9, random_state=seed).to_dense() for _ in range(2))
    assert one.tobytes() == two.tobytes() and M.tobytes() == before
    known, _ = hide(rng, M, 5, 9)
    before = known.tobytes()
    co.complete(known).to_dense()
    assert known.tobytes() == before


def test_global_random_state_is_not_touched():
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    co.algorithm1(np.ones((9, 9)), rank=1, n_full_columns=2, n_entries=2)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_algorithm1_counts_what_it_reads(rng):
    L, R = low_rank(rng, 80, 90, 2)
    source = co.Source(L @ R)
    completion = co.algorithm1(source, rank=2, n_full_columns=4, n_entries=6, random_state=rng)
    assert source.entries_read == completion.observations.values.size
    assert relative_error(completion, L, R) < 1e-12


def test_progress_is_told(case):
    _, known, _ = case
    heard = []
    paper(known, progress=lambda done, total: heard.append((done, total)))
    assert heard and heard == sorted(heard) and all(done <= total for done, total in heard)


def test_an_interrupt_in_progress_is_raised(case):
    _, known, _ = case

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        paper(known, progress=stop)


def test_repr_says_what_it_is(case):
    _, known, _ = case
    words = repr(paper(known))
    assert "40 x 60" in words and "rank 3" in words and "8 full" in words and "1 no_observation" in words


def test_choices_are_in_words(case):
    _, known, _ = case
    choices = paper(known).choices
    assert choices["rank"] == "3 directions, as given" and choices["center"] == "none"
    assert choices["shrinkage"] == "none, plain least squares"


def test_save_and_load(case, tmp_path):
    _, known, _ = case
    for k, completion in enumerate(
        (
            paper(known, bounds=(-3, 3)),
            co.complete(known.astype(np.float32), rank=2, center=True, shrinkage=0.1),
            co.algorithm1(np.outer(np.arange(9.0), np.ones(8)), rank=1, n_full_columns=3, n_entries=9, random_state=0),
        )
    ):
        completion.save(tmp_path / f"result{k}")
        again = co.Completion.load(tmp_path / f"result{k}")
        assert again.to_dense().tobytes() == completion.to_dense().tobytes()
        assert again.rank == completion.rank and again.bounds == completion.bounds
        assert again.choices == completion.choices
        assert again.noise_std == completion.noise_std or np.isnan(completion.noise_std)
        assert str(again.certificates().tolist()) == str(completion.certificates().tolist())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["result0", "result1", "result2"]


def test_damage_and_existing_folders_are_noticed(case, tmp_path):
    _, known, _ = case
    completion = paper(known)
    target = tmp_path / "result"
    completion.save(target)
    with pytest.raises(FileExistsError, match="choose another name"):
        completion.save(target)
    with pytest.raises(FileNotFoundError, match="create it first"):
        completion.save(tmp_path / "nowhere" / "result")
    with pytest.raises(FileNotFoundError):
        co.Completion.load(tmp_path / "absent")
    for file in target.rglob("*.npy"):
        whole = file.read_bytes()
        flipped = whole[:-1] + bytes([whole[-1] ^ 1])
        for damaged in (whole[: len(whole) // 2], b"", flipped, b"not an array"):
            file.write_bytes(damaged)
            with pytest.raises(ValueError, match="damaged"):
                co.Completion.load(target)
        file.unlink()
        with pytest.raises(ValueError, match="damaged"):
            co.Completion.load(target)
        file.write_bytes(whole)
    basis = target / "basis.npy"
    whole = basis.read_bytes()
    for k in range(128):  # The header: its length, the type and the shape.
        basis.write_bytes(whole[:k] + bytes([whole[k] ^ 0xFF]) + whole[k + 1 :])
        try:
            assert co.Completion.load(target).to_dense().tobytes() == completion.to_dense().tobytes()
        except ValueError as error:
            assert "is not a completion or is damaged" in str(error)


def test_facts_are_checked_too(case, tmp_path):
    import json

    _, known, _ = case
    target = tmp_path / "result"
    paper(known).save(target)
    whole = json.loads((target / "facts.json").read_text())
    for change in (
        {"shape": [40, 61]},
        {"bounds": ["5", "1"]},
        {"blocks": 3},
        {"space": {**whole["space"], "noise_variance": "abc"}},
        {"format": "?"},
    ):
        (target / "facts.json").write_text(json.dumps({**whole, **change}))
        with pytest.raises(ValueError, match="damaged"):
            co.Completion.load(target)
    rest = {name: value for name, value in whole.items() if name != "sha256_of_facts"}
    for change in (
        {"space": 3},
        {"run": "x"},
        {"shape": None},
        {"whole": 1},
        {"blocks": [{}]},
    ):  # With the right checksum.
        (target / "facts.json").write_text(json.dumps(sealed({**rest, **change})))
        with pytest.raises(ValueError, match="damaged"):
            co.Completion.load(target)
    for text in ("", "[]", "3", "{}"):
        (target / "facts.json").write_text(text)
        with pytest.raises(ValueError, match="damaged"):
            co.Completion.load(target)


def gappy(rng):
    M = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 400))
    return np.where((rng.random(M.shape) < 0.5) | (np.arange(400) < 10), M, np.nan)


def test_progress_in_a_notebook(rng, monkeypatch):
    pages = []
    shown = SimpleNamespace(update=lambda page: pages.append(page))
    display = SimpleNamespace(HTML=str, display=lambda page, display_id: pages.append(page) or shown)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    co.complete(gappy(rng), progress=True)
    assert pages[0].startswith('<progress value="0.0000"') and pages[-1].startswith('<progress value="1.0000"')
    co.methods.als(gappy(rng), rank=3, progress=True)
    shares = [float(page.split('"')[1]) for page in pages]
    assert shares.count(0.0) >= 2 and shares[-1] == 1


def test_progress_on_a_terminal_and_elsewhere(rng, monkeypatch, capsys):
    co.complete(gappy(rng), progress=True)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    co.complete(gappy(rng), progress=True)
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("\r[") and "100%" in err and err.endswith(" s\n")
    co.complete(gappy(rng), progress=False)
    assert capsys.readouterr() == ("", "")


def test_a_bar_on_a_terminal_is_filled_by_its_share(monkeypatch, capsys):
    from colonnade._support import progress

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    bar = progress.progress_bar()
    for done in (0, 1, 4):
        bar(done, 4)
    drawn = [line[:38] for line in capsys.readouterr().err.split("\r")[1:]]
    assert drawn == [f"[{' ' * 30}]   0% ", f"[{'#' * 8}{' ' * 22}]  25% ", f"[{'#' * 30}] 100% "]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_entry_out_of_all_proportion_is_named(rng, dtype):
    L, R = low_rank(rng, 40, 30, 3)
    M = (L @ R + 0.1 * rng.standard_normal((40, 30))).astype(dtype)
    known, _ = hide(rng, M, 10, 12)
    assert "suspicious values" not in co.complete(known).choices
    i, j = 7, co.Observations.from_dense(known).full_columns[3]
    known[i, j] = -99999
    said = co.complete(known).choices["suspicious values"]
    assert said.startswith(f"row 7 of column {j} is -99999, over 100 times any other")
    assert said in co.complete(known).summary()
    named = pd.DataFrame(known, columns=[f"c{k}" for k in range(30)])
    assert f"of column 'c{j}' is -99999" in co.complete(named).choices["suspicious values"]


def test_units_and_heavy_tails_are_not_out_of_proportion(rng):
    """Rows or columns in different units, and one in a hundred tables of heavy tails at most."""
    L, R = low_rank(rng, 40, 30, 3)
    for scaled in ((L @ R) * 10.0 ** rng.integers(-6, 7, (40, 1)), (L @ R) * 10.0 ** rng.integers(-6, 7, 30)):
        assert extreme_entries(Whole(co.Observations.from_dense(hide(rng, scaled, 10, 12)[0]))).rows.size == 0
    ones = np.zeros((40, 30))
    ones[3, 4] = ones[5:9, 6:20] = 1.0
    assert extreme_entries(Whole(co.Observations.from_dense(ones))).rows.size == 0
    heavy = [co.Observations.from_dense(rng.pareto(1.5, (30, 20)) + 1) for _ in range(100)]
    assert sum(extreme_entries(Whole(o)).rows.size > 0 for o in heavy) <= 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_filled_does_not_depend_on_the_threads(rng, dtype):
    known, _ = hide(rng, rng.standard_normal((1500, 1000)), 40, 30)
    completion = co.complete(known.astype(dtype), rank=33, center=False, shrinkage=0.5, refine=0)
    filled = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            filled.append(completion.to_dense())
    np.testing.assert_array_equal(*filled)


def test_a_column_of_which_nothing_is_known_is_the_mean_of_the_full_ones(rng):
    """Also where the prior is about zero, which would make it zero."""
    M = rng.gamma(2, 1, (120, 3)) @ rng.gamma(2, 1, (3, 100))
    M += 0.05 * M.std() * rng.standard_normal(M.shape)
    known, _ = hide(rng, M, 25, 18)
    empty = np.flatnonzero(np.isnan(known).any(axis=0))[0]
    known[:, empty] = np.nan
    full = ~np.isnan(known).any(axis=0)
    for center in (False, True, "auto"):
        completion = co.complete(known, center=center)
        assert completion.status[empty] == co.Status.PRIOR_ONLY
        filled = completion.columns(empty)[:, 0]
        # A refinement has learned the mean of all columns.
        expected = known[:, full].mean(axis=1) if completion.center is None else completion.center
        assert np.linalg.norm(filled - expected) < 0.02 * np.linalg.norm(expected)
        mean, low, high = (figures[empty] for figures in completion.column_means())
        assert low < mean < high and abs(mean - expected.mean()) < 0.02 * abs(expected.mean())
    imputer = co.CompleteRowsImputer(center=False).fit(known.T)
    filled = imputer.transform(np.full((1, 120), np.nan))[0]
    expected = known[:, full].mean(axis=1)
    assert np.linalg.norm(filled - expected) < 0.02 * np.linalg.norm(expected)


@pytest.mark.parametrize("factor", [1e-6, 0.01, 100.0, 1e6])
def test_only_ratios_of_weights_count(rng, factor):
    M = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 80))
    weights = np.where(rng.random(M.shape) < 0.5, 4.0, 1.0)
    M += 0.2 * rng.standard_normal(M.shape) / np.sqrt(weights)
    known, seen = hide(rng, M, 20, 12)
    own, other = (co.complete(co.Observations.from_dense(known, weights=unit * weights)) for unit in (1.0, factor))
    i, j = np.nonzero(~seen)
    np.testing.assert_allclose(other.to_dense(), own.to_dense(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(other.interval(i, j), own.interval(i, j), rtol=1e-5, atol=1e-5)
    assert other.noise_std == pytest.approx(own.noise_std, rel=1e-6)
    assert (other.certificates().verdict == own.certificates().verdict).all()


@pytest.mark.slow
def test_rows_of_which_nothing_is_known_are_not_guessed(seed):
    """Exact data in two parts that have nothing in common; of some columns one part is not seen."""
    for k in range(20):
        rng = np.random.default_rng((seed, k))
        A = np.zeros((40, 6))
        A[:20, :3], A[20:, 3:] = (rng.standard_normal((20, 1)) * rng.standard_normal(3) for _ in range(2))
        A = A @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
        P = A @ rng.standard_normal((6, 10))
        P[20:, :5] = np.nan
        P[rng.random(P.shape) < 0.3] = np.nan
        filled = co.complete(np.hstack([A, P])).to_dense()[20:, 6:11]
        assert np.nanmax(np.abs(filled), initial=0) < 10 * np.abs(A).max()


@pytest.mark.parametrize("n_full", [0, pytest.param(6, marks=pytest.mark.slow), 25])
def test_a_generator_is_asked_for_one_number(n_full):
    """Whatever is learned and compared on the way, the seed it gives is that number, and it goes on behind it."""
    rng = np.random.default_rng(5)
    M = rng.standard_normal((30, 4)) @ rng.standard_normal((4, 40)) + 0.3 * rng.standard_normal((30, 40))
    M[:, n_full:][rng.random((30, 40 - n_full)) < 0.5] = np.nan
    given, same = np.random.default_rng(3), np.random.default_rng(3)
    filled = co.complete(M, random_state=given).to_dense()
    np.testing.assert_array_equal(filled, co.complete(M, random_state=int(same.integers(2**31))).to_dense())
    assert given.integers(2**31) == same.integers(2**31)


@pytest.mark.parametrize("n_full", [0, 10])
@pytest.mark.slow
def test_progress_takes_a_stage_or_none(rng, n_full):
    """Functions of (stage, done, total) and of (done, total) hear the same, at every door."""
    known = gappy(rng)
    known[0, : 10 - n_full] = np.nan
    staged, plain = [], []
    for door in (co.complete, co.methods.als):
        door(known, random_state=0, progress=lambda stage, done, total: staged.append((stage, done, total)))
        door(known, random_state=0, progress=lambda done, total: plain.append((done, total)))
    assert plain and [one[1:] for one in staged] == plain and all(isinstance(one[0], str) for one in staged)
