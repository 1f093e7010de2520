"""Which files are logs, and of what kind."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ...._support.printable import printable
from .harness_samples import NAME

_HEAD_BYTES = 1 << 16  # Bytes at the start of a file that tell its kind.
_INSPECT = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')
_HELM = re.compile(rb'\s*\[\s*\{\s*"(instance_id|train_trial_index|stats|perturbation)"\s*:')
_EVERY_EVAL_EVER = re.compile(rb'"(evaluation_id|model_id|sample_id|evaluation_name)"\s*:')


def log_files(paths) -> list[tuple[str, Path]]:
    """Kind and path of every log among some files and folders, in an order that does not depend on theirs."""
    found = {}
    for path in paths:
        path = Path(path)
        if path.is_dir():
            inside = (Path(folder) / name for folder, _, names in os.walk(path) for name in names)
            kinds = ((kind_of(one), one) for one in inside if one.is_file())
            found.update((_identity(one), (kind, one)) for kind, one in kinds if kind)
        elif not path.exists():
            raise FileNotFoundError(f"there is no file or folder {printable(path)}")
        elif (kind := kind_of(path)) is None:
            raise ValueError(
                f"{printable(path)} is not a log that can be read: logs are samples_TASK_DATE.jsonl of"
                " lm-evaluation-harness, .eval or .json of Inspect, per_instance_stats.json of HELM, and the"
                " instance-level .jsonl of Every Eval Ever"
            )
        else:
            found[_identity(path)] = kind, path
    if not found:
        raise FileNotFoundError(
            f"no logs in {', '.join(map(printable, paths))}: lm-evaluation-harness writes samples_TASK_DATE.jsonl with"
            " --log_samples; logs of Inspect, HELM and Every Eval Ever are read too"
        )
    # By the date in the name first: the oldest log of the harness decides on metric and filter.
    return sorted(found.values(), key=lambda one: (one[0], _date(one[1]), str(one[1])))


def is_log(path) -> bool:
    """Whether a file is a log that can be read."""
    return kind_of(Path(path)) is not None


def kind_of(path: Path) -> str | None:
    """The kind of a log by its name and first bytes; None for any other file."""
    if path.suffix == ".eval":
        return "inspect"
    if NAME.fullmatch(path.name) and not _is_every_eval_ever(path):
        return "harness"
    if path.suffix == ".jsonl":
        return "every_eval_ever" if _is_every_eval_ever(path) else None
    if path.suffix == ".json":
        head = _head(path)
        is_helm = path.name.endswith("per_instance_stats.json") or _HELM.match(head)
        return "helm" if is_helm else "inspect" if _INSPECT.match(head) else None
    return None


def _is_every_eval_ever(path: Path) -> bool:
    """Whether the first line has the fields of an instance; a long line is judged by its start."""
    line = _head(path).lstrip().partition(b"\n")[0]
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return len({match[1] for match in _EVERY_EVAL_EVER.finditer(line)}) == 4
    return isinstance(record, dict) and {"model_id", "evaluation_name", "sample_id"} <= record.keys()


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(_HEAD_BYTES)


def _date(path: Path) -> str:
    match = NAME.fullmatch(path.name)
    return (match["date"] or "") if match else ""


def _identity(path: Path) -> str:
    """The same file by several ways is one file."""
    return os.path.realpath(path)
