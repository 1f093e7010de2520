"""Which column of the table a run belongs to: models, and where needed their revisions, dtypes and shots."""

from __future__ import annotations

import hashlib
from collections import defaultdict

from ...._support.arguments import shown
from ...._support.printable import printable
from .runs import Run


def column_names(runs: list[Run]) -> list[str]:
    """The name of the column of every run.

    Runs of one model whose settings differ are different columns, named by the settings in which they differ. How a
    model was asked may depend on the task; it makes columns only where one task was asked in several ways.
    """
    names = [""] * len(runs)
    for model, members in _grouped(runs).items():
        labels = _labels(model, [runs[k] for k in members], "settings", _differing)
        for label in set(labels):
            chosen = [k for k, one in zip(members, labels) if one == label]
            for k, asked in zip(chosen, _labels(model, [runs[k] for k in chosen], "asked", _clashing)):
                words = ", ".join(word for word in (label, asked) if word)
                names[k] = f"{model} ({words})" if words else model
    _refuse_same_name(runs, names)
    return names


def _grouped(runs: list[Run]) -> dict[str, list[int]]:
    groups = defaultdict(list)
    for k, run in enumerate(runs):
        groups[run.model].append(k)
    return groups


def _differing(runs: list[Run]) -> list[str]:
    """The settings in which runs differ."""
    return [key for key in _keys(runs, "settings") if len({run.settings.get(key) for run in runs}) > 1]


def _clashing(runs: list[Run]) -> list[str]:
    """The ways of asking in which runs of one task differ."""
    tasks = defaultdict(list)
    for run in runs:
        tasks[run.task].append(run)
    return [
        key
        for key in _keys(runs, "asked")
        if any(len({run.asked.get(key) for run in same}) > 1 for same in tasks.values())
    ]


def _keys(runs: list[Run], of: str) -> list[str]:
    return sorted({key for run in runs for key in getattr(run, of)})


def _labels(model: str, runs: list[Run], of: str, differing) -> list[str]:
    """In words what tells every run of a model from its other runs; nothing if they are all alike."""
    known = [run for run in runs if getattr(run, of) is not None]
    keys = differing(known)
    if not keys:
        return [""] * len(runs)
    unknown = [run for run in runs if getattr(run, of) is None]
    if unknown:
        raise ValueError(
            f"there are logs of {shown(model)} with different {_and(keys)}, and {printable(unknown[0].source)} does not"
            " say which it belongs to: put its results_DATE.json beside it, or leave it out"
        )
    labels = [", ".join(_in_words(key, getattr(run, of).get(key)) for key in keys) for run in runs]
    if of == "asked":
        _refuse_strays(model, runs, labels, keys)
    return labels


def _refuse_strays(model: str, runs: list[Run], labels: list[str], keys: list[str]) -> None:
    """A log of another task belongs to the variant that was asked in the same way; if there is none, nobody knows."""
    variants = defaultdict(set)
    for run, label in zip(runs, labels):
        variants[run.task].add(label)
    clashing = set().union(*(found for found in variants.values() if len(found) > 1))
    for run, label in zip(runs, labels):
        if label not in clashing:
            raise ValueError(
                f"there are logs of {shown(model)} with different {_and(keys)} ({'; '.join(sorted(clashing))}), and"
                f" {printable(run.source)} is of neither kind ({label}): read it separately"
            )


def _in_words(key: str, value: str | None) -> str:
    """A setting as part of a name; a long one is shortened but stays distinct."""
    if value is None:
        return f"no {key}"
    if len(value) > 40:
        value = f"{value[:20]}...{hashlib.sha256(value.encode()).hexdigest()[:8]}"
    return f"{value}-shot" if key == "shots" else f"{key}={value}"


def _and(keys: list[str]) -> str:
    return " and ".join(map(printable, keys[:3]))


def _refuse_same_name(runs: list[Run], names: list[str]) -> None:
    """Two models must not fall into one column because one is called as a variant of the other is described."""
    owner = {}
    for run, name in zip(runs, names):
        if owner.setdefault(name, run.model) != run.model:
            raise ValueError(f"two different models would both be called {shown(name)}: read their logs separately")
