"""``per_instance_stats.json`` of HELM: for every instance and trial a list of statistics.

Model and task are in ``run_spec.json`` beside it. Trials are repeats; perturbed copies of an instance are left out.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path

from ...._support.arguments import shown
from ...._support.printable import printable
from .json_text import an_object, document_of, field, is_number, number_of, text_of
from .runs import Answer, Choices, Run

# HELM logs dozens of numbers per instance and does not mark the score. The first of these that is there counts:
# measures made for one kind of task before general ones, since general ones are logged beside them.
SCORES = (
    *("math_equiv_chain_of_thought", "math_equiv", "final_number_exact_match", "ifeval_strict_accuracy"),
    *("chain_of_thought_correctness", "wildbench_score_rescaled", "omni_math_accuracy", "test_avg", "pass", "bleu_4"),
    *("f1_score", "rouge_l", "exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match"),
)


def read_helm(path: Path, choices: Choices) -> list[Run]:
    """The run of a file, or nothing if its task is not wanted or has no score."""
    run = _named(path, choices)
    if not choices.wants(run.task):
        return []
    instances = document_of(path)
    if not isinstance(instances, list):
        raise ValueError(f"{printable(path)} is not a list of instances, as HELM writes it")
    values = defaultdict(list)
    for k, instance in enumerate(instances):
        place = f"instance {k} of {printable(path)}"
        if an_object(instance, place).get("perturbation") is not None:
            continue
        stats = _stats(instance, place)
        if not run.metric:
            run.metric = choices.metric_of(run.task, _offered(stats, choices), (), place) or ""
            if not run.metric:
                return []
        if run.metric in stats:
            question = text_of(field(instance, "instance_id", (str, int), place))
            values[question].append(_mean_of(stats[run.metric], run.metric, place))
    for question, pairs in values.items():
        weight = math.fsum(count for _, count in pairs)
        run.add(question, Answer(math.fsum(mean * count for mean, count in pairs) / weight, weight))
    return [run] if run.answers else []


def _offered(stats: dict, choices: Choices) -> list[str]:
    """Scores that may be read at will: the known ones in their order, and any other if it is asked for."""
    return [name for name in (*SCORES, choices.metric) if name in stats]


def _stats(instance: dict, place: str) -> dict[str, dict]:
    """The statistics of an instance that have a value, by name."""
    result = {}
    for stat in field(instance, "stats", list, place):
        name = an_object(an_object(stat, place).get("name"), f"the name of a statistic of {place}")
        if name.get("perturbation") is None and stat.get("count"):
            result.setdefault(field(name, "name", str, place), stat)
    return result


def _mean_of(stat: dict, metric: str, place: str) -> tuple[float, float]:
    """Mean and count of a statistic."""
    what = f"the statistic {shown(metric)}"
    count = number_of(stat["count"], f"the count of {shown(metric)}", place)
    if count <= 0:
        raise ValueError(f"the count of {shown(metric)} at {place} is not positive: run the model again")
    if is_number(stat.get("mean")):
        return number_of(stat["mean"], what, place), count
    return number_of(stat.get("sum"), what, place) / count, count


def _named(path: Path, choices: Choices) -> Run:
    """Model and task from ``run_spec.json``, else from the folder, which HELM calls ``task:key=value,model=name``."""
    beside = path.parent / "run_spec.json"
    spec = an_object(document_of(beside), printable(beside)) if beside.is_file() else {}
    name = text_of(spec.get("name") or path.resolve().parent.name)
    adapter = spec.get("adapter_spec") if isinstance(spec.get("adapter_spec"), dict) else {}
    pieces = re.split(r"[:,]", name)
    in_name = next((piece.partition("=")[2] for piece in pieces if piece.startswith("model=")), None)
    model = adapter.get("model") or adapter.get("model_deployment") or in_name
    if not isinstance(model, str):
        choices.notes["unnamed", str(path)] = (
            f"no run_spec.json lies beside {printable(path)}: model and task are called {shown(name)} after its folder"
        )
        return Run(path, "helm", name, name, "")
    task, _, arguments = name.partition(":")
    kept = [one for one in arguments.split(",") if one and not one.startswith(("model=", "model_deployment="))]
    run = Run(path, "helm", text_of(model), f"{task}:{','.join(kept)}" if kept else task, "")
    run.settings = _texts(adapter, {"model_deployment": "deployment"})
    names = {"max_train_instances": "shots", "temperature": "temperature", "instructions": "instructions"}
    run.asked = _texts(adapter, names | {"max_tokens": "max_tokens", "method": "method"})
    return run


def _texts(adapter: dict, names: dict[str, str]) -> dict[str, str]:
    """As texts, under other names, what is set."""
    return {new: text_of(adapter[old]) for old, new in names.items() if adapter.get(old) not in (None, "")}
