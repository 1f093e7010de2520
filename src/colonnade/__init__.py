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
    "Completion",
    "Observations",
    "Plan",
    "Source",
    "Status",
    "algorithm1",
    "complete",
    "fit_column_space",
    "observe",
    "plan",
    "solve_columns",
    "theory",
]
