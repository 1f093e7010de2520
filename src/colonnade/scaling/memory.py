"""How much memory a run may use, and what is left of it for the data."""

from __future__ import annotations

import numpy as np

from .._support.arguments import as_real
from ..files.tables.kinds import memory_size

MEMORY_SHARE = 0.6  # Of the machine, by default.
LEAST_MEMORY, OWN_MEMORY = 600_000_000, 250_000_000  # Bytes: the least limit; what the program and its libraries take.


def checked_memory(limit) -> int:
    """Bytes that may be used."""
    if limit is None:
        size = memory_size()
        return int(MEMORY_SHARE * size) if np.isfinite(size) else 8_000_000_000
    return int(as_real("memory_limit", limit, LEAST_MEMORY))


def memory_for_data(limit) -> float | None:
    """What a limit leaves for the data; None if there is none."""
    return None if limit is None else checked_memory(limit) - OWN_MEMORY


def sorting_memory(memory: int) -> int:
    """What DuckDB may have of it: two thirds of what the program itself and its libraries leave."""
    return (memory - OWN_MEMORY) * 2 // 3
