"""What the documentation shows is what happens, and it says so in plain words. The README has a test of its own."""

import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest
from matplotlib import pyplot

import colonnade
from colonnade.interfaces import cli


def read(path):
    return path.read_text() if path.exists() else ""


ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [page for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if page.exists()]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))
PLAIN = [*PAGES, *SCRIPTS]
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```", re.S | re.M)
MOST_WORDS = 25  # Of a sentence, by the style guide.
MOST_SIGNS = 88  # Of a line of code: more do not fit on a page of the site.

# Constructions and words that readers had to read twice, by the style guide.
BANNED = (
    r"\bunless told\b",
    r"\bof which\b",
    r"\bhas a say\b",
    r"\bhave a say\b",
    r", for (no|it|they|neither)\b",
    r"\bfor it is\b",
    r"\btold\b",
    r"\btells of\b",
    r"\b(teach|teaches|taught)\b",
    r"\bhow far to trust it\b",
    r"\bout of line\b",
    r"\b(wild|tame|jury)\b",
    r"\bas it is, for\b",
    r"\bbut for\b",
    r"\bwhence\b",
    r"\bhence\b",
    r"\bshall be\b",
)
PICTURES = re.findall(r"^def ([a-z]\w*)\(\):", read(DOCS / "pictures.py"), re.M)


def blocks(page, kinds):
    return [(kind, text) for _, kind, text in BLOCK.findall(page.read_text()) if kind in kinds]


def named(page):
    return str(page.relative_to(ROOT))


def generated():
    """What the build of the site adds to the folder of the documentation, by its path."""
    return {DOCS / "images" / f"{name}.svg" for name in PICTURES} | {
        DOCS / "gallery" / f"{script.stem}.{kind}" for script in SCRIPTS for kind in ("md", "png", "py", "ipynb")
    }


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
    pyplot.close("all")


@pytest.mark.parametrize("page", PLAIN, ids=named)
def test_code_fits_on_the_page(page):
    lines = [line for _, code in blocks(page, ["python", "sh"]) for line in code.splitlines()]
    assert [line for line in lines if len(line) > MOST_SIGNS] == []


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
def test_benchmarks_and_examples_exist(page):
    """Figures come with a command; it must be one that can be run."""
    text = page.read_text()
    for name in re.findall(r"python -m benchmarks (\w+)", text):
        assert (ROOT / "benchmarks" / f"{name}.py").exists(), name
    for name in re.findall(r"python (examples/[\w/]+\.py)", text):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    text = BLOCK.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        at = (page.parent / target).resolve()
        assert target.startswith("http") or at.exists() or at in generated(), target


def test_every_page_is_in_the_navigation():
    told = read(ROOT / "mkdocs.yml")
    assert not told or [named(p) for p in PAGES[1:] if f" {p.relative_to(DOCS)}\n" not in told] == []


@pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not part of this copy")
def test_every_public_name_is_in_the_reference():
    told = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    entries = {line.removeprefix("::: ").rpartition(".")[2] for line in re.findall(r"^::: .*", told, re.M)}
    missing = [name for name in colonnade.__all__ if name not in entries and f"co.{name}" not in told]
    assert missing == []


def prose(text):
    """A page without code, tables, headings and comments; links and code in a line count as their words."""
    text = re.sub(r"<!--.*?-->", "", BLOCK.sub("\n\n", text), flags=re.S)
    lines = [re.sub(r"^\s*([-*]|\d+\.) ", "\n", line) for line in text.splitlines() if not line.startswith("    ")]
    text = "\n".join("" if line.lstrip().startswith(("|", "#", ":::", "{{")) else line for line in lines)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)(\{[^}]*\})?", r"\1", text)
    return re.sub(r"`[^`]*`", "code", text)


def text_of(page):
    """A page, or the cells of text of a script of the gallery."""
    if page.suffix == ".md":
        return page.read_text()
    return "\n\n".join(re.findall(r"^# %% \[markdown\]\n(.*?)\n\n", page.read_text(), re.S | re.M)).replace(
        "\n# ", "\n"
    )


def sentences(text):
    for paragraph in re.split(r"\n\s*\n", prose(text)):
        yield from re.split(r"(?<=[.!?:])\s+(?=[A-Z0-9\"*(c])", " ".join(paragraph.split()))


@pytest.mark.parametrize("page", PLAIN, ids=named)
def test_plain_words(page):
    text = " ".join(re.sub(r"`[^`]*`", "", BLOCK.sub("", text_of(page))).split())
    found = [text[max(0, m.start() - 40) : m.end() + 20] for way in BANNED for m in re.finditer(way, text, re.I)]
    assert found == []


@pytest.mark.parametrize("page", PLAIN, ids=named)
def test_sentences_are_short(page):
    found = [sentence for sentence in sentences(text_of(page)) if len(sentence.split()) > MOST_WORDS]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_drawn_and_used(name, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    import pictures

    assert name in pictures.PICTURES
    assert pictures.svg(name).startswith(b"<?xml")
    assert any(f"images/{name}.svg" in page.read_text() for page in PAGES)


@pytest.mark.slow
@pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not part of this copy")
def test_verdicts_warn_of_tables_that_do_not_suit_the_model(monkeypatch):
    """What the page "When it fails" says of its picture."""
    monkeypatch.syspath_prepend(DOCS)
    import pictures

    tables = pictures.tables_that_fail(np.random.default_rng(0))
    words = [colonnade.complete(np.where(seen, data, np.nan)).verdict.word for _, data, seen in tables]
    assert words[0] == "use it"
    assert words[1] == "do not use it"
    assert words[2] != "use it"
