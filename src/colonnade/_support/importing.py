"""Do something when another package is imported, without importing it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any


def when_imported(name: str, function) -> None:
    """Call a function without arguments once a package has been imported: now if it has been, else later."""
    if name in sys.modules:
        function()
    else:
        sys.meta_path.insert(0, _Watcher(name, function))


class _Watcher:
    """Finds nothing itself: it lets the other finders find the package, and adds a call to the end of its import."""

    def __init__(self, name: str, function):
        self._name, self._function, self._is_asking = name, function, False

    def find_spec(self, name, path=None, target=None):
        if name != self._name or self._is_asking:
            return None
        self._is_asking = True
        try:
            spec = find_spec(name)
        finally:
            self._is_asking = False
        loader: Any = None if spec is None else spec.loader
        if hasattr(loader, "exec_module"):
            run = loader.exec_module

            def run_and_call(module) -> None:
                run(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self._function()

            loader.exec_module = run_and_call
        return spec
