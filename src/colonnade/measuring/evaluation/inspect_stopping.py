"""An adapter for Inspect: its runs stop by themselves as soon as the score is known well enough.

Inspect asks the object in ``Task(early_stopping=...)`` before every sample whether to skip it, and hands it the scores
of finished samples. These finish in any order; they count in the order in which they were begun, which must be random.
"""

from __future__ import annotations

import numbers

from ..._support.arguments import shown
from ...data.observations import as_observations
from .stopping import prepared

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # Inspect's grades.


class InspectStopping:
    """Stop a run of Inspect when the interval of the model's score is narrow enough.

    Use it as ``Task(..., early_stopping=InspectStopping(known, 0.03))`` and run with ``sample_shuffle=True``, because
    the interval is for questions in random order. The result is in the log, under ``early_stopping``.

    Parameters
    ----------
    data : Observations of shape (m, n)
        Answers of known models, as `read_logs` gives them: questions as rows, called "task/id" or "id".
    half_width : float
        Half width of the interval at which to stop, in the unit of the answers.
    level : float
        Probability with which the intervals hold the score at all times together.
    best_at : int
        Number of answers for which the interval is made narrowest; a guess is good enough.
    scorer : str, optional
        Which scorer counts. Default: the first.
    """

    def __init__(self, data, half_width: float = 0.03, *, level: float = 0.9, best_at: int = 200, scorer=None):
        self._observations = as_observations(data)
        if self._observations.row_names is None:
            raise ValueError("the questions have no names; Inspect finds them by task/id, as read_logs names them")
        self._start = prepared(self._observations, half_width, level=level, best_at=best_at)
        self._level, self._scorer, self._evaluation = level, scorer, None

    async def start_task(self, task, samples, epochs: int) -> str:
        """Called by Inspect with all samples, in the order in which they will run."""
        if not (task.config.sample_shuffle or task.dataset.shuffled):
            raise ValueError("the interval is for questions in random order: run Inspect with sample_shuffle=True")
        rows = self._rows_by_id({str(one.id) for one in samples})
        unknown = [one.id for one in samples if str(one.id) not in rows]
        if unknown or len(samples) != len(rows):
            what = f"has no answer to {shown(str(unknown[0]))}" if unknown else f"has {len(rows):,} questions"
            raise ValueError(f"the table of known models {what}, and the run has {len(samples):,}: both must agree")
        self._order = [str(one.id) for one in samples]
        self._evaluation = self._start([rows[one] for one in self._order])
        self._rows, self._epochs, self._values = rows, epochs, {one: [] for one in self._order}
        return "colonnade"

    def _rows_by_id(self, ids) -> dict:
        """Row of every sample id. Names are "task/id", and both task and id may hold slashes."""
        names = [str(name) for name in self._observations.row_names]
        for cut in range(max(name.count("/") for name in names) + 1):
            found = {"/".join(name.split("/")[cut:]): row for row, name in enumerate(names)}
            if len({tuple(name.split("/")[:cut]) for name in names}) == 1 and ids <= found.keys():
                return found
        return {name: row for row, name in enumerate(names)}

    async def schedule_sample(self, id, epoch: int):
        """Called by Inspect before a sample; skips it if the interval is narrow enough."""
        if not self._evaluation.done:
            return None
        from inspect_ai.util import EarlyStop

        reached = self._evaluation.result()
        return EarlyStop(id=id, epoch=epoch, reason=f"score {reached.score:.4f} after {reached.n_answers} answers")

    async def complete_sample(self, id, epoch: int, scores) -> None:
        """Called by Inspect with the scores of a sample; epochs are averaged."""
        if scores:
            name = next(iter(scores)) if self._scorer is None else self._scorer
            self._values[str(id)].append(_number(scores[name].score.value))
        while not self._evaluation.done and self._evaluation.n_answers < len(self._order):
            following = self._order[self._evaluation.n_answers]
            values = self._values[following]
            if len(values) < self._epochs:
                break
            self._evaluation.tell(self._rows[following], sum(values) / len(values))

    async def complete_task(self) -> dict:
        """Called by Inspect at the end: the score and its interval, for the log."""
        reached = self._evaluation.result()
        return {
            "score": reached.score,
            "low": reached.low,
            "high": reached.high,
            "level": self._level,
            "n_answers": reached.n_answers,
        }


def _number(value) -> float:
    if isinstance(value, str) and value in _LETTERS:
        return _LETTERS[value]
    if isinstance(value, numbers.Real):
        return float(value)
    raise ValueError(f"the score {shown(str(value))} is not a number; name another scorer")
