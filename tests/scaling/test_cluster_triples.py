"""Triples on a cluster of two real processes: workers do every stage, and any of them may die in it."""

import os
import signal
from threading import Timer

import dask.array as da
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from test_dask import FIXED, contents, kill, pids, problem, watchdog  # noqa: F401

import colonnade as co
from colonnade.scaling import block_grouping, block_learning, block_solving, blocks
from colonnade.scaling.dask import cluster
from colonnade.scaling.triples import sorted_runs

from made_triples import triples_of, write_triples

pytest.importorskip("distributed", reason="the extra dask is not installed")
STAGES = "reading", "grouping", "learning", "solving"


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Triples in random order, in several runs and blocks, and the folder of the local engine."""
    monkeypatch.setattr(sorted_runs, "RUN_LINES", 500)
    rng = np.random.default_rng(8)
    M = problem(rng, n=300)
    columns, rows = np.nonzero(~np.isnan(M.T))
    order = rng.permutation(rows.size)
    table = {"row": rows[order], "column": columns[order], "value": M[rows, columns][order]}
    parquet.write_table(pa.table(table), tmp_path / "t.parquet", row_group_size=250)
    co.complete_triples(tmp_path / "t.parquet", tmp_path / "here", block_entries=200, **FIXED)
    return tmp_path / "t.parquet"


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_workers_killed_in_any_stage_change_no_byte(client, given, tmp_path, stage):
    client.wait_for_workers(2, timeout=60)
    killed = []

    def progress(now, done, total):
        if now == stage and not killed:
            killed.extend(pids(client))
            kill(killed)

    co.dask.complete(given, client, out=tmp_path / "out", block_entries=200, progress=progress, **FIXED)
    assert len(killed) == 2
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


def test_a_table_without_full_columns_has_the_bytes_of_the_local_engine(client, tmp_path):
    rng = np.random.default_rng(4)
    M = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 300)) + 0.1 * rng.standard_normal((40, 300))
    known = np.where(rng.random(M.shape) < 0.4, M, np.nan)
    path = write_triples(tmp_path / "t.parquet", triples_of(known, rng))
    stored = co.dask.complete(path, client, out=tmp_path / "there", block_entries=500)
    co.complete_triples(path, tmp_path / "here", block_entries=500)
    assert stored.n_blocks > 5 and contents(tmp_path / "there") == contents(tmp_path / "here")
    in_memory = co.dask.complete(da.from_array(known, chunks=(40, 60)), client)
    np.testing.assert_array_equal(in_memory.to_dense(), co.complete(known, method="factor model").to_dense())


@pytest.mark.slow
@pytest.mark.parametrize("what", ["the plan of the blocks", "the number of entries", "the manifest", "the end"])
def test_workers_killed_in_what_one_of_them_does_change_no_byte(client, given, tmp_path, monkeypatch, what):
    client.wait_for_workers(2, timeout=60)
    mark, call = tmp_path / "once", cluster.Work.call
    mark.touch()

    def deadly(work, named, function, *arguments):
        if named == what:
            function = dying_after(function, str(mark))
        return call(work, named, function, *arguments)

    monkeypatch.setattr(cluster.Work, "call", deadly)
    co.dask.complete(given, client, out=tmp_path / "out", block_entries=200, **FIXED)
    assert not mark.exists()
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


def dying_after(function, mark):
    """The function, whose first worker does all of its work and dies before it answers."""

    def killed(*arguments):
        found = function(*arguments)
        if os.path.exists(mark):
            os.unlink(mark)
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    return killed


@pytest.mark.slow
def test_workers_killed_while_they_factor_a_tall_matrix_change_no_byte(client, tmp_path):
    """So tall that its complete columns are beyond the least limit of memory."""
    client.wait_for_workers(2, timeout=60)
    path = tall_triples(tmp_path / "t.parquet", np.random.default_rng(3), m=700_000)
    settings = {"rank": 2, "center": True, "shrinkage": 0.0, "refine": 0, "memory_limit": 6e8}
    stored, killed = co.complete_triples(path, tmp_path / "here", **settings), []

    def progress(now, done, total):
        if now == "learning" and not killed:
            killed.extend(pids(client))
            Timer(0.3, kill, (killed,)).start()

    co.dask.complete(path, client, out=tmp_path / "there", progress=progress, **settings)
    assert len(killed) == 2 and stored.choices["refine"] == "none, because of the memory limit"
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["grouping", "learning"])  # tests/scaling/test_dask.py has the other two
def test_a_suspended_worker_changes_no_byte(client, given, tmp_path, stage):
    client.wait_for_workers(2, timeout=60)
    suspended = []

    def progress(now, done, total):
        if now == stage and not suspended:
            suspended.extend(pids(client)[:1])
            os.kill(suspended[0], signal.SIGSTOP)

    how = {"block_entries": 200, "progress": progress, "worker_timeout": 10.0}
    co.dask.complete(given, client, out=tmp_path / "out", **how, **FIXED)
    assert suspended and contents(tmp_path / "out") == contents(tmp_path / "here")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["reading", "grouping", "learning"])
def test_the_scheduler_goes_in_any_stage_and_another_cluster_goes_on(client, elsewhere, given, tmp_path, stage):
    process, address = elsewhere

    def progress(now, done, total):
        if now == stage and process.poll() is None:
            process.kill()
            process.wait(timeout=30)

    how = {"out": tmp_path / "out", "block_entries": 200, **FIXED}
    with pytest.raises(co.dask.ClusterFailed, match=f"the scheduler at {address} is gone"):
        co.dask.complete(given, address, progress=progress, worker_timeout=60, **how)
    begun = {path.name for path in (tmp_path / "out.partial").rglob("*.json")}
    assert any(name.endswith(".run.json") for name in begun)
    co.dask.complete(given, client, resume=True, **how)
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


def test_this_process_opens_no_file_of_entries(client, given, tmp_path, monkeypatch):
    def refused(*arguments, **options):
        raise AssertionError("the client reads or writes entries")

    for module, names in (
        (sorted_runs, ("pieces", "opened", "read_range", "read_array", "order_of", "write_entries")),
        (block_grouping, ("write_entries",)),
        (block_solving, ("read_block", "write_solution")),
        (blocks, ("screened", "learn_from_blocks", "learned_model", "Blocks")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, refused)  # here; workers have modules of their own
    co.dask.complete(given, client, out=tmp_path / "out", block_entries=200, **FIXED)
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


def tall_triples(path, rng, m=30_000, n=12, d=6):
    """A tall matrix of rank 2 with d full columns, in the order of columns."""
    M = rng.standard_normal((m, 2)) @ rng.standard_normal((2, n + d)) + 0.01 * rng.standard_normal((m, n + d))
    rows = [np.arange(m) if j >= n else np.sort(rng.permutation(m)[:40]) for j in range(n + d)]
    columns = np.concatenate([np.full(at.size, j) for j, at in enumerate(rows)])
    rows = np.concatenate(rows)
    parquet.write_table(pa.table({"row": rows, "column": columns, "value": M[rows, columns]}), path)
    return path


@pytest.mark.parametrize("center", [False, True])
def test_the_column_space_of_tall_matrices_is_computed_by_all_workers(client, tmp_path, monkeypatch, center):
    path = tall_triples(tmp_path / "t.parquet", np.random.default_rng(3))
    settings = {"rank": 2, "center": center, "shrinkage": 0.0, "refine": 0, "block_entries": 50_000}
    monkeypatch.setattr(block_learning, "_COPIES", 10**9)
    client.run(set_copies, 10**9)
    try:
        co.dask.complete(path, client, out=tmp_path / "there", **settings)
    finally:
        client.run(set_copies, 10)
    stored = co.complete_triples(path, tmp_path / "here", **settings)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert stored.choices["refine"] == "none, because of the memory limit"


def set_copies(count):
    from colonnade.scaling import block_learning

    block_learning._COPIES = count


@pytest.mark.slow
def test_a_store_and_workers_that_have_only_the_package(client, given, tmp_path, run):
    pytest.importorskip("moto", reason="a server for tests is not installed")
    from colonnade._support.storage import Url

    from stores import BUCKET, OPTIONS, s3_server

    with s3_server() as endpoint:
        options = {**OPTIONS, "endpoint_url": endpoint}
        (Url(f"s3://{BUCKET}/x", options) / "t.parquet").write_bytes(given.read_bytes())
        how = {"storage_options": options, "block_entries": 200, **FIXED}
        there = co.dask.complete(f"s3://{BUCKET}/x/", client, out=f"s3://{BUCKET}/out", **how)
        here = co.Completion.load(tmp_path / "here")
        assert there.coefficients.tobytes() == here.coefficients.tobytes()
        assert there.observations.values.tobytes() == here.observations.values.tobytes()
        found = Url(f"s3://{BUCKET}/out", options)
        assert not [one for one in found.rglob("*") if "runs" in str(one)]
        assert OPTIONS["secret"].encode() not in (found / "facts.json").read_bytes()
        words = [word for key, value in options.items() for word in ("--storage-option", f"{key}={value}")]
        where = f"s3://{BUCKET}/x/", "-o", f"s3://{BUCKET}/by-command", "--scheduler", client.scheduler.address
        code, out, err = run("complete", *where, *words, "--rank", "3")
        assert (code, err) == (0, "") and f"Written: s3://{BUCKET}/by-command" in out
        assert co.Completion.load(f"s3://{BUCKET}/by-command", storage_options=options).shape == (40, 300)


def test_versions_are_compared_before_anything_runs(client, given, tmp_path, monkeypatch):
    from colonnade.scaling.dask import versions

    found = versions.versions_on(client)
    assert len(found) == 4 and found["client"]["colonnade"] == co.__version__
    assert versions.differences(found) == []
    other = {**found, "tcp://w": {**found["client"], "colonnade": None, "numpy": "1.0"}}
    assert versions.differences(other) == [
        f"colonnade: {co.__version__} here, missing at tcp://w",
        f"numpy: {np.__version__} here, 1.0 at tcp://w",
    ]
    monkeypatch.setattr(versions, "__version__", "9.9")
    with pytest.raises(co.dask.ClusterFailed, match=r"has colonnade .*, and this process has 9\.9: install"):
        co.dask.complete(given, client, out=tmp_path / "out", **FIXED)
    assert not (tmp_path / "out.partial").exists()


def test_the_doctor_and_the_estimate_for_a_cluster(client, given, folder, run, monkeypatch):
    address = client.scheduler.address
    code, out, err = run("doctor", "--scheduler", address)
    assert (code, err) == (0, "")
    assert "Cluster: 2 workers with 2 threads" in out and "Versions: all versions are the same" in out
    code, out, err = run("complete", given, "--dry-run", "--scheduler", address)
    assert (code, err) == (0, "") and "Workers: 1 with 4 threads and 1.9 GB of memory each" in out
    from colonnade.scaling.dask import versions

    facts = versions.facts_of_cluster(address)
    monkeypatch.setattr(versions, "facts_of_cluster", lambda _: {**facts, "differences": ["colonnade: 1 here, 2 at w"]})
    code, out, err = run("doctor", "--scheduler", address)
    assert code == 6 and "colonnade: 1 here" in out and "install the same version" in err
