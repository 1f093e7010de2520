"""On a cluster of two real processes: the bytes of the local engine, whatever dies meanwhile, and never a hang."""

import faulthandler
import hashlib
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from made_tables import full_with_a_code, typos, uniform_with_a_code
from pyarrow import parquet
from threadpoolctl import threadpool_limits

import colonnade as co
from colonnade.scaling import block_solving, blocks
from colonnade.scaling.dask import cluster, runs
from colonnade.scaling.dask import triples as cluster_triples
from colonnade.scaling.dask.cluster import connected

from problems import hide, low_rank

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
da = pytest.importorskip("dask.array", reason="the extra dask is not installed")

FIXED = {"rank": 3, "center": False, "shrinkage": 0.0, "refine": 0}


@pytest.fixture(autouse=True)
def watchdog(pytestconfig):
    """A test that hangs ends the whole run, with a traceback of every thread where one can see it.

    To pytest-xdist the end looks like a crash of its worker.
    """
    seen = pytestconfig.stash.get(fault_handler_stderr_fd_key, sys.stderr)  # not what pytest captures
    faulthandler.dump_traceback_later(400, exit=True, file=seen)
    yield
    faulthandler.cancel_dump_traceback_later()


def problem(rng, m=40, n=90, n_full=8, s=12, noise=0.0):
    """Columns with numbers of entries of their own, from 6 to 12."""
    L, R = low_rank(rng, m, n, 3)
    M, seen = hide(rng, L @ R + noise * rng.standard_normal((m, n)), n_full, s)
    for j in np.flatnonzero(~seen.all(axis=0)):
        M[rng.permutation(np.flatnonzero(seen[:, j]))[: j % 7], j] = np.nan
    return M


def write_triples(path, M, rng):
    columns, rows = np.nonzero(~np.isnan(M.T))
    order = rng.permutation(rows.size)
    table = {"row": rows[order], "column": columns[order], "value": M[rows, columns][order]}
    parquet.write_table(pa.table(table), path)
    return path


def local(data, **settings):
    with threadpool_limits(1, user_api="blas"):
        return co.complete(data, method="full columns", **settings)


def assert_same(completion, expected):
    assert completion.coefficients.tobytes() == expected.coefficients.tobytes()
    assert completion.basis.tobytes() == expected.basis.tobytes()
    assert completion.status.tobytes() == expected.status.tobytes()
    assert completion.choices == expected.choices and completion.shape == expected.shape
    for name in ("indptr", "rows", "values", "full_columns"):
        assert getattr(completion.observations, name).tobytes() == getattr(expected.observations, name).tobytes()


def contents(place):
    files = sorted(path for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("settings", [FIXED, {}], ids=["fixed", "auto"])
@pytest.mark.parametrize("chunks", [(40, 20), (7, 90), (13, 31)], ids=["columns", "rows", "both"])
def test_an_array_gives_the_bytes_of_complete(client, settings, chunks):
    M = problem(np.random.default_rng(1), noise=0.1)
    with threadpool_limits(1, user_api="blas"):
        completion = co.dask.complete(da.from_array(M, chunks=chunks), client, **settings)
    assert_same(completion, local(M, **settings))
    assert completion.optimism == local(M, **settings).optimism


def test_single_precision_weights_and_files(client, tmp_path):
    rng = np.random.default_rng(2)
    M = problem(rng, noise=0.1)
    small = M.astype(np.float32)
    completion = co.dask.complete(da.from_array(small, chunks=(40, 30)), client, **FIXED)
    assert completion.dtype == np.float32
    assert_same(completion, local(small, **FIXED))
    weighed = co.Observations.from_dense(M, weights=rng.uniform(0.5, 2, M.shape))
    assert_same(co.dask.complete(weighed, client, **FIXED), local(weighed, **FIXED))
    path = write_triples(tmp_path / "t.parquet", M, rng)
    assert_same(co.dask.complete(path, client, **FIXED), local(co.read(path), **FIXED))


def test_triples_into_a_folder_give_the_bytes_of_complete_triples(client, tmp_path):
    rng = np.random.default_rng(3)
    path = write_triples(tmp_path / "t.parquet", problem(rng, noise=0.1), rng)
    co.dask.complete(path, client, out=tmp_path / "there", block_entries=100)
    co.complete_triples(path, tmp_path / "here", block_entries=100)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert sorted(found.name for found in tmp_path.iterdir()) == ["here", "t.parquet", "there"]


@pytest.mark.parametrize("table", [uniform_with_a_code, full_with_a_code, typos])
def test_outliers_are_left_out_as_complete_does(client, tmp_path, table):
    rng = np.random.default_rng(6)
    M = table(rng)
    expected = local(M)
    array = da.from_array(M, chunks=(40, 20))
    with threadpool_limits(1, user_api="blas"):
        found = [co.dask.complete(array, client), co.dask.complete(co.Observations.from_dense(M), client)]
    found.append(co.dask.complete(array, client, out=tmp_path / "array"))
    path = write_triples(tmp_path / "t.parquet", M, rng)
    found.append(co.dask.complete(path, client, out=tmp_path / "there", block_entries=100, shape=M.shape))
    for completion in found:
        assert_same(completion, expected)
        assert completion.used.values.tobytes() == expected.used.values.tobytes()
        np.testing.assert_array_equal(completion.certificates().verdict, expected.certificates().verdict)
    co.complete_triples(path, tmp_path / "here", block_entries=100, shape=M.shape)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_tall_matrix_with_outliers_gives_the_bytes_of_complete_triples(client, tmp_path, monkeypatch):
    rng = np.random.default_rng(16)
    path = write_triples(tmp_path / "t.parquet", typos(rng, m=200), rng)
    for module in (block_solving, cluster_triples):
        monkeypatch.setattr(module, "exceeds_memory", lambda shape, memory: True)
    settings = {"rank": 3, "center": True, "shrinkage": 0.01, "refine": 0, "block_entries": 900, "shape": (200, 60)}
    stored = co.dask.complete(path, client, out=tmp_path / "there", **settings)
    co.complete_triples(path, tmp_path / "here", **settings)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert stored.observations.values.size - stored.used.values.size == 3


@pytest.mark.slow
def test_a_basis_larger_than_memory_gives_the_bytes_of_complete_triples(client, tmp_path, monkeypatch):
    rng = np.random.default_rng(15)
    path = write_triples(tmp_path / "t.parquet", problem(rng, m=200, s=60), rng)
    for module in (block_solving, cluster_triples):
        monkeypatch.setattr(module, "exceeds_memory", lambda shape, memory: True)
        monkeypatch.setattr(module, "groups_of_blocks", lambda entries, todo, r, memory: [todo[:3], todo[3:]])
    co.dask.complete(path, client, out=tmp_path / "there", block_entries=500, **FIXED)
    co.complete_triples(path, tmp_path / "here", block_entries=500, **FIXED)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.parametrize("chunks", [(40, 20), (7, 90)], ids=["columns", "rows"])
def test_zarr_to_memory_and_to_a_folder(client, tmp_path, chunks):
    zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")
    M = problem(np.random.default_rng(4), noise=0.1)
    names = {"row_names": [f"r{i}" for i in range(40)], "column_names": [f"c{j}" for j in range(90)]}
    array = zarr.create_array(str(tmp_path / "x.zarr"), data=M, chunks=chunks, fill_value=np.nan, attributes=names)
    assert array.shape == M.shape
    with threadpool_limits(1, user_api="blas"):
        completion = co.dask.complete(tmp_path / "x.zarr", client)
    assert_same(completion, local(co.read(tmp_path / "x.zarr")))
    assert list(completion.observations.row_names) == names["row_names"]
    stored = co.dask.complete(tmp_path / "x.zarr", client, out=tmp_path / "out")
    assert_same(stored, local(M))
    assert list(stored.observations.column_names) == names["column_names"]
    turned = co.dask.complete(tmp_path / "x.zarr", client, transpose=False, out=tmp_path / "out", resume=True)
    assert_same(turned, stored)


def pids(client):
    return list(client.run(os.getpid).values())


def kill(processes):
    for pid in processes:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("how_many, into_folder", [(1, False), (2, True)], ids=["one", "all"])
def test_workers_killed_in_the_middle_change_no_byte(client, tmp_path, how_many, into_folder):
    M = problem(np.random.default_rng(5), n=300)
    client.wait_for_workers(2, timeout=60)
    doomed, killed = pids(client)[:how_many], []

    def progress(stage, done, total):
        if stage == "solving" and not killed:
            killed.extend(doomed)
            kill(doomed)

    given = {"out": tmp_path / "out"} if into_folder else {}
    completion = co.dask.complete(da.from_array(M, chunks=(40, 3)), client, progress=progress, **FIXED, **given)
    assert killed
    assert_same(completion, local(M, **FIXED))
    assert not list(tmp_path.rglob("*.unfinished")) and not (tmp_path / "out.partial").exists()


@pytest.mark.parametrize("stage, into_folder", [("reading", False), ("solving", True)])
@pytest.mark.slow
def test_a_suspended_worker_changes_no_byte_and_hangs_nothing(client, tmp_path, stage, into_folder):
    M = problem(np.random.default_rng(16), n=120)
    client.wait_for_workers(2, timeout=60)
    suspended = []

    def progress(now, done, total):
        if now == stage and not suspended:
            suspended.extend(pids(client)[:1])
            os.kill(suspended[0], signal.SIGSTOP)

    given = {"out": tmp_path / "out"} if into_folder else {}
    settings = {"progress": progress, "worker_timeout": 5.0, **FIXED}
    completion = co.dask.complete(da.from_array(M, chunks=(40, 12)), client, **settings, **given)
    assert suspended and suspended[0] not in pids(client)  # it was started anew
    assert_same(completion, local(M, **FIXED))


class Clock:
    """Seconds that pass when somebody looks."""

    def __init__(self, *seconds):
        self.seconds = list(seconds)

    def monotonic(self):
        return self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]


@pytest.mark.parametrize(
    "looks, beats, restarted",
    [
        ([0, 0, 30, 61], [5, 5, 5], True),
        ([0, 0, 30, 60], [5, 5, 5], False),  # not yet longer than the deadline
        ([0, 0, 30, 61, 90], [5, 5, 6, 6], False),  # slow, not suspended
        ([0, 0, 1000], [5, 5], False),  # this process was suspended itself
        ([0, 0, 1000, 1030, 1061], [5, 5, 5, 5], True),
    ],
)
def test_only_workers_that_are_silent_for_long_are_started_anew(monkeypatch, looks, beats, restarted):
    monkeypatch.setattr(cluster, "time", Clock(*looks))
    scheduler = SimpleNamespace(address="tcp://nowhere", identity="identity", restart_workers="restart")
    asked = []

    def sync(function, callback_timeout, **arguments):
        if function == "identity":
            return {"workers": {"silent": {"last_seen": beats.pop(0)}, "lively": {"last_seen": float(len(beats))}}}
        return asked.append(arguments["workers"])

    work = cluster.Work(SimpleNamespace(status="running", scheduler=scheduler, sync=sync), 60.0)
    while beats:
        work._look()
    assert asked == ([["silent"]] if restarted else [])


def deadly(array, bullets):
    """The array, of which the chunk that begins at column 40 kills its worker as long as there are files in a folder.

    The first kill takes away the file "once".
    """
    place = str(bullets)

    def chunk(values, block_info=None):
        if block_info[0]["array-location"][1][0] == 40 and os.listdir(place):
            if os.path.exists(place + "/once"):
                os.unlink(place + "/once")
            os.kill(os.getpid(), signal.SIGKILL)
        return values

    return array.map_blocks(chunk, dtype=array.dtype, meta=array._meta)


@pytest.fixture
def bullets(tmp_path):
    (tmp_path / "bullets").mkdir()
    return tmp_path / "bullets"


@pytest.mark.slow
def test_a_chunk_that_kills_its_worker_once_is_read_again(client, bullets):
    M = problem(np.random.default_rng(6))
    (bullets / "once").touch()
    x = deadly(da.from_array(M, chunks=(40, 20)), bullets)
    assert_same(co.dask.complete(x, client, **FIXED), local(M, **FIXED))
    assert not list(bullets.iterdir())


def allow(client, failures):
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures))


@pytest.mark.slow
def test_a_block_that_always_kills_its_worker_is_named_and_the_rest_is_finished(client, tmp_path, bullets):
    M = problem(np.random.default_rng(7))
    given = da.from_array(M, chunks=(40, 20))
    (bullets / "always").touch()
    x = deadly(given, bullets)
    allow(client, 0)  # it takes seconds to start a worker
    try:
        with pytest.raises(co.dask.ClusterFailed, match=r"1 of 5 blocks failed .*: columns 40 to 59\. The others"):
            co.dask.complete(x, client, out=tmp_path / "out", **FIXED)
    finally:
        allow(client, 1)
    blocks = tmp_path / "out.partial" / "blocks"
    done = {path.name for path in blocks.glob("*.entries.json")}
    assert done == {f"00000{k}.entries.json" for k in (0, 1, 3, 4)}
    with pytest.raises(FileExistsError, match="other input"):
        co.dask.complete(given, client, out=tmp_path / "out", resume=True, **FIXED)
    (bullets / "always").unlink()
    assert_same(co.dask.complete(x, client, out=tmp_path / "out", resume=True, **FIXED), local(M, **FIXED))


def make_block_hard(client, k, bullets):
    """Let every worker, also those that are started later, die of block k or wait as long as a folder says so."""
    place = str(bullets)

    class Hard(distributed.WorkerPlugin):
        name = "hard"

        def setup(self, worker):
            import time

            from colonnade.scaling.dask import tasks

            read_block = tasks.read_block

            def hard(where, number, record):
                if number == k and os.path.exists(place + "/always"):
                    os.kill(os.getpid(), signal.SIGKILL)
                while number == k and os.path.exists(place + "/wait"):
                    time.sleep(0.05)
                return read_block(where, number, record)

            tasks.read_block = hard

    client.register_plugin(Hard())


@pytest.mark.slow
def test_the_command_line_names_a_block_that_always_kills_its_worker(client, folder, run, bullets, monkeypatch):
    rng = np.random.default_rng(13)
    write_triples(folder / "t.parquet", problem(rng), rng)
    monkeypatch.setattr(blocks, "BLOCK_ENTRIES", 300)
    settings = "--rank", "3", "--center", "no", "--shrinkage", "0", "--refine", "0"
    there = "complete", "t.parquet", "-o", "there", "--engine", "dask", "--scheduler", client.scheduler.address
    assert run("complete", "t.parquet", "-o", "here", "--engine", "local", *settings)[0] == 0
    n_blocks = co.Completion.load("here").n_blocks
    (bullets / "always").touch()
    make_block_hard(client, 1, bullets)
    allow(client, 0)
    try:
        code, out, err = run(*there, *settings)
    finally:
        allow(client, 1)
    lo, hi = co.Completion.load("here").starts[1:3]
    assert code == 6 and out == "" and err.count("\n") == 1
    assert f"1 of {n_blocks} blocks failed for good" in err and f": columns {lo} to {hi - 1}. The others" in err
    done = {path.name for path in (folder / "there.partial" / "blocks").glob("*.solution.json")}
    assert not (folder / "there").exists() and done == {f"{k:06d}.solution.json" for k in range(n_blocks) if k != 1}
    (bullets / "always").unlink()
    assert run(*there, *settings, "--resume")[0] == 0
    assert contents(folder / "there") == contents(folder / "here")
    client.unregister_worker_plugin("hard")


@pytest.mark.slow
def test_the_command_line_is_interrupted_while_a_block_takes_long(client, folder, run, bullets):
    rng = np.random.default_rng(14)
    write_triples(folder / "t.parquet", problem(rng), rng)
    (bullets / "wait").touch()
    make_block_hard(client, 0, bullets)
    there = "complete", "t.parquet", "-o", "there", "--scheduler", client.scheduler.address, "--rank", "3"
    process = subprocess.Popen([sys.executable, "-m", "colonnade", *there], stderr=subprocess.PIPE, text=True)
    try:
        while not (folder / "there.partial" / "space.json").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)  # ends although the block does not, as long as the folder says wait
    finally:
        process.kill()
    assert process.returncode in (130, -signal.SIGINT) and (bullets / "wait").exists()
    assert "--resume" in err and "Traceback" not in err
    assert not (folder / "there").exists()
    (bullets / "wait").unlink()
    assert run(*there, "--resume")[0] == 0
    assert run("complete", "t.parquet", "-o", "here", "--engine", "local", "--rank", "3")[0] == 0
    assert contents(folder / "there") == contents(folder / "here")
    client.unregister_worker_plugin("hard")


class OneFuture:
    """A future whose status is another one each time that it is asked for, until the last."""

    def __init__(self, *states):
        self._states = list(states)

    @property
    def status(self):
        return self._states.pop(0) if len(self._states) > 1 else self._states[0]

    def add_done_callback(self, call):
        call(self)


@pytest.mark.parametrize("states", [["lost", "finished"], ["pending", "lost", "lost", "finished"]])
def test_a_result_that_was_lost_with_its_worker_is_waited_for(monkeypatch, states):
    monkeypatch.setattr(cluster, "_LOOK", 0.01)
    scheduler = SimpleNamespace(address="tcp://nowhere", identity=None)
    facts = {"workers": {"one": {"last_seen": 0}}}
    client = SimpleNamespace(status="running", scheduler=scheduler, sync=lambda *_, **__: facts)
    futures = [OneFuture(*states), OneFuture("finished")]
    found = list(cluster.Work(client, 5.0).finished({0: "a", 1: "b"}, lambda keys: [futures[k] for k in keys]))
    assert found == [(1, futures[1]), (0, futures[0])]


@pytest.mark.slow
def test_the_scheduler_goes_and_the_run_is_continued_on_another_cluster(client, elsewhere, tmp_path):
    process, address = elsewhere
    rng = np.random.default_rng(8)
    path = write_triples(tmp_path / "t.parquet", problem(rng, n=300), rng)

    def progress(stage, done, total):
        if stage == "solving" and process.poll() is None:
            process.kill()
            process.wait(timeout=30)

    settings = {**FIXED, "block_entries": 200, "out": tmp_path / "out"}
    with pytest.raises(co.dask.ClusterFailed, match=f"the scheduler at {address} is gone"):
        co.dask.complete(path, address, progress=progress, worker_timeout=60, **settings)
    left = len(list((tmp_path / "out.partial" / "blocks").glob("*.solution.json")))
    assert left >= 1
    co.dask.complete(path, client, resume=True, **settings)
    co.complete_triples(path, tmp_path / "here", block_entries=200, rank=3, center=False, shrinkage=0.0, refine=0)
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


def test_a_suspended_scheduler_is_an_error_not_a_hang(elsewhere, tmp_path):
    process, address = elsewhere
    x = da.from_array(problem(np.random.default_rng(17)), chunks=(40, 10))

    def progress(stage, done, total):
        if stage == "reading":
            process.send_signal(signal.SIGSTOP)

    with pytest.raises(co.dask.ClusterFailed, match=f"the scheduler at {address} is gone or does not answer"):
        co.dask.complete(x, address, progress=progress, worker_timeout=5.0, **FIXED)
    with pytest.raises(co.dask.ClusterFailed, match=f"no scheduler answers at {address} .*start it, or name another"):
        co.dask.complete(x, address, worker_timeout=0.5, **FIXED)


def test_no_workers_and_no_scheduler_are_errors_not_hangs(tmp_path):
    x = da.from_array(problem(np.random.default_rng(9)), chunks=(40, 30))
    with (
        distributed.LocalCluster(
            host="127.0.0.1", n_workers=0, dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False}
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as empty,
        pytest.raises(co.dask.ClusterFailed, match="has had no worker for 2 seconds"),
    ):
        co.dask.complete(x, empty, worker_timeout=2.0, **FIXED)
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1 s"}),
        pytest.raises(co.dask.ClusterFailed, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"),
    ):
        co.dask.complete(x, "tcp://127.0.0.1:9", **FIXED)


def test_bad_input(client, tmp_path):
    M = problem(np.random.default_rng(10))
    M[3, 51] = np.inf
    for given, message in (
        ({"x": da.from_array(M, chunks=(40, 20))}, r"row 3, column 51 is inf \(1 infinite in its block"),
        ({"x": da.from_array(M, chunks=(40, 20)), "out": tmp_path / "out"}, "row 3, column 51 is inf"),
        ({"x": da.ones(5)}, "two dimensions"),
        ({"x": da.ones((5, 5), dtype=complex)}, "real numbers"),
        ({"x": da.ones((5, 5))[da.ones(5) > 0]}, "compute_chunk_sizes"),
        ({"x": da.full((5, 5), np.nan)}, "no entry of the 5 x 5 table is known"),
        (
            {"x": da.from_array(np.where(np.eye(5), np.nan, 1.0)), "center": True},
            r"no column is known.*Leave out center",
        ),
        ({"x": da.ones((5, 5)), "resume": True}, "name it with out"),
        ({"x": da.ones((5, 5)), "client": 3}, "client must be"),
        ({"x": da.ones((5, 5)), "worker_timeout": 0}, "worker_timeout must be"),
        ({"x": tmp_path / "none.parquet"}, "none.parquet"),
        ({"x": co.Observations.from_dense(np.eye(5)), "out": tmp_path / "out"}, "complete them without out"),
    ):
        with pytest.raises((ValueError, TypeError, OSError), match=message):
            co.dask.complete(**{"client": client, **given})
    assert not list(tmp_path.iterdir())


def listening(pids):
    """The addresses at which processes listen, in the hexadecimal of /proc."""
    sockets = set()
    for pid in pids:
        for link in os.listdir(f"/proc/{pid}/fd"):
            try:
                sockets.add(os.readlink(f"/proc/{pid}/fd/{link}"))
            except OSError:
                continue
    found = []
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}") as lines:
            parts = [line.split() for line in lines]
        found += [p[1].split(":")[0] for p in parts if p[3] == "0A" and f"socket:[{p[9]}]" in sockets]
    return found


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="needs /proc")
@pytest.mark.slow
def test_workers_of_our_own_listen_on_loopback_only():
    before = len(listening([os.getpid()]))
    with connected(None, 30.0) as own:
        assert own.scheduler.address.startswith("tcp://127.0.0.1:")
        found = listening([os.getpid(), *pids(own)])
    assert len(found) > before and set(found) == {"0100007F"}


def test_tls_is_configured_as_dask_is():
    pytest.importorskip("cryptography", reason="needed for certificates")
    import dask

    keys = distributed.Security.temporary()
    sides = ("scheduler", "worker", "client")
    tls = {
        f"distributed.comm.tls.{side}.{part}": getattr(keys, f"tls_{side}_{part}")
        for side in sides
        for part in ("cert", "key")
    }
    with (
        dask.config.set(
            {**tls, "distributed.comm.tls.ca-file": keys.tls_ca_file, "distributed.comm.require-encryption": True}
        ),
        distributed.LocalCluster(
            host="tls://127.0.0.1",
            n_workers=1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            security=distributed.Security(),
            processes=False,
        ) as cluster,
    ):
        assert cluster.scheduler_address.startswith("tls://")
        M = problem(np.random.default_rng(11))
        x = da.from_array(M, chunks=(40, 30))
        assert_same(co.dask.complete(x, cluster.scheduler_address, **FIXED), local(M, **FIXED))


@pytest.mark.slow
def test_the_command_line(client, folder, run):
    rng = np.random.default_rng(12)
    M = problem(rng)
    write_triples(folder / "t.parquet", M, rng)
    np.save(folder / "t.npy", M)
    address = client.scheduler.address
    settings = "--rank", "3", "--center", "no", "--shrinkage", "0", "--refine", "0"
    code, out, err = run("complete", "t.parquet", "-o", "there", "--engine", "dask", "--scheduler", address, *settings)
    assert (code, err) == (0, "") and "in 1 block of columns" in out
    assert run("complete", "t.parquet", "-o", "here", "--engine", "local", *settings)[0] == 0
    assert contents(folder / "there") == contents(folder / "here")
    assert run("complete", "t.npy", "-o", "there.npy", "--scheduler", address, *settings)[0] == 0
    assert run("complete", "t.npy", "-o", "here.npy", *settings)[0] == 0
    assert (folder / "there.npy").read_bytes() == (folder / "here.npy").read_bytes()
    code, _, err = run("complete", "t.npy", "-o", "x.npy", "--engine", "local", "--scheduler", address)
    assert code == 2 and "--scheduler needs --engine dask" in err
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "1 s"}):
        code, _, err = run("complete", "t.npy", "-o", "x.npy", "--scheduler", "tcp://127.0.0.1:9")
    assert code == 6 and "no scheduler answers" in err and err.count("\n") == 1 and not (folder / "x.npy").exists()


@pytest.mark.parametrize(
    "address, is_open",
    [
        ("tcp://10.0.0.1:8786", True),
        ("cluster.example.org:8786", True),
        ("tcp://[2001:db8::1]:8786", True),
        ("tls://10.0.0.1:8786", False),
        ("tcp://127.0.0.1:8786", False),
        ("localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("inproc://10.0.0.1/1/1", False),
        (None, False),
    ],
)
def test_a_note_about_trust(folder, run, monkeypatch, address, is_open):
    np.save(folder / "t.npy", problem(np.random.default_rng(12)))
    monkeypatch.setattr(co.dask, "complete", lambda x, client, **_: co.complete(x, rank=3))
    where = ["--engine", "dask"] if address is None else ["--scheduler", address]
    code, _, err = run("complete", "t.npy", "-o", "x.npy", *where)
    assert code == 0 and err.count("\n") == is_open and ("tcp:// is neither encrypted" in err) == is_open
    assert "a scheduler that you trust" in " ".join(run("complete", "--help")[1].split())


def test_columns_are_cut_by_entries_and_by_number(monkeypatch):
    monkeypatch.setattr(runs, "_PART_ENTRIES", 10)
    monkeypatch.setattr(runs, "_PART_COLUMNS", 4)
    counts = [20, 20, 5, 5, 1, *[0] * 9, 12, 3]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    rows = np.concatenate([np.arange(count) for count in counts])
    o = co.Observations((20, 16), indptr, rows, np.ones(rows.size), None, np.array([0, 1]))
    assert runs._parts(o) == [0, 1, 2, 4, 8, 12, 15, 16]


def test_of_several_infinite_entries_the_first_is_named():
    from colonnade.scaling.dask.tasks import observations_of

    chunk = np.ones((6, 3))
    chunk[3, 1], chunk[5, 0] = -np.inf, np.inf
    with pytest.raises(ValueError, match=r"row 3, column 21 is -inf \(2 infinite in its block"):
        observations_of(chunk, 20)
