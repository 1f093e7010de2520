"""Who was run, in the words of ``results_DATE.json``, which lm-evaluation-harness writes beside the samples."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from ...._support.arguments import shown
from ...._support.printable import printable
from .json_text import an_object, document_of, text_of

# Arguments of a model that say where and how fast it ran, or are its name; all others can change its answers.
_NOT_THE_MODEL = {
    *("pretrained", "model", "path", "engine", "device", "device_map", "device_map_option", "parallelize"),
    *("max_memory_per_gpu", "max_cpu_memory", "offload_folder", "low_cpu_mem_usage", "batch_size", "max_batch_size"),
    *("gpu_memory_utilization", "tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size", "swap_space"),
    *("max_num_seqs", "enforce_eager", "num_concurrent", "max_retries", "timeout", "base_url", "verify_certificate"),
    *("api_key", "token", "use_auth_token", "trust_remote_code", "cache_dir", "download_dir", "disable_log_stats"),
}


@dataclass
class Card:
    """The model of a run, what tells its variants apart, and what is known of each task."""

    model: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    shots: dict[str, str] = field(default_factory=dict)
    filters: dict[str, list[str]] = field(default_factory=dict)
    losses: dict[str, dict[str, bool]] = field(default_factory=dict)


def sanitized(model: str) -> str:
    """The name of the folder that the harness makes for a model."""
    return re.sub(r"[\"<>:/|\\?*\[\]]+", "__", model)


def card_beside(folder: Path, date: str, names: list[str]) -> Card | None:
    """The card of the run of some date, if one of the files `names` of the folder is its results file.

    It is called ``results_DATE.json``, or ``NAME_DATE.json`` after ``--output_path NAME.json``.
    """
    found = [name for name in names if date and name.endswith(f"_{date}.json") and not name.startswith("samples_")]
    found = [name for name in found if name == f"results_{date}.json"] or found
    if len(found) > 1:
        raise ValueError(
            f"{printable(folder)} has {len(found)} files of results of {date} ({', '.join(map(shown, found[:3]))}),"
            " so the model of these samples is not certain: keep one of them"
        )
    return card_of(folder / found[0]) if found else None


def card_of(path: Path) -> Card:
    """Read a results file."""
    results = an_object(document_of(path), printable(path))
    config = _part(results, "config")
    arguments = _arguments(config.get("model_args"))
    tasks = _part(results, "configs")
    shots = {task: one.get("num_fewshot") for task, one in tasks.items() if isinstance(one, dict)}
    shots.update(_part(results, "n-shot"))
    name = results.get("model_name") or next(
        (arguments[key] for key in ("pretrained", "model") if key in arguments), None
    )
    return Card(
        text_of(name) if isinstance(name, str) else None,
        _settings(results, config, arguments),
        _asked(results, config),
        {task: str(number) for task, number in shots.items() if isinstance(number, int)},
        {task: _filters(one) for task, one in tasks.items() if isinstance(one, dict)},
        _losses(_part(results, "higher_is_better"), tasks),
    )


def _part(record: dict, name: str) -> dict:
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _arguments(value) -> dict[str, str]:
    """``a=1,b=2`` or a JSON object as a dict of texts; a comma within a value stays there."""
    if isinstance(value, dict):
        return {text_of(key): text_of(one if isinstance(one, str) else json.dumps(one)) for key, one in value.items()}
    result, key = {}, None
    for piece in value.split(",") if isinstance(value, str) and value else []:
        name, equals, rest = piece.partition("=")
        if equals and name.strip().isidentifier():
            key = text_of(name.strip())
            result[key] = text_of(rest)
        elif key is not None:
            result[key] += "," + text_of(piece)
    return result


def _settings(results: dict, config: dict, arguments: dict[str, str]) -> dict[str, str]:
    """What tells variants of a model apart. What the loaded model said of itself counts before what was asked for."""
    settings = {key: value for key, value in arguments.items() if key not in _NOT_THE_MODEL}
    for key in ("revision", "dtype"):
        if isinstance(said := config.get(f"model_{key}"), str) and said:
            settings[key] = text_of(said.removeprefix("torch."))
    settings.setdefault("revision", "main")
    return settings | _texts(
        {"sha": _start(config.get("model_sha")), "backend": results.get("model_source") or config.get("model")}
    )


def _asked(results: dict, config: dict) -> dict[str, str]:
    """How the questions were put in this run, apart from the shots, which every task has of its own."""
    return _texts(
        {
            "chat_template": _start(results.get("chat_template_sha")),
            "system_instruction": _start(results.get("system_instruction_sha")),
            "fewshot_as_multiturn": results.get("fewshot_as_multiturn"),
            "gen_kwargs": config.get("gen_kwargs"),
        }
    )


def _start(sha) -> str | None:
    """Enough of a hash to tell it from others."""
    return sha[:12] if isinstance(sha, str) else None


def _texts(values: dict) -> dict[str, str]:
    """As texts what is there."""
    return {
        key: text_of(value if isinstance(value, str) else json.dumps(value, sort_keys=True))
        for key, value in values.items()
        if value
    }


def _filters(task: dict) -> list[str]:
    """The names of a task's filters, in the order in which the harness applies and logs them."""
    listed = task.get("filter_list")
    names = [one.get("name") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return names if names and all(isinstance(name, str) for name in names) else []


def _losses(said: dict, tasks: dict) -> dict[str, dict[str, bool]]:
    """By task and metric whether lower is better, from ``higher_is_better`` or the task's own list of metrics."""
    losses = {task: {} for task in {*said, *tasks}}
    for task, one in tasks.items():
        listed = one.get("metric_list") if isinstance(one, dict) else None
        for metric in listed if isinstance(listed, list) else []:
            if isinstance(metric, dict) and isinstance(metric.get("higher_is_better"), bool):
                losses[task][str(metric.get("metric"))] = not metric["higher_is_better"]
    for task, metrics in said.items():
        for metric, higher in metrics.items() if isinstance(metrics, dict) else ():
            if isinstance(higher, bool):
                losses[task][metric] = not higher
    return losses
