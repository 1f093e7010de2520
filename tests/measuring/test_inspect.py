"""The adapter for early stopping, against Inspect itself with its model `mockllm`."""

import gc

import numpy as np
import pytest

import colonnade as co

from made_answers import answers

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # Inspect uses parts of other packages that are deprecated.
M_QUESTIONS = 240


def run(folder, known, half_width, right, **options):
    """Run a task in which every answer is "yes"; `right` (m,) is whether that is the right answer."""
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    @solver
    def always_yes():  # No model is called: counting its tokens would need a file from the network.
        async def solve(state, generate):
            state.output = ModelOutput.from_content("mockllm/model", "yes")
            return state

        return solve

    words = ["yes" if one else "no" for one in right]
    samples = [Sample(input=f"Question {i}?", target=word, id=f"q/{i}") for i, word in enumerate(words)]
    stopping = co.evaluation.InspectStopping(known, half_width)
    parts = {"dataset": MemoryDataset(samples), "solver": always_yes(), "scorer": match(), "name": "sums"}
    task = inspect_ai.Task(early_stopping=stopping, **parts)
    log = inspect_ai.eval(task, model="mockllm/model", log_dir=str(folder), display="none", **options)[0]
    gc.collect()  # Inspect leaves streams open; they complain here, where warnings are ignored.
    return log


@pytest.fixture
def known():
    M = answers(np.random.default_rng(0), M_QUESTIONS, 21)
    names = [f"sums/q/{i}" for i in range(M_QUESTIONS)]
    return co.Observations.from_dense(M[:, :20], row_names=names), M[:, 20]


def test_a_run_stops_when_the_interval_is_narrow_enough(tmp_path, known):
    table, right = known
    log = run(tmp_path, table, 0.15, right, sample_shuffle=7, max_samples=8)
    assert log.status == "success", log.error
    found = log.results.early_stopping
    reached = found.metadata
    assert found.manager == "colonnade" and 20 <= reached["n_answers"] < M_QUESTIONS
    assert reached["high"] - reached["low"] <= 0.3 and reached["low"] <= right.mean() <= reached["high"]
    assert len(found.early_stops) + len(log.samples) == M_QUESTIONS and len(found.early_stops) > 0
    again = co.evaluation.read_logs(tmp_path).observations  # The log of the stopped run is read like any other.
    assert again.shape == (len(log.samples), 1)


def test_the_order_must_be_random_and_the_questions_the_same(tmp_path, known):
    table, right = known
    log = run(tmp_path, table, 0.15, right)
    assert log.status == "error" and "sample_shuffle=True" in log.error.message
    log = run(tmp_path, table, 0.15, right[:50], sample_shuffle=1)
    assert log.status == "error" and "both must agree" in log.error.message


def test_tables_without_names_are_refused():
    with pytest.raises(ValueError, match="have no names"):
        co.evaluation.InspectStopping(answers(np.random.default_rng(0), 60, 10))
