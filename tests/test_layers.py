"""A stage imports only earlier stages; importing the package stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import colonnade

ORDER = [
    ["_progress", "_printable"],
    ["_arguments", "provenance", "_threads", "_tiles", "by_value", "contours"],
    ["_numbers", "_ownership"],
    ["_writing", "set_aside", "_frame_numbers"],
    ["frames", "_kernels", "theory", "checkpoints", "manifests"],
    ["sources", "planning", "_gram"],
    ["observations"],
    ["sampling", "hidden_columns", "wild_entries", "nothing_full", "files", "block_files", "coverage", "harness"],
    ["column_space", "grouping", "cluster", "disk_columns"],
    ["leaving_out", "solve", "labels", "cutting"],
    ["losses", "out_of_line", "posterior", "model"],
    ["jury", "uncertainty", "extension"],
    ["learn"],
    ["trials"],
    ["certificates", "intervals", "means", "refine", "row_selection"],
    ["evidence"],
    ["plots"],
    ["completion", "block_learning", "tall"],
    ["stored", "summary", "_imputer", "inspection"],
    ["storage"],
    ["blocks"],
    ["estimators", "low_rank_imputer", "estimates", "cluster_tasks"],
    ["cluster_runs"],
    ["acquisition", "demo", "methods", "experiments", "leaderboard", "report", "dask"],
    ["comparison"],
    ["commands"],
    ["cli"],
    ["__init__"],
    ["__main__"],
]


# Imported late, inside a function, against the order: a method that hands over to its own module.
LATE = {("completion", "certificates"), ("completion", "storage"), ("completion", "summary"), ("completion", "methods")}


def imports_of(path):
    """Names of our own modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            yield from [node.module.split(".")[0]] if node.module else [name.name for name in node.names]


def test_a_stage_imports_only_earlier_stages():
    rank = {name: k for k, names in enumerate(ORDER) for name in names}
    files = sorted(Path(colonnade.__file__).parent.glob("*.py"))
    assert {file.stem for file in files} <= rank.keys(), "a new module needs a place in ORDER"
    wrong = [
        f"{file.stem} imports {name}"
        for file in files
        for name in imports_of(file)
        if name in rank and rank[name] >= rank[file.stem] and (file.stem, name) not in LATE
    ]
    assert not wrong


def test_kernels_import_nothing_of_ours_but_the_tiles():
    kernels = Path(colonnade.__file__).parent / "_kernels.py"
    assert set(imports_of(kernels)) == {"_tiles"}


def test_import_is_light():
    code = (
        "import sys, colonnade; print(*[m for m in ('numba','matplotlib','dask','pandas','click') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == []


def test_no_module_hides_a_public_name():
    modules = {file.stem for file in Path(colonnade.__file__).parent.glob("*.py")}
    hidden = [name for name in colonnade._MODULE_OF if name in modules]
    assert not hidden, "importing that module would replace the public name"
