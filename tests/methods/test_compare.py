"""Comparing methods: what is hidden, what is told, and that no method sees what it must predict."""

import io
import json
import re
import shlex
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

import colonnade as co
from colonnade import methods
from colonnade.experiments import figure2
from colonnade.methods.comparison import METHODS

from problems import HOSTILE, hide, low_rank

QUICK = ["complete", "algorithm1", "row_means", "tall_project"]
NOT_METHODS = {"column_probabilities", "tall_project_errors"}


def problem(rng, m=60, n=80, r=3, n_full=10, s=15, noise=0.0):
    L, R = low_rank(rng, m, n, r)
    M = L @ R + noise * rng.standard_normal((m, n))
    return M, hide(rng, M, n_full, s)[0]


def without_times(comparison):
    return [(r.method, r.error, r.coverage, r.entries) for r in comparison.results]


# ---------------------------------------------------------------------------------------------- data with gaps


def test_hidden_entries_are_observed_ones_of_partial_columns_and_no_method_sees_them(rng):
    M, known = problem(rng, noise=0.5)
    given = []

    def spy(observations):
        given.append(observations)
        return np.zeros(observations.shape)

    before = known.tobytes()
    comparison = co.compare(known, [spy], holdout=0.2)
    (o,) = given
    shown = o.to_dense()
    hidden = np.isfinite(known) & np.isnan(shown)
    assert known.tobytes() == before
    assert np.array_equal(shown[np.isfinite(shown)], known[np.isfinite(shown)])  # what is shown is as it was
    assert not hidden[:, np.isfinite(known).all(axis=0)].any()  # full columns stay full
    assert (hidden.sum(axis=0)[~np.isfinite(known).all(axis=0)] == 3).all()  # a fifth of fifteen
    assert comparison.n_hidden == hidden.sum() == 70 * 3
    # the error of predicting zero is the root mean square of what was hidden
    assert comparison.results[0].error == pytest.approx(np.sqrt(np.mean(M[hidden] ** 2)), rel=1e-12)
    assert comparison.spread == pytest.approx(np.std(M[hidden]), rel=1e-12)
    assert comparison.results[0].entries == np.isfinite(shown).sum()


def test_one_who_knows_the_truth_is_first_and_without_error(rng):
    M, known = problem(rng, noise=0.5)
    comparison = co.compare(known, {"truth": lambda o: M, "zero": lambda o: 0 * M, "row_means": "row_means"})
    assert comparison.results[0].method == "truth" and comparison.results[0].error == 0
    errors = [result.error for result in comparison.results]
    assert errors == sorted(errors) and errors[1] > 1
    assert "truth" in comparison.advice and comparison.advice.endswith(".")


def test_exact_data_are_predicted_exactly(rng):
    _, known = problem(rng)
    comparison = co.compare(known, QUICK)
    errors = {result.method: result.error for result in comparison.results}
    assert max(errors[name] for name in ("complete", "algorithm1", "tall_project")) < 1e-10 < errors["row_means"]
    assert "recovers them exactly" in comparison.advice and "row_means" not in comparison.advice


@pytest.mark.slow
def test_noise_is_predicted_by_nobody_and_the_advice_says_so(rng):
    known = hide(rng, rng.standard_normal((60, 80)), 10, 15)[0]
    comparison = co.compare(known, ["complete", "row_means"])
    assert "no method predicts well enough" in comparison.advice and comparison.method is None
    offsets = rng.standard_normal(60)[:, None] + 3 * rng.standard_normal(80) + 0.1 * rng.standard_normal((60, 80))
    comparison = co.compare(hide(rng, offsets, 10, 15)[0], {"row_means": "row_means", "worse": lambda o: 0 * offsets})
    assert "no method predicts clearly better than row_means" in comparison.advice and comparison.method is None


def test_hidden_entries_that_are_all_equal_have_the_spread_of_their_rows(rng):
    """Full columns of noise, and partial ones that are 3 everywhere: the hidden entries have no spread of their own."""
    M = np.column_stack([rng.standard_normal((20, 6)), np.full((20, 6), 3.0)])
    M[rng.random(M.shape) < 0.5] = np.nan
    M[:, :6] = rng.standard_normal((20, 6))
    comparison = co.compare(M, methods=["complete", "row_means"], random_state=0)
    assert comparison.spread == 0 and len(comparison.finished) == 2
    assert all(0 < result.relative_error < 2 for result in comparison.results)
    assert comparison.advice in str(comparison) and comparison.plot() is not None


def test_a_table_of_one_number_is_predicted_exactly():
    known = np.full((20, 12), 3.0)
    known[np.arange(20) % 20, np.arange(20) % 12] = np.nan
    comparison = co.compare(known, {"three": lambda o: np.full(o.shape, 3.0), "four": lambda o: np.full(o.shape, 4.0)})
    assert [result.relative_error for result in comparison.results] == [0.0, pytest.approx(1 / 3)]


def test_the_units_of_the_rows_do_not_count(rng):
    """Rows multiplied by powers of ten, and moved: the same relative errors, order and advice."""
    M, known = problem(rng, noise=0.5)
    units, levels = 10.0 ** rng.integers(-4, 5, 60)[:, None], 100 * rng.standard_normal((60, 1))
    near, far = M + 0.1 * rng.standard_normal(M.shape), M + rng.standard_normal(M.shape)
    plain = co.compare(known, {"near": lambda o: near, "far": lambda o: far})
    turned = {"near": lambda o: units * (near + levels), "far": lambda o: units * (far + levels)}
    scaled = co.compare(units * (known + levels), turned)
    assert [result.method for result in scaled.results] == ["near", "far"] and scaled.method == plain.method == "near"
    for one, other in zip(plain.results, scaled.results, strict=True):
        assert other.relative_error == pytest.approx(one.relative_error, rel=1e-8)


def test_the_relative_error_is_in_standard_deviations_of_the_rows(rng):
    M, known = problem(rng, noise=0.5)
    shown = []
    comparison = co.compare(known, [lambda o: shown.append(o.to_dense()) or np.zeros(o.shape)])
    hidden = np.isfinite(known) & np.isnan(shown[0])
    relative = (M / np.nanstd(known, axis=1, keepdims=True))[hidden]
    assert comparison.results[0].relative_error == pytest.approx(np.sqrt(np.mean(relative**2)), rel=1e-12)


def test_equal_methods_are_told_apart_by_what_else_they_offer(rng):
    M, known = problem(rng, noise=0.5)
    near = M + 0.1 * rng.standard_normal(M.shape)
    advice = co.compare(known, {"one": lambda o: near, "two": lambda o: near, "far": lambda o: near + 1}).advice
    assert advice.startswith("one and two predict about equally well; use ") and "which is the quickest" in advice
    advice = co.compare(known, {"near": lambda o: near, "far": lambda o: near + 1}).advice
    assert advice.startswith("use near; its error is ")
    plain = {"rank": 3, "center": False, "shrinkage": 0, "refine": 0}
    same = {"copy": lambda o: co.complete(o, **plain).to_dense(), "algorithm1": "algorithm1"}
    comparison = co.compare(known, same, rank=3)
    assert comparison.results[0].error == pytest.approx(comparison.results[1].error, rel=1e-12)
    assert comparison.advice.endswith("use algorithm1, which has intervals.")


@pytest.mark.slow
def test_equal_methods_end_in_complete_whose_intervals_a_file_gets(rng):
    known = problem(rng, noise=0.5)[1]
    comparison = co.compare(known, {"tall_project": "complete", "complete": "complete"})
    assert comparison.advice.endswith("use complete, which has calibrated intervals.")


def test_a_constant_column_does_not_spoil_the_errors(rng):
    """The spread of equal numbers is their rounding; errors must not be counted in it."""
    M = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 8)) + 10
    M[:, 3] = 7.1
    known = np.where(rng.random(M.shape) < 0.1, np.nan, M)
    comparison = co.compare(known, ["complete", "row_means", "column_means"])
    assert all(result.relative_error < 10 for result in comparison.results)
    assert comparison.method == "complete"


def test_columns_in_units_of_their_own_are_compared_with_column_means(rng):
    M = rng.standard_normal((80, 6)) * 10.0 ** np.arange(6) + 10.0 ** np.arange(6)
    known = np.where(rng.random(M.shape) < 0.2, np.nan, M)
    errors = {r.method: r.relative_error for r in co.compare(known, ["row_means", "column_means"]).results}
    assert 0.7 < errors["column_means"] < 1.3 and errors["row_means"] > 10
    means = np.nanmean(known, axis=0)
    from colonnade.methods.comparison._methods import column_means

    filled = column_means(co.Observations.from_dense(known)).to_dense()
    assert np.allclose(filled[np.isnan(known)], np.broadcast_to(means, M.shape)[np.isnan(known)])


def test_an_error_several_times_as_large_is_never_about_equal(rng):
    """One method is worse in one of eight columns, and another at one place: the second may be chance."""
    L, R = low_rank(rng, 60, 8, 2)
    M = L @ R
    known = np.where(rng.random(M.shape) < 0.2, np.nan, M)
    near = M + 0.1 * rng.standard_normal(M.shape)
    far = np.where(np.arange(8) == 3, M + 2, near)
    comparison = co.compare(known, {"near": lambda o: near, "far": lambda o: far})
    assert comparison.method == "near" and comparison.advice.startswith("use near; its error is ")
    places = []

    def missed(observations):
        places.append(np.argwhere(np.isfinite(known) & np.isnan(observations.to_dense()))[0])
        answer = near.copy()
        answer[tuple(places[0])] += 30
        return answer

    comparison = co.compare(known, {"near": lambda o: near, "missed": missed})
    assert comparison.method == "near" and "may be chance" in comparison.advice


def test_intervals_are_judged_by_the_hidden_entries(rng):
    M, known = problem(rng, m=100, n=150, n_full=30, s=25, noise=0.5)
    comparison = co.compare(known, {"complete": "complete", "tall_project": "tall_project", "truth": lambda o: M})
    coverage = {result.method: result.coverage for result in comparison.results}
    assert coverage["truth"] is None
    assert 0.82 < coverage["complete"] < 0.97 and 0.8 < coverage["tall_project"] < 1


def test_the_same_seed_gives_the_same_and_another_hides_others(rng):
    _, known = problem(rng, noise=0.5)
    first, again, other = (without_times(co.compare(known, QUICK[1:], random_state=k)) for k in (5, 5, 6))
    assert first == again != other
    observations = co.Observations.from_dense(known)
    assert without_times(co.compare(observations, QUICK[1:], random_state=5)) == first


def test_a_method_that_fails_has_a_line_with_the_reason(rng):
    _, known = problem(rng)

    def broken(observations):
        raise RuntimeError("no\nluck \x1b[31m" + "x" * 10_000)

    comparison = co.compare(known, {"broken": broken, "wrong shape": lambda o: np.ones(3), "complete": "complete"})
    assert [result.method for result in comparison.finished] == ["complete"]
    failed = {result.method: result.remark for result in comparison.results[1:]}
    assert failed["broken"].startswith("no luck \\x1b[31mxxx") and len(failed["broken"]) == 300
    assert "(60, 80)" in failed["wrong shape"] and "ndarray of shape (3,)" in failed["wrong shape"]
    assert f"broken: {failed['broken']}" in str(comparison)
    nobody = co.compare(known, [broken])
    assert nobody.finished == [] and "no method finished" in str(nobody)


def test_what_a_method_leaves_open_counts_as_row_mean_and_offset(rng):
    _, known = problem(rng, noise=0.5)
    comparison = co.compare(known, {"nothing": lambda o: np.full(o.shape, np.nan), "row_means": "row_means"})
    first, second = comparison.results
    assert first.error == second.error
    assert any("100.0 % of the hidden entries were left open" in result.remark for result in (first, second))


def test_without_full_columns_the_methods_that_need_none_are_compared(rng):
    L, R = low_rank(rng, 30, 40, 2)
    known = np.where(rng.random((30, 40)) < 0.6, L @ R, np.nan)
    known[0] = np.nan
    comparison = co.compare(known, ["complete", "svt", "row_means", "algorithm1"])
    assert [result.method for result in comparison.finished] == ["complete", "svt", "row_means"]
    assert comparison.results[0].error < 1e-9 and comparison.method == "complete"
    assert "full" in comparison.results[-1].remark


@pytest.mark.slow
def test_without_full_columns_complete_has_intervals_and_takes_the_rank(rng):
    L, R = low_rank(rng, 40, 60, 2)
    known = np.where(rng.random((40, 60)) < 0.6, L @ R + 0.3 * rng.standard_normal((40, 60)), np.nan)
    known[0, :30] = known[1, 30:] = np.nan
    seen = []
    comparison = co.compare(
        known, {"complete": "complete", "same": lambda o: seen.append(o) or np.zeros(o.shape)}, rank=2
    )
    first = comparison.results[0]
    assert first.method == "complete" and 0.7 < first.coverage < 1
    values = np.isfinite(known) & np.isnan(seen[0].to_dense())
    predicted = co.complete(seen[0], rank=2, random_state=comparison_seed()).to_dense()
    assert first.error == pytest.approx(np.sqrt(np.mean((predicted - known)[values] ** 2)), rel=1e-9)
    default = co.compare(known[:, :30], random_state=1)
    assert {result.method for result in default.results}.isdisjoint({"algorithm1", "tall_project"})


def comparison_seed():
    """The seed that `compare` gives to every method by default."""
    return int(np.random.default_rng(0).integers(2**31))


def test_rows_seen_in_common_stay_so_and_nystrom_runs(rng):
    L, R = low_rank(rng, 60, 80, 3)
    known = L @ R
    known[np.ix_(rng.choice(60, 45, replace=False), np.arange(10, 80))] = np.nan
    comparison = co.compare(known, ["nystrom", "nystrom_r", "complete", "cur_plus"], holdout=0.3)
    assert max(result.error for result in comparison.finished) < 1e-10 and len(comparison.finished) == 3
    assert "n_full_columns" in comparison.results[-1].remark
    scattered = co.compare(problem(rng)[1], ["nystrom"])
    assert "same rows" in scattered.results[0].remark


@pytest.mark.slow
def test_extreme_numbers(rng):
    _, known = problem(rng, noise=0.1)
    zero = {"row_means": "row_means", "zero": lambda o: np.zeros(o.shape), "complete": "complete"}
    plain = {r.method: r.error for r in co.compare(known, zero).results}
    for scale in (1e-300, 1e300):
        scaled = co.compare(known * scale, zero)
        json.dumps(scaled.to_dict(), allow_nan=False)
        errors = {r.method: r.error / scale for r in scaled.finished}
        for name in ("row_means", "zero"):
            assert errors[name] == pytest.approx(plain[name], rel=1e-6)
        assert errors["complete"] < 0.3 * errors["zero"]  # it says that variances of such numbers leave the range
    single = co.compare(known.astype(np.float32), zero)
    assert single.results[0].error == pytest.approx(plain["complete"], rel=1e-3)


# ----------------------------------------------------------------------------------------------------- sources


def test_every_method_can_be_chosen_and_exact_ones_are_exact(rng):
    L, R = low_rank(rng, 60, 70, 2)
    assert set(methods.__all__) - NOT_METHODS <= set(METHODS)
    comparison = co.compare(L @ R, list(METHODS), rank=2, n_full_columns=12, n_entries=20)
    assert [r.remark for r in comparison.results if r.error is None] == []
    errors = {result.method: result.error for result in comparison.results}
    poor = {"row_means", "column_means", "entrywise_subsampling", "soft_impute", "svt"}
    iterating = {"als", "optspace"}
    assert max(errors[name] for name in set(errors) - poor - iterating) < 1e-10
    assert max(errors[name] for name in iterating) < 0.3 * errors["row_means"]  # to their own tolerance, or nearly
    budget = 12 * 60 + 58 * 20
    for result in comparison.results:
        reads_all = result.method in ("norm_sampling", "adaptive_column_sampling")
        assert 0 < result.entries <= (np.inf if reads_all else 1.25 * budget)


@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_the_comparison_of_section_4_2(seed, sigma):
    """Figure 2 at one point: the same numbers, up to the entries that are sampled, and the same order."""
    n, r, alpha = 400, 5, 3
    settings = {**figure2.QUICK, "size": n, "alphas": {str(r): [alpha]}}
    table = {row[4]: row for row in figure2.run(figure2.Unit(seed, r, sigma), settings)}
    rng = np.random.default_rng(seed)
    L, R = low_rank(rng, n, n, r)
    M = L @ R + sigma * rng.standard_normal((n, n))
    d = s = (alpha * r + alpha * r * r) // 2
    comparison = co.compare(
        *(co.Source(M), ["nystrom", "algorithm1", "nystrom_r"]),
        **{"rank": r, "n_full_columns": d, "n_entries": s, "holdout": 0.9, "random_state": seed},
    )
    assert comparison.results[0].method == "algorithm1"
    for result in comparison.results:
        _, _, _, _, method, _, rows, read, error, *_ = table[result.method]
        assert result.entries == pytest.approx(read, rel=0.06)  # columns may be drawn twice
        # The figure counts the error of U z at the s (k) entries of a partial column that were read, too.
        expected = error * np.sqrt(1 - rows / n)
        assert n * result.error == pytest.approx(expected, rel=0.08 if method == "algorithm1" else 0.3)
    assert "algorithm1" in comparison.advice


def test_a_matrix_without_gaps_is_a_source_whatever_its_form(rng):
    pandas = pytest.importorskip("pandas")
    M = problem(rng, noise=0.3)[0]
    numbers = {"n_full_columns": 8, "n_entries": 12, "random_state": 3}
    forms = M, co.Source(M), pandas.DataFrame(M), co.Observations.from_dense(M)
    first, *others = (without_times(co.compare(form, ["algorithm1", "nystrom"], **numbers)) for form in forms)
    assert all(other == first for other in others)


# -------------------------------------------------------------------------------------------------- bad inputs


@pytest.mark.parametrize(
    "change, words",
    [
        ({"methods": ["complete", "magic"]}, "there is no method 'magic'; there are complete, "),
        ({"methods": ["als", "als"]}, "two methods are called 'als'"),
        ({"methods": []}, "methods must be a list or dict"),
        ({"methods": 7}, "methods must be a list or dict"),
        ({"methods": [7]}, "there is no method '7'"),
        ({"holdout": 0}, "holdout must be a finite number in (0, 1)"),
        ({"holdout": "half"}, "holdout must be a finite number in (0, 1)"),
        ({"rank": 0}, "rank must be a whole number from 1 to 60"),
        ({"rank": 61}, "rank must be a whole number from 1 to 60"),
        ({"n_full_columns": 5}, "needed together"),
        ({"progress": 3}, "progress must be a function"),
        ({"random_state": -1}, "random_state must be"),
    ],
)
def test_bad_arguments_are_named(change, words):
    _, known = problem(np.random.default_rng(0))
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        co.compare(known, **{"methods": ["complete"], **change})


def test_data_that_cannot_be_compared_are_refused(rng):
    M, known = problem(rng)
    with pytest.raises(ValueError, match=r"every column is known in full.*n_full_columns"):
        co.compare(M)
    few = np.full((60, 80), np.nan)
    few[:, :10], few[:2] = M[:, :10], M[:2]
    with pytest.raises(ValueError, match=r"no known value can be hidden.*fullest of these has 2.*Measure more"):
        co.compare(few)
    with pytest.raises(ValueError, match="no entry of the 60 x 80 table is known"):
        co.compare(np.full((60, 80), np.nan))
    with pytest.raises(ValueError, match="needed together"):
        co.compare(co.Source(M))
    with pytest.raises(ValueError, match="are for data without gaps, and 70 of 80 columns have some"):
        co.compare(co.Observations.from_dense(known), n_full_columns=3, n_entries=3)
    with pytest.raises(ValueError, match="n_full_columns must be a whole number from 1 to 80"):
        co.compare(M, n_full_columns=81, n_entries=3)
    with pytest.raises(ValueError, match="nan at row"):
        co.compare(known, ["complete"], n_full_columns=3, n_entries=30)


# ------------------------------------------------------------------------------------------- table and picture


@pytest.mark.slow
def test_the_table_is_sorted_and_has_a_line_for_every_method(rng):
    _, known = problem(rng, noise=0.5)
    seen = []
    comparison = co.compare(known, QUICK, progress=lambda done, total: seen.append((done, total)))
    lines = str(comparison).splitlines()
    assert lines[1].split()[:2] == ["method", "error"] and lines[-1].startswith("Advice: ")
    assert [line.split()[0] for line in lines[2:6]] == [result.method for result in comparison.results]
    shares = [float(line.split()[2].rstrip("%")) for line in lines[2:6]]
    assert shares == sorted(shares)
    assert seen == sorted(seen) and seen[-1] == (4, 4)
    assert repr(comparison) == str(comparison)


def test_names_that_try_to_be_more_than_names(rng):
    _, known = problem(rng, noise=0.5)
    comparison = co.compare(known, dict.fromkeys(HOSTILE, "row_means"))
    text = str(comparison)
    assert len(text) < 3_000 and text.replace("\n", "").isprintable() and len(text.splitlines()) == 3 + len(HOSTILE)
    json.dumps(comparison.to_dict(), allow_nan=False)
    axes = comparison.plot()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes.figure.savefig(io.BytesIO(), format="png")
    assert "$x_{$" in [text.get_text().replace("\\", "") for text in axes.get_yticklabels()]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.slow
def test_the_picture_has_every_method(rng, exact):
    _, known = problem(rng, noise=0 if exact else 0.5)
    comparison = co.compare(known, QUICK)
    axes = comparison.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == [r.method for r in comparison.results]
    assert axes.get_xscale() == ("log" if exact else "linear")
    assert comparison.plot(axes) is axes
    with pytest.raises(ValueError, match="nothing to draw"):
        co.compare(known, [lambda o: None]).plot()


# ------------------------------------------------------------------------------------------------ command line


def command(*arguments, cwd):
    start = [sys.executable, "-m", "colonnade", "compare", *arguments]
    return subprocess.run(start, capture_output=True, text=True, cwd=cwd, timeout=120)


@pytest.fixture
def table(tmp_path):
    _, known = problem(np.random.default_rng(0), noise=0.3)
    np.savetxt(tmp_path / "t.csv", known, delimiter=",")
    return known


@pytest.mark.slow
def test_the_command_gives_what_the_function_gives(table, tmp_path):
    picture = tmp_path / "errors.png"
    done = command("t.csv", "--methods", "complete, row_means", "--json", "--plot", picture, cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    expected = co.compare(table, ["complete", "row_means"]).to_dict()
    told = json.loads(done.stdout)
    assert told.pop("next") == "colonnade complete t.csv"
    for result in (*told["results"], *expected["results"]):
        result.pop("seconds")
    assert told == expected
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_command_ends_in_a_command_that_fills_the_file(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from colonnade.interfaces.cli import cli

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    L, R = low_rank(rng, 30, 40, 2)
    known = np.where(rng.random((30, 40)) < 0.7, L @ R + 0.1 * rng.standard_normal((30, 40)), np.nan)
    np.savetxt("my table.csv", known, delimiter=",")
    done = CliRunner().invoke(
        cli, ["compare", "my table.csv", "--methods", "als,row_means", "--rank", "2", "--no-header"]
    )
    last = done.stdout.splitlines()[-1]
    assert last == "Next: colonnade complete 'my table.csv' --no-header --method als --rank 2"
    done = CliRunner().invoke(cli, [*shlex.split(last)[2:], "-o", "filled.npy"])
    assert done.exit_code == 0 and "Method: ALS." in done.stdout
    assert np.abs(np.load("filled.npy") - L @ R)[np.isnan(known)].mean() < 0.2
    np.savetxt("noise.csv", np.where(np.isnan(known), np.nan, rng.standard_normal((30, 40))), delimiter=",")
    done = CliRunner().invoke(cli, ["compare", "noise.csv", "--methods", "als,row_means", "--rank", "2", "--no-header"])
    assert done.stdout.splitlines()[-1] == "Next: colonnade inspect noise.csv --no-header"  # No method is good enough.
    np.save("whole.npy", L @ R)
    budget = ["--full-columns", "6", "--entries", "8"]
    done = CliRunner().invoke(cli, ["compare", "whole.npy", "--methods", "nystrom,row_means", *budget])
    assert done.stdout.splitlines()[-1] == "Next: colonnade plan whole.npy"  # The best one chooses what to measure.


def test_the_same_remark_is_printed_once():
    from colonnade.methods.comparison._results import Comparison, Result

    failed = [Result(name, remark="the same long error") for name in ("als", "svt", "optspace")]
    lines = str(Comparison(failed, (3, 4), 2, 1.0, "no method finished.")).splitlines()
    assert lines[1:] == ["als, svt, optspace: the same long error", "Advice: no method finished."]


def test_errors_of_the_command_are_one_line(table, tmp_path):
    from click.testing import CliRunner

    from colonnade.interfaces.cli import _explained
    from colonnade.interfaces.cli.compare import command as compare

    np.save(tmp_path / "full.npy", np.ones((4, 5)))
    (tmp_path / "old.png").write_text("old")
    file, full = str(tmp_path / "t.csv"), str(tmp_path / "full.npy")
    for arguments, code, words in (
        ([file, "--methods", "magic"], 3, "no method 'magic'"),
        ([file, "--methods", ""], 3, "no method ''"),
        ([file, "--plot", str(tmp_path / "picture.jpeg")], 2, "must end in .png"),
        ([file, "--plot", str(tmp_path / "old.png")], 2, "--force"),
        ([file, "--plot", str(tmp_path / "none" / "a.png")], 5, "folder does not exist"),
        ([file, "--full-columns", "3", "--entries", "3"], 3, "without gaps"),
        ([full], 3, "--full-columns"),
        ([str(tmp_path / "none.csv")], 5, "none.csv"),
    ):
        done = CliRunner().invoke(compare, arguments, standalone_mode=False)
        assert _explained(done.exception)[0] == code and words in _explained(done.exception)[1], arguments
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full.npy", "old.png", "t.csv"]
    assert (tmp_path / "old.png").read_text() == "old"


@pytest.mark.slow
def test_ctrl_c_keeps_what_has_finished(table, tmp_path):
    code = (
        "import sys, time, colonnade.methods.comparison as c, colonnade.interfaces.cli as cli\n"
        "def slow(task):\n    print('here', file=sys.stderr, flush=True)\n    time.sleep(600)\n"
        "c.METHODS['als'] = slow\n"
        "sys.argv = ['colonnade', 'compare', 't.csv', '--methods', 'complete,row_means,als,svt']\n"
        "cli.run()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stderr.readline() == "here\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and err == ""
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["complete", "row_means"]
    assert lines[4] == "als, svt: interrupted"
    assert lines[5].startswith("Interrupted") and lines[6].startswith("Advice: ")


def test_progress_is_told_after_every_method():
    known, seen = problem(np.random.default_rng(0))[1], []
    co.compare(known, {"a": co.complete, "b": co.complete}, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]
