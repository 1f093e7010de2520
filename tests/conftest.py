import os
import subprocess
import sys
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the processors, so further threads only wait: those of BLAS took a quarter of the processor time.
    # Tests about threads set their number themselves.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Compiling takes 10 s for each type of numbers. Two processes do it while the workers collect the tests. Workers, and
# the processes that tests start, then find the machine code on disk.
_COMPILING = []


def pytest_configure(config):
    is_parallel = bool(getattr(config.option, "tx", None)) and "PYTEST_XDIST_WORKER" not in os.environ
    if is_parallel and not config.option.collectonly:
        script = Path(__file__).with_name("compile_kernels.py")
        commands = [[sys.executable, str(script), dtype] for dtype in ("float64", "float32")]
        _COMPILING.extend(subprocess.Popen(command) for command in commands)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One worker more than processors, because the worker that has the tests of clusters mostly waits."""
    from colonnade._support.threads import default_threads

    return default_threads() + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids):
    """Begin with the tests when the functions are compiled."""
    for process in _COMPILING:
        process.wait()


def pytest_addoption(parser):
    parser.addoption("--seeds", type=int, default=2, help="how many seeds the tests that take one are run for")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        seeds = range(metafunc.config.getoption("--seeds"))
        metafunc.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow) if k else k for k in seeds])


# Files whose tests share what is expensive to start, a cluster or a browser or a finished run: one worker has them all.
# Groups of pytest-xdist 3.8 would say it beside each test, but pytest 9.2 ignores them.
_TOGETHER = {
    "test_cluster_stores.py": "cluster",
    "test_cluster_triples.py": "cluster",
    "test_dask.py": "cluster",
    "test_examples.py": "examples",  # Jupyter kernels that start at the same time may choose the same ports.
    "test_notebook.py": "examples",
    "test_experiments.py": "experiments",
    "test_lm_eval.py": "lm_eval",
    "test_report_browser.py": "browser",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class Together(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            return _TOGETHER.get(nodeid.partition("::")[0].rpartition("/")[2], nodeid)

    return Together(config, log)


@pytest.fixture
def rng(seed):
    import numpy as np

    return np.random.default_rng(seed)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Runs the command line in a folder of its own: exit code, output and errors.

    It is what `python -m colonnade` does, without the seconds that a process needs to start.
    """
    import signal

    from colonnade.interfaces import cli

    def go(*arguments):
        monkeypatch.setattr(sys, "argv", ["colonnade", *map(str, arguments)])
        before, code = signal.getsignal(signal.SIGTERM), 0
        try:
            cli.run()
        except SystemExit as end:
            code = end.code
        finally:
            signal.signal(signal.SIGTERM, before)
        return code, *capsys.readouterr()

    return go


@pytest.fixture(scope="session")
def client():
    """A cluster of two processes: one for all tests, which one worker of pytest-xdist runs."""
    import dask
    import distributed

    calm = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.scheduler.no-workers-timeout": "60 s",
        "distributed.deploy.lost-worker-timeout": "1 h",  # a worker may be killed again while it is started
        "distributed.comm.timeouts.connect": "10 s",  # for so long the dead are asked for their results
    }
    with (
        dask.config.set(calm),
        distributed.LocalCluster(
            host="127.0.0.1",
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as made,
    ):
        yield made


_OTHER_PROCESS = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(host="127.0.0.1", n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0",
                           scheduler_kwargs={"dashboard": False}, silence_logs=50)
    print(cluster.scheduler_address, flush=True)
    time.sleep(120)
"""


@pytest.fixture
def elsewhere(tmp_path):
    """A scheduler in a process of its own, and its address."""
    script = tmp_path / "cluster.py"
    script.write_text(_OTHER_PROCESS)
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    yield process, process.stdout.readline().strip()
    process.kill()
    process.wait(timeout=30)
    process.stdout.close()
