"""The file for ``--samples`` and the logs, against lm-evaluation-harness itself with its model `dummy`.

The harness is installed by the extra `harness`; without it these tests are skipped.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

import colonnade as co

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("lm_eval") is None, reason="lm-evaluation-harness is not installed: colonnade[harness]"
    ),
]

N_QUESTIONS = 36
COMMON = """
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
doc_to_text: "{{text}}"
"""
TASKS = {
    # The model answers at random, so models differ.
    "choose": COMMON
    + 'output_type: multiple_choice\ndoc_to_choice: ["a", "b"]\ndoc_to_target: right\nmetric_list:\n'
    + "  - {metric: acc, aggregation: mean, higher_is_better: true}\n",
    # The model always says "lol", so what is right is known. The second filter finds nothing.
    "say": COMMON
    + "output_type: generate_until\ndoc_to_target: word\ngeneration_kwargs: {until: ['.']}\nmetric_list:\n"
    + "  - {metric: exact_match, aggregation: mean, higher_is_better: true}\nfilter_list:\n"
    + "  - {name: whole, filter: [{function: take_first}]}\n"
    + "  - {name: digits, filter: [{function: regex, regex_pattern: '([0-9]+)'}, {function: take_first}]}\n",
}
DRIVER = """
import json, sys
from lm_eval.__main__ import cli_evaluate
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["lm_eval", *arguments]
    cli_evaluate()
"""


def run_harness(folder, *runs):
    """Run the harness several times in one process, since it takes seconds to import."""
    place = str(folder)
    common = ["run", "--include_path", place, "--output_path", f"{place}/logs", "--log_samples", "--model", "dummy"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": f"{place}/hf"}
    command = [sys.executable, "-c", DRIVER, json.dumps([[*common, *one] for one in runs])]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A folder with two tasks and the logs of three models that answered everything."""
    folder = tmp_path_factory.mktemp("lm_eval")
    questions = [
        {"number": i, "text": f"Question {i}:", "right": i % 2, "word": "lol" if i % 3 == 0 else "no"}
        for i in range(N_QUESTIONS)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in questions))
    for name, text in TASKS.items():
        text = f"task: {name}\n" + text.replace("DATA", str(folder / "questions.jsonl"))
        (folder / f"{name}.yaml").write_text(text)
    run_harness(
        folder,
        *(
            ["--model_args", f"pretrained=org/{model}", "--tasks", "choose,say", "--seed", str(seed)]
            for seed, model in enumerate(("a", "b", "c"))
        ),
    )
    return folder


def test_logs_of_the_harness_are_read(evaluated):
    table = co.evaluation.read_logs(evaluated / "logs")
    o = table.observations
    assert o.shape == (2 * N_QUESTIONS, 3) and o.column_names.tolist() == ["org/a", "org/b", "org/c"]
    assert table.metrics == {"choose": "acc", "say": "exact_match"} and not table.notes
    M = o.full_matrix()
    assert (M[N_QUESTIONS:] == [[float(i % 3 == 0)] * 3 for i in range(N_QUESTIONS)]).all()
    assert set(M[:N_QUESTIONS].ravel()) == {0.0, 1.0} and (M[:N_QUESTIONS, 0] != M[:N_QUESTIONS, 1]).any()
    strict = co.evaluation.read_logs(evaluated / "logs", tasks="say", filter="digits")
    assert (strict.observations.full_matrix() == 0).all()
    for path in (evaluated / "logs").rglob("results_*.json"):
        reported = json.loads(path.read_text())
        column = o.column_names.tolist().index(reported["model_name"])
        assert M[:N_QUESTIONS, column].mean() == pytest.approx(reported["results"]["choose"]["acc,none"])


def test_the_harness_runs_exactly_the_chosen_questions(evaluated):
    known = co.harness.read_logs(evaluated / "logs")
    rows = [40, 3, 17, 35, 36, 71, 20]  # in no order, of both tasks
    samples = co.harness.write_samples(known, rows, evaluated / "samples.json")
    assert samples == {"choose": [3, 17, 20, 35], "say": [0, 4, 35]}
    run_harness(
        evaluated,
        ["--model_args", "pretrained=org/new", "--tasks", ",".join(samples), "--samples", "samples.json"],
    )
    for task, numbers in samples.items():
        (path,) = (evaluated / "logs" / "org__new").glob(f"samples_{task}_*.jsonl")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["doc_id"] for line in lines] == [line["doc"]["number"] for line in lines]
        assert sorted({line["doc_id"] for line in lines}) == numbers
    o = co.harness.read_logs(evaluated / "logs")
    new = o.column_names.tolist().index("org/new")
    seen = o.rows[o.indptr[new] : o.indptr[new + 1]]
    assert sorted(seen.tolist()) == sorted(rows) and o.full_columns.size == 3
    assert dict(zip(seen.tolist(), o.values[o.indptr[new] : o.indptr[new + 1]]))[40] == 0.0
