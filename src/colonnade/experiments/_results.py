"""The files of an experiment: a CSV of trials that grows by whole units, and a JSON of facts. Never a broken one."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np

from .._support.arguments import printable
from .._support.atomic_writing import new_file

_ENDINGS = "json", "csv", "png", "svg"


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step: whoever reads it, even after a crash, sees the old content or the new one."""
    with new_file(path, force=True) as working:
        working.write_bytes(content)


class Results:
    """The results of one experiment in a folder.

    Attributes
    ----------
    settings : dict
        Everything that decides the numbers; stored with them.
    done : set of str
        The units whose trials are on disk.
    """

    def __init__(self, folder: Path, name: str, settings: dict, columns: tuple[str, ...]):
        self.folder, self.name, self.columns = folder, name, ("unit", *columns)
        self.settings = json.loads(json.dumps(settings))  # The settings as they read back.
        self._lines = [",".join(self.columns)]
        self.done: set[str] = set()

    def path(self, ending: str) -> Path:
        return self.folder / f"{self.name}.{ending}"

    def check(self, force: bool) -> None:
        """Refuse a folder with results that `start` would mix with or destroy."""
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(20, "the output must be a folder and is a file", str(self.folder))
        if force or not any(self.path(ending).exists() for ending in _ENDINGS):
            return
        if self.stored().get("settings") != self.settings:
            raise ValueError(
                f"{printable(self.folder)} holds results of {self.name} with other settings, or other files of their"
                " names; choose another folder with --out, or replace them with --force"
            )

    def start(self, resume: bool) -> None:
        """Begin with an empty table, or with the one on disk if it is to be continued and of the same settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if resume and self.path("csv").exists() and self.stored().get("settings") == self.settings:
            self._read()
            return
        for ending in _ENDINGS[:0:-1]:  # The settings on disk change last.
            self.path(ending).unlink(missing_ok=True)
        self.store({"finished": False})
        self._write()

    def append(self, unit: str, rows) -> None:
        """Add the trials of a unit and write the table."""
        self._lines += [",".join([unit, *map(_text, row)]) for row in rows]
        self.done.add(unit)
        self._write()

    def table(self) -> list[dict]:
        """The trials on disk, numbers as numbers."""
        with open(self.path("csv"), newline="", encoding="utf-8") as file:
            return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]

    def store(self, facts: dict) -> None:
        content = {"experiment": self.name, "settings": self.settings, **facts}
        write_atomically(self.path("json"), (json.dumps(content, indent=2) + "\n").encode())

    def stored(self) -> dict:
        """The facts on disk; empty if there are none or they are not ours."""
        try:
            content = json.loads(self.path("json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _read(self) -> None:
        lines = self.path("csv").read_text("utf-8").splitlines()
        if not lines or lines[0] != self._lines[0] or any(line.count(",") != len(self.columns) - 1 for line in lines):
            raise ValueError(f"{printable(self.path('csv'))} is not a table of {self.name}; start again with --force")
        self._lines, self.done = lines, {line.split(",")[0] for line in lines[1:]}

    def _write(self) -> None:
        write_atomically(self.path("csv"), ("\n".join(self._lines) + "\n").encode())


def save_figure(figure, results: Results) -> None:
    """PNG and SVG of a figure, the same bytes every time."""
    import matplotlib

    for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        content = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "colonnade"}):
            figure.savefig(content, format=ending, dpi=150, metadata=metadata)
        write_atomically(results.path(ending), content.getvalue())


def _text(value) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)


def _value(text: str):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"yes": True, "no": False}.get(text, text)
