import pytest


def pytest_addoption(parser):
    parser.addoption("--seeds", type=int, default=3, help="how many seeds the tests that take one are run for")


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        seeds = range(metafunc.config.getoption("--seeds"))
        metafunc.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow) if k else k for k in seeds])


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
    import sys

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
