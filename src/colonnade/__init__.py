"""colonnade: fill the gaps in tables of numbers, with an uncertainty for every filled value."""

from typing import TYPE_CHECKING

from ._support.importing import when_imported

__version__ = "0.2.0"

# A public name is imported when it is first asked for, so that the command line starts at once. Editors and type
# checkers read the imports under TYPE_CHECKING instead; a test compares the two lists.
if TYPE_CHECKING:
    from . import experiments, files, methods
    from .completion import Completion, algorithm1, complete
    from .data.observations import Observations
    from .data.sampling import observe
    from .data.sources import Source
    from .files import read
    from .interfaces.imputers.complete_sides import CompleteColumnsImputer, CompleteRowsImputer
    from .interfaces.imputers.low_rank import LowRankImputer
    from .interfaces.inspection import inspect
    from .measuring import evaluation, harness, leaderboard, theory
    from .measuring.acquisition import acquire
    from .measuring.planning import Plan, plan
    from .measuring.row_selection import select_rows
    from .methods.comparison import compare
    from .model.column_space import ColumnSpace, fit_column_space
    from .model.solve import Status, solve_columns
    from .scaling import dask
    from .scaling.blocks import complete_triples
_MODULE_OF = {
    "ColumnSpace": "model.column_space",
    "CompleteColumnsImputer": "interfaces.imputers.complete_sides",
    "CompleteRowsImputer": "interfaces.imputers.complete_sides",
    "Completion": "completion",
    "LowRankImputer": "interfaces.imputers.low_rank",
    "Observations": "data.observations",
    "Plan": "measuring.planning",
    "Source": "data.sources",
    "Status": "model.solve",
    "acquire": "measuring.acquisition",
    "algorithm1": "completion",
    "compare": "methods.comparison",
    "complete": "completion",
    "complete_triples": "scaling.blocks",
    "fit_column_space": "model.column_space",
    "inspect": "interfaces.inspection",
    "observe": "data.sampling",
    "plan": "measuring.planning",
    "read": "files",
    "select_rows": "measuring.row_selection",
    "solve_columns": "model.solve",
}
_MODULES = {
    "dask": "scaling.dask",
    "evaluation": "measuring.evaluation",
    "experiments": "experiments",
    "files": "files",
    "harness": "measuring.harness",
    "leaderboard": "measuring.leaderboard",
    "methods": "methods",
    "theory": "measuring.theory",
}

__all__ = [
    "ColumnSpace",
    "CompleteColumnsImputer",
    "CompleteRowsImputer",
    "Completion",
    "LowRankImputer",
    "Observations",
    "Plan",
    "Source",
    "Status",
    "acquire",
    "algorithm1",
    "compare",
    "complete",
    "complete_triples",
    "dask",
    "evaluation",
    "experiments",
    "files",
    "fit_column_space",
    "harness",
    "inspect",
    "leaderboard",
    "methods",
    "observe",
    "plan",
    "read",
    "select_rows",
    "solve_columns",
    "theory",
]


def __getattr__(name: str):
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{_MODULES[name]}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    return found


def __dir__():
    return sorted({*globals(), *__all__})


def _register_accessor() -> None:
    from .interfaces import xarray_accessor  # noqa: F401


when_imported("xarray", _register_accessor)
