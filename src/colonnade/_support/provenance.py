"""Where a result comes from: settings and versions, kept with it so that it can be computed again."""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib import metadata

import numpy as np

_PACKAGES = "numpy", "scipy", "scikit-learn", "numba"


def run_facts(**settings) -> dict:
    """Settings as they were given and the versions in use; all of it such that JSON can hold it."""
    return {"settings": {name: _plain(value) for name, value in settings.items()}, "versions": dict(versions())}


@lru_cache(maxsize=1)
def versions() -> dict:
    """Versions of this package, of Python and of the libraries that do the numerics."""
    from .. import __version__

    return {
        "colonnade": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in _PACKAGES},
    }


def _plain(value):
    """A number, text or list that JSON can hold; otherwise its kind in words."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    return value if value is None or isinstance(value, (bool, int, str)) else f"a {type(value).__name__}"
