"""What type checkers see of the public names; `mypy` reads this file, and test_typing.py runs it."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import colonnade as co


def complete_an_array(M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    completion = co.complete(M, rank=2, bounds=(0.0, 9.0))
    assert_type(completion, co.Completion)
    assert_type(completion.shape, tuple[int, int])
    assert_type(completion.to_dense(), np.ndarray)
    assert_type(completion.summary(), str)
    assert_type(completion.column_names, np.ndarray | None)
    assert_type(completion.extend(M), co.Completion)
    assert completion.verdict.word in ("use it", "use it with care", "do not use it")
    low, high = completion.interval([0], [1], level=0.8)
    assert_type(low, np.ndarray)
    return low, high


def observe_and_complete(M: np.ndarray) -> co.Completion:
    observations = co.observe(co.Source(M), n_full_columns=4, n_entries=5, random_state=0)
    assert_type(observations, co.Observations)
    assert_type(observations.full_columns, np.ndarray)
    return co.complete(observations)


def plan_and_choose(basis: np.ndarray) -> co.Plan:
    size: int = co.plan((100, 100), rank=3).practical.n_full_columns
    assert size > 0
    imputer = co.LowRankImputer(rank=2)
    assert_type(imputer, co.LowRankImputer)
    return co.plan((100, 100), rank=3, noise_std=0.1, basis=basis)


def main() -> None:
    rng = np.random.default_rng(0)
    M = rng.uniform(1, 2, (20, 2)) @ rng.uniform(1, 2, (2, 12))
    observe_and_complete(M)
    M[5:, 8:] = np.nan
    low, high = complete_an_array(M)
    assert (low <= high).all()
    plan_and_choose(np.linalg.qr(rng.standard_normal((100, 3)))[0])


if __name__ == "__main__":
    main()
