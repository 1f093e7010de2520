"""What the constants of the model are worth: the error with each of them changed, over the error as it is.

Problems as in `gaps`: tables that scikit-learn ships, and those of --data. A ratio above 1 says that the change costs
accuracy. --full changes the constants of full columns; problems are then as in `learners`, and each stands twice: as it
is, and with one of 200 known entries of partial columns a hundred times too large.
"""

from __future__ import annotations

import argparse
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import colonnade as co
from benchmarks import learners
from benchmarks.gaps import error, problem, shipped
from benchmarks.machine import facts
from colonnade.model import exact, factor_model, hidden_entries, selection, sweeps, table
from colonnade.model.full_columns import column_outliers, learn, refine, validation

CHANGES = {
    "TAIL / 10": (factor_model, "TAIL", 0.002),
    "TAIL * 10": (factor_model, "TAIL", 0.2),
    "_SHORT_TAIL not tried": (selection, "_SHORT_TAIL", 0.02),
    "_LONG_TAIL not tried": (selection, "_LONG_TAIL", 0.02),
    "_FIRST_DIRECTIONS halved": (selection, "_FIRST_DIRECTIONS", 12),
    "_MOST_DIRECTIONS halved": (selection, "_MOST_DIRECTIONS", 25),
    "_LEVEL_PRECISION / 10": (sweeps, "_LEVEL_PRECISION", 0.01),
    "_LEVEL_PRECISION * 10": (sweeps, "_LEVEL_PRECISION", 1.0),
    "one stop at 30 sweeps": (selection, "_STOPS", (30,)),
    "a stop at 8 sweeps too": (selection, "_STOPS", (8, 15, 30, 60, 120, 240)),
    "no stops beyond 60": (selection, "_STOPS", (15, 30, 60)),
    "_LITTLE_FIRST_NOISE not tried": (selection, "_LITTLE_FIRST_NOISE", None),
    "_LITTLE_FIRST_NOISE / 10": (selection, "_LITTLE_FIRST_NOISE", 1e-3),
    "_TOLERANCE * 10": (selection, "_TOLERANCE", 1e-3),
    "HIDDEN_SHARE halved": (hidden_entries, "HIDDEN_SHARE", 0.05),
    "HIDDEN_SHARE doubled": (hidden_entries, "HIDDEN_SHARE", 0.2),
    "_BETTER 1": (selection, "_BETTER", 1.0),
    "_BETTER_UNITS 1": (selection, "_BETTER_UNITS", 1.0),
    "_CLEARLY_BETTER 1": (selection, "_CLEARLY_BETTER", 1.0),
    "_DEGREES doubled": (selection, "_DEGREES", 8.0),
    "OUTLIER doubled": (hidden_entries, "OUTLIER", 10.0),
    "_ENOUGH halved": (table, "_ENOUGH", 5),
    "_ALIKE halved": (table, "_ALIKE", 10.0),
    "_REACH halved": (table, "_REACH", 5.0),
    "exact fit not tried": (exact, "_SPARE", np.inf),
}
FULL_CHANGES = {
    "_ASKED_ENTRIES halved": (learn, "_ASKED_ENTRIES", 2_000),
    "_ASKED_ENTRIES doubled": (learn, "_ASKED_ENTRIES", 8_000),
    "no offset tried": (learn, "_OFFSET_SHARES", (0.0,)),
    "offset .01 not tried": (learn, "_OFFSET_SHARES", (0.0, 1.0)),
    "_AS_GOOD 1": (learn, "_AS_GOOD", 1.0),
    "_AS_GOOD 1.012": (learn, "_AS_GOOD", 1.012),
    "no drop is cut off": (learn, "_AS_GOOD", 0.0),
    "_STEP halved": (learn, "_STEP", 0.25),
    "_LIKELY 0": (learn, "_LIKELY", 0.0),
    "_LIKELY doubled": (learn, "_LIKELY", 1.0),
    "_COUNTED halved": (validation, "_COUNTED", 5.0),
    "_COUNTED doubled": (validation, "_COUNTED", 20.0),
    "all losses count": (validation, "_COUNTED", np.inf),
    "_EQUAL 0": (validation, "_EQUAL", 0.0),
    "_EQUAL doubled": (validation, "_EQUAL", 4e-3),
    "_SWEEPS 1": (refine, "_SWEEPS", 1),
    "_SWEEPS 4": (refine, "_SWEEPS", 4),
    "_MOST_ROUNDS 1": (refine, "_MOST_ROUNDS", 1),
    "_MOST_OPTIMISM 1.5": (refine, "_MOST_OPTIMISM", 1.5),
    "_MOST_OPTIMISM 3": (refine, "_MOST_OPTIMISM", 3.0),
    "_FAR halved": (column_outliers, "_FAR", 10.0),
    "_FAR doubled": (column_outliers, "_FAR", 40.0),
    "no outlier is left out": (column_outliers, "_FAR", np.inf),
    "_FORETOLD halved": (column_outliers, "_FORETOLD", 0.25),
    "_FORETOLD doubled": (column_outliers, "_FORETOLD", 1.0),
}


@contextmanager
def changed(module, name: str, value):
    """A constant of a module with another value for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    defaults = factor_model.Settings.__init__.__defaults__
    if name == "TAIL":
        factor_model.Settings.__init__.__defaults__ = (value, *defaults[1:])
    try:
        yield
    finally:
        setattr(module, name, before)
        factor_model.Settings.__init__.__defaults__ = defaults


def main(arguments) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks ablation", description=__doc__)
    parser.add_argument("--data", type=Path, action="append", default=[], help="folder with *.npz; may be repeated")
    parser.add_argument("--share", type=float, default=0.5, help="of the entries that are kept")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="change the constants of full columns")
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    print(facts())
    tables = shipped()
    for folder in given.data:
        for path in sorted(folder.glob("*.npz")):
            with np.load(path, allow_pickle=False) as arrays:
                if "X" in arrays:
                    tables[path.stem] = arrays["X"]
    method = "full columns" if given.full else "factor model"
    if given.full:
        problems = dict(_full_problems(tables, given.seeds))
    else:
        problems = {
            (name, seed): problem(X, given.share, seed) for name, X in tables.items() for seed in range(given.seeds)
        }
    as_it_is = {key: _error(method, *p) for key, p in problems.items()}
    print(f"{'change':26}  mean   " + "  ".join("/".join(map(str, key)) for key in problems))
    for what, change in (FULL_CHANGES if given.full else CHANGES).items():
        with changed(*change):
            ratios = [_error(method, *p) / as_it_is[key] for key, p in problems.items()]
        mean = np.exp(np.mean(np.log(ratios)))
        print(f"{what:26}  {mean:.3f}  " + "  ".join(f"{ratio:.3f}" for ratio in ratios), flush=True)
    return 0


def _full_problems(tables, n_seeds: int):
    """Tables with 15 or 50 full columns and .3 of the other entries, as they are and with typing errors."""
    for name, X in tables.items():
        for seed in range(n_seeds):
            for d in (15, 50):
                rng = np.random.default_rng(seed)
                drawn = learners.problem(X, d, 0.3, rng)
                if drawn is None:
                    continue
                M, truth, hidden = drawn
                typos = np.isfinite(M) & (rng.random(M.shape) < 0.005)
                typos[:, :d] = False
                yield (name, d, seed), drawn
                yield (name, d, f"{seed} typos"), (np.where(typos, 100 * M, M), truth, hidden)


def _error(method: str, M, truth, hidden) -> float:
    """In units of each row's spread, so that no unit counts."""
    spread = np.nanstd(truth, axis=1, keepdims=True)
    spread[spread == 0] = 1.0
    return error(co.complete(M, method=method).to_dense() / spread, truth / spread, hidden)
