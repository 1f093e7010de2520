"""Tasks of a benchmark: groups of questions with weights of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._support.arguments import as_real, shown


@dataclass(frozen=True)
class Tasks:
    """`strata` (m,) are numbers of tasks; `weights` (m,) of the questions sum to 1."""

    names: tuple
    strata: np.ndarray
    weights: np.ndarray

    def domain(self, task: int) -> np.ndarray:
        """Equal weights within one task, shape (m,)."""
        inside = self.strata == task
        return inside / inside.sum()

    @property
    def is_uniform(self) -> bool:
        """Whether all questions have the same weight."""
        return bool(np.ptp(self.weights) <= 1e-12 * self.weights.max())

    @property
    def shares(self) -> np.ndarray:
        """Weight of every task."""
        return np.bincount(self.strata, self.weights, minlength=len(self.names))


def as_tasks(m: int, groups, task_weights) -> Tasks:
    """One task for all questions by default; `task_weights` is "micro", "macro" or {task: weight}."""
    if groups is None:
        if not isinstance(task_weights, str) or task_weights != "micro":
            raise ValueError("task_weights needs groups: give the task of every question")
        return Tasks(("all",), np.zeros(m, np.int64), np.full(m, 1 / m))
    labels = np.asarray(groups)
    if labels.shape != (m,):
        raise ValueError(f"groups has the shape {labels.shape}; one label per question is needed: ({m},)")
    names, strata = np.unique(labels, return_inverse=True)
    shares = _shares(names, np.bincount(strata), task_weights)
    sizes = np.bincount(strata)
    return Tasks(tuple(names.tolist()), strata, (shares / sizes)[strata])


def _shares(names, sizes, task_weights) -> np.ndarray:
    if isinstance(task_weights, str):
        if task_weights not in ("micro", "macro"):
            raise ValueError(f'task_weights is {task_weights!r}; it must be "micro", "macro" or a weight per task')
        return sizes / sizes.sum() if task_weights == "micro" else np.full(sizes.size, 1 / sizes.size)
    missing = [name for name in names.tolist() if name not in task_weights]
    unknown = [name for name in task_weights if name not in names.tolist()]
    if missing or unknown:
        word, name = ("lacks", missing[0]) if missing else ("names", unknown[0])
        raise ValueError(f"task_weights {word} {shown(str(name))}; give a weight for each of the {len(names)} tasks")
    weights = np.array([as_real("a weight of task_weights", task_weights[name], 0) for name in names.tolist()])
    if weights.sum() == 0:
        raise ValueError("all task_weights are 0; one task must have a positive weight")
    return weights / weights.sum()


def as_clusters(m: int, clusters) -> np.ndarray | None:
    """Numbers of the clusters of rows, such as the questions of one passage."""
    if clusters is None:
        return None
    labels = np.asarray(clusters)
    if labels.shape != (m,):
        raise ValueError(f"clusters has the shape {labels.shape}; one label per question is needed: ({m},)")
    return np.unique(labels, return_inverse=True)[1]
