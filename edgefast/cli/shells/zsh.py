"""Zsh: a completion script of a command tree.

In: the program's name and its tree.
Out: a script for a folder of `fpath`, which can also be sourced.
Must never: write a text into the script that zsh could expand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from edgefast.cli.shells.tree import CommandNode, Option, Value, walk

__all__ = ["render_zsh"]

_END = """\
if [[ $funcstack[1] == _@NAME@ ]]; then
    _@NAME@ "$@"
else
    compdef _@NAME@ @NAME@
fi
"""


def render_zsh(program: str, root: CommandNode) -> str:
    """Return the script."""
    lines = [f"#compdef {program}", f"# Written by `{program} completion zsh`."]
    for node in walk(root):
        lines += _function_of(program, node)
    return "\n".join([*lines, _END.replace("@NAME@", program)])


def _function_of(program: str, node: CommandNode) -> Iterator[str]:
    name = "_".join((f"_{program}", *node.path))
    yield f"{name}() {{"
    if node.children:
        yield "    local context state state_descr line"
        yield "    typeset -A opt_args"
    specs = [spec for one in node.options for spec in _specs_of(one)]
    if node.children:
        specs += [_quote("1:command:->command"), _quote("*::argument:->argument")]
    else:
        specs += [_argument_spec(one, at) for at, one in enumerate(node.arguments, 1)]
    flags = " -C" if node.children else ""
    yield f"    _arguments -s -S{flags} \\"
    yield " \\\n".join(f"        {spec}" for spec in specs)
    if node.children:
        yield from _dispatch(name, node.children)
    yield "}"


def _dispatch(name: str, children: Iterable[CommandNode]) -> Iterator[str]:
    yield "    case $state in"
    yield "    command)"
    yield "        local -a commands"
    yield "        commands=("
    for one in children:
        yield f"            {_quote(f'{_escape(one.name)}:{one.help}')}"
    yield "        )"
    yield "        _describe -t commands command commands ;;"
    yield "    argument)"
    yield "        case $line[1] in"
    for one in children:
        yield f"        {_quote(one.name)}) {name}_{one.name} ;;"
    yield "        esac ;;"
    yield "    esac"


def _specs_of(one: Option) -> Iterator[str]:
    """Yield one specification of `_arguments` for each spelling."""
    excluded = "*" if one.many else f"({' '.join(one.flags)})" if len(one.flags) > 1 else ""
    for flag in one.flags:
        text = f"[{_escape(one.help)}]"
        if one.value is None:
            yield _quote(f"{excluded}{flag}{text}")
        else:
            joined = "=" if flag.startswith("--") else "+"
            yield _quote(f"{excluded}{flag}{joined}{text}:{_escape(one.value.name)}:{_action_of(one.value)}")  # fmt: skip


def _argument_spec(one: Value, at: int) -> str:
    place = "*" if one.many else f"{at}:"  # optional ones, too: click reports a missing one
    return _quote(f"{place}:{_escape(one.name)}:{_action_of(one)}")


def _action_of(one: Value) -> str:
    match one.kind:
        case "choice":
            return f"({' '.join(_escape(choice) for choice in one.choices)})"
        case "file":
            return "_files"
        case "folder":
            return "_files -/"
        case _:
            return " "


def _escape(text: str) -> str:
    return re.sub(r"([\\\[\]:])", r"\\\1", text)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
