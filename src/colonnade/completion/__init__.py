"""`complete` and `algorithm1`, the two ways to a filled table, and `Completion`, the result of both."""

from .completing import chosen_method, complete, completed_by, every_column_is_full
from .paper import algorithm1
from .result import Completion
from .settings import OWN_METHODS, Settings, checked_bounds, checked_method, refuse_idle_settings
from .words import data_in_words, outliers_in_words

__all__ = [
    "OWN_METHODS",
    "Completion",
    "Settings",
    "algorithm1",
    "checked_bounds",
    "checked_method",
    "chosen_method",
    "complete",
    "completed_by",
    "data_in_words",
    "every_column_is_full",
    "outliers_in_words",
    "refuse_idle_settings",
]
