"""A cluster whose data and result are in an S3 store: the bytes of the local engine, whatever fails meanwhile."""

import os
import signal
import time

import numpy as np
import pytest
from test_cluster_triples import tall_triples
from test_dask import FIXED, kill, pids, problem, watchdog, write_triples  # noqa: F401

import colonnade as co
from colonnade._support.storage import Url

from stores import BUCKET, OPTIONS, faulty_proxy, s3_server

pytest.importorskip("distributed", reason="the extra dask is not installed")
pytest.importorskip("s3fs", reason="the extra remote is not installed")
pytest.importorskip("moto", reason="a server for tests is not installed")


@pytest.fixture(scope="module")
def server():
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def proxy(server):
    with faulty_proxy(server, pause=lambda: time.sleep(3)) as (endpoint, faults):
        yield {**OPTIONS, "endpoint_url": endpoint}, faults


@pytest.fixture
def given(request, server, tmp_path):
    """A folder of the bucket with triples in several blocks, how to complete them, and what the local engine finds."""
    rng = np.random.default_rng(8)
    path = write_triples(tmp_path / "t.parquet", problem(rng, n=120), rng)
    place = f"s3://{BUCKET}/{abs(hash(request.node.name)):x}"
    (Url(place, {**OPTIONS, "endpoint_url": server}) / "x" / "t.parquet").write_bytes(path.read_bytes())
    expected = co.complete_triples(path, tmp_path / "here", block_entries=200, **FIXED)
    return f"{place}/x/", {"out": f"{place}/out", "block_entries": 200, **FIXED}, expected


def assert_same(stored, expected):
    for name in ("coefficients", "basis", "status"):
        assert getattr(stored, name).tobytes() == getattr(expected, name).tobytes()
    assert stored.observations.values.tobytes() == expected.observations.values.tobytes()


def reads(method, path):
    return method == "GET" and "/runs/" in path


def writes(method, path):
    return method == "PUT" and ".npy" in path


FAULTS = pytest.mark.parametrize(
    "kind, wanted",
    [("503", reads), ("503", writes), ("cut read", reads), ("cut write", writes), ("slow", reads)],
    ids=["503 to a read", "503 to a write", "a read that is cut", "a write that is cut", "a slow answer"],
)


@pytest.mark.slow
@FAULTS
def test_faults_of_the_network_of_workers_change_no_byte(client, given, proxy, kind, wanted):
    place, how, expected = given
    options, faults = proxy
    if kind == "slow":  # It is asked again before the answer comes.
        options["config_kwargs"] = {"connect_timeout": 1, "read_timeout": 1, "retries": {"max_attempts": 0}}
    faults.set(kind, 2, wanted)
    made = co.dask.complete(place, client, storage_options=options, **how)
    assert faults.seen == 2
    assert_same(made, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, said", [("503", r"cannot be read after 5 attempts: .*check the network"), ("403", "access is denied")]
)
def test_faults_that_stay_are_told_by_the_worker_and_the_run_is_continued(client, given, proxy, kind, said):
    place, how, expected = given
    options, faults = proxy
    faults.set(kind, 10_000, reads)
    with pytest.raises(Exception, match=said) as refused:
        co.dask.complete(place, client, storage_options=options, **how)
    assert isinstance(refused.value, OSError | co.dask.ClusterFailed)
    assert not any(secret in str(refused.value) for secret in OPTIONS.values())
    faults.set(None, 0)
    assert_same(co.dask.complete(place, client, storage_options=options, resume=True, **how), expected)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["reading", "grouping", "solving"])
def test_workers_killed_beside_a_store_change_no_byte(client, given, proxy, stage):
    place, how, expected = given
    client.wait_for_workers(2, timeout=60)
    killed = []

    def progress(now, done, total):
        if now == stage and not killed:
            killed.extend(pids(client))
            kill(killed)

    made = co.dask.complete(place, client, storage_options=proxy[0], progress=progress, **how)
    assert len(killed) == 2
    assert_same(made, expected)


@pytest.mark.slow
def test_the_scheduler_goes_and_another_cluster_continues_from_the_store(client, elsewhere, given, proxy):
    (place, how, expected), (process, address) = given, elsewhere

    def progress(now, done, total):
        if now == "grouping" and process.poll() is None:
            process.kill()
            process.wait(timeout=30)

    with pytest.raises(co.dask.ClusterFailed, match=f"the scheduler at {address} is gone"):
        co.dask.complete(place, address, storage_options=proxy[0], progress=progress, worker_timeout=60, **how)
    begun = [found.name for found in Url(how["out"], proxy[0]).rglob("*.json")]
    assert any(name.endswith(".run.json") for name in begun)
    made = co.dask.complete(place, client, storage_options=proxy[0], resume=True, **how)
    assert_same(made, expected)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["reading", "solving"])
def test_a_worker_suspended_beside_a_store_changes_no_byte(client, given, proxy, stage):
    place, how, expected = given
    client.wait_for_workers(2, timeout=60)
    suspended = []

    def progress(now, done, total):
        if now == stage and not suspended:
            suspended.extend(pids(client)[:1])
            os.kill(suspended[0], signal.SIGSTOP)

    how |= {"storage_options": proxy[0], "progress": progress, "worker_timeout": 10.0}
    assert_same(co.dask.complete(place, client, **how), expected)
    assert suspended and suspended[0] not in pids(client)


@pytest.mark.slow
def test_a_worker_suspended_while_it_factors_a_tall_matrix_changes_no_byte(client, tmp_path):
    client.wait_for_workers(2, timeout=60)
    path = tall_triples(tmp_path / "t.parquet", np.random.default_rng(3), m=700_000)
    settings = {"rank": 2, "center": True, "shrinkage": 0.0, "refine": 0, "memory_limit": 6e8}
    suspended = []

    def progress(now, done, total):
        if now == "learning" and not suspended:
            suspended.extend(pids(client)[:1])
            os.kill(suspended[0], signal.SIGSTOP)

    there = co.dask.complete(path, client, out=tmp_path / "there", progress=progress, worker_timeout=10.0, **settings)
    assert suspended
    here = co.complete_triples(path, tmp_path / "here", **settings)
    assert there.coefficients.tobytes() == here.coefficients.tobytes()


def test_the_estimate_of_data_in_a_store_names_workers_and_no_secret(client, given, server, folder, run):
    place, _, _ = given
    options = {**OPTIONS, "endpoint_url": server}
    words = [word for key, value in options.items() for word in ("--storage-option", f"{key}={value}")]
    code, out, err = run("complete", place, "--dry-run", "--rank", "3", "--scheduler", client.scheduler.address, *words)
    assert (code, err) == (0, "")
    assert "entries of a 40 x 120 matrix" in out and "Workers: 1 with 4 threads" in out
    assert not any(secret in out for secret in (OPTIONS["key"], OPTIONS["secret"]))
