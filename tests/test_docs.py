"""What the documentation shows is what happens; the Python of the README has a test of its own."""

import re
import shlex
from pathlib import Path

import click
import pytest

from colonnade.interfaces import cli

ROOT = Path(__file__).parent.parent
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if page.exists()]
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```", re.S | re.M)


def blocks(page, kinds):
    return [(kind, text) for _, kind, text in BLOCK.findall(page.read_text()) if kind in kinds]


def named(page):
    return page.name


@pytest.mark.parametrize("page", [p for p in PAGES[1:] if blocks(p, ["python"])], ids=named)
def test_python_blocks_run_and_print_what_they_say(page, tmp_path, monkeypatch, capsys):
    """The blocks of a page are one program; after `# ->` stands what a line prints, or its beginning."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for _, code in blocks(page, ["python"]):
        exec(compile(code, str(page), "exec"), names)
        printed = capsys.readouterr().out
        for said in re.findall(r"# -> (.*)", code):
            assert said in printed


def command_lines(page):
    """The colonnade commands of a page, without comments and what other programs do."""
    for _, text in blocks(page, ["sh", "console"]):
        for line in text.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|;|\|", line.removeprefix("$ ")):
                words = shlex.split(part, comments=True)
                if words[:1] == ["colonnade"]:
                    yield words[1:]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_and_options_exist(page):
    for words in command_lines(page):
        command, context = cli.cli, click.Context(cli.cli)
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            command = command.get_command(context, words.pop(0))
            assert command is not None, words
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        options = [word.partition("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)]
        assert set(options) <= {*known, "--help", "-h"}, (page.name, command.name, options)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    text = BLOCK.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_every_page_is_in_the_navigation():
    told = (ROOT / "mkdocs.yml").read_text() if (ROOT / "mkdocs.yml").exists() else ""
    assert not told or [p.name for p in PAGES[1:] if p.name not in told] == []
