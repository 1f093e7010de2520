"""The kernel for vectors of 2, 4 and 8 numbers, whatever this machine has: right, and no write past a buffer."""

import ctypes.util
import os
import subprocess
import sys

import pytest

from colonnade.model.kernels.emitter import LANES

_CHECK = """
import sys
from unittest.mock import patch

import llvmlite.binding as llvm
import numba
import numpy as np

numba.njit(lambda: 0)()  # numba itself has seen the real machine before
lanes = int(sys.argv[1])
with patch.object(llvm, "get_host_cpu_features", lambda: {"avx512f": lanes == 8, "avx": lanes >= 4}):
    import colonnade as co
    from colonnade.model.kernels import emitter
    from colonnade.model.solve import solve_columns, solve_columns_in_numpy

assert emitter.LANES == lanes
rng = np.random.default_rng(0)
for r in (*range(1, 26), 33, 48):
    # Directions of very unequal variance: primal and dual systems of all sizes, sound ones and such as need correcting.
    U = np.linalg.qr(rng.standard_normal((80, r)))[0]
    space = co.ColumnSpace(U, np.ones(r), None, np.logspace(0, -9, r), 0.1)
    M = (U * np.logspace(0, -4.5, r)) @ rng.standard_normal((r, 60))
    known = np.where(np.argsort(rng.random(M.shape), axis=0) < np.arange(60), M, np.nan)
    weights = 10 ** rng.uniform(-1, 1, M.shape) if r % 2 else None
    o = co.Observations.from_dense(known, weights=weights)
    for penalty in (np.zeros(r), 1e-6 / space.variances, 1e-16 / space.variances):
        Z, status = solve_columns(space, o, penalty=penalty)
        Z0, status0 = solve_columns_in_numpy(space, o, penalty=penalty)
        assert (status == status0).all()
        np.testing.assert_allclose(U @ Z, U @ Z0, atol=1e-9)
print("fine")
"""


def _watching_allocator() -> dict:
    """glibc's debugging allocator ends the process when a block is freed behind whose end something was written."""
    library = ctypes.util.find_library("c_malloc_debug")
    return {"LD_PRELOAD": library, "GLIBC_TUNABLES": "glibc.malloc.check=3"} if library else {}


@pytest.mark.parametrize(
    "features, lanes", [("+avx,+avx2,+fma,-avx512f", 4), ("+sse4.2", 2), ("", 2), ("+avx,+avx512f", 8)]
)
def test_vectors_are_those_of_the_processor_that_numba_compiles_for(features, lanes):
    environment = {**os.environ, "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features}
    command = [sys.executable, "-c", "from colonnade.model.kernels.emitter import LANES; print(LANES)"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) == lanes


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [lanes for lanes in (2, 4, 8) if lanes != LANES])
def test_kernel_for_other_vectors(tmp_path, lanes):
    """Compiled anew, with a cache of its own: 8 numbers in a vector also where the machine needs two registers.

    All other tests use vectors of the size that this machine has.
    """
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), **_watching_allocator()}
    command = [sys.executable, "-c", _CHECK, str(lanes)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout == "fine\n", run.stderr[-2000:]
