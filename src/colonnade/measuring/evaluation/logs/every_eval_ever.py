"""The instance-level schema of Every Eval Ever (0.3.0): a line for every sample and result of an evaluation."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from pathlib import Path

from ...._support.printable import printable
from .json_text import an_object, document_of, field, lines_of, number_of, text_of
from .runs import Answer, Choices, Run


def read_every_eval_ever(path: Path, choices: Choices) -> list[Run]:
    """The runs of a file, one per model and evaluation."""
    losses = _losses(path)
    records = defaultdict(lambda: defaultdict(list))  # (evaluation, model, task), question: result and answer
    for number, place, record in lines_of(path):
        task, filter = _task(record, place)
        if not choices.wants(task) or filter not in (None, choices.filter_of(task, filter)):
            continue
        key = *(text_of(field(record, name, str, place)) for name in ("evaluation_id", "model_id")), task
        result = text_of(record.get("evaluation_result_id") or "").removeprefix(key[0]).lstrip("#:/.") or task
        evaluation = an_object(record.get("evaluation"), f"'evaluation' at {place}")
        score = number_of(evaluation.get("score"), "the score", place)
        question = text_of(field(record, "sample_id", str, place))
        records[key][question].append((result, Answer(score, 1.0, _fingerprint(record), number)))
    return [_run(path, key, questions, losses, choices) for key, questions in records.items()]


def _run(path: Path, key: tuple, questions: dict, losses: dict, choices: Choices) -> Run:
    """The mean of every question over the records of the result that counts."""
    evaluation, model, task = key
    source, date = _source_and_date(evaluation, model)
    run = Run(path, "every_eval_ever", model, task, "", {"source": source}, {}, date)
    for question, answers in questions.items():
        offered = list(dict.fromkeys(name for name, _ in answers))
        place = f"line {answers[0][1].line} of {printable(path)}"
        result = choices.result_of(task, question, offered, place)
        values = [answer for name, answer in answers if name == result]
        mean = math.fsum(answer.value for answer in values) / len(values)
        run.add(question, values[0]._replace(value=mean, weight=float(len(values))))
        run.metric = run.metric or result
        run.is_loss = losses.get(result, losses.get(task, run.is_loss))
    return run


def _task(record: dict, place: str) -> tuple[str, str | None]:
    """Task and filter: logs converted from lm-evaluation-harness call an evaluation task/filter."""
    name = text_of(field(record, "evaluation_name", str, place))
    metadata = record.get("metadata")
    filter = metadata.get("filter") if isinstance(metadata, dict) else None
    if isinstance(filter, str) and name.endswith(f"/{filter}"):
        return name.removesuffix(f"/{filter}"), filter
    return name, None


def _source_and_date(evaluation: str, model: str) -> tuple[str, str]:
    """An evaluation is called source/model/seconds since 1970; anything else is a source as a whole."""
    match = re.fullmatch(r"(.*)/(\d+(?:\.\d+)?)", evaluation, re.DOTALL)
    if match is None:
        return evaluation, ""
    whole, dot, rest = match[2].partition(".")
    source = match[1].removesuffix("/" + model.replace("/", "_"))
    return source, f"{whole.zfill(20)}{dot}{rest}"


def _fingerprint(record: dict) -> str | None:
    """The hash of the question if the log has one, else of its right answers.

    `sample_hash` is not used: several converters put the prompt into it, which depends on the model.
    """
    metadata, asked = record.get("metadata"), record.get("input")
    if isinstance(metadata, dict) and isinstance(metadata.get("doc_hash"), str) and metadata["doc_hash"]:
        return metadata["doc_hash"]
    if not isinstance(asked, dict) or not asked.get("reference"):
        return None
    return hashlib.sha256(json.dumps(asked["reference"], sort_keys=True).encode()).hexdigest()


def _losses(path: Path) -> dict[str, bool]:
    """By result and by evaluation whether lower is better, from the aggregate file ``UUID.json`` if it lies beside."""
    beside = path.with_name(path.name.removesuffix("_samples.jsonl") + ".json")
    if not path.name.endswith("_samples.jsonl") or not beside.is_file():
        return {}
    aggregate = an_object(document_of(beside), printable(beside))
    listed = aggregate.get("evaluation_results")
    losses, evaluation = {}, text_of(aggregate.get("evaluation_id") or "")
    for result in listed if isinstance(listed, list) else []:
        config = result.get("metric_config") if isinstance(result, dict) else None
        if isinstance(config, dict) and isinstance(config.get("lower_is_better"), bool):
            for name in ("evaluation_name", "evaluation_result_id"):
                if isinstance(result.get(name), str):
                    losses[text_of(result[name]).removeprefix(evaluation).lstrip("#:/.")] = config["lower_is_better"]
    return losses
