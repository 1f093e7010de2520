"""Settings of `complete`, and the checks of its arguments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._support.arguments import OR_AUTO, as_choice, as_count, as_real, is_auto

METHODS = "auto", "factor model", "full columns", "als", "soft_impute", "svt", "optspace", "tall_project"
OWN_METHODS = METHODS[:3]  # The others are functions of `colonnade.methods`.


@dataclass(frozen=True)
class Settings:
    """Settings of the method that learns from full columns, as the arguments of `complete`; each may be "auto"."""

    rank: int | str = "auto"
    center: bool | str = "auto"
    shrinkage: float | str = "auto"
    refine: int | str = "auto"

    @property
    def given(self) -> list[str]:
        """Those that only this method has, and that were not left to the data."""
        return [name for name in ("center", "shrinkage", "refine") if not is_auto(getattr(self, name))]

    @property
    def are_auto(self) -> bool:
        return is_auto(self.rank) and not self.given

    @property
    def noise_is_relative(self) -> bool:
        """Whether only ratios of weights count; else `shrinkage` is the noise of an entry of weight 1."""
        return is_auto(self.shrinkage) or self.shrinkage == 0

    def checked(self, m: int, d: int) -> Settings:
        """The same as numbers, for a table of m rows and d full columns."""
        why = f", the smaller of {m:,} rows and {d:,} full columns{OR_AUTO}"
        return Settings(
            self.rank if is_auto(self.rank) else as_count("rank", self.rank, 1, min(m, d), why),
            as_choice("center", self.center, (True, False, "auto")),
            self.shrinkage if is_auto(self.shrinkage) else as_real("shrinkage", self.shrinkage, 0, why=OR_AUTO),
            self.refine if is_auto(self.refine) else as_count("refine", self.refine, 0, why=OR_AUTO),
        )


def checked_method(method) -> str:
    """A method's name as it is listed; hyphens and blanks in it do not matter."""
    if isinstance(method, str):
        plain = {name.replace("_", " "): name for name in METHODS}
        method = plain.get(method.replace("-", " ").replace("_", " "), method)
    return as_choice("method", method, METHODS)


def refuse_idle_settings(method: str, orientation: str, bounds, settings: Settings) -> None:
    """Raise ValueError where a setting would have no effect."""
    given, by_full = settings.given, method in ("auto", "full columns")
    idle = [] if by_full else list(given)
    idle += ["orientation"] if orientation == "rows" and (given or method not in ("auto", "factor model")) else []
    idle += ["bounds"] if bounds is not None and method not in OWN_METHODS else []
    if idle and method == "auto":
        raise ValueError(f"{', '.join(given)} cannot be combined with orientation='rows'; leave one of them out")
    if idle:
        it = "it" if len(idle) == 1 else "them"
        raise ValueError(f"method {method!r} does not use {', '.join(idle)}; leave {it} out")


def checked_bounds(bounds) -> tuple[float, float] | None:
    if bounds is None:
        return None
    if not isinstance(bounds, (tuple, list, np.ndarray)) or len(bounds) != 2:
        raise TypeError(f"bounds must be a pair (low, high) of numbers; got {bounds!r}")
    if any(isinstance(b, (bool, str)) or not isinstance(b, (int, float, np.number)) for b in bounds):
        raise TypeError(f"bounds must be a pair (low, high) of numbers, with -inf or inf for none; got {bounds!r}")
    low, high = (float(b) for b in bounds)
    if not low < high:
        raise ValueError(f"bounds must be (low, high) with low < high; got {bounds!r}")
    return low, high
