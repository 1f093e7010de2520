"""One function for all logs."""

from __future__ import annotations

import os

from ...._support.arguments import shown
from ...._support.printable import printable
from .assembling import LogTable, table_of
from .every_eval_ever import read_every_eval_ever
from .finding import log_files
from .harness_samples import HarnessReader
from .helm_logs import read_helm
from .inspect_logs import read_inspect
from .runs import Choices


def read_logs(paths, *, metric: str | None = None, filter: str | None = None, tasks=None) -> LogTable:
    """Read the logs of evaluations as a table: questions as rows, models as columns.

    Reads ``samples_TASK_DATE.jsonl`` of lm-evaluation-harness, ``.eval`` and ``.json`` of Inspect,
    ``per_instance_stats.json`` of HELM, and the instance-level ``.jsonl`` of Every Eval Ever 0.3.0. The order of files
    does not matter.

    Parameters
    ----------
    paths : str or path, or several of them
        Files and folders; folders are searched at any depth, and files in them that are no logs are left out.
    metric : str, optional
        The metric of lm-evaluation-harness, scorer of Inspect, statistic of HELM or result of Every Eval Ever.
        Default: for every task the first numeric one for which higher is better.
    filter : str, optional
        The filter of lm-evaluation-harness. Default: for every task the first.
    tasks : str or list of str, optional
        Only these tasks. Default: all.

    Returns
    -------
    LogTable
        Observations with the names of questions and models, the task of every question, and notes on what was skipped.
        Repeated answers are averaged; their number is the weight. Losses are negated, so higher is always better.
    """
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    choices = Choices(metric, filter, tasks)
    readers = {
        "harness": HarnessReader().read,
        "inspect": read_inspect,
        "helm": read_helm,
        "every_eval_ever": read_every_eval_ever,
    }
    runs = [run for kind, path in log_files(paths) for run in readers[kind](path, choices)]
    _refuse_unknown_tasks(choices)
    if not any(run.answers for run in runs):
        raise ValueError(_nothing_read(paths, choices))
    return table_of([run for run in runs if run.answers], choices)


def _refuse_unknown_tasks(choices: Choices) -> None:
    missing = sorted((choices.tasks or set()) - choices.seen)
    if missing:
        there = ", ".join(map(printable, sorted(choices.seen)))
        raise ValueError(f"there is no log of the task {shown(missing[0])}; there are {there}")


def _nothing_read(paths: list, choices: Choices) -> str:
    if choices.places_without_metric:
        place = choices.places_without_metric[0]
        remedy = "score the answers (lm-evaluation-harness: run without --predict_only)"
        return f"no task can be read because {place} has no metric that is a number: {remedy}"
    return f"the logs in {', '.join(map(printable, paths))} hold no question"
