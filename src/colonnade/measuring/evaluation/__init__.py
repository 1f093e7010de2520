"""Scores of models on a fraction of a benchmark."""

from .comparing import Comparison, compare
from .inspect_stopping import InspectStopping
from .logs import LogTable, read_logs
from .planning import QuestionPlan, plan
from .questions import Questions
from .scoring import Scores, score
from .selecting import draw, select
from .stopping import AdaptiveEvaluation, adaptive

__all__ = [
    "AdaptiveEvaluation",
    "Comparison",
    "InspectStopping",
    "LogTable",
    "QuestionPlan",
    "Questions",
    "Scores",
    "adaptive",
    "compare",
    "draw",
    "plan",
    "read_logs",
    "score",
    "select",
]
