"""docs/reference/cli.md is made from the commands: every subcommand, its usage, its text and its options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from controller.main import main as controller_main
from edgefast.cli.main import main

pytestmark = pytest.mark.pure

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"
_HEAD = """<!-- Made from the commands by `pytest tests/cli/test_cli_page.py --update-goldens`; do not edit. -->

# Command line

All commands of `edgefast` and `edgefast-controller`, with their options. `edgefast COMMAND --help` prints the same.
"""


def _commands(
    group: click.Group, words: str, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Context, click.Command]]:
    context = click.Context(group, info_name=words, parent=parent, **group.context_settings)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        command._help_option = (
            None  # click keeps that of the first context, which may be another test's
        )
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _commands(command, name, context)
        else:
            yield inner.command_path, inner, command


def _render() -> str:
    lines = [_HEAD]
    for group, words in ((main, "edgefast"), (controller_main, "edgefast-controller")):
        assert isinstance(group, click.Group)
        for path, context, command in _commands(group, words):
            usage = " ".join(command.collect_usage_pieces(context))
            text = (command.help or "").replace("\b\n", "").split("\n\n")
            lines += [
                f"## {path}",
                "",
                f"`{path} {usage}`".replace(" `", "`"),
                "",
                " ".join(text[0].split()),
                "",
            ]
            options = [
                record
                for one in command.get_params(context)
                if (record := one.get_help_record(context))
            ]
            if options:
                lines += ["| option | meaning |", "|---|---|"]
                lines += [
                    f"| `{_cell(name)}` | {_cell(' '.join(said.split()))} |"
                    for name, said in options
                ]
                lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_the_page_is_made_of_the_commands(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(_render())
    assert PAGE.read_text() == _render(), "pytest tests/cli/test_cli_page.py --update-goldens"
