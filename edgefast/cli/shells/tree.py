"""Command tree: the names that shells complete, read from click commands.

In: a command.
Out: `CommandNode`: options, arguments and subcommands with their help lines. Hidden ones are left out.
Must never: call a command.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import click
import msgspec

__all__ = ["CommandNode", "Option", "Value", "make_tree", "walk"]

_HELP_WIDTH = 100  # characters of a help line


class Value(msgspec.Struct, frozen=True):
    """The value of an option or argument. `text`: the shell has nothing to propose."""

    kind: Literal["text", "choice", "file", "folder"]
    name: str
    choices: tuple[str, ...] = ()
    many: bool = False


class Option(msgspec.Struct, frozen=True):
    """An option with all its spellings; `value` is None for a flag."""

    flags: tuple[str, ...]
    help: str
    value: Value | None
    many: bool


class CommandNode(msgspec.Struct, frozen=True):
    """A command; `path` has the names of its parents, without the program."""

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    arguments: tuple[Value, ...]
    children: tuple[CommandNode, ...]

    @property
    def name(self) -> str:
        """Own name; "" of the program."""
        return self.path[-1] if self.path else ""


def make_tree(
    command: click.Command, path: tuple[str, ...] = (), parent: click.Context | None = None
) -> CommandNode:
    """Return the tree of a command and its subcommands; settings of `parent` are inherited."""
    name = path[-1] if path else None
    context = click.Context(command, parent, name, **command.context_settings)
    options, arguments = [], []
    for one in command.get_params(context):
        if isinstance(one, click.Option):
            if not one.hidden:
                options.append(_make_option(one, context))
        else:
            arguments.append(_make_value(one, context))
    children = []
    if isinstance(command, click.Group):
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            if child is not None and not child.hidden:
                children.append(make_tree(child, (*path, child_name), context))
    return CommandNode(
        path, command.get_short_help_str(_HELP_WIDTH), tuple(options), tuple(arguments), tuple(children)
    )  # fmt: skip


def walk(node: CommandNode) -> Iterator[CommandNode]:
    """Yield a node and all nodes below it, parents first."""
    yield node
    for child in node.children:
        yield from walk(child)


def _make_option(one: click.Option, context: click.Context) -> Option:
    takes_value = not one.is_flag and not one.count
    return Option(
        flags=(*one.opts, *one.secondary_opts),
        help=_first_sentence(one.help or ""),
        value=_make_value(one, context) if takes_value else None,
        many=one.multiple,
    )


def _make_value(one: click.Parameter, context: click.Context) -> Value:
    """Return what can be completed; a metavar with FILE or DIR names a path, whatever parses it."""
    name = (one.metavar or one.name or "value").strip("[].").upper()
    many = one.nargs == -1
    items = one.shell_complete(context, "")
    kinds = {item.type for item in items}
    if kinds == {"plain"}:
        return Value("choice", name, tuple(str(item.value) for item in items), many)
    if "file" in kinds or "FILE" in name:
        return Value("file", name, many=many)
    if "dir" in kinds or "DIR" in name:
        return Value("folder", name, many=many)
    return Value("text", name, many=many)


def _first_sentence(text: str) -> str:
    sentence = text.partition(". ")[0].rstrip(".")
    return sentence if len(sentence) <= _HELP_WIDTH else sentence[: _HELP_WIDTH - 3] + "..."
