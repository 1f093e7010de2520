"""A bar for people: in a notebook, or on a terminal."""

from __future__ import annotations

import sys
import time

_EVERY = 0.1  # Seconds between two drawings.


def progress_bar():
    """A function of (done, total) that draws a bar, or None where nobody would see one."""
    if _in_notebook():
        return _Bar(_notebook_drawing())
    return _Bar(_draw_on_terminal) if sys.stderr is not None and sys.stderr.isatty() else None


class _Bar:
    """Draws now and then, and the end always; what goes backwards begins a new stage."""

    def __init__(self, draw):
        self._draw, self._begun, self._drawn = draw, time.monotonic(), -_EVERY

    def __call__(self, done, total) -> None:
        now = time.monotonic()
        if now - self._drawn >= _EVERY or done >= total:
            self._drawn = now
            self._draw(min(1.0, done / total) if total else 1.0, now - self._begun)


def _in_notebook() -> bool:
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return getattr(shell, "kernel", None) is not None


def _notebook_drawing():
    from IPython.display import HTML, display

    def html(share, seconds):
        return HTML(f'<progress value="{share:.4f}" max="1"></progress> {share:.0%}, {seconds:.1f} s')

    shown = display(html(0.0, 0.0), display_id=True)
    return lambda share, seconds: shown.update(html(share, seconds))


def _draw_on_terminal(share: float, seconds: float) -> None:
    filled = round(30 * share)
    end = "\n" if share >= 1 else ""
    print(f"\r[{'#' * filled}{' ' * (30 - filled)}] {share:4.0%} {seconds:.1f} s", end=end, file=sys.stderr, flush=True)
