"""The reason for a value: sums that are the prediction, weights that are derivatives, and the ways to read them."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest

import colonnade as co
from colonnade.model.learned import solve_new_columns
from colonnade.model.linear_form import form_in_model
from colonnade.model.solve import Status, solve_columns

from problems import HOSTILE, hide, low_rank

PAPER = {"rank": 3, "center": False, "shrinkage": 0, "refine": 0}


def tables(rng, m=24, n=30, noise=0.3):
    """A noisy table with levels and units of its rows: with some full columns, and with gaps anywhere."""
    L, R = low_rank(rng, m, n, 3)
    M = (L @ R + noise * rng.standard_normal((m, n)) + 3 * rng.standard_normal((m, 1))) * rng.uniform(0.5, 2, (m, 1))
    return hide(rng, M, 12, 11)[0], np.where(rng.random((m, n)) < 0.5, M, np.nan)


@cache
def completions(seed, noise=0.3):
    """By every path: plain least squares, a prior from full columns, and the factor model on either side."""
    rng = np.random.default_rng(seed)
    full, gappy = tables(rng, noise=noise)
    weights = rng.uniform(0.5, 2, gappy.shape)
    by_full = [full, co.Observations.from_dense(full, weights=weights)]
    found = [co.complete(full, **PAPER), *(co.complete(known, method="full columns") for known in by_full)]
    for side in ("columns", "rows"):
        for known in (gappy, co.Observations.from_dense(gappy, weights=weights)):
            found.append(co.complete(known, method="factor model", orientation=side))
    return found


def has_unused(completion):
    return completion.unused is not None and completion.unused.size > 0


def some(rng, mask, count=6):
    places = np.argwhere(mask)
    return [tuple(map(int, places[k])) for k in rng.choice(len(places), count, replace=False)]


@pytest.mark.slow
def test_contributions_add_up_to_the_prediction(seed, rng):
    for completion in completions(seed):
        size = np.nanmax(np.abs(completion.to_dense()))
        for i, j in some(rng, completion.filled_mask()):
            found = completion.explain(i, j)
            assert not found.is_observed and found.value == completion.entries(i, j)
            assert found.level + found.offset + found.contributions.sum() == pytest.approx(found.prediction, abs=1e-12)
            assert found.prediction == pytest.approx(found.value, abs=1e-11 * size)
            assert (np.diff(np.abs(found.contributions)) <= 0).all() and 0 <= found.leverage < 1
            assert found.interval == tuple(map(float, completion.interval(i, j)))


@pytest.mark.parametrize("side", ["columns", "rows"])
@pytest.mark.slow
def test_sums_hold_under_student_noise_and_for_codes_far_away(rng, side):
    gappy = tables(rng, 30, 40)[1]
    known = np.argwhere(~np.isnan(gappy))
    for i, j in known[rng.choice(len(known), 8, replace=False)]:
        gappy[i, j] = rng.choice([-999.0, 1e6])
    completion = co.complete(gappy, method="factor model", orientation=side)
    assert "Student-t" in completion.choices["noise"]
    for i, j in some(rng, completion.filled_mask(), 10):
        found = completion.explain(i, j)
        assert found.prediction == pytest.approx(found.value, rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_exact_data_are_explained_to_rounding(seed, rng):
    for completion in completions(seed, noise=0.0):
        for i, j in some(rng, completion.filled_mask(), 3):
            found = completion.explain(i, j)
            assert found.prediction == pytest.approx(found.value, abs=1e-7)


def perturbed(completion, i, j, k, delta):
    """The prediction at (i, j) with the known entry k of its column (or row) moved, and the same loadings."""
    o, learned = completion.observations, completion.learned
    place = (i, k) if learned and learned.is_turned else (k, j)
    at = o.locate(*(np.array([x]) for x in place))[0]
    values = o.values.copy()
    values[at] += delta
    if learned is None:
        moved = replace(completion.used.take([j]), values=values[o.indptr[j] : o.indptr[j + 1]])
        z = solve_columns(completion.space, moved, penalty=completion.penalty)[0][:, 0]
        return completion.basis[i] @ z + (0 if completion.center is None else completion.center[i])
    moved = o.with_relative_weights().with_arrays(values=values)
    moved = moved.transposed().take([i]) if learned.is_turned else moved.take([j])
    model = replace(learned.model, Z=solve_new_columns(learned, moved)[0])
    row = j if learned.is_turned else i
    return float(model.predict(np.array([row]), np.array([0]))[0])


@pytest.mark.slow
def test_a_weight_is_what_the_prediction_gains_by_one_more_unit_of_an_entry(seed, rng):
    for completion in completions(seed):
        if "Student-t" in completion.choices.get("noise", "") or has_unused(completion):
            continue
        for i, j in some(rng, completion.filled_mask(), 3):
            found = completion.explain(i, j)
            for k, weight in zip(found.names[:3].tolist(), found.weights):
                gained = perturbed(completion, i, j, k, 0.5) - perturbed(completion, i, j, k, 0.0)
                assert gained == pytest.approx(0.5 * weight, abs=1e-10)


@pytest.mark.slow
def test_extend_moves_by_the_weights_too(rng):
    full, gappy = tables(rng)
    for completion in (co.complete(full, **PAPER), co.complete(gappy, method="factor model", orientation="columns")):
        if "Student-t" in completion.choices.get("noise", ""):
            continue
        (i, j), *_ = some(rng, completion.filled_mask(), 1)
        found = completion.explain(i, j)
        new = np.repeat(completion.observations.to_dense()[:, [j]], 2, axis=1)
        new[found.names[0], 1] += 0.25
        extended = completion.extend(new)
        n = completion.shape[1]
        before, after = extended.entries(i, [n, n + 1])
        assert before == pytest.approx(found.value, abs=1e-9)
        assert after - before == pytest.approx(0.25 * found.weights[0], abs=1e-9)
        assert extended.explain(i, n + 1).prediction == pytest.approx(after, abs=1e-9)


@pytest.mark.slow
def test_columns_that_were_added_later_are_no_reasons_of_a_turned_model(rng):
    gappy = tables(rng)[1]
    completion = co.complete(gappy, method="factor model", orientation="rows")
    extended = completion.extend(gappy[:, :4]).extend(gappy[:, 4:6])
    for i, j in some(rng, extended.filled_mask(), 20):
        found = extended.explain(i, j)
        assert found.prediction == pytest.approx(found.value, abs=1e-9) and (found.names < 30).all()


def test_an_observed_entry_is_explained_without_itself(seed, rng):
    for completion in completions(seed):
        known = ~completion.filled_mask()
        known[:, completion.status == Status.FULL] = False
        for i, j in some(rng, known, 4):
            found = completion.explain(i, j)
            assert found.is_observed and found.value == completion.entries(i, j) and found.interval is None
            mine = j if found.through == "row" else i
            assert mine not in found.names.tolist()
            assert f"was observed: {found.value:.5g}" in str(found)
            # With its own value as the further entry, the fit moves by the leverage times the surprise.
            if completion.learned is None and not has_unused(completion):
                z = completion.coefficients[:, j]
                fit = completion.basis[i] @ z + (0 if completion.center is None else completion.center[i])
                moved = found.prediction + found.leverage * (found.value - found.prediction)
                assert fit == pytest.approx(moved, abs=1e-10)


def test_leaving_out_agrees_with_hiding_the_entry(rng):
    """Least squares with the same full columns and settings: hiding the entry of a partial column gives the same."""
    full = tables(rng)[0]
    completion = co.complete(full, **PAPER)
    known = ~np.isnan(full) & np.isnan(full).any(axis=0)
    for i, j in some(rng, known, 4):
        hidden = full.copy()
        hidden[i, j] = np.nan
        assert completion.explain(i, j).prediction == pytest.approx(co.complete(hidden, **PAPER).entries(i, j))


def test_the_order_of_rows_and_columns_does_not_matter(rng):
    full, gappy = tables(rng)
    p, q = rng.permutation(24), rng.permutation(30)
    for settings in (PAPER, {"rank": 3, "center": True, "shrinkage": 0.1, "refine": 0}):
        one, other = co.complete(full, **settings), co.complete(full[p][:, q], **settings)
        for i, j in some(rng, one.filled_mask(), 3):
            a, b = one.explain(i, j), other.explain(int(np.argsort(p)[i]), int(np.argsort(q)[j]))
            back = dict(zip(p[b.names].tolist(), b.weights))
            assert a.prediction == pytest.approx(b.prediction) and a.leverage == pytest.approx(b.leverage)
            assert [back[k] for k in a.names.tolist()] == pytest.approx(a.weights.tolist(), abs=1e-10)
    f = co.complete(gappy, method="factor model", orientation="columns").learned.model
    by_row = ("shift", "unit", "U", "row_covariance", "noise", "own_noise")
    turned = replace(f, **{name: getattr(f, name)[p] for name in by_row})
    rows, x = np.arange(0, 24, 2), rng.standard_normal(12)
    a = form_in_model(f, 1, rows, x, np.ones(12))
    b = form_in_model(turned, int(np.argsort(p)[1]), np.argsort(p)[rows], x, np.ones(12))
    np.testing.assert_allclose(a.weights, b.weights, atol=1e-12)
    assert a.prediction == pytest.approx(b.prediction) and a.leverage == pytest.approx(b.leverage)


def test_names_are_understood_and_shown(rng):
    gappy = tables(rng)[1]
    frame = pd.DataFrame(gappy, [f"r{i}" for i in range(24)], [f"c{j}" for j in range(30)])
    for side in ("columns", "rows"):
        completion = co.complete(frame, method="factor model", orientation=side)
        (i, j), *_ = some(rng, completion.filled_mask(), 1)
        found = completion.explain(f"r{i}", f"c{j}")
        assert (found.row, found.column) == (f"r{i}", f"c{j}") and str(found) == str(completion.explain(i, j))
        assert f"Row 'r{i}', column 'c{j}' was filled with" in str(found)
        lines = found.to_frame()
        other = "column" if side == "rows" else "row"
        assert lines.columns.tolist() == [other, "value", "weight", "contribution"]
        assert set(lines[other]) <= set(frame.columns if side == "rows" else frame.index)
        for name, value in zip(lines[other], lines.value):
            assert value == (frame.loc[f"r{i}", name] if side == "rows" else frame.loc[name, f"c{j}"])
        assert found.similar and all(
            s.name in (frame.index if side == "rows" else frame.columns) for s in found.similar
        )
        assert (np.diff([s.distance for s in found.similar]) >= 0).all()
        assert ("The model fills rows" in str(found)) is (side == "rows")


@pytest.mark.slow
def test_the_frame_is_of_the_library_that_came_in(rng):
    gappy = tables(rng)[1]
    completion = co.complete(pl.DataFrame(gappy, schema=[f"c{j}" for j in range(30)]), method="factor model")
    (i, j), *_ = some(rng, completion.filled_mask(), 1)
    assert isinstance(completion.explain(i, j).to_frame(), pl.DataFrame)


def test_a_twin_is_the_most_similar_column(rng):
    full = tables(rng)[0]
    partial = np.flatnonzero(np.isnan(full).any(axis=0))
    full[:, partial[1]] = full[:, partial[0]]
    completion = co.complete(full, **PAPER)
    i = int(np.flatnonzero(np.isnan(full[:, partial[0]]))[0])
    found = completion.explain(i, int(partial[0]))
    assert found.similar[0].name == partial[1] and found.similar[0].distance == pytest.approx(0, abs=1e-8)
    assert found.similar[0].value == pytest.approx(found.value)


def test_bounds_are_said(rng):
    full = tables(rng)[0]
    completion = co.complete(full, **PAPER, bounds=(-0.5, 0.5))
    i, j = map(int, np.argwhere(completion.filled_mask() & (completion.to_dense() == 0.5))[0])
    found = completion.explain(i, j)
    assert found.value == 0.5 < found.prediction
    assert "Predictions are kept between -0.5 and 0.5." in str(found)


def test_what_could_not_be_filled_says_why():
    paper = co.complete(np.array([[1.0, 2, 1], [2, 4, np.nan], [1, 3, np.nan]]), rank=2, shrinkage=0, center=False)
    found = paper.explain(1, 2)
    assert np.isnan(found.value) and np.isnan(found.prediction) and found.names.size == 0
    assert "could not be filled: column 2 has fewer known values than the rank" in str(found)
    assert "could not be filled" in found._repr_html_() and found.to_frame().shape == (0, 4)
    seen = paper.explain(0, 2)
    assert seen.value == 1 and "was observed: 1. Nothing can be predicted without it." in str(seen)


def test_an_empty_row_says_why(rng):
    gappy = tables(rng)[1]
    gappy[4] = np.nan
    found = co.complete(gappy, method="factor model", orientation="columns").explain(4, 0)
    assert np.isnan(found.value) and "could not be filled: the row has no known value" in str(found)


@pytest.mark.slow
def test_a_column_without_entries_is_its_level(rng):
    for known in tables(rng):
        known[:, 3] = np.nan
        completion = co.complete(known)
        if np.isnan(completion.entries(0, 3)):
            continue
        found = completion.explain(0, 3)
        assert found.names.size == 0 and found.prediction == pytest.approx(found.value)


@pytest.mark.filterwarnings("ignore:als did not converge")
def test_bad_questions_are_refused(rng):
    full, gappy = tables(rng)
    completion = co.complete(full)
    with pytest.raises(IndexError, match="row"):
        completion.explain(24, 0)
    with pytest.raises(ValueError, match="column must be one number or name; got 2 of them"):
        completion.explain(0, [1, 2])
    with pytest.raises(TypeError, match="row must be whole numbers, because the data have no names; got 'a'"):
        completion.explain("a", 0)
    with pytest.raises(ValueError, match=r"level must be a finite number in \(0, 1\); got 90"):
        completion.explain(0, 0, level=90)
    with pytest.raises(ValueError, match="fits all columns together, so that no sum explains its values"):
        co.complete(gappy, method="als").explain(0, 0)


def test_input_is_not_changed(seed, rng):
    for completion in completions(seed):
        before = completion.observations.values.copy(), completion.coefficients.copy()
        completion.explain(0, 0)
        assert (completion.observations.values == before[0]).all()
        np.testing.assert_array_equal(completion.coefficients, before[1])


@pytest.mark.slow
def test_float32_is_explained(rng):
    for known in tables(rng):
        completion = co.complete(known.astype(np.float32))
        for i, j in some(rng, completion.filled_mask(), 3):
            found = completion.explain(i, j)
            assert found.prediction == pytest.approx(found.value, rel=1e-4, abs=1e-4)


def test_hostile_names_do_no_harm(rng):
    full = tables(rng)[0]
    o = co.Observations.from_dense(full, row_names=[*HOSTILE, *map(str, range(24 - len(HOSTILE)))])
    completion = co.complete(o)
    i, j = map(int, np.argwhere(completion.filled_mask())[0])
    found = completion.explain(i, j)
    assert "<script" not in found._repr_html_() and "<img" not in found._repr_html_()
    assert "\x1b" not in str(found) and len(str(found)) < 4000
    found.plot().figure.canvas.draw()


def test_pictures_and_json(seed, rng):
    import matplotlib.pyplot as plt

    for completion in completions(seed):
        for i, j in (*some(rng, completion.filled_mask(), 1), *some(rng, ~completion.filled_mask(), 1)):
            found = completion.explain(i, j)
            ax = found.plot()
            ends = [bar.get_x() + bar.get_width() for bar in ax.patches if bar.get_height() == 0.7]
            assert ends[-1] == pytest.approx(found.prediction)
            assert found.plot(ax) is ax
            facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
            total = facts["level"] + facts["offset"] + sum(one["contribution"] for one in facts["entries"])
            assert total == pytest.approx(facts["prediction"])
            plt.close(ax.figure)


def test_a_saved_result_gives_the_same_reasons(seed, rng, tmp_path):
    for k, completion in enumerate(completions(seed)):
        completion.save(tmp_path / str(k))
        loaded = co.Completion.load(tmp_path / str(k))
        (i, j), *_ = some(rng, completion.filled_mask(), 1)
        assert str(loaded.explain(i, j)) == str(completion.explain(i, j))


def test_rows_whose_value_is_not_known_are_not_similar_and_no_level_is_not_named(rng):
    M = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 8)) + 0.1 * rng.standard_normal((40, 8))
    known = np.where(rng.random(M.shape) < 0.2, np.nan, M)
    known[:, 2] = np.nan
    found = co.complete(known, orientation="rows").explain(0, 2)
    assert found.similar == [] and "nan" not in str(found)
    known[:, 3:] = M[:, 3:]
    plain = co.complete(np.delete(known, 2, axis=1), rank=2, center=False, shrinkage=0, refine=0)
    j = int(np.flatnonzero(np.isnan(known[:, 0]))[0])
    assert "level" not in str(plain.explain(j, 0))
    assert "Leverage: measuring it would move the fit " in str(plain.explain(j, 0))
