"""A room imports only rooms before it and nothing private of another room; importing the package stays light."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import colonnade

ROOT = Path(colonnade.__file__).parent

# Every file belongs to one of these. A room imports only what stands before it.
ROOMS = [
    "_support",
    "data",
    "model",
    "uncertainty",
    "completion",
    "files",
    "measuring",
    "methods",
    "scaling",
    "experiments",
    "interfaces",
]

# Imports inside a function, against the order: methods of `Completion` that save, load, summarise and plot, and the
# function of `complete` that runs another method.
LATE = {
    ("completion.completing", "_by_method", "methods"),
    ("completion.result", "_repr_html_", "interfaces.summary"),
    ("completion.result", "load", "files.results.saving"),
    ("completion.result", "plot", "interfaces.plots"),
    ("completion.result", "save", "files.results.saving"),
    ("completion.result", "summary", "interfaces.summary"),
    ("uncertainty.explanation", "plot", "interfaces.explanation_plot"),
}


def modules():
    """The dotted name of every module within the package, and its file."""
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def imports_of(name):
    """(function or None, module, imported name or None) for every import of our modules, anywhere in a module."""
    path = MODULES[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    yield from _imports_below(ast.parse(path.read_text(encoding="utf-8")), package, None)


def _imports_below(node, package, function):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((function, *_target(alias.name)) for alias in child.names if _is_ours(alias.name))
        elif isinstance(child, ast.ImportFrom):
            base = ".".join(["colonnade", *package[: len(package) - child.level + 1]]) if child.level else ""
            base = ".".join(part for part in (base, child.module) if part)
            yield from ((function, *_target(base, alias.name)) for alias in child.names if _is_ours(base))
        is_function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        inside = child.name if is_function else function
        if isinstance(child, ast.If) and getattr(child.test, "id", None) == "TYPE_CHECKING":
            inside = "TYPE_CHECKING"  # Never executed, so no circle.
        yield from _imports_below(child, package, inside)


def _is_ours(dotted):
    return dotted.partition(".")[0] == "colonnade"


def _target(dotted, name=None):
    """The module that is imported, without the package, and the name that is imported from it."""
    base = dotted.partition(".")[2]
    whole = f"{base}.{name}".strip(".")
    return (whole, None) if whole in MODULES else (base, name)


def room_of(module):
    return module.partition(".")[0]


@cache
def imports():
    """The imports of every module; read by the worker that runs these tests, not whenever tests are collected."""
    return {name: list(imports_of(name)) for name in MODULES}


@cache
def across():
    """(module, function, imported module, name) of imports between rooms; the root of the package is no room."""
    return [
        (name, function, module, imported)
        for name, found in imports().items()
        for function, module, imported in found
        if room_of(name) in ROOMS and module and room_of(module) != room_of(name)
    ]


def test_the_imports_of_every_file_are_seen():
    assert len(across()) > 500
    assert (None, "data.observations", "Observations") in imports()["model.solve"]
    assert ("predict", "model.kernels.sweep_kernels", None) in imports()["model.factor_model"]
    assert list(_imports_below(ast.parse("def f():\n import colonnade.model.solve"), [], None)) == [
        ("f", "model.solve", None)
    ]


def test_the_root_holds_the_rooms_and_little_else():
    entries = {path.name for path in ROOT.iterdir() if path.name != "__pycache__"}
    assert entries == {*ROOMS, "__init__.py", "__main__.py", "py.typed"}


def test_every_room_says_what_it_is_for():
    for folder in {path.parent for path in MODULES.values()}:
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))), folder


def test_a_room_imports_only_rooms_before_it():
    against = {
        (name, function, module)
        for name, function, module, _ in across()
        if ROOMS.index(room_of(module)) > ROOMS.index(room_of(name))
    }
    assert against == LATE


def test_rooms_take_only_the_version_from_the_root():
    in_rooms = [found for name, found in imports().items() if room_of(name) in ROOMS]
    taken = {imported for found in in_rooms for _, module, imported in found if not module}
    assert taken == {"__version__"}


def test_nothing_private_crosses_a_wall():
    private = [
        f"{name} imports {imported or ''} of {module}"
        for name, _, module, imported in across()
        if any(part.startswith("_") for part in (*module.split(".")[1:], imported or ""))
    ]
    assert not private


# Private names of other packages, and methods of named tuples, that have no public twin.
OF_OTHERS = {"_replace", "_asdict", "_exit", "_bit_generator", "_mmap", "_is_text_encoding"}


def test_no_private_attribute_is_used_in_another_room():
    own, used = {}, []
    for name, path in MODULES.items():
        mine = own.setdefault(room_of(name), set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                mine.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                mine.add(node.target.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                mine.add(node.attr)
            elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                used.append((room_of(name), name, node.attr))
    foreign = {(name, attr) for room, name, attr in used if attr not in own[room] | OF_OTHERS}
    assert not foreign


def test_modules_do_not_import_each_other_in_circles():
    at_once = {name: {module for function, module, _ in imports()[name] if function is None} for name in MODULES}
    TopologicalSorter(at_once).prepare()


def test_compiled_loops_import_nothing_of_ours_but_their_tools():
    kernels = [name for name in MODULES if name.startswith("model.kernels.")]
    allowed = {
        "_support.compiling",
        *(f"model.kernels.{name}" for name in ("abreast", "emitter", "inverses", "lanes", "problem", "tiles")),
    }
    assert {module for name in kernels for _, module, _ in imports()[name]} == allowed


@pytest.mark.parametrize(
    "asked, heavy",
    [
        ("co", "numba matplotlib dask pandas click"),
        ("co.complete, co.read", "numba dask click scipy.stats scipy.optimize scipy.sparse"),
        ("co.compare", "numba dask click"),
    ],
)
def test_import_is_light(asked, heavy):
    code = f"import sys, colonnade as co; {asked}; print(*[m for m in {heavy.split()} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == []


def test_no_module_hides_a_public_name():
    at_the_root = {room_of(name) for name in MODULES}
    hidden = [name for name in colonnade._MODULE_OF if name in at_the_root]
    assert not hidden, "importing that module would replace the public name"


def test_type_checkers_see_every_public_name():
    seen = {
        (f"{module}.{name}".strip(".") if name else module)
        for where, module, name in imports()[""]
        if where == "TYPE_CHECKING"
    }
    loaded = {f"{module}.{name}" for name, module in colonnade._MODULE_OF.items()} | set(colonnade._MODULES.values())
    assert seen == loaded
    assert set(colonnade.__all__) == {*colonnade._MODULE_OF, *colonnade._MODULES}


def test_every_public_name_is_found():
    for name in colonnade.__all__:
        assert getattr(colonnade, name) is not None
