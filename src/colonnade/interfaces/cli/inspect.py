"""`colonnade inspect`: a look at a table before it is filled."""

from __future__ import annotations

import json
import sys

import click

from ._lines import say
from ._options import (
    ReadingCommand,
    given_input,
    input_options,
    json_option,
    progress,
    read_in_words,
    read_input,
    set_aside_fact,
    set_aside_line,
)

_BARS, _PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-=+*#@"


@click.command(cls=ReadingCommand)
@input_options
@json_option("the facts")
def command(inputs, as_json, **options) -> None:
    """Say whether a file can be filled, where its gaps are, and what would help.

    Example: colonnade inspect table.csv

    INPUT is any file that `colonnade complete` reads. Nothing is written.
    """
    from ..inspection import inspect_observations, inspection_in_words

    with progress("reading"):
        observations = read_input(inputs, options)
    with progress("inspecting"):
        facts = inspect_observations(observations)
    if as_json:
        facts |= set_aside_fact(observations)
        say(json.dumps({"inputs": [str(path) for path in inputs], **facts}, allow_nan=False))
        return
    blocks = _can_show(_BARS)
    verdict, *found = inspection_in_words(facts)
    found += _spectrum_bars(facts, blocks)
    picture = [] if facts["share"] == 1 else _picture(observations, blocks)
    for line in [verdict, read_in_words(observations), *set_aside_line(observations), *picture, *found]:
        say(line)
    for sentence in facts["advice"]:
        say(f"Advice: {sentence}")
    if facts["method"] is not None:
        say(f"Next: colonnade complete {given_input()}")


def _picture(observations, blocks: bool) -> list[str]:
    from ...data.seen_grid import PLAIN_SHADES, SHADES, as_characters, seen_shares

    lines = as_characters(seen_shares(observations, 12, 64), SHADES if blocks else PLAIN_SHADES)
    edge = "+" + "-" * len(lines[0]) + "+"
    return ["Known values are dark; the fullest columns are at the left:", edge, *(f"|{line}|" for line in lines), edge]


def _spectrum_bars(facts: dict, blocks: bool) -> list[str]:
    """Singular values, the largest first, on a logarithmic scale: a step of the bar is half a decade."""
    values = (facts["spectrum"] or {}).get("relative_values", [])
    if len(values) < 2:
        return []
    from math import log10

    bars = _BARS if blocks else _PLAIN_BARS
    heights = [max(0, len(bars) - 1 + round(2 * log10(max(v, 1e-300)))) for v in values]
    return [f"Singular values, the largest first (one step is a factor of 3): {''.join(bars[h] for h in heights)}"]


def _can_show(text: str) -> bool:
    """Whether standard output can write these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
