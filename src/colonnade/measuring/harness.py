"""Logs of lm-evaluation-harness in, the file for its ``--samples`` out.

With ``--log_samples`` the harness writes a file ``samples_TASK_DATE.jsonl`` for every task into the folder of a model;
`measuring.evaluation.logs` reads them. ``--samples`` takes ``{"TASK": [doc_id, ...]}``.
"""

from __future__ import annotations

import json
import os
import warnings
from collections import defaultdict

import numpy as np

from .._support.arguments import as_indices, shown
from .._support.atomic_writing import new_file
from .._support.printable import printable
from ..data.observations import Observations
from .evaluation import logs


def read_logs(folders, *, metric: str | None = None, filter: str | None = None, tasks=None) -> Observations:
    """The answers of all models whose logs lie in some folders, at any depth.

    This is the table of `colonnade.evaluation.read_logs`; its notes, such as on skipped tasks, become warnings.

    Parameters
    ----------
    folders : str or path, or several of them
        Models are named by ``results_DATE.json`` beside the samples, else by the folder that the samples lie in. A
        question that was answered in several runs counts as in the last one.
    metric : str, optional
        Which metric. Default: for every task the first numeric one for which higher is better.
    filter : str, optional
        Which filter. Default: for every task the first in the file.
    tasks : str or list of str, optional
        Only these tasks. Default: all.

    Returns
    -------
    Observations
        Rows are questions, called "task/doc_id"; columns are models. A model that answered every question that occurs
        is full.
    """
    folders = [folders] if isinstance(folders, (str, os.PathLike)) else list(folders)
    for folder in folders:
        if not os.path.exists(folder):
            raise NotADirectoryError(f"{printable(folder)} is not a folder with logs of lm-evaluation-harness")
    table = logs.read_logs(folders, metric=metric, filter=filter, tasks=tasks)
    for note in table.notes:
        warnings.warn(note, stacklevel=2)
    return table.observations


def samples_of(observations: Observations, rows) -> dict[str, list[int]]:
    """What ``--samples`` takes for some rows: the numbers of their questions, rising, by task.

    The harness runs the questions of a task in rising order and numbers them by the order of this list, so it must
    rise. A task that is not in it is run as a whole, so name only these tasks in ``--tasks``.
    """
    rows = np.atleast_1d(as_indices("rows", rows, observations.shape[0]))
    if observations.row_names is None:
        raise ValueError("the rows have no names; questions are called task/number, as read_logs calls them")
    result = defaultdict(set)
    for name in observations.row_names[rows]:
        task, _, number = name.rpartition("/")
        if not task or not (number.isascii() and number.isdigit()):
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
