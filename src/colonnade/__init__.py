"""colonnade: complete a matrix of which some columns are known in full and the rest at a few entries each."""

__version__ = "0.1.0"

from . import theory
from .column_space import ColumnSpace, fit_column_space
from .completion import Completion, algorithm1, complete
from .observations import Observations
from .observe import observe
from .planning import Plan, plan
from .solve import Status, solve_columns
from .sources import Source

__all__ = [
    "ColumnSpace",
    "CompleteColumnsImputer",
    "CompleteRowsImputer",
    "Completion",
    "Observations",
    "Plan",
    "Source",
    "Status",
    "algorithm1",
    "complete",
    "experiments",
    "fit_column_space",
    "methods",
    "observe",
    "plan",
    "solve_columns",
    "theory",
]

_LATE = {"CompleteColumnsImputer": "estimators", "CompleteRowsImputer": "estimators"}
_LATE_MODULES = "experiments", "methods"


def __getattr__(name):
    """What takes long to import is imported when it is first asked for."""
    from importlib import import_module

    if name in _LATE_MODULES:
        return import_module(f".{name}", __name__)
    if name in _LATE:
        return getattr(import_module(f".{_LATE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
