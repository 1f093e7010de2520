"""The experiments of Wan, Yi, Zhang (2018), a file each, and whether their claims hold.

An experiment is a module with `PAPER` and `QUICK` (its settings), `COLUMNS` (of its table), `units(settings)`,
`run(unit, settings)` (the trials of a unit), `verdicts(table, settings)` and, if it has a figure,
`draw(table, settings)`.
"""

from ._progress import Lines, Progress
from ._run import NAMES, redraw, reproduce
from ._verdicts import Verdict, verdict_lines

__all__ = ["NAMES", "Lines", "Progress", "Verdict", "redraw", "reproduce", "verdict_lines"]
