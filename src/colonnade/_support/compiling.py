"""The decorator of compiled functions; importing this module imports numba."""

from __future__ import annotations

from numba import njit


def compiled(any_order=False, **options):
    """njit of our kernels: fused multiply-add, no lock of the interpreter, machine code kept on disk if it can be.

    `any_order` lets sums be taken in any order, hence by vectors; NaN and infinity keep their meaning.
    """
    fastmath = {"contract", "reassoc"} if any_order else {"contract"}
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath, **options}  # 1 / 0 is infinite

    def decorate(function):
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # No folder for the cache can be written.
            return njit(**options)(function)

    return decorate
