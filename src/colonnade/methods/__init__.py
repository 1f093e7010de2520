"""The rivals, a file each, all returning a Completion.

Those that choose what is measured take a `Source`, and read through it alone. Those that iterate take what is known
already: data with gaps, or what `observe` has drawn from a source.
"""

from .active_columns import active_columns
from .adaptive_column_sampling import adaptive_column_sampling
from .adaptive_completion import adaptive_completion
from .als import als
from .column_probabilities import column_probabilities
from .cur_plus import cur_plus
from .entrywise_subsampling import entrywise_subsampling
from .lifelong_completion import lifelong_completion
from .norm_sampling import norm_sampling
from .nystrom import nystrom
from .optspace import optspace
from .soft_impute import soft_impute
from .svt import svt
from .tall_project import tall_project
from .tall_project_errors import tall_project_errors

__all__ = [
    "active_columns",
    "adaptive_column_sampling",
    "adaptive_completion",
    "als",
    "column_probabilities",
    "cur_plus",
    "entrywise_subsampling",
    "lifelong_completion",
    "norm_sampling",
    "nystrom",
    "optspace",
    "soft_impute",
    "svt",
    "tall_project",
    "tall_project_errors",
]
