"""Runs become a table: questions as rows, models as columns, repeats as weights."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from ...._support.arguments import shown
from ....data.observations import Observations
from .columns import column_names
from .runs import Choices, Run


@dataclass(frozen=True)
class LogTable:
    """Answers of models to questions, read from logs.

    Attributes
    ----------
    observations : Observations
        Rows are questions, called "task/question"; columns are models; weights are numbers of repeats.
    tasks : array of str of shape (n_questions,)
        The task of every row.
    metrics : dict
        The metric that was read, by task.
    notes : tuple of str
        What was skipped or turned around, a sentence each.
    """

    observations: Observations
    tasks: np.ndarray
    metrics: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def models(self) -> np.ndarray:
        """The names of the columns."""
        return self.observations.column_names


def table_of(runs: list[Run], choices: Choices) -> LogTable:
    """Put runs together. A question that a model answered in several runs counts as in the last one."""
    # The order of files must not matter, so the runs get an order of their own.
    runs = sorted(runs, key=lambda run: (run.date, run.kind, run.task, run.model, str(run.source)))
    signs = _signs(runs, choices)
    names = column_names(runs)
    _refuse_other_questions(runs, names)
    cells = _cells(runs, names, choices)
    questions = sorted({question for question, _ in cells}, key=_rank)
    models = sorted(set(names))
    row, column = ({name: k for k, name in enumerate(labels)} for labels in (questions, models))
    weights = np.array([answer.weight for _, answer in cells.values()])
    observations = Observations.from_triplets(
        [row[question] for question, _ in cells],
        [column[model] for _, model in cells],
        np.array([signs[task] * answer.value for (task, _), answer in _by_question(cells)], np.float64),
        (len(questions), len(models)),
        weights=None if (weights == 1).all() else weights,
        row_names=[f"{task}/{question}" for task, question in questions],
        column_names=models,
    )
    tasks = np.array([task for task, _ in questions], dtype=object)
    return LogTable(observations, tasks, {run.task: run.metric for run in runs}, tuple(choices.notes.values()))


def _by_question(cells: dict):
    return ((question, answer) for (question, _), (_, answer) in cells.items())


def _rank(question: tuple[str, str]) -> tuple:
    """Tasks by name, questions by number where they have one."""
    task, name = question
    plain = name.isascii() and name.isdigit()
    return task, not plain, len(name.lstrip("0")) if plain else 0, name.lstrip("0") if plain else name, name


def _signs(runs: list[Run], choices: Choices) -> dict[str, float]:
    """-1 for tasks whose metric is a loss: its negative is the score, so that higher is better everywhere."""
    said = defaultdict(dict)
    for run in runs:
        if run.is_loss is not None:
            said[run.task].setdefault(run.is_loss, run)
    for task, verdicts in said.items():
        if len(verdicts) > 1:
            raise ValueError(
                f"lower values of {shown(verdicts[True].metric)} are better for {shown(task)} according to the log of"
                f" {shown(verdicts[True].model)}, and worse according to that of {shown(verdicts[False].model)}:"
                " choose another metric"
            )
        if True in verdicts:
            metric = shown(verdicts[True].metric)
            choices.notes["loss", task] = (
                f"lower {metric} of task {shown(task)} is better, so its negative is the score"
            )
    return {run.task: -1.0 if True in said[run.task] else 1.0 for run in runs}


def _refuse_other_questions(runs: list[Run], names: list[str]) -> None:
    """The same question of a task must be the same for all models."""
    first = {}
    for run, name in zip(runs, names):
        for question, answer in run.answers.items():
            if answer.fingerprint is None:
                continue
            other, owner = first.setdefault((run.kind, run.task, question), (answer.fingerprint, name))
            if other != answer.fingerprint:
                raise ValueError(
                    f"question {question} of {run.task} is another one for {shown(name)} than for {shown(owner)}"
                    f" ({run.place(question)}): the data set changed between the runs, so run one of them again"
                )


def _cells(runs: list[Run], names: list[str], choices: Choices) -> dict:
    """(task, question), model: the run and the answer that count, those of the latest date."""
    cells = {}
    for run, name in zip(runs, names):
        for question, answer in run.answers.items():
            key = (run.task, question), name
            if key in cells:
                _refuse_undecided(cells[key][0], run, question, name)
                if _maybe_of_two_models(cells[key][0], run, question):
                    choices.notes["runs", name] = (
                        f"runs of {shown(name)} on different dates answer differently, and no results_DATE.json says"
                        " whether they are one model: they count as one, by its last answers"
                    )
            cells[key] = run, answer
    return cells


def _maybe_of_two_models(earlier: Run, run: Run, question: str) -> bool:
    """Whether only a folder says that two runs of the harness, with different answers, are of one model."""
    nameless = run.kind == earlier.kind == "harness" and run.settings is None and earlier.settings is None
    return nameless and earlier.answers[question].value != run.answers[question].value


def _refuse_undecided(earlier: Run, run: Run, question: str, name: str) -> None:
    """Two runs of one model and one date, or with other prompts and no word about their settings, are not merged."""
    before, after = earlier.answers[question], run.answers[question]
    if earlier.date == run.date and before[:2] != after[:2]:
        raise ValueError(
            f"question {shown(question)} of {shown(run.task)} has different answers of {shown(name)} in"
            f" {earlier.place(question)} and {run.place(question)}, and neither is the later one: leave one of them out"
        )
    if before.prompt is not None and after.prompt is not None and before.prompt != after.prompt:
        raise ValueError(
            f"question {shown(question)} of {shown(run.task)} was put to {shown(name)} in different words in"
            f" {earlier.place(question)} and {run.place(question)}, and no results_DATE.json beside them says whether"
            " these are two models: move them to folders of their own"
        )
