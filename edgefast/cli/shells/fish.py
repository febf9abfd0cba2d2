"""Fish: a completion script of a command tree.

In: the program's name and its tree.
Out: a script for the folder of completions, which can also be sourced.
Must never: write a text into the script that fish could expand.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgefast.cli.shells.tree import CommandNode, Option, Value, walk

__all__ = ["render_fish"]

_HEAD = """\
# fish completion of @NAME@, written by `@NAME@ completion fish`.
function __@NAME@_is
    set -l found
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; or set -a found $word
    end
    for at in (seq (count $argv))
        test "$found[$at]" = "$argv[$at]"; or return 1
    end
end
function __@NAME@_is_exactly
    set -l found
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; or set -a found $word
    end
    test (count $found) -eq (count $argv); and __@NAME@_is $argv
end
complete -c @NAME@ -f
"""


def render_fish(program: str, root: CommandNode) -> str:
    """Return the script."""
    lines = [line for node in walk(root) for line in _lines_of(program, node)]
    return _HEAD.replace("@NAME@", program) + "\n".join(lines) + "\n"


def _lines_of(program: str, node: CommandNode) -> Iterator[str]:
    words = " ".join(node.path)
    here = _quote(f"__{program}_is {words}".rstrip())
    exactly = _quote(f"__{program}_is_exactly {words}".rstrip())
    for child in node.children:
        yield f"complete -c {program} -n {exactly} -a {child.name} -d {_quote(child.help)}"
    condition = here if node.path else exactly
    for one in node.options:
        yield f"complete -c {program} -n {condition} {_describe(one)} -d {_quote(one.help)}"
    for value in node.arguments:
        if arguments := _complete_argument(value):
            yield f"complete -c {program} -n {here} {arguments}"


def _describe(one: Option) -> str:
    words = []
    for flag in one.flags:
        words += ["-l", flag[2:]] if flag.startswith("--") else ["-s", flag[1:]]
    if one.value is not None:
        match one.value.kind:
            case "choice":
                words += ["-x", "-a", _quote(" ".join(one.value.choices))]
            case "file":
                words += ["-r", "-F"]
            case "folder":
                words += ["-x", "-a", "'(__fish_complete_directories)'"]
            case _:
                words.append("-x")
    return " ".join(words)


def _complete_argument(one: Value) -> str:
    match one.kind:
        case "choice":
            return f"-a {_quote(' '.join(one.choices))}"
        case "file":
            return "-F"
        case "folder":
            return "-a '(__fish_complete_directories)'"
        case _:
            return ""


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
