"""What mkdocs calls while it builds: it adds pictures, the gallery, the list of methods and the help of commands."""

import ast
from pathlib import Path

import click
import gallery_pages
import pictures
from mkdocs.structure.files import File

METHODS = Path(__file__).parent.parent / "src" / "colonnade" / "methods" / "__init__.py"


def on_files(files, config):
    """Add what is generated to the files of the site."""
    made = {f"images/{name}.svg": pictures.svg(name) for name in pictures.PICTURES}
    for name in gallery_pages.SCRIPTS:
        made |= gallery_pages.files_of(name)
    for address, content in made.items():
        files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown, page, **_):
    """Replace the two marks that stand for lists."""
    if "{{ methods }}" in markdown:
        markdown = markdown.replace("{{ methods }}", "\n\n".join(_methods()))
    if "{{ commands }}" in markdown:
        markdown = markdown.replace("{{ commands }}", "\n\n".join(_commands()))
    return markdown


def _methods():
    """An entry for every method, as `colonnade.methods` imports them."""
    for node in ast.parse(METHODS.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            yield from (f"::: colonnade.methods.{node.module}.{name.name}" for name in node.names)


def _commands():
    """The help of every command, as `--help` prints it."""
    from colonnade.interfaces import cli

    top = click.Context(cli.cli, info_name="colonnade")
    for name in cli.cli.list_commands(top):
        yield from _help(cli.cli.get_command(top, name), top, name)


def _help(command, parent, name):
    context = click.Context(command, info_name=name, parent=parent, terminal_width=84, max_content_width=84)
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context).strip()}\n```"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            yield from _help(command.get_command(context, child), context, child)
