"""Compiled loops and tiles; each file imports numba, so other modules import these files late."""
