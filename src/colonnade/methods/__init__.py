"""The rivals, a file each: every one reads through a Source and returns a Completion."""

from .active_columns import active_columns
from .adaptive_column_sampling import adaptive_column_sampling
from .adaptive_completion import adaptive_completion
from .column_probabilities import column_probabilities
from .cur_plus import cur_plus
from .entrywise_subsampling import entrywise_subsampling
from .lifelong_completion import lifelong_completion
from .norm_sampling import norm_sampling
from .nystrom import nystrom

__all__ = [
    "active_columns",
    "adaptive_column_sampling",
    "adaptive_completion",
    "column_probabilities",
    "cur_plus",
    "entrywise_subsampling",
    "lifelong_completion",
    "norm_sampling",
    "nystrom",
]
