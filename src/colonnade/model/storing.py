"""A learned factor model as arrays and facts for a file, and back."""

from __future__ import annotations

import numpy as np

from .factor_model import FactorModel, Settings
from .learned import HeldOutEntries, Learned

_OF_MODEL = "shift", "unit", "U", "row_covariance", "Z", "column_covariance", "noise", "own_noise"
_OF_HELD_OUT = "rows", "columns", "truth", "predicted", "deviations"


def arrays_of_learned(learned: Learned) -> dict[str, np.ndarray]:
    """Arrays by name; no name is one of a completion's own arrays."""
    arrays = {f"model_{name}": getattr(learned.model, name) for name in _OF_MODEL}
    held_out = learned.held_out
    return arrays | ({} if held_out is None else {f"held_out_{name}": getattr(held_out, name) for name in _OF_HELD_OUT})


def facts_of_learned(learned: Learned) -> dict:
    """What JSON can hold; numbers that may be infinite as text."""
    s, held_out = learned.model.settings, learned.held_out
    given = {"rank": s.rank, "tail": repr(s.tail), "row_noise": s.row_noise}
    return {
        "settings": given | {"degrees": repr(s.degrees), "one_unit": s.one_unit, "whiten": s.whiten},
        "n_sweeps": learned.model.n_sweeps,
        "is_turned": learned.is_turned,
        "is_exact": learned.is_exact,
        "held_out": None if held_out is None else [repr(held_out.by_row), repr(held_out.by_column), held_out.like_gaps],
    }


def learned_from(facts: dict, arrays: dict, choices: dict) -> Learned:
    """What `arrays_of_learned` and `facts_of_learned` describe."""
    s = facts["settings"]
    settings = Settings(
        int(s["rank"]),
        float(s["tail"]),
        bool(s["row_noise"]),
        float(s["degrees"]),
        bool(s["one_unit"]),
        bool(s.get("whiten")),
    )
    model = FactorModel(*(arrays[f"model_{name}"] for name in _OF_MODEL), settings, int(facts["n_sweeps"]))
    held_out = None
    if facts["held_out"] is not None:
        by_row, by_column, like_gaps = facts["held_out"]
        found = (arrays[f"held_out_{name}"] for name in _OF_HELD_OUT)
        held_out = HeldOutEntries(*found, float(by_row), float(by_column), bool(like_gaps))
    return Learned(model, bool(facts["is_turned"]), held_out, bool(facts["is_exact"]), choices)
