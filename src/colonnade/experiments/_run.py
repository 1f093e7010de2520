"""The run of an experiment: its units one after the other, each on disk before the next, then verdicts and figures."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable
from importlib import import_module, util
from pathlib import Path

import numpy as np

from .._support.arguments import as_choice, printable
from .._support.threads import default_threads, one_blas_thread
from ._matrices import SEED
from ._progress import Clock, Progress
from ._results import Results, save_figure
from ._verdicts import Verdict

NAMES = ("figure1", "figure2", "theory")


def reproduce(
    names: str | Iterable[str] = "all",
    out="reproduction",
    *,
    quick: bool = False,
    resume: bool = False,
    force: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> list[Verdict]:
    """Rerun experiments of Wan, Yi, Zhang (2018) and say whether the claims hold.

    Parameters
    ----------
    names : {"all", "figure1", "figure2", "theory"} or several of them
    out : path
        A folder for the results: of each experiment a CSV of every trial, a JSON of machine facts, seeds and verdicts,
        and for the figures PNG and SVG. The CSV, the figures and the verdicts are the same bytes however often the
        run was interrupted; the part "run" of the JSON, which holds machine and timings, is not.
    quick : bool
        Sizes up to 1000 that take seconds instead of those of the paper.
    resume : bool
        Keep the finished units of an interrupted run. Otherwise results of the same settings are computed anew.
    force : bool
        Replace results of other settings.
    progress : function, optional
        Called with a `Progress` before every unit and at the end.

    Returns
    -------
    list of Verdict
    """
    experiments = [import_module(f".{name}", __package__) for name in _checked_names(names)]
    if util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError("the figures need matplotlib: pip install 'colonnade[cli]'")
    every = [(experiment, _results(experiment, Path(out), quick)) for experiment in experiments]
    for _, results in every:
        results.check(force)
    verdicts = []
    for experiment, results in every:
        verdicts += _run(experiment, results, resume, progress or (lambda _: None))
    return verdicts


def redraw(name: str, out) -> None:
    """Draw the figure of a finished experiment from its files alone."""
    (name,) = _checked_names([name])
    experiment, results = import_module(f".{name}", __package__), Results(Path(out), name, {}, ())
    stored = results.stored()
    if not stored.get("finished"):
        raise ValueError(f"{printable(results.path('json'))} is not of a finished experiment; run it with --resume")
    if hasattr(experiment, "draw"):
        save_figure(experiment.draw(results.table(), stored["settings"]), results)


def _run(experiment, results: Results, resume: bool, progress) -> list[Verdict]:
    results.start(resume)
    settings = results.settings
    units = experiment.units(settings)
    todo = [unit for unit in units if unit.key not in results.done]
    clock = Clock([unit.cost for unit in todo])
    for k, unit in enumerate(todo):
        progress(Progress(results.name, len(units) - len(todo) + k, len(units), clock.seconds_left(), unit.key))
        with one_blas_thread():  # settings["blas_threads"]
            rows = experiment.run(unit, settings)
        results.append(unit.key, rows)
        clock.finish(unit.cost)
    verdicts = experiment.verdicts(results.table(), settings)
    run = _facts(clock, len(units) - len(todo)) if todo else results.stored().get("run", {})
    facts = {"finished": True, "seed": SEED, "verdicts": [verdict.as_dict() for verdict in verdicts], "run": run}
    drawn = all(results.path(ending).exists() for ending in ("png", "svg"))
    if hasattr(experiment, "draw") and (todo or not drawn):
        save_figure(experiment.draw(results.table(), settings), results)
    results.store(facts)
    progress(Progress(results.name, len(units), len(units), 0.0, None))
    return verdicts


def _results(experiment, folder: Path, quick: bool) -> Results:
    name = experiment.__name__.rpartition(".")[2]
    return Results(folder, name, experiment.QUICK if quick else experiment.PAPER, experiment.COLUMNS)


def _checked_names(names) -> list[str]:
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        as_choice("the experiment", name, (*NAMES, "all"))
    return [name for name in NAMES if name in names or "all" in names]


def _facts(clock: Clock, resumed_units: int) -> dict:
    """What was run on; the only part of the results that differs from run to run."""
    facts = {
        "seconds": round(clock.seconds, 1),
        "processor_seconds": round(clock.processor_seconds, 1),
        "units_kept_from_before": resumed_units,
        "processor": platform.processor() or platform.machine(),
        "threads": default_threads(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    if sys.platform != "win32":
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        facts["peak_gigabytes"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9, 2)
    return facts
