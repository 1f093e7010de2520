"""Questions that were drawn, with the probabilities of the draw: what `score` must know about them, and its file."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from ..._support.arguments import shown
from ..._support.atomic_writing import new_file
from ..._support.printable import printable

_KIND, _VERSION = "colonnade questions", 1
DESIGNS = "balanced", "random", "chosen"


@dataclass(frozen=True)
class Questions:
    """Drawn questions.

    Attributes
    ----------
    rows : int64 array of shape (k,)
        Rows of the table that they were drawn from, rising.
    probabilities : float array of shape (k,)
        Chance that each of them had to be drawn; 1 where nothing was left to chance.
    design : "balanced", "random" or "chosen"
    n_rows : int
        m, the number of questions that there were.
    names : str array of shape (k,) or None
        Names of the rows, if the table has names. They find the questions in another table.
    """

    rows: np.ndarray
    probabilities: np.ndarray
    design: str
    n_rows: int
    names: np.ndarray | None = None

    def save(self, path, *, force: bool = False) -> None:
        """Write them as JSON, whole or not at all."""
        names = [None] * self.rows.size if self.names is None else [str(name) for name in self.names]
        asked = [
            {"question": name, "row": int(row), "probability": float(p)}
            for name, row, p in zip(names, self.rows, self.probabilities)
        ]
        record = {
            "kind": _KIND, "version": _VERSION, "design": self.design, "n_rows": self.n_rows, "questions": asked
        }  # fmt: skip
        with new_file(path, force=force) as working:
            working.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path) -> Questions:
        """Read what `save` wrote."""
        try:
            with open(path, encoding="utf-8") as file:
                record = json.load(file)
        except (ValueError, RecursionError):
            raise ValueError(f"{printable(path)} is not JSON; give the file that `evaluate select` wrote") from None
        try:
            return cls._of_record(record)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"{printable(path)} is not a file of questions ({error}); give the file that `evaluate select` wrote"
            ) from None

    @classmethod
    def _of_record(cls, record) -> Questions:
        if not isinstance(record, dict) or record.get("kind") != _KIND or record.get("version") != _VERSION:
            raise ValueError(f"kind and version are not {_KIND} {_VERSION}")
        asked, design, m = record["questions"], record["design"], record["n_rows"]
        rows = np.array([one["row"] for one in asked], np.int64)
        p = np.array([one["probability"] for one in asked], np.float64)
        names = [one["question"] for one in asked]
        if design not in DESIGNS:
            raise ValueError(f"design is {design!r}")
        if not rows.size or rows.min() < 0 or rows.max() >= m or np.unique(rows).size < rows.size:
            raise ValueError("rows must be different and below n_rows")
        if not ((p > 0) & (p <= 1)).all():
            raise ValueError("probabilities must be above 0 and at most 1")
        return cls(rows, p, design, int(m), None if None in names else np.array(names, dtype=np.str_))

    def probabilities_of_rows(self, observations) -> np.ndarray:
        """Probability of every row of a table, 0 for those that were not drawn: shape (m,)."""
        result = np.zeros(observations.shape[0])
        result[self._rows_in(observations)] = self.probabilities
        return result

    def _rows_in(self, o) -> np.ndarray:
        if o.shape[0] != self.n_rows:
            raise ValueError(
                f"the questions were drawn from {self.n_rows:,} and the table has {o.shape[0]:,};"
                " give the table that they were drawn from, with further models only"
            )
        if self.names is None or o.row_names is None:
            return self.rows
        place = {str(name): i for i, name in enumerate(o.row_names)}
        missing = [name for name in self.names if str(name) not in place]
        if missing:
            raise ValueError(f"the table has no question {shown(str(missing[0]))} of the file of questions")
        return np.array([place[str(name)] for name in self.names], np.int64)


def as_questions(value) -> Questions | None:
    """Questions, the path of their file, or None."""
    return value if value is None or isinstance(value, Questions) else Questions.load(value)
