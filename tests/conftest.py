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
