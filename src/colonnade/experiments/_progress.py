"""Progress of an experiment: what is done, what is next and how long it will take."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where a run stands, before the unit `next_unit` (None at the end).

    Attributes
    ----------
    experiment : str
    done, total : int
        Units.
    seconds_left : float or None
        None while nothing is known.
    next_unit : str or None
    """

    experiment: str
    done: int
    total: int
    seconds_left: float | None
    next_unit: str | None

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f", about {_duration(self.seconds_left)} left"
        now = f": {self.next_unit}" if self.next_unit else ""
        return f"{self.experiment} {self.done}/{self.total}{left}{now}"


class Clock:
    """Time left, from the share of the estimated cost that is done in this run."""

    def __init__(self, costs: list[float]):
        self._left, self._spent = sum(costs), 0.0
        self._start, self._processor_start = time.perf_counter(), time.process_time()

    def finish(self, cost: float) -> None:
        self._left -= cost
        self._spent += cost

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    @property
    def processor_seconds(self) -> float:
        return time.process_time() - self._processor_start

    def seconds_left(self) -> float | None:
        return self.seconds * max(self._left, 0.0) / self._spent if self._spent else None


class Lines:
    """Progress on standard error: one line that is rewritten on a terminal, else a line every few seconds."""

    def __init__(self, stream=None, every: float = 15.0):
        self._stream, self._every, self._last = stream or sys.stderr, every, -every
        self._terminal = self._stream.isatty()

    def __call__(self, progress: Progress) -> None:
        ended = progress.next_unit is None
        if self._terminal:
            self._stream.write(f"\r\x1b[K{progress}" + ("\n" if ended else ""))
        elif ended or time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            self._stream.write(f"{progress}\n")
        self._stream.flush()


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
