"""Attributes that are those of a part, under the same name."""

from __future__ import annotations

from operator import attrgetter
from typing import Any


class _Shown:
    def __init__(self, part: str):
        self.part = part

    def __set_name__(self, owner, name: str) -> None:
        self.get = attrgetter(f"{self.part}.{name}")

    def __get__(self, instance, owner=None):
        return self if instance is None else self.get(instance)


def shown_of(part: str) -> Any:
    """A read-only attribute that is the one of this name of the part, read whenever it is asked for."""
    return _Shown(part)
