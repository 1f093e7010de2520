"""Numbers as people write them: decimal comma, thousands separators, currency and percent signs.

"1,234" is 1234 under a decimal point and 1.234 under a decimal comma. Accountants write -400 as (400), and SAP as 400-.
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
_SIGN, _MINUS = "[-+\u2212]", "[-\u2212]"
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
        """Pattern of any number."""
        return f"{self._signed}|{self._accounting}"

    @cached_property
    def _signed(self) -> str:
        """Pattern of a number whose sign comes first; its groups are sign, unit, unit, sign, digits and unit."""
        d = re.escape(self.decimal)
        whole = "|".join((*self._grouped, "[0-9]+"))
        digits = f"(?:(?:{whole})(?:{d}[0-9]*)?|{d}[0-9]+)(?:[eE][+-]?[0-9]+)?|{_INFINITE}"
        before = f"(?:({_SIGN}?)({_MONEY}{_SPACE}*)?|({_MONEY}{_SPACE}*)({_SIGN}))"
        return rf"^\s*{before}({digits})({_SPACE}*(?:{_MONEY}|%))?\s*$"

    @cached_property
    def _accounting(self) -> str:
        """Pattern of a negative number such as (400), ($400), $(400) and 400-; codes such as (030) are none.

        Its groups, one behind the other, are the number without its sign.
        """
        d, unit = re.escape(self.decimal), f"(?:{_SPACE}*(?:{_MONEY}|%))?"
        whole = "|".join((*self._grouped, "[1-9][0-9]*", "0"))
        digits = f"(?:(?:{whole})(?:{d}[0-9]*)?|{d}[0-9]+){unit}"
        money = f"{_MONEY}{_SPACE}*"
        return rf"^\s*(?:({money})?\(({digits})\)|\(({money}{digits})\)|((?:{money})?{digits}){_MINUS})\s*$"

    @cached_property
    def _grouped(self) -> list[str]:
        """Patterns of whole numbers with groups of digits."""
        return [f"[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+" for mark in self._marks]

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
        cell = re.sub(self._accounting, r"-\1\2\3\4", cell)
        found = re.match(self._signed, cell)
        if found is None:
            return cell
        sign = found[1] or found[4] or ""
        digits = re.sub(self._any_mark, "", found[5]) if self._marks else found[5]
        return sign.replace("+", "").replace("\u2212", "-") + digits.replace(self.decimal, ".")

    def plain_column(self, cells):
        """The same for an Arrow column of text; every cell must be a number, or null."""
        import pyarrow.compute as pc

        cells = pc.replace_substring_regex(self._sign_first(cells), self._signed, r"\1\4\5")
        if self._marks:
            cells = pc.replace_substring_regex(cells, self._any_mark, "")
        cells = pc.replace_substring(cells, self.decimal, ".") if self.decimal != "." else cells
        return pc.replace_substring(pc.replace_substring_regex(cells, "^[+]", ""), "\u2212", "-")

    def units(self, cells) -> list[tuple[str, str]]:
        """The different units, before and behind the number, of an Arrow column of numbers."""
        import pyarrow.compute as pc

        cells = self._sign_first(cells.drop_null())
        found = pc.unique(pc.replace_substring_regex(cells, self._signed, "\\2\\3\ue000\\6"))
        return sorted({tuple(unit.split("\ue000")) for unit in found.to_pylist()})

    def _sign_first(self, cells):
        """An Arrow column of numbers with a minus sign in front in place of brackets and of one behind."""
        import pyarrow.compute as pc

        return pc.replace_substring_regex(cells, self._accounting, r"-\1\2\3\4")


PLAIN = Numerals()
STYLES = PLAIN, Numerals(",")
_BEFORE = rf"{_SIGN}?(?:{_MONEY}{_SPACE}*)?(?:{_SIGN}|\()?(?:{_MONEY}{_SPACE}*)?"
_BEHIND = rf"(?:{_SPACE}*(?:{_MONEY}|%))?(?:{_MINUS}|\))?"
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
