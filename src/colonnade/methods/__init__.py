"""The rivals, a file each: every one reads through a Source and returns a Completion."""

from .nystrom import nystrom

__all__ = ["nystrom"]
