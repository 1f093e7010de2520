"""What every reader of logs hands on: the answers of one model to one task in one log."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...._support.arguments import shown
from ...._support.printable import printable


class Answer(NamedTuple):
    """The score of one question: the mean of its repeats and how many these are."""

    value: float
    weight: float = 1.0
    fingerprint: str | None = None  # Equal for equal questions; None where the log has none.
    line: int = 0
    prompt: str | None = None  # Hash of the prompt, kept only where nothing else tells runs apart.


@dataclass
class Run:
    """The answers of one model to one task in one log.

    `settings` say what the model is (revision, dtype, ...), and `asked` how it was asked (shots, temperature, ...),
    which may differ from task to task; both are None if the log does not say. `date` orders runs: the last one counts.
    `is_loss` says whether lower is better; None if the log does not say.
    """

    source: Path
    kind: str
    model: str
    task: str
    metric: str
    settings: dict[str, str] | None = None
    asked: dict[str, str] | None = None
    date: str = ""
    is_loss: bool | None = None
    answers: dict[str, Answer] = field(default_factory=dict)

    def place(self, question: str) -> str:
        """Where the answer to a question stands, for messages."""
        line = self.answers[question].line
        return f"line {line} of {printable(self.source)}" if line else printable(self.source)

    def add(self, question: str, answer: Answer) -> None:
        """Add an answer; the same question twice must have the same answer, or the log is not understood."""
        earlier = self.answers.setdefault(sys.intern(question), answer)
        if earlier[:3] != answer[:3]:
            raise ValueError(
                f"question {shown(question)} of {shown(self.task)} has two answers in {printable(self.source)}"
                f" (lines {earlier.line} and {answer.line}), which nothing tells apart: drop one of them"
            )


class Choices:
    """Which tasks, metric and filter count: what the user asked for, else the first that serves.

    The first log of a task decides for all its logs, in the order of `finding.log_files`.
    """

    def __init__(self, metric: str | None, filter: str | None, tasks) -> None:
        self.metric, self.filter = metric, filter
        self.tasks = None if tasks is None else {tasks} if isinstance(tasks, str) else set(tasks)
        self.seen: set[str] = set()
        self.notes: dict[str, str] = {}  # By what they are about, so that nothing is said twice.
        self.places_without_metric: list[str] = []
        self._metrics: dict[str, str] = {}
        self._filters: dict[str, str] = {}
        self._results: dict[tuple[str, str], str] = {}

    def wants(self, task: str) -> bool:
        """Whether a task is to be read."""
        self.seen.add(task)
        return self.tasks is None or task in self.tasks

    def filter_of(self, task: str, first: str | None) -> str | None:
        """The filter that counts, given the first one in a log; None if no log has named any."""
        if self.filter is not None or first is None:
            return self.filter if self.filter is not None else self._filters.get(task)
        return self._filters.setdefault(task, first)

    def metric_of(self, task: str, offered: list[str], losses, place: str) -> str | None:
        """The metric that counts among those that are numbers at `place`; None if the task must be skipped."""
        if not offered:
            self.skip(task, place)
            return None
        wanted = self.metric or self._metrics.get(task)
        if wanted is None:
            wanted = next((name for name in offered if name not in losses), offered[0])
        if wanted not in offered:
            there = ", ".join(map(printable, offered))
            raise ValueError(f"{place} has no number under the metric {shown(wanted)}; metrics with one: {there}")
        return self._metrics.setdefault(task, wanted)

    def result_of(self, task: str, question: str, offered: list[str], place: str) -> str:
        """The result that counts where a question has several; the first log decides, question by question."""
        serving = [name for name in offered if self.metric in (None, name, *re.split(r"[:#/]+", name))]
        wanted = self._results.setdefault((task, question), serving[0]) if serving else self.metric
        if wanted not in serving:
            there = ", ".join(map(printable, offered))
            raise ValueError(f"{place} has no result {shown(wanted)}; results that are there: {there}")
        return wanted

    def skip(self, task: str, place: str) -> None:
        """Leave a task out because it has no metric that is a number, and say so."""
        self.places_without_metric.append(place)
        self.notes["skipped", task] = f"task {shown(task)} is skipped because {place} has no metric that is a number"
