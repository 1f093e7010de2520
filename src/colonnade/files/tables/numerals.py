"""Numbers as people write them: decimal comma, thousands separators, currency and percent signs.

"1,234" is 1234 under a decimal point and 1.234 under a decimal comma.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from ..._support.arguments import shown

_BLANK = "[\u00a0\u202f\u2009]"  # Blanks that do not break a line; Excel groups digits with them in French.
_SPACE = "[ \u00a0\u202f\u2009]"
_QUOTE = "['\u2019]"  # Swiss.
_MONEY = "[$¢£¥฿\u20a0-\u20c0]"  # Signs of currencies.
_SIGN = "[-+\u2212]"
_INFINITE = "[iI][nN][fF](?:[iI][nN][iI][tT][yY])?"
_MARK_CLASSES = {" ": _SPACE, "\u00a0": _SPACE, "\u202f": _SPACE, "'": _QUOTE, "\u2019": _QUOTE, ".": "[.]", ",": ","}
DECIMALS = ".", ","
THOUSANDS = *_MARK_CLASSES, "none"


@dataclass(frozen=True)
class Numerals:
    """How numbers are written in a text table.

    Attributes
    ----------
    decimal : {".", ","}
    thousands : str or None
        The sign between groups of three digits, or "none". None admits all that cannot be the decimal sign.
    """

    decimal: str = "."
    thousands: str | None = None

    @cached_property
    def bare(self) -> str:
        """Pattern of a number with neither groups nor unit, which Arrow reads quickly."""
        d = re.escape(self.decimal)
        return rf"^\s*[+-]?(?:[0-9]+{d}?[0-9]*(?:[eE][+-]?[0-9]+)?|{d}[0-9]+(?:[eE][+-]?[0-9]+)?|{_INFINITE})\s*$"

    @cached_property
    def loose(self) -> str:
        """Pattern of any number; its groups are sign, unit, unit, sign, digits and unit."""
        d, e = re.escape(self.decimal), "(?:[eE][+-]?[0-9]+)?"
        grouped = "|".join(f"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+" for mark in self._marks)
        whole = f"(?:{grouped}|[0-9]+)" if grouped else "[0-9]+"
        digits = f"(?:{whole}(?:{d}[0-9]*)?|{d}[0-9]+){e}|{_INFINITE}"
        before = f"(?:({_SIGN}?)({_MONEY}{_SPACE}*)?|({_MONEY}{_SPACE}*)({_SIGN}))"
        return rf"^\s*{before}({digits})({_SPACE}*(?:{_MONEY}|%))?\s*$"

    @cached_property
    def _marks(self) -> list[str]:
        """Classes of signs between groups, each a regular expression."""
        if self.thousands == "none":
            return []
        if self.thousands is not None:
            return [_MARK_CLASSES[self.thousands]]
        return ["," if self.decimal == "." else "[.]", _BLANK, _QUOTE]

    @cached_property
    def _any_mark(self) -> str:
        return "|".join(self._marks)

    def is_bare(self, cell: str) -> bool:
        return re.match(self.bare, cell) is not None

    def is_number(self, cell: str) -> bool:
        return re.match(self.loose, cell) is not None

    def plain(self, cell: str) -> str:
        """A number with a decimal point and nothing else but digits; other text as it is."""
        found = re.match(self.loose, cell)
        if found is None:
            return cell
        sign = found[1] or found[4] or ""
        digits = re.sub(self._any_mark, "", found[5]) if self._marks else found[5]
        return sign.replace("+", "").replace("\u2212", "-") + digits.replace(self.decimal, ".")

    def plain_column(self, cells):
        """The same for an Arrow column of text; every cell must be a number, or null."""
        import pyarrow.compute as pc

        cells = pc.replace_substring_regex(cells, self.loose, r"\1\4\5")
        if self._marks:
            cells = pc.replace_substring_regex(cells, self._any_mark, "")
        cells = pc.replace_substring(cells, self.decimal, ".") if self.decimal != "." else cells
        return pc.replace_substring(pc.replace_substring_regex(cells, "^[+]", ""), "\u2212", "-")

    def units(self, cells) -> list[tuple[str, str]]:
        """The different units, before and behind the number, of an Arrow column of numbers."""
        import pyarrow.compute as pc

        found = pc.unique(pc.replace_substring_regex(cells.drop_null(), self.loose, "\\2\\3\ue000\\6"))
        return sorted({tuple(unit.split("\ue000")) for unit in found.to_pylist()})


PLAIN = Numerals()
STYLES = PLAIN, Numerals(",")
_BEFORE, _BEHIND = f"{_SIGN}?(?:{_MONEY}{_SPACE}*)?{_SIGN}?", f"(?:{_SPACE}*(?:{_MONEY}|%))?"
# A number that is one thing under a decimal point and another under a decimal comma.
TWO_READINGS = rf"^\s*{_BEFORE}[1-9][0-9]{{0,2}}[.,][0-9]{{3}}{_BEHIND}\s*$"


def is_any_number(cell: str) -> bool:
    """Whether a cell is a number under a decimal point or a decimal comma."""
    return any(style.is_number(cell) for style in STYLES)


def given_styles(decimal: str | None, thousands: str | None) -> tuple[Numerals, ...]:
    """The ways of writing numbers that the user leaves open."""
    if decimal is not None and decimal not in DECIMALS:
        raise ValueError(f"decimal must be '.' or ','; got {shown(decimal)}")
    if thousands is not None and thousands not in THOUSANDS:
        raise ValueError(f"thousands must be ',', '.', ' ', an apostrophe or 'none'; got {shown(thousands)}")
    if decimal is not None and decimal == thousands:
        raise ValueError(f"decimal and thousands are both {decimal!r}; they must be different signs")
    open_ones = [sign for sign in DECIMALS if sign != thousands] if decimal is None else [decimal]
    return tuple(Numerals(sign, thousands) for sign in open_ones)
