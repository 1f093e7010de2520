"""Logs of lm-evaluation-harness, Inspect, HELM and Every Eval Ever, as tables of questions by models."""

from .assembling import LogTable
from .finding import is_log
from .reading import read_logs

__all__ = ["LogTable", "is_log", "read_logs"]
