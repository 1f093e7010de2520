"""A run of `complete_triples`: what is asked for, and who does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass

from ..files.results.checkpoints import fingerprints
from .triples.labels import TripleFiles


@dataclass(frozen=True)
class Engine:
    """Who does the parts of a run: functions of this module, or such that let a cluster do the same.

    Attributes
    ----------
    verify : function of (folder)
        Removes the records of damaged files.
    group : function of (run, folder)
        Writes the entries that are not there yet; returns the triples, the names, and the records of all blocks.
    learn : function of (run, folder, triples, entries)
        Learns, if that is not done yet; returns the record of the model.
    solve : function of (run, folder, m, entries, facts)
        Writes the solutions that are not there yet.
    finish : function of (run, folder, triples, names, entries, facts, identity)
        Writes the manifest.
    clear : function of (folder)
        Removes what only the run needs.
    """

    verify: Callable
    group: Callable
    learn: Callable
    solve: Callable
    finish: Callable
    clear: Callable


@dataclass(frozen=True)
class Run:
    """What is asked for, and who does it."""

    given: TripleFiles
    duplicates: str
    settings: dict
    bounds: tuple[float, float] | None
    memory: int
    block_entries: int
    progress: Callable
    engine: Engine

    def identity(self) -> dict:
        """What decides the numbers and where they are cut."""
        given = self.given
        return {
            "input": fingerprints(given.paths),
            "reading": [given.fields, given.shape, given.header, astuple(given.dialect), self.duplicates],
            "settings": {**self.settings, "bounds": self.bounds},
            "size of blocks": self.block_entries,
        }
