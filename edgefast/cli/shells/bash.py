"""Bash: a completion script of a command tree, for bash 4.2 or newer.

In: the program's name and its tree.
Out: a script that defines one completion function and registers it.
Must never: write a name into the script that bash could expand.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from edgefast.cli.shells.tree import CommandNode, Value, walk

__all__ = ["render_bash"]

_SCRIPT = """\
# bash completion of @NAME@, written by `@NAME@ completion bash`.
_@NAME@_names() { # command: sets names to its subcommands and the choices of its arguments, flags to its options, paths to file, folder or nothing
    names= flags= paths=
    case "$1" in
@NAMES@
    esac
}
_@NAME@_value() { # command option: sets names and paths for its value; 1 for a flag
    names= paths=
    case "$1 $2" in
@VALUES@
    *) return 1 ;;
    esac
}
_@NAME@() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
    local command= names= flags= paths= word at skip= only_arguments=
    COMPREPLY=()
    # Bash splits --option=value at "=".
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]] && ((COMP_CWORD > 1)); then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((at = 1; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [[ $word == = ]]; then
            skip=1
        elif [[ -n $skip ]]; then
            skip=
        elif [[ $word == -- ]]; then
            only_arguments=1
        elif [[ $word == -* && -z $only_arguments ]]; then
            if _@NAME@_value "$command" "$word"; then
                skip=1
                [[ ${COMP_WORDS[at+1]} == = ]] && skip=
            fi
        else
            _@NAME@_names "$command"
            [[ " $names " == *" $word "* ]] && _@NAME@_is_command "$command $word" && command="${command:+$command }$word"
        fi
    done
    if [[ -z $only_arguments && $prev == -* ]] && _@NAME@_value "$command" "$prev"; then
        :
    elif [[ $cur == -* && -z $only_arguments ]]; then
        _@NAME@_names "$command"
        names=$flags paths=
    else
        _@NAME@_names "$command"
    fi
    if [[ -n $names ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur")
    elif [[ -n $paths ]]; then
        compopt -o filenames 2>/dev/null
        if [[ $paths == folder ]]; then
            mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        fi
    fi
}
_@NAME@_is_command() {
    case "${1# }" in
    @COMMANDS@) return 0 ;;
    esac
    return 1
}
complete -F _@NAME@ @NAME@
"""


def render_bash(program: str, root: CommandNode) -> str:
    """Return the script."""
    nodes = list(walk(root))
    commands = "|".join(_quote(" ".join(one.path)) for one in nodes if one.path)
    return (
        _SCRIPT.replace("@NAMES@", "\n".join(map(_names_of, nodes)))
        .replace("@VALUES@", "\n".join(line for node in nodes for line in _values_of(node)))
        .replace("@COMMANDS@", commands)
        .replace("@NAME@", program)
    )


def _names_of(node: CommandNode) -> str:
    """Return the case of one command."""
    names = [child.name for child in node.children]
    names += [choice for one in node.arguments for choice in one.choices]
    flags = [flag for one in node.options for flag in one.flags]
    words = f"names={_quote(names)} flags={_quote(flags)} paths={_find_paths(node.arguments)}"
    return f"    {_quote(' '.join(node.path))}) {words} ;;"


def _values_of(node: CommandNode) -> Iterable[str]:
    """Yield the cases of the options that take a value."""
    for one in node.options:
        if one.value is not None:
            places = "|".join(_quote(f"{' '.join(node.path)} {flag}") for flag in one.flags)
            found = f"names={_quote(one.value.choices)} paths={_find_paths((one.value,))}"
            yield f"    {places}) {found} ;;"


def _find_paths(values: Iterable[Value]) -> str:
    kinds = {one.kind for one in values}
    return "file" if "file" in kinds else "folder" if "folder" in kinds else ""


def _quote(words: str | Iterable[str]) -> str:
    text = words if isinstance(words, str) else " ".join(words)
    return shlex.quote(text)
