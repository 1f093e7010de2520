"""``samples_TASK_DATE.jsonl`` of lm-evaluation-harness: a line for every question and filter.

A line has the number of the question (`doc_id`), since 0.4.7 the name of the filter (`filter`) and the names of the
metrics (`metrics`), and under each metric its value; since 0.5 also the score of every repeat (`scores_per_repeat`).
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path

from ...._support.arguments import shown
from ...._support.printable import printable
from .harness_card import Card, card_beside, sanitized
from .json_text import is_number, lines_of, number_of
from .runs import Answer, Choices, Run

NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[^_]*))?\.jsonl", re.DOTALL)
_NOT_METRICS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash"),
    *("prompt_hash", "target_hash", "schema_version", "scores_per_repeat"),
    "bypass",  # What --predict_only writes in place of a metric, always 999.
}


class HarnessReader:
    """Reads samples, and remembers the cards of the folders they lie in."""

    def __init__(self) -> None:
        self._cards: dict[tuple[Path, str], Card | None] = {}
        self._names = lru_cache(maxsize=64)(lambda folder: sorted(os.listdir(folder)))

    def read(self, path: Path, choices: Choices) -> list[Run]:
        """The run of a file, or nothing if its task is not wanted or has no metric that is a number."""
        task, date = NAME.fullmatch(path.name).group("task", "date")
        if not choices.wants(task):
            return []
        card = self._card(path.parent, date or "")
        run = Run(path, "harness", card.model or _folder_name(path), task, "", date=date or "")
        if card.model is None:
            self._name_by_folder(run)
        else:
            shots = {"shots": card.shots[task]} if task in card.shots else {}
            run.settings, run.asked = card.settings, card.asked | shots
        return [run] if _read_lines(run, card, choices) else []

    def _card(self, folder: Path, date: str) -> Card:
        key = folder, date
        if key not in self._cards:
            self._cards[key] = card_beside(folder, date, self._names(folder))
        return self._cards[key] or Card()

    def _name_by_folder(self, run: Run) -> None:
        """Without a results file the folder names the model, unless results of other models lie in it."""
        folder = run.source.parent
        dates = {match["date"] for name in self._names(folder) if (match := NAME.fullmatch(name)) and match["date"]}
        others = {card.model for date in dates if (card := self._card(folder, date)).model}
        own = [model for model in others if sanitized(model) == _folder_name(run.source)]
        if others and not (own and len(others) == 1):
            raise ValueError(
                f"{printable(run.source)} has no results_{run.date or 'DATE'}.json beside it, and its folder holds logs"
                f" of {shown(min(others))}: whose answers these are is not certain, so move them to their own folder"
            )
        run.model = own[0] if own else run.model


def _folder_name(path: Path) -> str:
    return Path(os.path.abspath(path)).parent.name


def _read_lines(run: Run, card: Card, choices: Choices) -> bool:
    """Put the answers of a file into a run; False if its task is skipped."""
    turns, names, losses = Counter(), card.filters.get(run.task, []), card.losses.get(run.task, {})
    first = wanted = None
    n_lines = 0
    for n_lines, place, sample in lines_of(run.source):
        question = _number_of_question(sample, place)
        turn = turns[question]
        turns[question] += 1
        if "filter" not in sample and choices.filter is not None and not names:
            raise ValueError(
                f"{printable(run.source)} does not name its filters (versions before 0.4.7) and no results_DATE.json"
                " beside it does: read it without a filter, which takes the first one"
            )
        filter = _filter_of(sample, turn, names, place)
        if first is None:
            first = filter
            wanted = choices.filter_of(run.task, filter if isinstance(filter, str) else None)
        if filter != (first if wanted is None or isinstance(first, int) else wanted):
            continue
        if not run.metric:
            run.metric = (
                choices.metric_of(run.task, _numeric(sample, place), {m for m in losses if losses[m]}, place) or ""
            )
            if not run.metric:
                return False
        run.add(str(question), _answer(sample, run, n_lines, place))
    if n_lines and not run.answers:
        raise ValueError(
            f"{printable(run.source)} has no answer with the filter {shown(wanted)}; choose one that all files have"
        )
    run.is_loss = losses.get(run.metric)
    return bool(run.answers)


def _number_of_question(sample: dict, place: str) -> int:
    number = sample.get("doc_id")
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError(f"{place} has no doc_id that is a whole number; the harness writes one for every question")
    return number


def _filter_of(sample: dict, turn: int, names: list[str], place: str) -> str | int:
    """The filter of a line. Before 0.4.7 a question stands there once per filter, told apart by the order alone."""
    if "filter" in sample:
        if not isinstance(sample["filter"], str):
            raise ValueError(f"the filter at {place} is not a name: run the model again")
        return sample["filter"]
    if names and turn >= len(names):
        raise ValueError(f"{place} has its question once more than the task has filters: keep only one run in the file")
    return names[turn] if names else turn


def _numeric(sample: dict, place: str) -> list[str]:
    """The metrics that are numbers, in the order of the log; before 0.4.7 they are not listed."""
    names = sample.get("metrics")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError(f"the metrics at {place} are not a list of names: run the model again")
    names = [name for name in (sample if names is None else names) if name not in _NOT_METRICS]
    return [name for name in names if is_number(sample.get(name))]


def _answer(sample: dict, run: Run, line: int, place: str) -> Answer:
    """The value of the metric and its number of repeats."""
    what = f"the metric {shown(run.metric)}"
    if not is_number(sample.get(run.metric)):
        there = ", ".join(map(printable, _numeric(sample, place))) or "none"
        raise ValueError(f"{place} has no number under {what[4:]}; metrics with one: {there}")
    value, weight = number_of(sample[run.metric], what, place), 1.0
    repeats = _repeats(sample, run.metric, place)
    if repeats is not None:
        mean = math.fsum(repeats) / len(repeats)
        if run.metric in sample["scores_per_repeat"] or math.isclose(mean, value, rel_tol=1e-9, abs_tol=1e-12):
            value, weight = mean, float(len(repeats))
    question, prompt = (
        sys.intern(sample[key]) if isinstance(sample.get(key), str) else None for key in ("doc_hash", "prompt_hash")
    )
    return Answer(value, weight, question, line, prompt if run.settings is None else None)


def _repeats(sample: dict, metric: str, place: str) -> list[float] | None:
    """The scores of the repeats of a metric, or of the metric that ``pass@1(metric)`` is made of."""
    scores = sample.get("scores_per_repeat")
    if scores is None:
        return None
    if not isinstance(scores, dict):
        raise ValueError(f"scores_per_repeat at {place} is not an object of lists: run the model again")
    inner = re.fullmatch(r"[^()]+\((.+)\)", metric)
    listed = scores.get(metric, scores.get(inner[1]) if inner else None)
    if listed is None:
        return None
    if not isinstance(listed, list) or not listed:
        raise ValueError(f"scores_per_repeat at {place} is not an object of lists: run the model again")
    return [number_of(one, f"a repeat of the metric {shown(metric)}", place) for one in listed]
