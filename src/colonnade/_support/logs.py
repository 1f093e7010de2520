"""Logging under the name "colonnade": results at INFO, stages and choices at DEBUG; handlers are the user's."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

logger = logging.getLogger("colonnade")

_P = ParamSpec("_P")
_R = TypeVar("_R")


def logged(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Log when a function begins, what it returns, how long it took, and what was chosen."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not logger.isEnabledFor(logging.INFO):
            return function(*args, **kwargs)
        logger.debug("%s: begins", name)
        started = time.perf_counter()
        result = function(*args, **kwargs)
        shown = "done" if result is None else repr(result).partition("\n")[0]
        logger.info("%s: %s in %.2f s", name, shown, time.perf_counter() - started)
        for about, words in (getattr(result, "choices", None) or {}).items():
            logger.debug("%s: %s: %s", name, about, words)
        return result

    return call
