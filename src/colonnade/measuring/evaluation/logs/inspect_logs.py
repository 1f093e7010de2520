"""Logs of Inspect: ``.json``, or ``.eval``, which is a zip file of JSON documents.

The scores of a sample are ``{scorer: {"value": ...}}``. A value is a number, a truth value, "C", "I", "P" or "N"
(correct, incorrect, partly, no answer), or an object of such values. Epochs are repeats.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from ...._support.arguments import shown
from ...._support.printable import printable
from .json_text import an_object, document_of, field, is_number, number_of, text_of
from .runs import Answer, Choices, Run
from .zip_members import ZipMembers

_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_ONLY_SPEED = {  # Options that say how fast and how often to ask.
    *("max_connections", "adaptive_connections", "max_retries", "timeout", "attempt_timeout", "cache", "batch"),
    *("cache_prompt", "api_key", "base_url"),
}
_INPUT = 500  # Characters of a question that are compared; summaries cut it off after about 1,000.


def read_inspect(path: Path, choices: Choices) -> list[Run]:
    """The run of a log, or nothing if its task is not wanted or has no score that is a number."""
    header, samples = _from_zip(path) if path.suffix == ".eval" else _from_json(path)
    spec = an_object(header.get("eval"), f"'eval' of {printable(path)}")
    run = Run(path, "inspect", text_of(field(spec, "model", str, printable(path))), _task(spec, path), "")
    run.settings, run.asked, run.date = _texts(spec.get("model_args")), _asked(spec, header), _utc(spec.get("created"))
    if not choices.wants(run.task):
        return []
    if header.get("status") != "success":
        status = shown(header.get("status") or "started")
        choices.notes["status", str(path)] = f"{printable(path)} is of a run that did not finish (status {status})"
    return [run] if _add_answers(run, samples, choices) else []


def _from_json(path: Path) -> tuple[dict, list[dict]]:
    log = an_object(document_of(path), printable(path))
    return log, [an_object(one, f"a sample of {printable(path)}") for one in _list(log.get("samples"), path)]


def _from_zip(path: Path) -> tuple[dict, list[dict]]:
    """Header and samples; the summaries have the scores, and a run that did not finish has them in its journal."""
    with ZipMembers(path) as members:
        start = next((name for name in ("header.json", "_journal/start.json") if name in members.names), None)
        if start is None:
            raise ValueError(f"{printable(path)} has no header.json, so it is not a log of Inspect")
        header = an_object(members.document(start), f"{start} in {printable(path)}")
        parts = [name for name in ("summaries.json",) if name in members.names]
        journal = r"_journal/summaries/\d+\.json"
        parts = parts or sorted((n for n in members.names if re.fullmatch(journal, n)), key=lambda n: (len(n), n))
        if parts:
            listed = [one for name in parts for one in _list(members.document(name), path)]
        else:
            listed = [members.document(n) for n in sorted(set(members.names)) if re.fullmatch(r"samples/.+\.json", n)]
    samples = [an_object(one, f"a sample of {printable(path)}") for one in listed]
    return header, list({(str(one.get("id")), one.get("epoch")): one for one in samples}.values())


def _list(value, path: Path) -> list:
    if not isinstance(value, list):
        raise ValueError(f"{printable(path)} has no list of samples: was it written with --no-log-samples?")
    return value


def _task(spec: dict, path: Path) -> str:
    """The name of the task and the arguments it was given, which may select its questions."""
    arguments = spec.get("task_args_passed", spec.get("task_args"))
    name = text_of(field(spec, "task", str, printable(path)))
    if not isinstance(arguments, dict) or not arguments:
        return name
    return f"{name}[{', '.join(f'{key}={_text(value)}' for key, value in sorted(arguments.items()))}]"


def _text(value) -> str:
    return text_of(value if isinstance(value, str) else json.dumps(value, sort_keys=True))


def _asked(spec: dict, header: dict) -> dict[str, str]:
    """How the questions were put: the options of generation, and the solver around the model."""
    plan = header.get("plan")
    config = plan.get("config") if isinstance(plan, dict) else None
    solver = {"solver": spec.get("solver"), "solver_args": spec.get("solver_args") or None}
    return _texts(spec.get("model_generate_config")) | _texts(config) | _texts(solver)


def _texts(options) -> dict[str, str]:
    """As texts the options that are set."""
    options = options if isinstance(options, dict) else {}
    return {
        text_of(key): _text(value) for key, value in options.items() if value is not None and key not in _ONLY_SPEED
    }


def _utc(created) -> str:
    """The time of a run such that later ones sort later."""
    try:
        time = datetime.fromisoformat(created)
    except (TypeError, ValueError):
        return text_of(created or "")
    return (time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)).isoformat()


def _add_answers(run: Run, samples: list[dict], choices: Choices) -> bool:
    """Put the mean over epochs of every question into a run; False if the task is skipped."""
    epochs, prints = defaultdict(list), {}
    offered = list(
        dict.fromkeys(name for sample in samples for name, value in _scores(sample) if _as_number(value) is not None)
    )
    run.metric = choices.metric_of(run.task, offered, (), printable(run.source)) or ""
    for sample in samples if run.metric else ():
        question = text_of(sample.get("id"))
        place = f"sample {shown(question)} of {printable(run.source)}"
        value = dict(_scores(sample)).get(run.metric)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            continue  # NaN is Inspect's word for a sample that was not scored.
        epochs[question].append(number_of(_as_number(value, value), f"the score {shown(run.metric)}", place))
        prints[question] = _fingerprint(sample)
    for question, values in epochs.items():
        run.add(question, Answer(math.fsum(values) / len(values), float(len(values)), prints[question]))
    return bool(run.answers)


def _scores(sample: dict):
    """Names and values of the scores of a sample; those of an object are called scorer/name."""
    scores = sample.get("scores")
    for scorer, score in scores.items() if isinstance(scores, dict) else ():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from ((text_of(f"{scorer}/{name}"), one) for name, one in value.items())
        else:
            yield text_of(scorer), value


def _as_number(value, otherwise=None):
    """The number that Inspect takes a score for; `otherwise` if it takes it for none."""
    if is_number(value):
        return value
    if isinstance(value, str):
        number = _VALUES.get(value, _VALUES.get(value.lower() if len(value) > 1 else value))
        if (
            number is None
            and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value.strip())
            and len(value) < 400
        ):
            number = float(value)
        return otherwise if number is None else number
    return otherwise


def _fingerprint(sample: dict) -> str | None:
    """The start of the question, if it is text that is kept in place."""
    text = sample.get("input")
    return " ".join(text.split())[:_INPUT] if isinstance(text, str) and "attachment://" not in text else None
