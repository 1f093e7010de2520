"""The logs of lm-evaluation-harness: questions as rows, models as columns.

With ``--log_samples`` it writes a file ``samples_TASK_DATE.jsonl`` for every task into the folder of a model, a line
for every question and filter, with the number of the question (`doc_id`), the name of the filter (`filter`), the names
of the metrics (`metrics`) and under each of these its value. ``--samples`` takes ``{"TASK": [doc_id, ...]}``.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import numpy as np

from ._arguments import as_indices, printable, shown
from ._numbers import first_rounded, rounded_words
from ._writing import new_file
from .observations import Observations

_NO_METRICS = {"doc_id", "schema_version"}


def read_logs(folders, *, metric: str | None = None, filter: str | None = None, tasks=None) -> Observations:
    """The answers of all models whose logs lie in some folders, at any depth.

    Parameters
    ----------
    folders : str or path, or several of them
        The folder that a file lies in names its model, as the harness has it. A question that was answered in several
        runs counts as in the last one.
    metric : str, optional
        Which metric; unless told, of every task the first that the harness lists.
    filter : str, optional
        Which filter; unless told, of every task the first in the file.
    tasks : str or list of str, optional
        Only these tasks; all unless told.

    Returns
    -------
    Observations
        Rows are questions, called "task/doc_id"; columns are models. A model that answered every question that occurs
        is full.
    """
    folders = [folders] if isinstance(folders, (str, Path)) else list(folders)
    wanted = None if tasks is None else {tasks} if isinstance(tasks, str) else set(tasks)
    answers, hashes, settings = {}, {}, {}
    for path in _log_files(folders, wanted):
        _read_file(path, settings.setdefault(_task(path), [metric, filter]), answers, hashes)
    if not answers:
        raise ValueError(f"the logs in {', '.join(map(printable, folders))} hold no question")
    questions = sorted({question for question, _ in answers})
    models = sorted({model for _, model in answers})
    row, column = ({name: k for k, name in enumerate(names)} for names in (questions, models))
    return Observations.from_triplets(
        [row[question] for question, _ in answers],
        [column[model] for _, model in answers],
        np.array(list(answers.values()), np.float64),
        (len(questions), len(models)),
        row_names=[f"{task}/{number}" for task, number in questions],
        column_names=models,
    )


def samples_of(observations: Observations, rows) -> dict[str, list[int]]:
    """What ``--samples`` takes for some rows: the numbers of their questions, rising, by task.

    The harness runs the questions of a task in rising order and numbers them by the order of this list, so it must
    rise; a task that is not in it is run as a whole, so name only these tasks in ``--tasks``.
    """
    rows = np.atleast_1d(as_indices("rows", rows, observations.shape[0]))
    if observations.row_names is None:
        raise ValueError("the rows have no names; questions are called task/number, as read_logs calls them")
    result = defaultdict(set)
    for name in observations.row_names[rows]:
        task, _, number = name.rpartition("/")
        if not task or not number.isdecimal():
            raise ValueError(
                f"the row {shown(name)} is not a question of the harness, which are called"
                " task/number; colonnade plan --select-rows K --for-mean chooses rows of any table"
            )
        result[task].add(int(number))
    return {task: sorted(result[task]) for task in sorted(result)}


def write_samples(observations: Observations, rows, path, *, force: bool = False) -> dict[str, list[int]]:
    """Write the file that ``--samples`` takes, whole or not at all; returns what is in it, as `samples_of`."""
    samples = samples_of(observations, rows)
    with new_file(path, force=force) as working:
        working.write_text(json.dumps(samples) + "\n", encoding="utf-8")
    return samples


def _log_files(folders, wanted) -> list[Path]:
    """The files of these tasks, oldest run first."""
    found = []
    for folder in map(Path, folders):
        if not folder.is_dir():
            raise NotADirectoryError(f"{printable(folder)} is not a folder with logs of lm-evaluation-harness")
        found += folder.rglob("samples_*.jsonl")
    if not found:
        names = ", ".join(map(printable, folders))
        raise FileNotFoundError(f"no samples_TASK_DATE.jsonl in {names}: run lm-evaluation-harness with --log_samples")
    if wanted is not None:
        missing = sorted(wanted - {_task(path) for path in found})
        if missing:
            there = ", ".join(printable(task) for task in sorted({_task(path) for path in found}))
            raise ValueError(f"there is no log of the task {shown(missing[0])}; there are {there}")
        found = [path for path in found if _task(path) in wanted]
    return sorted(found, key=lambda path: (path.stem.rpartition("_")[2], str(path)))


def _task(path: Path) -> str:
    return path.stem.partition("_")[2].rpartition("_")[0]


def _read_file(path: Path, setting: list, answers: dict, hashes: dict) -> None:
    """Put the answers of a file under (task, number), model; `setting` is the task's metric and filter, once known."""
    task, model = _task(path), Path(os.path.abspath(path)).parent.name
    n_lines = n_answers = 0
    with open(path, "rb") as lines:  # Decoded line by line, so that an error can name its line.
        for n_lines, line in enumerate(lines, 1):
            place = f"line {n_lines} of {printable(path)}"
            sample = _sample(line, place)
            setting[1] = sample.get("filter") if setting[1] is None else setting[1]
            if sample.get("filter") != setting[1]:
                continue
            n_answers += 1
            setting[0] = setting[0] or _metrics(sample, place)[0]
            question = task, sample["doc_id"]
            answers[question, model] = _value(sample, setting[0], place)
            _refuse_other(hashes.setdefault(question, (sample.get("doc_hash"), model)), sample, question, model, place)
    if n_lines and not n_answers:
        raise ValueError(
            f"{printable(path)} has no answer with the filter {shown(setting[1])}; choose one that all files have"
        )


def _refuse_other(first: tuple, sample: dict, question: tuple, model: str, place: str) -> None:
    """The same number must be the same question for all models."""
    if first[0] != sample.get("doc_hash"):
        raise ValueError(
            f"question {question[1]} of {question[0]} is another one for {shown(model)} than for {shown(first[1])}"
            f" (doc_hash at {place}): the data set changed between the runs, so run one of them again"
        )


def _sample(line: bytes, place: str) -> dict:
    try:
        sample = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{place} is not UTF-8 text: convert the file, or run the model again") from None
    except RecursionError:
        raise ValueError(f"{place} has too many brackets within brackets: run the model again") from None
    except ValueError as error:
        raise ValueError(f"{place} is not JSON ({error}): was the run interrupted?") from None
    number = sample.get("doc_id") if isinstance(sample, dict) else None
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError(f"{place} has no doc_id that is a whole number; the harness writes one for every question")
    return sample


def _metrics(sample: dict, place: str) -> list[str]:
    """The names of the metrics; older versions do not list them, but each is a number."""
    names = sample.get("metrics")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError(f"the metrics at {place} are not a list of names: run the model again")
    if names is None:
        names = [name for name, value in sample.items() if name not in _NO_METRICS and isinstance(value, (int, float))]
    if not names:
        raise ValueError(f"{place} has no metric: run lm-evaluation-harness without --predict_only")
    return names


def _value(sample: dict, metric: str, place: str) -> float:
    value = sample.get(metric)
    if not isinstance(value, (bool, int, float)):
        there = [
            printable(name) for name in _metrics(sample, place) if isinstance(sample.get(name), (bool, int, float))
        ]
        raise ValueError(
            f"{place} has no number under the metric {shown(metric)}; metrics with one: {', '.join(there) or 'none'}"
        )
    if first_rounded([value]) is not None:
        raise ValueError(rounded_words(f"the metric {shown(metric)} at {place}", value))
    try:
        number = float(value)
    except OverflowError:  # a whole number of over 308 digits
        number = np.inf
    if not np.isfinite(number):
        raise ValueError(
            f"the metric {shown(metric)} at {place} is not a finite number: choose another metric, or drop the line"
        )
    return number
