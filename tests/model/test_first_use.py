"""What a new installation must compile before its first table is filled."""

import subprocess
import sys

import pytest

CODE = """
import sys
import numpy as np
import colonnade as co

rng = np.random.default_rng(0)
M = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 12)) + 0.1 * rng.standard_normal((40, 12))
M[rng.random(M.shape) < 0.2] = np.nan
outliers, exact = M.copy(), np.where(np.isnan(M), np.nan, np.outer(np.arange(1.0, 41), np.arange(12.0) - 20))
outliers[3, 4] = outliers[20, 7] = 1e6
weighted = co.Observations.from_dense(M, weights=rng.random(M.shape) + 1)
for table in (M, M.T, M.astype(np.float32), outliers, exact, weighted):
    found = co.complete(table)
    found.interval([0], [0]), found.to_dense(), found.verdict, found.sample(2, random_state=0)
co.LowRankImputer().fit(M).transform(M[:5])
ours = [module for name, module in sys.modules.items() if name.startswith("colonnade")]
kernels = [found for module in ours for found in vars(module).values() if hasattr(found, "py_func")]
# Functions that begin with _ are parts of others; they show signatures only where the cache was empty.
used = [k for k in kernels if k.signatures and not k.py_func.__name__.startswith("_")]
print(*sorted({f"{k.py_func.__name__} {len(k.signatures)}" for k in used}), sep=", ")
"""


@pytest.mark.slow
def test_tables_with_gaps_anywhere_need_four_compiled_functions_of_one_type_each():
    """Each takes .1 to 1.5 s to compile, and one more time for arrays of another type or order."""
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout.strip()
    assert found == "fit_variances 1, packed_moments 1, predictions 1, update_groups 1"
