"""DataArrays and netCDF files: dimensions are stacked into rows and columns and restored, empty places stay empty."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner

import colonnade as co
from colonnade.interfaces.cli import cli

LAND = np.s_[:, :2, 1:3]


def field(rng, dtype=float):
    """A map of rank 2 over 30 days, with clouds and land, and the truth."""
    truth = np.einsum("tk,kyx->tyx", rng.standard_normal((30, 2)), rng.standard_normal((2, 5, 6))).astype(dtype)
    seen = truth.copy()
    seen[rng.random(seen.shape) < 0.3] = np.nan
    seen[LAND] = np.nan
    coords = {
        "time": pd.date_range("2024-01-01", periods=30),
        "lat": np.linspace(40, 50, 5),
        "lon": np.arange(6),
        "area": (("lat", "lon"), np.ones((5, 6))),
    }
    array = xr.DataArray(seen, dims=("time", "lat", "lon"), coords=coords, name="sst", attrs={"units": "K"})
    return array, truth


def at_sea(array):
    values = np.array(array)
    values[LAND] = 0
    return values


def test_an_array_comes_back_filled_with_all_that_it_had(rng):
    array, truth = field(rng)
    before = array.copy(deep=True)
    filled = co.complete(array).to_xarray()
    xr.testing.assert_identical(array, before)
    assert filled.dims == array.dims and filled.name == "sst" and filled.attrs == {"units": "K"}
    xr.testing.assert_identical(filled.coords.to_dataset(), array.coords.to_dataset())
    np.testing.assert_allclose(at_sea(filled), at_sea(truth), atol=1e-7)
    assert np.isnan(filled.values[LAND]).all()
    known = ~np.isnan(array.values)
    np.testing.assert_array_equal(filled.values[known], array.values[known])


@pytest.mark.slow
def test_the_order_of_dimensions_does_not_matter(rng):
    array, _ = field(rng)
    expected = co.complete(array).to_xarray()
    for order in (("lat", "lon", "time"), ("lat", "time", "lon")):
        turned = co.complete(array.transpose(*order)).to_xarray()
        assert turned.dims == order
        xr.testing.assert_identical(turned.transpose(*array.dims), expected)


def test_which_dimensions_are_columns(rng):
    array, _ = field(rng)
    assert co.Observations.from_xarray(array).shape == (26, 30)  # Four of thirty pixels are land.
    assert co.Observations.from_xarray(array, columns=["lat", "lon"]).shape == (30, 26)
    n_seen = int(array.notnull().any("lon").sum())
    assert co.Observations.from_xarray(array, columns="lon").shape == (n_seen, 6)
    strip = array.isel(lat=3)
    n_seen = int(strip.notnull().any("lon").sum())
    assert co.Observations.from_xarray(strip).shape == (n_seen, 6)  # Of two dimensions the second.
    unnamed = xr.DataArray(array.values)
    assert co.Observations.from_xarray(unnamed).shape == (26, 30)  # Without dates the first of three.
    for wrong in ("height", [], ["time", "lat", "lon"]):
        with pytest.raises(ValueError, match="columns must name some, not all, of the dimensions time, lat, lon"):
            co.Observations.from_xarray(array, columns=wrong)


@pytest.mark.slow
def test_two_dimensions_are_a_table(rng):
    array, _ = field(rng)
    table = array.isel(lat=4)
    completion = co.complete(table)
    np.testing.assert_array_equal(completion.to_xarray().values, co.complete(table.values).to_dense())
    assert completion.row_names[3] == "2024-01-04" and completion.column_names.tolist() == list("012345")
    assert completion.entries(pd.Timestamp("2024-01-04"), "2") == completion.to_dense()[3, 2]


@pytest.mark.slow
def test_names_lead_back_to_the_places(rng):
    array, _ = field(rng)
    plain = xr.DataArray(array.values, dims=("day", "y", "x"))
    completion = co.complete(plain)
    assert completion.column_names is None and completion.row_names[1] == "0, 3"  # Land at x = 1 and 2.
    assert np.isclose(completion.entries("0, 3", 7), completion.to_xarray().sel(day=7, y=0, x=3), rtol=1e-12)
    assert co.complete(array).row_names[1] == "40.0, 3"


def test_empty_places_are_named_and_no_part_of_the_matrix(rng):
    array, _ = field(rng)
    array[5] = np.nan
    completion = co.complete(array)
    assert completion.shape == (26, 29)
    said = "4 of 30 places of lat, lon and 1 of 30 places of time have no value and stay empty"
    assert completion.choices["empty places"] == said and said in completion.summary()
    assert np.isnan(completion.to_xarray().isel(time=5)).all()
    with pytest.raises(ValueError, match="holds no number"):
        co.complete(array * np.nan)


def test_intervals_come_as_a_dataset(rng):
    array, _ = field(rng)
    array = array + 0.1 * rng.standard_normal(array.shape)
    completion = co.complete(array)
    found = completion.to_xarray(interval=0.8)
    assert list(found.data_vars) == ["value", "low", "high", "filled"] and found.value.dims == array.dims
    xr.testing.assert_equal(found.value, completion.to_xarray())
    gaps = array.isnull().values
    gaps[LAND] = False
    np.testing.assert_array_equal(found.filled.values, gaps)
    inside = (found.low < found.value) & (found.value < found.high)
    np.testing.assert_array_equal(inside.values, gaps)
    low, high = completion.interval(np.arange(26)[:, None], np.arange(30), 0.8)
    assert np.nanmin(found.low) == low.min() and np.nanmax(found.high) == high.max()


@pytest.mark.slow
def test_the_accessor_is_the_same(rng):
    array, _ = field(rng)
    xr.testing.assert_identical(array.colonnade.complete(), co.complete(array).to_xarray())
    settings = {"orientation": "rows", "rank": 2}
    expected = co.complete(co.Observations.from_xarray(array, columns=("lat", "lon")), **settings)
    found = array.colonnade.complete(columns=("lat", "lon"), interval=0.5, **settings)
    xr.testing.assert_identical(found, expected.to_xarray(interval=0.5))
    assert repr(array.colonnade.observations()) == repr(co.Observations.from_xarray(array))


def test_weights_follow_the_dimensions(rng):
    array, _ = field(rng)
    weights = xr.DataArray(
        rng.uniform(1, 2, (6, 30)), dims=("lon", "time"), coords={"lon": array.lon, "time": array.time}
    )
    o = array.colonnade.observations(weights=weights)
    first = o.row_names[o.rows[0]].split(", ")[1]
    assert o.weights[0] == weights.sel(lon=int(first)).values[0]
    whole = weights.broadcast_like(array).transpose(*array.dims)
    np.testing.assert_array_equal(array.colonnade.observations(weights=whole.values).weights, o.weights)
    with pytest.raises(ValueError, match=r"weights must have the shape of the data, \(30, 5, 6\); got \(3,\)"):
        array.colonnade.observations(weights=np.ones(3))


@pytest.mark.parametrize("first", ["colonnade", "xarray"])
def test_the_accessor_is_there_whichever_is_imported_first(first):
    second = {"colonnade": "xarray", "xarray": "colonnade"}[first]
    code = (
        f"import importlib.util, sys, {first}; importlib.util.find_spec('xarray'); import {second};"
        "print(hasattr(xarray.DataArray, 'colonnade'), [w for w in sys.meta_path if 'Watcher' in type(w).__name__])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "True []\n"


def test_other_data_get_rows_and_columns():
    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [2.0, 4, np.nan]}, index=list("xyz"))
    made = co.complete(frame).to_xarray()
    assert made.dims == ("row", "column") and made.row.values.tolist() == list("xyz")
    assert float(made.sel(row="z", column="b")) == co.complete(frame).to_dense()[2, 1]


def test_what_is_no_array_of_numbers_is_refused(rng):
    array, _ = field(rng)
    with pytest.raises(TypeError, match=r"take one, such as data\[name\]. It has 'sst', 'ice'"):
        co.complete(xr.Dataset({"sst": array, "ice": array}))
    with pytest.raises(ValueError, match="at least two dimensions"):
        co.complete(array.isel(lat=0, lon=0))
    with pytest.raises(TypeError, match="real numbers"):
        co.complete(array.astype(complex))
    with pytest.raises(TypeError, match="ignore and only name columns of data frames"):
        co.complete(array, ignore="lat")


@pytest.mark.slow
def test_new_times_are_filled_by_what_was_learned(rng, tmp_path):
    array, truth = field(rng)
    first, later = array.isel(time=slice(0, 26)), array.isel(time=slice(26, 30)).transpose("lat", "lon", "time")
    completion = co.complete(first)
    longer = completion.extend(later)
    assert longer.shape == (26, 30)
    filled = longer.to_xarray()
    xr.testing.assert_identical(filled.coords.to_dataset(), array.coords.to_dataset())
    xr.testing.assert_identical(filled.isel(time=slice(0, 26)), completion.to_xarray())
    np.testing.assert_allclose(at_sea(filled), at_sea(truth), atol=1e-6)
    from_file = co.complete(co.read(written(first, tmp_path / "first.nc"))).extend(later)
    xr.testing.assert_equal(from_file.to_xarray(), filled)
    on_land = later.copy()
    on_land[0, 1] = 1.0
    with pytest.raises(ValueError, match="1 places of lat, lon have values in the new columns and none in the table"):
        completion.extend(on_land)
    with pytest.raises(ValueError, match="must have the dimensions lat, lon of the table"):
        completion.extend(later.isel(lat=slice(0, 3)))
    plain = completion.extend(2 * completion.to_dense()[:, :1]).to_xarray()
    assert plain.dims == ("row", "column") and plain.shape == (26, 27)


# ------------------------------------------------------------------------------------------------------ netCDF


def written(array, path, **others):
    data = array.to_dataset().assign(others)
    data.attrs = {"title": "made"}
    data.to_netcdf(path, engine="h5netcdf")
    return path


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.slow
def test_a_file_comes_back_filled(rng, tmp_path, dtype):
    array, _ = field(rng, dtype)
    path = written(array, tmp_path / "field.nc", days=("time", np.arange(30)))
    co.files.write(co.complete(co.read(path)), tmp_path / "filled.nc")
    with xr.open_dataset(tmp_path / "filled.nc", engine="h5netcdf") as data:
        assert list(data.data_vars) == ["sst"] and data.attrs == {"title": "made"}
        xr.testing.assert_identical(data.sst.load().drop_encoding(), co.complete(array).to_xarray())


def test_old_netcdf_is_read(rng, tmp_path):
    array, _ = field(rng)
    array.to_dataset().to_netcdf(tmp_path / "old.nc", engine="scipy", format="NETCDF3_64BIT")
    o, expected = co.read(tmp_path / "old.nc"), co.Observations.from_xarray(array)
    np.testing.assert_array_equal(o.values, expected.values)
    assert o.row_names.tolist() == expected.row_names.tolist()


def test_fill_values_and_codes_are_gaps(rng, tmp_path):
    array, _ = field(rng)
    coded = array.fillna(-999.0)
    o, expected = co.read(written(coded, tmp_path / "coded.nc"), missing=-999), co.Observations.from_xarray(array)
    assert o.shape == expected.shape == (26, 30)
    np.testing.assert_array_equal(o.values, expected.values)
    packing = {"sst": {"dtype": "i2", "scale_factor": 0.001, "_FillValue": -32768}}
    array.to_dataset().to_netcdf(tmp_path / "packed.nc", engine="h5netcdf", encoding=packing)
    packed = co.read(tmp_path / "packed.nc")
    np.testing.assert_array_equal(packed.rows, expected.rows)
    np.testing.assert_allclose(packed.values, expected.values, atol=0.0006)
    co.files.write(co.complete(packed), tmp_path / "unpacked.nc")
    with xr.open_dataset(tmp_path / "unpacked.nc", engine="h5netcdf") as data:
        values = data.sst.values
    known, gaps = array.notnull().values, array.isnull().values
    gaps[LAND] = False
    np.testing.assert_array_equal(np.sort(values[known]), np.sort(packed.values))
    steps = values[gaps].astype(float) / 0.001
    assert np.abs(steps - np.rint(steps)).max() > 0.1  # Filled numbers are not rounded to the steps of the packing.


@pytest.mark.slow
def test_the_command_fills_a_file(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array, _ = field(rng)
    written(array, "field.nc", ice=array * 2)
    run = CliRunner().invoke(cli, ["complete", "field.nc"])
    assert run.exit_code != 0 and "has 2 variables; name one with --variable (key=...)" in str(
        run.exception or run.output
    )
    run = CliRunner().invoke(cli, ["complete", "field.nc", "--variable", "sst"])
    assert run.exit_code == 0, run.output
    assert "Read: netcdf (variable 'sst', rows: lat, lon; columns: time) with names of rows and columns." in run.output
    assert "4 of 30 places of lat, lon have no value and stay empty" in run.output
    with xr.open_dataset("field-filled.nc", engine="h5netcdf") as data:
        xr.testing.assert_identical(data.sst.load().drop_encoding(), co.complete(array).to_xarray())
    run = CliRunner().invoke(cli, ["complete", "field.nc", "--key", "sst", "--transpose", "-o", "t.nc", "-o", "t.csv"])
    assert run.exit_code == 0, run.output
    with xr.open_dataset("t.nc", engine="h5netcdf") as data:
        assert data.sst.dims == array.dims
        known = ~np.isnan(array.values)
        np.testing.assert_array_equal(data.sst.values[known], array.values[known])
    assert pd.read_csv("t.csv", index_col=0).shape == (26, 30)


def test_a_table_can_become_netcdf(tmp_path):
    (tmp_path / "t.csv").write_text("name,a,b,c\nx,1,2,3\ny,2,4,6\nz,3,6,\n")
    completion = co.complete(co.read(tmp_path / "t.csv"))
    co.files.write(completion, tmp_path / "t.nc")
    with xr.open_dataset(tmp_path / "t.nc", engine="h5netcdf") as data:
        assert data["values"].dims == ("row", "column") and data.row.values.tolist() == ["x", "y", "z"]
        np.testing.assert_array_equal(data["values"].values, completion.to_dense())


def test_damaged_and_other_files_are_refused(rng, tmp_path):
    array, _ = field(rng)
    path = written(array, tmp_path / "field.nc")
    for name, content in (("cut.nc", path.read_bytes()[:3000]), ("ones.nc", b"CDF\x01" + 200 * b"\xff")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="is damaged or not netCDF"):
            co.read(tmp_path / name)
    with pytest.raises(ValueError, match="has no variable 'ice' of two or more dimensions; it has 'sst'"):
        co.read(path, key="ice")
    (tmp_path / "text.nc").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not netcdf, as its name says"):
        co.read(tmp_path / "text.nc")
    (tmp_path / "data.h5").write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match="it is HDF5"):
        co.read(tmp_path / "data.h5")
    with pytest.raises(MemoryError, match="declares"):
        co.read(path, memory_limit=1000)


def test_weights_follow_their_labels(rng):
    array = xr.DataArray(rng.standard_normal((3, 4)), dims=("lat", "lon"), coords={"lat": [3, 2, 1]})
    weights = xr.DataArray([1.0, 2.0, 3.0], dims="lat", coords={"lat": [1, 2, 3]})
    o = co.Observations.from_xarray(array, weights=weights)
    assert (o.weights == np.tile([3.0, 2.0, 1.0], 4)).all()
