"""The words that users read: no construction that must be read twice, and every option says what it does."""

import ast
import re
from pathlib import Path

import click
import pytest

from colonnade.interfaces import cli

SOURCES = Path(__file__).parents[2] / "src" / "colonnade"
# Each of these made readers stop. The common word is beside it in the style guide: default, because, learned, outlier.
BANNED = [
    r"\bunless told\b",
    r" of which\b",
    r"\bhas a say\b",
    r", for (no|it|they|there|these|those)\b",
    r"\btaught\b",
    r"\bteach(es)?\b",
    r"\bwild\b",
    r"\btame\b",
    r"\bjury\b",
    r"\bout of line\b",
    r"\blest\b",
    r"\blikewise\b",
    r"\bput up with\b",
    r"\bthe most directions\b",
    r"\bwhat from\b",
    r"\bin between\b",
]


def sentences(path: Path):
    """Every text with a blank in it: messages, help and docstrings, with the number of the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            yield node.lineno, "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


def faults(path: Path) -> list[str]:
    return [
        f"{path.relative_to(SOURCES)}:{line}: {' '.join(found.group().split())!r}"
        for line, text in sentences(path)
        for found in (re.search(pattern, " ".join(text.split()), re.IGNORECASE) for pattern in BANNED)
        if found
    ]


def test_no_text_of_the_program_must_be_read_twice():
    paths = sorted(SOURCES.rglob("*.py"))
    found = [fault for path in paths for fault in faults(path)]
    assert paths and not found, "\n".join(found)


def test_no_page_of_the_documentation_must_be_read_twice():
    root = SOURCES.parents[1]
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    texts = {page.name: " ".join(page.read_text(encoding="utf-8").split()) for page in pages}
    found = [(page, pattern) for page, text in texts.items() for pattern in BANNED if re.search(pattern, text, re.I)]
    assert not found


def test_the_report_page_has_no_banned_words():
    text = (SOURCES / "interfaces" / "report" / "templates" / "report.html").read_text(encoding="utf-8")
    assert not [pattern for pattern in BANNED if re.search(pattern, text, re.IGNORECASE)]


@pytest.mark.parametrize(
    "text", ["uniform unless told", "columns, of which 3 are full", "fails, for no column is full"]
)
def test_the_list_finds_what_it_bans(text):
    assert any(re.search(pattern, text, re.IGNORECASE) for pattern in BANNED)


@pytest.mark.parametrize("name", ["complete", "inspect", "compare", "plan"])
def test_help_begins_with_the_options_of_the_command_itself(name):
    command = cli.cli.get_command(None, name)
    _, own, reading = command.get_help(click.Context(command)).split("Options")
    assert "--json" in own and "--storage-option" not in own and "--sheet" in reading and "--help" not in reading
    assert not re.search(r"^  \[?INPUT", own, re.MULTILINE)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_option_says_what_it_does_and_its_default(name):
    command = cli.cli.get_command(None, name)
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    for option in (option for each in commands for option in each.params):
        if isinstance(option, click.Option):
            assert option.help and option.help[0].isupper() and option.help.rstrip().endswith("."), option.opts
            assert "Default: " in option.help or option.show_default or option.required, option.opts
            assert max(len(part.split()) for part in re.split(r"[.:] ", option.help)) <= 25, option.opts
