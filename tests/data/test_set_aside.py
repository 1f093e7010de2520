"""Columns without numbers are set aside, listed and returned as they were; the others are the matrix."""

import datetime
import hashlib
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import colonnade as co

from problems import hide, low_rank

ROWS = 12
HOSTILE = ["=cmd()", "[/bold]", "\x1b[31m", "^a.*$", "a,b", 'say "x"', "$x_{$", "two\nlines", "", "-1.5", "*"]
SETTINGS = {"rank": 2, "center": False, "shrinkage": 0, "refine": 0}


@pytest.fixture
def known(rng):
    L, R = low_rank(rng, ROWS, 8, 2)
    return hide(rng, np.rint(L @ R * 10) + 0.0, 4, 6)[0]


def others():
    """Columns of every other kind, each with a missing value: by name the values, and what the list calls them."""
    days = [datetime.date(2024, 1, 1 + k) for k in range(ROWS)]
    return {
        "city": ([None, *"bcdefghijkl"], "text"),
        "digits": (["1.5", "2", None, *map(str, range(ROWS - 3))], "numbers stored as text"),
        "when": ([None, *(datetime.datetime(2024, 1, 1, k) for k in range(ROWS - 1))], "dates"),
        "day": ([*days[:-1], None], "dates"),
        "lasts": ([*(datetime.timedelta(hours=k) for k in range(ROWS - 1)), None], "durations"),
        "flag": ([True, None, False] * 4, "Booleans"),
    }


def polars_frame(known):
    """Numbers, and columns of other kinds between them."""
    numbers = [(f"c{j}", [None if np.isnan(x) else x for x in known[:, j].tolist()]) for j in range(8)]
    added = [(name, values) for name, (values, _) in others().items()]
    columns = dict([added[0], *numbers[:3], *added[1:4], *numbers[3:], *added[4:]])
    return pl.DataFrame(columns).with_columns(pl.col("city").cast(pl.Categorical).alias("kind"))


def frames(known):
    table = polars_frame(known)
    yield "polars", table
    yield "pyarrow", table.to_arrow()
    yield "pandas", table.to_pandas()
    yield "pandas with Arrow", table.to_pandas(use_pyarrow_extension_array=True)


def numbers_of(frame):
    return np.column_stack([np.asarray(frame[f"c{j}"], dtype=float) for j in range(8)])


def columns_of(frame):
    return frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)


def same_column(a, b, name):
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_series_equal(a[name], b[name])
    elif isinstance(a, pl.DataFrame):
        assert a[name].dtype == b[name].dtype and a[name].equals(b[name], null_equal=True)
    else:
        assert a[name].type == b[name].type and a[name].equals(b[name])
    return True


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "pandas", "pandas with Arrow"])
def test_other_columns_come_back_as_they_were_and_numbers_filled(known, kind):
    frame = dict(frames(known))[kind]
    before = hashlib.sha256(pickle.dumps(frame)).digest()
    completion = co.complete(frame, **SETTINGS)
    back = completion.to_frame()
    assert hashlib.sha256(pickle.dumps(frame)).digest() == before
    assert type(back) is type(frame) and columns_of(back) == columns_of(frame)
    assert all(same_column(back, frame, name) for name in [*others(), "kind"])
    expected = co.complete(known, **SETTINGS).to_dense()
    np.testing.assert_array_equal(numbers_of(back), expected)
    assert completion.column_names.tolist() == [f"c{j}" for j in range(8)]


def test_the_list_says_what_was_set_aside(known):
    listed = ", ".join(f"'{name}' ({kind})" for name, (_, kind) in others().items()) + ", 'kind' (categories)"
    for _, frame in frames(known):
        completion = co.complete(frame, **SETTINGS)
        assert completion.choices["set aside"] == listed
        assert completion.summary().splitlines()[1] == f"Left out and returned unchanged: {listed}."
    assert "set aside" not in co.complete(known, **SETTINGS).choices


def test_a_long_list_is_cut(known):
    frame = pd.DataFrame(known).assign(**{f"t{k:02}": "x" for k in range(30)})
    words = co.complete(frame, **SETTINGS).choices["set aside"]
    assert words.startswith("'t00' (text), 't01' (text)") and words.endswith("'t19' (text) and 10 more")


@pytest.mark.parametrize(
    "column, kind",
    [
        ([1, None, 2.5], None),
        ([None, None, None], None),
        ([1, np.nan, True], None),
        ([True, None, False], "Booleans"),
        ([np.bool_(True), np.nan, False], "Booleans"),
        ([1, "2", 3.0], "text and numbers"),
        (["1.5", None, np.nan], "numbers stored as text"),
        ([datetime.date(2024, 1, 1), None, datetime.datetime(2024, 1, 2)], "dates"),
        ([pd.NaT, None, pd.NaT], "dates"),
        ([1j, 2.0, None], "objects"),
        ([[1.0], None, [2.0]], "objects"),
        ([b"1", None, 2], "objects"),
    ],
)
def test_python_objects(column, kind):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.Series(column, dtype=object)})
    o = co.Observations.from_dense(frame)
    assert o.shape == ((3, 2) if kind is None else (3, 1))
    if kind is not None:
        assert o.origin.aside.in_words() == f"'b' ({kind})"
        back = co.complete(o).to_frame()
        assert all(x is y for x, y in zip(back["b"], frame["b"], strict=True)) and back["b"].dtype == object


@pytest.mark.parametrize(
    "column, kind",
    [
        (pd.Categorical([1, 2, 1]), "categories"),
        (pd.period_range("2024-01", periods=3, freq="M"), "dates"),
        (pd.interval_range(0, 3), "interval[int64, right]"),
        (np.array([1, 2, 3j]), "complex numbers"),
        (pd.date_range("2024-01-01", periods=3, tz="Europe/Berlin"), "dates"),
        (pd.array([True, None, False], "boolean"), "Booleans"),
        (np.array([True, False, True]), "Booleans"),
        (pd.array(["a", None, "b"], "string"), "text"),
    ],
)
def test_dtypes_of_pandas(column, kind):
    frame = pd.DataFrame({"b": column, "a": [1.0, 2.0, 3.0]}, index=list("xyz"))
    completion = co.complete(frame)
    assert completion.choices["set aside"] == f"'b' ({kind})"
    pd.testing.assert_frame_equal(completion.to_frame(), frame)


WHOLE = {"int8": 127, "uint16": 65_535, "int64": -(2**60), "uint64": 2**63}


@pytest.mark.parametrize("kind", [*WHOLE, "Int8", "UInt16", "Int64", "UInt64", "int64[pyarrow]"])
def test_whole_numbers_without_a_gap_keep_their_type(kind):
    top = WHOLE[kind.lower().partition("[")[0]]
    frame = pd.DataFrame({"a": pd.array([1, top, 3], kind), "b": [1.5, 2.5, 3.5], "c": [1.0, np.nan, 2.0]})
    back = co.complete(frame, **SETTINGS | {"rank": 1}).to_frame()
    assert back["a"].tolist() == [1, top, 3] and back["a"].dtype == frame["a"].dtype
    assert back.dtypes[["b", "c"]].tolist() == [np.float64, np.float64]
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        back = co.complete(other, **SETTINGS | {"rank": 1}).to_frame()
        assert same_column(back, other, "a")


def test_whole_numbers_with_a_gap_become_floats():
    for frame in (
        pd.DataFrame({"a": [1, 2, 3], "b": pd.array([2, None, 6], "Int64")}),
        pl.DataFrame({"a": [1, 2, 3], "b": [2, None, 6]}),
        pa.table({"a": [1, 2, 3], "b": [2, None, 6]}),
    ):
        back = co.complete(frame, **SETTINGS | {"rank": 1}).to_frame()
        assert np.asarray(back["b"]).dtype == np.float64 and np.asarray(back["a"]).dtype == np.int64
        np.testing.assert_allclose(np.asarray(back["b"]), [2, 4, 6], rtol=1e-12)


def test_single_precision_is_that_of_the_numbers_alone():
    frame = pd.DataFrame({"t": ["x", "y"], "a": np.float32([1, 2]), "b": np.float32([1, np.nan])})
    back = co.complete(frame).to_frame()
    assert back.dtypes[["a", "b"]].tolist() == [np.float32, np.float32]


def test_names_that_repeat_nested_names_and_repeated_rows(known):
    known = known[:, :6]
    pairs = pd.MultiIndex.from_product([["a", "b"], range(4)], names=["letter", "number"])
    index = pd.Index(["r"] * 6 + list("uvwxyz"), name="row")
    for columns in (pairs, pd.Index(["x", "y"] * 4), pd.RangeIndex(8), pd.Index(HOSTILE[:8], name="names")):
        frame = pd.DataFrame(known).astype(object).infer_objects()
        frame.insert(2, "text", list("abcdefghijkl"))
        frame["flag"] = [True, False] * 6
        frame = frame.set_axis(columns, axis=1).set_axis(index, axis=0)
        completion = co.complete(frame, **SETTINGS)
        expected = frame.copy()
        expected.isetitem([0, 1, 3, 4, 5, 6], co.complete(known, **SETTINGS).to_dense())
        pd.testing.assert_frame_equal(completion.to_frame(), expected)
        assert completion.column_names.tolist() == [str(columns.tolist()[k]) for k in (0, 1, 3, 4, 5, 6)]


def test_hostile_names(known):
    text = {name: list("abcdefghijkl") for name in HOSTILE}
    numbers = {f"c{j}": known[:, j] for j in range(8)}
    for frame in (pd.DataFrame(text | numbers), pl.DataFrame(text | numbers), pa.table(text | numbers)):
        completion = co.complete(frame, **SETTINGS)
        back = completion.to_frame()
        assert columns_of(back) == [*HOSTILE, *numbers]
        assert all(same_column(back, frame, name) for name in HOSTILE)
        assert completion.choices["set aside"].isprintable()


def test_what_the_user_changes_later_does_not_change_the_answer(known):
    frame = pd.DataFrame(known).assign(text=list("abcdefghijkl"))
    completion = co.complete(frame, **SETTINGS)
    frame.loc[0, "text"] = "changed"
    assert completion.to_frame()["text"].tolist() == list("abcdefghijkl")


def test_frames_without_numbers_are_refused_in_a_sentence():
    text, when = ["x", "y"], pd.to_datetime(["2020-01-01", "2020-01-02"])
    for frame in (
        pd.DataFrame({"city": text, "when": when, "flag": [True, False]}),
        pl.DataFrame({"city": text, "when": list(when), "flag": [True, False]}),
        pa.table({"city": text, "when": list(when), "flag": [True, False]}),
    ):
        with pytest.raises(TypeError, match=r"no column of numbers is left: 'city' \(text\), 'when' \(dates\), 'flag'"):
            co.complete(frame)
    for frame in (pd.DataFrame({"city": []}), pl.DataFrame({"city": pl.Series([], dtype=pl.String)}), pd.DataFrame()):
        with pytest.raises(ValueError, match="it needs some of both"):
            co.complete(frame)


def test_ignore_and_only(known):
    table = polars_frame(known)
    numbers = [f"c{j}" for j in range(8)]
    for frame in (table, table.to_arrow(), table.to_pandas()):
        completion = co.complete(frame, ignore=["c7", "city"], **SETTINGS)
        assert completion.column_names.tolist() == numbers[:7]
        assert "'c7' (ignored)" in completion.choices["set aside"]
        assert same_column(completion.to_frame(), frame, "c7") and columns_of(completion.to_frame()) == table.columns
        for only in (numbers[:6], tuple(numbers[:6])):
            part = co.complete(frame, only=only, **SETTINGS)
            assert part.column_names.tolist() == numbers[:6]
            np.testing.assert_array_equal(part.to_dense(), co.complete(known[:, :6], **SETTINGS).to_dense())


def test_identifiers_are_ignored_only_if_named():
    frame = pd.DataFrame({"id": [2**53 + 1, 7, 9], "a": [1.0, 2, 3], "b": [2.0, 4, np.nan]})
    with pytest.raises(ValueError, match=r"row 0 of column 'id' is 9007199254740993.*ignore=\['id'\]"):
        co.complete(frame)
    back = co.complete(frame, ignore="id").to_frame()
    assert back["id"].tolist() == [2**53 + 1, 7, 9] and back["id"].dtype == np.int64
    assert co.complete(frame.assign(id=[1, 2, 3])).shape == (3, 3)


def test_labels_that_are_not_text():
    frame = pd.DataFrame(np.ones((3, 4)), columns=[0, 5, ("a", 1), "5"])
    assert co.Observations.from_dense(frame, ignore=[5]).column_names.tolist() == ["0", "('a', 1)", "5"]
    assert co.Observations.from_dense(frame, ignore=[("a", 1)]).shape == (3, 3)
    assert co.Observations.from_dense(frame, only=["0", ("a", 1)]).shape == (3, 2)
    repeated = pd.DataFrame(np.ones((3, 4)), columns=["x", "x", "y", "z"])
    assert co.Observations.from_dense(repeated, ignore=["x"]).shape == (3, 2)


@pytest.mark.parametrize(
    "names, error, words",
    [
        (
            {"ignore": ["ciity"]},
            ValueError,
            r"ignore names 'ciity', which is not a column; the nearest names are 'city'",
        ),
        ({"only": ["q"]}, ValueError, r"only names 'q', which is not a column; the columns are 'city', 'c0', 'c1', "),
        ({"only": ["city", "c0"]}, TypeError, r"only names columns that do not hold numbers: 'city' \(text\)"),
        ({"only": ["c0"], "ignore": ["c0"]}, ValueError, "column 'c0' is named in both ignore and only"),
        ({"only": []}, TypeError, r"no column of numbers is left: 'city' \(ignored\), 'c0' \(ignored\)"),
        ({"ignore": [["c0"]]}, TypeError, "ignore must be names of columns; got"),
        ({"ignore": 5}, ValueError, "ignore names '5', which is not a column"),
        ({"ignore": ["\x1b[0m" * 100]}, ValueError, r"'\\x1b"),
    ],
)
def test_bad_names(known, names, error, words):
    table = polars_frame(known)
    for frame in (table, table.to_arrow(), table.to_pandas()):
        with pytest.raises(error, match=words) as failure:
            co.complete(frame, **names)
        assert str(failure.value).isprintable() and len(str(failure.value)) < 600


def test_names_are_for_frames(known):
    for data in (known, co.Observations.from_dense(known)):
        for names in ({"ignore": ["a"]}, {"only": ["a"]}):
            with pytest.raises(TypeError, match="ignore and only name columns of data frames; got"):
                co.complete(data, **names)


def test_weights_may_have_the_shape_of_the_frame(known):
    frame = pd.DataFrame(known).assign(text="x")
    weights = np.arange(1.0, 1 + known.size).reshape(known.shape)
    all_columns = np.column_stack([weights, np.ones(ROWS)])
    for given in (weights, all_columns):
        o = co.Observations.from_dense(frame, weights=given)
        assert o.weights.tolist() == co.Observations.from_dense(known, weights=weights).weights.tolist()


def test_imputers_still_refuse_text_and_take_booleans():
    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [True, False, True], "t": list("xyz")})
    for imputer in (co.CompleteRowsImputer(), co.CompleteColumnsImputer()):
        with pytest.raises(TypeError, match=r"1 of 3 columns are not numeric: 't'"):
            imputer.fit(frame)
        assert imputer.fit(frame[["a", "b"]]).n_features_in_ == 2


def test_what_text_holds_is_said(rng):
    frame = pd.DataFrame(rng.standard_normal((6, 3)), columns=["a", "b", "c"])
    frame["stored"] = ["1.5", "2", "", "3", "-4e3", None]
    frame["codes"] = ["01067", "10115", "20095", "50667", "60311", "70173"]
    frame["mixed"] = pd.Series([1.5, 2, "ERR", 3, 4, 5], dtype=object)
    words = co.complete(frame).choices["set aside"]
    assert words == "'stored' (numbers stored as text), 'codes' (text), 'mixed' (text and numbers)"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_triples_is_refused(library):
    columns = {"user": ["u", "v", "u"], "item": ["x", "x", "y"], "rating": [1.0, 2.0, 3.0]}
    frame = pd.DataFrame(columns) if library == "pandas" else pl.DataFrame(columns)
    with pytest.raises(ValueError, match=r"one column of numbers, 'rating', beside 'user' .* pivot it first"):
        co.complete(frame)
