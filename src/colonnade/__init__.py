"""colonnade: complete a matrix of which some columns are known in full and the rest at a few entries each."""

__version__ = "0.1.0"

# A public name is imported when it is first asked for, so that the command line starts at once.
_MODULE_OF = {
    "ColumnSpace": "column_space",
    "CompleteColumnsImputer": "estimators",
    "CompleteRowsImputer": "estimators",
    "Completion": "completion",
    "LowRankImputer": "low_rank_imputer",
    "Observations": "observations",
    "Plan": "planning",
    "Source": "sources",
    "Status": "solve",
    "acquire": "acquisition",
    "algorithm1": "completion",
    "compare": "comparison",
    "complete": "completion",
    "complete_triples": "blocks",
    "fit_column_space": "column_space",
    "inspect": "inspection",
    "observe": "sampling",
    "plan": "planning",
    "read": "files",
    "select_rows": "row_selection",
    "solve_columns": "solve",
}
_MODULES = "dask", "experiments", "files", "harness", "leaderboard", "methods", "theory"

__all__ = [*_MODULE_OF, *_MODULES]


def __getattr__(name):
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    return found


def __dir__():
    return sorted({*globals(), *__all__})
