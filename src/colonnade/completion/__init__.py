"""`complete` and `algorithm1`, the two ways to a filled table, and `Completion`, the result of both."""

from .completing import chosen_method, complete, completed_by, every_column_is_full
from .paper import algorithm1
from .result import Completion
from .settings import Settings, checked_bounds
from .words import data_in_words

__all__ = [
    "Completion",
    "Settings",
    "algorithm1",
    "checked_bounds",
    "chosen_method",
    "complete",
    "completed_by",
    "data_in_words",
    "every_column_is_full",
]
