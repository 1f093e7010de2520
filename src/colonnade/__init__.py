"""colonnade: fill the gaps in tables of numbers, with an uncertainty for every filled value."""

__version__ = "0.1.0"

# A public name is imported when it is first asked for, so that the command line starts at once.
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

__all__ = [*_MODULE_OF, *_MODULES]


def __getattr__(name):
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{_MODULES[name]}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    return found


def __dir__():
    return sorted({*globals(), *__all__})
